/*
 * A forecast of a real kernel: the same with time jumps as without, every
 * address known, bounds of the machine kept, and sharing seen.
 */
#include <math.h>
#include <string.h>

#include "compiler/gemm/gemm.h"
#include "compiler/sim/sim.h"
#include "tests/tap.h"

#define BOUND 0.02 /* of the cycles, between jumps and the full simulation */

static const char *const configs[] = {
	"128x128x32_w2x2_b2_p1_u1_g8_pad_wgp_even",
	"128x96x32_w2x2_b1_p1_u1_g8_swz_wgp",
	"64x64x32_w2x2_b2_p1_u1_g4_pad_cu",
};
static const uint32_t sizes[] = { 2048, 2048, 1000 };

static const struct gemm_op op = { .in = DSL_BF16, .out = DSL_BF16,
				   .b_trans = true };

struct product {
	struct gemm_code code;
	struct gemm_launch g;
	struct co co;
	struct sim_launch l;
	uint8_t args[512];
};

static bool compile(struct product *p, size_t k, struct err *e)
{
	const uint64_t n = sizes[k];
	const struct gemm_shape s = { .m = sizes[k], .n = sizes[k],
				      .k = sizes[k], .batch = 1, .lda = n,
				      .ldb = n, .ldc = n };
	const struct gemm_operands x = { .a = UINT64_C(1) << 40,
					 .b = UINT64_C(2) << 40,
					 .c = UINT64_C(3) << 40, .alpha = 1 };
	struct gemm_config c;
	struct cc_options o;

	memset(p, 0, sizeof(*p));
	cc_options_init(&o);
	if (!gemm_config_parse(configs[k], &c, e) ||
	    !gemm_check(&op, &c, e) ||
	    !gemm_compile(&op, &c, &o, &p->code, e) ||
	    !gemm_launch(&op, &c, &s, &x, &p->g, e) ||
	    !co_parse(&p->co, p->code.object[0].bytes.data,
		      p->code.object[0].bytes.len, e))
		return false;
	memcpy(p->args, p->g.step[0].args, p->g.step[0].args_bytes);
	p->l = (struct sim_launch){
		.kernel = co_kernel_require(&p->co, p->g.step[0].kernel, e),
		.kernarg = p->args, .kernarg_bytes = sizeof(p->args),
		.group_size = { p->g.step[0].group_size, 1, 1 },
	};
	memcpy(p->l.groups, p->g.step[0].groups, sizeof(p->l.groups));
	return p->l.kernel;
}

/* ---- a WGP's workgroups ---- */

static bool open_source(void *ctx, struct sim_source *s, int n, struct err *e)
{
	const struct product *p = ctx;

	return sim_object_open(s, &p->l, n, 48, e);
}

static uint64_t unknown;

static void close_source(struct sim_source *s)
{
	unknown += s->unknown;
	sim_object_close(s);
}

static void test_product(const struct cost_model *m, size_t k)
{
	struct product p;
	struct err e = { 0 };
	struct sim_forecast full, jumps;

	if (!ok(compile(&p, k, &e), "%s: %s", configs[k], e.msg))
		return;
	struct sim_dispatch d = {
		.cost = m, .warmth = SIM_WARM, .clock_mhz = 2400,
		.groups = (uint64_t)p.l.groups[0] * p.l.groups[1] *
			  p.l.groups[2],
		.footprint_bytes = 6ull * sizes[k] * sizes[k],
		.open = open_source, .close = close_source, .ctx = &p,
	};
	unknown = 0;
	if (!ok(sim_forecast(&d, &full, &e), "in full: %s", e.msg))
		return;
	d.trips = SIM_TRIPS;
	if (!ok(sim_forecast(&d, &jumps, &e), "with jumps: %s", e.msg))
		return;
	is_u64(unknown, 0, "all addresses are known");
	ok(fabs(jumps.cycles / full.cycles - 1) <= BOUND,
	   "%.0f cycles, in full %.0f", jumps.cycles, full.cycles);
	/* 32 cycles a product of 8192 operations on each of 192 SIMDs. */
	double n = sizes[k], least = 2 * n * n * n / 8192 * 32 / 192;
	ok(full.cycles > least && full.cycles < 4 * least,
	   "the matrix units alone need %.0f", least);
	is_i64(full.groups, (int64_t)((d.groups + 47) / 48),
	       "workgroups of the fullest WGP");
	/* Whole tiles are computed; what scales and rounds them is little. */
	double tiles = sim_flop(&full.round) / full.round.n_waves *
		       (double)d.groups * p.l.group_size[0] / 32;
	double area = 128.0 * (k == 1 ? 96 : 128) / (k == 2 ? 4 : 1);
	double want = 2 * area * (double)d.groups * ceil(n / 32) * 32;
	ok(tiles >= want && tiles < 1.02 * want,
	   "%.4g operations, of tiles %.4g", tiles, want);
	double jumped = sim_flop(&jumps.round) / sim_flop(&full.round);
	ok(fabs(jumped - 1) <= BOUND, "with jumps %.4f of them", jumped);
	/* Each tile of A and B is fetched by many workgroups, but once. */
	ok(full.round.exchanged_bytes < (double)full.round.bytes[SIM_L2],
	   "memory is asked for less than L2");
	sim_forecast_fini(&full);
	sim_forecast_fini(&jumps);
	co_fini(&p.co);
	gemm_code_fini(&p.code);
}

/* What a client gets wrong is told. */
static void test_refused(const struct cost_model *m)
{
	struct product p;
	struct err e = { 0 };
	struct sim_forecast f;

	if (!ok(compile(&p, 0, &e), "compiles"))
		return;
	p.l.kernarg_bytes = 8;
	ok(!sim_object_forecast(m, &p.l, 0, &f, &e) && e.code == ERR_INPUT,
	   "too few arguments: %s", e.msg);
	p.l.kernarg_bytes = sizeof(p.args);
	p.l.group_size[0] = 2048;
	e = (struct err){ 0 };
	ok(!sim_object_forecast(m, &p.l, 0, &f, &e) && e.code == ERR_INPUT,
	   "too many work-items: %s", e.msg);
	p.l.group_size[0] = 128;
	p.l.groups[1] = 0;
	e = (struct err){ 0 };
	ok(!sim_object_forecast(m, &p.l, 0, &f, &e) && e.code == ERR_INPUT,
	   "no workgroups: %s", e.msg);
	co_fini(&p.co);
	gemm_code_fini(&p.code);
}

int main(void)
{
	struct cost_model m;

	cost_init(&m, "gfx1100");
	for (size_t k = 0; k < ARRAY_SIZE(configs); k++)
		test_product(&m, k);
	test_refused(&m);
	cost_fini(&m);
	return plan_done();
}
