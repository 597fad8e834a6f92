#!/bin/sh
# t0-probe tiers and dispatch as a user meets them.

# shellcheck source=tests/tap.sh
. "${T0_SRC:-.}/tests/tap.sh"

probe=${T0_BUILD:-build/rel}/t0-probe
results=${T0_BUILD:-build/rel}/t0-results
dir=$tmp
db=$dir/t0.db
unset T0_DB T0_DEVICE T0_VISIBLE_DEVICES
sql() { sqlite3 "$db" "$1"; }
if command -v sqlite3 >/dev/null; then
	has_sql=1
else
	has_sql=
	skip 'no sqlite3 tool: what the database holds is not looked at'
fi

# ---- tiers on the soft device ----

"$probe" tiers --device soft --db "$db" --require 6 >"$dir/out" 2>"$dir/err"
is "$?" 0 'the soft device reaches the highest tier'
has "$dir/out" 'tier 6 of 6 reached' 'the last line says which'
has "$dir/out" ', emulated' 'and that it is emulated'
has "$dir/out" 'emulated: ' 'so do the speeds'
has "$dir/out" 'all 256 elements are where they belong' \
	'the WMMA map is checked element by element'
has "$dir/out" '6 places in 5 GiB are apart' 'memory beyond 4 GiB is checked'
"$probe" tiers --device soft --db "$db" --csv -o "$dir/t.csv" 2>"$dir/err"
is "$?" 0 'tiers as CSV'
is "$(awk -F, 'NR > 1 { print $1 }' "$dir/t.csv" | sort -u | tr '\n' ' ')" \
	'0 1 2 3 4 5 6 ' 'every tier has rows'
is "$(awk -F, 'NR > 1 && $4 != "pass"' "$dir/t.csv" | wc -l | tr -d ' ')" 0 \
	'every check passes'
if [ $has_sql ]; then
	is "$(sql "SELECT count(DISTINCT run) FROM v_verdicts
		WHERE reason LIKE '%256 elements%'")" 2 \
		'each run stored its reasons'
	is "$(sql "SELECT DISTINCT origin FROM v_results
		WHERE metric = 'bandwidth'")" emulated \
		'the bandwidth is stored as emulated'
	is "$(sql "SELECT count(*) FROM v_sensors
		WHERE area = 'tiers' AND sclk_hz > 0 AND power_w > 0
		AND edge_c > 0")" 8 \
		'clock, power, temperature before and after both, twice'
fi
"$results" list --db "$db" >"$dir/out" 2>&1
has "$dir/out" 't0-probe tiers' 't0-results lists the runs'

# ---- where there is no GPU ----

if [ -e /dev/kfd ]; then
	skip 'there is a /dev/kfd here: what it lacks cannot be seen'
else
	"$probe" tiers --device kfd --db "$db" >"$dir/out" 2>"$dir/err"
	is "$?" 0 'without a GPU: the tiers themselves are no failure'
	has "$dir/out" 'tier 0 of 6 reached (driver and nodes)' \
		'without a GPU: tier 0 is all there is'
	has "$dir/out" 'not run: tier 1 did not pass' \
		'without a GPU: what was not run says why'
	"$probe" tiers --device kfd --require 2 --db "$db" >"$dir/out" \
		2>"$dir/err"
	is "$?" 1 'without a GPU: a required tier gives exit code 1'
	has "$dir/err" 'tier 2 was required' 'without a GPU: with the reason'
	"$probe" tiers --db "$db" >"$dir/out" 2>"$dir/err"
	is "$?" 0 'nothing said: tiers run on what there is'
	has "$dir/out" 'device: soft gfx1100, emulated' 'nothing said: it is the soft device'
	has "$dir/out" 'no usable gfx11 GPU' 'nothing said: because of this'
	T0_VISIBLE_DEVICES=3 "$probe" dispatch --device kfd --db "$db" \
		>"$dir/out" 2>"$dir/err"
	is "$?" 77 'dispatch without a GPU exits 77'
fi
"$probe" tiers --device bogus --db "$db" >"$dir/out" 2>"$dir/err"
has "$dir/out" 'wanted soft, kfd' 'a malformed device is told of'

# ---- dispatch ----

"$probe" dispatch --device soft --quick --db "$db" --csv -o "$dir/d.csv" \
	2>"$dir/err"
is "$?" 0 'dispatch exits 0'
is "$(grep -c 'host: .*\(hardware counters\|time-stamp\)' "$dir/err")" 1 \
	'one line says which counters there are'
is "$(awk -F, 'NR > 1 { print $1 ":" $2 }' "$dir/d.csv" | tr '\n' ' ')" \
	'sync:1 batched:1 batched:10 batched:50 batched:200 device:200 ' \
	'synchronous, batches of 1, 10, 50 and 200, and the stamps of the device'
is "$(awk -F, 'NR > 1 && !($3 > 0 && $4 >= $3 && $5 >= $4)' "$dir/d.csv" |
	wc -l | tr -d ' ')" 0 'p50, p90 and p99 are in order'
if [ $has_sql ]; then
	is "$(sql "SELECT count(*) FROM v_results
		WHERE area = 'dispatch' AND metric = 'latency'")" 6 \
		'six latencies are stored'
	is "$(sql "SELECT DISTINCT n FROM v_results
		WHERE area = 'dispatch'")" 30 'with their samples'
	is "$(sql "SELECT count(*) FROM results x WHERE x.case_id IN(
		SELECT id FROM cases WHERE area = 'dispatch') AND 2 <> (
		SELECT count(*) FROM sensors s WHERE s.result = x.id
		AND s.sclk_hz > 0 AND s.edge_c > 0)")" 0 \
		'and what the sensors showed before and after'
	is "$(sql "SELECT count(*) FROM sensors WHERE 0 IN(sclk_hz, mclk_hz,
		power_w, edge_c, junction_c, memory_c)")" 0 \
		'nothing that is not known is 0'
fi
if [ $has_sql ]; then
	"$results" export --db "$db" -o "$dir/x.jsonl" 2>"$dir/err"
	"$results" import --db "$dir/y.db" "$dir/x.jsonl" 2>>"$dir/err"
	is "$(sqlite3 "$dir/y.db" "SELECT count(*), sum(edge_c) FROM sensors")" \
		"$(sql "SELECT count(*), sum(edge_c) FROM sensors")" \
		'readings travel with an export'
fi
"$probe" tears >"$dir/out" 2>"$dir/err"
is "$?" 2 'an unknown command exits 2'

plan_done
