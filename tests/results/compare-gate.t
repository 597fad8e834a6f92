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
has "$tmp/out" 'n: 12+12 processes' 'compare: a run stands for its series'
has "$tmp/out" '0.01 shared by 2 rows (Bonferroni)' 'compare: says its method'
has "$tmp/out" 'one after the other' 'compare: and that nothing took turns'
has "$tmp/out" 'calibrated: not on this machine' 'compare: nor was calibrated'
exits 1 'compare: a proven loss is a no' "$r" compare 4 3
has "$tmp/out" 'worse' 'compare: and is called worse'
exits 0 'compare: no effect' "$r" compare 4 5
has "$tmp/out" '~' 'compare: what is not proven is ~'
exits 0 'compare: one process and another' "$r" compare run:4 run:3
has "$tmp/out" 'inconclusive' 'compare: ten samples of each prove nothing'
has "$tmp/out" '2 rows compare one process' 'compare: and the reason is told'
exits 0 'compare: one process against twelve' "$r" compare 4 run:3
has "$tmp/out" 'inconclusive' 'compare: proves nothing, either'
exits 0 'compare: by commit' "$r" compare --json bbbbbbb commit:ccccccccccccdddd
has "$tmp/out" '"ratio": 1.12' 'compare: the ratio is in the JSON'
has "$tmp/out" '"p": 7.39' 'compare: p of two separate dozens is 2 / 2704156'
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

exits 1 'gate: no baseline is no pass' "$r" gate --any-host
has "$tmp/err" 'nothing was gated' 'gate: and says so'
exits 1 'baseline: a wrong result is left' "$r" baseline accept 2 'kernel/copy'
has "$tmp/err" 'correctness or coherence check failed' 'baseline: by name'
exits 1 'baseline: one process is left' "$r" baseline accept 2 'memory/*'
has "$tmp/err" 'by 1 process, whose luck is not known; wanted 20' \
	'baseline: with what is wanted'
exits 2 'baseline: a limit that is none' "$r" baseline accept 4 --limit 0
exits 0 'baseline: the first' "$r" baseline accept 4
has "$tmp/out" 'first' 'baseline: is told to be the first'
exits 0 'gate: as fast as before' "$r" gate --any-host
is "$(head -n 1 "$tmp/out")" \
	'passed: 2 pass, 0 regress, 0 inconclusive, 0 no data' \
	'gate: the verdict comes first'
exits 0 'gate: in JSON' "$r" gate --any-host --json
has "$tmp/out" '"verdict": "pass"' 'gate: with the verdict'
has "$tmp/out" '"limit": 0.05' 'gate: with the limit'
has "$tmp/out" '"processes": 12' 'gate: with the number of processes'
is "$("$r" sql --csv "SELECT count(*) FROM v_verdicts WHERE kind = 'gate'" |
	tr -d '\r' | tail -n 1)" 2 'gate: its verdicts are stored once'
exits 1 'gate: another host has none' "$r" gate
exits 1 'gate: nothing measured for a commit' "$r" gate --any-host \
	--commit eeeeeeeeeeee
has "$tmp/err" 'nothing was gated' 'gate: is no pass'
exits 0 'compare: against the baseline' "$r" compare baseline 5
has "$tmp/out" 'n: 12+12 processes' 'compare: which has its processes'

# A gate of one run: its own cases, and those that are required.
fixture 0
exits 0 'baseline: required' "$r" baseline accept 4 '*decode*' --required
exits 0 'baseline: of both' "$r" baseline accept 4 '*prefill*'
sqlite3 "$tmp/t0.db" "DELETE FROM results WHERE run IN(SELECT id FROM runs
	WHERE series = 'run-tok3') AND metric = 'prefill_rate'"
exits 0 'gate: of a run that lacks a case' "$r" gate 5 --any-host
has "$tmp/out" 'passed: 1 pass' 'gate: holds what it has'
exits 1 'gate: of no case' "$r" gate 5 --any-host --only nothing
sqlite3 "$tmp/t0.db" "DELETE FROM results WHERE run IN(SELECT id FROM runs
	WHERE series = 'run-tok3') AND metric = 'decode_rate'"
exits 1 'gate: of a run that lacks a required case' "$r" gate 5 --any-host
has "$tmp/out" 'no data' 'gate: is no data'
has "$tmp/out" 'nothing was measured' 'gate: as it says'

