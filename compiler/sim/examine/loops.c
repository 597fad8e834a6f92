/*
 * compiler/sim/examine/loops.c - published rates of plain loops.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/sim/examine/examine.h"
#include "compiler/sim/sim.h"
#include "isa/text/text.h"

enum { WRAP = 168, TRIPS = 24, VGPRS = 96 };

static const struct loop {
	const char *kernel, *dtype, *gpu;
	int simds, waves;
	const char *text;
	int copies, ops, step;
} loops[] = {
#define LOOP(kernel, dtype, gpu, simds, waves, text, copies, ops, step) \
	{ kernel, dtype, gpu, simds, waves, text, copies, ops, step },
#include "compiler/sim/examine/loops.def"
};

/* ---- code ---- */

/* %0 to %9: registers from `first` on. */
static void expand_registers(struct buf *out, const char *text, int first)
{
	for (; *text; text++)
		if (*text == '%')
			buf_printf(out, "%d", first + *++text - '0');
		else
			buf_addc(out, *text);
	buf_addc(out, '\n');
}

static bool assemble_lines(struct buf *code, char *text, struct err *e)
{
	struct isa_target t = { ISA_GFX11, 32, false };
	char *rest;

	for (char *line = strtok_r(text, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		uint8_t bytes[ISA_MAX_SIZE_BYTES];
		struct isa_inst in;
		const char *why =
			isa_assemble_line(&t, line, NULL, NULL, &in, bytes);

		if (why)
			return err_set(e, ERR_INPUT, "%s: %s", line, why);
		buf_add(code, bytes, in.size_bytes);
	}
	return true;
}

/* The body, a loop around it, and in *at where it ends. */
static bool generate_loop(const struct loop *l, struct buf *code, size_t *at,
			  struct err *e)
{
	struct buf text = { 0 };
	char end[] = "s_sub_u32 s0, s0, 1\ns_cmp_lg_u32 s0, s1\n";
	char last[] = "s_endpgm\n", back[64];

	for (int k = 0; k < l->copies; k++)
		expand_registers(&text, l->text, k * l->step % WRAP);
	bool ok = assemble_lines(code, text.data, e) &&
		  assemble_lines(code, end, e);

	*at = code->len;
	snprintf(back, sizeof(back), "s_cbranch_scc1 %d\n",
		 -(int)(code->len / 4 + 1));
	buf_fini(&text);
	return ok && assemble_lines(code, back, e) &&
	       assemble_lines(code, last, e);
}

/* ---- prediction ---- */

static bool simulate_loop(const struct loop *l, double mhz,
			  const struct cost_model *m, double *rate,
			  struct err *e)
{
	struct buf code = { 0 };
	struct sim_source s = { .wave_size = 32, .vgprs = VGPRS };
	struct sim_config c = { .cost = m, .clock_mhz = mhz,
				.warmth = SIM_WARM, .warm_code = true,
				.busy_wgps = 1, .trips = SIM_TRIPS };
	struct sim_result r;
	char affine[96];
	size_t at;
	bool ok = generate_loop(l, &code, &at, e);

	snprintf(affine, sizeof(affine), "waves %d\nloop %zu %d\n",
		 l->waves * SIM_SIMDS, at, TRIPS - 1);
	ok = ok && sim_affine_open(&s, (uint8_t *)code.data, code.len, 4096,
				   affine, l->kernel, e);
	if (ok) {
		ok = sim_run(&s, &c, &r, e);
		sim_affine_close(&s);
	}
	if (ok) {
		double ops = (double)l->ops * 32 * l->copies * TRIPS *
			     l->waves * SIM_SIMDS;

		*rate = ops / r.time_s * l->simds / SIM_SIMDS;
		sim_fini(&r);
	}
	buf_fini(&code);
	return ok;
}

/* ---- rows ---- */

enum { C_SOURCE, C_GPU, C_KERNEL, C_DTYPE, C_VALUE, C_UNIT, C_CLOCK, C_COUNT };

static double scale_of(const char *unit)
{
	return !strcmp(unit, "TFLOPS") ? 1e12
	       : !strcmp(unit, "GFLOPS") || !strcmp(unit, "GIOPS") ? 1e9 : 0;
}

static bool run_row(struct csv *csv, const int *col, const struct loop *l,
		    const struct cost_model *m, struct loop_row *row,
		    struct err *e)
{
	/* A clock that was worked out of the result itself begins with >=. */
	double ghz = strtod(csv_cell(csv, col[C_CLOCK]), NULL);

	row->name = l->kernel;
	snprintf(row->source, sizeof(row->source), "%s",
		 csv_cell(csv, col[C_SOURCE]));
	row->reference = strtod(csv_cell(csv, col[C_VALUE]), NULL) *
			 scale_of(csv_cell(csv, col[C_UNIT]));
	return simulate_loop(l, ghz > 0 ? ghz * 1e3 : cost_value(m, COST_CLOCK),
			     m, &row->predicted, e);
}

static const struct loop *find_loop(struct csv *csv, const int *col)
{
	for (size_t k = 0; k < ARRAY_SIZE(loops); k++)
		if (!strncmp(csv_cell(csv, col[C_KERNEL]), loops[k].kernel,
			     strlen(loops[k].kernel)) &&
		    !strcmp(csv_cell(csv, col[C_DTYPE]), loops[k].dtype) &&
		    strstr(csv_cell(csv, col[C_GPU]), loops[k].gpu) &&
		    scale_of(csv_cell(csv, col[C_UNIT])) > 0)
			return &loops[k];
	return NULL;
}

bool loop_rows_run(const char *path, const struct cost_model *m,
		   void (*fn)(void *ctx, const struct loop_row *row), void *ctx,
		   struct err *e)
{
	static const char *const names[C_COUNT] = {
		"source", "gpu", "kernel", "dtype", "value", "unit",
		"clock_assumed",
	};
	int col[C_COUNT];
	struct buf b = { 0 };
	bool ok = file_read(path, 64 << 20, &b, e);
	struct csv csv = { .at = b.data };

	if (!ok || !b.len || !csv_next(&csv)) {
		buf_fini(&b);
		return ok;
	}
	for (int k = 0; k < C_COUNT; k++)
		col[k] = csv_column(&csv, names[k]);
	while (ok && col[C_KERNEL] >= 0 && csv_next(&csv)) {
		const struct loop *l = find_loop(&csv, col);
		struct loop_row row;

		if (!l)
			continue;
		ok = run_row(&csv, col, l, m, &row, e);
		if (ok)
			fn(ctx, &row);
	}
	buf_fini(&b);
	return ok;
}
