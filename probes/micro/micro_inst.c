/*
 * probes/micro/micro_inst.c - the instructions of micro_inst.def: loops,
 * operands, results.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probes/micro/micro.h"

/* ------------------------------------------------------------- C steps --- */

static uint32_t dot(uint32_t sum, uint32_t a, uint32_t b, int bits)
{
	const uint32_t mask = (1u << bits) - 1;

	for (int i = 0; i < 32; i += bits)
		sum += (a >> i & mask) * (b >> i & mask);
	return sum;
}
#define dot4(a, b) dot(0, a, b, 8)
#define dot8(a, b) dot(0, a, b, 4)

#define EACH(t, m, e)                                          \
	{                                                      \
		for (int l = 0; l < MICRO_LANES; l++) {        \
			const t x = v[l].m, a = va->m,         \
				b = vb->m;                     \
			(void)x, (void)a, (void)b;             \
			v[l].m = (e);                          \
		}                                              \
	}
#define B(e) EACH(uint32_t, u[0], e)
#define W(e) EACH(uint64_t, w, e)
#define H(e) EACH(float, f[0], e)
#define N(e) EACH(double, d, e)
#define P(...)                                                \
	{                                                     \
		const float a = va->f[0];                     \
		(void)a, (void)vb;                            \
		for (int l = 0; l < MICRO_LANES; l++) {       \
			union micro_value x = v[l];           \
			__VA_ARGS__;                          \
			v[l] = x;                             \
		}                                             \
	}
#define LANE(e)                                               \
	{                                                     \
		union micro_value was[MICRO_LANES];           \
		(void)va, (void)vb;                           \
		memcpy(was, v, sizeof(was));                  \
		for (int l = 0; l < MICRO_LANES; l++)         \
			v[l] = was[e];                        \
	}
#define KEEP { (void)v, (void)va, (void)vb; }

#define JOIN(x, y) x##y
#define STEP_NAME(line) JOIN(step_, line)
#define STEP(...)                                                       \
	static void STEP_NAME(__LINE__)(union micro_value v[MICRO_LANES], \
					const union micro_value *va,    \
					const union micro_value *vb)    \
		__VA_ARGS__
#define GPU(name, set, init, copies, latency, interval, text, step) STEP(step)
#define GPU2(name, set, init, copies, latency, interval, chain, stream, step) \
	STEP(step)
#define GPU3(name, set, init, copies, latency, interval, per, extra, chain, \
	     stream, step)                                                  \
	STEP(step)
#define GPU4(name, set, init, copies, latency, interval, chain, burst, \
	     stream, end, step)                                         \
	STEP(step)
#include "probes/micro/micro_inst.def"
#undef GPU
#undef GPU2
#undef GPU3
#undef GPU4

#define GPU4(name_, set_, init_, copies_, latency_, interval_, chain_,    \
	     burst_, stream_, end_, step_)                                \
	{ .name = name_, .set = MICRO_##set_, .init = #init_[0],          \
	  .copies = copies_, .latency = latency_, .interval = interval_,  \
	  .per = 1, .chain = chain_, .burst = burst_, .stream = stream_,  \
	  .end = end_, .step = STEP_NAME(__LINE__) },
#define GPU3(name_, set_, init_, copies_, latency_, interval_, per_,      \
	     extra_, chain_, stream_, step_)                              \
	{ .name = name_, .set = MICRO_##set_, .init = #init_[0],          \
	  .copies = copies_, .latency = latency_, .interval = interval_,  \
	  .per = per_, .extra = extra_, .chain = chain_,                  \
	  .stream = stream_, .step = STEP_NAME(__LINE__) },
#define GPU2(name, set, init, copies, latency, interval, chain, stream,   \
	     step)                                                        \
	GPU3(name, set, init, copies, latency, interval, 1, 0, chain,     \
	     stream, step)
#define GPU(name, set, init, copies, latency, interval, text, step) \
	GPU2(name, set, init, copies, latency, interval, text, text, step)
/* The step itself is not needed here; its commas would be in the way. */
#undef B
#undef W
#undef H
#undef N
#undef P
#undef LANE
#undef KEEP
#define B(e) 0
#define W(e) 0
#define H(e) 0
#define N(e) 0
#define P(...) 0
#define LANE(e) 0
#define KEEP 0
static const struct micro_inst insts[] = {
#include "probes/micro/micro_inst.def"
};

