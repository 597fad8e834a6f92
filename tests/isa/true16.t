#!/bin/sh
# Halves of VGPRs in text, v1.l and v1.h: as LLVM writes and reads them.
. tests/tap.sh
isa=$T0_BUILD/t0-isa

# What LLVM 22 made of kernels of Triton 3.9, and how its text has it.
cat >"$tmp/known" <<'TEXT'
8038027e v_mov_b16_e32 v1.l, 0
0139027f v_mov_b16_e32 v1.h, v1.l
80380a7f v_mov_b16_e32 v5.h, 0
85390a7e v_mov_b16_e32 v5.l, v5.h
4a405dd6ff9aaa01ff7f0000 v_cndmask_b16 v74.h, 0x7fff, v77.l, vcc_lo
4b405dd6ffdc0200ff7f0000 v_cndmask_b16 v75.h, 0x7fff, v110.l, s0
4d005dd6ffe00a00ff7f0000 v_cndmask_b16 v77.l, 0x7fff, v112.l, s2
0015a07e v_cvt_f16_f32_e32 v80.l, v0
3915a07f v_cvt_f16_f32_e32 v80.h, v57
05170a7e v_cvt_f32_f16_e32 v5, v5.l
02005dd602070200 v_cndmask_b16 v2.l, v2.l, v3.l, s0
00105dd600010200 v_cndmask_b16 v0.l, v0.l, v0.h, s0
0001097c v_cmp_gt_f16_e32 vcc_lo, v0.l, v0.h
TEXT
sed 's/ .*//' "$tmp/known" >"$tmp/hex"
sed 's/^[0-9a-f]* //' "$tmp/known" >"$tmp/text"
exits 0 'hex is read' "$isa" dis --lines --true16 "$tmp/hex"
is "$(cat "$tmp/out")" "$(cat "$tmp/text")" 'the text is that of LLVM 22'
exits 0 'text is read' "$isa" asm --lines "$tmp/text"
is "$(cat "$tmp/out")" "$(cat "$tmp/hex")" 'so are the bytes'

# By the encoding: op_sel of sources in bits 11 to 13, of the result in bit 14.
cat >"$tmp/text" <<'TEXT'
v_fma_f16 v1.h, v2.l, v3.h, v4.l
v_mad_u16 v1.h, v2.h, v3.l, v4.h
v_pack_b32_f16 v1, v2.l, v3.h
v_max_f16_e64 v1.l, |v2.h|, -v3.l clamp
v_alignbit_b32 v1, v2, v3, v4.h
v_interp_p10_f16_f32 v1, v2.h, v3, v4.l wait_exp:0
v_interp_p2_f16_f32 v1.h, v2.l, v3, v4 wait_exp:7
TEXT
cat >"$tmp/plain" <<'TEXT'
v_fma_f16 v1, v2, v3, v4 op_sel:[0,1,0,1]
v_mad_u16 v1, v2, v3, v4 op_sel:[1,0,1,1]
v_pack_b32_f16 v1, v2, v3 op_sel:[0,1,0]
v_max_f16_e64 v1, |v2|, -v3 op_sel:[1,0,0] clamp
v_alignbit_b32 v1, v2, v3, v4 op_sel:[0,0,1,0]
v_interp_p10_f16_f32 v1, v2, v3, v4 op_sel:[1,0,0,0] wait_exp:0
v_interp_p2_f16_f32 v1, v2, v3, v4 op_sel:[0,0,0,1] wait_exp:7
TEXT
"$isa" asm --lines "$tmp/text" >"$tmp/halves"
exits 0 'the same by op_sel' "$isa" asm --lines "$tmp/plain"
is "$(cat "$tmp/halves")" "$(cat "$tmp/out")" 'a half named is a bit of op_sel'
head -n 5 "$tmp/halves" >"$tmp/hex"
is "$("$isa" dis --lines --true16 "$tmp/hex")" "$(head -n 5 "$tmp/text")" \
	'and is printed'

if command -v llvm-mc-19 >/dev/null; then
	cat >"$tmp/text" <<'TEXT'
v_add_f16_e32 v5.l, v1.h, v2.l
v_add_f16_dpp v1.h, v2.l, v3.h row_shl:1 row_mask:0xf bank_mask:0xf
v_floor_f16_e32 v1.h, v2.l
v_mov_b16_e32 v1.l, v2.h
TEXT
	llvm-mc-19 -triple=amdgcn -mcpu=gfx1100 -mattr=+real-true16 \
		-show-encoding "$tmp/text" | sed -n \
		's/.*encoding: \[\(.*\)\]/\1/p' | sed 's/0x//g; s/,//g' \
		>"$tmp/hex"
	"$isa" asm --lines "$tmp/text" >"$tmp/out"
	is "$(cat "$tmp/out")" "$(cat "$tmp/hex")" 'llvm-mc-19 has these bytes'
	is "$("$isa" dis --lines --true16 "$tmp/hex")" "$(cat "$tmp/text")" \
		'and this text'
else
	skip 'llvm-mc-19 is not installed'
fi

# Objects of clang come back through it.
same=0 files=0
for file in tests/data/kernels/*.co tests/data/verify/*.co; do
	files=$((files + 1))
	"$isa" dis --true16 -o "$tmp/text.s" "$file"
	"$isa" asm "$tmp/text.s" -o "$tmp/again.co" 2>"$tmp/err" &&
		"$isa" dis "$file" | sed 's|.*// [0-9a-f]*: ||' >"$tmp/was" &&
		"$isa" dis "$tmp/again.co" | sed 's|.*// [0-9a-f]*: ||' >"$tmp/is"
	cmp -s "$tmp/was" "$tmp/is" && same=$((same + 1)) ||
		diag "${file##*/}: $(head -n 1 "$tmp/err")"
done
is "$same" "$files" 'objects come back from such text'
plan_done
