/*
 * probes/tiers/tiers_compute.c - tiers 4 to 6: kernels, the matrix unit,
 * speed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probes/common/common.h"
#include "probes/tiers/tiers.h"

/*
 * out[i] = add + i, for wave32 and wave64 alike; 32 work-items a group, whose
 * number is in s2.
 */
static const char store_text[] = "s_load_b64 s[4:5], s[0:1], 0x0\n"
				 "s_load_b32 s6, s[0:1], 0x8\n"
				 "v_and_b32 v0, 0x3ff, v0\n"
				 "v_lshl_add_u32 v1, s2, 5, v0\n"
				 "v_lshlrev_b32 v2, 2, v1\n"
				 "s_waitcnt lgkmcnt(0)\n"
				 "v_add_nc_u32 v3, s6, v1\n"
				 "global_store_b32 v2, v3, s[4:5]\n"
				 "s_endpgm\n";

/*
 * One wave: D = n * (A * B).  Each lane brings 16 halves of a row of A and 16
 * of a column of B, and takes 8 floats of D away.
 */
static const char wmma_begin[] = "s_load_b128 s[4:7], s[0:1], 0x0\n"
				 "v_and_b32 v0, 0x3ff, v0\n"
				 "v_lshlrev_b32 v1, 6, v0\n"
				 "v_lshlrev_b32 v2, 5, v0\n"
				 "v_lshrrev_b32 v3, 4, v0\n"
				 "s_load_b32 s8, s[0:1], 0x10\n"
				 "s_waitcnt lgkmcnt(0)\n";
static const char wmma_end[] = "s_sub_u32 s8, s8, 1\n"
			       "s_cmp_lg_u32 s8, 0\n"
			       "s_cbranch_scc1 .Lagain\n"
			       "global_store_b128 v2, v[24:27], s[6:7]\n"
			       "global_store_b128 v2, v[28:31], s[6:7] "
			       "offset:16\n"
			       "s_endpgm\n";
/* Upper and lower lanes have the same A and B (RDNA3 ISA 7.9). */
static const char wmma_gfx11[] =
	"global_load_b128 v[8:11], v1, s[4:5]\n"
	"global_load_b128 v[12:15], v1, s[4:5] offset:16\n"
	"global_load_b128 v[16:19], v1, s[4:5] offset:32\n"
	"global_load_b128 v[20:23], v1, s[4:5] offset:48\n"
	"s_waitcnt vmcnt(0)\n.Lagain:\n"
	"v_wmma_f32_16x16x16_f16 v[24:31], v[8:15], v[16:23], v[24:31]\n";
/* Each has half of K (RDNA4 ISA 7.12). */
static const char wmma_gfx12[] =
	"v_lshl_add_u32 v1, v3, 4, v1\n"
	"global_load_b128 v[8:11], v1, s[4:5]\n"
	"global_load_b128 v[16:19], v1, s[4:5] offset:32\n"
	"s_waitcnt vmcnt(0)\n.Lagain:\n"
	"v_wmma_f32_16x16x16_f16 v[24:31], v[8:11], v[16:19], v[24:31]\n";

/* Chips without matrices: rows of A one by one, D as gfx11 has it. */
static void write_products(struct buf *b)
{
	buf_adds(b, "v_lshlrev_b32 v3, 6, v3\n"
		    "global_load_b128 v[16:19], v1, s[4:5] offset:32\n"
		    "global_load_b128 v[20:23], v1, s[4:5] offset:48\n"
		    ".Lagain:\n");
	for (int v = 0; v < 8; v++) {
		buf_printf(b, "global_load_b128 v[32:35], v3, s[4:5] "
			   "offset:%d\n", 128 * v);
		buf_printf(b, "global_load_b128 v[36:39], v3, s[4:5] "
			   "offset:%d\ns_waitcnt vmcnt(0)\n", 128 * v + 16);
		for (int k = 0; k < 16; k++)
			buf_printf(b, "v_fma_mix_f32 v%d, v%d, v%d, v%d "
				   "op_sel:[%d,%d,0] op_sel_hi:[1,1,0]\n",
				   24 + v, 32 + k / 2, 16 + k / 2, 24 + v,
				   k % 2, k % 2);
	}
}

