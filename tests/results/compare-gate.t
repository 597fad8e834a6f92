#!/bin/sh
# t0-results compare, gate, baseline, note, history, costs, devices, sql, prune
# on an invented database.
. tests/tap.sh
unset T0_DB
export T0_DB="$tmp/t0.db"
r=$T0_BUILD/t0-results
fixture() {
	rm -f "$tmp"/t0.db*
	awk -v loss="$1" -f tests/data/results/fixture.awk |
		"$r" import --quiet -
}
fixture 0

exits 0 'compare: a proven gain is no trouble' "$r" compare 3 4
has "$tmp/out" 'better' 'compare: and is called better'
has "$tmp/out" 'geometric mean' 'compare: ends with a geometric mean'
has "$tmp/out" '10+10' 'compare: says how many samples'
exits 1 'compare: a proven loss is a no' "$r" compare 4 3
has "$tmp/out" 'worse' 'compare: and is called worse'
exits 0 'compare: no effect' "$r" compare 4 5
has "$tmp/out" '~' 'compare: what is not proven is ~'
exits 0 'compare: by commit' "$r" compare --json bbbbbbb commit:ccccccccccccdddd
has "$tmp/out" '"ratio": 1.12' 'compare: the ratio is in the JSON'
has "$tmp/out" '"p": 1.08' 'compare: p of two separate tens is 2 / 184756'
exits 2 'compare: another card is refused' "$r" compare 3 6
has "$tmp/err" 'uid is card-one on one and card-two' 'compare: by name'
exits 2 'compare: then the next difference' "$r" compare --allow uid 3 6
has "$tmp/err" 'host is host-one' 'compare: another host'
exits 2 'compare: another prompt' "$r" compare --allow uid --allow host 3 6
has "$tmp/err" 'inputs.prompt is "p1" on one and "p2"' 'compare: is named'
exits 2 'compare: another condition' "$r" compare --allow uid --allow host \
	--allow inputs.prompt 3 6
has "$tmp/err" 'conditions.governor' 'compare: is named too'
exits 0 'compare: all may be allowed' "$r" compare --allow all 3 6
has "$tmp/out" 'only one side' 'compare: a case of one side is told'
exits 2 'compare: nothing there' "$r" compare 3 commit:1234567
has "$tmp/err" 'holds no such results' 'compare: is told'
cp "$tmp/t0.db" "$tmp/other.db"
exits 0 'compare: with another file' "$r" compare "$tmp/other.db:4" 5
exits 0 'compare: only one case' "$r" compare --csv --only 'engine/*' \
	--metric decode_rate 4 5
is "$(wc -l <"$tmp/out")" 3 'compare: and nothing else'

exits 3 'gate: no baseline is no pass' "$r" gate --any-host
has "$tmp/err" 'nothing was gated' 'gate: and says so'
exits 2 'baseline: a wrong result is refused' "$r" baseline accept 2
has "$tmp/err" 'failed their correctness' 'baseline: because it is wrong'
exits 0 'baseline: the first' "$r" baseline accept 4
has "$tmp/out" 'first' 'baseline: is told to be the first'
exits 0 'gate: as fast as before' "$r" gate --any-host
has "$tmp/out" 'passed: 2 pass' 'gate: two cases pass'
exits 0 'gate: in JSON' "$r" gate --any-host --json
has "$tmp/out" '"verdict": "pass"' 'gate: with the verdict'
is "$("$r" sql --csv "SELECT count(*) FROM v_verdicts WHERE kind = 'gate'" |
	tr -d '\r' | tail -n 1)" 2 'gate: its verdicts are stored once'
exits 3 'gate: another host has none' "$r" gate
exits 3 'gate: nothing measured for a commit' "$r" gate --any-host \
	--commit eeeeeeeeeeee
has "$tmp/out" 'nothing was measured' 'gate: is no data'
exits 0 'compare: against the baseline' "$r" compare baseline 5

fixture 0.1
exits 0 'baseline: of the faster run' "$r" baseline accept 4 \
	--reason 'a good day'
exits 1 'gate: a loss of 10 %' "$r" gate --any-host
has "$tmp/out" 'regress' 'gate: is a regression'
has "$tmp/out" 'NOT PASSED: 0 pass, 2 regress' 'gate: of both'
has "$tmp/out" '1. warm-up      ruled out' 'gate: warm-up is ruled out'
has "$tmp/out" '2. clocks       ruled out: 2500 MHz' 'gate: so are clocks'
has "$tmp/out" '3. occupancy    not recorded' 'gate: occupancy is not known'
has "$tmp/out" '4. flags/prompt ruled out' 'gate: so are the inputs'
has "$tmp/out" '5. environment  ruled out' 'gate: and the environment'
has "$tmp/out" "6. bisect       SUSPECT: run scripts/bisect-regression 'engi" \
	'gate: the code is left'
exits 2 'baseline: lowering needs a reason' "$r" baseline accept 5
has "$tmp/err" 'say why with --reason' 'baseline: and says so'
has "$tmp/out" 'LOWERS' 'baseline: and shows what it would lower'
has "$tmp/out" 'a good day' 'baseline: with the old reason'
exits 0 'baseline: lowered with a reason' "$r" baseline accept 5 \
	--reason 'the fix costs 10 %'
