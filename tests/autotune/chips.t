#!/bin/sh
# Costs, simulation and tuning for other chips than gfx1100: whose figures they
# use, that they say which are guesses, and that no row mixes chips.

# shellcheck source=tests/tap.sh
. "${T0_SRC:-.}/tests/tap.sh"

bin=${T0_BUILD:-build/rel}
db=$tmp/t0.db
unset T0_DEVICE
T0_CACHE= T0_DB=$db
export T0_CACHE T0_DB

# cost CHIP ROW COLUMN
cost() {
	"$bin/t0-sim" costs --chip "$1" --csv --quiet 2>/dev/null | awk -F, -v r="$2" -v c="$3" '$1 == r { print $c }'
}

# ---- costs: what AMD's product pages say ----

# CHIP CLOCK BOOST WGPS BYTES/S CACHE MiB
while read -r chip boost wgps dram l2 mall; do
	is "$(cost "$chip" clock.short 2) $(cost "$chip" gpu.wgps 2)" \
		"$boost $wgps" "$chip: boost clock and WGPs are its board's"
	is "$(cost "$chip" mem.dram_rate 2)" "$dram" \
		"$chip: the bandwidth is its memory's"
	is "$(cost "$chip" mem.l2_bytes 2) $(cost "$chip" mem.ic_bytes 2)" \
		"$l2 $mall" "$chip: so are L2 and Infinity Cache"
	is "$(cost "$chip" clock.short 4) $(cost "$chip" valu.latency 4)" \
		'published guess' "$chip: their origin is said, and of the rest"
	has_cost=$("$bin/t0-sim" costs --chip "$chip" 2>&1 |
		grep -c 'guesses taken over from gfx1100')
	is "$has_cost" 1 "$chip: how many are guesses is said"
done <<'FIGURES'
gfx1010 1905 20 4.48e+11 4194304 0
gfx1030 2250 40 5.12e+11 4194304 134217728
gfx1151 2900 20 2.56e+11 2097152 33554432
gfx1200 3130 16 3.2e+11 4194304 33554432
gfx1201 2970 32 6.4e+11 8388608 67108864
FIGURES
is "$(cost gfx1100 valu.latency 4)" default "gfx1100's costs are its own"
"$bin/t0-sim" costs --chip gfx9999 >"$tmp/out" 2>"$tmp/err"
is "$?" 2 'a chip that is not known is refused'
has "$tmp/err" 'gfx1201' 'with the list of those that are'

# ---- published costs of one chip are not another's ----

printf 'name,value,unit,source\nvalu.latency,7,cycle,a test\n' >"$tmp/c.csv"
"$bin/t0-sim" import "$tmp/c.csv" --chip gfx1201 >"$tmp/out" 2>&1
is "$?" 0 'costs of a chip are stored'
is "$(cost gfx1201 valu.latency 2)" 7 'and count for it'
is "$(cost gfx1200 valu.latency 2) $(cost gfx1100 valu.latency 2)" '5 5' \
	'and for no other'
printf 'name,value,unit,source\nsalu.latency,3,cycle,a test\n' >"$tmp/d.csv"
"$bin/t0-sim" import "$tmp/d.csv" >"$tmp/out" 2>&1
is "$(cost gfx1100 salu.latency 2) $(cost gfx1201 salu.latency 2)" '3 2' \
	'nor do those without a chip, which are of gfx1100'

# ---- simulated kernels ----

for c in gfx1010 gfx1030 gfx1151 gfx1201; do
	"$bin/t0-cc" --kernel softmax --chip "$c" -o "$tmp/$c.co" \
		>"$tmp/out" 2>&1
	"$bin/t0-sim" "$tmp/$c.co" --json >"$tmp/out" 2>"$tmp/err"
	is "$?" 0 "$c: a kernel is simulated with the costs of its chip"
done
"$bin/t0-sim" "$tmp/gfx1201.co" --chip gfx1100 >"$tmp/out" \
	2>"$tmp/err"
is "$?" 2 'not with those of another generation'
has "$tmp/err" 'code of gfx1201, costs of gfx1100' 'and that is said'

# ---- tuning ----

for c in gfx1010 gfx1030 gfx1151 gfx1201; do
	"$bin/t0-tune" --device "soft:$c" --shapes 64x64x64 --budget quick \
		--db "$db" >"$tmp/$c" 2>"$tmp/err"
	is "$?" 0 "$c: a product is tuned, and right on that device"
	has "$tmp/$c" 'taken over from gfx1100' \
		"$c: how many of the costs are guesses is said"
	is "$(awk '$1 == "64x64x64" && $2 ~ /bf16/ { print $(NF - 4),
		$(NF - 3), $(NF - 2) }' "$tmp/$c")" 'n/a n/a n/a' \
		"$c: nothing published of gfx1100 stands beside it"
done
is "$("$bin/t0-results" sql "SELECT DISTINCT target FROM v_tunes ORDER BY 1" \
	--db "$db" --csv | sed 1d | tr -d '\r' | tr '\n' ' ')" \
	'gfx1010 gfx1030 gfx1151 gfx1201 ' 'each row has its chip'
is "$("$bin/t0-results" sql "SELECT gfx || ' ' || round(max(clock_hz) / 1e6)
	FROM v_results WHERE area = 'gemm' GROUP BY gfx ORDER BY 1" \
	--db "$db" --csv | sed 1d | tr -d '\r' | tr '\n' ' ')" \
	'gfx1010 1905.0 gfx1030 2250.0 gfx1151 2900.0 gfx1201 2970.0 ' \
	'so has each time, by the clock of its chip'
plan_done
