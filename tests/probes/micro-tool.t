#!/bin/sh
# t0-probe's microbenchmarks as a user without a card meets them.

# shellcheck source=tests/tap.sh
. "${T0_SRC:-.}/tests/tap.sh"

probe=${T0_BUILD:-build/rel}/t0-probe
dir=$tmp
db=$dir/t0.db
unset T0_DB T0_DEVICE T0_VISIBLE_DEVICES

# ---- the soft device alone has no time ----

for v in latency throughput memory lds overlap branch fetch waves; do
	exits 2 "$v on the soft device is refused" \
		"$probe" $v --device soft --db "$db"
	has "$dir/err" 'has no time, only a count of instructions' \
		"$v: with the reason"
	has "$dir/err" '--device sim' "$v: and the remedy"
	is "$(cat "$dir/out")" '' "$v: and prints no figure"
done

# ---- with the simulator's clock ----

exits 0 'latency with the simulator' \
	"$probe" latency --device sim --inst v_fma_f32 --db "$db"
has "$dir/err" 'results are simulated' 'it says that it is simulated'
has "$dir/out" 'v_fma_f32' 'the instruction that was asked for'
has "$dir/out" 'right' 'its values were compared'
exits 0 'an instruction that has no row' \
	"$probe" latency --device sim --inst v_perm_b32 --db "$db"
has "$dir/out" 'not compared' 'is measured, and says what was not checked'
exits 0 'a throughput of the same kind' \
	"$probe" throughput --device sim --inst v_cvt_f64_f32 --db "$db"
exits 2 'one without a chain' \
	"$probe" latency --device sim --inst v_cvt_f64_f32 --db "$db"
has "$dir/err" 'try throughput' 'says what to do'
exits 2 'an unknown instruction' \
	"$probe" latency --device sim --inst v_nonsense --db "$db"
has "$dir/err" 'no such instruction' 'is told of'
exits 0 'a cost of the simulator is changed' \
	"$probe" latency --device sim --inst v_xor_b32 --set valu.latency=9 \
	--db "$db" --csv -o "$dir/x.csv"
is "$(awk -F, 'NR == 2 { print int($2 + 0.5) }' "$dir/x.csv")" 9 \
	'and the probe sees it'
exits 2 'a cost that there is not' \
	"$probe" latency --device sim --set nonsense=1 --db "$db"
exits 2 'a cost that is no number' \
	"$probe" latency --device sim --set valu.latency=many --db "$db"
has "$dir/err" "'many' is no number" 'is told of'
exits 2 'a cost of a card cannot be set' \
	"$probe" latency --device soft --set valu.latency=1 --db "$db"
has "$dir/err" 'it wants --device sim' 'and that is said'

exits 0 'overlap' "$probe" overlap --device sim --db "$db" --csv \
	-o "$dir/o.csv"
is "$(sqlite3 "$db" "SELECT printf('%.2f %.2f %.2f', a.value, b.value, c.value)
	FROM v_results a JOIN v_results b ON b.run = a.run AND b.name = a.name
	JOIN v_results c ON c.run = a.run AND c.name = a.name
	WHERE a.area = 'overlap' AND a.name = 'v_mul_lo_u32'
	AND a.params ->> 'alone' = 'first' AND b.params ->> 'alone' = 'second'
	AND c.params = '{\"with\":\"v_rcp_f32\"}'")" \
	"$(awk -F, '$1 == "v_mul_lo_u32" { print $3, $4, $5 }' "$dir/o.csv")" \
	'each alone and both together are kept'
is "$(awk -F, '$1 == "v_add_f32" && $2 == "s_add_u32" && $6 > 80' \
	"$dir/o.csv" | wc -l | tr -d ' ')" 1 \
	'vector and scalar ALU run at the same time'
is "$(awk -F, '$1 == "v_add_f32" && $2 == "v_dual_add_f32" && $6 < 20' \
	"$dir/o.csv" | wc -l | tr -d ' ')" 1 \
	'two kinds of vector ALU instructions do not'
exits 0 'branch' "$probe" branch --device sim --db "$db" --csv -o "$dir/b.csv"
is "$(awk -F, '$1 == "branch taken" { print int($4 + 0.5) }' \
	"$dir/b.csv")" 27 'a taken branch'
exits 0 'fetch' "$probe" fetch --device sim --db "$db" --csv -o "$dir/f.csv"
is "$(awk -F, '$3 > 8000 && $3 < 30000 && int($4 * 10 + 0.5) != 10' \
	"$dir/f.csv" | wc -l | tr -d ' ')" 0 \
	'code that fits issues an instruction a cycle'
is "$(awk -F, '$3 > 60000 && $4 < 3' "$dir/f.csv" | wc -l | tr -d ' ')" 0 \
	'code that does not fit waits for fetch'
exits 0 'waves' "$probe" waves --device sim --db "$db" --csv -o "$dir/w.csv"
is "$(awk -F, '$1 ~ /wmma/ && ($5 < 31 || $5 > 37)' "$dir/w.csv" |
	wc -l | tr -d ' ')" 0 'waves of one SIMD share its matrix unit'

if command -v sqlite3 >/dev/null; then
	is "$(sqlite3 "$db" "SELECT DISTINCT origin FROM v_results")" \
		simulated 'everything is stored as simulated'
	is "$(sqlite3 "$db" "SELECT count(*) FROM v_results
		WHERE n < 6 OR lo IS NULL")" 0 'with samples and interval'
fi
exits 2 'lds has no host' "$probe" lds --device host --db "$db"
exits 2 'discover has no simulator' "$probe" discover --device sim --db "$db"
exits 2 'too many samples' "$probe" latency --device sim --samples 1000
exits 0 'the help' "$probe" --help
for v in latency throughput memory overlap lds branch fetch waves; do
	has "$dir/out" "$v" "the help tells of $v"
done

plan_done
