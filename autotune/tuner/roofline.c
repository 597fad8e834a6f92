/*
 * autotune/tuner/roofline.c - the least time of a tiled product, and an
 * estimate.
 *
 * The bound is a roofline: every pipe does its whole work without a pause, and
 * the WGP that has most workgroups decides.  The estimate, which ranks, goes
 * round by round and step by step: a step of the loop takes as long as its
 * busiest pipe or, if too few waves are there to hide it, as one wave's chain
 * of waits.  What is approximated:
 *   - all rounds but the last are full, workgroups of a round run in step;
 *   - no WGP finds in a cache what another fetched, but for memory, where
 *     workgroups that run at the same time form a rectangle of tiles, whose
 *     rows of A and columns of B are fetched once per step; what is cold
 *     comes from DRAM once, and then from where the rest is;
 *   - LDS accesses have no bank conflicts, code is in the instruction cache;
 *   - masked tiles cost constants of each element.
 * The pipeline simulator (simulate.c) makes none of these simplifications but
 * the last of the first line.
 */
#include <math.h>

#include "autotune/tuner/tune.h"

enum { SECTOR = 64 }; /* bytes that memory moves at least */

struct work {
	const struct tune_problem *p;
	const struct gemm_config *c;
	const struct cost_model *m;
	double in, b, out;	    /* bytes of elements; of B in memory */
	double groups, mine;	    /* of the GPU, of the fullest WGP */
	double steps, waves, at_once;
	double mhz;
};

static double cost_of(const struct work *w, enum cost_row r)
{
	return cost_value(w->m, r);
}

/* Parts of K that are added up. */
static double split_of(const struct work *w)
{
	return w->c->split > 1 && !w->c->stream_k ? w->c->split : 1;
}

static bool has_reduction(const struct work *w)
{
	return w->c->stream_k || w->c->split > 1;
}

static void count_work(struct work *w)
{
	const struct gemm_config *c = w->c;
	double tiles = ceil((double)w->p->m / c->m) *
		       ceil((double)tune_columns(w->p) / c->n) * w->p->batch;

	w->in = tune_type_bytes(w->p->op.in);
	w->b = tune_b_bytes(&w->p->op);
	w->out = tune_type_bytes(w->p->op.out);
	w->waves = c->waves_m * c->waves_n;
	w->steps = ceil((double)w->p->k / c->k / split_of(w));
	w->groups = tiles * split_of(w);
	w->mine = ceil(w->groups / cost_of(w, COST_N_WGP));
	if (c->stream_k) { /* all steps shared among so many groups */
		double all = tiles * ceil((double)w->p->k / c->k);

		w->groups = c->split;
		w->mine = ceil(w->groups / cost_of(w, COST_N_WGP));
		w->steps = ceil(all / w->groups);
	}
}

/* Cycles of a SIMD for a wave's part of a step. */
static double wave_math(const struct work *w)
{
	const struct gemm_config *c = w->c;
	double products = (double)c->m * c->n * c->k / w->waves;

	if (w->p->op.in == DSL_F32) /* pairs of fused multiply-adds */
		return products / 32 / 2 * cost_of(w, COST_VOPD_ISSUE);
	return products / 4096 * cost_of(w, COST_WMMA_ISSUE);
}

/* Cycles of the four SIMDs for `r` workgroups' step. */
static double math_cycles(const struct work *w, double r)
{
	return ceil(r * w->waves / 4) * wave_math(w);
}

/*
 * A fragment lies in both halves of a wave, so it is read twice (RDNA3 ISA:
 * WMMA replicates A and B); 128 bytes a cycle in each CU.
 */
static double lds_cycles(const struct work *w, double r)
{
	const struct gemm_config *c = w->c;
	double twice = w->p->op.in == DSL_F32 ? 1 : 2;
	double a = c->m * (1 + twice * c->waves_n);
	double b = c->b_direct ? 0 : c->n * (1 + twice * c->waves_m);
	double cus = c->cu_mode && r < 2 ? 1 : 2;

	return r * (a + b) * c->k * w->in / 128 / cus;
}

