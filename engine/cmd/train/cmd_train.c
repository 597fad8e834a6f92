/*
 * engine/cmd/train/cmd_train.c - t0-qwen3 train: what is learnt, by which model
 * and how.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/panel/panel.h"
#include "engine/cmd/train/cmd_train.h"
#include "kfd/kfd.h"

/* ---- the tokenizer ---- */

#define LEARNT_BYTES ((size_t)8 << 20) /* of text for a tokenizer, at most */

static bool has_file(const struct qwen_school *s, const char *name)
{
	char *path = qwen_school_path(s, name);
	bool there = access(path, F_OK) == 0;

	free(path);
	return there;
}

static bool learn_tokenizer(const struct qwen_school *s, struct err *e)
{
	const struct cli_list *data = &s->c->data;
	struct buf text = { 0 }, out = { 0 };
	char *path = qwen_school_path(s, "tokenizer.json");
	bool ok = true;

	for (int i = 0; ok && i < data->n; i++)
		ok = corpus_text(data->v[i], LEARNT_BYTES, &text, e);
	ok = ok &&
	     qwen_bpe_train(text.data ? text.data : "", text.len,
			    s->c->vocab > UINT32_MAX ? UINT32_MAX :
						       (uint32_t)s->c->vocab,
			    &out, e) &&
	     file_write_atomic(path, out.data, out.len, e);
	buf_fini(&text);
	buf_fini(&out);
	free(path);
	return ok;
}

/* A folder that goes on has its tokenizer. */
static bool tokenizer_open(struct qwen_school *s, struct err *e)
{
	const char *from = s->c->tokenizer ? s->c->tokenizer : s->c->model;

	if (!has_file(s, "checkpoint") &&
	    !(from ? qwen_tokenizer_copy(from, s->into, e) :
		     learn_tokenizer(s, e)))
		return false;
	s->tok = qwen_tokenizer_load(s->into, e);
	return s->tok != NULL;
}

/* ---- the model ---- */

/* A size of the command line, or 0 for what does not fit. */
static uint32_t size_of(uint64_t n)
{
	return n > 1 << 24 ? 0 : (uint32_t)n;
}

/* --engram ROWS[:LAYER] */
static bool parse_engram(const char *text, uint32_t layers,
			 struct qwen_engram *out, struct err *e)
{
	unsigned long long rows = 0, layer = 1;
	char *end = NULL;

	*out = (struct qwen_engram){ 0 };
	if (!text)
		return true;
	rows = strtoull(text, &end, 10);
	if (*end == ':')
		layer = strtoull(end + 1, &end, 10);
	if (*end || !rows || rows > QWEN_ENGRAM_ROWS || !layer ||
	    layer >= layers)
		return err_set(e, ERR_USAGE,
			       "--engram %s of %u layers: wanted 1 to %d rows, "
			       "and behind a colon a layer from 1 to %u",
			       text, layers, QWEN_ENGRAM_ROWS, layers - 1);
	out->rows = (uint32_t)rows;
	out->layer = (uint32_t)layer;
	return true;
}

static bool config_new(struct qwen_school *s, struct err *e)
{
	const struct qwen_cmd *c = s->c;
	uint64_t dim = c->head_dim ? c->head_dim :
		       c->heads	   ? c->hidden / c->heads :
				     0;

	s->config = (struct qwen_config){
		.layers = size_of(c->layers),
		.hidden = size_of(c->hidden),
		.heads = size_of(c->heads),
		.kv_heads = size_of(c->kv_heads),
		.head_dim = size_of(dim),
		.ffn = size_of(c->ffn ? c->ffn : 3 * c->hidden),
		.vocab = qwen_tokenizer_size(s->tok),
		.tied = !c->untied,
		.max_positions = size_of(c->length),
		.rope_theta = 1e4,
		.norm_eps = 1e-6,
		.sample = true,
		.temperature = 0.6,
		.top_k = 20,
		.top_p = 0.95,
		.repetition_penalty = 1,
	};
	const struct qwen_config *m = &s->config;
	if (!m->layers || !m->hidden || !m->heads || !m->kv_heads ||
	    !m->head_dim || !m->ffn || !m->max_positions)
		return err_set(e, ERR_USAGE,
			       "a model of %llu layers, hidden "
			       "%llu, %llu heads and rows of %llu; wanted "
			       "1 to %d of each",
			       (unsigned long long)c->layers,
			       (unsigned long long)c->hidden,
			       (unsigned long long)c->heads,
			       (unsigned long long)c->length, 1 << 24);
	if (m->heads % m->kv_heads || m->head_dim % 2 || m->layers > 1024 ||
	    m->head_dim > 1024)
		return err_set(e, ERR_USAGE,
			       "%u heads of %u with %u of keys "
			       "in %u layers; wanted a multiple of --kv-heads, "
			       "an even --head-dim up to 1024, and up to 1024 "
			       "layers",
			       m->heads, m->head_dim, m->kv_heads, m->layers);
	return parse_engram(c->engram, m->layers, &s->config.engram, e);
}