# Half of the samples gone: of each process, then of the processes.
fixture 0
exits 0 'baseline: twelve' "$r" baseline accept 4
sqlite3 "$tmp/t0.db" "DELETE FROM runs WHERE series = 'run-tok3' AND id % 2;
	DELETE FROM runs WHERE series = 'run-tok3' AND id NOT IN(SELECT id FROM
	runs WHERE series = 'run-tok3' LIMIT 2)"
run=$(sqlite3 "$tmp/t0.db" "SELECT min(id) FROM runs WHERE series = 'run-tok3'")
exits 1 'gate: two processes' "$r" gate "$run" --any-host
has "$tmp/out" '2 inconclusive' 'gate: decide nothing'
fixture 0
exits 0 'baseline: twelve, once more' "$r" baseline accept 4
sqlite3 "$tmp/t0.db" "UPDATE results SET value = value / 2, lo = NULL, hi = NULL WHERE run IN(
	SELECT id FROM runs WHERE series = 'run-tok3')"
exits 1 'gate: half as fast' "$r" gate 5 --any-host
has "$tmp/out" '2 regress' 'gate: is a regression'

# A baseline of wild spread: refused, and no limit grows with it.
fixture 0
sqlite3 "$tmp/t0.db" "UPDATE results SET value = value * (1 + (id / 6) % 3),
	lo = NULL, hi = NULL WHERE
	run IN(SELECT id FROM runs WHERE series = 'run-tok2')"
exits 1 'baseline: a wild one' "$r" baseline accept 4
has "$tmp/err" '12 processes find a change of' 'baseline: is left'
has "$tmp/err" 'a quieter machine, or a higher --limit' 'baseline: with a remedy'
is "$("$r" baseline list --csv | wc -l)" 1 'baseline: none was stored'
exits 0 'baseline: unless asked for' "$r" baseline accept 3
sqlite3 "$tmp/t0.db" "UPDATE baselines SET samples = (SELECT json_group_array(
	value * (1 + key % 3)) FROM json_each(samples))"
exits 1 'gate: against wild processes' "$r" gate 5 --any-host
has "$tmp/out" '2 inconclusive' 'gate: is inconclusive'
has "$tmp/out" 'processes a side would decide' 'gate: and says what it takes'

fixture 0.1
exits 0 'baseline: of the faster run' "$r" baseline accept 4 \
	--reason 'a good day'
exits 1 'gate: a loss of 10 %' "$r" gate 5 --any-host --verbose
has "$tmp/out" 'regress' 'gate: is a regression'
has "$tmp/out" 'NOT PASSED: 0 pass, 2 regress' 'gate: of both'
is "$(grep -c '1. warm-up' "$tmp/out")" 1 'gate: one list of what to look at'
has "$tmp/out" '1. warm-up      ruled out' 'gate: warm-up is ruled out'
has "$tmp/out" '2. clocks       ruled out: 2500 MHz' 'gate: so are clocks'
has "$tmp/out" '3. occupancy    not recorded' 'gate: occupancy is not known'
has "$tmp/out" '4. flags/prompt ruled out' 'gate: so are the inputs'
has "$tmp/out" '5. environment  ruled out' 'gate: and the environment'
has "$tmp/out" '6. load         not recorded' 'gate: nobody noted the load'
has "$tmp/out" "7. bisect       SUSPECT: run t0-results bisect cccccccccccc " \
	'gate: the code is left'
exits 1 'gate: a loss of 10 %, in short' "$r" gate 5 --any-host
ok 'gate: without the list' sh -c "! grep -q warm-up '$tmp/out'"
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
exits 1 'gate: the run of a baseline is no measurement of it' \
	"$r" gate --any-host
exits 2 'baseline: retire needs a reason' "$r" baseline retire 3
exits 0 'baseline: retire' "$r" baseline retire 3 --reason 'card is gone'
exits 0 'baseline: list after it' "$r" baseline list --csv
is "$(wc -l <"$tmp/out")" 2 'baseline: one is left'

# Faster, but nobody looked at what it computed.
fixture -0.2
sqlite3 "$tmp/t0.db" "DELETE FROM verdicts WHERE run IN(SELECT id FROM runs
	WHERE series = 'run-tok3')"
exits 0 'baseline: the slower one' "$r" baseline accept 4
exits 1 'gate: a check that the baseline had' "$r" gate 5 --any-host
has "$tmp/out" 'it did not run' 'gate: is missed'
exits 1 'baseline: an unchecked gain' "$r" baseline accept 5
has "$tmp/err" 'that is no win' 'baseline: is left'
sqlite3 "$tmp/t0.db" "UPDATE baselines SET correct = NULL, coherent = NULL"
exits 1 'gate: an unchecked gain is inconclusive' "$r" gate 5 --any-host
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
