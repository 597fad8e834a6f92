#!/bin/sh
# t0-run with bad files, kernels and arguments: exit status 2, one clear
# message on stderr, nothing on stdout, no file left behind.
run="$T0_BUILD/t0-run"
data="$T0_SRC/tests/data/kernels"
corpus="$T0_SRC/tests/corpus/co"
export T0_DEVICE=soft
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
n=0

# result STATUS NAME: one TAP line
result() {
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		sed 's/^/# /' "$dir/err" >&2
	fi
}

# refuses NAME TEXT COMMAND...: exits 2, says TEXT, prints nothing else
refuses() {
	name=$1 text=$2
	shift 2
	timeout 120 "$@" >"$dir/out" 2>"$dir/err"
	status=$?
	[ $status = 2 ] && [ ! -s "$dir/out" ] && grep -qF -- "$text" "$dir/err"
	result $? "$name (status $status, wanted 2; '$text')"
}

echo "TAP version 13"

for file in "$corpus"/bad-*; do
	refuses "${file##*/}" "${file##*/}: " "$run" --list "$file"
done
for file in "$corpus"/good-*; do
	timeout 120 "$run" --list "$file" >"$dir/out" 2>"$dir/err" &&
		[ -s "$dir/out" ]
	result $? "${file##*/} is listed"
done

# A file cut every 97 bytes: no piece may be taken for the whole.
full=$(wc -c <"$data/saxpy.co")
taken=0 size=0
while [ $size -lt "$full" ]; do
	head -c $size "$data/saxpy.co" >"$dir/cut.co"
	timeout 120 "$run" --list "$dir/cut.co" >"$dir/out" 2>"$dir/err"
	[ $? = 2 ] || taken=$((taken + 1))
	size=$((size + 97))
done
[ $taken = 0 ]
result $? "a file cut anywhere is refused ($taken were not)"

saxpy="$data/saxpy.co"
buf=buf:64:f32
refuses "no operand" "expected FILE, its KERNEL and arguments" "$run"
refuses "the only kernel need not be named" \
	"kernel saxpy takes 4 arguments, got 0" "$run" "$saxpy"
refuses "a missing file" "no-such.co" "$run" "$dir/no-such.co" k
refuses "a folder" "$dir" "$run" "$dir" k
refuses "a missing kernel lists those there are" \
	"no kernel nope; the object has: saxpy" "$run" "$saxpy" nope
refuses "too few arguments" "kernel saxpy takes 4 arguments, got 2" \
	"$run" "$saxpy" saxpy f32:1 $buf
refuses "the wanted arguments are listed" "0: 4 bytes by_value, float a" \
	"$run" "$saxpy" saxpy f32:1 $buf
refuses "too many arguments" "kernel saxpy takes 4 arguments, got 5" \
	"$run" "$saxpy" saxpy f32:1 $buf $buf u32:1 u32:1
refuses "an argument of another size" \
	"argument 0 is 'f64:1' (8 bytes), wanted 4 bytes by_value, float a" \
	"$run" "$saxpy" saxpy f64:1 $buf $buf u32:64
refuses "an integer for a float" "argument 0 is 'i32:1'" \
	"$run" "$saxpy" saxpy i32:1 $buf $buf u32:64
refuses "a buffer for a number" "argument 3 is 'buf:64:f32'" \
	"$run" "$saxpy" saxpy f32:1 $buf $buf $buf
refuses "LDS for a buffer" "argument 1 is 'lds:64'" \
	"$run" "$saxpy" saxpy f32:1 lds:64 $buf u32:64
refuses "a number that does not fit" "u32:-1" \
	"$run" "$saxpy" saxpy f32:1 $buf $buf u32:-1
refuses "an unknown type" "'f33' is no type" \
	"$run" "$saxpy" saxpy f33:1 $buf $buf u32:1
refuses "contents of another size" "has 0 bytes, the buffer 256" \
	"$run" "$saxpy" saxpy f32:1 $buf=file:/dev/null $buf u32:1
refuses "a reference to a number" "argument 0 is no buffer" \
	"$run" "$saxpy" saxpy f32:1 ref:0 $buf u32:1
refuses "a dump of a number" "argument 0 is no buffer" \
	"$run" "$saxpy" saxpy f32:1 $buf $buf u32:1 --dump "0=$dir/x"
refuses "a block above the kernel's limit" "than its limit of 256" \
	"$run" "$saxpy" saxpy f32:1 $buf $buf u32:64 --block 257
refuses "a block that is not the required one" \
	"was compiled for 16,16,1" \
	"$run" "$data/transpose.co" transpose $buf $buf u32:1 u32:1 --block 16
refuses "a grid of no shape" "--grid 1,2,3,4" \
	"$run" "$saxpy" saxpy f32:1 $buf $buf u32:64 --grid 1,2,3,4
refuses "a grid of 0" "--grid 0" \
	"$run" "$saxpy" saxpy f32:1 $buf $buf u32:64 --grid 0
refuses "no repetition" "--repeat 0" \
	"$run" "$saxpy" saxpy f32:1 $buf $buf u32:64 --repeat 0
refuses "an unknown option" "--girdle" "$run" "$saxpy" --girdle

[ ! -e "$dir/x" ]
result $? "a refused run writes no file"
timeout 120 "$run" --dry-run "$saxpy" saxpy f32:1 $buf $buf u32:64 \
	>"$dir/out" 2>"$dir/err"
result $? "a dry run checks and is silent"

echo "1..$n"
