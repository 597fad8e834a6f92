/*
 * probes/micro/micro_mix.c - t0-probe overlap, branch, fetch and waves on a
 * GPU.
 *
 * Instructions together, jumps and barriers, code larger than the instruction
 * cache, and several waves of a SIMD.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probes/micro/micro.h"

static const struct micro_inst *find_inst(const char *name)
{
	size_t n;
	const struct micro_inst *v = micro_insts(&n);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(v[i].name, name))
			return &v[i];
	BUG("%s is not in micro_inst.def", name);
}

/* What the chip of the device does not have is left out. */
static bool is_there(const struct micro_device *d, const char *name)
{
	return micro_inst_on(find_inst(name), kfd_info(d->dev)->gfx);
}

static double median_cycles(const struct micro_probe *p)
{
	return probe_series_median(&p->series).value;
}

/* -------------------------------------------------------------- overlap -- */

#define MIX_COPIES 16
#define MIX_WAVES  8 /* two a SIMD: one wave issues one instruction a cycle */

static const struct {
	const char *a, *b;
} pairs[] = {
	{ "v_add_f32", "s_add_u32" },
	{ "v_add_f32", "v_rcp_f32" },
	{ "v_add_f32", "v_mul_lo_u32" },
	{ "v_add_f32", "v_add_f64" },
	{ "v_add_f32", "ds_load_b32" },
	{ "v_rcp_f32", "ds_load_b32" },
	{ "v_add_f32", "global_load_b32" },
	{ "ds_load_b32", "global_load_b32" },
	{ "s_add_u32", "s_load_b32" },
	{ "v_rcp_f32", "s_mul_i32" },
	{ "v_add_f32", "v_dual_add_f32" },
	{ "v_mul_lo_u32", "v_rcp_f32" },
};

/* A and B in turns, on registers of their own. */
static bool make_mix(struct micro_probe *p, struct micro_device *d,
		     const struct micro_inst *a, const struct micro_inst *b,
		     struct err *e)
{
	struct buf setup = { 0 }, init = { 0 }, body[2] = { { 0 }, { 0 } };

	micro_inst_init(a, false, &setup, &init);
	micro_inst_init(b, true, &setup, &init);
	for (int k = 0; k < 2 * MIX_COPIES; k++)
		for (int loop = k < MIX_COPIES ? 0 : 1; loop < 2; loop++) {
			micro_inst_copy(a, k, false, &body[loop]);
			micro_inst_copy(b, k, true, &body[loop]);
		}
	char lo[16], hi[16];

	micro_inst_result(a, false, lo);
	micro_inst_result(b, true, hi);
	const struct micro_text t = { .setup = setup.data, .init = init.data,
				      .loop = { body[0].data, body[1].data },
				      .lo = lo, .hi = hi,
				      .lds_bytes = 4096, .waves = MIX_WAVES };
	const bool good = micro_probe_init(p, d, &t, a->name, MIX_COPIES, 0, e);

	p->inst = a;
	p->second = b;
	p->stream = true;
	buf_fini(&setup);
	buf_fini(&init);
	buf_fini(&body[0]);
	buf_fini(&body[1]);
	return good;
}

static bool mix_row(struct micro_device *d, struct micro_probe p[3],
		    const char *a, const char *b, struct err *e)
{
	static const char *const alone[3] = { "first", "second" };
	struct table *t = &d->table;
	char params[96];

	table_row(t);
	table_cell(t, 0, "%s", a);
	table_cell(t, 1, "%s", b);
	for (int i = 0; i < 3; i++) {
		if (!p[i].series.n)
			return true;
		table_cell(t, 2 + i, "%.2f", median_cycles(&p[i]));
		d->wrong += !p[i].right;
	}
	const double one = median_cycles(&p[0]), two = median_cycles(&p[1]);
	table_cell(t, 5, "%.0f", 100 * (one + two - median_cycles(&p[2])) /
					 (one < two ? one : two));
	bool good = true;
	for (int i = 0; i < 3 && good; i++) {
		res_params(params, sizeof(params), "with:s ?alone:s", b,
			   alone[i]);
		good = micro_probe_store(&p[i], "overlap", a, params,
					 "interval", "cycle", 1, e);
	}
	return good;
}

