#!/bin/sh
# Benchmarks of T0 itself store what they print, where T0_DB names a database.
# How fast anything is does not matter here: they repeat twice.
. tests/tap.sh
unset T0_DB T0_DEVICE T0_SERIES T0_SIDE
export T0_CACHE='' T0_BENCH_ROUNDS=2
bench=$(realpath "$T0_BUILD/tests/bench") r=$(realpath "$T0_BUILD/t0-results")
T0_SRC=$(realpath "${T0_SRC:-.}")
export T0_SRC
mkdir "$tmp/empty" && cd "$tmp/empty" || exit 2
q() {
	sqlite3 ../t.db "$1"
}

# The figure in column $2 of the first line that begins with $1, of the output.
printed() { # BEGINNING COLUMN
	grep -F -m 1 -- "$1" "$tmp/out" | sed "s/^$1//" |
		awk -v n="$2" '{ print $n }'
}
same() { # NAME PARAMS METRIC SCALE PRINTED
	stored=$(q "SELECT printf('%.17g', value * $4) FROM v_results WHERE
		name = '$1' AND params = '$2' AND metric = '$3'")
	# Within half of the last digit: sqlite and printf(3) may round apart.
	is "${stored:-nothing stored}: $(echo "$stored ${5-}" | awk 'NF == 2 {
		digits = $2 ~ /\./ ? length($2) - index($2, ".") : 0
		d = $1 < $2 ? $2 - $1 : $1 - $2
		print d * 10 ^ digits < 0.501 }')" "${stored:-nothing wanted}: 1" \
		"$1 $2: the $3 that is stored is the one that is printed"
}

exits 0 'without T0_DB' "$bench/dispatch"
is "$(ls -A)" '' 'nothing is written'

T0_DB=$tmp/t.db
export T0_DB
exits 0 'dispatch' "$bench/dispatch"
same dispatch/put '{"kernarg_bytes":16}' time 1e9 \
	"$(printed 'put, 16 bytes of arguments' 1)"
same 'dispatch/memcpy of 64 bytes' '{"kernarg_bytes":0}' time 1e9 \
	"$(printed 'memcpy of 64 bytes' 1)"
same dispatch/put '{"kernarg_bytes":0,"to":"memcpy of 64 bytes"}' ratio 1 \
	"$(printed ratio 1)"
is "$(q "SELECT tool, state, origin, unit, better, n,
	(SELECT count(*) FROM samples s WHERE s.result = v.result) FROM v_results v
	WHERE area = 'bench' AND name = 'dispatch/put' AND
	params = '{\"kernarg_bytes\":0}'")" \
	'bench-dispatch|complete|hardware|s|lower|2|2' \
	'a time has its tool, origin, unit, direction and samples'
is "$(q "SELECT DISTINCT unit, better FROM v_results WHERE metric = 'ratio'")" \
	'1|lower' 'a ratio has none'

exits 0 'cc' "$bench/cc"
same cc/saxpy '{}' time 1e3 "$(printed 'compile saxpy' 3)"
same 'cc/the library' '{"type":"bf16","kernels":'"$(q "SELECT DISTINCT
	params ->> 'kernels' FROM v_results WHERE name = 'cc/the library'")"'}' \
	time 1e3 "$(printed 'compile the library:' 4)"

exits 0 'soft-groups' "$bench/soft-groups" VOPD
same soft-groups/VOPD '{"way":"handlers"}' rate 1e-6 "$(printed VOPD 1)"
same soft-groups/VOPD '{"way":"stretches"}' rate 1e-6 "$(printed VOPD 2)"
same soft-groups/VOPD '{"way":"stretches","to":"handlers"}' ratio 1 \
	"$(printed VOPD 3)"
is "$(q "SELECT unit, better, origin, r.inputs FROM v_results v
	JOIN runs r ON r.id = v.run WHERE metric = 'rate' LIMIT 1")" \
	'insts/s|higher|hardware|{"args":"VOPD","rounds":"2"}' \
	'a rate, and what it depends on'

exits 0 'soft-gemm' "$bench/soft-gemm" 512
tiles='"config":"128x128x32_w2x2_b2_p1_u1_g0_pad_wgp"'
same soft-gemm/product "{\"op\":\"i8_nt_i32\",\"n\":512,$tiles}" rate 1e-9 \
	"$(printed i8_nt_i32 2)"
is "$(q "SELECT count(*) || ' ' || min(correct) FROM v_results WHERE
	name = 'soft-gemm/product' AND metric = 'rate'")" '6 pass' \
	'all of them are right'

exits 0 'weights' "$bench/weights" q4_k 1
of='"weights":"q4_k","threads":1'
same weights/product "{$of}" rate 1e-9 "$(printed 'q4_k     1 thread' 1)"
same weights/product "{$of,\"to\":\"memory bandwidth\"}" ratio 100 \
	"$(printed 'q4_k     1 thread' 5)"
same 'weights/product in cache' "{$of}" rate 1e-9 \
	"$(printed 'q4_k     1 thread' 12)"
same weights/product "{$of,\"to\":\"product in cache\"}" ratio 100 \
	"$(printed 'q4_k     1 thread' 16)"
exits 2 'weights, of no type' "$bench/weights" nonesuch
has "$tmp/err" 'got the type "nonesuch"; wanted f32' \
	'which it names, with those that there are'

if command -v clang-19 >/dev/null; then
	exits 0 'clang' "$bench/clang" add
	same clang/add '{"type":"f32","by":"T0"}' time 1 \
		"$(printed 'add ' 12)"
	same clang/add '{"type":"f32","by":"T0","to":"clang-19 -O3"}' ratio \
		1 "$(printed 'add ' 14)"
	is "$(q "SELECT unit, better, origin, n, lo = value, hi = value, correct
		FROM v_results WHERE name = 'clang/add' AND
		params = '{\"type\":\"f32\",\"by\":\"T0\"}'")" \
		'cycle|lower|simulated|1|1|1|pass' \
		'what was simulated is exact, and was checked'
	exits 2 'clang, of no kernel' "$bench/clang" nonesuch
	is "$(q 'SELECT state, exit_code, reason FROM v_runs
		ORDER BY run DESC LIMIT 1')" 'failed|2|no kernel is called so' \
		'a failed benchmark leaves a failed run'
else
	skip 'clang-19 is not installed'
fi

# All groups, as often as they like, take seconds.
env -u T0_BENCH_ROUNDS "$bench/soft-groups" >/dev/null &
killed=$!
until [ "$(q "SELECT count(*) FROM v_runs WHERE state = 'running'")" = 1 ]; do
	kill -0 $killed || break
	sleep 0.1
done
kill -KILL $killed
wait $killed 2>/dev/null
exits 0 'list, with a killed one' "$r" list
is "$(grep soft-groups "$tmp/out" | tail -n 1 | awk '{ print $6 }')" \
	interrupted 'a killed benchmark leaves a run that says so'

# A series of fresh processes.
exits 0 'a series' "$r" bench --quiet -p 3 -- "$bench/dispatch"
is "$(q "SELECT count(*), count(DISTINCT series), min(side), max(state)
	FROM v_runs WHERE series <> ''")" '3|1|a|complete' \
	'the runs know their series and side'

exits 2 'a database that cannot be' env T0_DB=/nonesuch/t.db "$bench/dispatch"
plan_done
