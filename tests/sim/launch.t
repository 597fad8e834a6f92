#!/bin/sh
# t0-sim with the operands of t0-run: the instructions are those that the soft
# device executes with them, the grid counts work-items, several workgroups
# share a WGP as LDS and waves let them, and both tools refuse the same.
. tests/tap.sh
sim=$T0_BUILD/t0-sim run=$T0_BUILD/t0-run
data=$T0_SRC/tests/data/kernels
export T0_DEVICE=soft
cd "$tmp" || exit 2

field() { # NAME of the JSON in `out`
	sed -n "s/^ *\"$1\": \([0-9.a-z\"]*\),\{0,1\}\$/\1/p" out | tail -n 1
}

# same OBJECT KERNEL ARGUMENT...: kernels that clang compiled, on the WGP that
# gets every 48th workgroup
same() {
	object=$data/$1.co kernel=$2
	shift 2
	exits 0 "$kernel is executed" "$run" -q --trace t.trace "$object" \
		"$kernel" "$@"
	"$sim" -q --json --trace t.trace "$object" "$kernel" >out
	executed=$(field instructions)
	exits 0 "$kernel is simulated" "$sim" -q --json "$object" "$kernel" "$@"
	is "$(field instructions)" "$executed" "$kernel: all it executes"
}
same saxpy saxpy f32:2 buf:1k:f32 buf:1k:f32 u32:1000 --grid 1024 --block 256
is "$(field workgroups)" 4 'of four workgroups'
same saxpy saxpy f32:2 buf:20k:f32 buf:20k:f32 u32:20000 --grid 20000 \
	--block 256
is "$(field workgroups)" 79 'and 78 whole ones and a part'
same reduce reduce buf:1k:f32 buf:4:f32 u32:1000 --grid 1024 --block 256
same scan scan buf:256:i32 buf:256:i32 lds:2k --grid 256 --block 256
same transpose transpose buf:4k:f32 buf:4k:f32 u32:64 u32:64 --grid 64,64
is "$(field workgroups)" 16 'of 4 by 4 workgroups'
same histogram histogram buf:1k:u32 buf:64:u32 u32:1001 --grid 1024 --block 128
same bitonic bitonic buf:1k:u32=random --grid 256 --block 256
same sgemm sgemm buf:4k:f32 buf:4k:f32 buf:4k:f32 u32:50 u32:64 u32:64 \
	--grid 64,64 --block 16,16
same wmma wmma buf:256:f16 buf:256:f16 buf:256:f32 buf:256:f32 --block 32
is "$(field flop)" 8192.0 'a product of 16 by 16 by 16'

# ---- loops as long as a buffer says; a part of a workgroup ----
cat >times.s <<'S'
	.amdgcn_target "amdgcn-amd-amdhsa--gfx1100"
	.text
	.globl	times
	.p2align 8
	.type	times,@function
times:
	s_load_b64 s[2:3], s[0:1], 0
	s_waitcnt lgkmcnt(0)
	s_load_b32 s4, s[2:3], 4
	s_waitcnt lgkmcnt(0)
.Lnext:
	s_sub_u32 s4, s4, 1
	s_cmp_lg_u32 s4, 0
	s_cbranch_scc1 .Lnext
	s_endpgm
.Lend:
	.size	times, .Lend - times
	.rodata
	.p2align 6
	.amdhsa_kernel times
		.amdhsa_kernarg_size 8
		.amdhsa_user_sgpr_count 15
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_next_free_vgpr 4
		.amdhsa_next_free_sgpr 6
		.amdhsa_wavefront_size32 1
	.end_amdhsa_kernel
	.amdgpu_metadata
---
amdhsa.version: [ 1, 2 ]
amdhsa.kernels:
  - .name: times
    .symbol: times.kd
    .kernarg_segment_align: 8
    .kernarg_segment_size: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .max_flat_workgroup_size: 1024
    .sgpr_count: 8
    .vgpr_count: 4
    .wavefront_size: 32
    .args:
      - { .address_space: global, .offset: 0, .size: 8, .value_kind: global_buffer }
...
	.end_amdgpu_metadata