/* What a row of a tile takes when memory moves whole sectors. */
static double in_sectors(double row_bytes)
{
	return ceil(row_bytes / SECTOR) * SECTOR / row_bytes;
}

/* Bytes of a workgroup's step that pass L0, whole sectors of each row. */
static double loaded_bytes(const struct work *w)
{
	const struct gemm_config *c = w->c;
	double row_a = (w->p->op.a_trans ? c->m : c->k) * w->in;
	double row_b = (w->p->op.b_trans ? c->k : c->n) * w->b;

	return (c->m * in_sectors(row_a) * w->in +
		(c->b_direct ? c->waves_m : 1) *
		c->n * in_sectors(row_b) * w->b) * c->k;
}

static double l0_cycles(const struct work *w, double r)
{
	double cus = w->c->cu_mode && r < 2 ? 1 : 2;

	return r * loaded_bytes(w) / cost_of(w, COST_L0_BW) / cus;
}

/* Nothing is shared on the way to L2: every WGP asks for itself. */
static double l2_cycles(const struct work *w, double r)
{
	double busy = fmin(w->groups, cost_of(w, COST_N_WGP));

	return r * loaded_bytes(w) * busy / cost_of(w, COST_L2_BW);
}

/* Bytes of A, and of B, that the whole GPU takes from L2 in a step. */
struct fetch {
	double a, b;
};

static struct fetch fetched_bytes(const struct work *w, double r)
{
	const struct gemm_config *c = w->c;
	double at = fmin(w->groups, r * cost_of(w, COST_N_WGP)) / split_of(w);
	double rows_n = ceil((double)w->p->m / c->m);
	double cols_n = ceil((double)tune_columns(w->p) / c->n);
	double rows = c->order ? fmin(c->order, rows_n)
			       : fmax(1, fmin(rows_n, ceil(at / cols_n)));
	double cols = fmin(cols_n, ceil(at / rows));

	double parts = c->k * split_of(w);

	return (struct fetch){ rows * c->m * w->in * parts,
			       cols * c->n * w->b * parts };
}

static double dram_rate(const struct work *w)
{
	return cost_of(w, COST_DRAM_BW) * cost_of(w, COST_DRAM_READ_EFF) /
	       (w->mhz * 1e6);
}

/* Bytes a cycle of the level that holds all that is warm. */
static double memory_rate(const struct work *w)
{
	double bytes = tune_bytes_warm(w->p);

	if (bytes <= cost_of(w, COST_L2_BYTES))
		return cost_of(w, COST_L2_BW);
	if (bytes <= cost_of(w, COST_MALL_BYTES))
		return cost_of(w, COST_MALL_BW) / (w->mhz * 1e6);
	return dram_rate(w);
}

/*
 * Cycles of a fetch from beyond L2, `bytes` of each of `times` steps, of an
 * operand of `all` bytes that lies in DRAM before the first.
 */
static double cold_bytes(const struct work *w, double bytes, double times,
			 double all)
{
	double first = fmin(1, all / (bytes * times));

	return bytes * (first / dram_rate(w) + (1 - first) / memory_rate(w));
}

static double memory_cycles(const struct work *w, double r)
{
	struct fetch f = fetched_bytes(w, r);
	double times = ceil(w->mine / r) * w->steps;
	double a = f.a / memory_rate(w), b = f.b / memory_rate(w);

	if (w->p->caches != TUNE_WARM)
		b = cold_bytes(w, f.b, times, tune_bytes_b(w->p));
	if (w->p->caches == TUNE_COLD)
		a = cold_bytes(w, f.a, times, tune_bytes_a(w->p));
	return fmax((f.a + f.b) / cost_of(w, COST_L2_BW), a + b);
}

static double load_latency(const struct work *w)
{
	double bytes = w->p->caches == TUNE_WARM ? tune_bytes(w->p) : INFINITY;
	double beyond = bytes <= cost_of(w, COST_L2_BYTES) ? 0
		: bytes <= cost_of(w, COST_MALL_BYTES) ? cost_of(w, COST_IC_LAT)
		: cost_of(w, COST_DRAM_LAT);

	return cost_of(w, COST_L2_LAT) + beyond * w->mhz * 1e-3;
}

