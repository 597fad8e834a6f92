#!/bin/sh
# t0-tune: found, proven, stored; killed and gone on with; refused in words.
. "$T0_SRC/tests/tap.sh"
tune="$T0_BUILD/t0-tune"
sql() {
	"$T0_BUILD/t0-results" sql --db "$1" --csv "$2" | tail -n 1 | tr -d '\r'
}
db="$tmp/a.db"
few='--shapes 64x64x64,64x48x96 --layout nt --budget quick --device soft'

# ---- refused ----
# The searches would take minutes before they missed the memory: of the processor,
# as a busy machine takes minutes for anything.
for d in soft host; do
	exits 2 "$d: a product larger than the memory" sh -c 'ulimit -t 30; exec "$@"' \
		- $tune --shapes 99999x99999x99999 --device $d --db "$tmp/large.db"
	has "$tmp/err" '99999x99999x99999: its operands take' "$d: says what it takes"
done

# ---- a search ----
exits 0 'a quick search ends well' $tune $few --db "$db" --json
has "$tmp/out" '"verdict": "right"' 'the winner is right'
has "$tmp/out" '"origin": "simulated"' 'and said to be simulated'
is "$(grep -c '"behind_percent": [0-9]' "$tmp/out")" 2 'a right one is behind it'
is "$(sql "$db" 'SELECT count(*) FROM v_tunes WHERE winner')" 2 \
	'both problems have a winner'
is "$(sql "$db" "SELECT count(*) > 500 FROM v_tunes WHERE m = 64 AND n = 64")" \
	1 'hundreds of configurations are in the database'
is "$(sql "$db" "SELECT count(*) FROM v_tunes WHERE state IN
	('rejected', 'failed') AND reason = ''")" 0 'none rejected without reason'
is "$(sql "$db" "SELECT count(*) FROM v_tunes WHERE time_s < bound_s")" 0 \
	'no simulated time is below the bound'
is "$(sql "$db" "SELECT count(*) > 3 FROM v_tunes WHERE reason LIKE
	'fastest in %'")" 1 'the finalists say how they stand with other costs'
is "$(grep -c '"draws": 12' "$tmp/out")" 2 'and so does the table'
is "$(sql "$db" "SELECT min(c.verdict) FROM v_tunes t JOIN v_tune_checks c
	USING(target, op, config, object, class) WHERE t.winner")" pass \
	'what won was checked'
timed=$(sql "$db" "SELECT count(*) FROM v_tunes WHERE state = 'timed'")
# 2 x 64^3 operations of 3 x 64^2 elements of 2 bytes.
is "$(sql "$db" "SELECT round(value, 3) FROM v_results WHERE area = 'gemm' AND
	metric = 'intensity' AND params ->> 'm' = 64 AND params ->> 'n' = 64")" \
	21.333 'a winner has its place in the roofline'
is "$(sql "$db" "SELECT DISTINCT printf('%.3f %.3f', value / hi, value / lo)
	FROM v_results WHERE area = 'gemm' AND origin = 'simulated' AND
	metric = 'flops'")" '0.885 1.669' 'and the range that is as far as simulators err'
is "$(sql "$db" "SELECT count(*) FROM v_results WHERE area = 'peak'")" 5 \
	'and the roofline its limits'
exits 0 'the same again' $tune $few --db "$db" --csv
has "$tmp/err" '2 of 2 products were tuned before: nothing to do' 'says so'
is "$(sql "$db" "SELECT count(*) FROM v_tunes WHERE state = 'timed' AND run > (
	SELECT min(run) FROM v_tunes)")" 0 'times nothing anew'
is "$(grep -c right "$tmp/out")" 2 'and shows the stored winners'

exits 0 'several types at once' $tune --shapes 64x64x64 --dtype f32,f16,f32 \
	--budget quick --device soft --db "$tmp/types.db" --csv --quiet
is "$(cut -d, -f2 "$tmp/out" | tr -d '\r' | sed 1d | tr '\n' ' ')" \
	'f32_nn_f32 f16_nn_f16 ' 'are a product each, once'
