/*
 * Every memory instruction by a reference of its own (tests/ref/mem.def): each
 * lane has bytes of its own at random offsets; afterwards memory, LDS, scratch
 * and registers are what the reference says, one by one and in the fast form.
 * What other tests have alone is named with the test.
 */
#include "tests/exec/every.h"
#include "tests/exec/wave.h"
#include "tests/ref/memory.h"

enum {
	PROGRAMS = 8,
	WARM = 20,
	LANE = 32,	  /* bytes of each lane, from START on */
	START = 256,
	USED_LDS = 8192,
	V_ADDR = 4,
	V_DST = 10,
	V_A = 20,
	V_B = 24,
	S_BASE = 2,
	S_BUFFER = 8,
	S_DST = 32,
};

/* Each has rows of its own in the tests of memory. */
static const struct elsewhere {
	uint16_t op;
	const char *test;
} elsewhere[] = {
	{ ISA_ds_nop, "tests/exec/mem-lds.c" },
	{ ISA_ds_swizzle_b32, "tests/exec/mem-lds.c" },
	{ ISA_ds_permute_b32, "tests/exec/mem-lds.c" },
	{ ISA_ds_bpermute_b32, "tests/exec/mem-lds.c" },
	{ ISA_ds_append, "tests/exec/mem-lds.c" },
	{ ISA_ds_consume, "tests/exec/mem-lds.c" },
	{ ISA_ds_store_addtid_b32, "tests/exec/mem-lds.c" },
	{ ISA_ds_load_addtid_b32, "tests/exec/mem-lds.c" },
	{ ISA_global_load_addtid_b32, "tests/exec/mem-flat.c" },
	{ ISA_global_store_addtid_b32, "tests/exec/mem-flat.c" },
};

/* Nothing that a program can see. */
static bool is_hint(int op)
{
	return op == ISA_buffer_gl0_inv || op == ISA_buffer_gl1_inv ||
	       op == ISA_s_gl1_inv || op == ISA_s_dcache_inv ||
	       op == ISA_s_atc_probe || op == ISA_s_atc_probe_buffer;
}

/* --------------------------------------------------------------- state ---- */

struct image {
	uint32_t v[64][REGS];
	uint32_t s[128];
	uint8_t mem[BENCH_PAGE], lds[USED_LDS], scratch[64][BENCH_SCRATCH];
};

static void put_image(struct bench *b, const struct image *m)
{
	struct soft_wave *w = &b->wave[0];

	for (int r = 0; r < REGS; r++)
		for (int i = 0; i < w->wave_size; i++)
			w->v[i / 32][r][i % 32] = m->v[i][r];
	memcpy(w->s, m->s, sizeof(m->s));
	memcpy(b->mem->u8, m->mem, sizeof(m->mem));
	memcpy(b->group.lds, m->lds, sizeof(m->lds));
	memcpy(w->scratch, m->scratch, (size_t)w->wave_size * BENCH_SCRATCH);
}

static void get_image(const struct bench *b, struct image *m)
{
	const struct soft_wave *w = &b->wave[0];

	for (int r = 0; r < REGS; r++)
		for (int i = 0; i < w->wave_size; i++)
			m->v[i][r] = w->v[i / 32][r][i % 32];
	memcpy(m->s, w->s, sizeof(m->s));
	memcpy(m->mem, b->mem->u8, sizeof(m->mem));
	memcpy(m->lds, b->group.lds, sizeof(m->lds));
	memcpy(m->scratch, w->scratch, (size_t)w->wave_size * BENCH_SCRATCH);
}

static void random_bytes(void *to, size_t n)
{
	uint8_t *p = to;

	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)rnd();
}

/* A number that is exact as f16 too: n / 8. */
static uint32_t exact(bool half)
{
	const struct ref_fmt *f = half ? &F16 : &F32;

	return (uint32_t)ref_scale(
		f, ref_from_int(f, (int64_t)(rnd() % 2000) - 1000, 0), -3, 0);
}

