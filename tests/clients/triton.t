#!/bin/sh
# What Triton compiles for gfx1100: 60 and more kernels of tests/clients/triton
# come back from text byte for byte, are what their assembly says, have no findings, compute under the checked
# run what numpy says, are simulated, and without one of their waits or barriers
# are found where that matters.
#
# Wants Python with triton (3.x) and numpy: python3, or what T0_PYTHON names.
. "$T0_SRC/tests/tap.sh"
python=${T0_PYTHON:-python3}
"$python" -c 'import triton, numpy' 2>/dev/null || skip_all "$python has no \
triton and numpy: python3 -m venv DIR, DIR/bin/pip install triton numpy, and \
T0_PYTHON=DIR/bin/python"
command -v readelf >/dev/null || skip_all 'readelf (binutils) is not installed'
src=$T0_SRC/tests/clients/triton
dir=$tmp/objects
export PYTHONDONTWRITEBYTECODE=1

# The bytes of the sections, without their addresses.
dump() { # FILE
	for section in .text .rodata .data .note; do
		echo "$section"
		readelf -x $section "$1" 2>/dev/null |
			sed -n 's/^ *0x[0-9a-f]* //p'
	done
}

good() { # WHAT COMMAND...: counts, and says what failed
	what=$1
	shift
	if "$@" >"$tmp/log" 2>&1; then
		eval "$what=\$(($what + 1))"
	else
		diag "$what, $name: $(grep -v '^ *path' "$tmp/log" | head -3)"
	fi
}

reassemble() {
	"$T0_BUILD/t0-isa" dis -o "$tmp/text.s" "$1" &&
		"$T0_BUILD/t0-isa" asm "$tmp/text.s" -o "$tmp/again.co" &&
		dump "$1" >"$tmp/was" && dump "$tmp/again.co" >"$tmp/is" &&
		cmp "$tmp/was" "$tmp/is"
}

# What it computes with, without the bits that do not count: LLVM 22 sets those
# of sources that an instruction does not have.
instructions() { # FILE
	"$T0_BUILD/t0-isa" dis "$1" | sed 's/ unused_src[12]:128//g
		s| *// .*||; /^[[:space:]]*\./d'
}

assemble() {
	"$T0_BUILD/t0-isa" asm "$dir/$name.amdgcn" -o "$tmp/text.co" &&
		instructions "$object" >"$tmp/was" &&
		instructions "$tmp/text.co" >"$tmp/is" &&
		diff "$tmp/was" "$tmp/is"
}

# Lines with v1.l or v1.h, as LLVM and as we write them.
halves() { # FILE
	sed 's/ *;.*//; s/ unused_src[12]:128//g; s| *// .*||; s/^[[:space:]]*//
		s/[[:space:]]*$//' "$1" | grep -E '^v_[a-z0-9_]+ .*v[0-9]+\.[lh]'
}

name_halves() {
	"$T0_BUILD/t0-isa" dis --true16 -o "$tmp/text.s" "$object" &&
		{ halves "$dir/$name.amdgcn" >"$tmp/was"; true; } &&
		{ halves "$tmp/text.s" >"$tmp/is"; true; } &&
		diff "$tmp/was" "$tmp/is"
}

# Where branches depend on data, by a trace of them.
simulate() {
	"$T0_BUILD/t0-sim" --quiet "$@" && return
	grep -q 'use a trace' "$tmp/log" || return
	"$T0_BUILD/t0-run" --quiet --device soft --trace "$tmp/trace" "$@" \
		>"$tmp/traced" && "$T0_BUILD/t0-sim" --quiet \
		--trace "$tmp/trace" "$object" \
		"$(sed 's/.*"name": "\([^"]*\)".*/\1/' "$dir/$name.json")"
}

exits 0 "Triton compiles" "$python" "$src/make.py" "$dir"
n=0 same=0 assembled=0 named=0 clean=0 ran=0 simulated=0
tab=$(printf '\t')
while IFS= read -r line; do
	n=$((n + 1))
	name=${line%%"$tab"*}
	object=$dir/$name.hsaco
	IFS=$tab
	# Words are separated by tabs.
	# shellcheck disable=SC2086
	set -- ${line#*"$tab"}
	unset IFS
	good same reassemble "$object"
	good assembled assemble
	good named name_halves
	good clean "$T0_BUILD/t0-isa" verify "$object"
	good ran "$T0_BUILD/t0-run" --check --quiet --device soft "$@"
	good simulated simulate "$@"
done <"$dir/jobs"

ok "there are 60 and more kernels ($n)" test "$n" -ge 60
is "$same" "$n" 'from text they come back byte for byte'
is "$assembled" "$n" "Triton's own assembly has the same instructions"
is "$named" "$n" 'halves of registers are named as LLVM does'
is "$clean" "$n" 'the verifier objects to none'
is "$ran" "$n" 'they run, and the checks find nothing'
is "$simulated" "$n" 'they are simulated'

"$python" "$src/compare.py" "$dir" out >"$tmp/compared"
grep -A1 '^not ok' "$tmp/compared" | while read -r line; do diag "$line"; done
is "$(grep -c '^ok' "$tmp/compared")" "$n" 'what they compute is right'

# Each of their waits and barriers, at random, taken out.
"$T0_BUILD/tests/soft/mutants" "$dir/jobs" 30 .late >"$tmp/mutants"
is $? 0 '95 % of the mutants that matter are found'
grep '^# ' "$tmp/mutants" | while read -r line; do diag "${line#\# }"; done
for file in "$dir"/*.out.late; do
	mv "$file" "${file%.out.late}.late"
done
"$python" "$src/compare.py" "$dir" late >"$tmp/compared"
grep -A1 '^not ok' "$tmp/compared" | while read -r line; do diag "$line"; done
is "$(grep -c '^ok' "$tmp/compared")" "$n" \
	'what the late executor computes is right'
plan_done
