#!/bin/sh
# scripts/compare-commits and scripts/bisect-regression on a small repository
# whose program "measures" a number that is written in it.
. tests/tap.sh
unset T0_DB
command -v git >/dev/null || skip_all 'git is not installed'
T0_RESULTS=$(realpath "$T0_BUILD/t0-results")
scripts=$PWD/scripts
export T0_RESULTS GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@t GIT_COMMITTER_NAME=t \
	GIT_COMMITTER_EMAIL=t@t
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
# Value with a little noise, as an export that is imported into $T0_DB.
uuid=$(od -An -N8 -tx1 /dev/urandom | tr -d ' \n')
# The same noise on both sides, so that the test is certain of its outcome.
echo >>"$T0_DB.count"
jitter=$(($(wc -l <"$T0_DB.count") * 37 % 256))
[ "${1-}" != fail ] || exit 3
awk -v u="$uuid" -v j="$jitter" -v v=@VALUE@ 'BEGIN {
	x = v * (1 + j / 50000)
	print "{\"t0\":{\"export\":1,\"schema\":1}}"
	printf "{\"run\":{\"uuid\":\"%s\",\"tool\":\"fake\",\"argv\":" \
		"\"build/rel/fake --why \\\"a b\\\"\",\"inputs\":\"{}\"," \
		"\"conditions\":\"{}\",\"seed\":1,\"start_ns\":%d000000000," \
		"\"end_ns\":%d000000000,\"state\":\"complete\"," \
		"\"exit_code\":0,\"reason\":\"\",\"owner\":\"\",\"host\":{" \
		"\"machine\":\"h\",\"cpu\":\"c\",\"kernel\":\"k\",\"cores\":1," \
		"\"mem_bytes\":1},\"device\":{\"name\":null},\"build\":{" \
		"\"version\":\"1\",\"git_commit\":\"@COMMIT@\",\"dirty\":0," \
		"\"compiler\":\"cc\",\"flags\":\"\",\"binary\":\"@COMMIT@\"}}}\n",
		u, 1700000000, 1700000001
	printf "{\"result\":{\"case\":{\"area\":\"a\",\"name\":\"speed\"," \
		"\"params\":\"{}\"},\"metric\":\"rate\",\"unit\":\"B/s\"," \
		"\"value\":%.6f,\"lo\":null,\"hi\":null,\"n\":1," \
		"\"clock_hz\":null,\"better\":\"higher\",\"origin\":" \
		"\"hardware\",\"source\":\"\",\"samples\":[%.6f]}}\n", x, x
}' | "$T0_RESULTS" import --quiet -
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
cc=$scripts/compare-commits
export T0_DB="$tmp/t0.db"

exits 0 'equal speed is no regression' "$cc" "$good" "$same" -- build/rel/fake
has "$tmp/out" '~' 'and nothing is proven'
has "$tmp/out" 'n: 6+6 processes' 'six processes per side are the samples'
is "$("$T0_RESULTS" list --csv | wc -l)" 13 'all twelve runs are stored'
exits 1 'a loss of 10 % is a no' "$cc" -n 8 "$good" "$bad" -- build/rel/fake
has "$tmp/out" 'worse' 'and is called worse'
has "$tmp/out" 'n: 8+8 processes' 'with eight each'
exits 0 'a loss below the least' "$cc" --least 0.2 "$good" "$bad" -- \
	build/rel/fake
exits 0 'a gain is none' "$cc" "$bad" "$good" -- build/rel/fake
exits 2 'the same code is refused' "$cc" "$bad" "$copy" -- build/rel/fake
has "$tmp/err" 'nothing to compare' 'and told'
exits 4 'a commit that does not build' "$cc" "$good" "$broken" -- \
	build/rel/fake
exits 3 'or the other' "$cc" "$broken" "$good" -- build/rel/fake
exits 2 'too few processes' "$cc" -n 4 "$good" "$bad" -- build/rel/fake
exits 2 'one commit twice' "$cc" "$good" "$good" -- build/rel/fake
exits 2 'no such commit' "$cc" "$good" fffffff -- build/rel/fake
exits 2 'no command' "$cc" "$good" "$bad"
exits 2 'a program that is not of the tree' "$cc" "$good" "$bad" -- true
exits 2 'a command that fails' "$cc" "$good" "$bad" -- build/rel/fake fail
has "$tmp/err" 'ended with 3' 'is named with its status'
is "$(git worktree list | wc -l)" 1 'no work tree is left'

exits 0 'bisect, with the command of the newest run' \
	"$scripts/bisect-regression" a/speed "$good" "$bad"
has "$tmp/out" "$slow is the first bad commit" 'finds the commit'
has "$tmp/out" 'slower' 'and shows it'
has "$tmp/err" 'measuring with: build/rel/fake --why a b' 'as it was measured'
exits 1 'nothing to find' "$scripts/bisect-regression" speed "$good" "$same" \
	-- build/rel/fake
exits 2 'an unknown case' "$scripts/bisect-regression" a/nothing "$good" "$bad"
is "$(git worktree list | wc -l)" 1 'no work tree is left by bisect'
is "$(git status --porcelain | wc -l)" 0 'and nothing in the repository'
plan_done
