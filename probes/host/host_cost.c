/*
 * probes/host/host_cost.c - latency, throughput and overlap of the host's
 * instructions.
 *
 * The clock is a chain of dependent additions of registers, one core cycle
 * each on every x86-64 processor, read in ticks of the time-stamp counter
 * before and after each pair of runs.  Before a sample, the loop itself runs
 * for 80 us: wide vector units wake up slowly, and the clock falls for them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "probes/host/host.h"

#define SAMPLES	       31
#define SAMPLES_QUICK  9
#define PAIRS	       5
#define COPIES	       48 /* of a chain, in the shorter loop; about */
#define RUN_CYCLES     6000.0
#define WARM_TICKS     200000
#define CLOCK_COPIES   66
#define CLOCK_LOOPS    100
/*
 * A virtual machine loses the processor for a quarter of a microsecond about
 * every 20 us, a busy one for milliseconds.  Such a run is longer by any
 * amount, so a time stands when a second run takes as long.
 */
#define RUNS_MAX       12
#define SAME_SHARE     0.002
#define SAME_TICKS     10

struct measure {
	struct host_costs *cost;
	const struct host_inst *inst, *with; /* with: the other of a pair */
	bool stream;
	host_loop_fn *loop[2];	/* of n and of 2n */
	unsigned copies;	/* instructions in the shorter loop */
	unsigned rounds;	/* pieces in it */
	uint64_t iterations;
	bool right[2], checked[2];
	union host_reg first[2];
	struct host_state state, other;
	struct probe_series series;
};

struct host_costs {
	struct host_session h;
	struct host_code *code;
	host_loop_fn *clock[2][2]; /* [wide][of n and of 2n] */
	bool wide; /* which clock is read */
	struct host_state clock_state;
	uint8_t *data;
	struct measure *m;
	const struct measure *last; /* that was measured */
	size_t n;
	struct probe_perf_count count;
	bool counted;
	unsigned compared, agreed, wrong;
};

/* ---------------------------------------------------------- measuring --- */

/*
 * Ticks of a run that nothing interrupted: the shorter of two that agree; 0
 * when no two of RUNS_MAX do.
 */
static uint64_t wait_steady(uint64_t (*run)(void *ctx, int i), void *ctx, int i)
{
	uint64_t best = UINT64_MAX;

	for (int k = 0; k < RUNS_MAX; k++) {
		const uint64_t t = run(ctx, i), low = t < best ? t : best;
		const uint64_t high = t < best ? best : t;

		if (best != UINT64_MAX &&
		    (double)(high - low) <
			    SAME_TICKS + SAME_SHARE * (double)low)
			return low;
		best = low;
	}
	return 0;
}

static uint64_t run_clock(void *ctx, int i)
{
	struct host_costs *c = ctx;

	return host_time(c->clock[c->wide][i], &c->clock_state, CLOCK_LOOPS);
}

/* Core cycles per tick; 0 if it could not be read. */
static double read_clock(struct host_costs *c)
{
	const uint64_t a = wait_steady(run_clock, c, 0),
		       b = wait_steady(run_clock, c, 1);

	return a && b > a ? (double)CLOCK_COPIES * CLOCK_LOOPS /
				    (double)(b - a) :
			    0;
}

/*
 * Of a pair on the same registers, steps take turns; on different ones, each
 * has its own.
 */
static bool values_right(struct measure *m, uint64_t steps)
{
	const bool apart = m->with && (m->inst->set == HOST_G64) !=
					      (m->with->set == HOST_G64);

	if (!apart)
		return host_state_check(&m->state, m->inst, m->with, m->stream,
					steps);
	m->other.out = m->state.out;
	m->other.vout = m->state.vout;
	return host_state_check(&m->state, m->inst, NULL, true, steps) &&
	       host_state_check(&m->other, m->with, NULL, true, steps);
}

static union host_reg expected_result(const struct measure *m)
{
	union host_reg r = m->state.vout;

	r.u64[0] ^= m->state.out; /* whichever of the two is used */
	return r;
}

/*
 * The first run is compared with C, which takes long; as every run starts from
 * the same registers, those after it are compared with the first.
 */