int micro_overlap(const struct probe_opts *o, struct err *e)
{
	enum { N = 3 * ARRAY_SIZE(pairs) };
	struct micro_probe *p = xcalloc(N, sizeof(*p));
	size_t use[ARRAY_SIZE(pairs)], n = 0;
	struct micro_device d;
	bool good = micro_device_open(&d, o, "overlap",
				      "first,second,#first_alone,"
				      "#second_alone,#together,"
				      "#overlap_percent", e);

	for (size_t i = 0; i < ARRAY_SIZE(pairs) && good; i++)
		if (is_there(&d, pairs[i].a) && is_there(&d, pairs[i].b))
			use[n++] = i;
	for (size_t i = 0; i < n && good; i++) {
		const struct micro_inst *a = find_inst(pairs[use[i]].a),
					*b = find_inst(pairs[use[i]].b);

		good = micro_inst_probe(&p[3 * i], &d, a, true, MIX_WAVES, e) &&
		       micro_inst_probe(&p[3 * i + 1], &d, b, true, MIX_WAVES,
					e) &&
		       make_mix(&p[3 * i + 2], &d, a, b, e);
	}
	good = good && micro_probe_run(p, 3 * n, e);
	for (size_t i = 0; i < n && good; i++)
		good = mix_row(&d, &p[3 * i], pairs[use[i]].a, pairs[use[i]].b,
			       e);
	for (size_t i = 0; i < N; i++)
		micro_probe_fini(&p[i]);
	free(p);
	return micro_device_close(&d, good, e);
}

/* ---------------------------------------------------- simple text probes -- */

/*
 * The texts move v12 or leave v32 as it is, and have an instruction that would
 * change s40 where no wave may come by.
 */
#define TEXT_MOVED 0x5eed0001
#define TEXT_KEPT  0x5eed0002
static const char text_setup[] = "v_mov_b32 v12, 0x5eed0001\n"
				 "v_mov_b32 v32, 0x5eed0001\n"
				 "s_mov_b32 s40, 0x5eed0002\n";

/* A loop of `copies` times `text`, by so many waves. */
static bool text_probe(struct micro_probe *p, struct micro_device *d,
		       const char *name, const char *text, int copies,
		       uint32_t waves, uint32_t iterations, struct err *e)
{
	struct buf body[2] = { { 0 }, { 0 } };

	for (int k = 0; k < 2 * copies; k++)
		for (int loop = k < copies ? 0 : 1; loop < 2; loop++)
			micro_expand(&body[loop], text, 32 + k % 16);
	const struct micro_text t = { .setup = text_setup,
				      .loop = { body[0].data, body[1].data },
				      .lo = "v32", .hi = "s40",
				      .waves = waves };
	const bool good = micro_probe_init(p, d, &t, name, copies, iterations,
					   e);

	p->has_values = true;
	for (int k = 0; k < 2 * MICRO_LANES; k++) {
		p->want[k / MICRO_LANES][0][k % MICRO_LANES] = TEXT_MOVED;
		p->want[k / MICRO_LANES][1][k % MICRO_LANES] = TEXT_KEPT;
	}

	buf_fini(&body[0]);
	buf_fini(&body[1]);
	return good;
}

struct text_row {
	const char *name, *text, *row; /* of cost.def, "" */
	int copies;
	uint32_t waves, iterations;
	int insts; /* of one copy, that count */
};

static bool text_run(const struct probe_opts *o, const char *verb,
		     const struct text_row *rows, size_t n, struct err *e)
{
	struct micro_probe *p = xcalloc(n, sizeof(*p));
	struct micro_device d;
	bool good = micro_device_open(&d, o, verb,
				      "what,#waves,#code_bytes,#cycles,row,"
				      "#cost", e);

	for (size_t i = 0; i < n && good; i++)
		good = text_probe(&p[i], &d, rows[i].name, rows[i].text,
				  rows[i].copies, rows[i].waves,
				  rows[i].iterations, e);
	good = good && micro_probe_run(p, n, e);
	for (size_t i = 0; i < n && good; i++) {
		struct table *t = &d.table;
		const struct text_row *r = &rows[i];
		char params[64];

		d.wrong += !p[i].right;
		table_row(t);
		table_cell(t, 0, "%s", r->name);
		table_cell(t, 1, "%u", r->waves);
		table_cell(t, 2, "%zu", p[i].code.len);
		if (p[i].series.n)
			table_cell(t, 3, "%.3f",
				   median_cycles(&p[i]) / r->insts);
		if (*r->row) {
			table_cell(t, 4, "%s", r->row);
			table_cell(t, 5, "%g",
				   cost_value(&d.costs, cost_row_find(r->row)));
		}
		res_params(params, sizeof(params), "waves:u code_bytes:U",
			   r->waves, (uint64_t)p[i].code.len);
		good = micro_probe_store(&p[i], verb, r->name, params,
					 "latency", "cycle", 1.0 / r->insts, e);
	}
	for (size_t i = 0; i < n; i++)
		micro_probe_fini(&p[i]);
	free(p);
	return micro_device_close(&d, good, e) == EXIT_YES;
}

