#!/bin/sh
# Every header compiles alone, and folders include downwards only.
. tests/tap.sh

MAKEFLAGS= MFLAGS= exits 0 'every header compiles alone' \
	make --no-print-directory check-headers

# below FOLDER ALLOWED...: what it may include (DESIGN.md, "Folders")
below() {
	folder=$1
	shift
	[ -d "$folder" ] || { skip "there is no $folder/ yet"; return; }
	allowed=$(echo "$@" | tr ' ' '|')
	find "$folder" -name '*.[ch]' -o -name '*.def' | sort >"$tmp/files"
	xargs grep -nE '^#[[:space:]]*include "' <"$tmp/files" >"$tmp/includes"
	grep -vE "include \"($allowed)/" "$tmp/includes" >"$tmp/wrong"
	is "$(cat "$tmp/wrong")" '' "$folder includes only $*"
}
below base base
below isa isa base
below results results base
below kfd kfd isa base
below compiler compiler results isa base
below probes probes kfd compiler results isa base
below autotune autotune probes kfd compiler results isa base
below engine engine autotune probes kfd compiler results isa base
plan_done
