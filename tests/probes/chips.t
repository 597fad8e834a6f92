#!/bin/sh
# t0-probe's tiers and microbenchmarks on chips of every generation; all of them
# with T0_SLOW.

# shellcheck source=tests/tap.sh
. "${T0_SRC:-.}/tests/tap.sh"

probe=${T0_BUILD:-build/rel}/t0-probe
db=$tmp/t0.db
unset T0_DB T0_DEVICE T0_VISIBLE_DEVICES

for c in gfx1010 gfx1030 gfx1151 gfx1201; do
	"$probe" tiers --device "soft:$c" --require 6 --db "$db" \
		>"$tmp/out" 2>&1
	is "$?" 0 "$c: kernels, a matrix product and speed: tier 6"
	is "$(grep -c ' fail ' "$tmp/out")" 0 "$c: no check fails"
	has "$tmp/out" 'all 256 elements are where they belong' \
		"$c: a product of its own layout is right"

	"$probe" dispatch --quick --device "soft:$c" --db "$db" \
		>"$tmp/out" 2>&1
	is "$?" 0 "$c: a launch has its price"

	# Of gfx1201 v_wmma_* has other operands; gfx10 has none, nor VOPD.
	for v in latency throughput; do
		only=
		[ -z "${T0_SLOW-}" ] && [ $v = throughput ] && only=v_ad
		"$probe" $v --device "sim:$c" --db "$db" --csv -q \
			--samples 2 --inst "$only" -o "$tmp/$c.$v" 2>"$tmp/err"
		is "$?" 0 "$c: $v by the simulator's clock"
		is "$(grep -c ',wrong' "$tmp/$c.$v")" 0 \
			"$c: what C computes, too"
	done
	n=$(($(wc -l <"$tmp/$c.latency") - 1))
	ok "$c: most instructions are there ($n)" [ "$n" -ge 40 ]
	is "$(grep -c '^v_wmma' "$tmp/$c.latency")" \
		"$(case $c in gfx1151) echo 2 ;; *) echo 0 ;; esac)" \
		"$c: matrix products of gfx11 where they are"
	is "$(awk -F, '$1 == "v_add_f32" { print int($2 + 0.5) }' \
		"$tmp/$c.latency")" 5 "$c: a sum takes what its cost says"
	for v in ${T0_SLOW:+memory lds fetch overlap} branch waves; do
		"$probe" $v --device "sim:$c" --db "$db" -q --samples 2 \
			>"$tmp/out" 2>"$tmp/err" || break
	done
	is "$v $?" 'waves 0' "$c: all other probes run"
done
"$probe" latency --device sim:gfx9999 --db "$db" >"$tmp/out" 2>"$tmp/err"
is "$?" 2 'a chip that is not there is refused'
has "$tmp/err" 'no such chip' 'and that is said'
is "$("$T0_BUILD/t0-results" sql "SELECT DISTINCT gfx FROM v_results
	WHERE area = 'cost' AND origin = 'simulated' ORDER BY 1" --db "$db" \
	--csv | sed 1d | tr -d '\r' | tr '\n' ' ')" \
	'gfx1010 gfx1030 gfx1151 gfx1201 ' 'each row has its chip'
plan_done