/* Every dword, or double, of memory and data a number. */
static void make_real(struct image *m, int bytes)
{
	uint64_t u;

	for (int at = 0; at < USED_LDS; at += bytes) {
		u = bytes == 8 ? ref_convert(&F64, &F32, exact(false), 0) :
				 exact(false);
		if (at < (int)sizeof(m->mem))
			memcpy(m->mem + at, &u, (size_t)bytes);
		memcpy(m->lds + at, &u, (size_t)bytes);
	}
	for (int i = 0; i < 64; i++)
		for (int r = V_DST; r + 1 < REGS; r += bytes / 4) {
			u = bytes == 8 ?
				    ref_convert(&F64, &F32, exact(false), 0) :
				    exact(false);
			memcpy(&m->v[i][r], &u, (size_t)bytes);
		}
}

/* ----------------------------------------------------------- addresses ---- */

/* One program: its instruction, and where each lane's bytes begin. */
struct program {
	struct isa_inst in;
	const struct memory_row *row;
	int wave, fmt;
	int offset, second; /* bytes; of the second address */
	int lane_bytes;
};

static uint8_t *bytes_of(const struct program *p, struct image *m, int lane)
{
	int at = START + lane * LANE + p->offset;

	switch (p->fmt) {
	case ISA_FMT_DS:
		return m->lds + at;
	case ISA_FMT_SCRATCH:
		return m->scratch[lane] + p->offset;
	}
	return m->mem + at;
}

static void lane_addresses(const struct program *p, struct image *m)
{
	uint64_t base = BENCH_DATA;

	for (int i = 0; i < 64; i++) {
		uint64_t at = START + (uint64_t)i * LANE;

		if (p->fmt == ISA_FMT_FLAT ||
		    (p->fmt == ISA_FMT_GLOBAL &&
		     p->in.f[ISA_F_SADDR] == ISA_R_NULL))
			at += base;
		if (p->fmt == ISA_FMT_SCRATCH)
			at = 0;
		m->v[i][V_ADDR] = (uint32_t)at;
		m->v[i][V_ADDR + 1] = (uint32_t)(at >> 32);
	}
	m->s[S_BASE] = (uint32_t)base;
	m->s[S_BASE + 1] = base >> 32;
	m->s[S_BUFFER] = (uint32_t)base;
	m->s[S_BUFFER + 1] = base >> 32;
	m->s[S_BUFFER + 2] = BENCH_PAGE;
	m->s[ISA_R_M0] = 512;
}

/* Raw, x y z w in order, and the floats of as many components. */
static uint32_t last_word(int n)
{
	static const uint32_t number[] = { 0, 22, 50, 60, 63 };

	return 0x30000facu | number[n] << 12;
}

static uint32_t typed_format(int n)
{
	return last_word(n) >> 12 & 63;
}

/* --------------------------------------------------------- expectation ---- */

static bool active(const struct image *m, int lane)
{
	return m->s[ISA_R_EXEC_LO + lane / 32] >> lane % 32 & 1;
}

static uint64_t data_of(const uint32_t *v, int reg, int bytes)
{
	return bytes == 8 ? v[reg] | (uint64_t)v[reg + 1] << 32 : v[reg];
}

static void put_half(uint32_t *v, enum half half, uint32_t u)
{
	if (half == WHOLE)
		*v = u;
	else if (half == LOW)
		*v = (*v & 0xffff0000) | (u & 0xffff);
	else
		*v = (*v & 0xffff) | u << 16;
}

static uint32_t extended(const uint8_t *at, int bytes, bool is_signed)
{
	uint32_t u = 0;

	memcpy(&u, at, (size_t)(bytes < 4 ? bytes : 4));
	if (is_signed)
		u = bytes == 1 ? (uint32_t)(int8_t)u : (uint32_t)(int16_t)u;
	return u;
}