exits 2 'none behind a comma' $tune --sizes 64 --dtype f32, --db "$tmp/types.db"

# ---- what others published ----
rows=$(grep -c '^PUBLISHED(' "$T0_SRC/autotune/cmd/published.def")
is "$(sql "$db" "SELECT count(*) FROM v_results WHERE area = 'gemm' AND
	origin = 'published' AND metric = 'flops' AND source <> ''")" "$rows" \
	'is in the database, once'
is "$(sql "$db" "SELECT printf('%.3f', value / 1e12) FROM v_results WHERE
	name = 'rocBLAS' AND params ->> 'm' = 1024 AND params ->> 'n' = 1024
	AND params ->> 'k' = 1024")" \
	51.477 'in FLOP/s'
is "$(sql "$db" "SELECT count(*) FROM v_results p JOIN v_results r
	USING(run, case_id) WHERE p.metric = 'predicted' AND r.metric =
	'reference' AND p.value BETWEEN 0.5 * r.value AND 1.5 * r.value")" \
	"$(grep -c '^PUBLISHED(TRITON_TILE' \
	"$T0_SRC/autotune/cmd/published.def")" \
	'beside what the simulator says of a kernel that is known'
exits 0 'other costs' $tune $few --db "$db" --set wmma.issue=64 --quiet
is "$(sql "$db" 'SELECT count(*) FROM v_tunes WHERE winner')" 4 \
	'are another search'
exits 0 'why a winner wins' $tune $few --db "$db" --explain
has "$tmp/out" 'VGPRs' 'is said with its registers'
has "$tmp/out" 'pipes:' 'its pipes'
has "$tmp/out" 'waves: issue' 'and its stalls'
has "$tmp/out" 'The simulator is off by' "beside the simulator's own error"
has "$tmp/out" 'that nobody has measured were drawn 11 times' 'what was drawn'
has "$tmp/out" ' % of 64x64x64, ' 'and what the launch costs of small ones'
has "$tmp/out" '(Triton 128x128x32, 9 published sizes, 9 rows)' \
	'found now, for the database has none'

has "$tmp/out" 'of 63 published products lie: 0.89 to 1.67' \
	'and the range is that of all that others published'

# ---- the simulator's error, as it was validated ----
sim="$T0_BUILD/t0-sim"
{
	echo 'source_doc,system,M,N,K,tile_m,tile_n,tile_k,split_k,wg_mode,other,tflops'
	for n in 256 512 1024 2048 4096; do
		for doc in a b; do
			echo "$doc,Triton,$n,$n,$n,128,128,32,,,reliability=good,$((n / 40 + 1))"
		done
	done
} >"$tmp/perf.csv"
cp "$db" "$tmp/v.db"
exits 0 'the simulator is validated' "$sim" validate --perf "$tmp/perf.csv" \
	--db "$tmp/v.db" --csv
want=$(tr -d '\r' <"$tmp/out" | awk -F, '/^gemm,each/ {
	printf "%.1f %% at worst (t0-sim validate, each source left out, " \
		"%d rows)", $6, $4 }')
ok 'it says its error' test -n "$want"
exits 0 'a table with that database' $tune $few --db "$tmp/v.db"
has "$tmp/out" "$want" "says that error: $want"
sed '/^a,/d' "$tmp/perf.csv" >"$tmp/fewer.csv"
"$sim" validate --quiet --perf "$tmp/fewer.csv" --db "$tmp/v.db" --csv \
	>"$tmp/out"
newest=$(tr -d '\r' <"$tmp/out" | awk -F, '/^gemm,each/ { print $4 " rows)" }')
exits 0 'another validation' $tune $few --db "$tmp/v.db"
has "$tmp/out" "each source left out, $newest" "the newest counts: $newest"
exits 0 'a table for programs' $tune $few --db "$tmp/v.db" --csv
is "$(grep -c 'off by' "$tmp/out")" 0 'has no notes'
# Of a database whose validation had no products, it is found out as without.
"$T0_BUILD/t0-results" sql --db "$tmp/v.db" 'SELECT 1' >/dev/null
sqlite3 "$tmp/v.db" "UPDATE cases SET params = replace(params, 'gemm',
	'tiles') WHERE area = 'predict'"
