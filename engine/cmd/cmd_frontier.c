/*
 * engine/cmd/cmd_frontier.c - t0-qwen3 quantize --frontier: what every format
 * of weights costs in quality, and gives in bytes and speed.
 *
 * Of each format: bytes that a token reads, how far its predictions are from
 * the model's own, decoding on this processor, each sample in a process of its
 * own, and decoding on the gfx1100, simulated.  Formats are parts of the work
 * for --shard.  Rows are stored when all of them are there.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler/cost/cost.h"
#include "engine/cmd/cmd_bench.h"
#include "engine/cmd/cmd_quantize.h"
#include "engine/gpu/gpu.h"
#include "results/stats/stats.h"

/* Positions of the one that the simulator decodes; tokens of a first sample. */
enum { BEHIND = 1024, FIRST = 16, MOST_SAMPLES = 256 };
/* A rate of less time than this says more of the clock than of the model. */
#define LEAST_S 0.05

struct format {
	const char *name;
	enum qwen_weights type;
	bool fitted; /* to the text of --calibrate */
	double bits; /* of several types: for a weight */
};

struct point {
	struct format as;
	uint64_t bytes; /* that a token reads */
	struct qwen_quality q;
	double sample[MOST_SAMPLES]; /* tokens per second */
	struct res_interval rate;
	bool timed; /* samples are long enough to say something */
	double simulated; /* tokens per second; NAN: no kernels for it */
	bool best;	  /* no other has both fewer bytes and less divergence */
};

struct frontier {
	struct qwen_cmd *c;
	struct qwen_session a; /* the model as it is stored */
	struct qwen_ids ids;
	struct cost_model costs;
	struct res_shard shard;
	struct point *v; /* [n] */
	size_t n;
	char scratch[PATH_MAX]; /* the file of a format of blocks */
};

/* ---- formats ---- */

/* Those of --calibrate, beside every type of weights. */
static const struct format fitted[] = {
	{ "q3_k_fit", QWEN_W_Q3_K, true, 0 },
	{ "int4_fit", QWEN_W_Q4_0, true, 0 },
	{ "q5_0_fit", QWEN_W_Q5_0, true, 0 },
	{ "q6_k_fit", QWEN_W_Q6_K, true, 0 },
	{ "int8_fit", QWEN_W_Q8_0, true, 0 },
	/* Of up to 4.5 bits some are q3_k. */
	{ "mix_4", QWEN_W_Q3_K, true, 4 },
	{ "mix_4.25", QWEN_W_Q3_K, true, 4.25 },
	{ "mix_4.5", QWEN_W_Q3_K, true, 4.5 },
	{ "mix_4.75", QWEN_W_Q4_0, true, 4.75 },
	{ "mix_5", QWEN_W_Q4_0, true, 5 },
	{ "mix_5.5", QWEN_W_Q4_0, true, 5.5 },
	{ "mix_6", QWEN_W_Q4_0, true, 6 },
	{ "mix_6.5", QWEN_W_Q4_0, true, 6.5 },
	{ "mix_7", QWEN_W_Q4_0, true, 7 },
};

static size_t count_formats(const struct qwen_cmd *c)
{
	return QWEN_WEIGHTS + (c->calibrate ? ARRAY_SIZE(fitted) : 0);
}

static struct format format_at(size_t i)
{
	const enum qwen_weights w = (enum qwen_weights)i;

	return i >= QWEN_WEIGHTS ? fitted[i - QWEN_WEIGHTS] :
				   (struct format){ .name = qwen_weights_name(w),
						    .type = w };
}

/* ---- one format ---- */

/* As `as` names it: converted when it is read, or a file of its own. */
static bool format_open(struct frontier *f, const struct point *p,
			struct qwen_cmd *as, struct qwen_session *s,
			struct err *e)
{
	const struct qwen_conversion how = {
		.from = f->c->model, .to = f->scratch, .typed = true,
		.type = p->as.type, .threads = f->a.threads,
		.stop = f->c->stop,
	};

	*as = *f->c;
	as->fresh = true;
	if (qwen_is_block(p->as.type) && !qwen_is_own(p->as.type)) {
		as->model = f->scratch;
		as->weights = NULL;
		if (p->as.fitted ? !qwen_fitted_write(f->c, p->as.type,
						      p->as.bits, f->scratch, e) :
				   !qwen_model_convert(&how, e))
			return false;
	} else {
		as->weights = p->as.name;
	}
	return qwen_session_open(s, as, QWEN_WORDS_NO, e);
}

static bool take_sample(struct frontier *f, struct qwen_bench *b,
			const struct qwen_case *k, double *rate, struct err *e)
{
	double seconds;

	if (*f->c->stop)
		return err_set(e, ERR_STOPPED, "stopped between two samples");
	if (!qwen_bench_sample(b, k, &seconds, e))
		return false;
	*rate = k->tokens / seconds;
	return true;
}

