#!/bin/sh
# t0-isa dis, info and list: answers, JSON, and what bad input gets.
. tests/tap.sh
isa="$T0_BUILD/t0-isa"

valid_json() {
	python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$1"
}

# ---- dis ----
printf '7e040280 x\n' >"$tmp/bad.hex"
printf '8002047e 000000bf\n' >"$tmp/two.hex"
exits 0 'hex text is disassembled' "$isa" dis --hex "$tmp/two.hex"
has "$tmp/out" 'v_mov_b32_e32 v2, 0 ' 'the first instruction'
has "$tmp/out" 's_cmp_eq_i32 s0, s0 ' 'the second instruction'
exits 0 'standard input is a file' sh -c \
	"echo 0x80,0x02,0x04,0x7e | '$isa' dis --hex -"
has "$tmp/out" '// 000000000000: 8002047e' 'address and bytes are shown'
exits 2 'what is no hex is refused' "$isa" dis --hex "$tmp/bad.hex"
has "$tmp/err" 'bad.hex: hex input, character 10' 'and told where'

printf '\001\002\003' >"$tmp/short.bin"
exits 0 'three bytes are shown as bytes' "$isa" dis --raw "$tmp/short.bin"
has "$tmp/out" '.byte' 'that are no instruction'
printf '\377\377\377\377' >"$tmp/none.bin"
exits 0 'an unknown word is shown as a word' "$isa" dis --raw "$tmp/none.bin"
has "$tmp/out" '.long 0xffffffff // ' 'and why'

printf '8002047e\nffffffff\nzz\n\n8002047e00\n' >"$tmp/lines"
exits 0 'one answer for each line' "$isa" dis --lines "$tmp/lines"
is "$(wc -l <"$tmp/out")" 5 'five lines, five answers'
is "$(sed -n 1p "$tmp/out")" 'v_mov_b32_e32 v2, 0' 'an instruction'
is "$(sed -n '2,$p' "$tmp/out" | grep -c '^error: ')" 4 'four errors'

exits 0 'a code object is disassembled' "$isa" dis tests/data/kernels/saxpy.co
has "$tmp/out" 'saxpy:' 'under its kernel'"'"'s name'
has "$tmp/out" 's_endpgm' 'to its end'
exits 0 'JSON is printed' "$isa" dis --json tests/data/kernels/saxpy.co
if command -v python3 >/dev/null; then
	ok 'it is valid' valid_json "$tmp/out"
else
	skip 'JSON is valid: python3 is not installed'
fi
exits 0 'CSV is printed' "$isa" dis --csv tests/data/kernels/saxpy.co
is "$(head -1 "$tmp/out" | tr -d '\r')" 'kernel,address,bytes,text' 'with a heading'
exits 0 'one kernel alone' "$isa" dis -k saxpy tests/data/kernels/saxpy.co
exits 2 'a kernel that is not there' \
	"$isa" dis -k nothing tests/data/kernels/saxpy.co
has "$tmp/err" 'nothing' 'is named'
exits 0 'output goes to a file' \
	"$isa" dis -o "$tmp/file" tests/data/kernels/saxpy.co
has "$tmp/file" 's_endpgm' 'that has it'

# ---- trouble ----
head -c 700 tests/data/kernels/saxpy.co >"$tmp/cut.co"
exits 2 'a truncated ELF is refused' "$isa" dis "$tmp/cut.co"
has "$tmp/err" 'cut.co' 'by name'
: >"$tmp/empty"
exits 2 'an empty file is no code object' "$isa" dis "$tmp/empty"
exits 2 'a missing file is refused' "$isa" dis "$tmp/nothing"
has "$tmp/err" 'No such file' 'as such'
exits 2 'a wave of 7 is refused' "$isa" dis --wave 7 "$tmp/two.hex"
has "$tmp/err" 'wanted 32 or 64' 'and what is wanted is told'
exits 2 'an unknown chip is refused' "$isa" dis --chip gfx1 "$tmp/two.hex"
exits 2 'an unknown option is refused' "$isa" dis --waves 32 "$tmp/two.hex"
exits 2 'no file is refused' "$isa" dis
exits 2 'no command is refused' "$isa"
exits 2 'an unknown command is refused' "$isa" undo
if [ -w /dev/full ]; then
	exits 2 'a full disk is noticed' sh -c \
		"'$isa' dis tests/data/kernels/saxpy.co >/dev/full"
	exits 2 'in a file, too' \
		"$isa" dis -o /dev/full tests/data/kernels/saxpy.co
	exits 2 'and by list' sh -c "'$isa' list >/dev/full"
else
	skip '/dev/full is not here'
fi

