#!/bin/sh
# t0-isa asm and meta on the command line, with prebuilt assembly text; what it
# makes runs on the soft device.
. tests/tap.sh
isa=$T0_BUILD/t0-isa
data=$T0_SRC/tests/data

exits 0 'a file is assembled' "$isa" asm "$data/asm/triple.s" -o "$tmp/t.co"
exits 0 'the object runs' "$T0_BUILD/t0-run" -q --device soft --grid 128 \
	--block 64 --csv "$tmp/t.co" triple 'out:100:u32=iota>'"$tmp/x" u32:100
is "$(od -An -tu4 -w400 -v "$tmp/x" | tr -s ' ')" \
	" $(seq -s ' ' 0 3 297)" 'and computes what it says'
exits 0 'a code object version is chosen' "$isa" asm \
	--code-object-version 6 "$data/asm/triple.s" -o "$tmp/6.co"
is "$(od -An -tu1 -j8 -N1 "$tmp/6.co" | tr -d ' ')" 4 'it is in the header'
cp "$data/asm/triple.s" "$tmp/copy.s"
exits 0 'without -o' "$isa" asm "$tmp/copy.s"
ok 'the object stands beside the text' cmp "$tmp/t.co" "$tmp/copy.co"
"$isa" asm - <"$data/asm/triple.s" >"$tmp/stdout.co"
ok '- reads stdin and writes stdout' cmp "$tmp/t.co" "$tmp/stdout.co"

exits 0 'the object is disassembled' "$isa" dis "$tmp/t.co"
has "$tmp/out" 's_sendmsg sendmsg(MSG_DEALLOC_VGPRS)' 'its code is there'

# ---- mistakes ----
printf '\ts_nop 0\n\tv_foo v0\n' >"$tmp/bad.s"
exits 2 'a mistake is refused' "$isa" asm "$tmp/bad.s" -o "$tmp/bad.co"
has "$tmp/err" 'bad.s:2:2: unknown instruction' 'with its place'
has "$tmp/err" '	v_foo v0' 'the line'
ok 'nothing is written' test ! -e "$tmp/bad.co"
printf '\t.globl k\nk: s_endpgm\n\t.data\n\t.quad nowhere\n' >"$tmp/bad.s"
exits 2 'an undefined symbol is refused' "$isa" asm "$tmp/bad.s" -o "$tmp/b.co"
has "$tmp/err" "undefined symbol 'nowhere'" 'by name'
{
	printf '\t.section .got,"aw"\n\t.quad k\n\t.text\n\t.globl k\n'
	printf 'k:\n\ts_add_u32 s0, s0, k@gotpcrel32@lo+4\n'
} >"$tmp/bad.s"
exits 2 'a GOT of its own beside one that asm makes' "$isa" asm "$tmp/bad.s" \
	-o "$tmp/b.co"
has "$tmp/err" "references to 'k'" 'is refused'
exits 2 'a version that does not exist' "$isa" asm --code-object-version 3 \
	"$data/asm/triple.s" -o "$tmp/b.co"
exits 2 'a file for another chip' "$isa" asm --chip gfx1102 \
	"$data/asm/triple.s" -o "$tmp/b.co"
has "$tmp/err" 'the file is for gfx1100' 'says which'

# ---- lines ----
printf 's_nop 1\n  v_add_f32 v0, v1, v2 ; x\nfoo\n\ns_endpgm // y' |
	"$isa" asm --lines - >"$tmp/lines"
is "$(cat "$tmp/lines")" '010080bf
01050006
error: unknown instruction
error: no instruction
0000b0bf' 'one answer per line'
for byte in 033 177 302\\233; do
	is "$(printf "v_mov_b32 \\$byte" | "$isa" asm --lines - |
		LC_ALL=C tr -d '[ -~]' | tr -d '\n')" '' "asm: no terminal obeys \\$byte"
	is "$(printf "00\\$byte" | "$isa" dis --hex --lines - |
		LC_ALL=C tr -d '[ -~]' | tr -d '\n')" '' "dis: nor \\$byte"
done
is "$(echo 's_and_saveexec_b64 s[0:1], vcc' | "$isa" asm --lines --wave 64 -)" \
	6a2180be 'lines for wave64'
is "$(echo 'v_cmp_eq_f32 vcc, v0, v1' | "$isa" asm --lines -)" \
	'error: wrong register width' 'wave32 has no 64-bit mask'
sed -n 's/^\([0-9a-f]*\)	.*/\1/p' "$data/asm/gfx1100-wave64.txt" >"$tmp/hex"
"$isa" dis --lines --wave 64 "$tmp/hex" |
	"$isa" asm --lines --wave 64 - >"$tmp/again"
ok 'what is disassembled assembles to the same bytes' \
	cmp "$tmp/hex" "$tmp/again"

# ---- unused sources ----
# Words of LLVM 21 and later, which writes 128 (0) into sources that an
# instruction does not have; the chip does not look at them.
cat >"$tmp/hex" <<'END'
0600c0d500010102
030003d500030202
06400fcc0003021a
0600fcd700010102
END
"$isa" dis --lines "$tmp/hex" >"$tmp/text"
is "$(cat "$tmp/text")" \
	'v_frexp_mant_f32_e64 v6, v0 unused_src1:128 unused_src2:128
v_add_f32_e64 v3, v0, v1 unused_src2:128
v_pk_add_f16 v6, v0, v1 unused_src2:128
error: unknown opcode' 'unused sources are printed behind the instruction'
sed '$d' "$tmp/text" | "$isa" asm --lines - >"$tmp/again"
sed '$d' "$tmp/hex" >"$tmp/known"
ok 'and assemble to the same bytes' cmp "$tmp/known" "$tmp/again"
is "$(echo 'v_add_f32_e64 v3, v0, v1 unused_src1:128' | "$isa" asm --lines -)" \
	'error: the instruction has this source' 'a used source is no unused one'
sed 's/v_mul_lo_u32 .*/& unused_src2:128/' "$data/asm/triple.s" >"$tmp/u.s"
exits 0 'a kernel with such a word' "$isa" asm "$tmp/u.s" -o "$tmp/u.co"
ok 'is another one' sh -c "! cmp -s '$tmp/t.co' '$tmp/u.co'"
exits 0 'is verified' "$isa" verify "$tmp/u.co"
exits 0 'simulated' "$T0_BUILD/t0-sim" "$tmp/u.co" triple
exits 0 'and runs' "$T0_BUILD/t0-run" -q --device soft --grid 128 --block 64 \
	"$tmp/u.co" triple 'out:100:u32=iota>'"$tmp/y" u32:100
ok 'to the same results' cmp "$tmp/x" "$tmp/y"

# ---- meta ----
exits 0 'meta' "$isa" meta "$tmp/t.co"
has "$tmp/out" '3 used, 24 allocated, 0 spilled' 'registers'
has "$tmp/out" '84 bytes, 15 instructions' 'code'
has "$tmp/out" '16 of 16 waves per SIMD on gfx1100' 'occupancy'
exits 0 'meta as JSON' "$isa" meta --json "$data/kernels/reduce.co"
has "$tmp/out" '"lds": 1024' 'LDS is a number'
exits 0 'meta without metadata' "$isa" meta "$data/kernels/relocs.co"
has "$tmp/out" 'there is no metadata' 'says so'
exits 2 'meta of no kernel' "$isa" meta -k foo "$tmp/t.co"
plan_done
