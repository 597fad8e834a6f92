#!/bin/sh
# Triton's way to launch: its JSON beside the object (workgroup, dynamic LDS,
# kernel), its own pointers behind the arguments, options over all that.
. tests/tap.sh
run=$T0_BUILD/t0-run
export T0_DEVICE=soft
cd "$tmp" || exit 2

# out[i] = 7 + i of 64 work-items by way of LDS from byte 512 on; behind them
# both pointers that Triton adds.  The metadata has its form: no names, no
# hidden arguments, no LDS.
cat >k.s <<'END'
	.amdgcn_target "amdgcn-amd-amdhsa--gfx1100"
	.text
	.globl	through
	.p2align 8
	.type	through,@function
through:
	s_load_b64 s[2:3], s[0:1], 0
	s_load_b128 s[4:7], s[0:1], 16
	v_lshlrev_b32 v1, 2, v0
	v_add_nc_u32 v2, 7, v0
	ds_store_b32 v1, v2 offset:512
	s_waitcnt lgkmcnt(0)
	ds_load_b32 v3, v1 offset:512
	s_waitcnt lgkmcnt(0)
	global_store_b32 v1, v3, s[2:3]
	v_mov_b32 v4, s4
	v_mov_b32 v5, s5
	v_mov_b32 v6, s6
	v_mov_b32 v7, s7
	v_mov_b32 v8, 0
	global_store_b128 v8, v[4:7], s[2:3] offset:256
	s_endpgm
.Lend:
	.size	through, .Lend - through
	.rodata
	.p2align 6
	.amdhsa_kernel through
		.amdhsa_kernarg_size 32
		.amdhsa_user_sgpr_count 15
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_next_free_vgpr 9
		.amdhsa_next_free_sgpr 8
		.amdhsa_wavefront_size32 1
	.end_amdhsa_kernel
	.amdgpu_metadata
---
amdhsa.version:
  - 1
  - 2
amdhsa.kernels:
  - .name: through
    .symbol: through.kd
    .kernarg_segment_align: 8
    .kernarg_segment_size: 32
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .max_flat_workgroup_size: 1024
    .sgpr_count: 10
    .vgpr_count: 9
    .wavefront_size: 32
    .args:
      - { .address_space: global, .offset: 0, .size: 8, .value_kind: global_buffer }
      - { .offset: 8, .size: 4, .value_kind: by_value }
      - { .address_space: global, .offset: 16, .size: 8, .value_kind: global_buffer }
      - { .address_space: global, .offset: 24, .size: 8, .value_kind: global_buffer }
...
	.end_amdgpu_metadata
