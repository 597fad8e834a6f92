#!/bin/sh
# What the verifier, the compiler and the simulator say becomes rows that are
# compared and gated between builds.
. tests/tap.sh
unset T0_DB T0_DEVICE
export T0_CACHE=''
cc=$(realpath "$T0_BUILD/t0-cc") r=$(realpath "$T0_BUILD/t0-results")
sim=$(realpath "$T0_BUILD/t0-sim") isa=$(realpath "$T0_BUILD/t0-isa")
cd "$tmp" || exit 2
last() {
	sqlite3 t.db 'SELECT max(id) FROM runs'
}

# A kernel, and the same with a wait left out.
kernel() { # WAIT
	cat <<CODE
	.amdgcn_target "amdgcn-amd-amdhsa--gfx1100"
	.text
	.globl k
	.p2align 8
	.type k,@function
k:
	s_load_b64 s[4:5], s[0:1], null
	v_mov_b32 v0, 0
	s_waitcnt lgkmcnt(0)
	global_load_b32 v1, v0, s[4:5]
	$1
	v_add_nc_u32 v1, v1, 1
	global_store_b32 v0, v1, s[4:5]
	s_endpgm
	.size k, .-k
	.rodata
	.p2align 6
	.amdhsa_kernel k
		.amdhsa_next_free_vgpr 2
		.amdhsa_next_free_sgpr 6
		.amdhsa_user_sgpr_kernarg_segment_ptr 1
		.amdhsa_user_sgpr_count 15
		.amdhsa_kernarg_size 8
	.end_amdhsa_kernel
CODE
}
mkdir good bad
kernel 's_waitcnt vmcnt(0)' >good/k.s
kernel 's_nop 0' >bad/k.s
for d in good bad; do
	exits 0 "assemble the $d one" "$isa" asm -o $d/k.co $d/k.s
done
exits 0 'verify: the good one' "$isa" verify --db t.db good/k.co
good=$(last)
exits 1 'verify: the bad one' "$isa" verify --db t.db bad/k.co
bad=$(last)
exits 1 'compare: a new hazard is worse' "$r" compare --db t.db "$good" "$bad"
has "$tmp/out" 'verify/k' 'compare: names the kernel'
has "$tmp/out" 'worse' 'compare: is exact'
is "$(sqlite3 t.db "SELECT count(*) FROM v_verdicts WHERE verdict = 'fail' AND
	detail ->> 'object' LIKE 'xxh3-128:%' AND detail ->> 'rule' <> '' AND
	detail ->> 'address' >= 0 AND
	detail ->> 'instruction' LIKE 'v_add_nc_u32%'")" 1 \
	'the finding says object, rule, place and instruction'
exits 0 'baseline: the good one' "$r" baseline accept --db t.db "$good"
exits 1 'gate: the bad one' "$r" gate --db t.db "$bad"
has "$tmp/out" 'regress' 'gate: is a regression'
exits 0 'verify: mended' "$isa" verify --db t.db good/k.co
exits 0 'gate: mended' "$r" gate --db t.db "$(last)"

# An object that describes no kernel is not verified.
"$isa" asm --help >/dev/null
printf '\t.amdgcn_target "amdgcn-amd-amdhsa--gfx1100"\n\t.text\nf:\n\ts_endpgm\n' >none.s
exits 0 'assemble code without a kernel' "$isa" asm -o none.co none.s
exits 2 'verify: nothing is described' "$isa" verify none.co
has "$tmp/err" 'nothing can be verified' 'verify: says so'

# The compiler and the simulator.
mkdir three one
exits 0 'compile' "$cc" -k axpy -o three/axpy.co --db t.db
three=$(last)
exits 0 'compile: the same' "$cc" -k axpy -o three/axpy.co --db t.db
exits 0 'compare: the same' "$r" compare --db t.db "$three" "$(last)"
ok 'compare: nothing differs' sh -c "! grep -E 'worse|better' '$tmp/out'"
has "$tmp/out" 'compile/axpy' 'compare: compilations'
has "$tmp/out" 'same' 'compare: are exact'
exits 0 'compile: how long it takes' "$cc" -k add -o add.co --db t.db \
	--repeat 8
is "$(sqlite3 t.db "SELECT n, unit, origin, correct FROM v_results WHERE
	area = 'compile' AND metric = 'time'")" '8|s|hardware|pass' \
	'compile: eight samples, measured'
exits 2 'compile: how long, for nobody' "$cc" -k add -o add.co --repeat 8
exits 0 'compile: slower code' "$cc" -k axpy --O0 -o one/axpy.co
exits 0 'simulate' "$sim" three/axpy.co axpy --db t.db
fast=$(last)
exits 0 'simulate: slower code' "$sim" one/axpy.co axpy --db t.db
exits 1 'compare: slower in the simulator' "$r" compare --db t.db "$fast" \
	"$(last)"
has "$tmp/out" 'sim/axpy' 'compare: names the kernel'
exits 0 'baseline: the fast one' "$r" baseline accept --db t.db "$fast"
exits 1 'gate: the slow one' "$r" gate --db t.db "$(last)"
has "$tmp/out" 'worse; this case may lose less than 5 %' 'gate: by how much'
exits 0 'simulate: other costs' "$sim" three/axpy.co axpy --db t.db \
	--set valu.latency=9
exits 2 'compare: other costs are another question' "$r" compare --db t.db \
	"$fast" "$(last)"
has "$tmp/err" 'inputs.costs' 'compare: names them'
plan_done
