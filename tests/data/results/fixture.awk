# Prints an export (JSON lines) that holds something for every command and
# plot of t0-results:  awk -f fixture.awk | t0-results import -
# All numbers are invented; "-v loss=0.1" makes the last run 10 % slower.  The
# runs 3, 4 and 5 are each the first of twelve processes, the others come last.
function random() {	# Park and Miller, so that every awk agrees
	seed = (seed * 16807) % 2147483647
	return seed / 2147483647
}
function noise(share,   i, sum) {	# roughly normal
	for (i = sum = 0; i < 12; i++)
		sum += random()
	return 1 + share * (sum - 6)
}
function real(v,   s) {
	s = sprintf("%.12g", v)
	return s ~ /[.e]/ ? s : s ".0"
}
function run(name, tool, commit, day, inputs, conditions, machine, series) {
	printf "{\"run\":{\"uuid\":\"%s\",\"tool\":\"%s\",\"argv\":\"%s\"," \
		"\"inputs\":\"%s\",\"conditions\":\"%s\",\"seed\":1," \
		"\"start_ns\":%d000000000,\"end_ns\":%d000000000," \
		"\"state\":\"complete\",\"exit_code\":0,\"reason\":\"\"," \
		"\"owner\":\"\",", name, tool, tool, inputs, conditions,
		1700000000 + day * 86400, 1700000060 + day * 86400
	if (series)
		printf "\"series\":\"%s\",\"side\":\"a\",", series
	printf "\"host\":{\"machine\":\"%s\",\"cpu\":\"Test CPU\"," \
		"\"kernel\":\"Linux 6.1 x86_64\",\"cores\":8," \
		"\"mem_bytes\":34359738368},", machine ? machine : "host-one"
	printf "\"device\":{\"name\":\"Invented XTX\",\"gfx\":\"gfx1100\"," \
		"\"uid\":\"%s\",\"pci\":\"0000:03:00.0\",\"driver\":\"kfd 1.14\"," \
		"\"firmware\":\"mec=550\",\"facts\":\"{}\"," \
		"\"origin\":\"hardware\",\"cu_count\":96," \
		"\"vram_bytes\":25753026560},", machine ? "card-two" : "card-one"
	printf "\"build\":{\"version\":\"0.1.0\",\"git_commit\":\"%s\"," \
		"\"dirty\":0,\"compiler\":\"gcc 12\",\"flags\":\"optimized\"," \
		"\"binary\":\"b%s\"}}}\n", commit, commit
}
function begin_result(area, name, params, metric, unit, value, lo, hi, n,
		      better, origin, source) {
	gsub(/"/, "\\\"", params)
	printf "{\"result\":{\"case\":{\"area\":\"%s\",\"name\":\"%s\"," \
		"\"params\":\"%s\"},\"metric\":\"%s\",\"unit\":\"%s\"," \
		"\"value\":%s,\"lo\":%s,\"hi\":%s,\"n\":%d," \
		"\"clock_hz\":2500000000.0,\"better\":\"%s\"," \
		"\"origin\":\"%s\",\"source\":\"%s\",\"samples\":[", area,
		name, params, metric, unit, real(value), lo, hi, n, better,
		origin, source
}
# Ten samples with 1 % noise; the interval holds samples 2 to 9 of them.
function result(area, name, params, metric, unit, value, better,
		i, j, t, x, s) {
	for (i = 1; i <= 10; i++)
		x[i] = s[i] = value * noise(0.01)
	for (i = 2; i <= 10; i++)
		for (j = i; j > 1 && s[j] < s[j - 1]; j--) {
			t = s[j]; s[j] = s[j - 1]; s[j - 1] = t
		}
	begin_result(area, name, params, metric, unit, (s[5] + s[6]) / 2,
		     real(s[2]), real(s[9]), 10, better, "hardware", "")
	for (i = 1; i <= 10; i++)
		printf "%s%s", (i == 1 ? "" : ","), real(x[i])
	print "]}}"
}
function published(area, name, params, metric, unit, value, better) {
	begin_result(area, name, params, metric, unit, value, "null", "null", 0,
		     better, "published", "an invented paper")
	print "]}}"
}
function verdict(kind, word, area, name, params) {
	gsub(/"/, "\\\"", params)
	printf "{\"verdict\":{\"kind\":\"%s\",\"verdict\":\"%s\"," \
		"\"reason\":\"invented\",\"detail\":\"{}\",", kind, word
	if (area == "")
		printf "\"case\":{\"area\":null,\"name\":null,\"params\":null},"
	else
		printf "\"case\":{\"area\":\"%s\",\"name\":\"%s\"," \
			"\"params\":\"%s\"},", area, name, params
	print "\"of\":{\"area\":null,\"name\":null,\"params\":null," \
		"\"metric\":null}}}"
}
function engine(uuid, commit, day, rate, series) {
	run(uuid, "t0-qwen3 bench", commit, day, "{\\\"model\\\":\\\"m1\\\"," \
	    "\\\"prompt\\\":\\\"p1\\\"}", "{\\\"governor\\\":\\\"performance\\\"}",
	    "", series ? series : uuid)
	result("engine", "qwen3-0.6b", "{\"phase\":\"decode\"}", "decode_rate",
	       "token/s", rate, "higher")
	result("engine", "qwen3-0.6b", "{\"phase\":\"prefill\"}", "prefill_rate",
	       "token/s", rate * 9, "higher")
	verdict("correctness", "pass")
	verdict("coherence", "pass")
}
BEGIN {
	seed = 42
	print "{\"t0\":{\"export\":1,\"schema\":1}}"
	run("run-import", "t0-probe import", "aaaaaaaaaaaa", 0, "{}", "{}")
	published("cost", "v_add_f32", "{}", "latency", "cycle", 5, "lower")
	run("run-costs", "t0-probe latency", "aaaaaaaaaaaa", 1, "{}", "{}")
	n = split("s_add_u32 v_add_f32 v_dot2_f32_f16 v_exp_f32 v_fma_f32 " \
		  "v_wmma_f32_16x16x16_f16 ds_load_b32", op, " ")
	split("2 5 9 12 5 34 64", lat, " ")
	split("1 1 1 4 1 32 2", step, " ")
	for (i = 1; i <= n; i++) {
		result("cost", op[i], "{}", "latency", "cycle", lat[i], "lower")
		result("cost", op[i], "{}", "interval", "cycle", step[i], "lower")
	}
	for (b = 1024; b <= 1073741824; b *= 4) {
		p = "{\"bytes\":" b "}"
		result("memory", "chase", p, "latency", "s",
		       (b <= 32768 ? 50 : b <= 6e6 ? 110 : b <= 1e8 ? 250 : 600) \
		       * 1e-9, "lower")
		result("memory", "read", p, "bandwidth", "B/s",
		       (b <= 6e6 ? 4000 : b <= 1e8 ? 2500 : 880) * 1e9, "higher")
	}
	for (i = 1; i <= 64; i *= 2)
		result("lds", "ds_load_b32", "{\"stride\":" i "}", "interval",
		       "cycle", i > 32 ? 64 : i * 2, "lower")
	split("copy reduce softmax gemm", k, " ")
	split("0.08 0.25 1.2 90", ai, " ")
	split("0.07e12 0.21e12 0.9e12 78e12", fl, " ")
	for (i = 1; i <= 4; i++) {
		result("kernel", k[i], "{}", "flops", "FLOP/s", fl[i], "higher")
		result("kernel", k[i], "{}", "intensity", "FLOP/B", ai[i], "none")
	}
	result("peak", "WMMA f16", "{}", "flops", "FLOP/s", 122.9e12, "higher")
	result("peak", "VALU f32", "{}", "flops", "FLOP/s", 61e12, "higher")
	result("peak", "DRAM", "{}", "bandwidth", "B/s", 880e9, "higher")
	split("3 16 50 70 85", g, " ")
	split("3.4 14.3 51.5 71.2 91.1", lib, " ")
	for (i = 1; i <= 5; i++) {
		m = 128 * 2 ^ i
		p = sprintf("{\"k\":%d,\"m\":%d,\"n\":%d,\"type\":\"bf16\"}",
			    m, m, m)
		result("gemm", "t0", p, "flops", "FLOP/s", g[i] * 1e12, "higher")
		published("gemm", "a library", p, "flops", "FLOP/s",
			  lib[i] * 1e12, "higher")
	}
	for (i = 32; i <= 256; i *= 2)
		for (j = 32; j <= 128; j *= 2)
			result("tune", "t0", sprintf("{\"k\":4096,\"m\":4096," \
			       "\"n\":4096,\"tile_m\":%d,\"tile_n\":%d}", i, j),
			       "flops", "FLOP/s",
			       85e12 / (1 + (i / 128 - 1) ^ 2 + (j / 128 - 1) ^ 2),
			       "higher")
	for (i = 1; i <= 30; i++) {
		r = 1e-6 * 1.35 ^ i
		p = "{\"set\":\"published\"}"
		result("predict", "kernel" i, p, "reference", "s", r, "none")
		result("predict", "kernel" i, p, "predicted", "s",
		       r * noise(0.15), "none")
	}
	for (i = 1; i <= 200; i = i == 1 ? 10 : i == 10 ? 50 : i + 150)
		result("dispatch", "batch", "{\"packets\":" i "}", "latency",
		       "s", 2e-6 + 13e-6 / i, "lower")
	verdict("correctness", "fail", "kernel", "copy", "{}")
	engine("run-tok1", "bbbbbbbbbbbb", 2, 100)
	engine("run-tok2", "cccccccccccc", 3, 112)
	engine("run-tok3", "dddddddddddd", 4, 112 * (1 - loss))
	run("run-other", "t0-qwen3 bench", "dddddddddddd", 2,
	    "{\\\"model\\\":\\\"m1\\\",\\\"prompt\\\":\\\"p2\\\"}", "{}", "host-two")
	result("engine", "qwen3-0.6b", "{\"phase\":\"decode\"}", "decode_rate",
	       "token/s", 140, "higher")
	for (i = 2; i <= 12; i++) {
		engine("run-tok1-" i, "bbbbbbbbbbbb", 2, 100, "run-tok1")
		engine("run-tok2-" i, "cccccccccccc", 3, 112, "run-tok2")
		engine("run-tok3-" i, "dddddddddddd", 4, 112 * (1 - loss),
		       "run-tok3")
	}
}