static void want_load(const struct program *p, uint32_t *v, const uint8_t *at)
{
	const struct memory_row *r = p->row;

	if (r->bytes < 4)
		put_half(&v[V_DST], r->half,
			 extended(at, r->bytes, r->is_signed));
	else
		memcpy(&v[V_DST], at, (size_t)r->bytes);
}

static void want_atomic(const struct program *p, uint32_t *v, uint8_t *at)
{
	const struct memory_row *r = p->row;
	bool ds = p->fmt == ISA_FMT_DS;
	uint64_t m = 0, a = data_of(v, V_A, r->bytes), d, b;

	/* DS has the second operand in DATA1, others behind the first. */
	b = data_of(v, ds ? V_B : V_A + r->bytes / 4, r->bytes);
	memcpy(&m, at, (size_t)r->bytes);
	d = r->fn(m, a, b);
	memcpy(at, &d, (size_t)r->bytes);
	if (ds ? r->flags & RTN : p->in.f[ISA_F_GLC])
		memcpy(&v[p->in.opnd[0].reg], &m, (size_t)r->bytes);
}

static void want_pair(const struct program *p, uint32_t *v, uint8_t *at)
{
	const size_t n = (size_t)p->row->bytes;
	uint8_t old[2][8], *second = at + p->second - p->offset;

	memcpy(old[0], at, n);
	memcpy(old[1], second, n);
	if (p->row->kind != (PAIR | LOADS)) {
		memcpy(at, &v[V_A], n);
		memcpy(second, &v[V_B], n);
	}
	if (p->row->kind != (PAIR | STORES)) {
		memcpy(&v[V_DST], old[0], n);
		memcpy((uint8_t *)&v[V_DST] + n, old[1], n);
	}
}

/* `got` fills the half register that three halves leave open. */
static void want_typed(const struct program *p, uint32_t *v, uint8_t *at,
		       const uint32_t *got)
{
	const struct memory_row *r = p->row;
	bool load = r->kind == (TYPED | LOADS);

	if (r->half && r->bytes & 1 && load && r->half == LOW)
		v[V_DST + r->bytes / 2] = got[V_DST + r->bytes / 2];
	for (int i = 0; i < r->bytes; i++) {
		enum half h = r->half == HIGH || i & 1 ? HIGH : LOW;
		uint32_t u, *reg = &v[(load ? V_DST : V_A) + i];

		if (r->half)
			reg = &v[(load ? V_DST : V_A) + i / 2];
		memcpy(&u, at + 4 * i, 4);
		if (load && r->half)
			put_half(reg, h,
				 (uint32_t)ref_convert(&F16, &F32, u, 0));
		else if (load)
			*reg = u;
		u = !r->half ? *reg :
			       (uint32_t)ref_convert(
				       &F32, &F16,
				       (h == HIGH ? *reg >> 16 : *reg) & 0xffff,
				       0);
		if (!load)
			memcpy(at + 4 * i, &u, 4);
	}
}

static void want_lane(const struct program *p, struct image *want, int lane,
		      const struct image *got)
{
	uint32_t *v = want->v[lane], u;
	uint8_t *at = bytes_of(p, want, lane);
	const struct memory_row *r = p->row;

	if (r->kind == LOADS)
		want_load(p, v, at);
	else if (r->kind == STORES)
		memcpy(at, (uint8_t *)&v[V_A] + (r->half == HIGH ? 2 : 0),
		       (size_t)r->bytes);
	else if (r->kind == ATOMICS)
		want_atomic(p, v, at);
	else if (r->kind & PAIR)
		want_pair(p, v, at);
	else if (r->kind & TYPED)
		want_typed(p, v, at, got->v[lane]);
	else if (r->kind == TO_LDS) {
		u = extended(at, r->bytes, r->is_signed);
		/* M0 + offset + 4 bytes a lane: RDNA3 ISA 9.1.9. */
		memcpy(want->lds + 512 + p->in.f[ISA_F_OFFSET] + 4 * lane, &u,
		       4);
	}
}