/*
 * A wave alone: what it waits for from one step to the next.  The next tile is
 * on its way during the product, or during two of them, and has to be stored,
 * and seen by all, before the next product begins.
 */
static double chain_cycles(const struct work *w)
{
	const struct gemm_config *c = w->c;
	double barrier = cost_of(w, COST_BARRIER) + w->waves *
			 cost_of(w, COST_BARRIER_WAVE);
	double product = cost_of(w, COST_LDS_LOAD_LATENCY) +
			 wave_math(w) * fmax(1, ceil(w->waves / 4));
	double store = cost_of(w, COST_LDS_STORE_LATENCY) +
		       barrier * (c->buffers < 2 ? 2 : 1);

	if (c->prefetch)
		return fmax(product, load_latency(w) / c->prefetch) + store;
	return product + store + (c->buffers < 3 ? load_latency(w) : 0);
}

struct pipe {
	const char *name;
	double (*cycles)(const struct work *w, double r);
};
static const struct pipe pipes[] = {
	{ "wmma", math_cycles },
	{ "lds", lds_cycles },
	{ "l0", l0_cycles }, /* always */
	{ "l2", l2_cycles },
	{ "memory", memory_cycles }, /* unless caches help */
};
enum { SURE = 3 };

/* Of the pipes whose work does not depend on what others do. */
static double busiest_pipe(const struct work *w, double r, const char **name)
{
	double most = 0;

	for (int i = 0; i < SURE; i++) {
		double t = pipes[i].cycles(w, r);

		if (t > most) {
			most = t;
			*name = pipes[i].name;
		}
	}
	return most;
}

/*
 * Instructions of a wave's step that are no matrix products: loads and stores
 * of the tile, fragments, addresses and counters.  Vector ones do not run
 * beside matrix products (AMD: no co-execution on RDNA3), so about half of
 * all take their time from them.  Integers of B take about three each to be
 * f16, six to be bf16 (compiler/gemm/weights.c).
 */
static double overhead_cycles(const struct work *w, double r)
{
	const struct gemm_config *c = w->c;
	double moved = (c->m * w->in + c->n * w->b) * c->k /
		       (w->waves * 32 * 16);
	double each = !w->p->op.weights ? 0 : w->p->op.in == DSL_F16 ? 3 : 6;
	double converted = c->n * c->k * each / (w->waves * 32);
	double frags = ((double)c->m / c->waves_m + (double)c->n / c->waves_n) /
		       16 * c->k / 16;

	return ceil(r * w->waves / 4) *
	       ((16 + 4 * moved + 2 * frags) / 2 + converted);
}

/*
 * Pipes get into each other's way: the fourth root of the sum of fourth powers
 * is their maximum where one stands out, and a fifth more where two are equal.
 */
static double step_cycles(const struct work *w, double r)
{
	double sum = pow(chain_cycles(w), 4);

	for (size_t i = 0; i < ARRAY_SIZE(pipes); i++) {
		double t = pipes[i].cycles(w, r);

		if (pipes[i].cycles == math_cycles)
			t += overhead_cycles(w, r);
		sum += pow(t, 4);
	}
	return pow(sum, 0.25);
}

/* ---- what masks cost ---- */

/*
 * A tile of which something is missing goes to LDS in rounds: each work-item
 * takes one vector, element by element, and waits for it (compiler/gemm/feed.c,
 * gemm_feed_masked()).
 */
struct share {
	double rounds, vec; /* of a work-item; elements of a round */
};

/* As compiler/gemm/plan.c shares a side out, where sizes are powers of two. */
static struct share share_of(const struct work *w, double rows, bool as_is)
{
	double each = fmax(1, rows * w->c->k / (w->waves * 32));
	double vec = as_is ? each : exp2(ceil(log2(each) / 2));