static bool assembles(const char *text, const char *chip)
{
	enum { ANY = 32 }; /* a register */
	struct buf lines = { 0 }, code = { 0 };

	micro_expand(&lines, text, ANY);
	const bool good = probe_assemble(chip, lines.data, &code, NULL);
	buf_fini(&lines);
	buf_fini(&code);
	return good;
}

bool micro_inst_on(const struct micro_inst *i, const char *chip)
{
	return assembles(i->chain, chip) && assembles(i->stream, chip) &&
	       (!i->end || assembles(i->end, chip));
}

const struct micro_inst *micro_insts(size_t *n)
{
	*n = ARRAY_SIZE(insts);
	return insts;
}

/* ------------------------------------------------------------ registers -- */

static const struct regs {
	int first, step, count;
	int second; /* the first register of the second set */
	bool scalar;
} regs_of[] = {
	[MICRO_V1] = { 32, 1, 16, 80, false },
	[MICRO_V2] = { 32, 2, 12, 80, false },
	[MICRO_V4] = { 32, 4, 7, 80, false },
	[MICRO_V8] = { 40, 8, 4, 80, false },
	[MICRO_S1] = { 32, 1, 8, 48, true },
	[MICRO_S2] = { 32, 2, 8, 48, true },
};

/*
 * First values: text that puts x into v[4:5] and a, b where they belong, and
 * the same in C.
 */
#define A_LO 0x85ebca6bu
#define A_HI 0xc2b2ae35u
#define B_LO 0x27d4eb2fu
#define B_HI 0x165667b1u

static const struct start {
	char init;
	const char *x;
	uint32_t a[2], b[2];
} starts[] = {
	{ 'I', "v_mul_lo_u32 v4, v0, 0x9e3779b1\n"
	       "v_add_nc_u32 v4, 0x7f4a7c15, v4\nv_mov_b32 v5, v4\n",
	  { A_LO, A_HI }, { B_LO, B_HI } },
	{ 'F', "v_cvt_f32_u32 v4, v0\nv_fma_f32 v4, v4, 0x3d000000, 1.0\n"
	       "v_mov_b32 v5, v4\n",
	  { 0x3f800001, 0x3f800001 }, { 0x3a800000, 0x3a800000 } },
	{ 'T', "v_and_b32 v4, 7, v0\nv_add_nc_u32 v4, 0x7f, v4\n"
	       "v_lshlrev_b32 v4, 23, v4\nv_mov_b32 v5, v4\n",
	  { 0, 0 }, { 0, 0 } },
	{ 'D', "v_cvt_f32_u32 v4, v0\nv_fma_f32 v4, v4, 0x3d000000, 1.0\n"
	       "v_cvt_f64_f32 v[4:5], v4\n",
	  { 1, 0x3ff00000 }, { 0, 0x3f500000 } },
	{ 'U', "v_and_b32 v4, 7, v0\nv_add_nc_u32 v4, 0x7f, v4\n"
	       "v_lshlrev_b32 v4, 23, v4\nv_cvt_f64_f32 v[4:5], v4\n",
	  { 0, 0 }, { 0, 0 } },
	{ 'O', "v_cvt_f32_u32 v4, v0\nv_mov_b32 v5, v4\n",
	  { 0x3c003c00, 0x3c003c00 }, { 0x3c003c00, 0x3c003c00 } },
	{ 'S', "v_mov_b32 v4, 0x01234567\nv_mov_b32 v5, 0x89abcdef\n",
	  { A_LO, A_HI }, { B_LO, B_HI } },
	{ 'Z', "v_mov_b32 v4, 0\nv_mov_b32 v5, 0\n", { 0, 0 }, { 0, 0 } },
	{ 'L', "v_mov_b32 v4, v1\nv_mov_b32 v5, 0\nds_store_b32 v1, v1\n"
	       "s_waitcnt lgkmcnt(0)\n",
	  { 0, 0 }, { 0, 0 } },
};

static const struct start *start_of(char init)
{
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		if (starts[i].init == init)
			return &starts[i];
	BUG("no first values '%c'", init);
}

static union micro_value first_value(char init, uint32_t lane)
{
	const uint32_t bits = lane * 0x9e3779b1u + 0x7f4a7c15u;
	const float two = (float)(1u << (lane & 7));
	const float one = 1 + (float)lane / 32;

