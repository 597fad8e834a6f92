/*
 * The ring of kfd/printf.h, written out: what our compiler emits.  The
 * rebuild script gives the second argument its hidden kind and name, and the
 * object the formats of ring.formats.
 */
#include "print.h"

struct ring {
	atomic_ulong head, limit;
	uint mask;
	atomic_uint wait, dropped;
	uint unused[9];
	uint data[1];
};

#define LOAD(p) __opencl_atomic_load((p), __ATOMIC_RELAXED, \
				     __OPENCL_MEMORY_SCOPE_ALL_SVM_DEVICES)
#define ADD(p, n) __opencl_atomic_fetch_add((p), (n), __ATOMIC_RELAXED, \
					    __OPENCL_MEMORY_SCOPE_DEVICE)

static global uint *take(global struct ring *r, uint n)
{
	const ulong pos = ADD(&r->head, (ulong)n);

	while (pos + n > LOAD(&r->limit)) {
		if (!LOAD(&r->wait)) {
			ADD(&r->dropped, 1u);
			return 0;
		}
		__builtin_amdgcn_s_sleep(2);
	}
	return r->data + (pos & r->mask);
}

static void done(global uint *at, uint n, uint id)
{
	__opencl_atomic_store((global atomic_uint *)at,
			      0x80000000u | n << 16 | id, __ATOMIC_RELEASE,
			      __OPENCL_MEMORY_SCOPE_ALL_SVM_DEVICES);
}

/* `lines` records of each work-item: "item %d line %d of %f\n". */
kernel void ring(int lines, global struct ring *r)
{
	for (int i = 0; i < lines; i++) {
		global uint *at = take(r, 5);

		if (!at)
			continue;
		at[1] = (uint)gid();
		at[2] = (uint)i;
		const ulong d = as_ulong((double)gid() / 8);
		at[3] = (uint)d;
		at[4] = (uint)(d >> 32);
		done(at, 5, 1);
	}
}

/* Writes what is no record. */
kernel void broken(int what, global struct ring *r)
{
	if (lid())
		return;
	ADD(&r->head, (ulong)(what == 3 ? 1000000000 : 64));
	r->data[0] = what == 0 ? 0x80000000u | 0x7fffu << 16 | 1 :
		     what == 1 ? 0x80000000u | 5u << 16 | 99 :
		     what == 2 ? 0x12345678u :
				 0;
	for (int i = 1; i < 64; i++)
		r->data[i] = what == 4 ? 0xffffffffu : 0;
}
