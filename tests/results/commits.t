#!/bin/sh
# t0-results bench-commits and bisect on a small repository whose program
# "measures" a number that is written in it.
. tests/tap.sh
unset T0_DB
. tests/data/results/repository.sh
mkdir "$tmp/scratch"
export TMPDIR="$tmp/scratch"

# ---- bench-commits ----
bc="$r bench-commits -q"
exits 0 'equal speed' $bc -p 8 "$good..$same" -- build/rel/fake
has "$tmp/out" '~' 'nothing is proven'
has "$tmp/out" 'a comment' 'the subject is told'
is "$("$r" list --csv | wc -l)" 17 'all 16 runs are stored'
is "$(ls "$XDG_CACHE_HOME"/t0/trees/*/ | wc -l)" 1 'but no tree is left'
exits 1 'a loss of 10 %' $bc -p 8 --keep "$good..$copy" -- fake
line() { # COMMIT
	grep "^$(git rev-parse --short=12 "$1")" "$tmp/out"
}
ok 'the slow one is worse' sh -c "echo '$(line "$slow")' | grep -q worse"
ok 'the one behind it is not' sh -c "echo '$(line "$bad")' | grep -q '~'"
ok 'one does not build' sh -c "echo '$(line "$broken")' | grep -q 'not build'"
ok 'one is the same code' sh -c "echo '$(line "$copy")' | grep -q 'same code'"
is "$(awk '{ print $NF }' "$tmp/out" | grep -c worse)" 0 'the subject is last'
tree=$(git worktree list --porcelain | sed -n 's/^worktree //p' | sed -n 2p)
ok 'trees are kept' test -d "$tree"
exits 0 'a loss below the least' $bc -p 8 --least 0.2 "$bad~1..$bad" -- fake
rm -f "$tmp"/t0.db* "$tmp"/count*
exits 1 'the whole again' $bc -p 8 "$good..$bad" -- fake
cp "$tmp/out" "$tmp/whole"
is "$(ls -A "$TMPDIR")" '' 'nothing is left where temporary files are'
rm -f "$tmp"/t0.db* "$tmp"/count*
for n in 1 14 29; do
	echo $n >"$tmp/count.kill"
	$bc -p 8 "$good..$bad" -- fake 2>"$tmp/err"
	is $? 137 "killed at process $n"
done
sleep 1
rm -rf "$tmp/count.kill" "$TMPDIR"/*
exits 1 'it goes on' $bc -p 8 "$good..$bad" -- fake
ok 'with nothing lost or twice' test "$("$r" list --csv | wc -l)" -eq 49
# Values differ by the noise of the killed processes, verdicts do not.
verdicts() {
	awk '{ print $1, / worse /, / ~ /, /does not build/, /same code/ }' "$1"
}
is "$(verdicts "$tmp/out")" "$(verdicts "$tmp/whole")" 'to the same verdicts'
exits 2 'the same code' $bc "$bad..$copy" -- fake
has "$tmp/err" 'nothing to compare' 'is told'
exits 2 'an empty range' $bc "$bad..$bad" -- fake
exits 2 'no range' $bc "$bad" -- fake
exits 2 'no such commit' $bc "$good..fffffff" -- fake
exits 2 'a program that is not of the tree' $bc "$good..$same" -- true
has "$tmp/err" 'build/rel/t0-probe' 'is told how to name one'
exits 2 'a command that fails' $bc "$good..$same" -- fake fail
has "$tmp/err" 'ended with 3' 'is quoted'
exits 2 'outside of a repository' sh -c "cd '$tmp' && $bc a..b -- fake"
has "$tmp/err" 'git repository' 'is told'
is "$(git worktree list | wc -l)" 1 'no work tree is left'
is "$(ls -A "$TMPDIR")" '' 'and nothing temporary'

# ---- bisect, by the case that was measured ----
rm -f "$tmp"/count*
exits 0 'bisect' "$r" bisect -p 8 "$good" "$bad" -- a/speed
has "$tmp/out" "$slow is the first bad commit" 'finds the commit'
has "$tmp/out" 'slower' 'and shows it'
has "$tmp/err" 'measuring with' 'as it was measured'
n=$(wc -l <"$tmp/count")
exits 0 'bisect again' "$r" bisect -q -p 8 "$good" "$bad" -- a/speed
is "$(wc -l <"$tmp/count")" "$n" 'measures nothing twice'
exits 1 'nothing to find' "$r" bisect -q -p 8 "$good" "$same" -- fake
exits 2 'an unknown case' "$r" bisect -q "$good" "$bad" -- a/nothing

# ---- among 16 commits, killed again and again ----
git checkout -q -b long "$copy"
first=$(git rev-parse HEAD)
planted=
for i in $(seq 16); do
	[ "$i" -lt 11 ] && v=90 || v=85
	new=$(commit $v "number $i")
	[ "$i" -ne 11 ] || planted=$new
done
rm -f "$tmp"/count* "$tmp"/t0.db*
tries=0
echo 5 >"$tmp/count.kill"
until "$r" bisect -q -p 8 --only a/speed "$first" HEAD -- fake >"$tmp/out" \
	2>"$tmp/err" || [ $((tries += 1)) -gt 40 ]; do
	echo $(($(wc -l <"$tmp/count") + 7)) >"$tmp/count.kill"
	[ $tries -lt 6 ] || rm -f "$tmp/count.kill"
done
ok 'it was killed' test $tries -ge 5
has "$tmp/out" "$planted is the first bad commit" 'and finds the planted one'

# ---- a step of git bisect run ----
git checkout -q "$planted"
exits 1 'bisect: a worse commit is checked out' "$r" bisect -q -p 8 "$first" \
	-- fake
git checkout -q "$planted~1"
exits 0 'bisect: one as good' "$r" bisect -q -p 8 "$first" -- fake
git checkout -q "$broken"
exits 125 'bisect: one that does not build' "$r" bisect -q -p 8 "$good" -- fake
git bisect start "$bad" "$good" >/dev/null 2>&1
git bisect run "$r" bisect -q -p 8 --keep "$good" -- fake >"$tmp/out" 2>&1
has "$tmp/out" "$slow is the first bad commit" 'git bisect run finds it, too'
git bisect reset >/dev/null 2>&1
is "$(git status --porcelain | wc -l)" 0 'nothing is left in the repository'
plan_done