	switch (init) {
	case 'I':
		return (union micro_value){ .u = { bits, bits } };
	case 'F':
		return (union micro_value){ .f = { one, one } };
	case 'T':
		return (union micro_value){ .f = { two, two } };
	case 'D':
		return (union micro_value){ .d = one };
	case 'U':
		return (union micro_value){ .d = two };
	case 'O':
		return (union micro_value){ .f = { (float)lane, (float)lane } };
	case 'S':
		return (union micro_value){ .u = { 0x01234567, 0x89abcdef } };
	case 'L':
		return (union micro_value){ .u = { 4 * lane, 0 } };
	default:
		return (union micro_value){ .u = { 0, 0 } };
	}
}

/* a and b, in vector and scalar registers; matrices have theirs apart. */
static void write_operands(const struct start *s, struct buf *setup)
{
	for (int k = 0; k < 2; k++) {
		buf_printf(setup, "v_mov_b32 v%d, 0x%x\nv_mov_b32 v%d, 0x%x\n",
			   12 + k, s->a[k], 14 + k, s->b[k]);
		buf_printf(setup, "s_mov_b32 s%d, 0x%x\ns_mov_b32 s%d, 0x%x\n",
			   24 + k, s->a[k], 26 + k, s->b[k]);
	}
	for (int r = 17; (s->init == 'O' || s->init == 'Z') && r < 34; r++)
		buf_printf(setup, "v_mov_b32 v%d, 0x%x\n", r, s->a[0]);
	/* Lane l of a permlane takes l ^ 1. */
	buf_adds(setup, "v_mov_b32 v16, 0\ns_mov_b32 s28, 0x67452301\n"
			"s_mov_b32 s29, 0xefcdab89\n");
}

void micro_inst_init(const struct micro_inst *i, bool second,
		     struct buf *setup, struct buf *init)
{
	const struct regs *r = &regs_of[i->set];
	const struct start *s = start_of(i->init);
	static const char *const from[2][2] = { { "v4", "v5" },
						{ "s30", "s31" } };

	if (!second)
		write_operands(s, setup);
	buf_adds(init, s->x);
	if (r->scalar)
		buf_adds(init, "v_readfirstlane_b32 s30, v4\n"
			       "v_readfirstlane_b32 s31, v5\n");
	for (int k = 0; k < r->step * r->count; k++)
		buf_printf(init, "%s%d, %s\n",
			   r->scalar ? "s_mov_b32 s" : "v_mov_b32 v",
			   (second ? r->second : r->first) + k,
			   from[r->scalar][k % r->step & 1]);
}

/* What `n` steps make of the first result register, by lane. */
static void want_one(const struct micro_inst *i, const struct start *s,
		     uint64_t n, union micro_value x[MICRO_LANES])
{
	const union micro_value a = { .u = { s->a[0], s->a[1] } },
				b = { .u = { s->b[0], s->b[1] } };

	for (uint32_t l = 0; l < MICRO_LANES; l++)
		x[l] = first_value(i->init, l);
	for (; n; n--)
		i->step(x, &a, &b);
}

/* Copies on the first register, in all iterations of loop 0 or 1. */
static uint64_t steps_of(const struct micro_probe *p,
			 const struct micro_inst *i, int loop)
{
	const uint64_t copies = (uint64_t)p->copies << loop;
	const uint64_t count = (uint64_t)regs_of[i->set].count;

	return (p->stream ? (copies + count - 1) / count : copies) *
	       p->iterations;
}

void micro_inst_want(struct micro_probe *p)
{
	const struct micro_inst *i = p->inst, *k = p->second;
	const struct start *s = start_of(i->init);

	p->has_values = i->step && (!k || k->step);
	for (int loop = 0; loop < 2 && p->has_values; loop++) {
		union micro_value x[MICRO_LANES], y[MICRO_LANES];

		want_one(i, s, steps_of(p, i, loop), x);
		if (k)
			want_one(k, s, steps_of(p, k, loop), y);
		for (int l = 0; l < MICRO_LANES; l++) {
			p->want[loop][0][l] = x[l].u[0];
			p->want[loop][1][l] = k ? y[l].u[0] :
				regs_of[i->set].step > 1 ? x[l].u[1] : 0;
		}
	}
}