	vec = fmin(vec, 16 / w->in);
	return (struct share){ ceil(each / vec), vec };
}

static void split_shares(const struct work *w, struct share out[2])
{
	bool matrix = w->p->op.in != DSL_F32;
	double frags = w->c->n / (w->c->waves_n * 16.0) * w->c->k / 16.0;

	out[0] = share_of(w, w->c->m, w->p->op.a_trans != matrix);
	out[1] = w->c->b_direct ? (struct share){ frags, 16 }
				: share_of(w, w->c->n,
					   w->p->op.b_trans == matrix);
}

/*
 * Cycles of an element: of a wave that waits, of its SIMD, of L0 for each
 * element that lies beside it in memory; and of one of C in the epilogue.
 * Fitted to the simulator over seven odd shapes of all layouts.
 */
#define ELEMENT_WAIT 32
#define ELEMENT_ISSUE 8
#define ELEMENT_LINES 2
#define ELEMENT_STORE 32

/* Cycles of such a step for `r` workgroups of a WGP. */
static double masked_step(const struct work *w, double r)
{
	struct share s[2];
	double wait = 2 * (cost_of(w, COST_BARRIER) +
			   w->waves * cost_of(w, COST_BARRIER_WAVE)) +
		      cost_of(w, COST_LDS_LOAD_LATENCY) + wave_math(w);
	double issue = 0, lines = 0, cus = w->c->cu_mode && r < 2 ? 1 : 2;

	split_shares(w, s);
	for (int i = 0; i < 2; i++) {
		double elements = s[i].rounds * s[i].vec;

		wait += s[i].rounds * (load_latency(w) +
				       cost_of(w, COST_LDS_STORE_LATENCY)) +
			ELEMENT_WAIT * elements;
		issue += ELEMENT_ISSUE * elements;
		lines += ELEMENT_LINES * elements * s[i].vec;
	}
	issue = issue * ceil(r * w->waves / 4) + math_cycles(w, r);
	return pow(pow(wait, 4) + pow(issue, 4) +
		   pow(lines * r * w->waves / cus, 4), 0.25);
}

/* Rows of A and B begin where no vector may: compiler/gemm/launch.c. */
static bool is_odd(const struct tune_problem *p)
{
	uint32_t rows = (p->op.a_trans ? p->m : p->k) |
			(p->op.b_trans ? p->k : p->n);

	return p->op.in == DSL_I8 && rows % 2;
}

/* Whole tiles of so many, as a share. */
static double whole_share(double size, double tile)
{
	return floor(size / tile) / ceil(size / tile);
}

double tune_masked_share(const struct tune_problem *p,
			 const struct gemm_config *c)
{
	double inside = 1;

	if (c->even)
		return 0;
	if (is_odd(p))
		return 1;
	/* Rows that are missing where K is adjacent are read elsewhere. */
	if (p->op.a_trans)
		inside *= whole_share(p->m, c->m);
	if (!p->op.b_trans && !c->b_direct)
		inside *= whole_share((double)tune_columns(p), c->n);
	return 1 - inside;
}

/* Of the steps of a workgroup, how many are. */
static double masked_steps(const struct work *w)
{
	double share = tune_masked_share(w->p, w->c);
	double last = 1 / split_of(w);
	double rest = w->p->k % w->c->k && !w->c->even ? last : 0;
	bool few = w->mine <= 2 * w->at_once;

	if (is_odd(w->p))
		last = w->steps;
	/* In a round or two one of them keeps all waiting. */
	if (few) {
		share = ceil(share);
		last = ceil(last);
		rest = ceil(rest);
	}
	return fmin(rest + share * last, w->steps);
}

/* Cycles of C, element by element where it ends. */
static double masked_end(const struct work *w, double r)
{
	double elements = (double)w->c->m * w->c->n / (w->waves * 32);
	double m = (double)w->p->m / w->c->m;
	double n = (double)tune_columns(w->p) / w->c->n;

	if (w->c->even || has_reduction(w) || (m == floor(m) && n == floor(n)))
		return 0;
	return ELEMENT_STORE * elements * ceil(r * w->waves / 4);
}