bool qwen_school_config(struct qwen_school *s, struct err *e)
{
	if (s->c->model && s->c->engram)
		return err_set(e, ERR_USAGE,
			       "--engram with --model: the tables are a new "
			       "model's, and that of a folder has its own");
	if (!(s->c->model ? qwen_config_load(&s->config, s->c->model, e) :
			    config_new(s, e)))
		return false;
	int64_t stop = qwen_token_find(s->tok, "<|im_end|>");
	int64_t end = qwen_token_find(s->tok, "<|endoftext|>");
	end = end < 0 ? stop : end;
	if (end < 0 || end >= s->config.vocab)
		return err_set(e, ERR_INPUT,
			       "%s: the tokenizer has no "
			       "<|endoftext|> to end documents with",
			       s->into);
	s->data.end = s->valid.end = (uint32_t)end;
	s->data.stop = s->valid.stop = s->c->stop;
	if (!s->c->model) {
		s->config.stop[s->config.n_stops++] = (uint32_t)end;
		if (stop >= 0 && stop != end)
			s->config.stop[s->config.n_stops++] = (uint32_t)stop;
	}
	return true;
}

/* ---- how ---- */

static bool parse_recompute(const char *name, unsigned *out, struct err *e)
{
	static const char *const what[] = { "none", "attention", "ffn", "all" };

	for (unsigned i = 0; i < ARRAY_SIZE(what); i++)
		if (strcmp(name, what[i]) == 0) {
			*out = i;
			return true;
		}
	return err_set(e, ERR_USAGE,
		       "--recompute %s: wanted none, ffn, "
		       "attention or all",
		       name);
}

/* Bits of train_target_name. */
static bool parse_targets(const char *list, unsigned *out, struct err *e)
{
	*out = strcmp(list, "all") == 0 ? (1u << TRAIN_TARGETS) - 1 : 0;
	for (const char *at = list; !*out || *at;) {
		size_t n = strcspn(at, ",");
		unsigned k = 0;

		if (strcmp(at, "all") == 0)
			break;
		while (k < TRAIN_TARGETS &&
		       (strlen(train_target_name[k]) != n ||
			strncmp(train_target_name[k], at, n) != 0))
			k++;
		if (k == TRAIN_TARGETS)
			return err_set(e, ERR_USAGE,
				       "--lora-targets, at "
				       "\"%s\": wanted all, or of q_proj, "
				       "k_proj, v_proj, o_proj, gate_proj, "
				       "up_proj and down_proj some with commas "
				       "between",
				       at);
		*out |= 1u << k;
		at += n + (at[n] == ',');
	}
	return true;
}

/* A number of steps, or the default share of all of them. */
static uint64_t steps_of(uint64_t given, uint64_t all, uint64_t share)
{
	uint64_t some = all / share;

	return given != UINT64_MAX ? given : some ? some : 1;
}

bool qwen_cmd_how(const struct qwen_cmd *c, struct train_how *how,
		  struct err *e)
{
	*how = (struct train_how){
		.rows = size_of(c->rows),
		.length = size_of(c->length),
		.masters = !c->no_masters,
		.average = c->average > 0,
		.rank = size_of(c->lora),
		.again_layers = UINT32_MAX,
	};
	return qwen_weights_parse(c->precision, &how->type, e) &&
	       parse_targets(c->lora_targets, &how->targets, e) &&
	       parse_recompute(c->recompute, &how->again, e) &&
	       train_method_parse(c->optimizer, &how->method, e);
}