exits 0 'rows of other kinds' $tune $few --db "$tmp/v.db"
has "$tmp/out" '(Triton 128x128x32' 'say nothing'

# ---- where operands lie ----
exits 0 'with B in memory' $tune $few --db "$db" --caches cold-b --csv
is "$(grep -c ',cold-b,' "$tmp/out")" 2 'the table says so'
is "$(sql "$db" "SELECT count(*) FROM v_tunes WHERE winner AND
	caches = 'cold-b'")" 2 'and these are problems of their own'
exits 2 'a state that there is not' $tune $few --db "$db" --caches hot
has "$tmp/err" 'cold-b (B in memory)' 'is told the others'
exits 2 'the space by the costs of a database that is not there' \
	$tune --sizes 256 --list --csv --db "$tmp/none.db"
has "$tmp/err" "$tmp/none.db" 'which is named'
exits 0 'the space alone' env T0_DB="$tmp/none.db" $tune --sizes 256 --list --csv
is "$(grep -c ranked "$tmp/out" | awk '{ print ($1 > 1000) }')" 1 \
	'has over a thousand configurations, ranked'
ok 'and stores nothing' test ! -e "$tmp/none.db"

# ---- the host ----
db="$tmp/h.db"
exits 0 'the processor is tuned, too' $tune --device host --shapes 4x64x64 \
	--dtype bf16 --layout nt --budget 0.3 --db "$db" --csv --quiet
has "$tmp/out" hardware 'and measured for real'
is "$(sql "$db" "SELECT count(*) FROM v_tunes WHERE winner AND
	origin = 'hardware'")" 1 'its winner is stored'
exits 0 'it is measured as programs get it' $tune --device host \
	--shapes 4x64x64 --dtype bf16 --layout nt --measure --samples 12 \
	--db "$db" --csv --quiet
has "$tmp/out" right 'after a check'
is "$(sql "$db" "SELECT count(*) || ' ' || min(origin) || ' ' || min(n) || ' ' ||
	min(correct) FROM v_results WHERE area = 'gemm' AND unit =
	'FLOP/s' AND params ->> 'm' = 4")" '1 hardware 12 pass' 'as a row'
is "$(sql "$db" "SELECT printf('%.1f', value / 1e9) FROM v_results WHERE
	area = 'gemm'")" "$(tr -d '\r' <"$tmp/out" | sed -n 2p | cut -d, -f3)" \
	'with the median that is shown'
exits 0 'bytes with a scale for each row are tuned' $tune --device host \
	--shapes 4x48x64 --dtype i8 --layout nt --budget 0.1 --db "$tmp/i8.db" \
	--csv --quiet
has "$tmp/out" ',int8*channel8[n][k],' 'as what they are'
has "$tmp/out" ,right 'and right'
exits 2 'rows of bytes are of 32' $tune --device host --shapes 4x48x40 \
	--dtype i8 --layout nt --db "$tmp/i8.db"
has "$tmp/err" 'multiple of 32' 'is told'
exits 2 'to measure is for the host' $tune --sizes 64 --measure --db "$db"
exits 2 'an epilogue is not for the host' $tune --device host --sizes 64 \
	--epilogue bias --db "$db"

# ---- killed ----
db="$tmp/k.db"
more='--shapes 96x96x96,128x64x128 --layout nt --device soft --quiet'
$tune $more --db "$db" >/dev/null 2>&1 &
pid=$!
n=0
for i in $(seq 200); do
	sleep 0.05
	n=$(sql "$db" "SELECT count(*) FROM v_tunes WHERE state = 'timed'" \
		2>/dev/null)
	[ "${n:-0}" -ge 5 ] 2>/dev/null && break
done
kill -9 $pid 2>/dev/null
wait $pid 2>/dev/null
n=$(sql "$db" "SELECT count(*) FROM v_tunes WHERE state = 'timed'")
w=$(sql "$db" 'SELECT count(*) FROM v_tunes WHERE winner')
diag "killed after $n timings"
ok 'a killed search has kept what it timed' test "$n" -ge 5
is "$w" 0 'and chosen nothing'
exits 0 'it is gone on with' $tune $more --db "$db"
is "$(sql "$db" "SELECT count(*) = (SELECT count(*) FROM v_tunes WHERE state =
	'timed') FROM v_results WHERE area = 'tune'")" 1 \
	'what was timed before is not timed again'
