# Sourced by tests/NNNN-topic.t: the shell's side of tests/tap.h.
#
#	#!/bin/sh
#	. tests/tap.sh
#	exits 0 'the help is shown' "$T0_BUILD/t0-isa" --help
#	has "$tmp/out" Usage 'and tells the usage'
#	plan_done
#
# $tmp is a folder that goes away when the script ends.

tap_count=0
tap_failed=0
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
trap 'exit 2' HUP INT TERM
echo 'TAP version 13'

diag() {
	printf '# %s\n' "$@" >&2
}

# tap_result PASSED(0 or not) NAME
tap_result() {
	tap_count=$((tap_count + 1))
	# '#' would begin a directive.
	tap_name=$(printf %s "$2" | sed 's/[\\#]/\\&/g')
	if [ "$1" -eq 0 ]; then
		echo "ok $tap_count - $tap_name"
		return 0
	fi
	tap_failed=$((tap_failed + 1))
	echo "not ok $tap_count - $tap_name"
	diag "check $tap_count failed in $0: $2"
	return 1
}

# ok NAME COMMAND...: the command succeeds.
ok() {
	tap_what=$1
	shift
	"$@"
	tap_result $? "$tap_what" || diag "  command: $*"
}

# is GOT WANTED NAME: equal strings.
is() {
	tap_same=1
	[ "$1" = "$2" ] && tap_same=0
	tap_result $tap_same "$3" || diag "  got:    $1" "  wanted: $2"
}

# exits STATUS NAME COMMAND...: the command ends with this exit status; its
# output is in $tmp/out and $tmp/err.
exits() {
	tap_wanted=$1
	tap_what=$2
	shift 2
	"$@" >"$tmp/out" 2>"$tmp/err"
	tap_got=$?
	tap_same=1
	[ $tap_got -eq "$tap_wanted" ] && tap_same=0
	tap_result $tap_same "$tap_what" || {
		diag "  command: $*" "  exit:    $tap_got, wanted $tap_wanted"
		sed 's/^/#   stdout: /' "$tmp/out" | head -n 20 >&2
		sed 's/^/#   stderr: /' "$tmp/err" | head -n 20 >&2
	}
}

# has FILE TEXT NAME: the file has this text in one of its lines.
has() {
	grep -qF -e "$2" "$1"
	tap_result $? "$3" || {
		diag "  wanted in $1: $2"
		sed 's/^/#   /' "$1" | head -n 20 >&2
	}
}

# skip WHY [N]: instead of one check, or N, that cannot run here.
skip() {
	for _ in $(seq "${2:-1}"); do
		tap_count=$((tap_count + 1))
		echo "ok $tap_count # SKIP $1"
	done
}

# skip_all WHY: instead of the whole script, before any check.
skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

# Prints the plan and ends the script: 0 if all passed, else 1.
plan_done() {
	echo "1..$tap_count"
	[ $tap_failed -eq 0 ] || diag "$tap_failed of $tap_count checks failed"
	[ $tap_failed -eq 0 ] && [ $tap_count -gt 0 ]
	exit
}
