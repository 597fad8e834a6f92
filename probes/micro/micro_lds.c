/*
 * probes/micro/micro_lds.c - t0-probe lds: cost by width, stride and pattern.
 *
 * Four waves, one per SIMD, load or store all the time, so that the banks are
 * the bottleneck.  The workgroup's memory lies in one half of the LDS, which
 * moves 128 bytes a cycle; the interval is what one instruction takes of it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probes/micro/micro.h"

#define WAVES	   4
#define COPIES	   32
#define LDS_BYTES  32768

static const struct width {
	const char *load, *store;
	int dwords;
} widths[] = {
	{ "ds_load_b32 v%d, v11", "ds_store_b32 v11, v11", 1 },
	{ "ds_load_b64 v[%d:%e], v11", "ds_store_b64 v11, v[11:12]", 2 },
	{ "ds_load_b128 v[%d:%q], v11", "ds_store_b128 v11, v[11:14]", 4 },
};

/*
 * In accesses between neighbouring lanes; 0 = all lanes at one address,
 * REPLICATED = lanes 16 to 31 as 0 to 15, as matrices are loaded.
 */
#define REPLICATED -1
static const int strides[] = { REPLICATED, 0, 1, 2, 3, 4, 8, 16, 32, 33 };

/* Byte address of a lane; kept inside what the kernel has. */
static uint32_t lane_address(const struct width *w, int stride, uint32_t lane)
{
	const uint32_t bytes = 4 * (uint32_t)w->dwords;

	if (stride == REPLICATED)
		return lane % 16 * bytes;
	return lane * (uint32_t)stride * bytes % LDS_BYTES;
}

struct point {
	const struct width *w;
	int stride;
	bool store;
};

static bool make_probe(struct micro_probe *p, struct micro_device *d,
		       const struct point *x, struct err *e)
{
	struct buf setup = { 0 }, body[2] = { { 0 }, { 0 } };
	const uint32_t step = lane_address(x->w, x->stride, 1);
	const char *lane = x->stride == REPLICATED ? "v12" : "v0";

	/* Each dword holds its own address, as far as lanes look at it. */
	buf_printf(&setup, "v_and_b32 v12, 15, v0\n"
		   "v_mul_u32_u24 v11, 0x%x, %s\n"
		   "v_and_b32 v11, 0x%x, v11\nds_store_b32 v11, v11\n"
		   "s_waitcnt lgkmcnt(0)\ns_barrier\n"
		   "v_mov_b32 v32, v11\n", step, lane, LDS_BYTES - 1);
	for (int k = 0; k < 2 * COPIES; k++)
		for (int b = k < COPIES ? 0 : 1; b < 2; b++)
			micro_expand(&body[b], x->store ? x->w->store :
							  x->w->load,
				     32 + k * x->w->dwords % 64);
	const struct micro_text t = { .setup = setup.data,
				      .loop = { body[0].data, body[1].data },
				      .wait = "s_waitcnt lgkmcnt(0)\n",
				      .lo = "v32", .lds_bytes = LDS_BYTES,
				      .waves = WAVES };
	const bool good = micro_probe_init(p, d, &t, "lds", COPIES, 0, e);

	p->has_values = true;
	for (uint32_t l = 0; l < MICRO_LANES; l++)
		p->want[0][0][l] = p->want[1][0][l] =
			lane_address(x->w, x->stride, l);
	buf_fini(&setup);
	buf_fini(&body[0]);
	buf_fini(&body[1]);
	return good;
}

/* Lanes that are served together, whatever the model has tried. */
static int phase_lanes(const struct micro_device *d, const struct point *x)
{
	const int w = x->w->dwords;
	const double lanes = cost_value(
		&d->costs, w == 2 ? COST_LDS_PHASE64 : COST_LDS_PHASE128);

	return w == 1 ? MICRO_LANES : (int)fmin(fmax(lanes, 1), MICRO_LANES);
}