/* Cycles of `r` workgroups that begin together on a WGP. */
static double round_cycles(const struct work *w, double r)
{
	double slow = masked_steps(w);
	double steps = (w->steps - slow) * step_cycles(w, r) +
		       (slow > 0 ? slow * masked_step(w, r) : 0);
	double begin = cost_of(w, COST_WAVE_START) + 2 * load_latency(w) +
		       cost_of(w, COST_LDS_STORE_LATENCY);
	double c_bytes = r * w->c->m * w->c->n *
			 (has_reduction(w) ? 4 : w->out);
	double end =
		cost_of(w, COST_WMMA_RESULT) +
		c_bytes / (cost_of(w, COST_L2_BW) / cost_of(w, COST_N_WGP));

	return begin + steps + end + masked_end(w, r);
}

/* The second kernel of a split: parts in f32 are read, the sum is written. */
static double reduction_s(const struct work *w)
{
	double c = (double)w->p->m * w->p->n * w->p->batch;
	double bytes = c * (8 * split_of(w) + w->out);

	if (!has_reduction(w))
		return 0;
	return cost_of(w, COST_LAUNCH) * 1e-6 +
	       (load_latency(w) * 3 + bytes / memory_rate(w)) /
		       (w->mhz * 1e6);
}

static double estimate_s(const struct work *w)
{
	double whole = floor(w->mine / w->at_once);
	double rest = w->mine - whole * w->at_once;
	double cycles = whole * round_cycles(w, w->at_once) +
			(rest > 0 ? round_cycles(w, rest) : 0);

	return cycles / (w->mhz * 1e6) + reduction_s(w);
}

static double bound_s(const struct work *w, const char **limit)
{
	double hz = w->mhz * 1e6;
	double t = busiest_pipe(w, w->mine, limit) * w->steps / hz;
	double warm = tune_bytes_warm(w->p);
	/* Caches and DRAM may deliver at the same time. */
	double memory_s = fmax(warm / memory_rate(w),
			       (tune_bytes(w->p) - warm) / dram_rate(w)) / hz;

	if (memory_s > t) {
		*limit = "memory";
		t = memory_s;
	}
	return t + (has_reduction(w) ? cost_of(w, COST_LAUNCH) * 1e-6 : 0);
}

/* At the clock that a kernel of so many seconds at w->mhz has. */
static void set_clock(struct work *w, double seconds)
{
	w->mhz = cost_clock(w->m, seconds * w->mhz * 1e6,
			    cost_value(w->m, COST_LAUNCH) * 1e-6);
}

void tune_roofline(const struct tune_problem *p, const struct cost_model *m,
		   const struct tune_needs *needs, struct tune_candidate *c)
{
	const double sustained = cost_value(m, COST_CLOCK);
	struct work w = { .p = p, .c = &c->config, .m = m,
			  .at_once = needs->groups, .mhz = sustained };

	count_work(&w);
	set_clock(&w, estimate_s(&w));
	c->estimate_s = estimate_s(&w);
	w.mhz = sustained;
	set_clock(&w, bound_s(&w, &c->limit));
	c->bound_s = bound_s(&w, &c->limit);
}

/* ---- whatever the tiles ---- */

double tune_peak_flops(const struct tune_problem *p, const struct cost_model *m,
		       double clock_hz)
{
	double per_cycle = p->op.in == DSL_F32 ? cost_fma_rate(m) :
						 cost_wmma_rate(m);

	return 4 * cost_value(m, COST_N_WGP) * per_cycle * clock_hz;
}

double tune_least_time(const struct tune_problem *p, const struct cost_model *m,
		       double clock_hz)
{
	const struct work w = { .p = p, .m = m, .mhz = clock_hz / 1e6 };
	double compute_s = tune_flop(p) / tune_peak_flops(p, m, clock_hz);
	double bytes_s = tune_bytes(p) / memory_rate(&w) / clock_hz;

	return fmax(compute_s, bytes_s);
}