static void check_loop(struct measure *m, int i)
{
	const uint64_t steps = m->iterations * m->rounds * (unsigned)(i + 1);
	const union host_reg got = expected_result(m);

	if (m->checked[i]) {
		m->right[i] &= !memcmp(&got, &m->first[i], sizeof(got));
		return;
	}
	m->right[i] = values_right(m, steps);
	m->first[i] = got;
	m->checked[i] = true;
}

static uint64_t run_loop(void *ctx, int i)
{
	struct measure *m = ctx;

	/* What is found there must have been stored by this loop. */
	if (!m->checked[i])
		memset(m->cost->data + HOST_STORES_AT, 0,
		       HOST_DATA_BYTES - HOST_STORES_AT);
	const uint64_t t = host_time(m->loop[i], &m->state, m->iterations);

	check_loop(m, i);
	return t;
}

static void warm_up(struct measure *m)
{
	uint64_t ticks = 0;

	while (ticks < WARM_TICKS)
		ticks += run_loop(m, 0) + 1;
}

/* Between two of its samples everything else is measured. */
static bool read_pair(void *ctx, struct probe_pair *p, struct err *e)
{
	struct measure *m = ctx;

	(void)e;
	if (m->cost->last != m)
		warm_up(m);
	m->cost->last = m;
	m->cost->wide = m->inst->set == HOST_ZF;
	p->before = read_clock(m->cost);
	const uint64_t a = wait_steady(run_loop, m, 0),
		       b = wait_steady(run_loop, m, 1);
	p->after = read_clock(m->cost);
	p->shorter = (double)a;
	p->longer = (double)b;
	p->copies = (double)m->copies * (double)m->iterations;
	p->cut = !a || !b || p->before <= 0 || p->after <= 0;
	p->wrong = !m->right[0] || !m->right[1];
	return true;
}

/* ---------------------------------------------------------- preparing --- */

struct piece {
	const uint8_t *code;
	size_t bytes;
	unsigned insts; /* that count as one each */
};

static struct piece piece_of(const struct host_inst *i, bool stream)
{
	const uint8_t *from = stream ? i->stream : i->chain,
		      *to = stream ? i->stream_end : i->chain_end;

	return (struct piece){
		.code = from,
		.bytes = (size_t)(to - from),
		.insts = stream ? (unsigned)host_set_size(i->set) : 1
	};
}

static bool make_loops(struct host_costs *c, struct measure *m, struct err *e)
{
	const struct piece p = piece_of(m->inst, m->stream);
	const struct piece w = m->with ? piece_of(m->with, true) :
					 (struct piece){ 0 };
	const enum host_need level = m->with && m->with->need > m->inst->need ?
					     m->with->need :
					     m->inst->need;

	m->rounds = (COPIES + p.insts - 1) / p.insts;
	m->copies = m->rounds * (m->with ? 1 : p.insts);
	for (unsigned i = 0; i < 2; i++) {
		m->loop[i] = host_code_loop(c->code, level, p.code, p.bytes,
					    w.code, w.bytes,
					    m->rounds * (i + 1));
		if (!m->loop[i])
			return err_set(e, ERR_NOMEM, "no room for the loops "
				       "of %s", m->inst->name);
	}
	return true;
}

/* As many iterations as the shorter loop needs for RUN_CYCLES. */
static void set_iterations(struct measure *m)
{
	enum { PILOT = 50 };
	uint64_t best = UINT64_MAX;

	host_time(m->loop[0], &m->state, PILOT);
	for (int i = 0; i < 3; i++) {
		const uint64_t t = host_time(m->loop[0], &m->state, PILOT);

		best = t < best ? t : best;
	}
	m->iterations = (uint64_t)(RUN_CYCLES * PILOT / (double)best) + 1;
}

/* Registers of both halves of a pair: their sets differ, or are the same. */
static void init_state(struct measure *m, uint8_t *data)
{
	host_state_init(&m->state, m->inst, data);
	if (!m->with)
		return;
	host_state_init(&m->other, m->with, data);
	host_state_init(&m->state, m->inst, data);
	if (m->inst->set == HOST_G64) {
		m->state.vx = m->other.vx;
		m->state.va = m->other.va;
		m->state.vb = m->other.vb;
	} else {
		m->state.x = m->other.x;
	}
}

