/*
 * probes/micro/micro_memory.c - t0-probe memory on a GPU.
 *
 * Latency by working set through a pointer chase, what one workgroup reads and
 * writes per cycle, and what all WGPs read.
 *
 * The chase has one element per 128-byte line, in one random cycle; all lanes
 * follow the same pointer.  Before it is timed it goes over the working set,
 * so that caches hold what they can hold.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probes/micro/micro.h"

#define LINE	      128
#define MAX_BYTES     (256ull << 20)
#define QUICK_BYTES   (1ull << 20)
#define COPIES	      8
#define CHASE_SIM     8  /* iterations: of 8 and 16 steps */
#define CHASE_CARD    32
#define WARM_COPIES   8  /* steps per iteration of warming up */
#define STREAM_WAVES  16
#define STREAM_COPIES 8

static const char chase_setup[] =
	"v_mov_b32 v32, 0\n"
	"s_cmp_eq_u32 s11, 0\n"
	"s_cbranch_scc1 .Lwarmed\n"
	".Lwarm:\n"
#define CHASE "global_load_b32 v32, v32, s[6:7]\ns_waitcnt vmcnt(0)\n"
	CHASE CHASE CHASE CHASE CHASE CHASE CHASE CHASE
	"s_sub_u32 s11, s11, 1\n"
	"s_cmp_lg_u32 s11, 0\n"
	"s_cbranch_scc1 .Lwarm\n"
	".Lwarmed:\n";

/* ---------------------------------------------------------------- chase -- */

struct chase {
	struct micro_device *d;
	uint64_t bytes;
	uint32_t *next; /* [lines] */
	uint32_t lines;
};

/* Every line's first dword is the byte offset of the next line. */
static void link_lines(struct chase *c, uint64_t seed)
{
	uint8_t *data = c->d->data->cpu;

	probe_random_cycle(c->next, c->lines, seed);
	for (uint32_t i = 0; i < c->lines; i++) {
		const uint32_t at = c->next[i] * LINE;

		memcpy(data + (size_t)i * LINE, &at, sizeof(at));
	}
	kfd_mem_flush(c->d->dev);
}

/* Where the chase is at the end of both loops of the last repetition. */
static void want_values(const struct chase *c, struct micro_probe *p)
{
	const uint64_t n = (uint64_t)COPIES * p->iterations;
	const uint64_t steps[2] = {
		(uint64_t)p->warm * WARM_COPIES + (p->reps - 1) * 3 * n + n,
		(uint64_t)p->warm * WARM_COPIES + p->reps * 3 * n,
	};
	uint32_t at = 0;
	uint64_t k = 0;

	p->has_values = true;
	for (int i = 0; i < 2; i++) {
		for (; k < steps[i]; k++)
			at = c->next[at];
		for (int l = 0; l < MICRO_LANES; l++)
			p->want[i][0][l] = at * LINE;
	}
}

static bool chase_one(struct chase *c, struct micro_probe *p, struct err *e)
{
	struct buf body[2] = { { 0 }, { 0 } };
	const uint64_t ic = (uint64_t)cost_value(&c->d->costs, COST_MALL_BYTES);
	bool good;

	for (int k = 0; k < 2 * COPIES; k++)
		for (int b = k < COPIES ? 0 : 1; b < 2; b++)
			buf_adds(&body[b], CHASE);
	const struct micro_text t = { .setup = chase_setup,
				      .loop = { body[0].data, body[1].data },
				      .lo = "v32" };
	good = micro_probe_init(p, c->d, &t, "chase", COPIES,
				c->d->brief ? CHASE_SIM : CHASE_CARD, e);
	buf_fini(&body[0]);
	buf_fini(&body[1]);
	if (!good)
		return false;
	link_lines(c, c->d->o->seed + c->bytes);
	/* What no cache holds is nowhere after a walk either. */
	p->warm = (uint32_t)((c->bytes > ic && c->d->brief ? 0 : c->lines) /
			     WARM_COPIES);
	want_values(c, p);
	return micro_probe_run(p, 1, e);
}

