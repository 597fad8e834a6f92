#!/bin/sh
# t0-results experiment: changes are tried against one base by one evaluator,
# kept, discarded or crashed, and none is tried twice.
. tests/tap.sh
unset T0_DB
. tests/data/results/repository.sh

git checkout -q -b try "$good"
change() { # FILE VALUE
	echo "$2" >value
	git diff >"$tmp/$1"
	git checkout -q value
}
change faster.patch 110
change slower.patch 80
change broken.patch none
change little.patch 100.01
echo '# asked in another way' >>fake.sh
echo 120 >value
git diff >"$tmp/cheat.patch"
git checkout -q .
sed 's/-100/-555/' "$tmp/faster.patch" >"$tmp/stale.patch"
cat >"$tmp/list" <<LIST
# what is tried
patch $tmp/faster.patch : a larger number
patch $tmp/slower.patch : a smaller one
patch $tmp/broken.patch
patch $tmp/stale.patch : of another base
patch $tmp/little.patch : hardly anything
commit $slow : ten percent less
commit $same : a comment
env BOOST=5 : from outside
env BOOST=20 CHECK=fail : faster, and wrong
env BOOST=20 CHECK= : faster, and who knows
args boost 7 : by its words
args fail : it fails
LIST
e="$r experiment -q -p 10"
verdict() { # CHANGE
	grep -F -e "$1" "$tmp/out" | cut -d, -f1
}
exits 0 'a list is worked off' $e --csv "$tmp/list" -- fake
tr -d '\r' <"$tmp/out" >"$tmp/first"
for x in keep:faster.patch discard:slower.patch crash:broken.patch \
	crash:stale.patch discard:little.patch "discard:commit $slow" \
	"discard:commit $same" keep:BOOST=5 discard:CHECK=fail \
	'discard:CHECK=,' 'keep:args boost' 'crash:args fail'; do
	is "$(verdict "${x#*:}")" "${x%%:*}" "${x#*:} is ${x%%:*}"
done
has "$tmp/out" 'does not build' 'why: the build'
has "$tmp/out" 'does not apply' 'why: the patch'
has "$tmp/out" 'failed a check' 'why: wrong'
has "$tmp/out" '--check' 'why: unchecked'
has "$tmp/out" 'ended with 3' 'why: the process'
sed -n 2p "$tmp/first" >"$tmp/best" # its path may have a comma
has "$tmp/best" "patch $tmp/faster.patch" 'the best is first'
is "$(sed -n 3p "$tmp/first" | cut -d, -f5)" 'args boost 7' 'the next behind it'
is "$(sed -n 2p "$tmp/first" | awk -F, '{ print $3 <= 0.1 && 0.1 <= $4 &&
	$4 - $3 < 0.05 }')" 1 'the interval covers what was planted'
has "$tmp/best" 'a larger number' 'with its hypothesis'

# ---- what is known ----
n=$(wc -l <"$COUNT")
exits 0 'the same again' $e --csv "$tmp/list" -- fake
is "$(wc -l <"$COUNT")" "$n" 'nothing is measured again'
is "$(tr -d '\r' <"$tmp/out" | sed 's/,yes$/,""/')" "$(cat "$tmp/first")" \
	'and the table is the same'
exits 0 'all that was tried' "$r" experiment --csv
is "$(wc -l <"$tmp/out")" 13 'failures, too'
has "$tmp/out" 'a larger number' 'with hypotheses'
exits 0 'export' "$r" export -o "$tmp/all"
exits 0 'import' "$r" import -q --db "$tmp/new.db" "$tmp/all"
exits 0 'export again' "$r" export --db "$tmp/new.db" -o "$tmp/again"
ok 'experiments are in it' cmp "$tmp/all" "$tmp/again"

# ---- a name that moves ----
git branch moving "$slow"
echo 'commit moving' >"$tmp/one"
exits 0 'a branch' $e --csv "$tmp/one" -- fake
has "$tmp/out" ',worse,' 'is judged by its commit'
git branch -f moving "$same" >/dev/null 2>&1
exits 0 'the branch, elsewhere' $e --csv "$tmp/one" -- fake
has "$tmp/out" 'nothing is proven' 'is another change'
echo 'commit nothing' >"$tmp/one"
exits 2 'a commit that is not there' $e "$tmp/one" -- fake
has "$tmp/err" 'nothing: no commit of' 'is named'

