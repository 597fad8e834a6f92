#!/bin/sh
# What a compiler inserts against hazards is needed: without any one of its
# waits the verifier raises an alarm, and with all of them it does not.
#
# The compiler's text is assembled by t0-isa with one line replaced by s_nop.
isa="$T0_BUILD/t0-isa"
if ! command -v clang-19 >/dev/null; then
	echo "TAP version 13"
	echo "1..0 # SKIP clang-19 is not installed; seeded faults are in" \
		"tests/isa/verify"
	exit 0
fi
. "$T0_SRC/tests/tap.sh"
cd "$T0_SRC/tests/data/verify" || exit 1

findings() { # FILE.s: rules that it breaks, one a line
	"$isa" asm "$1" -o "$tmp/co" 2>"$tmp/err" || { cat "$tmp/err"; return; }
	"$isa" verify --csv "$tmp/co" 2>&1 | sed 1d
}

# Every `step`th line that matches is taken out, alone.
mutate() { # PATTERN STEP: adds to $made and $missed
	for line in $(grep -nE "^[[:space:]]*$1" "$tmp/s" | cut -d: -f1 |
		awk "NR % $2 == 0"); do
		sed "${line}s/.*/ s_nop 0/" "$tmp/s" >"$tmp/m.s"
		made=$((made + 1))
		if [ -z "$(findings "$tmp/m.s")" ]; then
			missed=$((missed + 1))
			diag "$src $opt line $line: $(sed -n "${line}p" "$tmp/s")"
		fi
	done
}

right=0 wrong=0
hazards=0 hazards_missed=0 waits=0 waits_missed=0
step=4
[ "$T0_SLOW" ] && step=1
for opt in -O3 "-O3 -mwavefrontsize64"; do
	for src in transform nbody fractal sparse stages bins sort numbers; do
		case "$opt $src" in
		*size64*stages) continue ;;
		esac
		clang-19 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa \
			-mcpu=gfx1100 -nogpulib -S $opt $src.cl -o "$tmp/s" \
			2>"$tmp/err" || { diag "$src: $(cat "$tmp/err")"; continue; }
		if [ -z "$(findings "$tmp/s")" ]; then
			right=$((right + 1))
		else
			wrong=$((wrong + 1))
			diag "$src $opt: $(findings "$tmp/s" | head -1)"
		fi
		made=0 missed=0
		mutate 's_waitcnt_depctr 0xfff$' 1
		hazards=$((hazards + made))
		hazards_missed=$((hazards_missed + missed))
		made=0 missed=0
		mutate 's_waitcnt (vm|lgkm)cnt' $step
		waits=$((waits + made))
		waits_missed=$((waits_missed + missed))
	done
done
is "$wrong" 0 "no alarm in $right kernels as the compiler wrote them"
[ "$right" -ge 14 ]
tap_result $? 'all of them were compiled'
[ "$hazards" -ge 8 ]
tap_result $? "the compiler inserted $hazards waits for results of the VALU"
is "$hazards_missed" 0 'each of which is missed by the verifier'
[ "$waits" -ge 20 ]
tap_result $? "$waits waits for memory were taken out"
is "$waits_missed" 0 'each of which is missed, too'
plan_done
