/*
 * libt0-soft: bare machine code on the caller's memory, through the library
 * where it was built, else through the same code linked in.
 *
 * The kernels are in capi.s.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kfd/soft/capi/libt0-soft.h"
#include "tests/code.h"
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

static struct code add_group, ids, reverse, scratch, load_first, store_first,
	forever, trap, nothing, no_end, wait_for_other;

static void load_kernels(void)
{
	static const struct {
		struct code *code;
		const char *label;
	} all[] = {
#define KERNEL(name) { &name, #name }
		KERNEL(add_group), KERNEL(ids), KERNEL(reverse),
		KERNEL(scratch), KERNEL(load_first), KERNEL(store_first),
		KERNEL(forever), KERNEL(trap), KERNEL(nothing),
		KERNEL(no_end), KERNEL(wait_for_other),
#undef KERNEL
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		*all[i].code = code_of("tests/soft/capi.s", all[i].label);
}

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
	is_i64(l->run_asm(add_group.dw, add_group.size_bytes, 4, 1, 1, 64, 1, 1,
			  kernarg, USERS(2) | ID_X, 0, NULL, 0),
	       0, "four workgroups run");
	is_mem(out, wanted, sizeof(out),
	       "with the kernel arguments in s[0:1] and the id behind them");
	memset(out, 0, sizeof(out));
	is_i64(l->run_asm(add_group.dw, add_group.size_bytes, 4, 1, 1, 64, 1, 1,
			  NULL, USERS(2) | ID_X, 0, user, 2),
	       0, "they run with user SGPRs");
	is_mem(out, wanted, sizeof(out), "and do the same");
}

static void test_ids(const struct library *l)
{
	static uint32_t out[16 * 12], wanted[16 * 12];
	const uint64_t kernarg = (uintptr_t)out;

	for (uint32_t i = 0; i < 16 * 12; i++) {
		const uint32_t g = i / 16, n = i % 16;
		const uint32_t item = n % 4 | n / 4 % 2 << 10 | n / 8 << 20;

		wanted[i] = item ^ (g % 3 | g / 3 % 2 << 8 | g / 6 << 16);
	}
	is_i64(l->run_asm(ids.dw, ids.size_bytes, 3, 2, 2, 4, 2, 2, &kernarg,
			  USERS(2) | ID_X | ID_Y | ID_Z, 0, NULL, 0),
	       0, "a grid in three dimensions runs");
	is_mem(out, wanted, sizeof(out),
	       "ids of workgroups in SGPRs, those of work-items packed in v0");
}

static void test_local(const struct library *l)
{
	uint32_t out[64] = { 0 }, back[64], triple[64];
	const uint64_t kernarg = (uintptr_t)out;

	for (uint32_t i = 0; i < 64; i++) {
		back[i] = 63 - i;
		triple[i] = 3 * i;
	}
	is_i64(l->run_asm(reverse.dw, reverse.size_bytes, 1, 1, 1, 64, 1, 1,
			  &kernarg, USERS(2) | LDS_UNIT, 0, NULL, 0),
	       0, "waves meet at a barrier");
	is_mem(out, back, sizeof(out), "and exchange values through LDS");
	is_i64(l->run_asm(scratch.dw, scratch.size_bytes, 1, 1, 1, 64, 1, 1,
			  &kernarg, USERS(2) | 1, 8, NULL, 0),
	       0, "a kernel with scratch runs");
	is_mem(out, triple, sizeof(out), "and every lane has its own");
	is_i64(l->run_asm(scratch.dw, scratch.size_bytes, 1, 1, 1, 64, 1, 1,
			  &kernarg, USERS(2) | 1, 4, NULL, 0),
	       T0_SOFT_APERTURE, "too little scratch is a fault");
}

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
	is_i64(with_pointer(l, load_first.dw, load_first.size_bytes, 0x1000,
			    &f),
	       T0_SOFT_MEMORY, "a load from nowhere is a memory fault");
	is_u64(f.address, 0x1000, "at that address");
	is_u64(f.pc - (uintptr_t)load_first.dw, 16, "of that instruction");
	is_i64(f.lane, 0, "in lane 0");
	has_str(f.text, "0x1000", "the text names the address");
	is_i64(with_pointer(l, load_first.dw, load_first.size_bytes,
			    (uintptr_t)p, &f),
	       T0_SOFT_OK, "a page can be read");
	is_i64(with_pointer(l, load_first.dw, load_first.size_bytes,
			    (uintptr_t)p + page - 2, &f), T0_SOFT_MEMORY,
	       "but not across its end");
	is_i64(with_pointer(l, store_first.dw, store_first.size_bytes,
			    (uintptr_t)p, &f),
	       T0_SOFT_MEMORY, "nor written");
	has_str(f.text, "read only", "because it is read only");
	is_i64(l->run_asm(load_first.dw, load_first.size_bytes, 1, 1, 1, 32, 1,
			  1, NULL, USERS(2), 0, NULL, 0),
	       T0_SOFT_MEMORY, "no kernel arguments are a memory fault");
	munmap(p, 2 * (size_t)page);
}

static void test_bad_code(const struct library *l)
{
	struct t0_soft_launch launch = {
		.code = forever.dw, .code_bytes = 4, .group_size = { 32 },
		.deadline_ns = 50000000,
	};
	struct t0_soft_fault f;

	is_i64(l->run(&launch, &f), T0_SOFT_HANG, "a deadline ends a loop");
	is_str(l->name(T0_SOFT_HANG), "hang", "which is called a hang");
	is_i64(l->run_asm(trap.dw, 4, 1, 1, 1, 32, 1, 1, NULL, 0, 0, NULL, 0),
	       T0_SOFT_TRAP, "s_trap is a trap");
	is_i64(l->run_asm(nothing.dw, 4, 1, 1, 1, 32, 1, 1, NULL, 0, 0, NULL,
			  0),
	       T0_SOFT_ILLEGAL, "no instruction is illegal");
	is_i64(l->run_asm(no_end.dw, 4, 1, 1, 1, 32, 1, 1, NULL, 0, 0, NULL, 0),
	       T0_SOFT_MEMORY, "code that runs off its end is a fault");
	is_i64(l->run_asm(trap.dw, 4, 1, 1, 1, 1025, 1, 1, NULL, 0, 0, NULL, 0),
	       T0_SOFT_ARGUMENT, "1025 work-items are refused");
	is_i64(l->run_asm(trap.dw, 4, 1, 1, 1, 32, 1, 1, NULL, LDS_UNIT * 129,
			  0, NULL, 0),
	       T0_SOFT_ARGUMENT, "more than 64 KiB of LDS are refused");
	is_i64(l->run_asm(NULL, 4, 1, 1, 1, 32, 1, 1, NULL, 0, 0, NULL, 0),
	       T0_SOFT_ARGUMENT, "no code is refused");
}

static void test_waiting(const struct library *l)
{
	for (uint32_t threads = 1; threads <= 2; threads++) {
		uint32_t out[2] = { 0, 0 };
		const uint64_t kernarg = (uintptr_t)out;
		const struct t0_soft_launch launch = {
			.code = wait_for_other.dw,
			.code_bytes = wait_for_other.size_bytes,
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
	load_kernels();
	test_groups(&l);
	test_ids(&l);
	test_local(&l);
	test_bad_pointers(&l);
	test_bad_code(&l);
	test_waiting(&l);
	return plan_done();
}