/* A first sample says how many tokens the others need. */
static bool measure_speed(struct frontier *f, struct qwen_cmd *as,
			  struct point *p, struct err *e)
{
	struct qwen_bench b = { .c = as, .longest = 1 };
	struct qwen_case k = { .phase = "decode", .width = 1, .tokens = FIRST };
	const double most = f->a.model.config.max_positions - 1;
	double rate;

	as->prompt = as->prompt_file = as->messages = NULL;
	as->ids = "0";
	if (!take_sample(f, &b, &k, &rate, e))
		return false;
	k.tokens = (uint32_t)fmin(most, fmax(FIRST, 1.2 * LEAST_S * rate));
	p->timed = k.tokens / rate >= LEAST_S;
	for (uint64_t i = 0; i < f->c->samples; i++)
		if (!take_sample(f, &b, &k, &p->sample[i], e))
			return false;
	p->rate = res_median(p->sample, f->c->samples);
	return true;
}

static bool simulate_decode(const struct frontier *f, struct point *p, struct err *e)
{
	const struct qwen_config *c = &f->a.model.config;
	/* What it takes these blocks as, where they are of one type. */
	const enum qwen_weights w = !p->as.fitted || p->as.bits > 0 ?
					    p->as.type :
				    p->as.type == QWEN_W_Q4_0 ? QWEN_W_INT4 :
				    p->as.type == QWEN_W_Q8_0 ? QWEN_W_INT8 :
								p->as.type;
	const struct gpu_question q = {
		.sequences = 1, .tokens = 1, .weights = w,
		.positions = c->max_positions < BEHIND ? c->max_positions :
							 BEHIND,
		.cache = qwen_both(QWEN_W_BF16),
	};
	struct gpu_forecast x;

	p->simulated = NAN;
	if ((qwen_is_block(w) && !qwen_is_own(w)) || c->experts.n)
		return true;
	if (!gpu_forecast(c, &q, &f->costs, &x, e))
		return false;
	p->simulated = 1 / (x.kernels_s + x.launches_s);
	free(x.share);
	return true;
}

static bool look_at(struct frontier *f, struct point *p, struct err *e)
{
	struct qwen_session b = { 0 };
	struct qwen_cmd as;

	bool ok = format_open(f, p, &as, &b, e);
	if (ok) {
		p->bytes = b.model.token_bytes;
		ok = qwen_quality_of(f->c, &f->a.model, &b.model, &f->ids,
				     &p->q, e) &&
		     measure_speed(f, &as, p, e) && simulate_decode(f, p, e);
		qwen_session_close(&b);
	}
	unlink(f->scratch);
	return ok || err_wrap(e, "%s", p->as.name);
}

/* ---- all of them ---- */

/* Rows are whole groups, or blocks, of it. */
static bool can_be(const struct frontier *f, enum qwen_weights w)
{
	const struct qwen_config *c = &f->a.model.config;
	const uint32_t whole = qwen_is_block(w) ? qwen_layout(w).values :
			       w >= QWEN_W_INT8 ? QWEN_GROUP : 1;

	return c->hidden % whole == 0 && c->ffn % whole == 0 &&
	       c->heads * c->head_dim % whole == 0;
}

static bool look_at_all(struct frontier *f, struct err *e)
{
	f->v = xcalloc(count_formats(f->c), sizeof(*f->v));
	for (size_t w = 0; w < count_formats(f->c); w++) {
		struct point *p = &f->v[f->n];
		p->as = format_at(w);
		if (!can_be(f, p->as.type) ||
		    !res_shard_has(&f->shard, p->as.name))
			continue;
		cmd_remark(&f->c->cmd, "%s", p->as.name);
		if (!look_at(f, p, e))
			return false;
		f->n++;
	}
	return true;
}

static bool is_beaten(const struct point *p, const struct point *by)
{
	return by->bytes <= p->bytes && by->q.kl <= p->q.kl &&
	       (by->bytes < p->bytes || by->q.kl < p->q.kl);
}

static int by_bytes(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	return x->bytes != y->bytes ? (x->bytes < y->bytes ? -1 : 1) :
				      strcmp(x->as.name, y->as.name);
}

static void find_best(struct frontier *f)
{
	qsort(f->v, f->n, sizeof(*f->v), by_bytes);
	for (size_t i = 0; i < f->n; i++) {
		f->v[i].best = true;
		for (size_t k = 0; k < f->n; k++)
			f->v[i].best &= !is_beaten(&f->v[i], &f->v[k]);
	}
}