/* ---------------------------------------------------------------- steps -- */

/* Rows of cost.def, and the working set that shows each. */
static const struct level {
	const char *row;
	enum cost_row holds; /* of the cache itself */
	bool ns;
} levels[] = {
	{ "mem.l0", COST_L0_BYTES, false },
	{ "mem.l1", COST_L1_BYTES, false },
	{ "mem.l2", COST_L2_BYTES, false },
	{ "mem.ic", COST_MALL_BYTES, true },
	{ "mem.dram", COST_ROW_COUNT, true },
};

/* The level that holds so many bytes. */
static const struct level *level_of(const struct micro_device *d,
				    uint64_t bytes)
{
	size_t i = 0;

	while (levels[i].holds != COST_ROW_COUNT &&
	       (double)bytes > cost_value(&d->costs, levels[i].holds))
		i++;
	return &levels[i];
}

/* What the cost table says of it, in cycles. */
static double expected_latency(const struct micro_device *d,
			       const struct level *l)
{
	const double v = cost_value(&d->costs, cost_row_find(l->row));

	return l->ns ? cost_value(&d->costs, COST_L2_LAT) +
			       v * cost_value(&d->costs, COST_CLOCK) * 1e-3 :
		       v;
}

struct memory {
	struct micro_device d;
	double l2_cycles; /* measured; NaN: not yet */
	const struct level *stored; /* the last row that was */
};

/* As a row of the cost table: once per level, where it is held for sure. */
static bool store_level(struct memory *m, struct micro_probe *p,
			const struct level *l, uint64_t bytes, struct err *e)
{
	struct probe_series *s = &p->series;
	const double room = l->holds == COST_ROW_COUNT ?
				    INFINITY :
				    cost_value(&m->d.costs, l->holds);

	if (!s->n || l == m->stored || (double)bytes > room * 0.75)
		return true;
	m->stored = l;
	if (!strcmp(l->row, "mem.l2"))
		m->l2_cycles = probe_series_median(s).value;
	if (!l->ns)
		return micro_probe_store(p, "cost", l->row, "{}", "value",
					 "cycle", 1, e);
	if (isnan(m->l2_cycles))
		return true;
	/* Beyond L2, in nanoseconds of a clock of its own. */
	for (size_t i = 0; i < s->n; i++)
		s->v[i] -= m->l2_cycles;
	return micro_probe_store(p, "cost", l->row, "{}", "value", "ns",
				 1e9 / p->clock_hz, e);
}

static bool report_level(struct memory *m, struct micro_probe *p,
			 uint64_t bytes, struct err *e)
{
	struct table *t = &m->d.table;
	const struct level *l = level_of(&m->d, bytes);
	const double want = expected_latency(&m->d, l);
	char params[64];

	table_row(t);
	probe_bytes_cell(m->d.o, t, 0, bytes);
	table_cell(t, 1, "latency");
	if (p->series.n) {
		const double v = probe_series_median(&p->series).value;

		table_cell(t, 2, "%.2f", v);
		table_cell(t, 3, "cycle");
		table_cell(t, 6, "%.1f", 100 * (v / want - 1));
	}
	table_cell(t, 4, "%s", l->row);
	table_cell(t, 5, "%.1f", want);
	table_cell(t, 7, "%s", p->right ? "right" : "wrong");
	m->d.wrong += !p->right;
	res_params(params, sizeof(params), "bytes:U", (uint64_t)bytes);
	return micro_probe_store(p, "memory", "chase", params, "latency", "s",
				 1 / p->clock_hz, e) &&
	       store_level(m, p, l, bytes, e);
}

