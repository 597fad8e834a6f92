/*
 * Checked mode on random programs: it says something about most of them,
 * changes nothing that they compute, and every line of it is well-formed.  Two
 * devices run each program, one of them with checks.  T0_SLOW=1 runs more,
 * T0_SEED starts elsewhere.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/code/code.h"
#include "isa/text/text.h"
#include "kfd/kfd.h"
#include "kfd/soft/soft.h"
#include "kfd/soft/watch/watch.h"
#include "tests/isa/gen.h"
#include "tests/tap.h"

enum {
	INSTS = 12,
	EACH = 40, /* programs on one pair of devices */
	LANES = 64,
	BYTES = 4096,
	V_LANE = 1,	/* 8 times the lane */
	V_ADDRESS = 24, /* the same in memory, 64 bits */
};

static const struct isa_target target = { ISA_GFX11, 32, false };

/* s[2:3] the buffer, s[4:7] a descriptor of it; some registers have values. */
static const char *const before[] = {
	"s_load_b64 s[2:3], s[0:1], null",
	"v_lshlrev_b32 v1, 3, v0",
	"s_movk_i32 s6, 0x1000",
	"s_mov_b32 s7, 0x31016fac",
	"s_waitcnt lgkmcnt(0)",
	"s_mov_b64 s[4:5], s[2:3]",
	"v_add_co_u32 v24, vcc_lo, v1, s2",
	"v_add_co_ci_u32_e64 v25, vcc_lo, 0, s3, vcc_lo",
	"v_mov_b32 v2, 1.0",
	"v_mov_b32 v3, v0",
	"v_mov_b32 v4, 0x3c003c00",
	"v_mov_b32 v6, -3",
	"s_movk_i32 s16, 7",
};
static const char *const after[] = {
	"s_mov_b32 exec_lo, -1",
	"s_waitcnt vmcnt(0) lgkmcnt(0)",
	"s_waitcnt_vscnt null, 0x0",
	"s_barrier",
	"global_store_b64 v[24:25], v[2:3], off offset:1024",
	"global_store_b64 v[24:25], v[4:5], off offset:2048",
	"s_endpgm",
};

static void add_text(struct buf *code, const char *const *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t bytes[ISA_MAX_SIZE_BYTES];
		struct isa_inst in;
		const char *why = isa_parse(&target, text[i], NULL, NULL, &in);

		if (why)
			BUG("'%s': %s", text[i], why);
		buf_add(code, bytes, (size_t)isa_encode(&in, bytes));
	}
}

/* ------------------------------------------------------------ programs ---- */

static bool wanted(const struct isa_inst *in)
{
	const struct isa_op_info *op = isa_op_info((enum isa_op)in->op);

	if (op->flags & (ISA_GFX | ISA_GDSONLY))
		return false;
	switch (in->fmt) {
	case ISA_FMT_SOPP:
		return in->op == ISA_s_waitcnt || in->op == ISA_s_barrier ||
		       in->op == ISA_s_nop;
	case ISA_FMT_SOP1:
		return in->op != ISA_s_setpc_b64 && in->op != ISA_s_getpc_b64 &&
		       in->op != ISA_s_swappc_b64 && in->op != ISA_s_rfe_b64 &&
		       in->op != ISA_s_sendmsg_rtn_b32 &&
		       in->op != ISA_s_sendmsg_rtn_b64;
	case ISA_FMT_SOPK:
		return in->op == ISA_s_movk_i32 || in->op == ISA_s_addk_i32 ||
		       in->op == ISA_s_waitcnt_vscnt;
	case ISA_FMT_MIMG:
	case ISA_FMT_EXP:
	case ISA_FMT_VINTERP:
	case ISA_FMT_LDSDIR:
		return false;
	}
	return true;
}

/* Not what holds an address, which differs from device to device. */
static uint32_t scalar(uint32_t field)
{
	return field < 16 ? field + 16 :
	       field >= ISA_R_TTMP0 && field < ISA_R_NULL ? field - 64 :
							     field;
}