void micro_inst_result(const struct micro_inst *i, bool second, char name[16])
{
	const struct regs *r = &regs_of[i->set];

	snprintf(name, 16, "%c%d", r->scalar ? 's' : 'v',
		 second ? r->second : r->first);
}

/* ---------------------------------------------------------------- probe -- */

void micro_inst_copy(const struct micro_inst *i, int k, bool second,
		     struct buf *out)
{
	const struct regs *r = &regs_of[i->set];

	micro_expand(out, i->stream, (second ? r->second : r->first) +
					     k % r->count * r->step);
}

static void write_body(const struct micro_inst *i, bool stream, int copies,
		       struct buf *out)
{
	const struct regs *r = &regs_of[i->set];

	for (int k = 0; k < copies; k++)
		micro_expand(out, stream ? i->stream : i->chain,
			     r->first + (stream ? k % r->count * r->step : 0));
	if (stream && i->end)
		micro_expand(out, i->end, r->first);
}

bool micro_inst_probe(struct micro_probe *p, struct micro_device *d,
		      const struct micro_inst *i, bool stream, uint32_t waves,
		      struct err *e)
{
	const struct regs *r = &regs_of[i->set];
	struct buf setup = { 0 }, init = { 0 }, body[2] = { { 0 }, { 0 } };
	char lo[16], hi[16];
	const int most = (int)(i->burst ? i->burst : i->copies);
	/* Of a stream, whole rounds. */
	const int copies = stream ? (most + r->count - 1) / r->count * r->count
				  : (int)i->copies;

	micro_inst_init(i, false, &setup, &init);
	for (int k = 0; k < 2; k++)
		write_body(i, stream, copies * (k + 1), &body[k]);
	snprintf(lo, sizeof(lo), "%c%d", r->scalar ? 's' : 'v', r->first);
	snprintf(hi, sizeof(hi), "%c%d", r->scalar ? 's' : 'v', r->first + 1);
	const struct micro_text t = {
		.setup = setup.data, .init = init.data,
		.loop = { body[0].data, body[1].data },
		.lo = lo, .hi = r->step > 1 ? hi : NULL,
		.waves = waves,
		.lds_bytes = i->init == 'L' ? 4096 : 0,
	};
	const bool good = micro_probe_init(p, d, &t, i->name, copies, 0, e);

	p->inst = i;
	p->stream = stream;
	buf_fini(&setup);
	buf_fini(&init);
	buf_fini(&body[0]);
	buf_fini(&body[1]);
	return good || err_wrap(e, "%s", i->name);
}

/* ------------------------------------------------ any instruction at all -- */

struct maker {
	const struct isa_op_info *op;
	enum micro_set set;
	struct buf chain, stream;
	int dwords;    /* of the result */
	bool chained, scalar;
	int n_constants;
};

/* Where a constant of so many dwords lies; NULL: nowhere. */
static const char *constant_operand(struct maker *m, int dwords)
{
	static const char *const v1[] = { "v12", "v14", "v13" },
				*const v2[] = { "v[12:13]", "v[14:15]" },
				*const s1[] = { "s24", "s26" },
				*const s2[] = { "s[24:25]", "s[26:27]" };
	const int k = m->n_constants++;

	if (m->scalar)
		return dwords == 1 ? s1[k % 2] : dwords == 2 ? s2[k % 2] : NULL;
	return dwords == 1 ? v1[k % 3] :
	       dwords == 2 ? v2[k % 2] :
	       dwords == 4 ? "v[12:15]" :
	       dwords == 8 ? (k % 2 ? "v[26:33]" : "v[17:24]") :
			     NULL;
}

static const char *result_operand(const struct maker *m)
{
	static const char *const v[] = { [1] = "v%d", [2] = "v[%d:%e]",
					 [4] = "v[%d:%q]", [8] = "v[%d:%h]" },
				*const s[] = { [1] = "s%d", [2] = "s[%d:%e]" };

	return m->scalar ? s[m->dwords] : v[m->dwords];
}

static bool is_source(enum isa_slot s)
{
	return s == ISA_SLOT_S0 || s == ISA_SLOT_S1 || s == ISA_SLOT_S2 ||
	       s == ISA_SLOT_S0V || s == ISA_SLOT_S1V || s == ISA_SLOT_S2V ||
	       s == ISA_SLOT_S2I;
}

