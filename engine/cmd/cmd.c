/*
 * engine/cmd/cmd.c - models, prompts and states of a command line.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cmd/cmd.h"
#include "engine/cpu/cpu.h"
#include "engine/gpu/card/card.h"
#include "kfd/kfd.h"

static void warn_loading(void *bar, const char *text)
{
	progress_warn(bar, "t0-qwen3", "%s", text);
}

static void remark_loading(void *bar, const char *text)
{
	progress_remark(bar, "t0-qwen3", "%s", text);
}

/* Bytes are for integer weights: others would stay as they are, unsaid. */
static bool activations_check(const struct qwen_model *m, struct err *e)
{
	const struct qwen_layer *l = &m->layer[0];
	const struct qwen_matrix *all[] = { &l->q, &l->k, &l->v, &l->o,
					    &l->gate, &l->up, &l->down };

	if (m->activations != QWEN_AS_INT8)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (qwen_is_integer(all[i]->type))
			return true;
	return err_set(e, ERR_USAGE, "--activations int8 with weights of %s; "
		       "it is for integers, as --weights int8 makes them",
		       qwen_weights_name(l->q.type));
}

bool qwen_cmd_devices(const struct qwen_cmd *c, bool processor, struct err *e)
{
	if (!c->devices || c->devices > GPU_CARDS_MAX)
		return err_set(e, ERR_USAGE, "--devices %llu; wanted 1 to %d",
			       (unsigned long long)c->devices, GPU_CARDS_MAX);
	return c->devices == 1 || !processor ||
	       err_set(e, ERR_USAGE, "--devices %llu without --backend gpu: "
		       "the processor is one", (unsigned long long)c->devices);
}

bool qwen_cmd_batches(const struct qwen_cmd *c, struct err *e)
{
	enum { MOST = 1 << 16 };

	if (!c->accumulate || c->accumulate > MOST)
		return err_set(e, ERR_USAGE, "--accumulate %llu: wanted 1 to "
			       "%d", (unsigned long long)c->accumulate, MOST);
	return c->accumulate % c->devices == 0 ||
	       err_set(e, ERR_USAGE, "--accumulate %llu with --devices %llu; "
		       "wanted a multiple: each device takes as many batches "
		       "of a step", (unsigned long long)c->accumulate,
		       (unsigned long long)c->devices);
}

bool qwen_session_open(struct qwen_session *s, const struct qwen_cmd *c,
		       enum qwen_words words, struct err *e)
{
	struct qwen_load how = { .convert = c->weights != NULL,
				 .copy = c->copy, .headless = c->headless };
	char spec[256];

	*s = (struct qwen_session){ 0 };
	if (!c->model)
		return err_set(e, ERR_USAGE, "--model names no folder; "
			       "scripts/make-model writes one");
	how.backend = qwen_backend_find(c->backend, e);
	how.device = kfd_spec_asked(c->device, spec);
	how.devices = (uint32_t)c->devices;
	if (!qwen_cmd_devices(c, how.backend == &qwen_cpu, e))
		return false;
	if (how.backend == &qwen_cpu && c->device)
		return err_set(e, ERR_USAGE, "--device %s without --backend "
			       "gpu: the processor would run the model",
			       c->device);
	if (how.backend != &qwen_cpu && c->activations)
		return err_set(e, ERR_USAGE, "--activations %s with --backend "
			       "gpu: it is for the processor", c->activations);
	if (!how.backend ||
	    (c->activations &&
	     !qwen_activations_parse(c->activations, &how.activations, e)) ||
	    (c->weights && !qwen_weights_parse(c->weights, &how.weights, e)) ||
	    (c->checksum &&
	     !qwen_checksum_parse(c->checksum, &how.checksum, e)))
		return false;
	s->threads = threads_new((unsigned)c->threads, e);
	if (!s->threads)
		return false;
	progress_init(&s->bar, "loading layers", 0, c->cmd.quiet);
	how.progress = &s->bar;
	how.warn = c->cmd.quiet ? NULL : warn_loading;
	how.remark = c->cmd.quiet ? NULL : remark_loading;
	how.mapped = c->mapped && !c->copy;
	how.ctx = &s->bar;
	s->loaded = qwen_model_load(&s->model, c->model, &how, s->threads, e);
	progress_fini(&s->bar);
	if (s->loaded && !activations_check(&s->model, e)) {
		qwen_session_close(s);
		return false;
	}
	if (words == QWEN_WORDS_IF_THERE)
		words = qwen_tokenizer_there(c->model) ? QWEN_WORDS :
							 QWEN_WORDS_NO;
	if (s->loaded && words == QWEN_WORDS)
		s->tok = qwen_tokenizer_load(c->model, e);
	if (s->loaded && (s->tok || words == QWEN_WORDS_NO))
		return true;
	qwen_session_close(s);
	return false;
}