bool qwen_school_folder(const struct qwen_school *s, struct err *e)
{
	struct stat a, b;

	if (!file_make_folders(s->into, e))
		return false;
	if (s->c->model && stat(s->c->model, &a) == 0 &&
	    stat(s->into, &b) == 0 && a.st_dev == b.st_dev &&
	    a.st_ino == b.st_ino)
		return err_set(e, ERR_USAGE,
			       "%s and %s are the same folder; wanted another "
			       "one to write",
			       s->c->model, s->into);
	char *path = qwen_school_path(s, ".");
	bool ok = access(path, W_OK | X_OK) == 0 ||
		  err_sys(e, ERR_PERM, errno, "%s: cannot be written into",
			  s->into);
	free(path);
	return ok;
}

bool qwen_school_how(struct qwen_school *s, struct err *e)
{
	struct qwen_cmd *c = s->c;
	struct train_rule *r = &s->rule;

	train_rule_init(r);
	if (!qwen_cmd_how(c, &s->how, e) ||
	    !train_schedule_parse(c->schedule, &r->schedule, e))
		return false;
	if (!c->steps)
		return err_set(e, ERR_USAGE, "--steps 0: wanted at least 1");
	if (!qwen_cmd_devices(c, false, e) || !qwen_cmd_batches(c, e))
		return false;
	if (c->lora && !c->model)
		return err_set(e, ERR_USAGE,
			       "--lora without --model: adapters "
			       "belong to weights that have learnt");
	r->method = s->how.method;
	r->steps = c->steps;
	r->warmup = steps_of(c->warmup, c->steps, 50);
	r->cooldown = r->schedule != TRAIN_RATE_WSD ?
			      0 :
			      steps_of(c->cooldown, c->steps, 5);
	c->eval_every = steps_of(c->eval_every, c->steps, 10);
	c->save_every = steps_of(c->save_every, c->steps, 10);
	r->rate = c->rate;
	r->least = c->rate_end;
	r->beta1 = c->beta1;
	r->beta2 = c->beta2;
	r->momentum = c->momentum;
	r->decay = c->decay;
	r->clip = c->clip;
	r->average = c->average;
	r->seed = c->seed;
	return train_rule_check(r, e);
}

/* ---- the text ---- */

static bool read_all(const struct qwen_school *s, const struct cli_list *list,
		     struct corpus *into, struct err *e)
{
	for (int i = 0; i < list->n; i++)
		if (!corpus_add(into, list->v[i], s->tok, s->config.vocab, e))
			return false;
	return true;
}

bool qwen_school_corpus(struct qwen_school *s, struct err *e)
{
	const struct qwen_cmd *c = s->c;
	bool own = c->valid.n > 0;

	if (!(c->valid_share >= 0 && c->valid_share < 1))
		return err_set(e, ERR_USAGE,
			       "--valid-share %g: wanted 0 to "
			       "less than 1",
			       c->valid_share);
	if (!read_all(s, &c->data, &s->data, e) ||
	    !read_all(s, &c->valid, &s->valid, e))
		return false;
	size_t held = own ? 0 : (size_t)((double)s->data.n * c->valid_share);
	size_t cut = s->data.n - held;
	if (!corpus_rows_init(&s->rows, &s->data, 0, cut, s->how.length, true,
			      c->seed, e))
		return false;
	if (own)
		return corpus_rows_init(&s->held, &s->valid, 0, s->valid.n,
					s->how.length, false, 0, e);
	if (held < 2) {
		s->held = (struct corpus_rows){ 0 };
		return true;
	}
	return corpus_rows_init(&s->held, &s->data, cut, s->data.n,
				s->how.length, false, 0, e);
}

/* ---- the run ---- */

