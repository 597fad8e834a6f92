/*
 * The verifier finds every seeded fault (tests/data/verify/seeds.def) with its
 * rule and address, and raises no alarm on the right kernels: ours and those
 * that a compiler made.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/code/code.h"
#include "isa/verify/verify.h"
#include "tests/tap.h"

#define DATA "tests/data/verify/"

struct object {
	struct buf file;
	struct co co;
};

static bool load(struct object *o, const char *path)
{
	struct err e = { 0 };

	memset(o, 0, sizeof(*o));
	if (file_read(path, 0, &o->file, &e) &&
	    co_parse(&o->co, o->file.data, o->file.len, &e))
		return true;
	diag("%s: %s", path, e.msg);
	buf_fini(&o->file);
	return false;
}

static void unload(struct object *o)
{
	co_fini(&o->co);
	buf_fini(&o->file);
}

static bool verify(const struct object *o, const char *kernel,
		   struct verify_report *r, const char *allow)
{
	const struct co_kernel *k = co_kernel_find(&o->co, kernel);
	struct verify_input in;
	struct err e = { 0 };
	bool done;

	memset(r, 0, sizeof(*r));
	if (!k || !verify_input_kernel(&in, &o->co, k, &e)) {
		diag("%s: %s", kernel, k ? e.msg : "no such kernel");
		return false;
	}
	if (allow)
		in.allow[verify_rule_find(allow)] = true;
	done = isa_verify(&in, r, &e);
	if (!done)
		diag("%s: %s", kernel, e.msg);
	verify_input_fini(&in);
	return done;
}

static void tell(const char *what, const struct verify_report *r)
{
	for (int i = 0; i < r->n; i++)
		diag("%s: %s at 0x%llx: %s (%s)", what,
		     verify_rule_name(r->v[i].rule),
		     (unsigned long long)r->v[i].addr, r->v[i].text,
		     r->v[i].what);
}

/* ----------------------------------------------------------- no alarm ---- */

static void no_alarm(const char *path)
{
	struct object o;
	int found = 0, kernels = 0;

	if (!ok(load(&o, path), "%s is read", path))
		return;
	for (uint32_t i = 0; i < o.co.n_kernels; i++) {
		struct verify_report r;

		/* This one executes an illegal instruction on purpose. */
		if (!strcmp(o.co.kernels[i].name, "illegal"))
			continue;
		if (!verify(&o, o.co.kernels[i].name, &r, NULL))
			found++;
		found += r.n;
		kernels++;
		tell(path, &r);
		verify_report_fini(&r);
	}
	ok(kernels && !found, "no alarm in the %d kernels of %s", kernels,
	   path);
	unload(&o);
}

static void illegal(void)
{
	struct verify_report r;
	struct object o;

	if (!ok(load(&o, "tests/data/kernels/fault.co"), "fault.co is read"))
		return;
	if (ok(verify(&o, "illegal", &r, NULL) && r.n == 1,
	       "an illegal instruction is one finding"))
		is_str(verify_rule_name(r.v[0].rule), "undecodable",
		       "an illegal instruction breaks the rule 'undecodable'");
	verify_report_fini(&r);
	unload(&o);
}

/* -------------------------------------------------------------- seeds ---- */

struct seed {
	char object[16], kernel[16], hex[64], rule[32];
	unsigned long long at, found;
};

static uint8_t *file_at(struct object *o, uint64_t vaddr)
{
	for (uint32_t i = 0; i < o->co.n_segments; i++) {
		const struct co_segment *s = &o->co.segments[i];

		if (s->vaddr <= vaddr && vaddr - s->vaddr < s->filesz)
			return (uint8_t *)o->file.data + s->offset +
			       (vaddr - s->vaddr);
	}
	return NULL;
}

static int unhex(const char *hex, uint8_t *out)
{
	int n = 0;
	unsigned byte;

	while (sscanf(hex + 2 * n, "%2x", &byte) == 1)
		out[n++] = byte;
	return n;
}