/* Destinations and addresses that leave the rest of the program standing. */
static void tame(struct isa_inst *in)
{
	static const uint8_t vgpr[] = { ISA_F_VSRC1, ISA_F_VSRC1Y, ISA_F_DATA0,
					ISA_F_DATA1 };
	static const uint8_t source[] = { ISA_F_SRC0, ISA_F_SRC1, ISA_F_SRC2,
					  ISA_F_SRC0Y };
	bool vector = !in->n_opnd || in->opnd[0].kind == ISA_K_VGPR;

	for (size_t i = 0; i < ARRAY_SIZE(vgpr); i++)
		in->f[vgpr[i]] %= 16;
	for (size_t i = 0; i < ARRAY_SIZE(source); i++)
		in->f[source[i]] = in->f[source[i]] < 256 ?
					   scalar(in->f[source[i]]) :
					   256 + in->f[source[i]] % 16;
	in->f[ISA_F_SSRC0] = scalar(in->f[ISA_F_SSRC0]);
	in->f[ISA_F_SSRC1] = scalar(in->f[ISA_F_SSRC1]);
	if (vector)
		in->f[ISA_F_VDST] = 2 + in->f[ISA_F_VDST] % 6;
	else
		in->f[ISA_F_VDST] = scalar(in->f[ISA_F_VDST]);
	in->f[ISA_F_VDSTY] = 1 + in->f[ISA_F_VDSTY] % 3;
	in->f[ISA_F_VDATA] = 2 + in->f[ISA_F_VDATA] % 6;
	in->f[ISA_F_SDST] = scalar(in->f[ISA_F_SDST]);
	in->f[ISA_F_SDATA] = scalar(in->f[ISA_F_SDATA]);
	switch (in->fmt) {
	case ISA_FMT_FLAT:
	case ISA_FMT_GLOBAL:
		in->f[ISA_F_ADDR] = V_ADDRESS;
		in->f[ISA_F_SADDR] = ISA_R_NULL;
		in->f[ISA_F_OFFSET] &= 0x1f8;
		break;
	case ISA_FMT_DS:
	case ISA_FMT_SCRATCH:
		in->f[ISA_F_ADDR] = V_LANE;
		in->f[ISA_F_SADDR] = ISA_R_NULL;
		in->f[ISA_F_GDS] = 0;
		in->f[ISA_F_OFFSET] &= 0xf8;
		in->f[ISA_F_OFFSET0] &= 0xf8;
		in->f[ISA_F_OFFSET1] &= 1;
		break;
	case ISA_FMT_MUBUF:
	case ISA_FMT_MTBUF:
		in->f[ISA_F_SRSRC] = 1;
		in->f[ISA_F_ADDR] = V_LANE;
		in->f[ISA_F_SOFFSET] = 128 + (in->f[ISA_F_SOFFSET] & 24);
		in->f[ISA_F_IDXEN] = 0;
		in->f[ISA_F_OFFEN] = 1;
		in->f[ISA_F_TFE] = 0;
		in->f[ISA_F_OFFSET] &= 0xf8;
		break;
	case ISA_FMT_SMEM:
		in->f[ISA_F_SBASE] = isa_op_info((enum isa_op)in->op)
						     ->opnd[1].type ==
						     ISA_T_B128 ?
					     2 :
					     1;
		in->f[ISA_F_OFFSET] &= 0x1fc;
		in->f[ISA_F_SOFFSET] = ISA_R_NULL;
	}
}

/* DPP names its source in a dword of its own: is it one of ours? */
static bool is_tame(const struct isa_inst *in)
{
	for (int i = 0; i < in->n_opnd; i++)
		if (in->form != ISA_FORM_PLAIN &&
		    in->opnd[i].kind == ISA_K_VGPR && in->opnd[i].reg >= 16)
			return false;
	return true;
}

static void add_random(struct isa_gen_state *g, struct buf *code)
{
	uint8_t bytes[ISA_MAX_SIZE_BYTES];
	struct isa_inst in;

	for (;;) {
		gen_inst(g, bytes);
		if (isa_decode(&target, bytes, sizeof(bytes), &in) ||
		    !wanted(&in))
			continue;
		tame(&in);
		if (isa_encode(&in, bytes) &&
		    !isa_decode(&target, bytes, sizeof(bytes), &in) &&
		    is_tame(&in))
			break;
	}
	buf_add(code, bytes, in.size_bytes);
}

static void random_program(struct isa_gen_state *g, struct buf *code)
{
	uint32_t n = 1 + gen_below(g, INSTS);

	add_text(code, before, ARRAY_SIZE(before));
	while (n--)
		add_random(g, code);
	add_text(code, after, ARRAY_SIZE(after));
}

/* ------------------------------------------------------------- devices ---- */

struct device {
	struct kfd_driver *driver;
	struct kfd_dev *dev;
	struct kfd_queue *q;
	struct kfd_mem *mem;
};

static bool open_device(struct device *d, bool check, struct err *e)
{
	const struct soft_options o = { .deterministic = true };
	const struct soft_watch_options w = { .check = check };

	memset(d, 0, sizeof(*d));
	d->driver = kfd_soft_new(&o, e);
	return d->driver && soft_watch_attach(d->driver, &w, e) &&
	       kfd_open_driver(&d->dev, d->driver, -1, "test", e) &&
	       kfd_queue_new(d->dev, NULL, &d->q, e) &&
	       kfd_mem_alloc(d->dev, KFD_VRAM, BYTES, "buffer", &d->mem, e);
}

static void close_device(struct device *d)
{
	struct err e = { 0 };

	kfd_mem_free(d->dev, d->mem);
	kfd_queue_free(d->q, &e);
	kfd_close(d->dev);
}

