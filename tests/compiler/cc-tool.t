#!/bin/sh
# t0-cc: objects and assembly from SSA text, statistics, stages, mistakes.
. tests/tap.sh
cc=$T0_BUILD/t0-cc
isa=$T0_BUILD/t0-isa
cd "$tmp" || exit 2

cat >saxpy.ssa <<'END'
kernel saxpy group 256 1 1 wave 32
file "saxpy.c"
arg x ptr f32 noalias readonly
arg y ptr f32 noalias
arg a f32
arg n i32
b0:
	%0 = arg ptr 0 !1
	%1 = arg ptr 1 !1
	%2 = arg f32 2 !1
	%3 = arg i32 3 !1
	%4 = local_id i32 0 !2
	%5 = group_id i32 0 !2
	%6 = const i32 0x100 !2
	%7 = mul i32 %5, %6 !2
	%8 = add i32 %7, %4 !2
	%9 = icmp.slt i1 %8, %3 !3
	branch %9, b1, b2 merge b2 !3
b1:
	%10 = const i32 0x2 !4
	%11 = shl i32 %8, %10 !4
	%12 = load f32 %0, %11 align 4 !4
	%13 = load f32 %1, %11 align 4 !4
	%14 = fma f32 %2, %12, %13 !5
	store %1, %11, %14 align 4 !6
	jump b2
b2:
	ret
END

exits 0 'the help is shown' "$cc" --help
has out 'FILE' 'and tells the usage'
exits 0 'an object is made' "$cc" -o saxpy.co --stats --json saxpy.ssa
cp out stats
has stats '"kernel": "saxpy"' 'the statistics name the kernel'
exits 0 'the verifier finds nothing' "$isa" verify saxpy.co
has out '0 findings' 'and says so'

# ---- the statistics are what the object says ----
exits 0 'the object explains itself' "$isa" meta saxpy.co
value() { sed -n "s/.*\"$1\": \\([0-9]*\\).*/\\1/p" stats; }
has out "$(value vgprs) used" 'the same vector registers'
has out "$(value bytes) bytes, $(value insts) instructions" 'the same code'
has out "$(value waves) of 16 waves" 'the same occupancy'
has out "valu $(value valu), vmem $(value vmem)" 'the same mix'
ok 'a time is predicted' test "$(value cycles)" -gt 0

# ---- it computes ----
exits 0 'it runs on the soft device' "$T0_BUILD/t0-run" -q --device soft \
	--check --grid 512 --block 256 saxpy.co saxpy \
	buf:512:f32=iota out:512:f32=1 f32:2 u32:300
has out '1 3 5 7 9 11 13 15' 'a x + y'

# ---- assembly ----
exits 0 'assembly is made' "$cc" -S -o saxpy.s saxpy.ssa
exits 0 'which our assembler takes' "$isa" asm -o again.co saxpy.s
code_of() {
	"$isa" dis "$1" 2>/dev/null | grep -v s_code_end |
		sed -n 's,// *[0-9a-f]*: .*,,p'
}
code_of saxpy.co >a
code_of again.co >b
ok 'and gives the same code' cmp a b

# Waits and hints are encoded from fields; the assembler reads their text.
for kernel in softmax rms_norm_back attention; do
	"$cc" --kernel $kernel -o w.co && "$cc" -S --kernel $kernel -o w.s &&
		"$isa" asm -o w2.co w.s
	code_of w.co >a
	code_of w2.co >b
	ok "$kernel: the text says what is encoded" \
		sh -c 'test -s a && cmp a b'
	cat w.s >>waits.s
done
has waits.s 's_waitcnt_vscnt null, 0x0' 'a wait for stores'
has waits.s 's_waitcnt_depctr 0xfff' 'a wait for the vector ALU'
has waits.s '| instskip(SKIP_1) | instid1(' 'a delay of two instructions'

exits 0 'attention to int8' "$cc" -S -o int8.s --kernel attention --cache i8
has int8.s v_fma_mixlo_f16 'an fma that is rounded to f16 is one instruction'
has int8.s v_fma_mixhi_f16 'in the upper half, too'
# v_fma_mixlo_f16 rounds once, fma and fcvt twice.
rounded() {
	cat <<END
kernel rounded group 32 1 1 wave 32
arg x ptr f16
arg a f32
b0:
	%0 = arg ptr 0
	%1 = arg f32 1
	%2 = const i32 0x0
	%3 = fma f32 %1, %1, %1$1
	%4 = fcvt f16 %3
	store %0, %2, %4 align 2
	ret
END
}
rounded >twice.ssa
rounded ' contract' >once.ssa
exits 0 'an fma and its conversion' "$cc" -S -o twice.s twice.ssa
ok 'keep both roundings' sh -c 'grep -q v_cvt_f16_f32 twice.s && ! grep -q v_fma_mix twice.s'
exits 0 'an fma that may be contracted' "$cc" -S -o once.s once.ssa
has once.s v_fma_mixlo_f16 'leaves its rounding to the conversion'
# Of rows of their own for each lane, four loads that differ by a constant.
cat >sums.ssa <<'END'
kernel sums group 32 1 1 wave 32
arg x ptr f32
arg stride i32
arg i i32
b0:
	%0 = arg ptr 0
	%1 = arg i32 1
	%2 = arg i32 2
	%3 = local_id i32 0
	%4 = mul i32 %3, %1
	%5 = ptradd ptr %0, %4
	%6 = mul i32 %3, %2
	%7 = load f32 %5, %6 align 4
	%8 = load f32 %5, %6 +64 align 4
	%9 = load f32 %5, %6 +128 align 4
	%10 = load f32 %5, %6 +4092 align 4
	%11 = fadd f32 %7, %8
	%12 = fadd f32 %9, %10
	%13 = fadd f32 %11, %12
	%14 = const i32 0x2
	%15 = shl i32 %3, %14
	store %0, %15, %13 align 4
	ret
