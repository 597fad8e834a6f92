/*
 * libt0-soft: bare machine code on the caller's memory, through the library
 * where it was built, else through the same code linked in.
 *
 * Machine code was assembled by llvm-mc 19 for gfx1100; its text stands beside.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kfd/soft/capi/libt0-soft.h"
#include "tests/tap.h"

typedef int run_asm_fn(const void *, uint32_t, uint32_t, uint32_t, uint32_t,
		       uint32_t, uint32_t, uint32_t, const void *, uint32_t,
		       uint32_t, const uint32_t *, uint32_t);
typedef int run_fn(const struct t0_soft_launch *, struct t0_soft_fault *);
typedef const char *name_fn(int);

struct library {
	run_asm_fn *run_asm;
	run_fn *run;
	name_fn *name;
};

#define USERS(n) ((n) << 1)
#define ID_X (1u << 7)
#define ID_Y (1u << 8)
#define ID_Z (1u << 9)
#define LDS_UNIT (1u << 15) /* 512 bytes */

static void load(struct library *l)
{
	const char *build = getenv("T0_BUILD");
	char path[4096];
	void *so;

	*l = (struct library){ run_asm_ex, t0_soft_run, t0_soft_status_name };
	snprintf(path, sizeof(path), "%s/libt0-soft.so", build ? build : ".");
	if (access(path, R_OK)) {
		skip("no %s in this build: the same code, linked in", path);
		return;
	}
	so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!ok(so, "libt0-soft.so can be loaded")) {
		diag("%s", dlerror());
		return;
	}
	l->run_asm = (run_asm_fn *)dlsym(so, "run_asm_ex");
	l->run = (run_fn *)dlsym(so, "t0_soft_run");
	l->name = (name_fn *)dlsym(so, "t0_soft_status_name");
	ok(l->run_asm && l->run && l->name, "it exports its interface");
	ok(!dlsym(so, "soft_wave_run"), "and keeps its insides to itself");
}

/* out[64 * group + item] = in[64 * group + item] + group */
static const uint32_t add_group[] = {
	0xf4080100, 0xf8000000, /* s_load_b128 s[4:7], s[0:1], null */
	0xbf89fc07,		/* s_waitcnt lgkmcnt(0) */
	0x84038602,		/* s_lshl_b32 s3, s2, 6 */
	0x4a020003,		/* v_add_nc_u32 v1, s3, v0 */
	0x30020282,		/* v_lshlrev_b32 v1, 2, v1 */
	0xdc520000, 0x02060001, /* global_load_b32 v2, v1, s[6:7] */
	0xbf8903f7,		/* s_waitcnt vmcnt(0) */
	0x4a040402,		/* v_add_nc_u32 v2, s2, v2 */
	0xdc6a0000, 0x00040201, /* global_store_b32 v1, v2, s[4:5] */
	0xbfb00000,		/* s_endpgm */
};

static void test_groups(const struct library *l)
{
	static uint32_t in[256], out[256], wanted[256];
	const uint64_t kernarg[2] = { (uintptr_t)out, (uintptr_t)in };
	const uint32_t user[2] = { (uint32_t)(uintptr_t)kernarg,
				   (uint32_t)((uintptr_t)kernarg >> 32) };

	for (uint32_t i = 0; i < 256; i++) {
		in[i] = i * 1000;
		wanted[i] = in[i] + i / 64;
	}
	is_i64(l->run_asm(add_group, sizeof(add_group), 4, 1, 1, 64, 1, 1,
			  kernarg, USERS(2) | ID_X, 0, NULL, 0),
	       0, "four workgroups run");
	is_mem(out, wanted, sizeof(out),
	       "with the kernel arguments in s[0:1] and the id behind them");
	memset(out, 0, sizeof(out));
	is_i64(l->run_asm(add_group, sizeof(add_group), 4, 1, 1, 64, 1, 1, NULL,
			  USERS(2) | ID_X, 0, user, 2),
	       0, "they run with user SGPRs");
	is_mem(out, wanted, sizeof(out), "and do the same");
}

/*
 * out[16 * (x + 3 y + 6 z of the group) + item] = v0 ^ (z << 16 | y << 8 | x)
 */