static bool add_measure(struct host_costs *c, const struct host_inst *i,
			const struct host_inst *with, bool stream,
			struct err *e)
{
	struct measure *m = &c->m[c->n];
	const struct piece p = piece_of(i, stream);

	if (!p.bytes || !host_has(i->need) || (with && !host_has(with->need)))
		return true;
	*m = (struct measure){ .cost = c, .inst = i, .with = with,
			       .stream = stream };
	m->series = (struct probe_series){ .name = i->name, .read = read_pair,
					   .ctx = m };
	if (!make_loops(c, m, e))
		return false;
	c->n++;
	return true;
}

/*
 * The clock falls while 512-bit units multiply and rises as soon as they do
 * not, so with those instructions it is read by a chain of additions that has
 * a multiplication for every six of them, which do not slow it down.
 */
static void make_clock(struct host_costs *c, bool wide)
{
	const struct host_inst *i = host_inst_find("add_r64");
	const struct piece p = piece_of(i, false);
	const struct piece w = piece_of(host_inst_find("vfmadd231ps_z"), false);
	enum { RUN = 6 };
	uint8_t run[RUN * 16];

	for (int k = 0; k < RUN; k++)
		memcpy(run + (size_t)k * p.bytes, p.code, p.bytes);
	for (unsigned k = 0; k < 2; k++)
		c->clock[wide][k] = host_code_loop(
			c->code, wide ? HOST_AVX512F : HOST_BASE, run,
			RUN * p.bytes, w.code, wide ? w.bytes : 0,
			CLOCK_COPIES / RUN * (k + 1));
}

static bool costs_init(struct host_costs *c, size_t measures, struct err *e)
{
	c->m = xcalloc(measures, sizeof(*c->m));
	c->data = xaligned(4096, HOST_DATA_BYTES);
	c->code = host_code_new(e);
	if (!c->code)
		return false;
	make_clock(c, false);
	if (host_has(HOST_AVX512F))
		make_clock(c, true);
	host_state_init(&c->clock_state, host_inst_find("add_r64"), c->data);
	return true;
}

static void costs_fini(struct host_costs *c)
{
	host_code_free(c->code);
	free(c->data);
	free(c->m);
}

/* ------------------------------------------------------------- the run -- */

static bool measure_all(struct host_costs *c, const char *what, struct err *e)
{
	const struct probe_opts *o = c->h.o;
	const size_t samples = o->samples ? o->samples :
			       o->quick	  ? SAMPLES_QUICK :
					    SAMPLES;
	struct probe_series **s = xmalloc((c->n + 1) * sizeof(*s));
	struct progress bar;
	const struct probe_plan plan = { .samples = samples, .pairs = PAIRS,
					 .seed = o->seed, .stop = o->stop,
					 .progress = &bar };

	if (!host_code_seal(c->code, e)) {
		free(s);
		return false;
	}
	for (size_t i = 0; i < c->n; i++) {
		init_state(&c->m[i], c->data);
		set_iterations(&c->m[i]);
		s[i] = &c->m[i].series;
	}
	progress_init(&bar, what, c->n * samples, o->quiet);
	probe_perf_start(&c->h.perf);
	const bool good = probe_measure(&plan, s, c->n, e);
	c->counted = probe_perf_stop(&c->h.perf, &c->count);
	progress_fini(&bar);
	free(s);
	return good;
}

static double core_hz(const struct host_costs *c, const struct probe_series *s)
{
	return s->clock * (double)c->h.cpu.tsc_hz;
}

/* "yes", "no", or nothing where nobody published a figure. */
static void compare_published(struct host_costs *c, const struct measure *m,
			      double ours)
{
	struct table *t = &c->h.table;
	struct host_published p;

	if (!host_published_find(c->h.cpu.arch, m->inst->name, &p))
		return;
	const double theirs = m->stream ? p.interval : p.latency;
	if (isnan(theirs))
		return;
	const bool yes = host_agrees(ours, theirs);
	c->compared++;
	c->agreed += yes;
	table_cell(t, 6, "%.3g", theirs);
	table_cell(t, 7, "%s", yes ? "yes" : "no");
	table_cell(t, 8, "%s", p.source);
}