exits 0 'baseline: list' "$r" baseline list --csv
is "$(wc -l <"$tmp/out")" 3 'baseline: two are active'
exits 0 'baseline: list all' "$r" baseline list --all --csv
has "$tmp/out" 'replaced' 'baseline: the history stays'
exits 0 'baseline: show' "$r" baseline show 3
has "$tmp/out" 'a good day' 'baseline: show has what it replaced'
exits 3 'gate: the run of a baseline is no measurement of it' \
	"$r" gate --any-host
exits 2 'baseline: retire needs a reason' "$r" baseline retire 3
exits 0 'baseline: retire' "$r" baseline retire 3 --reason 'card is gone'
exits 0 'baseline: list after it' "$r" baseline list --csv
is "$(wc -l <"$tmp/out")" 2 'baseline: one is left'

# Faster, but nobody looked at what it computed.
fixture -0.2
sqlite3 "$tmp/t0.db" "DELETE FROM verdicts WHERE run = 5"
exits 0 'baseline: the slower one' "$r" baseline accept 4
exits 3 'gate: a check that the baseline had' "$r" gate --any-host
has "$tmp/out" 'it did not run' 'gate: is missed'
exits 2 'baseline: an unchecked gain' "$r" baseline accept 5
has "$tmp/err" 'that is no win' 'baseline: is refused'
sqlite3 "$tmp/t0.db" "UPDATE baselines SET correct = NULL, coherent = NULL"
exits 2 'gate: an unchecked gain is inconclusive' "$r" gate --any-host
has "$tmp/out" 'no correctness check passed' 'gate: and says why'

exits 0 'note: add' "$r" note add --hypothesis 'unroll the k loop by four' \
	--about gemm/t0 --expected 5% --measured 0.99x --status discard \
	--commit ccccccc
is "$(cat "$tmp/err")" '' 'note: nothing like it was tried'
exits 0 'note: again' "$r" note add --status 'null' \
	--hypothesis 'Unroll the inner K loop eight times' --expected 0.03
has "$tmp/err" 'tried before: note 1' 'note: the same thing is remembered'
has "$tmp/err" 'discard, measured -1%' 'note: with what came of it'
exits 0 'note: something else' "$r" note add --status keep \
	--hypothesis 'swizzle the LDS rows' --measured 12%
is "$(cat "$tmp/err")" '' 'note: is not mixed up with it'
exits 2 'note: an unknown status' "$r" note add --status good --hypothesis x
has "$tmp/err" 'note status is known' 'note: is refused'
exits 2 'note: a gain that is none' "$r" note add --status keep \
	--hypothesis x --expected much
exits 0 'note: correct one' "$r" note add --replaces 3 --status retracted \
	--hypothesis 'swizzle the LDS rows' --remark 'wrong output'
exits 0 'note: list' "$r" note list
has "$tmp/out" 'retracted' 'note: the correction is listed'
is "$(grep -c swizzle "$tmp/out")" 1 'note: what it corrects is not'
exits 0 'note: search' "$r" note list --csv UNROLL
is "$(wc -l <"$tmp/out")" 3 'note: both are found'
exits 0 'note: show' "$r" note show 1
has "$tmp/out" 'ccccccc' 'note: show has the commit'

exits 0 'history' "$r" history qwen3-0.6b --metric decode_rate
has "$tmp/out" 'cccccccccccc' 'history: has the commits'
exits 2 'history: an unknown case' "$r" history nothing
exits 0 'costs' "$r" costs
has "$tmp/out" 'published' 'costs: published ones are there'
has "$tmp/out" 'v_wmma_f32_16x16x16_f16' 'costs: and measured ones'
exits 0 'devices' "$r" devices
has "$tmp/out" 'card-two' 'devices: both cards'

exits 0 'sql' "$r" sql --csv 'SELECT 1 AS "a,b", NULL, 0.5, '"'x'"
is "$(tr -d '\r' <"$tmp/out" | tail -n 1)" '1,,0.5,x' 'sql: a row'
for query in 'DELETE FROM runs' "ATTACH '$tmp/new.db' AS n" \
	'SELECT 1; SELECT 2' 'PRAGMA user_version = 7' '' 'SELEC' \
	'CREATE TEMP TABLE t(x)'; do
	exits 2 "sql: refuses \"$query\"" "$r" sql "$query"
done
ok 'sql: nothing was attached' [ ! -e "$tmp/new.db" ]

exits 2 'prune: asks first' "$r" prune 1 </dev/null
has "$tmp/err" 'there is no terminal to ask on' 'prune: and says so'
exits 0 'prune: --dry-run' "$r" prune 1 --dry-run
exits 0 'prune: --yes' "$r" prune 1 3 --yes
exits 2 'prune: they are gone' "$r" show 3
exits 2 'prune: what?' "$r" prune --yes
exits 0 'prune: by age' "$r" prune --older-than 1 --yes
is "$("$r" list --csv | wc -l)" 1 'prune: old runs are gone'
has "$tmp/out" 't0-qwen3' 'prune: and were shown'
exits 0 'baselines outlive their runs' "$r" baseline list
has "$tmp/out" 'decode_rate' 'and are still listed'
for command in gate "prune 1" "baseline accept" "note list"; do
	# shellcheck disable=SC2086 # a command and its operand
	exits 2 "$command: no database is trouble" "$r" $command \
		--db "$tmp/absent.db"
done
ok "and none is created" [ ! -e "$tmp/absent.db" ]
plan_done