/* Run it; false, with a new queue, if it faulted. */
static bool run(struct device *d, const struct buf *code, uint8_t *out,
		struct err *e)
{
	const struct kfd_raw_desc desc = {
		.name = "random", .rsrc1 = 0x60af0007, .rsrc2 = 0x85,
		.properties = 0x408, .kernarg_bytes = 8, .lds_bytes = 1024,
		.private_bytes = 1024
	};
	const struct kfd_kernel *k;
	uint64_t arg = d->mem->va;
	struct kfd_launch l = { .grid = { LANES }, .wg = { LANES },
				.args = &arg, .args_bytes = sizeof(arg) };
	bool good;

	for (uint32_t i = 0; i < BYTES; i++)
		((uint8_t *)d->mem->cpu)[i] = (uint8_t)(i * 89 >> 2);
	if (!kfd_code_raw(d->dev, code->data, code->len, &desc, &k, e))
		BUG("%s", e->msg);
	l.kernel = k;
	l.deadline_ns = time_mono_ns() + UINT64_C(10000000000);
	good = kfd_run(d->q, &l, NULL, e);
	memcpy(out, d->mem->cpu, BYTES);
	if (good)
		kfd_code_unload(k->code);
	return good;
}

/* Every paragraph begins with a rule and its place; or the sum at the end. */
static bool is_well_formed(const char *text, int *n)
{
	static const char *const rules[] = { "hazard", "race", "uninitialised",
					     "bounds", "alignment", "barrier",
					     "wmma" };

	for (const char *s = text; s && *s; s = strchr(s, '\n')) {
		bool known = false;

		s += *s == '\n';
		if (!*s || *s == ' ')
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
			char head[80];

			snprintf(head, sizeof(head),
				 "%s: kernel 0x",
				 rules[i]);
			known |= !strncmp(s, head, strlen(head));
		}
		if (!known) {
			diag("'%.100s'", s);
			return false;
		}
		++*n;
	}
	return true;
}

struct counts {
	int ran, faults, differ, findings, found, ill_formed;
};

static void print_program(const struct buf *code)
{
	char text[ISA_TEXT_MAX];
	struct isa_inst in;

	for (size_t at = 0; at < code->len; at += in.size_bytes) {
		if (isa_decode(&target, code->data + at, code->len - at, &in))
			return;
		isa_print(&target, &in, text, sizeof(text));
		diag("  %s", text);
	}
}

static uint64_t count_findings(struct device *d)
{
	struct buf text = { 0 };
	uint64_t n = soft_watch_findings(d->driver, &text);

	buf_fini(&text);
	return n;
}

/* False: the devices have faulted and are of no more use. */
static bool one(struct isa_gen_state *g, struct device d[2], struct counts *c)
{
	uint8_t out[2][BYTES];
	struct err e[2] = { { 0 } };
	struct buf code = { 0 };
	uint64_t known = count_findings(&d[1]);
	bool good[2];

	random_program(g, &code);
	for (int i = 0; i < 2; i++)
		good[i] = run(&d[i], &code, out[i], &e[i]);
	c->ran++;
	c->faults += !good[0];
	c->found += count_findings(&d[1]) > known;
	if (good[0] != good[1] || memcmp(out[0], out[1], BYTES)) {
		c->differ++;
		diag("differs under checks: \"%s\", \"%s\"", e[0].msg,
		     e[1].msg);
		print_program(&code);
	}
	buf_fini(&code);
	return good[0] && good[1];
}

static void round_of(struct isa_gen_state *g, struct counts *c)
{
	struct device d[2];
	struct buf text = { 0 };
	struct err e = { 0 };
	bool more = true;
	int n = 0;

	if (!open_device(&d[0], false, &e) || !open_device(&d[1], true, &e))
		BUG("%s", e.msg);
	for (int i = 0; i < EACH && more; i++)
		more = one(g, d, c);
	soft_watch_findings(d[1].driver, &text);
	c->ill_formed += text.len && !is_well_formed(text.data, &n);
	c->findings += n;
	buf_fini(&text);
	close_device(&d[0]);
	close_device(&d[1]);
}

int main(void)
{
	struct isa_gen_state g = { .seed = 20261123, .gen = ISA_GFX11 };
	const char *seed = getenv("T0_SEED");
	const int rounds = getenv("T0_SLOW") ? 2000 : 60;
	struct counts c = { 0 };

	if (seed)
		g.seed = strtoull(seed, NULL, 0) | UINT64_C(1) << 62;
	diag("seed 0x%llx", (unsigned long long)g.seed);
	for (int i = 0; i < rounds && c.differ < 3; i++)
		round_of(&g, &c);
	diag("%d programs, %d faults, %d findings in %d", c.ran, c.faults,
	     c.findings, c.found);
	is_i64(c.differ, 0, "checks change no result");
	is_i64(c.ill_formed, 0, "every finding has its rule and place");
	ok(c.ran > rounds * 3, "%d programs ran", c.ran);
	ok(c.found > c.ran / 3, "%d of them have findings", c.found);
	return plan_done();
}