/*
 * What 32 banks of 4 bytes make of it: the accesses of a phase that want
 * different rows of one bank take turns, a cycle each.
 */
static double expected_cycles(const struct micro_device *d,
			      const struct point *x)
{
	const int w = x->w->dwords, phase = phase_lanes(d, x);
	const uint32_t banks = (uint32_t)cost_value(&d->costs, COST_LDS_BANKS);
	int cycles = 0;

	for (int first = 0; first < MICRO_LANES; first += phase) {
		const int end = first + phase < MICRO_LANES ? first + phase :
							      MICRO_LANES;
		int worst = 0;

		for (uint32_t bank = 0; bank < banks; bank++) {
			uint32_t seen[MICRO_LANES * 4];
			int n = 0;

			for (int l = first; l < end; l++)
				for (int k = 0; k < w; k++) {
					const uint32_t at =
						lane_address(x->w, x->stride,
							     (uint32_t)l) / 4 +
						(uint32_t)k;
					int i = 0;

					if (at % banks != bank)
						continue;
					while (i < n && seen[i] != at)
						i++;
					if (i == n)
						seen[n++] = at;
				}
			worst = n > worst ? n : worst;
		}
		cycles += worst;
	}
	return cycles;
}

/* "{"stride":dwords}", as the plots want it, or the pattern's name. */
static void name_pattern(const struct point *x, char params[64], char text[16])
{
	const int dwords = x->stride * x->w->dwords;

	if (x->stride == REPLICATED) {
		res_params(params, 64, "pattern:s", "replicated");
		snprintf(text, 16, "replicated");
	} else {
		res_params(params, 64, "stride:d", dwords);
		snprintf(text, 16, "%d", dwords);
	}
}

static bool report_point(struct micro_probe *p, const struct point *x,
			 struct err *e)
{
	struct micro_device *d = p->d;
	struct table *t = &d->table;
	const double want = expected_cycles(d, x);
	char name[64], params[64], text[16];

	name_pattern(x, params, text);
	snprintf(name, sizeof(name), "%.*s",
		 (int)strcspn(x->store ? x->w->store : x->w->load, " "),
		 x->store ? x->w->store : x->w->load);
	table_row(t);
	table_cell(t, 0, "%s", name);
	table_cell(t, 1, "%s", text);
	if (p->series.n) {
		const double v = probe_series_median(&p->series).value / WAVES;

		table_cell(t, 2, "%.3f", v);
		table_cell(t, 4, "%.1f", 100 * (v / want - 1));
	}
	table_cell(t, 3, "%g", want);
	table_cell(t, 5, "%s", p->right ? "right" : "wrong");
	d->wrong += !p->right;
	return micro_probe_store(p, "lds", name, params, "interval", "cycle",
				 1.0 / WAVES, e);
}

int micro_lds(const struct probe_opts *o, struct err *e)
{
	enum { N = 2 * ARRAY_SIZE(widths) * ARRAY_SIZE(strides) };
	struct micro_probe *p = xcalloc(N, sizeof(*p));
	struct point x[N];
	struct micro_device d;
	size_t n = 0;
	bool good = micro_device_open(&d, o, "lds",
				      "instruction,stride_dwords,#cycles,"
				      "#by_banks,#off_percent,values", e);

	for (size_t w = 0; w < ARRAY_SIZE(widths); w++)
		for (size_t s = 0; s < ARRAY_SIZE(strides); s++)
			for (int store = 0; store < 2 && good; store++) {
				/* Lanes that store to one place would race. */
				if (store && strides[s] <= 0)
					continue;
				x[n] = (struct point){ &widths[w], strides[s],
						       store };
				good = make_probe(&p[n], &d, &x[n], e);
				n++;
			}
	good = good && micro_probe_run(p, n, e);
	for (size_t i = 0; i < n && good; i++)
		good = report_point(&p[i], &x[i], e);
	for (size_t i = 0; i < n; i++)
		micro_probe_fini(&p[i]);
	free(p);
	return micro_device_close(&d, good, e);
}