static void add_row(struct host_costs *c, const struct measure *m)
{
	const struct probe_series *s = &m->series;
	const struct res_interval r = probe_series_median(s);
	struct table *t = &c->h.table;

	table_row(t);
	table_cell(t, 0, "%s", m->inst->name);
	if (s->n) {
		table_cell(t, 1, "%.3f", r.value);
		if (!isnan(r.lo)) {
			table_cell(t, 2, "%.3f", r.lo);
			table_cell(t, 3, "%.3f", r.hi);
		}
		table_cell(t, 4, "%zu", s->n);
		table_cell(t, 5, "%.0f", core_hz(c, s) * 1e-6);
		compare_published(c, m, r.value);
	}
	probe_rejects_add(&c->h.rejects, s, t);
}

static bool report_costs(struct host_costs *c, struct err *e)
{
	bool good = true;

	for (size_t i = 0; i < c->n && good; i++) {
		const struct measure *m = &c->m[i];

		add_row(c, m);
		c->wrong += m->series.rejected[PROBE_PAIR_VALUE] > 0;
		good = host_store(&c->h, "cost", m->inst->name,
				  "{\"isa\":\"x86-64\"}",
				  m->stream ? "interval" : "latency", "cycle",
				  &m->series, core_hz(c, &m->series), e);
	}
	return good;
}

static void print_summary(const struct host_costs *c)
{
	if (c->h.o->quiet)
		return;
	if (c->counted && c->h.perf.hardware)
		fold_printf(stderr, 2,
			    "t0-probe: %.2f instructions per cycle over "
			    "the whole run%s\n",
			    c->count.value[1] / c->count.value[0],
			    c->count.multiplexed ? " (counters shared)" : "");
	if (c->compared)
		fold_printf(stderr, 2,
			    "t0-probe: %u of %u published figures "
			    "for %s agree within 5 %% or 0.1 cycle; %u wrong "
			    "results\n",
			    c->agreed, c->compared,
			    host_arch_name(c->h.cpu.arch), c->wrong);
	else
		fold_printf(stderr, 2,
			    "t0-probe: no published figures for "
			    "this processor; %u wrong results\n",
			    c->wrong);
}

/* Every row of host.def, or those whose name begins with --inst. */
static bool add_insts(struct host_costs *c, bool stream, struct err *e)
{
	const char *want = c->h.o->inst;
	size_t n;
	const struct host_inst *i = host_insts(&n);
	bool good = costs_init(c, n, e);

	bool known = false;

	for (size_t k = 0; k < n && good; k++) {
		if (want && strncmp(i[k].name, want, strlen(want)))
			continue;
		known = true;
		if (probe_in_shard(c->h.o, "cost", i[k].name))
			good = add_measure(c, &i[k], NULL, stream, e);
	}
	if (good && !c->n && !(known && c->h.o->shard.count))
		return err_set(e, ERR_USAGE, "--inst %s: no instruction of "
			       "this processor begins so; see --list", want);
	return good;
}

static int run_costs(const struct probe_opts *o, bool stream, struct err *e)
{
	const char *verb = stream ? "throughput" : "latency";
	struct host_costs *c = xcalloc(1, sizeof(*c));
	bool good = host_begin(&c->h, o, verb,
			       "instruction,#cycles,#lo,#hi,#n,#clock_mhz,"
			       "#published,agrees,source,rejected", e) &&
		    add_insts(c, stream, e) &&
		    (!c->n || measure_all(c, verb, e)) &&
		    report_costs(c, e);

	if (good)
		print_summary(c);
	good = good && host_again(&c->h, e);
	const int code = host_end(&c->h, good, c->wrong ? EXIT_NO : EXIT_YES,
				  e);
	if (good && c->wrong)
		err_set(e, ERR_DEVICE, "%u instructions computed something "
			"else than C", c->wrong);
	costs_fini(c);
	free(c);
	return code;
}

int host_latency(const struct probe_opts *o, struct err *e)
{
	return run_costs(o, false, e);
}

int host_throughput(const struct probe_opts *o, struct err *e)
{
	return run_costs(o, true, e);
}