static const uint32_t ids[] = {
	0xf4040200, 0xf8000000, /* s_load_b64 s[8:9], s[0:1], null */
	0x360200ff, 0x000003ff, /* v_and_b32 v1, 0x3ff, v0 */
	0xd6100002, 0x02291500, /* v_bfe_u32 v2, v0, 10, 10 */
	0xd6100003, 0x02292900, /* v_bfe_u32 v3, v0, 20, 10 */
	0xd6460001, 0x04050502, /* v_lshl_add_u32 v1, v2, 2, v1 */
	0xd6460001, 0x04050703, /* v_lshl_add_u32 v1, v3, 3, v1 */
	0x30020282,		/* v_lshlrev_b32 v1, 2, v1 */
	0x96058303,		/* s_mul_i32 s5, s3, 3 */
	0x80050205,		/* s_add_u32 s5, s5, s2 */
	0x96068604,		/* s_mul_i32 s6, s4, 6 */
	0x80050605,		/* s_add_u32 s5, s5, s6 */
	0x84058605,		/* s_lshl_b32 s5, s5, 6 */
	0x4a020205,		/* v_add_nc_u32 v1, s5, v1 */
	0x84068804,		/* s_lshl_b32 s6, s4, 8 */
	0x8c060306,		/* s_or_b32 s6, s6, s3 */
	0x84068806,		/* s_lshl_b32 s6, s6, 8 */
	0x8c060206,		/* s_or_b32 s6, s6, s2 */
	0x7e080300,		/* v_mov_b32 v4, v0 */
	0x3a080806,		/* v_xor_b32 v4, s6, v4 */
	0xbf89fc07,		/* s_waitcnt lgkmcnt(0) */
	0xdc6a0000, 0x00080401, /* global_store_b32 v1, v4, s[8:9] */
	0xbfb00000,		/* s_endpgm */
};

static void test_ids(const struct library *l)
{
	static uint32_t out[16 * 12], wanted[16 * 12];
	const uint64_t kernarg = (uintptr_t)out;

	for (uint32_t i = 0; i < 16 * 12; i++) {
		const uint32_t g = i / 16, n = i % 16;
		const uint32_t item = n % 4 | n / 4 % 2 << 10 | n / 8 << 20;

		wanted[i] = item ^ (g % 3 | g / 3 % 2 << 8 | g / 6 << 16);
	}
	is_i64(l->run_asm(ids, sizeof(ids), 3, 2, 2, 4, 2, 2, &kernarg,
			  USERS(2) | ID_X | ID_Y | ID_Z, 0, NULL, 0),
	       0, "a grid in three dimensions runs");
	is_mem(out, wanted, sizeof(out),
	       "ids of workgroups in SGPRs, those of work-items packed in v0");
}

/* Reverses its work-items' numbers through LDS, over two waves. */
static const uint32_t reverse[] = {
	0xf4040200, 0xf8000000, /* s_load_b64 s[8:9], s[0:1], null */
	0x30020082,		/* v_lshlrev_b32 v1, 2, v0 */
	0xd8340000, 0x00000001, /* ds_store_b32 v1, v0 */
	0xbf89fc07,		/* s_waitcnt lgkmcnt(0) */
	0xbfbd0000,		/* s_barrier */
	0x4c0402ff, 0x000000fc, /* v_sub_nc_u32 v2, 0xfc, v1 */
	0xd8d80000, 0x03000002, /* ds_load_b32 v3, v2 */
	0xbf89fc07,		/* s_waitcnt lgkmcnt(0) */
	0xdc6a0000, 0x00080301, /* global_store_b32 v1, v3, s[8:9] */
	0xbfb00000,		/* s_endpgm */
};

/* out[item] = 3 * item, by way of scratch */
static const uint32_t scratch[] = {
	0xf4040200, 0xf8000000, /* s_load_b64 s[8:9], s[0:1], null */
	0x30020082,		/* v_lshlrev_b32 v1, 2, v0 */
	0x16040083,		/* v_mul_u32_u24 v2, 3, v0 */
	0xdc690004, 0x007c0200, /* scratch_store_b32 off, v2, off offset:4 */
	0xbc7c0000,		/* s_waitcnt_vscnt null, 0 */
	0xdc510004, 0x037c0000, /* scratch_load_b32 v3, off, off offset:4 */
	0xbf890007,		/* s_waitcnt vmcnt(0) lgkmcnt(0) */
	0xdc6a0000, 0x00080301, /* global_store_b32 v1, v3, s[8:9] */
	0xbfb00000,		/* s_endpgm */
};

