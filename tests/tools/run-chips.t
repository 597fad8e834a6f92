#!/bin/sh
# Kernels of other chips than gfx1100 in t0-run, t0-sim and t0-soft: the right object
# of a bundle, costs of that chip, and no range where nothing was measured.
. tests/tap.sh
PATH=$T0_BUILD:$PATH
unset T0_DB T0_DEVICE
cd "$tmp" || exit 2

for c in gfx1100 gfx1030 gfx1201; do
	exits 0 "add for a $c" t0-cc --kernel add --chip $c -o $c.co
done

# number N: 8 bytes, the least first
number() {
	for i in 0 8 16 24 32 40 48 56; do
		printf "\\$(printf %03o $(($1 >> i & 255)))"
	done
}
# A bundle as clang writes it: the count, offset, size and name of each, the bytes.
one=$(($(wc -c <gfx1100.co))) two=$(($(wc -c <gfx1201.co)))
name=hipv4-amdgcn-amd-amdhsa--gfx
{
	printf __CLANG_OFFLOAD_BUNDLE__
	number 2
	number 256 && number $one && number 32 && printf %s1100 $name
	number $((256 + one)) && number $two && number 32 && printf %s1201 $name
} >bundle
{
	cat bundle
	head -c $((256 - $(wc -c <bundle))) /dev/zero
	cat gfx1100.co gfx1201.co
} >add.bundle

# add FILE [OPTION...]
add() {
	file=$1
	shift
	t0-run -g 1024 -b 256 "$@" "$file" add out:1024:f32 buf:1024:f32=1 \
		buf:1024:f32=iota i32:1024
}
for c in gfx1100 gfx1201; do
	exits 0 "a $c takes its object of a bundle" add add.bundle --device soft:$c
	has "$tmp/out" '0: 1 2 3 4 5 6 7 8' 'which adds'
done
exits 2 'a chip that is not in it' add add.bundle --device soft:gfx1030
has "$tmp/err" 'hipv4-amdgcn-amd-amdhsa--gfx1201' 'is told what is'
exits 2 'the object of another chip is refused' \
	add add.bundle --device soft:gfx1201 --chip gfx1100
exits 0 'without a device it is the one of gfx1100' t0-run --list add.bundle
exits 0 'or the one that is named' t0-sim add.bundle add -g 1024 -b 256 \
	--chip gfx1201 out:1024:f32 buf:1024:f32=1 buf:1024:f32=iota i32:1024
has "$tmp/out" 'guesses taken over from gfx1100' 'with its costs'
has "$tmp/out" 'range           not known' 'and no range'
is "$(grep -c 'arithmetic.* to ' "$tmp/out")" 0 'nor one of FLOP/s'

exits 0 'what a gfx1100 is simulated to take' add gfx1100.co --device soft
has "$tmp/out" ', 80 % range ' 'has its range'
printf 'dispatch.launch=1\n' >costs
for c in gfx1030 gfx1201; do
	exits 0 "on a $c in software" add $c.co --device soft:$c
	has "$tmp/out" "how far it is off on a $c is not known" \
		'a simulated time has none'
	exits 0 "a $c of other costs" t0-soft run --quiet --device soft:$c \
		--costs costs -- t0-run --device kfd -g 1024 -b 256 $c.co add \
		out:1024:f32 buf:1024:f32=1 buf:1024:f32=iota i32:1024
	has "$tmp/out" "device time by the simulator's clock" 'has its clock'
	is "$(grep -c 'takes no time' "$tmp/err")" 0 'which knows its code'
done
exits 2 'costs of two chips' t0-soft run --device soft,soft:gfx1201 --costs costs \
	-- true
has "$tmp/err" 'of one chip' 'are refused'
plan_done