static void expect(const struct program *p, const struct image *old,
		   const struct image *got, struct image *want)
{
	*want = *old;
	if (p->row->kind == SCALAR)
		memcpy(&want->s[S_DST], old->mem + p->offset,
		       (size_t)p->row->bytes * 4);
	else if (p->row->kind)
		for (int i = 0; i < p->wave; i++)
			if (active(old, i))
				want_lane(p, want, i, got);
}

/* ------------------------------------------------------------ programs ---- */

static int aligned_offset(int limit, int unit)
{
	return (int)(rnd() % (unsigned)(limit / unit)) * unit;
}

static void set_offsets(struct program *p, uint32_t *f)
{
	const struct memory_row *r = p->row;
	int unit = r->bytes >= 4 ? (r->bytes > 8 ? 16 : r->bytes) : r->bytes;

	if (r->kind & PAIR) {
		bool near = r->unit == r->bytes;

		f[ISA_F_OFFSET0] = rnd() % 2;
		f[ISA_F_OFFSET1] = near ? 2 + rnd() % 2 :
					  2048u / (unsigned)r->unit +
						   rnd() % 4 + f[ISA_F_OFFSET0];
		p->offset = (int)f[ISA_F_OFFSET0] * r->unit;
		p->second = (int)f[ISA_F_OFFSET1] * r->unit;
		return;
	}
	if (r->kind & TYPED || r->kind == SCALAR)
		unit = 4;
	p->offset = aligned_offset(480, unit ? unit : 1);
	f[ISA_F_OFFSET] = (uint32_t)p->offset;
	f[ISA_F_OFFSET0] = (uint32_t)p->offset & 255;
	f[ISA_F_OFFSET1] = (uint32_t)p->offset >> 8;
}

static bool returns(const struct isa_op_info *op)
{
	for (int i = 0; i < op->n_opnd; i++)
		if (op->opnd[i].slot == ISA_SLOT_DG ||
		    op->opnd[i].slot == ISA_SLOT_DATAG)
			return true;
	return false;
}

static int make(struct program *p, enum isa_op number_of, uint8_t *code)
{
	const struct isa_target target = { ISA_GFX11, p->wave, false };
	const struct isa_op_info *op = isa_op_info(number_of);
	struct isa_inst in = { .op = (uint16_t)number_of, .fmt = op->fmt };
	uint32_t *f = in.f;
	bool has_dst = false;
	int size;

	p->row = &memory_rows[number_of];
	p->fmt = op->fmt;
	f[ISA_F_OP] = (uint32_t)op->opcode[ISA_GFX11];
	if (p->row->kind)
		set_offsets(p, f);
	for (int i = 0; i < op->n_opnd; i++)
		switch (op->opnd[i].slot) {
		case ISA_SLOT_D:
		case ISA_SLOT_DG:
			has_dst = true;
			break;
		case ISA_SLOT_VADDR:
			f[ISA_F_ADDR] = V_ADDR;
			break;
		case ISA_SLOT_DATA:
		case ISA_SLOT_DATA0:
			f[ISA_F_DATA0] = f[ISA_F_VDATA] = V_A;
			break;
		case ISA_SLOT_DATA1:
			f[ISA_F_DATA1] = V_B;
			break;
		case ISA_SLOT_DATAG:
			f[ISA_F_VDATA] = V_A;
			break;
		case ISA_SLOT_SADDR:
			f[ISA_F_SADDR] = op->fmt == ISA_FMT_GLOBAL &&
							 chance(50) ?
						 S_BASE :
						 ISA_R_NULL;
			break;
		case ISA_SLOT_SRSRC:
			f[ISA_F_SRSRC] = S_BUFFER / 4;
			f[ISA_F_OFFEN] = 1;
			f[ISA_F_SOFFSET] = 128;
			break;
		case ISA_SLOT_SBASE:
			f[ISA_F_SBASE] = op->opnd[i].type == ISA_T_B128 ?
						 S_BUFFER / 2 :
						 S_BASE / 2;
			f[ISA_F_SDATA] = S_DST;
			f[ISA_F_SOFFSET] = ISA_R_NULL;
			break;
		case ISA_SLOT_SDIMM:
			f[ISA_F_SDATA] = 1;
			break;
		case ISA_SLOT_FORMAT:
			f[ISA_F_FORMAT] = typed_format(p->row->bytes);
		}
	if (op->fmt == ISA_FMT_SCRATCH)
		f[ISA_F_SVE] = 1;
	if (returns(op))
		f[ISA_F_GLC] = p->row->flags & RTN ? 1 : chance(50);
	if (has_dst && (!returns(op) || f[ISA_F_GLC]))
		f[ISA_F_VDST] = f[ISA_F_VDATA] = V_DST;
	if (number_of == ISA_s_atc_probe || number_of == ISA_s_atc_probe_buffer)
		f[ISA_F_SDATA] = 1;
	memset(code, 0, ISA_MAX_SIZE_BYTES);
	size = isa_encode(&in, code);
	if (!size || isa_decode(&target, code, (size_t)size, &p->in))
		return 0;
	return size;
}

