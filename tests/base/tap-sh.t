#!/bin/sh
# tests/tap.sh itself: scripts that use it, and their exact output.  This
# script prints its own TAP, so that a fault in tap.sh cannot hide itself.
dir=$(mktemp -d) || exit 2
trap 'rm -rf "$dir"' EXIT
n=0
bad=0

# check NAME STATUS WANTED-OUTPUT SCRIPT
check() {
	n=$((n + 1))
	got=$(sh -c ". tests/tap.sh; $4" 2>"$dir/err")
	status=$?
	if [ "$got" = "$3" ] && [ $status -eq "$2" ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		bad=1
		printf '# exit %s, got:\n%s\n' "$status" "$got" >&2
	fi
}

echo 'TAP version 13'
check 'passing checks exit 0' 0 'TAP version 13
ok 1 - true runs
ok 2 - equal
ok 3 - exits with 3
ok 4 - output is kept
ok 5 - hash \# is escaped
1..5' 'ok "true runs" true; is a a equal
exits 3 "exits with 3" sh -c "echo out; exit 3"
has "$tmp/out" out "output is kept"; ok "hash # is escaped" true; plan_done'
check 'failing checks exit 1' 1 'TAP version 13
not ok 1 - false runs
not ok 2 - equal
not ok 3 - exits with 0
not ok 4 - has it
1..4' 'ok "false runs" false; is a b equal
exits 0 "exits with 0" false; has "$tmp/out" text "has it"; plan_done'
check 'one check can be skipped' 0 'TAP version 13
ok 1 # SKIP no device
1..1' 'skip "no device"; plan_done'
check 'and several' 0 'TAP version 13
ok 1 # SKIP no root
ok 2 # SKIP no root
1..2' 'skip "no root" 2; plan_done'
check 'all can be skipped' 0 'TAP version 13
1..0 # SKIP no GPU' 'skip_all "no GPU"'
check 'no checks at all is a failure' 1 'TAP version 13
1..0' 'plan_done'

check 'a failure tells got and wanted' 1 'TAP version 13
not ok 1 - equal
1..1' 'is a b equal; plan_done'
n=$((n + 1))
if grep -q 'got:    a' "$dir/err" && grep -q 'wanted: b' "$dir/err"; then
	echo "ok $n - on stderr"
else
	echo "not ok $n - on stderr"
	bad=1
fi

n=$((n + 1))
folder=$(sh -c '. tests/tap.sh >/dev/null; echo "$tmp"')
if [ -n "$folder" ] && ! [ -e "$folder" ]; then
	echo "ok $n - the folder goes away"
else
	echo "not ok $n - the folder goes away"
	bad=1
fi
echo "1..$n"
exit $bad