static void write_wmma(enum isa_gen gen, struct buf *b)
{
	buf_adds(b, wmma_begin);
	for (int v = 24; v < 32; v++)
		buf_printf(b, "v_mov_b32 v%d, 0\n", v);
	if (gen < ISA_GFX11)
		write_products(b);
	else
		buf_adds(b, isa_gen_info(gen)->dealt_matrices ? wmma_gfx12 :
								wmma_gfx11);
	buf_adds(b, wmma_end);
}

struct wmma_args {
	uint64_t in, out;
	uint32_t n;
} __attribute__((packed));

/* ------------------------------------------------------------- tier 4 --- */

static bool run_store(struct tiers *t, bool wave32, struct err *e)
{
	const uint32_t n = 4096 + 5; /* a partial group, too */
	const enum isa_gen gen = probe_gen(t->dev);
	const struct kfd_raw_desc d = { .name = wave32 ? "store32" : "store64",
					.rsrc1 = probe_rsrc1(gen, 8),
					.rsrc2 = 0x84,
					.properties = wave32 ? 0x408 : 0x8,
					.kernarg_bytes = 12 };
	const struct kfd_kernel *k;
	struct {
		uint64_t out;
		uint32_t add;
	} __attribute__((packed)) a = { 0, 1000003 };
	struct kfd_mem *m;
	struct buf text = { 0 };
	uint32_t *v;

	if (isa_gen_info(gen)->ids_in_ttmp)
		buf_adds(&text, "s_mov_b32 s2, ttmp9\n");
	buf_adds(&text, store_text);
	if (!kfd_mem_alloc(t->dev, KFD_VRAM_PRIVATE, n * 4, "tier 4", &m, e)) {
		buf_fini(&text);
		return false;
	}
	a.out = m->va;
	v = xcalloc(n, 4);
	bool good = probe_load(t->dev, text.data, &d, &k, e);
	const struct kfd_launch l = { .kernel = good ? k : NULL,
				      .grid = { n }, .wg = { 32 }, .args = &a,
				      .args_bytes = sizeof(a) };
	good = good && kfd_run(t->q, &l, NULL, e) &&
	       kfd_read(t->dev, v, m, 0, n * 4, e);
	for (uint32_t i = 0; i < n && good; i++)
		if (v[i] != a.add + i)
			good = err_set(e, ERR_DEVICE, "work-item %u stored %u, "
				       "wanted %u", i, v[i], a.add + i);
	free(v);
	buf_fini(&text);
	kfd_mem_free(t->dev, m);
	return good;
}

bool tiers_kernel(struct tiers *t)
{
	struct err a = { 0 }, b = { 0 };
	const bool w32 = run_store(t, true, &a);
	const bool w64 = w32 && run_store(t, false, &b);

	tiers_verdict(t, "wave32", w32, &a, "4101 work-items stored their own");
	if (w32)
		tiers_verdict(t, "wave64", w64, &b,
			      "4101 work-items stored their own");
	return w32 && w64;
}

/* ------------------------------------------------------------- tier 5 --- */

/* Small integers, exactly: 0 to 2048. */
static uint16_t half_of(unsigned v)
{
	unsigned e = 0;

	if (!v)
		return 0;
	while (v >> (e + 1))
		e++;
	return (uint16_t)((e + 15) << 10 |
			  (((v << (e < 10 ? 10 - e : 0)) & 0x3ff)));
}

/*
 * Register v of lane l holds row 2v (+1 in the upper lanes), column l % 16; in
 * halves row v (+8 in the upper lanes).
 */
static int row_of(bool halves, int vgpr, int lane)
{
	return halves ? vgpr + lane / 16 * 8 : 2 * vgpr + lane / 16;
}