void qwen_session_close(struct qwen_session *s)
{
	qwen_tokenizer_free(s->tok);
	if (s->loaded)
		qwen_model_close(&s->model);
	threads_free(s->threads);
	*s = (struct qwen_session){ 0 };
}

/* ---- the prompt ---- */

static bool ids_parse(const char *s, struct qwen_ids *ids, uint32_t vocab,
		      struct err *e)
{
	for (const char *at = s; *at;) {
		char *end;
		errno = 0;
		unsigned long long v = strtoull(at, &end, 10);
		if (!isdigit((unsigned char)*at) || (*end && *end != ',') ||
		    errno || v >= vocab)
			return err_set(e, ERR_USAGE, "--ids, at \"%.20s\": "
				       "wanted tokens from 0 to %u with "
				       "commas between", at, vocab - 1);
		qwen_ids_add(ids, (uint32_t)v);
		at = end + (*end == ',');
	}
	return ids->n || err_set(e, ERR_USAGE, "--ids has no token");
}

/* One source, and no option that it would leave without effect. */
static bool prompt_check(const struct qwen_cmd *c, struct err *e)
{
	int n = !!c->prompt + !!c->prompt_file + !!c->messages + !!c->ids;

	if (n != 1)
		return err_set(e, ERR_USAGE, "got %d prompts; wanted one of "
			       "--prompt, --prompt-file, --messages or --ids",
			       n);
	if (c->plain && (c->chat || c->messages))
		return err_set(e, ERR_USAGE, "--plain makes text of the marks "
			       "between turns, too; wanted it without --chat "
			       "and --messages");
	if (c->tools && !c->messages)
		return err_set(e, ERR_USAGE, "--tools without --messages");
	if (c->system && (!c->chat || c->messages))
		return err_set(e, ERR_USAGE, "--system without --chat; in "
			       "--messages it is a message");
	return !c->chat || !c->ids ||
	       err_set(e, ERR_USAGE, "--chat with --ids: wanted a text");
}

static bool text_read(const struct qwen_cmd *c, struct buf *out, struct err *e)
{
	if (c->prompt)
		buf_adds(out, c->prompt);
	else if (!file_read(c->prompt_file ? c->prompt_file : c->messages, 0,
			    out, e))
		return false;
	buf_adds(out, "");
	return true;
}

/* The text as the model is to see it: a conversation, or as it is. */
static bool text_wrap(const struct qwen_cmd *c, struct buf *text, struct err *e)
{
	unsigned flags = QWEN_CHAT_PROMPT | (c->no_think ? QWEN_CHAT_NO_THINK :
							   0);
	struct buf out = { 0 }, tools = { 0 };
	bool ok = true;

	if (!c->chat && !c->messages)
		return true;
	if (text->data && strlen(text->data) != text->len)
		return err_set(e, ERR_INPUT, "the text of a turn has a zero "
			       "byte, at %zu", strlen(text->data));
	if (c->messages) {
		ok = !c->tools || file_read(c->tools, 0, &tools, e);
		buf_adds(&tools, "");
		ok = ok && qwen_chat(text->data ? text->data : "",
				     c->tools ? tools.data : NULL, flags, &out,
				     e);
	} else {
		qwen_chat_one(c->system, text->data ? text->data : "", flags,
			      &out);
	}
	buf_fini(text);
	buf_fini(&tools);
	*text = out;
	return ok;
}

bool qwen_cmd_prompt(const struct qwen_cmd *c, const struct qwen_session *s,
		     struct qwen_ids *ids, struct err *e)
{
	struct buf text = { 0 };
	bool ok = false;

