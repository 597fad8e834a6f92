#!/bin/sh
# What clang-19 -S writes for every test kernel assembles, and the code object
# is the one that llvm-mc-19 and lld-19 make of the same text: all loaded
# sections have the same bytes at the same addresses.  clang-19's own object
# has the same code and metadata.
. tests/tap.sh
for tool in clang-19 llvm-mc-19 ld.lld-19 llvm-readelf-19; do
	command -v $tool >/dev/null || skip_all "$tool is not installed; \
tests/isa/asm-tool.t assembles prebuilt text"
done
isa=$T0_BUILD/t0-isa
data=$T0_SRC/tests/data/kernels

compile() {
	clang-19 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa \
		-mcpu=gfx1100 -nogpulib -cl-kernel-arg-info "$@"
}

# The loader's and the kernels' sections.
all=".note .dynsym .gnu.hash .hash .dynstr .rela.dyn .rodata .text \
.data.rel.ro .dynamic .got .data"

# Both files' sections in one run: the tool starts slowly.
equal() { # NAME REFERENCE SECTION...
	name=$1
	reference=$2
	shift 2
	args=
	for section; do
		args="$args -x $section"
	done
	llvm-readelf-19 $args "$reference" "$tmp/ours.co" 2>/dev/null |
		awk -v dir="$tmp" '/^File: / { out = dir "/dump" ++n; next }
			out && NF { print >out }'
	cmp -s "$tmp/dump1" "$tmp/dump2" && grep -q 0x "$tmp/dump2"
	tap_result $? "$name" || diff "$tmp/dump1" "$tmp/dump2" | head -n 5 |
		sed 's/^/# /' >&2
	rm -f "$tmp/dump1" "$tmp/dump2"
}

readable() { # NAME
	llvm-readelf-19 -a "$tmp/ours.co" >"$tmp/log" 2>"$tmp/warnings"
	is "$(cat "$tmp/warnings")" '' "$1: llvm-readelf reads it without a word"
}

for src in "$data"/*.cl; do
	kernel=${src##*/}
	kernel=${kernel%.cl}
	for level in 0 ${T0_SLOW:+2} 3; do
		compile -O$level "$src" -S -o "$tmp/k.s" 2>"$tmp/log" || {
			ok "$kernel -O$level compiles" false
			continue
		}
		if ! "$isa" asm "$tmp/k.s" -o "$tmp/ours.co" 2>"$tmp/log"; then
			ok "$kernel -O$level assembles" false
			head -n 5 "$tmp/log" | sed 's/^/# /' >&2
			continue
		fi
		llvm-mc-19 -triple=amdgcn-amd-amdhsa -mcpu=gfx1100 \
			-filetype=obj "$tmp/k.s" -o "$tmp/k.o" &&
			ld.lld-19 -shared --no-undefined "$tmp/k.o" \
				-o "$tmp/lld.co"
		equal "$kernel -O$level is what LLVM makes of it" \
			"$tmp/lld.co" $all
	done
	readable "$kernel"
	compile -O3 "$src" -o "$tmp/clang.co" 2>"$tmp/log"
	equal "$kernel -O3 has clang's code and metadata" "$tmp/clang.co" \
		.text .note
done

# wave64, and both other versions.
compile -O3 -mwavefrontsize64 "$data/saxpy.cl" -S -o "$tmp/k.s"
"$isa" asm "$tmp/k.s" -o "$tmp/ours.co"
llvm-mc-19 -triple=amdgcn-amd-amdhsa -mcpu=gfx1100 \
	-mattr=+wavefrontsize64,-wavefrontsize32 -filetype=obj "$tmp/k.s" \
	-o "$tmp/k.o"
ld.lld-19 -shared "$tmp/k.o" -o "$tmp/lld.co"
equal 'saxpy for wave64 is what LLVM makes of it' "$tmp/lld.co" $all
for version in 4 6; do
	compile -O3 -mcode-object-version=$version "$data/saxpy.cl" -S \
		-o "$tmp/k.s" 2>/dev/null
	"$isa" asm "$tmp/k.s" -o "$tmp/ours.co"
	llvm-mc-19 -triple=amdgcn-amd-amdhsa -mcpu=gfx1100 -filetype=obj \
		"$tmp/k.s" -o "$tmp/k.o"
	ld.lld-19 -shared "$tmp/k.o" -o "$tmp/lld.co"
	equal "saxpy as version $version is what LLVM makes of it" \
		"$tmp/lld.co" $all
	is "$(llvm-readelf-19 -h "$tmp/ours.co" | grep -E 'ABI|Flags')" \
		"$(llvm-readelf-19 -h "$tmp/lld.co" | grep -E 'ABI|Flags')" \
		"version $version is in the header"
done

# Other chips: their encodings and descriptors.
other() { # CHIP KERNEL LEVEL
	compile -O$3 -mcpu=$1 "$data/$2.cl" -S -o "$tmp/k.s" 2>"$tmp/log"
	"$isa" asm "$tmp/k.s" -o "$tmp/ours.co" 2>"$tmp/log" ||
		sed 's/^/# /' "$tmp/log" >&2
	llvm-mc-19 -triple=amdgcn-amd-amdhsa -mcpu=$1 -filetype=obj \
		"$tmp/k.s" -o "$tmp/k.o" &&
		ld.lld-19 -shared "$tmp/k.o" -o "$tmp/lld.co"
	equal "$2 -O$3 for $1 is LLVM's" "$tmp/lld.co" $all
}
for chip in gfx1010 gfx1030 gfx1103 gfx1151 gfx1201; do
	other $chip scratch 0
	other $chip divide 3
	other $chip histogram 3
done
plan_done
