#!/bin/sh
# What the tuner decided: exported, merged by key, pruned; never for worse.
. tests/tap.sh
unset T0_DB
r=$T0_BUILD/t0-results
a=$tmp/a.db b=$tmp/b.db
awk -f tests/data/results/fixture.awk >"$tmp/fixture"
for db in "$a" "$b"; do
	"$r" import --quiet --db "$db" "$tmp/fixture"
done
sql() {
	sqlite3 "$1" "PRAGMA foreign_keys = ON; $2"
}

# tune DB RUN CONFIG STATE REASON TIME SAMPLES OBJECT
tune() {
	sql "$1" "INSERT INTO tunes(run, target, op, m, n, k, batch, caches,
		config, origin, operands, costs, code, state, reason, bound_s,
		time_s, lo_s, hi_s, samples, clock_hz, limits, object)
		VALUES($2, 'gfx1100', 'bf16 nn', 64, 32, 16, 1, 'warm', '$3',
		'simulated', '', 'c0', 'b0', '$4', '$5', 1e-7, $6, NULL, NULL,
		$7, 2.4e9, 'wmma', '$8')"
}
# check DB RUN CONFIG OBJECT VERDICT
check() {
	sql "$1" "INSERT INTO tune_checks(run, target, op, config, object,
		class, verdict, worst, compared, seed, detail) VALUES($2,
		'gfx1100', 'bf16 nn', '$3', '$4', 'even', '$5', 0.25, 2048, 7,
		'')"
}
# win DB CONFIG WHEN
win() {
	sql "$1" "INSERT INTO tune_winners SELECT id, 'other', 'even', 'quick',
		3, $3 FROM tunes WHERE config = '$2'"
}
state() {
	sql "$1" "SELECT group_concat(config || ':' || state || ':' || winner,
		' ') FROM (SELECT * FROM v_tunes ORDER BY config)"
}

# ---- there and back ----
tune "$a" 1 fast timed '' 1e-6 1 o1
tune "$a" 1 slow timed '' 3.3e-6 1 o2
tune "$a" 1 spills rejected '300 VGPRs of 256' NULL 0 ''
tune "$a" 1 wrong failed 'wrong: element 3' 5e-7 1 o3
tune "$a" NULL later ranked '' NULL 0 ''
check "$a" 1 fast o1 pass
check "$a" NULL slow o2 pass
check "$a" 1 wrong o3 fail
win "$a" fast 100
exits 0 'export' "$r" export --db "$a" -o "$tmp/one"
is "$(grep -c '^{"tune":' "$tmp/one")" 5 'every decision has a line'
is "$(grep -c '^{"check":' "$tmp/one")" 3 'and every check'
exits 0 'import' "$r" import --db "$tmp/new.db" "$tmp/one"
exits 0 'export it again' "$r" export --db "$tmp/new.db" -o "$tmp/two"
ok 'the same bytes' cmp "$tmp/one" "$tmp/two"
is "$(state "$tmp/new.db")" "$(state "$a")" 'the same states, the same winner'
exits 0 'import it once more' "$r" import --db "$tmp/new.db" "$tmp/one"
"$r" export --db "$tmp/new.db" -o "$tmp/two"
ok 'nothing has changed' cmp "$tmp/one" "$tmp/two"
is "$(sql "$tmp/new.db" 'PRAGMA foreign_key_check')" '' 'no reference dangles'

# ---- two that overlap ----
# b timed what a rejected and only ranked, never checked its own fastest, and
# has a slower winner.
tune "$b" 2 fast ranked '' NULL 0 ''
tune "$b" 2 slow timed '' 3.3e-6 1 o2
tune "$b" 2 spills timed '' 9e-6 1 o4
tune "$b" 2 wrong timed '' 5e-7 1 o3
tune "$b" 2 later timed '' 4e-6 1 o5
tune "$b" 2 own timed '' 2e-6 9 o6
check "$b" 2 slow o2 pass
check "$b" 2 own o6 pass
win "$b" slow 200
cp "$b" "$tmp/b0.db"
exits 0 'merge a into b' "$r" merge --db "$b" "$a"
want='fast:timed:1 later:timed:0 own:timed:0 slow:timed:0 spills:timed:0'
want="$want wrong:failed:0"
is "$(state "$b")" "$want" 'what is proven further stays, the faster wins'
is "$(sql "$b" "SELECT samples || ' ' || object FROM tunes WHERE
	config = 'own'")" '9 o6' 'what only b had is untouched'
is "$(sql "$b" "SELECT time_s FROM tunes WHERE config = 'fast'")" 1.0e-06 \
	'a row that was only ranked has its time now'
exits 0 'merge b into a' "$r" merge --db "$a" "$tmp/b0.db"
is "$(state "$a")" "$want" 'whichever way they merge'
"$r" merge --quiet --db "$a" "$b"
"$r" merge --quiet --db "$b" "$a"
"$r" export --db "$a" -o "$tmp/one"
"$r" export --db "$b" -o "$tmp/two"
ok 'both hold the same' cmp "$tmp/one" "$tmp/two"
is "$(sql "$a" "SELECT count(*) FROM tune_checks WHERE config = 'slow'")" 1 \
	'a check without its run is the same of a run'