is "$(sql "$db" "SELECT count(*) > 0 FROM v_tunes WHERE state = 'timed' AND
	run > 1")" 1 'what was missing is'
is "$(sql "$db" 'SELECT count(*) FROM v_tunes WHERE winner')" 2 \
	'and both winners are found'

# ---- a disk that is full, a file that is damaged ----
db="$tmp/f.db"
exits 2 'a full disk is trouble' sh -c "ulimit -f 300; trap '' XFSZ
	$tune $few --db '$db' --quiet"
has "$tmp/err" "$db" 'the message names the file'
exits 0 'with room again it goes on' $tune $few --db "$db" --quiet
is "$(sql "$db" 'SELECT count(*) FROM v_tunes WHERE winner')" 2 'to the end'
printf 'this is no database, whatever its name says' >"$tmp/c.db"
exits 2 'a file that is no database' $tune $few --db "$tmp/c.db"
has "$tmp/err" "$tmp/c.db" 'is named'
is "$(head -c 7 "$tmp/c.db")" 'this is' 'and left alone'
dd if=/dev/urandom of="$db" bs=4096 seek=1 count=40 conv=notrunc 2>/dev/null
exits 2 'a damaged database' $tune $few --db "$db"
has "$tmp/err" "$db" 'is named, too'

# ---- on the device that there is; killed while it listed its candidates ----
listed() {
	sqlite3 "$tmp/list.db" 'SELECT config FROM tunes ORDER BY 1'
}
list() {
	$tune --shapes 64x48x96 --budget quick -q -j1 --db "$tmp/list.db"
}
exits 0 'a search' list
listed >"$tmp/whole"
sqlite3 "$tmp/list.db" 'DELETE FROM tune_winners; DELETE FROM tunes WHERE
	id > (SELECT avg(id) FROM tunes)'
ok 'half of its list is gone' [ "$(listed | wc -l)" -lt "$(wc -l <"$tmp/whole")" ]
exits 0 'the same again' list
listed >"$tmp/again"
ok 'lists them all' cmp "$tmp/whole" "$tmp/again"

# ---- the same with any number of threads ----
for j in 1 3; do
	exits 0 "$j threads" $tune --shapes 256x512x384,128x96x64 --budget quick -q \
		-j $j --db "$tmp/j$j.db"
	sqlite3 "$tmp/j$j.db" 'SELECT m, config, state, reason, time_s FROM
		v_tunes ORDER BY 1, 2' >"$tmp/j$j"
done
ok 'the same are timed, to the same times' cmp "$tmp/j1" "$tmp/j3"

# ---- bad arguments ----
exits 2 'no sizes' $tune --db "$db"
has "$tmp/err" '--sizes' 'are asked for'
exits 2 'sizes that are none' $tune --sizes 12x --db "$db"
exits 2 'a size of 0' $tune --sizes 0 --db "$db"
exits 2 'half a shape' $tune --shapes 64x64 --db "$db"
exits 2 'an unknown type' $tune --sizes 64 --dtype f8 --db "$db"
exits 2 'an unknown layout' $tune --sizes 64 --layout xy --db "$db"
exits 2 'an unknown epilogue' $tune --sizes 64 --epilogue sofmax --db "$db"
exits 2 'an unknown model' $tune --shapes-from gpt --db "$db"
exits 2 'an unknown budget' $tune --sizes 64 --budget lots --db "$db"
exits 2 'unknown operands' $tune --sizes 64 --operands nice --db "$db"
exits 2 'an unknown cost' $tune --sizes 64 --set nice=1 --db "$tmp/n.db"
exits 2 'an operand' $tune --sizes 64 256 --db "$db"
exits 77 'a device that is not there' $tune --sizes 64 --budget quick \
	--device kfd:9 --db "$tmp/d.db"
plan_done