/* -------------------------------------------------------------- overlap -- */

/*
 * Pairs that may or may not share execution ports.  Both halves of a pair are
 * of different register files, or so short that the chains from round to
 * round do not limit: 12 registers at the sum of both latencies.
 */
static const struct {
	const char *a, *b;
} pairs[] = {
	{ "add_r64", "vaddps_y" },	{ "imul_r64", "vaddps_y" },
	{ "imul_r64", "vmulps_y" },	{ "popcnt_r64", "vpaddd_y" },
	{ "pdep_r64", "vpshufb_y" },	{ "add_r64", "vmovdqu_y_m" },
	{ "vpaddd_y", "vpshufb_y" },	{ "vpaddd_y", "vpermd_y" },
	{ "vpshufb_y", "vpermd_y" },	{ "vfmadd231ps_y", "vshufps_y" },
	{ "vmulps_y", "vblendps_y" },	{ "vdivps_y", "vshufps_y" },
	{ "vdivps_y", "vmulps_y" },	{ "vdivps_y", "vsqrtps_y" },
	{ "mov_r64_m", "vaddps_y" },	{ "mov_m_r64", "vaddps_y" },
	{ "imul_r64", "vpermd_y" },	{ "vpmulld_y", "vpermd_y" },
};

static double per_round(const struct measure *m)
{
	const double v = probe_series_median(&m->series).value;

	return m->with ? v : v * host_set_size(m->inst->set);
}

static bool overlap_row(struct host_costs *c, const struct measure m[3],
			struct err *e)
{
	static const char *const alone[3] = { "first", "second" };
	const double a = per_round(&m[0]), b = per_round(&m[1]),
		     both = per_round(&m[2]);
	struct table *t = &c->h.table;
	char params[96];

	table_row(t);
	table_cell(t, 0, "%s", m[0].inst->name);
	table_cell(t, 1, "%s", m[1].inst->name);
	table_cell(t, 2, "%.2f", a);
	table_cell(t, 3, "%.2f", b);
	table_cell(t, 4, "%.2f", both);
	table_cell(t, 5, "%.0f", 100 * (a + b - both) / (a < b ? a : b));
	for (int i = 0; i < 3; i++)
		c->wrong += m[i].series.rejected[PROBE_PAIR_VALUE] > 0;
	bool good = true;
	for (int i = 0; i < 3 && good; i++) {
		struct probe_series s = m[i].series;
		const int in_round = m[i].with ? 1 :
					       host_set_size(m[i].inst->set);

		for (size_t k = 0; k < s.n; k++)
			s.v[k] *= in_round;
		res_params(params, sizeof(params), "with:s ?alone:s",
			   m[1].inst->name, alone[i]);
		good = host_store(&c->h, "overlap", m[0].inst->name, params,
				  "interval", "cycle", &s,
				  core_hz(c, &m[i].series), e);
	}
	return good;
}

static bool add_pairs(struct host_costs *c, struct err *e)
{
	bool good = costs_init(c, 3 * ARRAY_SIZE(pairs), e);

	for (size_t i = 0; i < ARRAY_SIZE(pairs) && good; i++) {
		const struct host_inst *a = host_inst_find(pairs[i].a),
				       *b = host_inst_find(pairs[i].b);

		if (!host_has(a->need) || !host_has(b->need))
			continue;
		good = add_measure(c, a, NULL, true, e) &&
		       add_measure(c, b, NULL, true, e) &&
		       add_measure(c, a, b, true, e);
	}
	return good;
}

int host_overlap(const struct probe_opts *o, struct err *e)
{
	struct host_costs *c = xcalloc(1, sizeof(*c));
	bool good = host_begin(&c->h, o, "overlap",
			       "first,second,#first_alone,#second_alone,"
			       "#together,#overlap_percent", e) &&
		    add_pairs(c, e) && measure_all(c, "overlap", e);

	for (size_t i = 0; i < c->n && good; i += 3)
		good = overlap_row(c, &c->m[i], e);
	good = good && host_again(&c->h, e);
	const int code = host_end(&c->h, good, c->wrong ? EXIT_NO : EXIT_YES,
				  e);
	costs_fini(c);
	free(c);
	return code;
}
