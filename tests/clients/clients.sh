# Sourced by the tests here: programs of others under `t0-soft run`.
# shellcheck shell=sh
. tests/soft-run.sh
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
