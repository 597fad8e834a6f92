#!/bin/sh
# t0-results export, import, merge: nothing is lost, doubled or half taken.
. tests/tap.sh
unset T0_DB
r=$T0_BUILD/t0-results
a=$tmp/a.db b=$tmp/b.db

awk -f tests/data/results/fixture.awk >"$tmp/fixture"
exits 0 'import' "$r" import --db "$a" "$tmp/fixture"
has "$tmp/err" '39 new runs, 0 were here' 'import: tells the count'
"$r" baseline accept 4 --db "$a" >/dev/null
"$r" note add --db "$a" --status null --hypothesis 'nothing helps' \
	--expected 1% --remark 'a "quoted" é \ remark'
# What JSON has trouble with.
sqlite3 "$a" "
	INSERT INTO samples VALUES(1, 100, -0.0), (1, 101, 5e-324),
		(1, 102, 1.7976931348623157e308), (1, 103, 9e999),
		(1, 104, -9e999), (1, 105, 0.1 + 0.2);
	UPDATE runs SET seed = -9223372036854775808, reason = 'tab	and
newline', end_ns = NULL, state = 'running', owner = 'gone' WHERE id = 1;
	INSERT INTO verdicts(run, result, kind, verdict, reason, detail)
		SELECT run, id, 'gate', 'regress', 'slow', '{}' FROM results
		WHERE run = 2 LIMIT 3;
	INSERT INTO slot_verdicts VALUES(2, 'VOP3', 7, '', NULL, 'executes', 's',
		'', NULL, '', NULL, '', '')"
exits 0 'export' "$r" export --db "$a" -o "$tmp/one"
exits 0 'import what was exported' "$r" import --db "$b" "$tmp/one"
exits 0 'export it again' "$r" export --db "$b" -o "$tmp/two"
ok 'the same bytes' cmp "$tmp/one" "$tmp/two"
exits 0 'import it once more' "$r" import --db "$b" - <"$tmp/one"
has "$tmp/err" '0 new runs, 39 were here' 'then nothing is new'
"$r" export --db "$b" -o "$tmp/three"
ok 'and nothing has changed' cmp "$tmp/one" "$tmp/three"
for table in runs results samples verdicts slot_verdicts baselines notes hosts \
	devices builds cases; do
	is "$(sqlite3 "$b" "SELECT count(*) FROM $table")" \
		"$(sqlite3 "$a" "SELECT count(*) FROM $table")" "$table: all of it"
done
is "$(sqlite3 "$b" "SELECT count(*) FROM samples WHERE value = 0.1 + 0.2 OR
	value = 9e999 OR value = 5e-324")" 3 'samples keep every bit'
is "$(sqlite3 "$b" 'PRAGMA foreign_key_check')" '' 'no reference dangles'

# Two machines: one has what the other lacks, and each its own card.
awk -f tests/data/results/fixture.awk | sed 's/"uuid":"run-/"uuid":"far-/
	s/host-one/host-far/; s/card-one/card-far/' |
	"$r" import --quiet --db "$tmp/far.db" -
exits 0 'merge' "$r" merge --db "$a" "$tmp/far.db"
has "$tmp/err" '39 new runs' 'merge: takes all runs'
is "$(sqlite3 "$a" "SELECT count(DISTINCT uid) FROM v_runs
	WHERE uuid LIKE 'far-%'")" 2 'merge: devices keep their identity'
is "$(sqlite3 "$a" "SELECT machine FROM v_runs WHERE uuid = 'far-tok1'")" \
	host-far 'merge: and hosts theirs'
exits 2 'then comparing the machines is refused' "$r" compare --db "$a" 3 9
has "$tmp/err" 'uid is card-one' 'because of the card'
exits 0 'merge both ways' "$r" merge --db "$tmp/far.db" "$a"
"$r" export --db "$a" -o "$tmp/one"
"$r" export --db "$tmp/far.db" -o "$tmp/two"
ok 'both hold the same' cmp "$tmp/one" "$tmp/two"

# A copy made while a run was going on gives way to the finished one.
exits 0 'an unfinished run' "$r" merge --db "$b" "$a"
sqlite3 "$a" "UPDATE runs SET state = 'complete', end_ns = start_ns + 9,
	exit_code = 0, owner = '' WHERE id = 1"
exits 0 'its finished copy' "$r" merge --db "$b" "$a"
has "$tmp/err" '1 new runs' 'is taken'
is "$(sqlite3 "$b" "SELECT state FROM runs WHERE uuid = 'run-import'")" \
	complete 'and replaces it'
exits 0 'the unfinished one again' "$r" merge --db "$b" "$tmp/far.db"
is "$(sqlite3 "$b" "SELECT state FROM runs WHERE uuid = 'run-import'")" \
	complete 'does not undo that'

# Malformed files: refused with the line, and nothing of them stays.
before=$(sqlite3 "$b" 'SELECT count(*) FROM runs')
bad() {
	exits 2 "refused: $1" "$r" import --db "$b" "$tmp/bad"
	has "$tmp/err" "$2" "$1: says \"$2\""
}
head -n 40 "$tmp/fixture" | sed 's/run-/new-/' >"$tmp/some"
: >"$tmp/bad" && bad 'an empty file' 'empty file'
echo 'hello' >"$tmp/bad" && bad 'no JSON' 'line 1: column'
echo '[1]' >"$tmp/bad" && bad 'no object' 'not a line of an export'
sed 1d "$tmp/some" >"$tmp/bad" && bad 'no head' 'wanted "t0" on the first'
sed 's/"export":1/"export":9/' "$tmp/some" >"$tmp/bad"
bad 'a newer format' 'use the newer build'
sed 's/"schema":1/"schema":99/' "$tmp/some" >"$tmp/bad"
bad 'a newer schema' 'schema 99'
sed '2d;/"run"/d' "$tmp/some" >"$tmp/bad" && bad 'no run' 'before any run'
sed '9s/"metric":"[a-z]*"/"metric":3/' "$tmp/some" >"$tmp/bad"
bad 'a number for a text' 'line 9: "metric": wanted a string'
sed '9s/"unit":"[a-z]*",//' "$tmp/some" >"$tmp/bad"
bad 'a missing key' '"unit": wanted this key'
sed '9s/"value":[0-9.]*/"value":"many"/' "$tmp/some" >"$tmp/bad"
bad 'a text for a number' '"value": wanted a number'
sed '9s/"samples":\[/"samples":["x",/' "$tmp/some" >"$tmp/bad"
bad 'a text among the samples' '"samples": wanted numbers'
sed '9s/"better":"[a-z]*"/"better":"red"/' "$tmp/some" >"$tmp/bad"
bad 'a value that the schema forbids' 'better is known'
sed '9s/{"result"/{"future"/' "$tmp/some" >"$tmp/bad"
bad 'an unknown kind' 'unknown kind of row "future"'
head -c 3000 "$tmp/some" >"$tmp/bad" && bad 'a cut file' 'cut short'
exits 2 'refused: no such file' "$r" import --db "$b" "$tmp/absent"
exits 2 'refused: a line without end' "$r" import --db "$b" /dev/zero
has "$tmp/err" 't0-results: /dev/zero: line 1: too long' 'says so'
exits 2 'refused: merging no database' "$r" merge --db "$b" "$tmp/some"
is "$(sqlite3 "$b" 'SELECT count(*) FROM runs')" "$before" \
	'no half of a refused file stays'
exits 2 'a full disk' "$r" export --db "$b" -o /dev/full
plan_done
