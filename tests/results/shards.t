#!/bin/sh
# Work in shards: of 1, 3 and 7, in any order, twice and killed, merged into the
# rows of one shard that did it all.
. tests/tap.sh
unset T0_DB T0_SHARD
t=$T0_BUILD/t0-tune r=$T0_BUILD/t0-results p=$T0_BUILD/t0-probe

# All rows by their content, without times, machine, run ids and command lines.
rows() { # DB
	sqlite3 -readonly "$1" "
	CREATE TEMP VIEW i AS SELECT id, tool || ' ' || inputs || ' ' || state
		|| ' ' || exit_code || ' ' || seed AS name FROM runs;
	SELECT 'run', i.name, r.device IS NULL, r.build FROM i JOIN runs r
		USING(id) ORDER BY 1, 2;
	SELECT 'result', i.name, c.area, c.name, c.params, x.metric, x.unit,
		x.value, x.lo, x.hi, x.n, x.clock_hz, x.better, x.origin,
		x.source, (SELECT group_concat(s.value) FROM samples s
		WHERE s.result = x.id) FROM results x JOIN i ON i.id = x.run
		JOIN cases c ON c.id = x.case_id ORDER BY 2, 3, 4, 5, 6;
	SELECT 'verdict', i.name, kind, verdict, reason, detail, c.name,
		c.params, x.metric FROM verdicts v JOIN i ON i.id = v.run
		LEFT JOIN results x ON x.id = v.result LEFT JOIN cases c
		ON c.id = coalesce(v.case_id, x.case_id)
		ORDER BY 2, 3, 4, 5, 6, 7, 8, 9;
	SELECT 'slot', i.name, s.encoding, s.opcode, s.form, s.mnemonic,
		s.verdict, s.signature, s.reason, s.expected, s.oracle,
		s.emulated_ok, s.difference, s.errata FROM slot_verdicts s
		JOIN i ON i.id = s.run ORDER BY 2, 3, 4, 5;
	SELECT 'check', i.name, target, op, config, object, class, verdict,
		worst, compared, c.seed, detail FROM tune_checks c
		LEFT JOIN i ON i.id = c.run
		ORDER BY 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;
	SELECT 'tune', i.name, target, op, m, n, k, batch, caches, config,
		origin, operands, costs, code, state, t.reason, bound_s,
		time_s, samples, clock_hz, limits, object, winner, class,
		budget, candidates, second FROM v_tunes t LEFT JOIN i
		ON i.id = t.run
		ORDER BY 3, 4, 5, 6, 7, 8, 9, 10, 11, 12;"
}

products='--shapes 64x64x64,64x48x96,32x80x64,64x64x128 --budget quick -j1
	-q --device soft'
tune() { # I/N DB
	# shellcheck disable=SC2086 # words
	$t $products --shard "$1" --db "$2"
}
probe() { # I/N DB: two commands that deal their parts, one that has none
	$p latency --device sim --inst v_max -q --shard "$1" --db "$2" &&
		$p discover --device soft --oracle none --encoding SOPP -q \
			--shard "$1" --db "$2" &&
		$p branch --device sim --quick --samples 1 -q --shard "$1" \
			--db "$2"
}

# ---- the command line ----
for bad in 0/3 4/3 3 1/3x 1/99999 1/2: ; do
	exits 2 "--shard $bad" tune "$bad" "$tmp/bad.db"
done
has "$tmp/err" 'wanted I/N' 'is told what it wants'
exits 2 'the same of T0_SHARD' env T0_SHARD=9/3 "$p" waves --device sim

# ---- one, three, seven ----
for n in 1 3 7; do
	i=0
	while [ $((i += 1)) -le $n ]; do
		{
			tune $i/$n "$tmp/$n.$i.db" &&
				{ [ $n = 7 ] && [ -z "${T0_SLOW-}" ] ||
					probe $i/$n "$tmp/$n.$i.db"; }
		} >"$tmp/out" 2>"$tmp/err" ||
			diag "shard $i/$n: $(cat "$tmp/err")"
	done
done
"$r" merge -q --db "$tmp/one.db" "$tmp/1.1.db"
rows "$tmp/one.db" >"$tmp/one"
is "$(sqlite3 "$tmp/one.db" 'SELECT count(*) FROM tune_winners')" 4 \
	'one shard of one has found four products'
# Three of the tools and what was published.
is "$(grep -c '^run' "$tmp/one")" 5 'and is five runs'
is "$(grep -c shard "$tmp/one")" 0 'which name no shard'
total=0
for i in 1 2 3; do
	total=$((total + $(sqlite3 "$tmp/3.$i.db" \
		'SELECT count(*) FROM tune_winners')))
done
is $total 4 'three shards find each product once'
"$r" merge -q --db "$tmp/three.db" "$tmp/3.3.db" "$tmp/3.1.db"
is "$(sqlite3 "$tmp/three.db" "SELECT count(*) FROM runs WHERE tool =
	't0-tune' AND json_extract(inputs, '\$.shard') IS NOT NULL")" 2 \
	'two of three stay shards'