/* All that must be the same for a run to go on. */
static void describe_run(struct qwen_school *s)
{
	const struct qwen_config *m = &s->config;
	const struct train_rule *r = &s->rule;

	buf_printf(&s->about,
		   "layers %u\nhidden %u\nheads %u\nkv-heads %u\nhead-dim "
		   "%u\nffn %u\nvocab %u\nuntied %d\n",
		   m->layers, m->hidden, m->heads, m->kv_heads, m->head_dim,
		   m->ffn, m->vocab, !m->tied);
	buf_printf(&s->about,
		   "length %u\nrows %u\naccumulate %llu\nsteps "
		   "%llu\nprecision %s\nmasters %d\n",
		   s->how.length, s->how.rows,
		   (unsigned long long)s->c->accumulate,
		   (unsigned long long)r->steps, qwen_weights_name(s->how.type),
		   s->how.masters);
	buf_printf(&s->about, "lora %u\nlora-targets %u\n", s->how.rank,
		   s->how.rank ? s->how.targets : 0);
	if (m->engram.rows)
		buf_printf(&s->about, "engram %u:%u\n", m->engram.rows,
			   m->engram.layer);
	if (s->c->backend && strcmp(s->c->backend, "cpu") != 0)
		buf_printf(&s->about, "backend %s\n", s->c->backend);
	if (s->c->devices > 1)
		buf_printf(&s->about, "devices %llu\n",
			   (unsigned long long)s->c->devices);
	buf_printf(&s->about,
		   "optimizer %s\nschedule %s\nrate %.17g\n"
		   "rate-end %.17g\nwarmup %llu\ncooldown %llu\ndecay %.17g\n"
		   "clip %.17g\nbeta1 %.17g\nbeta2 %.17g\nmomentum %.17g\n"
		   "average %.17g\n",
		   train_method_name(r->method),
		   train_schedule_name(r->schedule), r->rate, r->least,
		   (unsigned long long)r->warmup,
		   (unsigned long long)r->cooldown, r->decay, r->clip, r->beta1,
		   r->beta2, r->momentum, r->average);
	buf_printf(&s->about,
		   "seed %llu\neval-every %llu\ndata %016llx\n"
		   "valid %016llx\nlearnt-tokens %zu\n",
		   (unsigned long long)r->seed,
		   (unsigned long long)s->c->eval_every,
		   (unsigned long long)s->data.hash,
		   (unsigned long long)s->valid.hash,
		   s->rows.to - s->rows.from);
}

static bool begin_weights(struct qwen_school *s, struct err *e)
{
	char *path = qwen_school_path(s, "checkpoint");
	bool ok = true;

	s->place = (struct train_place){
		.best = INFINITY,
		.loss_scale = s->g.type == QWEN_W_F16 ? TRAIN_LOSS_SCALE : 1,
	};
	/* What adapters belong to is not in checkpoints. */
	if (s->c->model && (s->how.rank || !has_file(s, "checkpoint")))
		ok = train_read(s->x, s->c->model, e);
	if (ok && has_file(s, "checkpoint")) {
		ok = train_checkpoint_read(s->x, path, s->about.data, &s->place,
					   e) &&
		     qwen_log_read(s, e);
		if (ok)
			cmd_remark(&s->c->cmd, "goes on behind step %llu",
				   (unsigned long long)s->place.step);
	} else if (ok) {
		if (!s->c->model)
			train_random(s->x, s->c->seed);
		train_adapters_random(s->x, s->c->seed);
		train_average_begin(s->x);
	}
	train_loss_scale(s->x, (float)s->place.loss_scale);
	free(path);
	return ok;
}

static bool backend_open(struct qwen_school *s, struct err *e)
{
	const struct qwen_backend *b = qwen_backend_find(s->c->backend, e);
	char spec[256];
	const struct train_gpu_how how = {
		.device = kfd_spec_asked(s->c->device, spec),
		.devices = (uint32_t)s->c->devices,
	};

	s->backend = train_cpu;
	if (!b || !qwen_cmd_devices(s->c, b == &qwen_cpu, e))
		return false;
	if (b == &qwen_cpu)
		return !s->c->device ||
		       err_set(e, ERR_USAGE,
			       "--device %s without --backend "
			       "gpu: the processor would learn",
			       s->c->device);
	if (!train_gpu_open(&s->gpu, &how, e))
		return false;
	train_gpu_backend(s->gpu, &s->backend);
	return true;
}

/* What the processor can do, where it learns. */
static bool peak_measure(struct qwen_school *s, struct err *e)
{
	if (s->gpu)
		return true;
	s->peak =
		qwen_roofline_new(s->threads, qwen_kernels_best(), 1 << 20, e);
	if (!s->peak)
		return false;
	s->fma = qwen_roofline_fma(s->peak);
	return true;
}

