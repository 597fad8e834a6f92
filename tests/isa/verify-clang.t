#!/bin/sh
# No alarm on what a compiler makes of every kernel source here, at several
# optimisation levels, in both wave sizes and both workgroup modes.
isa="$T0_BUILD/t0-isa"
echo "TAP version 13"
if ! command -v clang-19 >/dev/null; then
	echo "1..0 # SKIP clang-19 is not installed; prebuilt kernels are" \
		"checked by tests/isa/verify"
	exit 0
fi
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cd "$T0_SRC/tests/data" || exit 1
n=0

check() { # NAME OUTPUT: ok if there is no finding
	n=$((n + 1))
	if [ -s "$2" ]; then
		echo "not ok $n - $1"
		head -5 "$2" | sed 's/^/# /'
	else
		echo "ok $n - $1"
	fi
}

# Kernels whose builtins exist in wave32 only stay out of wave64.
only32="lanes wmma wmma_more gemm dppsum stages"

compile() { # OPTIONS NAME-OF-OPTIONS: one object for each source
	for src in kernels/*.cl verify/*.cl; do
		name=$(basename "$src" .cl)
		case "$1 $only32 " in
		*size64*" $name "*) continue ;;
		esac
		clang-19 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa \
			-mcpu=gfx1100 -nogpulib $1 "$src" \
			-o "$dir/$name$2.co" 2>"$dir/err" ||
			{ echo "$src: $(grep error: "$dir/err")" >>"$dir/failed"; }
	done
}

set -- -O0 "-O3 -mwavefrontsize64"
[ "$T0_SLOW" ] && set -- "$@" -O3 -O2 -O1 -Os "-O2 -mcumode" \
	"-O0 -mwavefrontsize64" "-O2 -mwavefrontsize64"
for opt; do
	rm -f "$dir"/*.co "$dir/failed"
	: >"$dir/failed"
	compile "$opt" ""
	check "every source compiles with $opt" "$dir/failed"
	count=$(ls "$dir"/*.co | wc -l)
	"$isa" verify --csv -o "$dir/out" "$dir"/*.co 2>"$dir/err"
	# One kernel executes an illegal instruction on purpose.
	{ cat "$dir/err"; sed '1d; /^illegal,undecodable,/d' "$dir/out"; } \
		>"$dir/alarms"
	check "no alarm in $count objects compiled with $opt" "$dir/alarms"
done
count=$(ls kernels/*.cl verify/*.cl | wc -l)
n=$((n + 1))
[ "$count" -ge 20 ] && echo "ok $n - at least twenty sources ($count)" ||
	echo "not ok $n - at least twenty sources ($count)"
echo "1..$n"
