# Sourced by tests of t0-results: a small git repository, where the test then is,
# whose program build/rel/fake "measures" a number that is written in it.
# Variables: $r, the tool; hashes of commits; $COUNT, a file with a line for each
# process that ran.  The number in $COUNT.kill says at which one the tool dies.
#
#	fake [fail | boost PERCENT]	$BOOST is as that
#	$CHECK: the verdict that it stores, pass; empty: none
command -v git >/dev/null || skip_all 'git is not installed'
r=$(realpath "$T0_BUILD/t0-results")
T0_RESULTS=$r
export T0_RESULTS GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t \
	GIT_COMMITTER_EMAIL=t@t XDG_CACHE_HOME="$tmp/cache"
mkdir "$tmp/repo" && cd "$tmp/repo" || exit 2
git init -q .
cat >GNUmakefile <<'MAKE'
all: build/rel/fake
build/rel/fake: fake.sh value
	@mkdir -p build/rel
	@grep -q '^[0-9]' value
	@sed "s/@VALUE@/$$(cat value)/;s/@COMMIT@/$$(git rev-parse \
		--short=12 HEAD)/" fake.sh >$@; chmod +x $@
MAKE
cat >fake.sh <<'FAKE'
#!/bin/sh
# Value with a little noise, as an export that is imported into $T0_DB.  The
# noise is the same on both sides, so that the test is certain of its outcome.
echo "$T0_SIDE" >>"$COUNT"
[ "${1-}" != fail ] || fails=yes
[ "${1-}" != boost ] || BOOST=$2
awk -v count="$COUNT" -v side="$T0_SIDE" -v v=@VALUE@ -v boost="${BOOST:-0}" \
	-v check="${CHECK-pass}" -v t="$(date +%s%N)" -v parent=$PPID \
	-v fails="${fails-}" 'BEGIN {
	while ((getline line <count) > 0) {
		all++
		n += line == side
	}
	getline stop <(count ".kill")
	if (all == stop) {
		system("kill -KILL " parent)
		exit 9
	}
	if (fails)
		exit 3
	getline u <"/proc/sys/kernel/random/uuid"
	x = v * (1 + n * 37 % 256 / 50000) * (1 + boost / 100)
	print "{\"t0\":{\"export\":1,\"schema\":1}}"
	printf "{\"run\":{\"uuid\":\"%s\",\"tool\":\"fake\",\"argv\":" \
		"\"build/rel/fake --why \\\"a b\\\"\",\"inputs\":\"{}\"," \
		"\"conditions\":\"{}\",\"seed\":1,\"start_ns\":%s," \
		"\"end_ns\":%s,\"state\":\"complete\"," \
		"\"exit_code\":0,\"reason\":\"\",\"owner\":\"\",\"host\":{" \
		"\"machine\":\"h\",\"cpu\":\"c\",\"kernel\":\"k\",\"cores\":1," \
		"\"mem_bytes\":1},\"device\":{\"name\":null},\"build\":{" \
		"\"version\":\"1\",\"git_commit\":\"@COMMIT@\",\"dirty\":0," \
		"\"compiler\":\"cc\",\"flags\":\"\",\"binary\":\"@COMMIT@\"}}}\n",
		u, t, t
	printf "{\"result\":{\"case\":{\"area\":\"a\",\"name\":\"speed\"," \
		"\"params\":\"{}\"},\"metric\":\"rate\",\"unit\":\"B/s\"," \
		"\"value\":%.6f,\"lo\":null,\"hi\":null,\"n\":1," \
		"\"clock_hz\":null,\"better\":\"higher\",\"origin\":" \
		"\"hardware\",\"source\":\"\",\"samples\":[%.6f]}}\n", x, x
	if (check != "")
		printf "{\"verdict\":{\"kind\":\"correctness\",\"verdict\":" \
			"\"%s\",\"reason\":\"r\",\"detail\":\"{}\",\"case\":{" \
			"\"area\":\"a\",\"name\":\"speed\",\"params\":\"{}\"}," \
			"\"of\":{\"area\":null,\"name\":null,\"params\":null," \
			"\"metric\":null}}}\n", check
}' >"$COUNT.$$" || exit
"$T0_RESULTS" import --quiet "$COUNT.$$"
why=$?
rm "$COUNT.$$"
exit $why
FAKE
commit() { # VALUE SUBJECT
	echo "$1" >value
	echo "# $2" >>fake.sh
	git add . && git commit -qm "$2"
	git rev-parse HEAD
}
good=$(commit 100 'a start')
same=$(commit 100 'a comment')
commit 100 'another' >/dev/null
broken=$(commit broken 'does not build')
commit 100 'builds again' >/dev/null
slow=$(commit 90 'slower')
bad=$(commit 90 'after it')
git commit -q --allow-empty -m 'nothing'
copy=$(git rev-parse HEAD)
export T0_DB="$tmp/t0.db" COUNT="$tmp/count"


