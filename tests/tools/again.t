#!/bin/sh
# With nothing to do, make, t0-tune and t0-qwen3 convert say so in one line, and
# nothing is written again.
. tests/tap.sh
unset T0_DB T0_CACHE MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
export T0_DEVICE=soft T0_DB="$tmp/t0.db"
mode=${T0_BUILD##*/}

# written FOLDER...: what is in them, and when each file was written
written() {
	find "$@" -type f -exec stat -c '%n %y %z' {} + | sort
}

# A build that is behind the sources would be brought up to them here.
git ls-files '*.[chS]' '*.def' GNUmakefile >"$tmp/sources" 2>/dev/null
commit=$(git describe --always --dirty=+ --abbrev=12 --match '' 2>/dev/null)
if [ "$T0_BUILD" != "$PWD/build/$mode" ] || [ ! -e "$T0_BUILD/built" ] ||
	[ "$commit" != "$(cat "$T0_BUILD/commit")" ] ||
	[ -n "$(xargs -d '\n' -a "$tmp/sources" sh -c \
		'find "$@" -newer "$0"' "$T0_BUILD/built" 2>/dev/null)" ]; then
	skip "$T0_BUILD is not built from what lies here" 3
else
	written "$T0_BUILD"/t0-* "$T0_BUILD"/*.a >"$tmp/before"
	make --no-print-directory m="$mode" >"$tmp/out" 2>"$tmp/err"
	is $? 0 'make once more'
	is "$(sed 's/[0-9a-f]\{12\}+*/COMMIT/; s/^ *//; s/  */ /' "$tmp/out" "$tmp/err")" \
		"KEPT build/$mode, commit COMMIT: nothing to do" 'says it in one line'
	written "$T0_BUILD"/t0-* "$T0_BUILD"/*.a >"$tmp/after"
	ok 'no library and no tool is made again' cmp "$tmp/before" "$tmp/after"
fi

tune() {
	"$T0_BUILD/t0-tune" --shapes 32x32x32,64x32x32 --budget quick >"$tmp/out" \
		2>"$tmp/err"
}
rows='SELECT count(*) FROM v_tunes'
exits 0 'products are tuned' tune
exits 0 'the decisions' "$T0_BUILD/t0-results" sql --csv "$rows"
cp "$tmp/out" "$tmp/first"
exits 0 'again' tune
is "$(cat "$tmp/err")" 't0-tune: 2 of 2 products were tuned before: nothing to do' \
	'says it in one line'
exits 0 'the decisions' "$T0_BUILD/t0-results" sql --csv "$rows"
ok 'none is made again' cmp "$tmp/first" "$tmp/out"

q=$T0_BUILD/t0-qwen3
"$q" make -q -m "$tmp/tiny" --shape tiny || exit 2
sleep 0.1 # a file is newer than what it was made from
exits 0 'a model is converted' "$q" convert "$tmp/tiny" "$tmp/tiny.gguf"
written "$tmp/tiny.gguf" >"$tmp/before"
exits 0 'again' "$q" convert "$tmp/tiny" "$tmp/tiny.gguf"
is "$(cat "$tmp/err")" \
	"t0-qwen3: $tmp/tiny.gguf is newer than $tmp/tiny, and of these types: nothing to do" \
	'says it in one line'
written "$tmp/tiny.gguf" >"$tmp/after"
ok 'it is not written again' cmp "$tmp/before" "$tmp/after"
plan_done
