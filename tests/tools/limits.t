#!/bin/sh
# Limits of a process: a file that may not grow is an error as a full disk is,
# and too small a stack is told before it overflows.
. tests/tap.sh
export T0_DEVICE=soft T0_DB="$tmp/t0.db" T0_CACHE="$tmp/cache"
b=$T0_BUILD
[ -e "$b/libt0-soft.so" ] || skip_all 'sanitizers need more of everything'

# within LETTER VALUE COMMAND...
within() (
	ulimit -c 0
	ulimit "-$1" "$2"
	shift 2
	exec "$@"
)

# ---- size of files ----
exits 2 'a listing that does not fit' within f 16 "$b/t0-isa" list \
	-o "$tmp/list"
has "$tmp/err" 'File too large' 'says why'
ok 'and leaves nothing' [ ! -e "$tmp/list" ]
exits 0 'a database' "$b/t0-results" note add -q --status keep \
	--hypothesis 'a note'
exits 2 'rows that do not fit' within f 100 "$b/t0-probe" discover \
	--encoding SOPP --oracle none -q
ok 'are told' grep -q '^t0-probe: ' "$tmp/err"
is "$(sqlite3 "$T0_DB" 'PRAGMA integrity_check')" ok 'the database is whole'
exits 2 'memory of the device that does not fit' within f 1000 \
	"$b/t0-device" info
ok 'is told' grep -q '^t0-device: ' "$tmp/err"
exits 153 'what a tool runs has the usual signal' "$b/t0-soft" run -q -- \
	sh -c 'ulimit -c 0; ulimit -f 1; head -c 8000000 /dev/zero >"$0"' "$tmp/zeros"

# ---- stack ----
exits 0 'a tiny model' scripts/make-model "$tmp/tiny"
for kib in 128 300 500 1000; do
	exits 2 "a stack of $kib KiB" within s $kib "$b/t0-qwen3" eval -q \
		-m "$tmp/tiny" -p 'some words of a prompt'
	has "$tmp/err" 'ulimit -s' 'what to do'
done
exits 0 'a megabyte is enough' within s 1024 "$b/t0-qwen3" eval -q \
	-m "$tmp/tiny" -p 'some words of a prompt'
exits 0 'any stack is enough for a page' within s 128 "$b/t0-qwen3" --help
plan_done