static bool measure_latencies(struct memory *m, uint64_t max, struct err *e)
{
	struct chase c = { .d = &m->d,
			   .next = xmalloc(max / LINE * sizeof(uint32_t)) };
	bool good = true;

	for (uint64_t b = 4096; b <= max && good && !*m->d.o->stop; b *= 2) {
		struct micro_probe p;

		/* The first of each level, twice its neighbour's cache, says it. */
		if (m->d.o->levels && b != 8192 && b != 65536 && b != 1 << 20 &&
		    b != 8 << 20 && b != 128 << 20)
			continue;
		c.bytes = b;
		c.lines = (uint32_t)(b / LINE);
		good = chase_one(&c, &p, e) && report_level(m, &p, b, e);
		micro_probe_fini(&p);
	}
	free(c.next);
	return good;
}

/* ------------------------------------------------------------ bandwidth -- */

/* 16 bytes a lane, waves one behind the other, round and round the set. */
static bool stream_one(struct memory *m, struct micro_probe *p, bool write,
		       uint64_t bytes, struct err *e)
{
	struct buf setup = { 0 }, body[2] = { { 0 }, { 0 } };

	buf_printf(&setup, "v_lshlrev_b32 v11, 4, v0\ns_lshl_b32 s28, s13, 9\n"
		   "v_add_nc_u32 v11, s28, v11\ns_mov_b32 s29, 0x%x\n"
		   "s_mov_b32 s30, 0x%x\n", STREAM_WAVES * 512,
		   (unsigned)(bytes - 1));
	for (int k = 0; k < 4; k++)
		buf_printf(&setup, "v_mov_b32 v%d, 0\n", 32 + k);
	for (int k = 0; k < 2 * STREAM_COPIES; k++)
		for (int b = k < STREAM_COPIES ? 0 : 1; b < 2; b++) {
			micro_expand(&body[b],
				     write ? "global_store_b128 v11, v[32:35], "
					     "s[6:7]" :
					     "global_load_b128 v[%d:%q], v11, "
					     "s[6:7]",
				     32 + 4 * (k % 16));
			buf_adds(&body[b], "v_add_nc_u32 v11, s29, v11\n"
					   "v_and_b32 v11, s30, v11\n");
		}
	const struct micro_text t = { .setup = setup.data,
				      .loop = { body[0].data, body[1].data },
				      .wait = "s_waitcnt vmcnt(0)\n"
					      "s_waitcnt_vscnt null, 0x0\n",
				      .lo = "v32", .waves = STREAM_WAVES };
	const bool good = micro_probe_init(p, &m->d, &t,
					   write ? "write" : "read",
					   STREAM_COPIES, 0, e);
	p->has_values = true; /* the data are zeros, and stay so */
	buf_fini(&setup);
	buf_fini(&body[0]);
	buf_fini(&body[1]);
	return good && micro_probe_run(p, 1, e);
}

static bool store_stream(struct memory *m, struct micro_probe *p, bool write,
			 uint64_t bytes, struct err *e)
{
	struct table *t = &m->d.table;
	const double moved = STREAM_WAVES * 512.0;
	char params[64];

	table_row(t);
	probe_bytes_cell(m->d.o, t, 0, bytes);
	table_cell(t, 1, "%s", write ? "write" : "read");
	table_cell(t, 3, "B/cycle");
	table_cell(t, 7, "%s", p->right ? "right" : "wrong");
	m->d.wrong += !p->right;
	if (!p->series.n)
		return true;
	table_cell(t, 2, "%.2f", moved / probe_series_median(&p->series).value);
	for (size_t i = 0; i < p->series.n; i++)
		p->series.v[i] = moved / p->series.v[i];
	res_params(params, sizeof(params), "bytes:U workgroups:d",
		   (uint64_t)bytes, 1);
	return micro_probe_store(p, "memory", write ? "write" : "read", params,
				 "bandwidth", "B/s", p->clock_hz, e);
}

