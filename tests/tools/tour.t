#!/bin/sh
# docs/tour.md: its commands run one after the other, and print what stands
# below them, figures apart.
. tests/tap.sh
unset T0_DB NO_COLOR CLICOLOR_FORCE
export T0_DEVICE=soft PATH="$T0_BUILD:$PATH" T0_CACHE="$tmp/cache"
mkdir "$tmp/room"
ln -s "$T0_SRC/compiler" "$T0_SRC/base" "$tmp/room/"

# Blocks become NUMBER.sh, and NUMBER.text what they print.
awk -v to="$tmp/" '
	on && $0 == "```" { on = 0; close(f); next }
	on { print >f; next }
	$0 == "```sh" { on = 1; f = to (100 + ++n) ".sh" }
	$0 == "```text" { on = 1; f = to (100 + n) ".text" }' docs/tour.md

# masked FILE: every figure is N, and blanks are one
masked() {
	sed -E 's/launch=[0-9a-f]+/launch=X/g
		s/-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?/N/g
		s/N (ns|µs|ms|s) /N s /g; s/  +/ /g; s/ +$//' "$1"
}
for block in "$tmp"/1*.sh; do
	(cd "$tmp/room" && set -e && . "$block") >"$tmp/out" 2>"$tmp/err"
	is $? 0 "$(sed -n 1p "$block")" || diag "$(cat "$tmp/err")"
	text=${block%.sh}.text
	[ -e "$text" ] || continue
	masked "$tmp/out" >"$tmp/got"
	masked "$text" >"$tmp/wanted"
	is "$(cat "$tmp/got")" "$(cat "$tmp/wanted")" 'prints what the page says'
done
ok 'there were blocks' [ -e "$tmp/105.sh" ]
has "$tmp/room/rows.html" 'What would help' 'the page of the kernel is there'
plan_done
