#!/bin/sh
# What README.md promises of all tools: their exit statuses, that each option
# does something, and that it names every tool and only targets that exist.
. tests/tap.sh
build=$T0_BUILD
unset T0_DB T0_DEVICE
cd "$T0_SRC" || exit 2
export T0_DB="$tmp/t0.db" T0_CACHE="$tmp/cache"
data=tests/data/kernels

# commands TOOL: the names in the list of its help
commands() {
	"$1" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z0-9-]*\) .*/\1/p'
}

# ---- every tool ----
for tool in "$build"/t0-*; do
	[ -x "$tool" ] && [ -f "$tool" ] || continue
	name=${tool##*/}
	exits 0 "$name says its version" "$tool" --version
	has "$tmp/out" "$name " 'with its name'
	exits 2 "$name refuses an unknown option" "$tool" --zzz
	has "$tmp/err" "$name: unknown option --zzz" 'and names it'
	if [ -w /dev/full ]; then
		exits 2 "$name notices a full disk" \
			sh -c '"$1" --help >/dev/full' - "$tool"
	fi
	commands "$tool" >"$tmp/commands"
	[ ! -s "$tmp/commands" ] || {
		exits 2 "$name refuses a mistyped command" \
			"$tool" "$(sed -n '1s/.$/_/p' "$tmp/commands")"
		has "$tmp/err" "did you mean $(sed -n 1p "$tmp/commands")?" \
			'and suggests the right one'
	}
	while read -r command; do
		exits 0 "$name $command has a page" "$tool" "$command" --help
		has "$tmp/out" "$name $command - " 'of its own'
		is "$(awk 'length > 80' "$tmp/out")" '' 'that fits a terminal'
		exits 2 "$name $command refuses an unknown option" \
			"$tool" "$command" --zzz
	done <"$tmp/commands"
	ok "README.md has $name in its table" \
		grep -q "^| \`$name\` |" README.md
done

# ---- options ----
# A field that an option fills has to be looked at somewhere in its folder.
for source in */cmd/t0-*.c; do
	folder=${source%%/*}
	tr '\n\t' '  ' <"$source" | grep -oE \
		'\{ *"[a-z0-9-]+", *[^,]+, *CLI_[A-Z0-9]+, *&[a-z0-9_.]+' |
		sed -E 's/^\{ *"([^"]+)".*&([a-z0-9_.]+)$/\1 \2/' >"$tmp/options"
	dead=
	while read -r option field; do
		case $field in
		*.*) what="(\\.|->)${field##*.}\\b" ;;
		*) what="\\b$field\\b" ;;
		esac
		[ "$(find "$folder" -name '*.[ch]' -exec cat {} + |
			grep -oE -- "$what" | wc -l)" -gt 1 ] && continue
		"$build/$(basename "$source" .c)" --help |
			grep -qE -- "--$option(=| ).* accepted;" ||
			dead="$dead --$option"
	done <"$tmp/options"
	ok "$source: options were found" test -s "$tmp/options"
	is "$dead" '' "$source: every option does something"
done

# ---- exit statuses ----
export T0_DEVICE=soft
saxpy="$build/t0-run -q $data/saxpy.co saxpy f32:2"
exits 0 '0: it worked' $saxpy buf:64:f32=iota out:64:f32=1 u32:64 --grid 64 \
	--block 64
exits 1 '1: --check finds what was never written' $saxpy --check \
	buf:64:f32=none out:64:f32=1 u32:64 --grid 64 --block 64
exits 2 '2: there is no such file' "$build/t0-run" "$tmp/none.co" saxpy
exits 2 '2: nor such a database' "$build/t0-results" list --db "$tmp/no/t0.db"
exits 3 '3: the kernel faults' $saxpy u64:4096 out:64:f32=1 u32:64 \
	--grid 64 --block 64
if [ -e /dev/kfd ]; then
	skip 'this machine may have a device'
else
	exits 77 '77: no device to look at' "$build/t0-device" info \
		--device kfd
	exits 77 '77: nor to run on' $saxpy --device kfd buf:64:f32=iota \
		out:64:f32=1 u32:64 --grid 64 --block 64
	exits 77 '77: nor to probe' "$build/t0-probe" dispatch --quick \
		--device kfd
	exits 77 '77: nor to tune for' "$build/t0-tune" --sizes 256 \
		--budget quick --device kfd
fi

# ---- targets ----
make -s help | awk '$1 == "make" { print $2 }' | sort -u >"$tmp/targets"
ok 'make help lists targets' grep -qx test "$tmp/targets"
# In code only: "make" is an English word.
unknown=
for target in $(sed -n '/^```/,/^```/p' README.md |
	grep -oE '^make [a-z][a-z-]*' | cut -d' ' -f2 | sort -u); do
	grep -qx "$target" "$tmp/targets" ||
		[ "$target" = build ] || unknown="$unknown $target"
done
is "$unknown" '' 'README.md names only targets that make help lists'
plan_done