static bool measure_bandwidths(struct memory *m, uint64_t max, struct err *e)
{
	bool good = true;

	memset(m->d.data->cpu, 0, max);
	kfd_mem_flush(m->d.dev);
	for (uint64_t b = 16384; b <= max && good; b *= 8)
		for (int write = 0; write < 2 && good && !*m->d.o->stop;
		     write++) {
			struct micro_probe p;

			good = stream_one(m, &p, write, b, e) &&
			       store_stream(m, &p, write, b, e);
			micro_probe_fini(&p);
		}
	return good;
}

/* ------------------------------------------------- bandwidth of the GPU -- */

/*
 * A workgroup on every WGP goes round a slice of its own.  Slices are larger
 * than what is nearer: two L0 caches, a WGP's part of L2 and of the Infinity
 * Cache.  (There is none that L1 holds and L0 does not.)
 */
static const struct slice {
	const char *row; /* of cost.def */
	uint32_t bytes;
} slices[] = {
	{ "mem.l0_rate", 32 << 10 },
	{ "mem.l2_rate", 96 << 10 },
	{ "mem.ic_rate", 1 << 20 },
	{ "mem.dram_rate", 4 << 20 },
};

/* Bytes a cycle of all WGPs that the costs say, for reading. */
static double rate_of(const struct micro_device *d, const struct slice *s)
{
	const struct cost_model *m = &d->costs;
	const double v = cost_value(m, cost_row_find(s->row));
	const double hz = cost_value(m, COST_CLOCK) * 1e6;

	if (!strcmp(s->row, "mem.l0_rate"))
		return 2 * v * cost_value(m, COST_N_WGP);
	if (!strcmp(s->row, "mem.l2_rate"))
		return v;
	return v / hz * (strcmp(s->row, "mem.dram_rate")
				 ? 1 : cost_value(m, COST_DRAM_READ_EFF));
}

/* x + step, or less a slice where that is beyond it: min(x, x - slice). */
static const char slice_step[] = "v_add_nc_u32 v11, s29, v11\n"
				 "v_subrev_nc_u32 v10, s30, v11\n"
				 "v_min_u32 v11, v11, v10\n";

/* s15 is the workgroup; each has results and a slice of its own. */
static void slice_setup(struct buf *b, uint32_t bytes)
{
	buf_printf(b, "s_mul_i32 s3, s15, 0x%x\ns_add_u32 s4, s4, s3\n"
		   "s_addc_u32 s5, s5, 0\n",
		   STREAM_WAVES * MICRO_WAVE_BYTES);
	buf_printf(b, "s_mul_i32 s3, s15, 0x%x\ns_add_u32 s6, s6, s3\n"
		   "s_addc_u32 s7, s7, 0\n", bytes);
	buf_printf(b, "v_lshlrev_b32 v11, 4, v0\ns_lshl_b32 s28, s13, 9\n"
		   "v_add_nc_u32 v11, s28, v11\ns_mov_b32 s29, 0x%x\n"
		   "s_mov_b32 s30, 0x%x\n", STREAM_WAVES * 512, bytes);
	buf_adds(b, "v_mov_b32 v32, 0\n");
}

static bool slice_probe(struct memory *m, struct micro_probe *p,
			const struct slice *s, uint32_t groups, struct err *e)
{
	struct buf setup = { 0 }, body[2] = { { 0 }, { 0 } };

	slice_setup(&setup, s->bytes);
	for (int k = 0; k < 2 * STREAM_COPIES; k++)
		for (int b = k < STREAM_COPIES ? 0 : 1; b < 2; b++) {
			micro_expand(&body[b], "global_load_b128 v[%d:%q], "
				     "v11, s[6:7]", 32 + 4 * (k % 16));
			buf_adds(&body[b], slice_step);
		}
	const struct micro_text t = { .setup = setup.data,
				      .loop = { body[0].data, body[1].data },
				      .wait = "s_waitcnt vmcnt(0)\n",
				      .lo = "v32", .waves = STREAM_WAVES };
	const bool good = micro_probe_init(p, &m->d, &t, s->row, STREAM_COPIES,
					   0, e);

	p->groups = groups;
	p->has_values = true; /* the data are zeros */
	buf_fini(&setup);
	buf_fini(&body[0]);
	buf_fini(&body[1]);
	return good && micro_probe_run(p, 1, e);
}