# ---- wave sizes ----
printf '020012d402090200\n' >"$tmp/mask"
exits 0 'wave32' "$isa" dis --lines --wave 32 "$tmp/mask"
is "$(cat "$tmp/out")" 'v_cmp_eq_f32_e64 s2, v2, v4' 'masks are one register'
exits 0 'wave64' "$isa" dis --lines --wave 64 "$tmp/mask"
is "$(cat "$tmp/out")" 'v_cmp_eq_f32_e64 s[2:3], v2, v4' 'masks are a pair'

# ---- info and list ----
exits 0 'an instruction is explained' "$isa" info v_add_f32
has "$tmp/out" 'VOP2 3 (0x3), VOP3 259 (0x103)' 'with its opcodes'
has "$tmp/out" 'v_dual_add_f32' 'and its dual-issue halves'
exits 0 'by its name in VOPD, too' "$isa" info v_dual_add_f32
exits 2 'an unknown one is refused' "$isa" info v_add_f33
has "$tmp/err" 'v_add_f33' 'by name'
exits 2 'nothing is refused' "$isa" info
exits 0 'all are listed' "$isa" list --csv
is "$(wc -l <"$tmp/out")" 1142 '1141 and a heading'
exits 0 'as JSON' "$isa" list --json
if command -v python3 >/dev/null; then
	ok 'that is valid' valid_json "$tmp/out"
else
	skip 'JSON is valid: python3 is not installed'
fi

# ---- generations ----
printf '044008a0\n' >"$tmp/float"
exits 0 'gfx1151 has scalar floats' \
	"$isa" dis --lines --chip gfx1151 "$tmp/float"
is "$(cat "$tmp/out")" 's_add_f32 s8, s4, s64' 'such as this'
exits 0 'gfx1100 is asked' "$isa" dis --lines "$tmp/float"
has "$tmp/out" 'error: unknown opcode' 'and has not'
exits 0 'generations are told apart' "$isa" diff --csv gfx1100 gfx1150
is "$(grep -c ',added,' "$tmp/out")" 59 '59 instructions were added'
is "$(grep -cv ',added,' "$tmp/out")" 1 'nothing was removed or changed'
printf '7c0005ec0800000002000000\n' >"$tmp/flat"
exits 0 'gfx1201 has flat loads of 96 bits' \
	"$isa" dis --lines --chip gfx1201 "$tmp/flat"
is "$(cat "$tmp/out")" 'flat_load_b32 v8, v[2:3]' 'such as this'
printf 'flat_load_b32 v8, v[2:3]\n' >"$tmp/text"
exits 0 'they are assembled' "$isa" asm --lines --chip gfx1201 "$tmp/text"
is "$(cat "$tmp/out")" '7c0005ec0800000002000000' 'to the same bytes'
exits 0 'what gfx12 changed' "$isa" diff --csv gfx1100 gfx1201
has "$tmp/out" 'v_add_f64,moved,VOP3 807,VOP2 2' 'v_add_f64 moved'
has "$tmp/out" 's_add_u32,removed,SOP2 0,' 's_add_u32 is gone'
has "$tmp/out" 's_wait_loadcnt,added,"",SOPP 64' 's_wait_loadcnt came'
has "$tmp/out" 'v_wmma_f32_16x16x16_f16,operands,' 'matrices shrank'
exits 0 'what gfx11 changed' "$isa" diff --csv gfx1030 gfx1100
has "$tmp/out" 'ds_write_b32,renamed,ds_write_b32,ds_store_b32' 'names'
has "$tmp/out" 's_mov_b32,moved,SOP1 3,SOP1 0' 'opcodes'
has "$tmp/out" 's_memtime,removed,SMEM 36' 'clocks'
has "$tmp/out" 'ds_cmpst_b32,removed,DS 16' 'compare and swap'
has "$tmp/out" 'v_wmma_f32_16x16x16_f16,added,' 'matrices'
has "$tmp/out" 'SMEM,fields,' 'and where the fields are'
printf 'ds_write_b32 v0, v1 offset:4\nv_add_f32_sdwa v0, v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0 src1_sel:DWORD\n' >"$tmp/text"
exits 0 'gfx1030 is assembled' "$isa" asm --lines --chip gfx1030 "$tmp/text"
is "$(cat "$tmp/out")" '040034d800010000
f904000601150006' 'as LLVM 19 does'
cp "$tmp/out" "$tmp/hex"
exits 0 'and read' "$isa" dis --lines --chip gfx1030 "$tmp/hex"
cmp -s "$tmp/out" "$tmp/text"
is $? 0 'as it was written'
exits 0 'its names are read for gfx1100' "$isa" asm --lines "$tmp/text"
has "$tmp/out" '040034d800010000' 'where they still are instructions'
exits 0 'as JSON' "$isa" diff --json gfx1100 gfx1150
exits 2 'one chip is not enough' "$isa" diff gfx1100
exits 2 'an unknown one is refused' "$isa" diff gfx1100 gfx900
has "$tmp/err" 'gfx900' 'by name'

exits 0 'help is given' "$isa" --help
has "$tmp/out" 'dis' 'and names the commands'
plan_done