static bool print_all(const struct frontier *f, struct err *e)
{
	struct table t;

	table_init(&t, "weights,~bytes_per_token,unit,#mean_kl,#same_best,"
		       "#perplexity,#tokens_per_s,#lo,#hi,#gfx1100_simulated,"
		       "frontier,#kl_lo,#kl_hi");
	for (size_t i = 0; i < f->n; i++) {
		const struct point *p = &f->v[i];
		table_row(&t);
		table_cell(&t, 0, "%s", p->as.name);
		table_cell(&t, 1, "%llu", (unsigned long long)p->bytes);
		table_cell(&t, 2, "B");
		table_cell(&t, 3, "%.4g", p->q.kl);
		table_cell(&t, 4, "%.4f", p->q.same_best);
		table_cell(&t, 5, "%.6g", p->q.perplexity_b);
		if (p->timed) {
			table_cell(&t, 6, "%.1f", p->rate.value);
			table_cell(&t, 7, "%.1f", p->rate.lo);
			table_cell(&t, 8, "%.1f", p->rate.hi);
		}
		if (isfinite(p->simulated))
			table_cell(&t, 9, "%.1f", p->simulated);
		table_cell(&t, 10, "%s", p->best ? "yes" : "");
		table_cell(&t, 11, "%.4g", p->q.kl - p->q.kl_off);
		table_cell(&t, 12, "%.4g", p->q.kl + p->q.kl_off);
	}
	bool ok = cmd_table(&f->c->cmd, &t, e);
	table_fini(&t);
	return ok;
}

/* ---- rows, where --db names a database ---- */

/* Times, which need no verdict on a text as speeds do. */
static bool store_times(struct res_record *r, const struct frontier *f,
			const struct point *p, struct err *e)
{
	double *s = xcalloc(f->c->samples, sizeof(*s));

	for (uint64_t i = 0; i < f->c->samples; i++)
		s[i] = 1 / p->sample[i];
	const struct res_interval m = res_median(s, f->c->samples);
	const struct res_result x = {
		.run = r->run, .case_id = r->case_id, .metric = "token_time",
		.unit = "s", .value = m.value, .lo = m.lo, .hi = m.hi,
		.n = (int64_t)f->c->samples, .clock_hz = NAN,
		.better = RES_LOWER, .origin = RES_HARDWARE,
		.samples = s, .n_samples = f->c->samples,
	};
	bool ok = (!p->timed || res_result_add(r->db, &x, NULL, e)) &&
		  (!isfinite(p->simulated) ||
		   res_record_exact(r, "gfx1100_token_time", "s",
				    1 / p->simulated, RES_LOWER, e));
	free(s);
	return ok;
}

static bool store_all(const struct frontier *f, struct err *e)
{
	const struct qwen_cmd *c = f->c;
	const char *name = qwen_cmd_name(c->model);
	char inputs[QWEN_INPUTS], text[RES_IDENTITY];
	struct res_record r = { 0 };

	if (!c->db)
		return true;
	res_identity(f->ids.v, f->ids.n * sizeof(*f->ids.v), text);
	res_params(inputs, sizeof(inputs), "model:s frontier:b text:s", name,
		   true, text);
	const struct res_start run = { .tool = "t0-qwen3 quantize",
				       .inputs = inputs,
				       .shard = &f->shard,
				       .whole = true,
				       .argc = c->cmd.line_argc,
				       .argv = c->cmd.line_argv };
	bool ok = res_record_begin(&r, c->db, &run, e);
	for (size_t i = 0; ok && i < f->n; i++) {
		const struct point *p = &f->v[i];
		ok = qwen_quality_store(&r, name, p->as.name, p->bytes, &p->q,
					e) &&
		     store_times(&r, f, p, e);
	}
	return res_record_end(&r, ok, e);
}

/* ---- the command ---- */

static bool options_check(struct frontier *f, struct err *e)
{
	struct qwen_cmd *c = f->c;

	if (c->to)
		return err_set(e, ERR_USAGE, "--frontier with --to %s; it is "
			       "of all formats", c->to);
	if (c->cmd.argc != 1)
		return err_set(e, ERR_USAGE, "--frontier wants one model, and "
			       "writes none");
	if (c->samples < 6 || c->samples > MOST_SAMPLES)
		return err_set(e, ERR_USAGE, "--samples %llu; wanted 6 to %d",
			       (unsigned long long)c->samples, MOST_SAMPLES);
	if (!c->db)
		c->db = getenv("T0_DB");
	return res_shard_parse(c->shard, &f->shard, e);
}

bool qwen_frontier(struct qwen_cmd *c, struct err *e)
{
	struct frontier f = { .c = c };
	struct buf folder = { 0 };

	if (!options_check(&f, e))
		return false;
	c->model = c->cmd.argv[0];
	if (!qwen_session_open(&f.a, c, QWEN_WORDS_IF_THERE, e))
		return false;
	bool ok = scratch_folder(&folder, NULL, "frontier", e);
	snprintf(f.scratch, sizeof(f.scratch), "%s/model.gguf", folder.data);
	ok = ok && qwen_quality_text(c, &f.a, &f.ids, e) &&
		  cost_open(&f.costs, "gfx1100", NULL, false, COST_HARDWARE,
			    NULL, e) &&
		  look_at_all(&f, e);
	if (ok) {
		find_best(&f);
		ok = store_all(&f, e) && print_all(&f, e);
	}
	if (ok)
		cmd_remark(&c->cmd, "gfx1100_simulated: tokens per second "
			   "behind %d others; what a gfx1100 has no kernels "
			   "for is n/a", BEHIND - 1);
	cost_fini(&f.costs);
	rmdir(folder.data);
	buf_fini(&folder);
	free(f.v);
	qwen_ids_fini(&f.ids);
	qwen_session_close(&f.a);
	return ok;
}