static void fill_image(const struct program *p, struct image *m)
{
	random_bytes(m, sizeof(*m));
	if (p->row->flags & REAL)
		make_real(m, p->row->bytes);
	if (p->row->kind & TYPED)
		make_real(m, 4);
	if (p->row->kind & TYPED && p->row->half)
		for (int i = 0; i < 64; i++)
			for (int r = V_A; r < V_A + 2; r++)
				m->v[i][r] = exact(true) | exact(true) << 16;
	/* What compares finds what it looks for, half the time. */
	for (int i = 0; i < 64 && p->row->flags & CMP; i++)
		if (chance(50))
			memcpy(&m->v[i][p->fmt == ISA_FMT_DS ?
						V_B :
						V_A + p->row->bytes / 4],
			       bytes_of(p, m, i), (size_t)p->row->bytes);
	lane_addresses(p, m);
	m->s[S_BUFFER + 3] =
		last_word(p->row->kind & TYPED ? p->row->bytes : 1);
	m->s[ISA_R_NULL] = 0;
	for (int h = 0; h < 2; h++)
		m->s[ISA_R_EXEC_LO + h] = chance(40) ? ~0u : (uint32_t)rnd();
	if (p->wave == 32)
		m->s[ISA_R_EXEC_HI] = 0;
}

static bool go_image(struct bench *b, const struct image *from, uint64_t slice,
		     struct image *to)
{
	struct soft_wave *w = &b->wave[0];

	put_image(b, from);
	w->pc = BENCH_CODE;
	w->state = SOFT_READY;
	for (int i = 0; i < 8 && w->state == SOFT_READY; i++)
		soft_wave_run(w, slice);
	*to = *from;
	get_image(b, to);
	if (w->state != SOFT_ENDED)
		diag("stopped: %s", w->fault.text);
	return w->state == SOFT_ENDED;
}