/* Write the change; what is left of the old instruction becomes s_nop 0. */
static bool change(struct object *o, const struct seed *s)
{
	static const uint8_t nop[4] = { 0x00, 0x00, 0x80, 0xbf };
	uint8_t *p = file_at(o, s->at), bytes[32];
	int n = unhex(s->hex, bytes);
	struct isa_target t = {
		.gen = ISA_GFX11,
		.wave = strcmp(s->object, "seeds64") ? 32 : 64,
	};
	struct isa_inst in;

	if (!p)
		return false;
	if (s->at >= co_kernel_find(&o->co, s->kernel)->entry_vaddr) {
		if (isa_decode(&t, p, 20, &in) || n > in.size_bytes || n % 4)
			return false;
		for (int i = n; i < in.size_bytes; i += 4)
			memcpy(p + i, nop, 4);
	}
	memcpy(p, bytes, n);
	return true;
}

static bool has(const struct verify_report *r, const char *rule, uint64_t addr)
{
	for (int i = 0; i < r->n; i++)
		if (r->v[i].addr == addr &&
		    !strcmp(verify_rule_name(r->v[i].rule), rule))
			return true;
	return false;
}

/* Every finding names the instruction, a path to it, and the remedy. */
static bool complete(const struct verify_report *r)
{
	for (int i = 0; i < r->n; i++)
		if (!r->v[i].text || !r->v[i].what || r->v[i].n_path < 1 ||
		    !*verify_rule_remedy(r->v[i].rule) ||
		    r->v[i].path[0].addr > r->v[i].addr + 0x10000)
			return false;
	return true;
}

static void plant(const struct seed *s, int line, int *seeds)
{
	char path[128];
	struct verify_report r;
	struct object o, changed;

	snprintf(path, sizeof(path), DATA "%s.co", s->object);
	if (!load(&o, path))
		return;
	if (!ok(change(&o, s), "line %d: the change fits", line)) {
		unload(&o);
		return;
	}
	/* Descriptors are decoded when the object is parsed. */
	memset(&changed, 0, sizeof(changed));
	buf_add(&changed.file, o.file.data, o.file.len);
	unload(&o);
	if (!ok(co_parse(&changed.co, changed.file.data, changed.file.len,
			 NULL),
		"line %d: the changed object is read", line))
		return;
	verify(&changed, s->kernel, &r, NULL);
	if (!strcmp(s->rule, "none")) {
		if (!is_u64(r.n, 0, "line %d: %s at 0x%llx stays right", line,
			    s->kernel, s->at))
			tell(s->kernel, &r);
	} else {
		if (!ok(has(&r, s->rule, s->found) && complete(&r),
			"line %d: %s changed at 0x%llx gives %s at 0x%llx",
			line, s->kernel, s->at, s->rule, s->found))
			tell(s->kernel, &r);
		seeds[verify_rule_find(s->rule)]++;
		verify_report_fini(&r);
		verify(&changed, s->kernel, &r, s->rule);
		ok(!has(&r, s->rule, s->found), "line %d: --allow silences %s",
		   line, s->rule);
	}
	verify_report_fini(&r);
	unload(&changed);
}

/* Rules of chips other than gfx1100: verify-gfx10-1.t plants these. */
static bool is_elsewhere(int rule)
{
	return rule >= VERIFY_HZ_VMEM_SGPR && rule <= VERIFY_HZ_BRANCH_3F;
}

static void plant_all(void)
{
	int seeds[VERIFY_RULE_COUNT + 1] = { 0 }, line = 0;
	struct buf text = { 0 };
	struct err e = { 0 };
	struct seed s;
	char *save, *p;

	if (!ok(file_read(DATA "seeds.txt", 0, &text, &e), "seeds are read"))
		return;
	for (p = strtok_r(text.data, "\n", &save); p;
	     p = strtok_r(NULL, "\n", &save)) {
		line++;
		if (*p == '#')
			continue;
		if (!ok(sscanf(p, "%15s %15s %llx %63s %31s %llx", s.object,
			       s.kernel, &s.at, s.hex, s.rule, &s.found) == 6,
			"line %d is a seed", line))
			continue;
		plant(&s, line, seeds);
	}
	for (int i = 0; i < VERIFY_RULE_COUNT; i++)
		ok(seeds[i] >= 3 || is_elsewhere(i), "rule %s has at least three seeds (%d)",
		   verify_rule_name(i), seeds[i]);
	buf_fini(&text);
}

