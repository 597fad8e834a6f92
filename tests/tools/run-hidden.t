#!/bin/sh
# Hidden arguments as code of clang-19 reads them, from OpenCL C and from HIP:
# every byte where AMDGPUUsage (code object version 5) says, by plain arithmetic.
. tests/tap.sh
run=$T0_BUILD/t0-run
export T0_DEVICE=soft
if ! command -v clang-19 >/dev/null || ! command -v ld.lld-19 >/dev/null; then
	skip_all 'clang-19 and ld.lld-19 are not installed'
fi
cd "$tmp" || exit 2
cat >hidden.h <<'C'
	unsigned first = !__builtin_amdgcn_workgroup_id_x() &&
		!__builtin_amdgcn_workgroup_id_y() &&
		!__builtin_amdgcn_workgroup_id_z() &&
		!__builtin_amdgcn_workitem_id_x() &&
		!__builtin_amdgcn_workitem_id_y() &&
		!__builtin_amdgcn_workitem_id_z();
	if (!first)
		return;
	for (int i = 0; i < 64; i++)
		out[i] = hidden[i];
	out[64] = tag;
	out[65] = __builtin_amdgcn_workgroup_size_x();
	out[66] = __builtin_amdgcn_grid_size_x();
	out[67] = __builtin_amdgcn_grid_size_z();
C
cat >hidden.cl <<'C'
kernel void cl(global uint *out, uint tag, local uint *mine)
{
	const constant uint *hidden = __builtin_amdgcn_implicitarg_ptr();
#include "hidden.h"
	mine[3] = tag + 1;
	out[68] = mine[3];
	out[69] = (uint)(ulong)mine;
}
C
cat >hidden.hip <<'C'
extern __attribute__((shared)) unsigned mine[];
extern "C" __attribute__((global)) void hip(unsigned *out, unsigned tag)
{
	const unsigned *hidden =
		(const unsigned *)__builtin_amdgcn_implicitarg_ptr();
#include "hidden.h"
	mine[99] = tag + 1;
	out[68] = mine[99];
	out[69] = 0;
}
C
exits 0 'OpenCL C is compiled' clang-19 -x cl -cl-std=CL2.0 -O2 \
	-target amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib hidden.cl -o cl.co
exits 0 'HIP is compiled' clang-19 -x hip -O2 --offload-device-only \
	--offload-arch=gfx1100 -nogpuinc -nogpulib --no-gpu-bundle-output \
	hidden.hip -o hip.co

# word N of the hidden arguments; half N: its 16 bits
word() {
	od -An -tu4 -w4 -v got | sed -n "$(($1 + 1))p" | tr -d ' '
}
half() {
	od -An -tu2 -w2 -v got | sed -n "$(($1 + 1))p" | tr -d ' '
}

# dispatched NAME X Y Z  BX BY BZ  LDS DIMS: what was read against arithmetic
dispatched() {
	is "$(word 0) $(word 1) $(word 2)" \
		"$(($2 / $5)) $(($3 / $6)) $(($4 / $7))" \
		"$1: whole workgroups"
	is "$(half 6) $(half 7) $(half 8)" "$5 $6 $7" "$1: their size"
	is "$(half 9) $(half 10) $(half 11)" \
		"$(($2 % $5)) $(($3 % $6)) $(($4 % $7))" \
		"$1: partial ones"
	is "$(word 10) $(word 12) $(word 14)" '0 0 0' "$1: no global offset"
	is "$(half 32)" "$9" "$1: dimensions"
	is "$(word 30)" "$8" "$1: bytes of dynamic LDS"
	is "$(word 22) $(word 24) $(word 26) $(word 28)" '0 0 0 0' \
		"$1: what nothing serves"
	is "$(word 64) $(word 65) $(word 66) $(word 67)" "5 $5 $2 $4" \
		"$1: arguments and builtins"
	is "$(word 68) $(word 69)" '6 0' "$1: LDS"
}
exits 0 'OpenCL runs' "$run" cl.co 'out:80:u32>got' u32:5 lds:64 \
	--grid 100,7,3 --block 32,2,1
dispatched 'OpenCL' 100 7 3 32 2 1 64 3
has err 'hidden_heap_v1' 'what nothing serves is said'
exits 0 'in two dimensions' "$run" cl.co cl 'out:80:u32>got' u32:5 lds:64 \
	--lds 128 --grid 96,4 --block 48,4
dispatched 'in two' 96 4 1 48 4 1 192 2
exits 0 'HIP runs' "$run" hip.co hip 'out:80:u32>got' u32:5 --lds 400 \
	--grid 640 --block 256
dispatched 'HIP' 640 1 1 256 1 1 400 1
[ "$(word 20)$(word 21)" != 00 ]
tap_result $? 'HIP: a buffer for host calls'
plan_done