#define TAKEN "s_branch 1f\ns_not_b32 s40, s40\n1:"

int micro_branch(const struct probe_opts *o, struct err *e)
{
	static const struct text_row rows[] = {
		{ "branch taken", TAKEN, "branch.taken", 8, 1, 0, 1 },
		{ "branch not taken", "s_cbranch_execz 0", "branch.latency", 16,
		  1, 0, 1 },
		{ "conditional taken",
		  "s_cmp_eq_u32 s8, s8\ns_cbranch_scc1 1f\n"
		  "s_not_b32 s40, s40\n1:", "", 8,
		  1, 0, 1 },
		{ "barrier", "s_barrier", "barrier", 16, 2, 0, 1 },
		{ "barrier", "s_barrier", "", 16, 4, 0, 1 },
		{ "barrier", "s_barrier", "", 16, 8, 0, 1 },
		{ "barrier", "s_barrier", "", 16, 16, 0, 1 },
		{ "barrier", "s_barrier", "", 16, 32, 0, 1 },
		{ "s_sleep 1", "s_sleep 1", "sleep.unit", 8, 1, 0, 1 },
	};

	return text_run(o, "branch", rows, ARRAY_SIZE(rows), e) ?
		       EXIT_YES :
		       err_exit_code(e);
}

/*
 * Vector moves of 4 bytes that depend on nothing: what they cost beyond one
 * cycle is fetch.  Both loops alternate, so that their sum must fit.
 */
int micro_fetch(const struct probe_opts *o, struct err *e)
{
	static const int copies[] = { 256, 512, 1024, 2048, 2560, 3072, 4096,
				      6144, 8192 };
	struct text_row rows[ARRAY_SIZE(copies)];

	for (size_t i = 0; i < ARRAY_SIZE(copies); i++)
		rows[i] = (struct text_row){ "v_mov_b32", "v_mov_b32 v%d, v12",
					     "", copies[i], 1, 2, 1 };
	return text_run(o, "fetch", rows, ARRAY_SIZE(rows), e) ?
		       EXIT_YES :
		       err_exit_code(e);
}

/* ---------------------------------------------------------------- waves -- */

/*
 * Chains of dependent instructions: one wave waits for each result, several
 * on a SIMD fill the gaps until the pipe is full.
 */
int micro_waves(const struct probe_opts *o, struct err *e)
{
	static const char *const names[] = { "v_add_f32",
					     "v_add_f32 after s_delay_alu",
					     "v_rcp_f32",
					     "v_wmma_f32_16x16x16_f16",
					     "ds_load_b32", "s_add_u32" };
	static const uint32_t waves[] = { 1, 4, 8, 16, 32 };
	enum { W = ARRAY_SIZE(waves), N = ARRAY_SIZE(names) * W };
	struct micro_probe *p = xcalloc(N, sizeof(*p));
	const char *use[ARRAY_SIZE(names)];
	struct micro_device d;
	size_t n = 0;
	bool good = micro_device_open(&d, o, "waves",
				      "instruction,#waves,#waves_per_simd,"
				      "#cycles_per_wave,#interval_per_simd", e);

	for (size_t i = 0; i < ARRAY_SIZE(names) && good; i++)
		if (is_there(&d, names[i]))
			use[n++] = names[i];
	for (size_t i = 0; i < n * W && good; i++) {
		good = micro_inst_probe(&p[i], &d, find_inst(use[i / W]),
					false, waves[i % W], e);
	}
	good = good && micro_probe_run(p, n * W, e);
	for (size_t i = 0; i < n * W && good; i++) {
		struct table *t = &d.table;
		const double simds = waves[i % W] < 4 ? 1 : waves[i % W] / 4.0;
		char params[64];

		table_row(t);
		table_cell(t, 0, "%s", use[i / W]);
		table_cell(t, 1, "%u", waves[i % W]);
		table_cell(t, 2, "%g", simds);
		if (p[i].series.n) {
			table_cell(t, 3, "%.3f", median_cycles(&p[i]));
			table_cell(t, 4, "%.3f", median_cycles(&p[i]) / simds);
		}
		d.wrong += !p[i].right;
		res_params(params, sizeof(params), "waves:u", waves[i % W]);
		good = micro_probe_store(&p[i], "waves", use[i / W], params,
					 "interval", "cycle", 1 / simds, e);
	}
	for (size_t i = 0; i < N; i++)
		micro_probe_fini(&p[i]);
	free(p);
	return micro_device_close(&d, good, e);
}