/* One operand into both texts; false: of a kind that is not made. */
static bool add_operand(struct maker *m, int k)
{
	const struct isa_operand_info *o = &m->op->opnd[k];
	const int dwords = isa_type_dwords(o->type, 32);
	const char *text = NULL;
	bool chain = false;

	if (o->slot == ISA_SLOT_CO || o->slot == ISA_SLOT_CI ||
	    o->slot == ISA_SLOT_CD)
		text = "vcc_lo";
	else if (o->slot == ISA_SLOT_K)
		text = "0x3f800001";
	else if (o->slot == ISA_SLOT_D)
		text = result_operand(m);
	else if (is_source(o->slot)) {
		chain = dwords == m->dwords && !m->chained;
		m->chained |= chain;
		text = constant_operand(m, dwords);
	} else if (o->slot == ISA_SLOT_S1S || o->slot == ISA_SLOT_S2S) {
		text = "s28";
	}
	if (!text)
		return false;
	buf_printf(&m->chain, "%s %s", k ? "," : "",
		   chain ? result_operand(m) : text);
	buf_printf(&m->stream, "%s %s", k ? "," : "", text);
	return true;
}

static bool set_of(struct maker *m)
{
	static const int v[] = { [1] = MICRO_V1, [2] = MICRO_V2,
				 [4] = MICRO_V4, [8] = MICRO_V8 };
	const int n = m->dwords;

	if (m->scalar ? n != 1 && n != 2 : n != 1 && n != 2 && n != 4 && n != 8)
		return false;
	m->set = m->scalar ? n == 1 ? MICRO_S1 : MICRO_S2 :
			     (enum micro_set)v[n];
	return true;
}

static bool can_make(struct maker *m)
{
	const struct isa_op_info *op = m->op;

	m->scalar = op->pipe == ISA_PIPE_SALU;
	if (op->opcode[ISA_GFX11] < 0 || !op->n_opnd ||
	    op->opnd[0].slot != ISA_SLOT_D ||
	    (!m->scalar && op->pipe != ISA_PIPE_VALU &&
	     op->pipe != ISA_PIPE_VALU64 && op->pipe != ISA_PIPE_QUARTER &&
	     op->pipe != ISA_PIPE_TRANS && op->pipe != ISA_PIPE_TRANS64 &&
	     op->pipe != ISA_PIPE_DOUBLE && op->pipe != ISA_PIPE_WMMA))
		return false;
	m->dwords = isa_type_dwords(op->opnd[0].type, 32);
	if (!set_of(m))
		return false;
	m->chained = op->flags & ISA_RD; /* reads its result's register */
	buf_adds(&m->chain, op->name);
	buf_adds(&m->stream, op->name);
	for (int k = 0; k < op->n_opnd; k++)
		if (!add_operand(m, k))
			return false;
	return true;
}

/* Values that the pipe does not stumble over: normal numbers near one. */
static char init_of(const struct maker *m)
{
	const struct isa_type_info *t = isa_type_info(m->op->opnd[0].type);

	if (m->scalar)
		return 'S';
	if (m->op->pipe == ISA_PIPE_WMMA)
		return 'O';
	if (t->kind != 'F')
		return 'I';
	return t->bits == 64 ? 'D' : 'F';
}

const struct micro_inst *micro_inst_make(const char *mnemonic,
					 struct arena *mem, struct err *e)
{
	const enum isa_op op = isa_op_find(mnemonic);
	struct maker m = { .op = isa_op_info(op) };
	struct micro_inst *i = NULL;

	if (op == ISA_OP_NONE)
		err_set(e, ERR_USAGE, "--inst %s: no such instruction; "
			"t0-isa info lists them", mnemonic);
	else if (!can_make(&m))
		err_set(e, ERR_UNSUPPORTED, "--inst %s: only instructions with "
			"register operands of one to eight dwords and a result "
			"are made up; micro_inst.def has others", mnemonic);
	else {
		i = arena_alloc(mem, sizeof(*i));
		*i = (struct micro_inst){
			.name = arena_strdup(mem, mnemonic),
			.set = m.set, .init = init_of(&m),
			.copies = m.dwords > 2 ? 8 : 24,
			.latency = "", .interval = "",
			.chain = m.chained ? arena_strdup(mem, m.chain.data) :
					     "",
			.stream = arena_strdup(mem, m.stream.data),
		};
	}
	buf_fini(&m.chain);
	buf_fini(&m.stream);
	return i;
}