S
exits 0 'a loop is assembled' "$T0_BUILD/t0-isa" asm times.s -o times.co
# Of a wave: 4 before, 3 a round, the end.
for n in 1 2 5; do
	exits 0 "as long as a buffer says: $n" "$sim" -q --json times.co \
		buf:2:u32=9,$n
	is "$(field instructions)" $((5 + 3 * n)) "$n rounds"
done
# The last of 49 workgroups, on the WGP of the first, has 16 work-items of 64.
exits 0 'a part of a workgroup' "$sim" -q --json times.co buf:2:u32=1,1 \
	--grid 100 --block 64
is "$(field workgroups)" 2 'is one'
exits 0 'on the first WGP' "$sim" -q --json times.co buf:2:u32=1,1 \
	--grid $((48 * 64 + 16)) --block 64
is "$(field instructions)" $((8 * 3)) 'are three waves of two workgroups'

# ---- what a WGP holds: 128 KiB of LDS, in workgroups of at most 64 ----
for lds in 65536:2 32768:4 20480:6 16384:8; do
	exits 0 "LDS of ${lds%:*} bytes" "$sim" -q --json times.co \
		buf:2:u32=1,1 --lds "${lds%:*}" --grid 65536 --block 64
	is "$(field at_once)" "${lds#*:}" "leaves room for ${lds#*:} workgroups"
done
"$sim" -q --json times.co buf:2:u32=1,1 --lds 32768 --grid 65536 --block 64 >out
is "$(field workgroups) $(field rounds)" '1024 6.0' \
	'22 on the fullest WGP are 6 rounds of 4'

# ---- Triton's file counts here, too ----
cp times.co tri.hsaco
echo '{"name": "times", "num_warps": 4, "shared": 65536,
	"target": {"arch": "gfx1100", "warp_size": 32}}' >tri.json
exits 0 'with its JSON' "$sim" --json tri.hsaco buf:2:u32=1,1 --grid 512
has err 'tri.json: kernel times, 128 work-items' 'it says so'
is "$(field workgroups) $(field at_once)" '4 2' 'workgroup and LDS are its own'

# ---- the same mistakes, the same words ----
refused() {
	exits 2 "t0-run refuses $1" "$run" -q --dry-run "$@"
	sed 's/^t0-run: //' err >said
	exits 2 'and so does t0-sim' "$sim" -q "$@"
	is "$(sed 's/^t0-sim: //' err)" "$(cat said)" 'with the same words'
}
refused times.co buf:2:u32 u32:1
refused times.co u32:1
refused times.co buf:2:f33
refused times.co nothing buf:2:u32
refused times.co buf:2:u32 --grid 0
refused times.co buf:2:u32 --block 1025
refused times.co buf:2:u32 --lds 70000
refused "$data/saxpy.co" i32:1 buf:64 buf:64 u32:64
refused "$data/transpose.co" buf:64 buf:64 u32:8 u32:8 --block 16
exits 2 'arguments and a trace' "$sim" --trace t.trace times.co buf:2:u32
has err 'arguments say where waves go' 'are one too much'
exits 2 'arguments and a number of workgroups' "$sim" --groups 2 times.co \
	buf:2:u32
exits 2 'a loop that the kernel computes' "$sim" "$data/collatz.co" collatz \
	buf:1k:u32=iota buf:1k:u32 --grid 256
has err 'use a trace (t0-run --trace, t0-sim --trace)' 'needs a trace'
exits 0 'a file to write' "$sim" times.co 'buf:2:u32=1,1>x'
has err 'nothing is executed: x is not written' 'is not written'
[ ! -e x ]
tap_result $? 'indeed'

# ---- a row of its own ----
for n in 1 2; do
	exits 0 'kept' "$sim" -q --db p.db times.co buf:2:u32=1,$n
done
"$T0_BUILD/t0-results" sql --db p.db --csv \
	"SELECT count(DISTINCT case_id) FROM v_results" >rows 2>&1
has rows 2 'each launch is a case'

# ---- pictures and timelines of a launch ----
exits 0 'with a timeline' "$sim" -q --timeline t.json --annotate times.co \
	buf:2:u32=1,5 --clock 2000
has t.json '"traceEvents"' 'which is there'
has out 's_cbranch_scc1' 'and the code'
has out 'at 2000 MHz' 'at the clock that was asked for'
exits 0 'with costs of another origin' "$sim" -q --compare default times.co \
	buf:2:u32=1,5
has out 'with default costs' 'beside'
plan_done
