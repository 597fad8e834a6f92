# Sourced by the tests here: programs of others under `t0-soft run`.
# shellcheck shell=sh
. tests/tap.sh

soft=$T0_BUILD/t0-soft
[ -e "$T0_BUILD/libt0-soft-preload.so" ] ||
	skip_all 'this build mode has no adapter (sanitizers cannot be preloaded)'
unset T0_SOFT_ROOT T0_DEVICE
if [ -w /dev/shm ]; then
	TMPDIR=$(mktemp -d -p /dev/shm) || exit 2
	trap 'rm -rf "$tmp" "$TMPDIR"' EXIT
else
	TMPDIR=$tmp
fi
export TMPDIR

run() {
	timeout -k 5 60 "$soft" run "$@"
}
# need PROGRAM: is it installed?
need() {
	command -v "$1" >/dev/null && return
	diag "SKIPPED: $1 is not installed; scripts/setup test would do it"
	skip "$1 is not installed"
	return 1
}
# fetched PART: did scripts/clients fetch it?  The folder is in $part.
fetched() {
	part=$T0_SRC/build/clients/$1
	[ -e "$part.stamp" ] ||
		skip_all "build/clients/$1 is not there: make test-clients fetches it"
}
# lines FILE: the checks that a program printed, as "good NAME" or "bad NAME".
lines() {
	while read -r result name; do
		is "$result" good "$name"
	done <"$1"
}
# checks FILE: the same of a program that prints TAP.
checks() {
	sed -n 's/^ok [0-9]* - /good /p; s/^not ok [0-9]* - /bad /p' "$1" \
		>"$tmp/lines"
	lines "$tmp/lines"
	has "$1" "1..$(wc -l <"$tmp/lines")" 'it came to its end'
}
