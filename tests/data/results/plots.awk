# What else the plots draw, behind fixture.awk:
#   awk -f fixture.awk -f plots.awk | t0-results import -
# Counts and simulated values, so that what is drawn can be worked out by hand.
function counted(area, name, params, metric, unit, value, better) {
	begin_result(area, name, params, metric, unit, value, real(value),
		     real(value), 1, better, "simulated", "")
	print "]}}"
}
function slots(encoding, word, n,   i) {
	for (i = 0; i < n; i++)
		printf "{\"slot\":{\"encoding\":\"%s\",\"opcode\":%d," \
			"\"form\":\"\",\"mnemonic\":null,\"verdict\":\"%s\"," \
			"\"signature\":\"\",\"reason\":\"invented\",\"expected\":null," \
			"\"oracle\":null,\"emulated_ok\":null," \
			"\"difference\":\"\",\"errata\":\"\"}}\n", encoding,
			n_slots++, word
}
# The library of one commit: two kernels, `slow` as many times slower.
function library(commit, day, slow, hazards,   p) {
	run("record-" commit, "t0-cc", commit, day, "{}", "{}")
	p = "{\"chip\":\"gfx1100\",\"level\":3}"
	counted("compile", "axpy", p, "insts", "1", 100 * slow, "lower")
	counted("compile", "scale", p, "insts", "1", 50, "lower")
	counted("compile", "axpy", p, "vgprs", "1", 20, "lower")
	counted("compile", "scale", p, "vgprs", "1", 10, "lower")
	p = "{\"object\":\"axpy.co\",\"groups\":1,\"grid\":0,\"workgroup\":256}"
	counted("sim", "axpy", p, "cycles", "cycle", 1000 * slow, "lower")
	p = "{\"object\":\"scale.co\",\"groups\":1,\"grid\":0,\"workgroup\":256}"
	counted("sim", "scale", p, "cycles", "cycle", 500, "lower")
	counted("verify", "axpy", "{\"object\":\"axpy.co\"}", "findings", "1",
		hazards, "lower")
	if (hazards)
		counted("verify", "axpy", "{\"object\":\"axpy.co\"}",
			"missing-wait", "1", hazards, "lower")
	counted("verify", "scale", "{\"object\":\"scale.co\"}", "findings", "1",
		0, "lower")
	counted("bench", "soft/saxpy", "{}", "rate", "B/s", 8e9 / slow, "higher")
	counted("bench", "soft/gemm", "{}", "rate", "FLOP/s", 1e9, "higher")
	counted("bench", "cc/axpy", "{}", "time", "s", 1e-3 * slow,
		"lower")
	counted("bench", "isa/dis", "{\"to\":\"objdump\"}", "ratio", "1",
		18 / slow, "higher")
	counted("bench", "cc/axpy", "{\"to\":\"the budget\"}", "ratio", "1",
		0.25, "lower")
	counted("bench", "cc/scale", "{\"to\":\"the budget\"}", "ratio", "1",
		0.0625, "lower")
	verdict("correctness", hazards ? "fail" : "pass", "verify", "axpy",
		"{\"object\":\"axpy.co\"}")
}
# A kernel's share of a training step.
function part(of, kernel, row, share) {
	counted("step", "0.6b", "{\"rows\":1,\"part\":\"" of \
		"\",\"kernel\":\"" kernel "\",\"row\":" row "}", "share", "1",
		share, "none")
}
BEGIN {
	run("run-micro", "t0-probe overlap", "aaaaaaaaaaaa", 1, "{}", "{}")
	result("overlap", "v_add_f32", "{\"with\":\"s_add_u32\"}", "interval",
	       "cycle", 2, "lower")
	result("overlap", "v_add_f32",
	       "{\"with\":\"s_add_u32\",\"alone\":\"first\"}", "interval",
	       "cycle", 2, "lower")
	result("overlap", "v_add_f32",
	       "{\"with\":\"s_add_u32\",\"alone\":\"second\"}", "interval",
	       "cycle", 1, "lower")
	for (i = 1; i <= 32; i *= 4)
		result("waves", "v_add_f32", "{\"waves\":" i "}", "interval",
		       "cycle", 5 / (i > 4 ? 4 : 1), "lower")
	result("branch", "branch taken", "{\"waves\":1,\"code_bytes\":516}",
	       "latency", "cycle", 27, "lower")
	for (i = 2; i <= 8; i *= 2)
		result("branch", "barrier",
		       "{\"waves\":" i ",\"code_bytes\":540}", "latency",
		       "cycle", 10 + i, "lower")
	for (i = 4096; i <= 131072; i *= 2)
		result("fetch", "v_mov_b32",
		       "{\"waves\":1,\"code_bytes\":" i "}", "latency",
		       "cycle", i > 32768 ? 4 : 1, "lower")
	run("run-discover", "t0-probe discover", "aaaaaaaaaaaa", 1, "{}", "{}")
	slots("SOP1", "executes", 5)
	slots("SOP1", "illegal", 3)
	slots("VOP1", "executes", 4)
	slots("VOP1", "unproven", 1)
	run("run-tiers", "t0-probe tiers", "aaaaaaaaaaaa", 1, "{}", "{}")
	result("tiers", "bandwidth", "{}", "bandwidth", "B/s", 8e11, "higher")
	verdict("correctness", "pass", "tiers", "tier 0: nodes", "{}")
	verdict("correctness", "pass", "tiers", "tier 1: card", "{}")
	verdict("correctness", "pass", "tiers", "tier 1: open", "{}")
	verdict("correctness", "fail", "tiers", "tier 1: queue", "{}")
	run("run-quantize", "t0-qwen3 quantize", "aaaaaaaaaaaa", 1, "{}", "{}")
	n = split("bf16 int8 int4", w, " ")
	split("1.2e9 0.64e9 0.34e9", bytes, " ")
	split("0 0.0002 0.05", kl, " ")
	for (i = 1; i <= n; i++) {
		p = "{\"weights\":\"" w[i] "\"}"
		counted("quantize", "qwen3-0.6b", p, "bytes_per_token", "B",
			bytes[i], "lower")
		counted("quantize", "qwen3-0.6b", p, "mean_kl", "1", kl[i],
			"lower")
	}
	run("run-load", "t0-qwen3 load", "aaaaaaaaaaaa", 1, "{}", "{}")
	for (i = 1; i <= 16; i *= 2) {
		p = "{\"rate\":\"" i "\",\"requests\":32}"
		counted("load", "qwen3-0.6b", p, "first_token", "s",
			0.02 + 0.01 * i, "lower")
		counted("load", "qwen3-0.6b", p, "first_token_p99", "s",
			0.05 + 0.1 * i, "lower")
		counted("load", "qwen3-0.6b", p, "inter_token", "s", 0.01,
			"lower")
	}
	run("run-train", "t0-qwen3 train", "aaaaaaaaaaaa", 1, "{}", "{}")
	for (i = 50; i <= 400; i *= 2) {
		p = "{\"step\":" i "}"
		counted("train", "licences", p, "loss", "nat", 200 / i, "lower")
		counted("train", "licences", p, "valid_loss", "nat",
			200 / i + 1, "lower")
		counted("train", "licences", p, "learning_rate", "1",
			0.0001 * (500 - i), "lower")
	}
	run("run-step", "t0-qwen3 forecast --train", "aaaaaaaaaaaa", 1, "{}",
	    "{}")
	counted("step", "0.6b", "{\"rows\":1}", "speed", "token/s", 8000,
		"higher")
	part("batch", "128x32x64_w4x1", 1, 0.25)
	part("batch", "32x64x64_w2x2", 2, 0.25)
	part("batch", "flash_packed", 3, 0.125)
	part("update", "learn_adamw", 1, 0.25)
	part("update", "(launches)", 2, 0.125)
	library("bbbbbbbbbbbb", 2, 1, 0)
	library("cccccccccccc", 3, 1.21, 2)
}