static bool store_slice(struct memory *m, struct micro_probe *p,
			const struct slice *s, struct err *e)
{
	struct table *t = &m->d.table;
	const double moved = STREAM_WAVES * 512.0 * p->groups;
	const double want = rate_of(&m->d, s);
	char params[96];

	m->d.wrong += !p->right;
	if (!p->series.n)
		return true;
	for (size_t i = 0; i < p->series.n; i++)
		p->series.v[i] = moved / p->series.v[i];
	const double got = probe_series_median(&p->series).value;

	table_row(t);
	probe_bytes_cell(m->d.o, t, 0, s->bytes * p->groups);
	table_cell(t, 1, "read by %u workgroups", p->groups);
	table_cell(t, 2, "%.2f", got);
	table_cell(t, 3, "B/cycle");
	table_cell(t, 4, "%s", s->row);
	table_cell(t, 5, "%.1f", want);
	table_cell(t, 6, "%.1f", 100 * (got / want - 1));
	table_cell(t, 7, "%s", p->right ? "right" : "wrong");
	res_params(params, sizeof(params), "bytes:u workgroups:u", s->bytes,
		   p->groups);
	return micro_probe_store(p, "memory", "read", params, "bandwidth",
				 "B/s", p->clock_hz, e);
}

/* Room for what all workgroups read, and for their results. */
static bool make_room(struct micro_device *d, uint32_t groups, struct err *e)
{
	const uint64_t data = (uint64_t)groups *
			      slices[ARRAY_SIZE(slices) - 1].bytes;

	kfd_mem_free(d->dev, d->data);
	kfd_mem_free(d->dev, d->out);
	d->data = d->out = NULL;
	return kfd_mem_alloc(d->dev, KFD_VRAM, data, "data", &d->data, e) &&
	       kfd_mem_alloc(d->dev, KFD_GTT, (uint64_t)groups * STREAM_WAVES *
			     MICRO_WAVE_BYTES, "results", &d->out, e);
}

static bool gpu_bandwidths(struct memory *m, struct err *e)
{
	const uint32_t groups = (uint32_t)cost_value(&m->d.costs, COST_N_WGP);
	bool good = make_room(&m->d, groups, e);

	for (size_t i = 0; i < ARRAY_SIZE(slices) && good && !*m->d.o->stop;
	     i++) {
		struct micro_probe p;

		good = slice_probe(m, &p, &slices[i], groups, e) &&
		       store_slice(m, &p, &slices[i], e);
		micro_probe_fini(&p);
	}
	return good;
}

int micro_memory(const struct probe_opts *o, struct err *e)
{
	struct memory m = { .l2_cycles = NAN };
	const uint64_t max = o->max_bytes ? o->max_bytes :
			     o->quick	  ? QUICK_BYTES :
					    MAX_BYTES;
	bool good = micro_device_open(&m.d, o, "memory",
				      "#bytes,what,#value,unit,row,#expected,"
				      "#off_percent,values", e);

	if (good && (max < 4096 || max > 1ull << 31))
		good = err_set(e, ERR_USAGE, "--max-bytes %llu: wanted 4096 to "
			       "2 G", (unsigned long long)max);
	if (good && max > m.d.data->size_bytes) {
		kfd_mem_free(m.d.dev, m.d.data);
		m.d.data = NULL;
		good = kfd_mem_alloc(m.d.dev, KFD_VRAM, max, "data", &m.d.data,
				     e);
	}
	good = good && measure_latencies(&m, max, e) &&
	       (o->levels ||
		measure_bandwidths(&m, max < 8u << 20 ? max : 8u << 20, e)) &&
	       (o->quick || gpu_bandwidths(&m, e));
	return micro_device_close(&m.d, good, e);
}