END
exits 0 'loads of one row' "$cc" -S -o sums.s sums.ssa
is "$(grep -c v_add_co_u32 sums.s)" 2 'have one address: the row, and what they add'
if command -v llvm-objdump-19 >/dev/null; then
	exits 0 'LLVM reads the object' llvm-objdump-19 -d -l saxpy.co
	has out 'saxpy.c:4' 'with its source lines'
	has out 'v_cmp_' 'and its code'
else
	skip 'no llvm-objdump-19'
	skip 'no llvm-objdump-19'
	skip 'no llvm-objdump-19'
fi
if command -v llvm-dwarfdump-19 >/dev/null; then
	exits 0 'LLVM finds no fault in the line table' \
		llvm-dwarfdump-19 --verify saxpy.co
else
	skip 'no llvm-dwarfdump-19'
fi

# ---- printf ----
cat >hello.ssa <<'END'
kernel hello group 64 1 1 wave 32
arg n i32
format "item %d: 100%% of %d\x0a"
b0:
	%0 = arg i32 0
	%1 = local_id i32 0
	%2 = const i32 0x3
	%3 = icmp.slt i1 %1, %2
	branch %3, b1, b2 merge b2
b1:
	printf %1, %0 0
	jump b2
b2:
	ret
END
exits 0 'a kernel that prints' "$cc" -o hello.co hello.ssa
exits 0 'prints' "$T0_BUILD/t0-run" -q --device soft --check --grid 64 \
	--block 64 hello.co hello u32:7
grep item out >items
printf 'item 0: 100%% of 7\nitem 1: 100%% of 7\nitem 2: 100%% of 7\n' >wanted
ok 'what it was told, in order' cmp items wanted

# ---- the library ----
exits 0 'the library is listed' "$cc" --list
has out 'softmax' 'with its kernels'
exits 0 'one is compiled' "$cc" --kernel softmax --type bf16 -o k.co
exits 0 'and verified' "$isa" verify k.co
exits 2 'an unknown one is refused' "$cc" --kernel none
has err '--list' 'with a hint'
exits 2 'so is an unknown type' "$cc" --kernel softmax --type f8

# ---- prebuilt and cached ones ----
T0_CACHE=$PWD/cache
export T0_CACHE
exits 0 'a usual shape' "$cc" --kernel softmax --type bf16 --cached -o p.co
has out ', pack' 'is prebuilt'
ok 'and is what is compiled' cmp p.co k.co
exits 0 'another one' "$cc" --kernel softmax --group 64 --cached -o c1.co
has out ', compiled' 'is compiled'
exits 0 'again' "$cc" --kernel softmax --group 64 --cached -o c2.co
has out ', cache' 'it is kept'
ok 'as it was' cmp c1.co c2.co
T0_CACHE=$PWD/k.co/below exits 0 'without a place to keep it' \
	"$cc" --kernel softmax --group 64 --cached
has err 'T0_CACHE' 'the remedy is told'

# ---- levels and stages ----
for level in 0 1 2 3; do
	exits 0 "level $level" "$cc" --O$level -o o.co saxpy.ssa
done
exits 0 'a stage is shown' "$cc" --dump select -o o.co saxpy.ssa
has err '; --- select' 'by its name'
has err 'v_cmp_gt_i32' 'with its instructions'
exits 0 'passes too' "$cc" --dump ssa -o o.co saxpy.ssa
has err '; --- ssa:' 'by theirs'

# ---- mistakes ----
sed 's/fma f32/fmaa f32/' saxpy.ssa >bad.ssa
exits 2 'an unknown operation is refused' "$cc" bad.ssa
has err 'line 24' 'with its line'
sed 's/icmp.slt i1 %8, %3/icmp.slt i1 %8, %2/' saxpy.ssa >bad.ssa
exits 2 'a type mismatch is refused' "$cc" bad.ssa
has err '%9' 'with the value'
exits 2 'an unknown chip is refused' "$cc" --chip gfx90a saxpy.ssa
has err 'gfx90a' 'by name'
exits 2 'a missing file is refused' "$cc" none.ssa
exits 2 'so is no file' "$cc"
plan_done