static void test_local(const struct library *l)
{
	uint32_t out[64] = { 0 }, back[64], triple[64];
	const uint64_t kernarg = (uintptr_t)out;

	for (uint32_t i = 0; i < 64; i++) {
		back[i] = 63 - i;
		triple[i] = 3 * i;
	}
	is_i64(l->run_asm(reverse, sizeof(reverse), 1, 1, 1, 64, 1, 1, &kernarg,
			  USERS(2) | LDS_UNIT, 0, NULL, 0),
	       0, "waves meet at a barrier");
	is_mem(out, back, sizeof(out), "and exchange values through LDS");
	is_i64(l->run_asm(scratch, sizeof(scratch), 1, 1, 1, 64, 1, 1, &kernarg,
			  USERS(2) | 1, 8, NULL, 0),
	       0, "a kernel with scratch runs");
	is_mem(out, triple, sizeof(out), "and every lane has its own");
	is_i64(l->run_asm(scratch, sizeof(scratch), 1, 1, 1, 64, 1, 1, &kernarg,
			  USERS(2) | 1, 4, NULL, 0),
	       T0_SOFT_APERTURE, "too little scratch is a fault");
}

static const uint32_t load_first[] = {
	0xf4040200, 0xf8000000, /* s_load_b64 s[8:9], s[0:1], null */
	0x7e020280,		/* v_mov_b32 v1, 0 */
	0xbf89fc07,		/* s_waitcnt lgkmcnt(0) */
	0xdc520000, 0x03080001, /* global_load_b32 v3, v1, s[8:9] */
	0xbf8903f7,		/* s_waitcnt vmcnt(0) */
	0xbfb00000,		/* s_endpgm */
};
static const uint32_t store_first[] = {
	0xf4040200, 0xf8000000, /* s_load_b64 s[8:9], s[0:1], null */
	0x7e020280,		/* v_mov_b32 v1, 0 */
	0xbf89fc07,		/* s_waitcnt lgkmcnt(0) */
	0xdc6a0000, 0x00080101, /* global_store_b32 v1, v1, s[8:9] */
	0xbfb00000,		/* s_endpgm */
};

static int with_pointer(const struct library *l, const uint32_t *code,
			uint32_t bytes, uint64_t pointer,
			struct t0_soft_fault *f)
{
	const struct t0_soft_launch launch = {
		.code = code, .code_bytes = bytes, .group_size = { 32 },
		.rsrc2 = USERS(2), .kernarg = &pointer,
	};

	return l->run(&launch, f);
}