	if (!prompt_check(c, e))
		return false;
	if (c->ids)
		return ids_parse(c->ids, ids, s->model.config.vocab, e);
	if (!s->tok)
		return err_set(e, ERR_INPUT, "%s: has no tokenizer; give the "
			       "prompt as --ids", c->model);
	struct qwen_encoder *x = qwen_encoder_new(s->tok);
	qwen_encoder_stop(x, c->stop);
	if (text_read(c, &text, e) && text_wrap(c, &text, e))
		ok = qwen_encode(x, text.data, text.len,
				 c->plain ? QWEN_PLAIN : 0, ids, e);
	for (size_t i = 0; ok && i < ids->n; i++)
		if (ids->v[i] >= s->model.config.vocab)
			ok = err_set(e, ERR_INPUT, "the tokenizer gives token "
				     "%u, but the model has %u", ids->v[i],
				     s->model.config.vocab);
	if (ok && !ids->n)
		ok = err_set(e, ERR_USAGE, "the prompt is empty");
	qwen_encoder_free(x);
	buf_fini(&text);
	return ok;
}

struct qwen_sampling qwen_cmd_sampling(const struct qwen_cmd *c,
				       const struct qwen_config *m)
{
	struct qwen_sampling s = {
		.temperature = isnan(c->temperature) ?
			(m->sample ? m->temperature : 0) : c->temperature,
		.top_k = c->top_k == UINT64_MAX ? m->top_k :
			 c->top_k > UINT32_MAX ? 0 : (uint32_t)c->top_k,
		.top_p = isnan(c->top_p) ? m->top_p : c->top_p,
		.min_p = isnan(c->min_p) ? m->min_p : c->min_p,
		.repetition_penalty = isnan(c->penalty) ?
			m->repetition_penalty : c->penalty,
		.seed = c->seed,
	};

	if (c->greedy)
		s.temperature = 0;
	return s;
}

/* ---- running ---- */

bool qwen_cmd_state(const struct qwen_cmd *c, const struct qwen_session *s,
		    uint32_t sequences, uint32_t positions,
		    struct qwen_state **out, struct err *e)
{
	struct qwen_shape shape = { sequences, positions, (uint32_t)c->chunk,
				    qwen_both(QWEN_W_F16), c->stop, 0 };

	if (shape.max_tokens < sequences)
		shape.max_tokens = sequences;
	if (shape.max_tokens < s->model.backend->few) /* speculation's passes */
		shape.max_tokens = s->model.backend->few;
	if (c->cache && !qwen_kinds_parse(c->cache, &shape.cache, e))
		return false;
	if (!c->chunk || c->chunk > 1 << 20)
		return err_set(e, ERR_USAGE, "--chunk %llu: wanted 1 to %d",
			       (unsigned long long)c->chunk, 1 << 20);
	*out = qwen_state_new(&s->model, &shape, e);
	return *out != NULL;
}

bool qwen_feed(const struct qwen_cmd *c, struct qwen_state *st,
	       const uint32_t *ids, size_t n,
	       bool (*each)(void *ctx, size_t i, const float *logits,
			    struct err *e),
	       void *ctx, struct err *e)
{
	struct qwen_token *t = xcalloc(c->chunk, sizeof(*t));
	/* Logits of many tokens are large: a vocabulary of f32 each. */
	size_t step = each && c->chunk > 128 ? 128 : c->chunk;
	bool ok = true;

	for (size_t at = 0; ok && at < n; at += step) {
		uint32_t some = (uint32_t)(n - at < step ? n - at : step);
		for (uint32_t i = 0; i < some; i++)
			t[i] = (struct qwen_token){
				.id = ids[at + i],
				.logits = each || at + i + 1 == n };
		ok = qwen_forward(st, t, some, e) ||
		     err_wrap(e, "after %zu of %zu tokens", at, n);
		for (uint32_t i = 0; ok && each && i < some; i++)
			ok = each(ctx, at + i, qwen_logits(st, i), e);
	}
	free(t);
	return ok;
}

const char *qwen_cmd_activations(const struct qwen_model *m, bool wide)
{
	return m->backend != &qwen_cpu ?
		       "the device's" :
		       qwen_activations_name(cpu_activations(
			       m, m->layer[0].q.type, wide));
}

bool qwen_options_check(const struct qwen_option *v, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].got < v[i].least || v[i].got > v[i].most)
			return err_set(e, ERR_USAGE,
				       "--%s %" PRIu64 "; wanted %" PRIu64
				       " to %" PRIu64, v[i].name, v[i].got,
				       v[i].least, v[i].most);
	return true;
}

const char *qwen_cmd_name(const char *path)
{
	const char *end = strrchr(path, '/');

	return end && end[1] ? end + 1 : path;
}