/* ---------------------------------------------------------------- rest ---- */

static void refusals(void)
{
	static const uint8_t end[4] = { 0x00, 0x00, 0xb0, 0xbf };
	struct isa_target t = { .gen = ISA_GFX11, .wave = 32 };
	struct verify_report r = { 0 };
	struct verify_input in;
	struct err e = { 0 };

	verify_input_raw(&in, t, end, sizeof(end));
	ok(isa_verify(&in, &r, &e) && !r.n && r.n_insns == 1,
	   "a lone s_endpgm is right");
	in.entry = 4;
	ok(!isa_verify(&in, &r, &e) && e.code == ERR_INPUT,
	   "an entry outside the code is refused");
	verify_report_fini(&r);
	is_u64(verify_rule_find("wait-vmcnt"), VERIFY_WAIT_VM,
	       "a rule is found by its name");
	is_u64(verify_rule_find("no-such"), VERIFY_RULE_COUNT,
	       "no rule is found by another name");
}

/* 12,000 instructions in 400 blocks with loads, LDS and branches. */
static void speed(void)
{
	static const uint32_t piece[] = {
		0xdc520000, 0x01040000, /* global_load_b32 v1, v0, s[4:5] */
		0xd8d80000, 0x02000000, /* ds_load_b32 v2, v0 */
		0xbf890000,		/* s_waitcnt all */
		0xbf068004,		/* s_cmp_eq_u32 s4, 0 */
		0xbfa20000,		/* s_cbranch_scc1 +0 */
	};
	struct isa_target t = { .gen = ISA_GFX11, .wave = 32 };
	struct verify_report r = { 0 };
	struct verify_input in;
	struct err e = { 0 };
	struct buf code = { 0 };
	uint64_t ns;

	for (int i = 0; i < 400; i++) {
		uint32_t add = 0x06020501; /* v_add_f32 v1, v1, v2 */

		buf_add(&code, piece, sizeof(piece));
		for (int k = 0; k < 25; k++)
			buf_add(&code, &add, 4);
	}
	buf_add(&code, &(uint32_t){ 0xbfb00000 }, 4);
	verify_input_raw(&in, t, code.data, code.len);
	ns = time_mono_ns();
	ok(isa_verify(&in, &r, &e) && r.n == 0 && r.n_insns == 12001,
	   "a kernel of 12,001 instructions is verified");
	ns = time_mono_ns() - ns;
	tell("speed", &r);
	diag("%d instructions, %d blocks: %.1f ms", r.n_insns, r.n_blocks,
	     ns / 1e6);
	/* The target is 100 ms; sanitizers and a busy machine get more. */
	ok(ns < UINT64_C(3000000000), "it takes no more than 3 s anywhere");
	verify_report_fini(&r);
	buf_fini(&code);
}

int main(void)
{
	static const char *const objects[] = {
		"kernels/collatz",
		"kernels/divide",
		"kernels/double",
		"kernels/fault",
		"kernels/histogram",
		"kernels/lanes",
		"kernels/packed",
		"kernels/reduce",
		"kernels/saxpy",
		"kernels/scan",
		"kernels/scratch",
		"kernels/table",
		"kernels/transpose",
		"kernels/wmma",
		"verify/seeds",
		"verify/seeds64",
		"verify/calls-O0",
		"verify/recurse-O2",
		"verify/branch-O2",
		"verify/atomics-O3",
		"verify/gemm-O3",
		"verify/sort-O0",
		"verify/stencil-O3-wave64",
		"verify/numbers-O0-wave64",
		"verify/spill-O3",
		"verify/pointers-O2",
		"verify/vote-O3-wave64",
	};
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
		snprintf(path, sizeof(path), "tests/data/%s.co", objects[i]);
		no_alarm(path);
	}
	illegal();
	plant_all();
	refusals();
	speed();
	return plan_done();
}