"$r" merge -q --db "$tmp/three.db" "$tmp/3.2.db"
rows "$tmp/three.db" >"$tmp/three"
ok 'three shards, out of order, are the rows of one' \
	cmp "$tmp/one" "$tmp/three"
"$r" merge -q --db "$tmp/seven.db" "$tmp/7.5.db" "$tmp/7.2.db" "$tmp/7.7.db" \
	"$tmp/7.1.db" "$tmp/7.6.db" "$tmp/7.3.db" "$tmp/7.4.db"
rows "$tmp/seven.db" >"$tmp/seven"
tuned() { # FILE: without what was probed, if not all was
	[ -n "${T0_SLOW-}" ] && cp "$1" "$1.tuned" ||
		grep -v '|t0-probe' "$1" >"$1.tuned"
}
tuned "$tmp/one"
tuned "$tmp/seven"
ok 'so are seven' cmp "$tmp/one.tuned" "$tmp/seven.tuned"

# ---- again, and killed ----
"$r" merge -q --db "$tmp/three.db" "$tmp/3.2.db" "$tmp/3.1.db" "$tmp/three.db"
rows "$tmp/three.db" >"$tmp/again"
ok 'merged again nothing changes' cmp "$tmp/one" "$tmp/again"
# The shard that has most to do is killed in the middle, in each of its tools.
most=$(for i in 1 2 3; do
	echo "$(sqlite3 "$tmp/3.$i.db" "SELECT count(*) FROM tunes") $i"
done | sort -rn | sed -n '1s/.* //p')
want=$(sqlite3 "$tmp/3.$most.db" "SELECT count(*) FROM results x JOIN runs r
	ON r.id = x.run WHERE r.tool = 't0-tune'")
# Not the function: what dies must be the tool, not a shell around it.
# shellcheck disable=SC2086 # words
$t $products --shard "$most/3" --db "$tmp/killed.db" >/dev/null 2>&1 &
pid=$!
while kill -0 $pid 2>/dev/null && [ "$(sqlite3 "$tmp/killed.db" \
	"SELECT count(*) FROM results x JOIN runs r ON r.id = x.run WHERE
	r.tool = 't0-tune'" 2>/dev/null || echo 0)" -lt 3 ]; do
	:
done
kill -9 $pid
wait $pid 2>/dev/null
got=$(sqlite3 "$tmp/killed.db" "SELECT count(*) FROM results x JOIN runs r
	ON r.id = x.run WHERE r.tool = 't0-tune'")
ok "a shard was killed with $got of $want results" test "$got" -lt "$want"
cp "$tmp/killed.db" "$tmp/half.db"
tune "$most/3" "$tmp/killed.db" >/dev/null 2>&1
probe "$most/3" "$tmp/killed.db" >/dev/null 2>&1
set --
for i in 3 2 1; do
	[ $i = "$most" ] || set -- "$@" "$tmp/3.$i.db"
done
"$r" merge -q --db "$tmp/half-way.db" "$tmp/half.db" "$@"
is "$(sqlite3 "$tmp/half-way.db" "SELECT count(*) FROM runs WHERE
	tool = 't0-tune' AND inputs = '{}'")" 0 'the killed one completes nothing'
"$r" merge -q --db "$tmp/half-way.db" "$tmp/killed.db"
rows "$tmp/half-way.db" >"$tmp/killed"
ok 'killed and done again, they are the rows of one' \
	cmp "$tmp/one" "$tmp/killed"
"$r" merge -q --db "$tmp/double.db" "$tmp/half.db" "$tmp/killed.db" "$@" \
	"$tmp/3.$most.db"
rows "$tmp/double.db" >"$tmp/double"
ok 'three times, in three databases, too' cmp "$tmp/one" "$tmp/double"
is "$(sqlite3 "$tmp/double.db" 'PRAGMA foreign_key_check' 'PRAGMA integrity_check')" \
	ok 'the database is whole'
sqlite3 "$tmp/double.db" "UPDATE tune_checks SET worst = worst + 1"
rows "$tmp/double.db" >"$tmp/double"
ok 'and this test would see another value' sh -c "! cmp -s '$tmp/one' '$tmp/double'"

# ---- other works stay others ----
tune 1/2:a "$tmp/label.db" >/dev/null 2>&1
tune 2/2:b "$tmp/label.db" >/dev/null 2>&1
"$r" merge -q --db "$tmp/labels.db" "$tmp/label.db"
is "$(sqlite3 "$tmp/labels.db" "SELECT count(*) FROM runs WHERE
	tool = 't0-tune' AND inputs = '{}'")" 0 'labels tell works apart'

# ---- bench-commits: by case ----
. tests/data/results/repository.sh
for i in 1 2; do
	exits 0 "commits, shard $i of 2" "$r" bench-commits -q -p 3 \
		--shard $i/2 --db "$tmp/c$i.db" "$good..$same" -- build/rel/fake
	is "$(sqlite3 "$tmp/c$i.db" 'SELECT count(*) FROM runs')" 6 \
		'runs every commit'
	grep -c a/speed "$tmp/out" >>"$tmp/told"
done
is "$(sort "$tmp/told" | tr '\n' ' ')" '0 2 ' 'and one of them judges the case'
plan_done