static bool school_open(struct qwen_school *s, struct err *e)
{
	const double mib = 1 << 20;

	if (!s->c->data.n)
		return err_set(e, ERR_USAGE,
			       "--data names nothing to learn "
			       "from");
	if (!qwen_school_how(s, e) || !qwen_school_folder(s, e))
		return false;
	if (!s->c->resume && has_file(s, "checkpoint"))
		return err_set(e, ERR_USAGE,
			       "%s: there is a run already; "
			       "wanted --resume, or another folder",
			       s->into);
	if (!tokenizer_open(s, e) || !qwen_school_config(s, e) ||
	    !train_qwen3(&s->g, &s->config, &s->how, e) || !qwen_school_corpus(s, e))
		return false;
	describe_run(s);
	cmd_remark(&s->c->cmd,
		   "%.3f M parameters, %zu tokens to learn from "
		   "and %zu held out; memory: %.1f MiB for weights, gradients "
		   "and the optimizer, %.1f MiB of activations at the peak",
		   (double)qwen_config_params(&s->config) * 1e-6,
		   s->rows.to - s->rows.from, s->held.to - s->held.from,
		   (double)s->g.kept / mib, (double)s->g.passing / mib);
	s->threads = threads_new((unsigned)s->c->threads, e);
	if (!s->threads || !backend_open(s, e) ||
	    !(s->x = train_new(&s->g, s->threads, &s->backend, e)))
		return false;
	size_t n = (size_t)s->c->accumulate * s->how.rows * s->how.length;
	s->ids = xcalloc(n, sizeof(*s->ids));
	s->positions = xcalloc(n, sizeof(*s->positions));
	s->targets = xcalloc(n, sizeof(*s->targets));
	return peak_measure(s, e) && begin_weights(s, e);
}

void qwen_school_close(struct qwen_school *s)
{
	qwen_roofline_free(s->peak);
	train_free(s->x);
	train_gpu_close(s->gpu);
	train_graph_fini(&s->g);
	corpus_rows_fini(&s->rows);
	corpus_rows_fini(&s->held);
	corpus_fini(&s->data);
	corpus_fini(&s->valid);
	qwen_tokenizer_free(s->tok);
	threads_free(s->threads);
	buf_fini(&s->about);
	vec_fini(&s->log);
	free(s->ids);
	free(s->positions);
	free(s->targets);
}

static bool print_result(const struct qwen_school *s, struct err *e)
{
	/* A run that goes on behind its end may have lost its log. */
	const struct qwen_lesson none = { .loss = NAN,
					  .valid = NAN,
					  .bits_per_byte = NAN };
	const struct qwen_lesson *l = s->log.n ? &s->log.v[s->log.n - 1] :
						 &none;
	double seconds = (double)(time_mono_ns() - s->begin_ns) * 1e-9;
	struct table t;

	table_init(&t, "#steps,#tokens,#loss,#valid_loss,#bits_per_byte,"
		       "#best_step,#best_valid_loss,#tokens_per_s");
	table_row(&t);
	table_cell(&t, 0, "%llu", (unsigned long long)s->place.step);
	table_cell(&t, 1, "%llu", (unsigned long long)s->place.tokens);
	if (!isnan(l->loss))
		table_cell(&t, 2, "%.6f", l->loss);
	if (!isnan(l->valid))
		table_cell(&t, 3, "%.6f", l->valid);
	if (!isnan(l->bits_per_byte))
		table_cell(&t, 4, "%.6f", l->bits_per_byte);
	table_cell(&t, 5, "%llu", (unsigned long long)s->place.best_step);
	if (isfinite(s->place.best))
		table_cell(&t, 6, "%.6f", s->place.best);
	if (s->place.tokens > s->begin_tokens)
		table_cell(&t, 7, "%.1f",
			   (double)(s->place.tokens - s->begin_tokens) /
				   seconds);
	bool ok = cmd_table(&s->c->cmd, &t, e);
	table_fini(&t);
	return ok;
}

bool qwen_school_teach(struct qwen_cmd *c, const char *into,
		       bool (*print)(const struct qwen_school *s,
				     struct err *e),
		       struct err *e)
{
	struct qwen_school s = { .c = c, .into = into };
	bool ok = school_open(&s, e);

	if (ok && c->tui)
		s.panel = panel_open("t0-qwen3 train", into);
	ok = ok && qwen_school_run(&s, e);
	panel_close(s.panel);
	ok = ok && qwen_log_store(&s, e) && (!print || print(&s, e));

	qwen_school_close(&s);
	return ok;
}

bool qwen_cmd_train(struct cmd *r, struct err *e)
{
	struct qwen_cmd *c = (struct qwen_cmd *)r;
	const char *into = r->argv[0];

	if (c->shard && !c->sweep)
		return err_set(e, ERR_USAGE,
			       "--shard %s without --sweep: one "
			       "run has no parts",
			       c->shard);
	if (c->medusa || c->eagle)
		return qwen_heads_teach(c, into, e);
	return c->sweep ? qwen_sweep_run(c, into, e) :
			  qwen_school_teach(c, into, print_result, e);
}
