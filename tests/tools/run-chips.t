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
# bundle CHIP...: as clang writes it; the count, offset, size and name of each, bytes
bundle() {
	at=512
	{
		printf __CLANG_OFFLOAD_BUNDLE__
		number $#
		for b; do
			name=hipv4-amdgcn-amd-amdhsa--$b
			bytes=$(($(wc -c <"$b.co")))
			number $at && number $bytes && number ${#name}
			printf %s "$name"
			at=$((at + bytes))
		done
		head -c 512 /dev/zero
	} | head -c 512
	for b; do cat "$b.co"; done
}
bundle gfx1100 gfx1201 >add.bundle

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
	if [ ! -e "$T0_BUILD/libt0-soft-timed.so" ]; then
		skip 'this build has no adapter' 3
		continue
	fi
	exits 0 "a $c of other costs" t0-soft run --quiet --device soft:$c \
		--costs costs -- t0-run --device kfd -g 1024 -b 256 $c.co add \
		out:1024:f32 buf:1024:f32=1 buf:1024:f32=iota i32:1024
	has "$tmp/out" "device time by the simulator's clock" 'has its clock'
	is "$(grep -c 'takes no time' "$tmp/err")" 0 'which knows its code'
done
exits 2 'costs of two chips' t0-soft run --device soft,soft:gfx1201 --costs costs \
	-- true
has "$tmp/err" 'of one chip' 'are refused'

# Generic targets (AMDGPUUsage): code that every chip of a generation runs.
command -v clang-19 ld.lld-19 >/dev/null 2>&1 || {
	skip 'clang-19 or lld-19 is not installed' 45
	plan_done
	exit
}
cat >k.cl <<'C'
kernel void k(global int *p) { p[__builtin_amdgcn_workitem_id_x()] = 7; }
C
for of in gfx10-1:gfx1010 gfx10-3:gfx1030 gfx11:gfx1100 gfx11:gfx1151 \
	gfx12:gfx1200 gfx12:gfx1201; do
	target=${of%:*}-generic chip=${of#*:}
	clang-19 -x cl -cl-std=CL2.0 -nogpulib -O2 -target amdgcn-amd-amdhsa \
		-mcpu=$target -mcode-object-version=6 k.cl -o $target.co \
		2>clang.err
	exits 0 "a $chip runs $target" t0-run --device soft:$chip -g 32 -b 32 \
		$target.co k out:32:i32
	has "$tmp/out" '0: 7 7 7 7 7 7 7 7' 'which stores'
	exits 0 "it is simulated with a $chip's costs" t0-sim --chip $chip \
		$target.co k -g 32 -b 32 out:32:i32
	for c in dis meta verify; do
		exits 0 "$target: t0-isa $c" t0-isa $c $target.co
	done
	exits 0 "$target: t0-sim chooses a chip" t0-sim $target.co k -g 32 -b 32 \
		out:32:i32
done
bundle gfx12-generic gfx11-generic >k.bundle
exits 0 'a gfx1151 takes its generic object of a bundle' t0-run \
	--device soft:gfx1151 -g 32 -b 32 k.bundle k out:32:i32
exits 2 'a gfx1030 does not run gfx10-1-generic' t0-run --device soft:gfx1030 \
	-g 32 -b 32 gfx10-1-generic.co k out:32:i32
exits 2 'nor do costs of gfx1151 fit gfx12-generic' t0-sim --chip gfx1151 \
	gfx12-generic.co k -g 32 -b 32 out:32:i32
plan_done
