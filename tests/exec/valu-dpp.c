/*
 * Every DPP16 control, DPP8, masks, bound_ctrl and fetch-inactive, against a
 * per-lane reference that is written from the manual's prose.
 */
#include "tests/exec/valu.h"
#include "tests/ref/dpp.h"

static uint64_t state = 0x5eed0421;

static uint32_t random32(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return state >> 32;
}

static bool is_control(int ctrl)
{
	return ctrl < 0x100 || (ctrl > 0x100 && ctrl <= 0x10f) ||
	       (ctrl > 0x110 && ctrl <= 0x11f) ||
	       (ctrl > 0x120 && ctrl <= 0x12f) || ctrl == 0x140 ||
	       ctrl == 0x141 || (ctrl >= 0x150 && ctrl <= 0x16f);
}

struct setting {
	int ctrl;
	bool fi, bound;
	uint32_t rows, banks;
};

static uint32_t reference(const struct setting *s, const struct machine *m,
			  int half, int lane)
{
	uint32_t exec = m->w.s[ISA_R_EXEC_LO + half];
	int from = ref_dpp_lane(s->ctrl, lane);
	uint32_t old = m->v[half][0][lane], value = 0;
	bool readable = from >= 0;

	if (!(exec & 1u << lane))
		return old;
	if (!(s->rows & 1u << lane / 16) || !(s->banks & 1u << lane % 16 / 4))
		return old;
	if (readable && !s->fi && !(exec & 1u << from))
		readable = false;
	if (!readable && !s->bound)
		return old;
	if (readable)
		value = m->v[half][1][from];
	return value + m->v[half][2][lane];
}

static void randomise(struct machine *m, int wave_size, bool all)
{
	machine_init(m, wave_size);
	for (int half = 0; half < wave_size / 32; half++) {
		for (int i = 0; i < SOFT_LANES; i++)
			for (int r = 0; r < 3; r++)
				m->v[half][r][i] = random32();
		m->w.s[ISA_R_EXEC_LO + half] = all ? ~0u : random32();
	}
}

static int one_control(const struct setting *s, int wave_size, bool all)
{
	uint32_t dpp = 1 | (uint32_t)s->ctrl << 8 | (uint32_t)s->fi << 18 |
		       (uint32_t)s->bound << 19 | s->banks << 24 |
		       s->rows << 28;
	struct machine m, before;
	int bad = 0;

	randomise(&m, wave_size, all);
	before = m;
	before.w.v[0] = before.v[0];
	run_as(&m, false,
	       &(struct isa_inst){ .op = ISA_v_add_nc_u32,
				   .form = ISA_FORM_DPP16,
				   .extra = { dpp },
				   .f = { S0(250), VS1(2), D(0) } });
	for (int half = 0; half < wave_size / 32; half++)
		for (int i = 0; i < SOFT_LANES; i++)
			if (m.v[half][0][i] != reference(s, &before, half, i)) {
				if (!bad++)
					diag("control %#x lane %d: got %#x, "
					     "wanted %#x",
					     s->ctrl, i, m.v[half][0][i],
					     reference(s, &before, half, i));
			}
	return bad;
}

static void test_controls(void)
{
	int bad = 0, n = 0;

	for (int ctrl = 0; ctrl < 0x170; ctrl++) {
		if (!is_control(ctrl))
			continue;
		for (int bits = 0; bits < 8; bits++) {
			struct setting s = { ctrl, bits & 1, bits & 2, 15, 15 };

			if (bits & 4) {
				s.rows = random32() & 15;
				s.banks = random32() & 15;
			}
			bad += one_control(&s, n & 1 ? 64 : 32, !(n % 5));
			n++;
		}
	}
	is_u64(bad, 0, "%d settings of all DPP16 controls agree", n);
}

static void test_dpp8(void)
{
	int bad = 0;

	for (int n = 0; n < 200; n++) {
		struct machine m, before;
		uint32_t dpp = random32() << 8 | 1;
		bool fi = n & 1;

		randomise(&m, n & 2 ? 64 : 32, false);
		before = m;
		run_as(&m, false,
		       &(struct isa_inst){ .op = ISA_v_mov_b32,
					   .form = ISA_FORM_DPP8,
					   .extra = { dpp },
					   .f = { S0(fi ? 234 : 233), D(0) } });
		for (int half = 0; half < m.w.wave_size / 32; half++)
			for (int i = 0; i < SOFT_LANES; i++) {
				uint32_t exec = m.w.s[ISA_R_EXEC_LO + half];
				int from = i / 8 * 8 +
					   (dpp >> (8 + i % 8 * 3)) % 8;
				uint32_t want = before.v[half][1][from];

				if (!fi && !(exec & 1u << from))
					want = 0;
				if (!(exec & 1u << i))
					want = before.v[half][0][i];
				bad += m.v[half][0][i] != want;
			}
	}
	is_u64(bad, 0, "200 random DPP8 selections agree");
}

static void test_with_modifiers(void)
{
	/* row_shr:1, bound_ctrl, neg and abs of SRC0; banks and rows all. */
	uint32_t dpp = 1 | 0x111u << 8 | 1u << 19 | 1u << 20 | 1u << 21 |
		       0xffu << 24;
	struct machine m;

	machine_init(&m, 32);
	for (int i = 0; i < SOFT_LANES; i++)
		m.v[0][1][i] = i == 3 ? 0xc0000000 : 0x3f800000;
	fill(&m, 2, 0x3f800000);
	run_as(&m, false,
	       &(struct isa_inst){ .op = ISA_v_add_f32,
				   .form = ISA_FORM_DPP16,
				   .extra = { dpp },
				   .f = { S0(250), VS1(2), D(0) } });
	is_u64(m.v[0][0][4], 0xbf800000, "-|-2| + 1 in the lane above");
	is_u64(m.v[0][0][0], 0x3f800000, "the row's first lane reads zero");
	is_u64(m.v[0][0][1], 0, "-1 + 1");

	/* VOP3 with DPP: v_add_f32_e64_dpp with clamp. */
	run_as(&m, true,
	       &(struct isa_inst){ .op = ISA_v_add_f32,
				   .form = ISA_FORM_DPP16,
				   .extra = { 1 | 0x111u << 8 | 0xffu << 24 },
				   .f = { S0(250), S1(VREG(2)),
					  D(5), [ISA_F_CLAMP] = 1 } });
	is_u64(m.v[0][5][2], 0x3f800000, "VOP3 DPP clamps 2 to 1");
	is_u64(m.v[0][5][4], 0, "and -1 to 0");
	is_u64(m.v[0][5][16], 0, "without bound_ctrl the lane is not written");

	/* Compares: lanes that DPP disables give 0. */
	run_as(&m, false,
	       &(struct isa_inst){ .op = ISA_v_cmp_t_u32,
				   .form = ISA_FORM_DPP16,
				   .extra = { 1 | 0x111u << 8 | 0xffu << 24 },
				   .f = { S0(250), VS1(2) } });
	is_u64(m.w.s[106], 0xfffefffe, "v_cmp under row_shr:1");
}

int main(void)
{
	diag("seed %#llx", (unsigned long long)state);
	test_controls();
	test_dpp8();
	test_with_modifiers();
	return plan_done();
}