# ---- the evaluator ----
echo "patch $tmp/cheat.patch : ask something else" >"$tmp/one"
exits 0 'a change of the evaluator' $e --csv --evaluator fake.sh "$tmp/one" -- \
	fake
has "$tmp/out" 'it changes the evaluator: fake.sh' 'is discarded'
echo 'env BOOST=5 : from outside' >"$tmp/one"
echo one >"$tmp/prompt"
exits 0 'with a file' $e --evaluator "$tmp/prompt" "$tmp/one" -- fake
n=$(wc -l <"$COUNT")
exits 0 'with the same' $e --evaluator "$tmp/prompt" "$tmp/one" -- fake
is "$(wc -l <"$COUNT")" "$n" 'is the same series'
echo two >"$tmp/prompt"
exits 0 'with other bytes' $e --evaluator "$tmp/prompt" "$tmp/one" -- fake
is "$(wc -l <"$COUNT")" $((n + 20)) 'is another one'
exits 2 'a file that is not there' $e --evaluator "$tmp/none" "$tmp/one" -- fake
echo 'env BOOST=20 CHECK= : who knows' >"$tmp/one"
exits 0 'a check' $e --csv --check 'test "$BOOST" = 20' "$tmp/one" -- fake
is "$(verdict CHECK=)" keep 'makes it known to be right'
exits 0 'a check that fails' $e --csv --check 'echo no; false' "$tmp/one" -- fake
has "$tmp/out" 'it said: no' 'is quoted'

cat >"$tmp/check" <<CHECK
#!/bin/sh
[ ! -e "$tmp/checked" ] || exit 0
echo \$\$ >"$tmp/checked"
exec sleep 100
CHECK
chmod +x "$tmp/check"
echo 'env BOOST=30' >"$tmp/one"
$e --check "'$tmp/check'" "$tmp/one" -- fake >"$tmp/out" 2>"$tmp/err" &
pid=$!
until [ -s "$tmp/checked" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
kill -TERM $pid
wait $pid
is $? 143 'SIGTERM does not wait for a check'
exits 0 'which is no verdict' $e --csv --check "'$tmp/check'" "$tmp/one" -- fake
is "$(verdict BOOST=30)" keep 'so that it is tried again'

# ---- killed, and out of time ----
printf 'env BOOST=%s\n' 1 2 3 4 >"$tmp/one"
for i in 5 30; do
	echo $(($(wc -l <"$COUNT") + i)) >"$COUNT.kill"
	$e "$tmp/one" -- fake >"$tmp/out" 2>"$tmp/err"
	is $? 137 "killed after $i processes"
done
sleep 1
rm "$COUNT.kill"
n=$("$r" sql --csv "SELECT count(*) FROM v_runs" | sed -n 2p | tr -d '\r')
exits 0 'it goes on' $e --csv "$tmp/one" -- fake
is "$("$r" sql --csv "SELECT count(*) FROM v_runs WHERE series IN (SELECT series
	FROM v_runs WHERE run > $n)" | sed -n 2p | tr -d '\r' |
	awk '{ print $1 % 20 }')" 0 'each series has its 20 processes'
is "$(grep -c '^keep' "$tmp/out")" 4 'to the end'
printf 'env BOOST=%s\n' 6 7 >"$tmp/one"
exits 0 'a budget' $e --csv --budget 0.001 "$tmp/one" -- fake
is "$(grep -c '^not tried' "$tmp/out")" 2 'that is spent'
exits 2 'no budget at all' $e --budget 0 "$tmp/one" -- fake
exits 2 'an empty list' $e "$COUNT" -- fake
exits 2 'a list that is none' $e "$tmp/repo/fake.sh" -- fake
has "$tmp/err" 'fake.sh:4: got' 'is told where'
exits 2 'a patch that is not there' sh -c "echo patch none | $e - -- fake"
exits 2 'a base that does not build' $e --base "$broken" "$tmp/one" -- fake
is "$(git worktree list | wc -l)" 1 'no tree is left'
plan_done