bool tiers_wmma_pattern(const float got[8][32], bool halves, struct buf *out)
{
	const char *const names[] = {
		halves ? "rows in turn: register v holds row 2v (+1 in the "
			 "upper lanes), as on gfx11" :
			 "rows in halves: register v holds row v (+8 in the "
			 "upper lanes), as on later chips",
		"the upper and lower lanes are exchanged",
		"transposed: rows and columns are exchanged",
		"every lane holds row 2v: the upper half is missing",
	};
	unsigned wrong = 0, as[ARRAY_SIZE(names)] = { 0 };

	for (int v = 0; v < 8; v++)
		for (int l = 0; l < 32; l++) {
			const int col = l % 16, row = row_of(halves, v, l);
			const float g = got[v][l];

			wrong += g != (float)(16 * row + col);
			as[0] += g == (float)(16 * row_of(!halves, v, l) + col);
			as[1] += g == (float)(16 * (row ^ 1) + col);
			as[2] += g == (float)(16 * col + row);
			as[3] += g == (float)(16 * 2 * v + col);
		}
	if (!wrong)
		return false;
	buf_printf(out, "%u of 256 elements are wrong", wrong);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (as[i] == 256)
			buf_printf(out, "; %s", names[i]);
	/* What stands in the corners says the rest. */
	static const int v[] = { 0, 0, 1, 7 }, l[] = { 0, 16, 0, 31 };
	for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
		const float g = got[v[i]][l[i]];

		if (g >= 0 && g < 256 && g == floorf(g))
			buf_printf(out, "; register %d of lane %d holds [%d]"
				   "[%d], wanted [%d][%d]", v[i], l[i],
				   (int)g / 16, (int)g % 16,
				   row_of(halves, v[i], l[i]), l[i] % 16);
		else
			buf_printf(out, "; register %d of lane %d holds %g",
				   v[i], l[i], (double)g);
	}
	return true;
}

struct wmma {
	struct tiers *t;
	struct kfd_mem *in, *out;
	const struct kfd_kernel *k;
	bool halves; /* where D's rows lie */
	uint8_t a[16][16], b[16][16]; /* small integers */
	float got[8][32];
};

static bool wmma_open(struct wmma *w, struct err *e)
{
	const enum isa_gen gen = probe_gen(w->t->dev);
	const struct kfd_raw_desc d = { .name = "wmma",
					.rsrc1 = probe_rsrc1(gen, 40),
					.rsrc2 = 0x84,
					.properties = 0x408,
					.kernarg_bytes =
						sizeof(struct wmma_args) };
	struct kfd_dev *dev = w->t->dev;
	struct buf text = { 0 };

	w->halves = isa_gen_info(gen)->dealt_matrices;
	write_wmma(gen, &text);
	const bool good = kfd_mem_alloc(dev, KFD_GTT, 32 * 64,
					"tier 5 A and B", &w->in, e) &&
			  kfd_mem_alloc(dev, KFD_GTT, 32 * 32, "tier 5 D",
					&w->out, e) &&
			  probe_load(w->t->dev, text.data, &d, &w->k, e);
	buf_fini(&text);
	return good;
}

static void wmma_close(struct wmma *w)
{
	kfd_mem_free(w->t->dev, w->in);
	kfd_mem_free(w->t->dev, w->out);
}

static bool wmma_run(struct wmma *w, struct err *e)
{
	const struct wmma_args a = { w->in->va, w->out->va, 1 };
	const struct kfd_launch l = { .kernel = w->k, .grid = { 32 },
				      .wg = { 32 }, .args = &a,
				      .args_bytes = sizeof(a) };
	uint16_t *in = w->in->cpu;

	for (int lane = 0; lane < 32; lane++)
		for (int k = 0; k < 16; k++) {
			in[lane * 32 + k] = half_of(w->a[lane % 16][k]);
			in[lane * 32 + 16 + k] = half_of(w->b[k][lane % 16]);
		}
	memset(w->out->cpu, 0xff, 32 * 32);
	if (!kfd_run(w->t->q, &l, NULL, e))
		return false;
	for (int lane = 0; lane < 32; lane++)
		for (int v = 0; v < 8; v++)
			w->got[v][lane] = ((float *)w->out->cpu)[lane * 8 + v];
	return true;
}