static void test_bad_pointers(const struct library *l)
{
	const long page = sysconf(_SC_PAGESIZE);
	uint8_t *p = mmap(NULL, 2 * (size_t)page, PROT_READ,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct t0_soft_fault f;

	mprotect(p + page, (size_t)page, PROT_NONE);
	is_i64(with_pointer(l, load_first, sizeof(load_first), 0x1000, &f),
	       T0_SOFT_MEMORY, "a load from nowhere is a memory fault");
	is_u64(f.address, 0x1000, "at that address");
	is_u64(f.pc - (uintptr_t)load_first, 16, "of that instruction");
	is_i64(f.lane, 0, "in lane 0");
	has_str(f.text, "0x1000", "the text names the address");
	is_i64(with_pointer(l, load_first, sizeof(load_first), (uintptr_t)p,
			    &f), T0_SOFT_OK, "a page can be read");
	is_i64(with_pointer(l, load_first, sizeof(load_first),
			    (uintptr_t)p + page - 2, &f), T0_SOFT_MEMORY,
	       "but not across its end");
	is_i64(with_pointer(l, store_first, sizeof(store_first), (uintptr_t)p,
			    &f), T0_SOFT_MEMORY, "nor written");
	has_str(f.text, "read only", "because it is read only");
	is_i64(l->run_asm(load_first, sizeof(load_first), 1, 1, 1, 32, 1, 1,
			  NULL, USERS(2), 0, NULL, 0), T0_SOFT_MEMORY,
	       "no kernel arguments are a memory fault");
	munmap(p, 2 * (size_t)page);
}

static void test_bad_code(const struct library *l)
{
	static const uint32_t forever[] = { 0xbfa0ffff /* s_branch -1 */ };
	static const uint32_t trap[] = { 0xbf900003 /* s_trap 3 */ };
	static const uint32_t nothing[] = { 0xffffffff };
	static const uint32_t no_end[] = { 0xbf800000 /* s_nop 0 */ };
	struct t0_soft_launch launch = {
		.code = forever, .code_bytes = 4, .group_size = { 32 },
		.deadline_ns = 50000000,
	};
	struct t0_soft_fault f;

	is_i64(l->run(&launch, &f), T0_SOFT_HANG, "a deadline ends a loop");
	is_str(l->name(T0_SOFT_HANG), "hang", "which is called a hang");
	is_i64(l->run_asm(trap, 4, 1, 1, 1, 32, 1, 1, NULL, 0, 0, NULL, 0),
	       T0_SOFT_TRAP, "s_trap is a trap");
	is_i64(l->run_asm(nothing, 4, 1, 1, 1, 32, 1, 1, NULL, 0, 0, NULL, 0),
	       T0_SOFT_ILLEGAL, "no instruction is illegal");
	is_i64(l->run_asm(no_end, 4, 1, 1, 1, 32, 1, 1, NULL, 0, 0, NULL, 0),
	       T0_SOFT_MEMORY, "code that runs off its end is a fault");
	is_i64(l->run_asm(trap, 4, 1, 1, 1, 1025, 1, 1, NULL, 0, 0, NULL, 0),
	       T0_SOFT_ARGUMENT, "1025 work-items are refused");
	is_i64(l->run_asm(trap, 4, 1, 1, 1, 32, 1, 1, NULL, LDS_UNIT * 129, 0,
			  NULL, 0),
	       T0_SOFT_ARGUMENT, "more than 64 KiB of LDS are refused");
	is_i64(l->run_asm(NULL, 4, 1, 1, 1, 32, 1, 1, NULL, 0, 0, NULL, 0),
	       T0_SOFT_ARGUMENT, "no code is refused");
}

/* Workgroup 0 waits until workgroup 1 has stored 7, then stores 7 itself. */
static const uint32_t wait_for_other[] = {
	0xf4040200, 0xf8000000, /* s_load_b64 s[8:9], s[0:1], null */
	0x7e020280,		/* v_mov_b32 v1, 0 */
	0x7e040287,		/* v_mov_b32 v2, 7 */
	0xbf89fc07,		/* s_waitcnt lgkmcnt(0) */
	0xbf068002,		/* s_cmp_eq_u32 s2, 0 */
	0xbfa20003,		/* s_cbranch_scc1 +3 */
	0xdc6a0000, 0x00080201, /* global_store_b32 v1, v2, s[8:9] */
	0xbfb00000,		/* s_endpgm */
	0xdc524000, 0x03080001, /* global_load_b32 v3, v1, s[8:9] glc */
	0xbf8903f7,		/* s_waitcnt vmcnt(0) */
	0x7e080503,		/* v_readfirstlane_b32 s4, v3 */
	0xbf068704,		/* s_cmp_eq_u32 s4, 7 */
	0xbfa1fffa,		/* s_cbranch_scc0 -6 */
	0xdc6a0004, 0x00080201, /* global_store_b32 v1, v2, s[8:9] offset:4 */
	0xbfb00000,		/* s_endpgm */
};

static void test_waiting(const struct library *l)
{
	for (uint32_t threads = 1; threads <= 2; threads++) {
		uint32_t out[2] = { 0, 0 };
		const uint64_t kernarg = (uintptr_t)out;
		const struct t0_soft_launch launch = {
			.code = wait_for_other,
			.code_bytes = sizeof(wait_for_other),
			.groups = { 2 },
			.group_size = { 32 },
			.rsrc2 = USERS(2) | ID_X,
			.kernarg = &kernarg,
			.threads = threads,
			.deadline_ns = 20000000000u,
		};

		is_i64(l->run(&launch, NULL), T0_SOFT_OK,
		       "a workgroup waits for a later one on %u thread%s",
		       threads, threads == 1 ? "" : "s");
		is_u64(out[1], 7, "and goes on, on %u", threads);
	}
}

int main(void)
{
	struct library l;

	load(&l);
	test_groups(&l);
	test_ids(&l);
	test_local(&l);
	test_bad_pointers(&l);
	test_bad_code(&l);
	test_waiting(&l);
	return plan_done();
}
