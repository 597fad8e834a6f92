/*
 * engine/cmd/cmd_bench_sample.c - samples of t0-qwen3 bench.
 *
 * Seconds of a prompt, or of greedy steps, in this
 * process or in one of their own.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/cmd/cmd_bench.h"

/* Of a sample, if need be of many rounds. */
#define LEAST_SECONDS 0.05

/* Tokens until a sequence is `depth` positions long, where noise cannot be. */
static bool feed_depth(struct qwen_bench *b, uint32_t sequence, uint32_t depth,
		       struct err *e)
{
	const uint32_t chunk = (uint32_t)b->c->chunk;
	struct qwen_token *t = xcalloc(chunk, sizeof(*t));
	bool ok = true;

	for (uint32_t at; ok && (at = qwen_state_length(b->st, sequence)) <
				depth;) {
		uint32_t n = depth - at < chunk ? depth - at : chunk;
		for (uint32_t i = 0; i < n; i++)
			t[i] = (struct qwen_token){
				.id = b->prompt.v[(at + i) % b->prompt.n],
				.sequence = sequence };
		ok = qwen_forward(b->st, t, n, e);
	}
	free(t);
	return ok;
}

/* The case's sequences have its depth, all others nothing. */
static bool fill_cache(struct qwen_bench *b, const struct qwen_case *k,
		       struct err *e)
{
	for (uint32_t i = 0; i < b->widest; i++) {
		uint32_t depth = i < k->width || i == 0 ? k->depth : 0;
		if (!qwen_state_fill(b->st, i, depth) &&
		    !feed_depth(b, i, depth, e))
			return false;
	}
	return true;
}

/* The first tokens of the prompt. */
static bool prefill_once(struct qwen_bench *b, const struct qwen_case *k,
			 double *seconds, struct err *e)
{
	if (!fill_cache(b, k, e))
		return false;
	uint64_t from = time_mono_ns();
	if (!qwen_feed(b->c, b->st, b->prompt.v, k->tokens, NULL, NULL, e))
		return false;
	*seconds = (double)(time_mono_ns() - from) * 1e-9;
	return true;
}

/* Greedy steps of `width` sequences behind a token. */
static bool decode_once(struct qwen_bench *b, const struct qwen_case *c,
			double *seconds, struct err *e)
{
	const uint32_t n = c->tokens, width = c->width;
	struct qwen_token *t = xcalloc(width, sizeof(*t));
	bool ok = fill_cache(b, c, e);

	b->said.n = 0;
	for (uint32_t i = 0; i < width; i++)
		t[i] = (struct qwen_token){ .id = b->prompt.v[i % b->prompt.n],
					    .sequence = i, .best = true };
	uint64_t from = 0;
	for (uint32_t i = 0; ok && i <= n; i++) {
		if (i == 1) /* the first step warms */
			from = time_mono_ns();
		ok = qwen_forward(b->st, t, width, e);
		for (uint32_t k = 0; ok && k < width; k++)
			t[k].id = qwen_argmax(b->st, k);
		if (ok)
			qwen_ids_add(&b->said, t[0].id);
	}
	*seconds = (double)(time_mono_ns() - from) * 1e-9;
	free(t);
	return ok;
}

static bool is_prefill(const struct qwen_case *k)
{
	return strcmp(k->phase, "prefill") == 0;
}

bool qwen_bench_once(struct qwen_bench *b, const struct qwen_case *k,
		     double *seconds, struct err *e)
{
	return is_prefill(k) ? prefill_once(b, k, seconds, e) :
			       decode_once(b, k, seconds, e);
}

/* A word of a shell's command line. */
static void add_quoted(struct buf *out, const char *s)
{
	buf_addc(out, ' ');
	buf_addc(out, '\'');
	for (; *s; s++)
		if (*s == '\'')
			buf_adds(out, "'\\''");
		else
			buf_addc(out, *s);
	buf_addc(out, '\'');
}

/* The prompt must be the parent's: it has as many tokens. */
static void child_command(const struct qwen_bench *b, const struct qwen_case *k,
			  struct buf *cmd)
{
	const struct qwen_cmd *c = b->c;
	const struct {
		const char *option, *value;
	} text[] = {
		{ "--model", c->model }, { "--backend", c->backend },
		{ "--device", c->device }, { "--weights", c->weights },
		{ "--cache", c->cache }, { "--activations", c->activations },
		{ "--prompt", c->prompt },
		{ "--prompt-file", c->prompt_file }, { "--ids", c->ids },
		{ "--messages", c->messages }, { "--tools", c->tools },
		{ "--system", c->system },
	};
	const struct {
		const char *option;
		bool on;
	} flag[] = {
		{ "copy", c->copy }, { "chat", c->chat },
		{ "plain", c->plain }, { "no-think", c->no_think },
	};

	buf_printf(cmd, "exec /proc/%d/exe bench -q --one %s --samples 1 "
		   "--threads %llu --chunk %llu --seed %llu --prefill %u "
		   "--decode %u --batch %u --depth %u", (int)getpid(), k->phase,
		   (unsigned long long)c->threads,
		   (unsigned long long)c->chunk, (unsigned long long)c->seed,
		   is_prefill(k) ? k->tokens : b->longest,
		   is_prefill(k) ? 1 : k->tokens, k->width, k->depth);
	if (c->devices > 1)
		buf_printf(cmd, " --devices %llu",
			   (unsigned long long)c->devices);
	for (size_t i = 0; i < ARRAY_SIZE(flag); i++)
		if (flag[i].on)
			buf_printf(cmd, " --%s", flag[i].option);
	for (size_t i = 0; i < ARRAY_SIZE(text); i++)
		if (text[i].value) {
			buf_printf(cmd, " %s", text[i].option);
			add_quoted(cmd, text[i].value);
		}
}

/* The child is this program with --one PHASE, whose last line is the time. */
static bool in_fresh_process(struct qwen_bench *b, const struct qwen_case *k,
			     double *seconds, struct err *e)
{
	struct buf cmd = { 0 };
	char out[64] = "";

	child_command(b, k, &cmd);
	FILE *f = popen(cmd.data, "r");
	bool read = f && fgets(out, sizeof(out), f);
	int status = f ? pclose(f) : -1;
	char *end;
	*seconds = strtod(out, &end);
	bool ok = read && status == 0 && end != out && *seconds > 0;
	if (!ok)
		err_set(e, ERR_IO, "a fresh process for %s of %u tokens ended "
			"with %d and \"%s\"; it was: %s", k->phase, k->tokens,
			status, out, cmd.data);
	buf_fini(&cmd);
	return ok;
}

bool qwen_bench_sample(struct qwen_bench *b, const struct qwen_case *k,
		       double *seconds, struct err *e)
{
	double sum = 0, one;
	unsigned n = 0;

	if (b->c->fresh)
		return in_fresh_process(b, k, seconds, e);
	for (; sum < LEAST_SECONDS; n++, sum += one)
		if (!qwen_bench_once(b, k, &one, e))
			return false;
	*seconds = sum / n;
	return true;
}