/* D[i][j] = 16 i + j: every element says where it belongs. */
static bool wmma_map(struct wmma *w)
{
	struct buf text = { 0 };
	struct err e = { 0 };
	bool good;

	memset(w->a, 0, sizeof(w->a));
	memset(w->b, 0, sizeof(w->b));
	for (int i = 0; i < 16; i++) {
		w->a[i][3] = (uint8_t)i;
		w->b[3][i] = 16;
		w->a[i][12] = 1;
		w->b[12][i] = (uint8_t)i;
	}
	if (!wmma_run(w, &e))
		return tiers_fail(w->t, "accumulator map", "%s", e.msg);
	good = !tiers_wmma_pattern(w->got, w->halves, &text);
	if (good)
		tiers_pass(w->t, "accumulator map",
			   "all 256 elements are where "
			   "they belong");
	else
		tiers_fail(w->t, "accumulator map", "%s", text.data);
	buf_fini(&text);
	return good;
}

static bool wmma_values(struct wmma *w)
{
	struct err e = { 0 };
	uint64_t s = w->t->o->seed;

	for (int i = 0; i < 256; i++) {
		w->a[i / 16][i % 16] = random_next(&s) & 15;
		w->b[i / 16][i % 16] = random_next(&s) & 15;
	}
	if (!wmma_run(w, &e))
		return tiers_fail(w->t, "values", "%s", e.msg);
	for (int v = 0; v < 8; v++)
		for (int l = 0; l < 32; l++) {
			int sum = 0;

			for (int k = 0; k < 16; k++)
				sum += w->a[row_of(w->halves, v, l)][k] *
				       w->b[k][l % 16];
			if (w->got[v][l] != (float)sum)
				return tiers_fail(w->t, "values", "D[%d][%d] "
						  "is %g, wanted %d",
						  row_of(w->halves, v, l), l % 16,
						  (double)w->got[v][l], sum);
		}
	return tiers_pass(w->t, "values", "a product of random integers is "
			  "exact");
}

bool tiers_wmma(struct tiers *t)
{
	struct wmma w = { .t = t };
	struct err e = { 0 };
	bool good;

	if (!wmma_open(&w, &e))
		good = tiers_fail(t, "kernel", "%s", e.msg);
	else
		good = wmma_map(&w) && wmma_values(&w);
	wmma_close(&w);
	return good;
}

/* ------------------------------------------------------------- tier 6 --- */

/* A share of the peak, or that there is none to compare with. */
static bool tell_speed(struct tiers *t, const char *check, double value,
		       double peak, const char *unit)
{
	const char *scaled;
	const double by = unit_scale(value, unit, &scaled);

	if (t->emulated)
		return tiers_pass(t, check,
				  "emulated: %.4g %s by this host, "
				  "which says nothing of a card",
				  value * by, scaled);
	if (value > peak * 1.05 || value < peak * 0.05)
		return tiers_fail(t, check,
				  "%.4g %s is %.0f %% of the peak of "
				  "%.4g: not to be believed",
				  value * by, scaled, 100 * value / peak,
				  peak * by);
	return tiers_pass(t, check, "%.4g %s, %.0f %% of the peak of %.4g",
			  value * by, scaled, 100 * value / peak, peak * by);
}

static double report_median(struct tiers *t, const char *name,
			    const char *metric, const char *unit,
			    const double *v, size_t n)
{
	double s[TIERS_SAMPLES_MAX];

	t->speed[t->n_speeds].name = name;
	t->speed[t->n_speeds].metric = metric;
	t->speed[t->n_speeds].unit = unit;
	t->speed[t->n_speeds].n = n;
	memcpy(t->speed[t->n_speeds].v, v, n * sizeof(*v));
	t->speed[t->n_speeds].before = t->before;
	t->speed[t->n_speeds].after = probe_reading(t->dev);
	(void)probe_was_evicted(&t->before, &t->speed[t->n_speeds].after);
	t->n_speeds++;
	memcpy(s, v, n * sizeof(*v));
	for (size_t i = 1; i < n; i++)
		for (size_t j = i; j && s[j] < s[j - 1]; j--) {
			const double x = s[j];
			s[j] = s[j - 1];
			s[j - 1] = x;
		}
	return s[n / 2];
}

