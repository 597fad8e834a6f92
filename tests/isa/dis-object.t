#!/bin/sh
# What t0-isa dis prints of an object, t0-isa asm makes an object of that has
# the same code, descriptors, constants and metadata, byte for byte: kernels,
# functions and padding, in both wave sizes.
. tests/tap.sh
isa=$T0_BUILD/t0-isa
data=$T0_SRC/tests/data
command -v readelf >/dev/null || skip_all 'readelf (binutils) is not installed'

# The bytes of the sections, without their addresses.
dump() { # FILE
	for section in .text .rodata .data .data.rel.ro .got .note; do
		echo "$section"
		readelf -x $section "$1" 2>/dev/null |
			sed -n 's/^ *0x[0-9a-f]* //p'
	done
	readelf -SW "$1" |
		sed -n 's/.* \(\.bss .* [0-9a-f]* \)[0-9a-f]*/\1/p'
	readelf -rW "$1" | awk '/R_AMDGPU/ { print $1, $3, $5, $6, $7 }' | sort
}

same=0 files=0
for file in "$data"/kernels/*.co "$data"/verify/*.co "$data"/check/*.co \
	"$data"/dis/*.co; do
	files=$((files + 1))
	"$isa" dis -o "$tmp/text.s" "$file"
	"$isa" asm "$tmp/text.s" -o "$tmp/again.co" 2>"$tmp/err" ||
		diag "${file##*/}: $(head -n 1 "$tmp/err")"
	dump "$file" >"$tmp/was"
	dump "$tmp/again.co" >"$tmp/is"
	if cmp -s "$tmp/was" "$tmp/is"; then
		same=$((same + 1))
	else
		diag "${file##*/} differs: $(diff "$tmp/was" "$tmp/is" | sed -n 2p)"
	fi
	rm -f "$tmp/again.co"
done
is "$same" "$files" 'objects come back byte for byte'
ok 'there are 40 or more' test "$files" -ge 40

# ---- what is printed ----
exits 0 'an object of today' "$isa" dis "$data/kernels/wmma.co"
has "$tmp/out" '.amdhsa_kernel' 'descriptors are directives'
has "$tmp/out" '.amdgpu_metadata' 'metadata is YAML'
exits 0 'functions' "$isa" dis "$data/verify/calls-O0.co"
is "$(grep -c '^[a-z_]*: // gfx1100, wave32$' "$tmp/out")" \
	"$(readelf -sW "$data/verify/calls-O0.co" 2>/dev/null |
		awk '$4 == "FUNC" { print $8 }' | sort -u | wc -l)" \
	'every function that has a name is there'
has "$tmp/out" 's_code_end' 'and the padding'
exits 0 'wave64' "$isa" dis "$data/verify/vote-O3-wave64.co"
cp "$tmp/out" "$tmp/64.s"
exits 0 'is read as such' "$isa" asm "$tmp/64.s" -o "$tmp/64.co"
exits 0 'one kernel' "$isa" dis -k saxpy "$data/kernels/saxpy.co"
is "$(grep -c amdhsa "$tmp/out")" 0 'has no directives'
plan_done
