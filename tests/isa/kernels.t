#!/bin/sh
# Compiled kernels: every word is an instruction, and llvm-objdump 19, when it
# is installed, says the same at the same addresses.
. tests/tap.sh

# fault.co has words that are none, on purpose.
undecoded() {
	case $1 in
	fault.co) sed '/\.long/d' ;;
	*) cat ;;
	esac
}

# "address text" of a disassembly, theirs or ours; LLVM 19 marks no literals.
lines() {
	sed -n 's|^\t\(.*\)// 0*\([0-9A-Fa-f]*\): .*|\2 \1|p' |
		sed 's| *$||; s|lit(\([^)]*\))|\1|g' | awk '{ $1 = tolower($1); print }'
}

all_instructions() {
	[ -s "$1" ] && ! grep -q ' \.long\| \.byte' "$1"
}

same_lines() {
	awk 'NR == FNR { line[$1] = $0; next }
	     line[$1] != $0 { print "# ours:   " $0 "\n# theirs: " line[$1]
			      bad = 1 }
	     END { exit bad }' "$1" "$2" >&2
}

for f in tests/data/kernels/*.co; do
	name=${f##*/}
	exits 0 "$name is disassembled" "$T0_BUILD/t0-isa" dis "$f"
	undecoded "$name" <"$tmp/out" >"$tmp/rest"
	lines <"$tmp/rest" >"$tmp/ours"
	ok "$name is instructions throughout" all_instructions "$tmp/ours"
	if command -v llvm-objdump-19 >/dev/null; then
		llvm-objdump-19 -d "$f" 2>/dev/null | lines >"$tmp/theirs"
		ok "$name reads as in llvm-objdump 19" \
			same_lines "$tmp/theirs" "$tmp/ours"
	else
		skip "$name compared: llvm-objdump-19 is not installed"
	fi
done
plan_done
