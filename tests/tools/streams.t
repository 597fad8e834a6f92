#!/bin/sh
# A closed stdin, stdout or stderr: nothing that a tool opens takes its place,
# and output that goes nowhere is trouble.
. tests/tap.sh
unset T0_DB
export T0_DEVICE=soft
b=$T0_BUILD
saxpy="$b/t0-run tests/data/kernels/saxpy.co saxpy f32:2 buf:64:f32=iota
	out:64:f32=1 u32:64 --grid 64 --block 64 --trace"

for tool in "$b"/t0-*; do
	[ -x "$tool" ] && [ -f "$tool" ] || continue
	name=${tool##*/}
	exits 2 "$name --version into a closed stdout" \
		sh -c '"$1" --version >&-' - "$tool"
	has "$tmp/err" 'stdout is closed' 'is told'
	exits 2 "$name with no stream" sh -c '"$1" --help <&- >&- 2>&-' - "$tool"
	exits 0 "$name needs stdout only" \
		sh -c '"$1" --help <&- 2>&-' - "$tool"
done
exits 0 'a database' "$b/t0-results" note add -q --status keep \
	--hypothesis 'a note' --db "$tmp/t0.db"
for command in list info sensors; do
	exits 2 "t0-device $command into a closed stdout" \
		sh -c '"$1" "$2" --json >&-' - "$b/t0-device" $command
	has "$tmp/err" 'stdout is closed' 'is told'
done
exits 2 'assembly into a closed stdout' sh -c '"$1" -k axpy -S >&-' - "$b/t0-cc"
has "$tmp/err" 'stdout is closed' 'is told'
exits 2 'and into a file that is open for reading' \
	sh -c '"$1" -k axpy -S 1</dev/null' - "$b/t0-cc"
# shellcheck disable=SC2086 # words of a command
{
	exits 0 'a trace' $saxpy "$tmp/open"
	head -n 1 "$tmp/out" >"$tmp/said"
	head -n 1 "$tmp/err" >>"$tmp/said"
	exits 2 'a trace without streams' \
		sh -c '"$@" <&- >&- 2>&-' - $saxpy "$tmp/closed"
}
is "$(wc -l <"$tmp/said")" 2 'a run says something on both streams'
# Its length is no measure: addresses take more or fewer bytes.
ok 'none of which is in the trace' sh -c '! grep -qaFf "$1" "$2"' - \
	"$tmp/said" "$tmp/closed"
exits 0 'and is a trace' "$b/t0-sim" tests/data/kernels/saxpy.co saxpy \
	--trace "$tmp/closed" --db "$tmp/t0.db"
exits 0 'a remark into a closed stderr' sh -c \
	'"$1" export --db "$2" -o "$3" >&- 2>&-' - "$b/t0-results" \
	"$tmp/t0.db" "$tmp/out.jsonl"
exits 0 'goes into no database' "$b/t0-results" list --db "$tmp/t0.db"
exits 2 'a closed stdin' sh -c '"$1" import - --db "$2" <&-' - \
	"$b/t0-results" "$tmp/t0.db"
plan_done
