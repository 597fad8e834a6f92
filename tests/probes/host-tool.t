#!/bin/sh
# t0-probe on the host, as a user meets it.  Times are not judged here: `make
# bench` does that (tests/bench/host.c).

# shellcheck source=tests/tap.sh
. "${T0_SRC:-.}/tests/tap.sh"

probe=${T0_BUILD:-build/rel}/t0-probe
results=${T0_BUILD:-build/rel}/t0-results
dir=$tmp
db=$dir/t0.db
unset T0_DB T0_DEVICE T0_VISIBLE_DEVICES

"$probe" latency --device host --samples 6 --db "$db" --csv -o "$dir/l.csv" \
	2>"$dir/err"
is "$?" 0 'latency on the host exits 0'
has "$dir/err" 'device: ' 'the processor is named'
is "$(grep -c 'host: .*\(hardware counters\|time-stamp\)' "$dir/err")" 1 \
	'one line says which counters there are'
has "$dir/err" '; 0 wrong results' 'every chain computed what C computes'
rows=$(wc -l <"$dir/l.csv")
ok "more than 50 instructions are measured: $rows" test "$rows" -gt 50
is "$(head -1 "$dir/l.csv" | tr -d '\r')" \
	'instruction,cycles,lo,hi,n,clock_mhz,published,agrees,source,rejected' \
	'ours stands beside the published figure and its source'
"$probe" latency --device host --samples 6 --db "$db" --csv -o "$dir/l.csv" \
	2>"$dir/err"
has "$dir/err" 'agree with run 1 within the intervals of both' \
	'a second run is compared with the first'

"$probe" throughput --device host --samples 6 --inst add --db "$db" \
	>"$dir/out" 2>"$dir/err"
is "$?" 0 'throughput of some instructions'
has "$dir/out" 'add_r64' 'that were asked for'
"$probe" throughput --device host --inst nonesuch --db "$db" >"$dir/out" \
	2>"$dir/err"
is "$?" 2 'an unknown instruction exits 2'
has "$dir/err" 'no instruction of this processor begins so' 'and is told of'
"$probe" overlap --device host --samples 6 --db "$db" --csv -o "$dir/o.csv" \
	2>"$dir/err"
is "$?" 0 'overlap on the host exits 0'

"$probe" memory --device host --samples 6 --max-bytes 131072 --db "$db" \
	--csv -o "$dir/m.csv" 2>"$dir/err"
is "$?" 0 'memory on the host exits 0'
has "$dir/err" 'L1, ' 'caches are named'
is "$(awk -F, '$2 == "latency" && $1 == 65536' "$dir/m.csv" | wc -l |
	tr -d ' ')" 1 'there is a latency of 64 KiB'
is "$(head -n 1 "$dir/m.csv" | tr -d '\r')" \
	'bytes,what,threads,value,unit,with_4KiB_pages,rejected' \
	'programs get what was rejected by row'
"$probe" memory --device host --samples 6 --max-bytes 131072 --db "$db" \
	>"$dir/out" 2>"$dir/err"
is "$?" 0 'memory for people'
is "$(head -n 1 "$dir/out" | tr -s ' ')" \
	' bytes what threads value unit with_4KiB_pages' \
	'of them, what was rejected is kept'
has "$dir/out" ' 64 KiB  latency ' 'bytes are in units of their size'
is "$(awk '$3 ~ /read|write|copy/ && $5 == "n/a"' "$dir/out")" '' \
	'what has no value has no row'
is "$(awk '/interrupted|not longer/ { print ($1 " " $2 " " $3) }' "$dir/err")" \
	"$(awk '/measured again/ { print ($1 " " $2 " " $3) }' "$dir/err")" \
	'all that was rejected is one line'
"$probe" memory --device host --max-bytes 100 --db "$db" >"$dir/out" \
	2>"$dir/err"
is "$?" 2 'too small a working set is refused'
"$probe" tiers --device host --db "$db" >"$dir/out" 2>"$dir/err"
is "$?" 2 'tiers do not run on the host'
has "$dir/err" 'tiers does not run on the host' 'and that is said'

if command -v sqlite3 >/dev/null; then
	sql() { sqlite3 "$db" "$1"; }
	is "$(sql "SELECT DISTINCT origin FROM v_results
		WHERE gfx = 'x86-64'")" hardware 'it is stored as hardware'
	is "$(sql "SELECT count(*) FROM v_results
		WHERE area = 'cost' AND correct IS NOT 'pass'")" 0 \
		'each result has a verdict, and it is a pass'
	is "$(sql "SELECT count(*) FROM v_results
		WHERE area = 'cost' AND (lo > value OR hi < value
		OR clock_hz IS NULL)")" 0 \
		'each has an interval and a clock'
fi
"$results" costs --db "$db" >"$dir/out" 2>"$dir/err"
is "$?" 0 't0-results costs lists them'

plan_done