static bool measure_bandwidth(struct tiers *t)
{
	const size_t n = (t->emulated ? 8u : 512u) << 20;
	const size_t samples = t->emulated ? 3 : 9;
	const struct kfd_node *node = &kfd_info(t->dev)->node;
	/* GDDR6 moves 16 bits per pin and memory clock. */
	const double peak = (double)node->vram_width_bits / 8 *
			    (double)node->mem_clk_max_mhz * 1e6 * 16;
	double v[TIERS_SAMPLES_MAX];
	struct kfd_mem *a, *b = NULL;
	struct err e = { 0 };
	bool good = kfd_mem_alloc(t->dev, KFD_VRAM_PRIVATE, n, "tier 6 from",
				  &a, &e) &&
		    kfd_mem_alloc(t->dev, KFD_VRAM_PRIVATE, n, "tier 6 to", &b,
				  &e) &&
		    kfd_copy(t->dev, b, 0, a, 0, n, &e);

	t->before = probe_reading(t->dev);
	for (size_t i = 0; i < samples && good; i++) {
		const uint64_t start = time_mono_ns();

		good = kfd_copy(t->dev, b, 0, a, 0, n, &e);
		v[i] = 2.0 * (double)n / ((double)(time_mono_ns() - start) *
					  1e-9);
	}
	kfd_mem_free(t->dev, a);
	kfd_mem_free(t->dev, b);
	if (!good)
		return tiers_fail(t, "bandwidth", "%s", e.msg);
	return tell_speed(
		t, "bandwidth",
		report_median(t, "copy", "bandwidth", "B/s", v, samples), peak,
		"B/s");
}

static bool measure_flops(struct tiers *t)
{
	const struct kfd_node *node = &kfd_info(t->dev)->node;
	/* 512 FLOP per CU and clock. */
	const double peak = 512.0 * node->cu_count *
			    (double)node->clk_max_mhz * 1e6;
	const uint32_t waves = t->emulated ? 32 : node->cu_count * 32;
	const uint32_t n = t->emulated ? 200 : 20000;
	const size_t samples = t->emulated ? 3 : 9;
	double v[TIERS_SAMPLES_MAX];
	struct wmma w = { .t = t };
	struct err e = { 0 };
	bool good = wmma_open(&w, &e);

	t->before = probe_reading(t->dev);
	for (size_t i = 0; i < samples && good; i++) {
		const struct wmma_args a = { w.in->va, w.out->va, n };
		const struct kfd_launch l = { .kernel = w.k,
					      .grid = { waves * 32 },
					      .wg = { 32 }, .args = &a,
					      .args_bytes = sizeof(a) };
		struct kfd_timing time = { 0 };

		good = kfd_run(t->q, &l, &time, &e);
		/* 16 * 16 * 16 products and as many sums. */
		v[i] = 8192.0 * n * waves /
		       ((double)(time.device_ns ? time.device_ns :
						  time.host_ns) * 1e-9);
	}
	wmma_close(&w);
	if (!good)
		return tiers_fail(t, "FLOPS", "%s", e.msg);
	return tell_speed(t, "FLOPS",
			  report_median(t, "wmma f16", "throughput", "FLOP/s",
					v, samples),
			  peak, "FLOP/s");
}

bool tiers_speed(struct tiers *t)
{
	struct kfd_lock lock;
	struct err e = { 0 };
	bool good;

	if (!probe_lock(kfd_info(t->dev), &lock, &e))
		return tiers_fail(t, "lock", "%s", e.msg);
	good = measure_bandwidth(t);
	good = measure_flops(t) && good;
	kfd_lock_drop(&lock);
	return good;
}