END
exits 0 'a kernel of this form' "$T0_BUILD/t0-isa" asm k.s -o k.hsaco
# json [KEY VALUE]...: Triton's file with some of it changed
json() {
	cat >k.json <<-END
	{"hash": "b4", "target": {"backend": "hip", "arch": "gfx1100",
	 "warp_size": 32}, "num_warps": 2, "num_stages": 2, "num_ctas": 1,
	 "extern_libs": [["ocml", "x.bc"]], "arch": "gfx1100",
	 "shared": 768, "global_scratch_size": 0,
	 "profile_scratch_size": 0, "name": "through"}
	END
	while [ $# -gt 1 ]; do
		sed -i "s/\"$1\": [^,}]*/\"$1\": $2/" k.json
		shift 2
	done
}
words() {
	od -An -tu4 -w4 -v "$1" | tr -d ' ' | sed -n "$2p" | tr '\n' ' '
}
numbers=$(seq -s ' ' 7 70)' '

exits 2 'without the file it is another launch' "$run" k.hsaco through \
	out:68:u32 u32:0
has err 'kernel through takes 4 arguments, got 2' 'which lacks pointers'
has err 'If Triton made it' 'and the file, if it is to be had'
exits 0 'all by hand' "$run" k.hsaco through 'out:68:u32>by-hand' u32:0 null \
	null --lds 768 --block 64
is "$(words by-hand 1,64)" "$numbers" 'is right'

json
exits 0 'with its file' "$run" k.hsaco through 'out:68:u32>x' u32:0
is "$(words x 1,64)" "$numbers" 'workgroup and LDS are right'
is "$(words x 65,68)" '0 0 0 0 ' 'both pointers are null'
has err 'k.json: kernel through, 64 work-items a workgroup, 768 bytes of LDS, 2 pointers' \
	'and it is said'
exits 0 'quietly' "$run" -q k.hsaco through out:68:u32 u32:0
is "$(cat err)" '' 'it is not'
exits 0 'its kernel need not be named' "$run" k.hsaco 'out:68:u32>x' u32:0
is "$(words x 1,64)" "$numbers" 'and runs'
exits 0 'its pointers may be given' "$run" k.hsaco 'out:68:u32>x' u32:0 \
	x64:0x100000002 x64:0x300000004
is "$(words x 65,68)" '2 1 4 3 ' 'and arrive'
exits 0 'options are above it: a workgroup' "$run" k.hsaco 'out:68:u32>x' \
	u32:0 --block 32
is "$(words x 1,64)" "$(seq -s ' ' 7 38) $(yes 0 | head -32 | tr '\n' ' ')" \
	'of 32'
exits 3 'LDS' "$run" k.hsaco out:68:u32 u32:0 --lds 512
has err 'but the workgroup has 512 bytes' 'of 512 bytes'

json global_scratch_size 96
exits 0 'a pointer to memory' "$run" k.hsaco 'out:68:u32>x' u32:0 --grid 128
[ "$(words x 65,66)" != '0 0 ' ] && [ "$(words x 67,68)" = '0 0 ' ]
tap_result $? 'is none that is null'
json
sed -i 's/, *$/,/; s/"profile_scratch_size": 0,//' k.json
exits 2 'an older one has one pointer only' "$run" k.hsaco out:68:u32 u32:0
has err 'takes 4 arguments, got 2' 'so this object needs more'
exits 0 'which is given' "$run" k.hsaco 'out:68:u32>x' u32:0 null

# ---- files that say nothing of it ----
unused() {
	exits 2 "$1" "$run" k.hsaco through out:68:u32 u32:0
	has err "k.json is not used: $2" "says $2"
}
json name '"other"'
unused 'of another kernel' 'of a kernel that the object does not have'
json arch '"gfx1101"'
unused 'of another chip' 'of another chip'
echo '[1, 2]' >k.json
unused 'a list' "not Triton's"
echo '{"name": ' >k.json
unused 'half a file' 'line 2: '
rm k.json && mkdir k.json
exits 0 'a folder is none' "$run" k.hsaco 'out:68:u32>x' u32:0 null null \
	--lds 768 --block 64
rmdir k.json
json shared 65537
exits 2 'LDS beyond all' "$run" k.hsaco out:68:u32 u32:0
has err 'k.json: shared: wanted 0..65536' 'is refused'
json num_warps 33
exits 2 'too many warps' "$run" k.hsaco out:68:u32 u32:0
has err 'k.json: num_warps' 'are refused'
json num_ctas 2
exits 2 'clusters' "$run" k.hsaco out:68:u32 u32:0
has err 'num_ctas' 'are refused'
json global_scratch_size -1
exits 2 'scratch below 0' "$run" k.hsaco out:68:u32 u32:0
has err 'global_scratch_size: wanted' 'is refused'

# ---- the real one ----
cat >real.py <<'P'
import os
import triton, triton.language as tl
from triton.backends.compiler import GPUTarget

@triton.jit
def total(x, out, n, B: tl.constexpr):
	i = tl.program_id(0) * B + tl.arange(0, B)
	v = tl.load(x + i, mask=i < n, other=0)
	tl.store(out + tl.program_id(0), tl.sum(v, axis=0))

k = triton.compile(triton.compiler.ASTSource(
	fn=total, constexprs={"B": 1024},
	signature={"x": "*i32", "out": "*i32", "n": "i32", "B": "constexpr"}),
	target=GPUTarget("hip", "gfx1100", 32), options={"num_warps": 4})
open("total.hsaco", "wb").write(k.asm["hsaco"])
beside = [f for f in k.metadata_group.values() if f.endswith(".json")][0]
open("total.json", "w").write(open(beside).read())
P
if command -v python3 >/dev/null && TRITON_CACHE_DIR=$tmp/cache \
	timeout 120 python3 real.py >real.log 2>&1; then
	# Sums of i in two blocks, of which the second ends at 1500.
	exits 0 'a sum compiled by Triton' "$run" --check total.hsaco \
		buf:2k:i32=iota 'out:2:i32>x' i32:1500 --grid 256
	is "$(words x 1,2)" "$((1023 * 1024 / 2)) $((1499 * 1500 / 2 - 1023 * 1024 / 2)) " \
		'is the sum'
else
	skip 'no Triton that compiles for gfx1100'
fi
plan_done