static void explain_image(const struct program *p, const struct image *old,
			  const struct image *got, const struct image *want)
{
	const struct isa_target target = { ISA_GFX11, p->wave, false };
	char text[ISA_TEXT_MAX];

	isa_print(&target, &p->in, text, sizeof(text));
	diag("%s (wave%d)", text, p->wave);
	for (int i = 0; i < 128; i++)
		if (got->s[i] != want->s[i])
			diag("  s%d: got 0x%08x, wanted 0x%08x", i, got->s[i],
			     want->s[i]);
	for (int i = 0, n = 0; i < 64 && n < 2; i++)
		for (int r = 0; r < REGS; r++)
			if (got->v[i][r] != want->v[i][r] && n++ < 2)
				diag("  v%d lane %d: was 0x%08x, got 0x%08x, "
				     "wanted 0x%08x", r, i, old->v[i][r],
				     got->v[i][r], want->v[i][r]);
	for (int i = 0, n = 0; i < USED_LDS && n < 4; i++) {
		if (got->lds[i] != want->lds[i] && n++ < 4)
			diag("  LDS 0x%x: got 0x%02x, wanted 0x%02x", i,
			     got->lds[i], want->lds[i]);
		if (i < (int)sizeof(got->mem) && got->mem[i] != want->mem[i] &&
		    n++ < 4)
			diag("  memory 0x%x: got 0x%02x, wanted 0x%02x", i,
			     got->mem[i], want->mem[i]);
	}
	if (memcmp(got->scratch, want->scratch, sizeof(got->scratch)))
		diag("  scratch differs");
}

static int test_program(enum isa_op op, int wave)
{
	static struct image old, got, want;
	struct program p = { .wave = wave };
	uint8_t code[ISA_MAX_SIZE_BYTES];
	struct bench b;
	int bad = 0, size = make(&p, op, code);

	if (!size) {
		diag("%s does not encode", isa_op_info(op)->name);
		return 1;
	}
	bench_init(&b, wave, 1);
	bench_load(&b, code, (size_t)size);
	for (int i = 0; i < 4 && !bad; i++) {
		fill_image(&p, &old);
		for (int k = 0; i & 1 && k < WARM; k++)
			go_image(&b, &old, 1000, &got);
		if (!go_image(&b, &old, i & 1 ? 1000 : 1, &got)) {
			bad++;
			break;
		}
		expect(&p, &old, &got, &want);
		bad += memcmp(&got, &want, sizeof(got)) != 0;
	}
	if (bad)
		explain_image(&p, &old, &got, &want);
	bench_fini(&b);
	return bad;
}

static void test_elsewhere(const struct elsewhere *e)
{
	const char *name = isa_op_info((enum isa_op)e->op)->name;
	struct buf b = { 0 };
	struct err error = { 0 };

	file_read(e->test, 0, &b, &error);
	has_str(b.data ? b.data : error.msg, name, "%s has rows in %s", name,
		e->test);
	buf_fini(&b);
}

static bool is_memory(const struct isa_op_info *op)
{
	switch (op->fmt) {
	case ISA_FMT_SMEM:
	case ISA_FMT_DS:
	case ISA_FMT_FLAT:
	case ISA_FMT_GLOBAL:
	case ISA_FMT_SCRATCH:
	case ISA_FMT_MUBUF:
	case ISA_FMT_MTBUF:
		/* There is no global data share to compute with. */
		return op->opcode[ISA_GFX11] >= 0 &&
		       !(op->flags & (ISA_GFX | ISA_GDSONLY));
	}
	return false;
}

static void test_one(enum isa_op op)
{
	int bad = 0;

	for (size_t i = 0; i < ARRAY_SIZE(elsewhere); i++)
		if (elsewhere[i].op == op) {
			test_elsewhere(&elsewhere[i]);
			return;
		}
	if (!memory_rows[op].kind && !is_hint(op)) {
		ok(false, "%s has a row", isa_op_info(op)->name);
		return;
	}
	for (int i = 0; i < PROGRAMS && !bad; i++)
		bad += test_program(op, i & 1 ? 64 : 32);
	is_u64((uint64_t)bad, 0, "%s", isa_op_info(op)->name);
}

int main(void)
{
	diag("seed 0x%llx", (unsigned long long)seed);
	for (int i = 1; i < ISA_OP_COUNT; i++)
		if (is_memory(isa_op_info((enum isa_op)i)))
			test_one((enum isa_op)i);
	return plan_done();
}