# A measured row of more samples is not lost to one of fewer, nor a winner to
# code that failed here.
cp "$tmp/b0.db" "$tmp/few.db"
sql "$tmp/few.db" "UPDATE tunes SET samples = 3, time_s = 1e-9 WHERE
	config = 'own'"
exits 0 'fewer samples' "$r" merge --db "$b" "$tmp/few.db"
is "$(sql "$b" "SELECT samples FROM tunes WHERE config = 'own'")" 9 \
	'give way to more'
check "$b" 2 fast o1 fail
is "$(sql "$b" 'SELECT count(*) FROM tune_winners')" 0 'b finds the winner wrong'
exits 0 'merge the winner again' "$r" merge --db "$b" "$a"
is "$(sql "$b" 'SELECT count(*) FROM tune_winners')" 0 'it does not come back'
exits 0 'merge that proof' "$r" merge --db "$a" "$b"
is "$(sql "$a" 'SELECT count(*) FROM tune_winners')" 0 'and takes it from a'

# ---- prune ----
exits 0 'prune the run' "$r" prune --yes --db "$tmp/new.db" 1
is "$(state "$tmp/new.db")" "$(sql "$tmp/new.db" "SELECT
	'fast:timed:1 later:ranked:0 slow:timed:0 spills:rejected:0 ' ||
	'wrong:failed:0'")" 'its decisions stay'
is "$(sql "$tmp/new.db" 'SELECT count(*) FROM v_tune_checks')" 3 'and its checks'
exits 0 'export them' "$r" export --db "$tmp/new.db" -o "$tmp/two"
exits 0 'and import them' "$r" import --db "$tmp/orphan.db" "$tmp/two"
is "$(state "$tmp/orphan.db")" "$(state "$tmp/new.db")" 'without their run, too'
exits 0 'prune --tunes' "$r" prune --yes --tunes --db "$tmp/new.db" 2
is "$(sql "$tmp/new.db" 'SELECT count(*) FROM tunes')" 0 'then they go'
is "$(sql "$tmp/new.db" "SELECT group_concat(verdict) FROM tune_checks")" fail \
	'but not what was found wrong'

# ---- another version, other words ----
sed '/^{"tune"/d; /^{"check"/d; s/"schema":6/"schema":4/' "$tmp/one" >"$tmp/v4"
exits 0 'an export of an older schema' "$r" import --db "$tmp/v4.db" "$tmp/v4"
bad() {
	exits 2 "refused: $1" "$r" import --db "$tmp/v4.db" "$tmp/bad"
	has "$tmp/err" "$2" "$1: says \"$2\""
	is "$(sql "$tmp/v4.db" 'SELECT count(*) FROM tunes')" 0 "$1: all of it"
}
sed 's/"state":"timed"/"state":"quick"/' "$tmp/one" >"$tmp/bad"
bad 'an unknown state' 'tune state is known'
sed 's/"caches":"warm"/"caches":"hot"/' "$tmp/one" >"$tmp/bad"
bad 'an unknown state of caches' 'the state of caches is known'
sed 's/"winner":{[^}]*}/"winner":7/' "$tmp/one" >"$tmp/bad"
bad 'a winner that is none' '"winner": wanted an object'
sed 's/"batch":1/"batch":"x"/' "$tmp/one" >"$tmp/bad"
bad 'a text for a number' '"batch": wanted an integer'

# ---- killed ----
sql "$tmp/new.db" "DELETE FROM tune_checks; WITH RECURSIVE n(i) AS (SELECT 1
	UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
	INSERT INTO tunes(run, target, op, m, n, k, batch, caches, config,
		origin, operands, costs, code, state, reason, samples, limits,
		object) SELECT NULL, 'gfx1100', 'bf16 nn', 64, 32, 16, 1, 'cold',
		'c' || i, 'simulated', '', 'c0', 'b0', 'ranked', '', 0, '', ''
		FROM n"
"$r" import --quiet --db "$tmp/k.db" "$tmp/fixture"
killed=0
for i in 1 2 3 4 5 6 7 8; do
	"$r" merge --quiet --db "$tmp/k.db" "$tmp/new.db" 2>/dev/null &
	pid=$!
	sleep 0.0$i
	kill -9 $pid 2>/dev/null && killed=$((killed + 1))
	wait $pid 2>/dev/null
	n=$(sql "$tmp/k.db" 'SELECT count(*) FROM tunes')
	[ "$n" = 0 ] || [ "$n" = 20000 ] || break
done
diag "$killed merges were killed"
ok 'merges were killed' test "$killed" -gt 0
ok 'a killed merge leaves all or nothing' test "$n" = 0 -o "$n" = 20000
is "$(sql "$tmp/k.db" 'PRAGMA integrity_check')" ok 'the file is whole'
exits 0 'the next merge' "$r" merge --db "$tmp/k.db" "$tmp/new.db"
is "$(sql "$tmp/k.db" 'SELECT count(*) FROM tunes')" 20000 'has all of it'
plan_done
