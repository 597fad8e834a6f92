#!/bin/sh
# What t0-isa dis prints of clang-19's objects, t0-isa asm makes the same
# objects of: the bytes and places of all sections, addresses for the loader,
# symbols.  Options decide what is in them: debug sections, a GOT, .bss, LDS,
# printf, calls, wave64, old descriptors.
. tests/tap.sh
for tool in clang-19 ld.lld-19 readelf; do
	command -v $tool >/dev/null || skip_all "$tool is not installed; \
tests/isa/dis-object.t reads prebuilt objects"
done
isa=$T0_BUILD/t0-isa

dump() { # FILE
	for section in .note .text .rodata .data.rel.ro .got .data; do
		echo "$section"
		readelf -x $section "$1" 2>/dev/null | grep '^  0x'
	done
	readelf -SW "$1" | awk '/^ +\[ *[0-9]+\] \.[a-z]/ {
		sub(/^.*\] /, "")
		if ($1 !~ /debug|tab|comment/)
			print $1, $2, $3, $4, $5
	}'
	readelf -rW "$1" | awk '/R_AMDGPU/ { print $1, $3, $5, $6, $7 }' | sort
	readelf -sW --dyn-syms "$1" |
		awk '$4 ~ /OBJECT|FUNC/ { print $2, $3, $4, $5, $6, $8 }' |
		sort -u
}

while read -r options; do
	same=0 files=0
	for source in "$T0_SRC"/tests/data/dis/*.c*; do
		case $source in
		*.co) continue ;;
		*.cl) language='-x cl -cl-std=CL2.0' ;;
		*) language= ;;
		esac
		files=$((files + 1))
		rm -f "$tmp/again.co"
		# shellcheck disable=SC2086
		clang-19 $language -target amdgcn-amd-amdhsa -mcpu=gfx1100 \
			-nogpulib -Wl,-z,undefs $options "$source" \
			-o "$tmp/was.co" &&
			"$isa" dis -o "$tmp/text.s" "$tmp/was.co" &&
			"$isa" asm "$tmp/text.s" -o "$tmp/again.co"
		dump "$tmp/was.co" >"$tmp/was"
		dump "$tmp/again.co" >"$tmp/is"
		if cmp -s "$tmp/was" "$tmp/is" && grep -q 0x "$tmp/is"; then
			same=$((same + 1))
		else
			diag "${source##*/} $options: $(diff "$tmp/was" \
				"$tmp/is" | sed -n 2p)"
		fi
	done 2>"$tmp/err"
	sed 's/^/# /' "$tmp/err" >&2
	is "$same" "$files" "$options"
done <<END
-O0
-O1 -fPIC -fvisibility=default
-O2 -g
-O2 -mwavefrontsize64
-O3
-O3 -mcode-object-version=4
-Os -mcumode -fPIC
END
# Sources with local symbols of one name.
cat >"$tmp/twice.cl" <<END
static __attribute__((noinline)) uint times(uint x)
{
	return x * MUL;
}

kernel void KERNEL(global uint *out)
{
	*out = times(*out);
}
END
for mul in 7 9; do
	clang-19 -x cl -target amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib -O1 \
		-D MUL=$mul -D KERNEL=k$mul -c "$tmp/twice.cl" -o "$tmp/$mul.o"
done
ld.lld-19 -shared "$tmp/7.o" "$tmp/9.o" -o "$tmp/was.co"
exits 0 'local names may repeat' "$isa" dis "$tmp/was.co"
cp "$tmp/out" "$tmp/text.s"
is "$(grep -c '^times:' "$tmp/text.s"), $(grep -c '^times\.[0-9a-f]*:' \
	"$tmp/text.s")" '1, 1' 'in the text they do not'
exits 0 'which is read again' "$isa" asm "$tmp/text.s" -o "$tmp/again.co"
for file in was again; do
	dump "$tmp/$file.co" | grep -v 'FUNC\|OBJECT' >"$tmp/$file"
done
ok 'all else is the same' cmp "$tmp/was" "$tmp/again"
ok 'with two notes' test "$(grep -c AMDG "$tmp/was")" = 2
ok 'nine sources and more' test "$files" -ge 9
plan_done
