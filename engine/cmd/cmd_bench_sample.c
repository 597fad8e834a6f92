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

static void empty_cache(struct qwen_bench *b)
{
	for (uint32_t i = 0; i < b->widest; i++)
		qwen_state_truncate(b->st, i, 0);
}

/* The first n tokens of the prompt. */
static bool prefill_once(struct qwen_bench *b, uint32_t n, double *seconds,
			 struct err *e)
{
	empty_cache(b);
	uint64_t from = time_mono_ns();
	if (!qwen_feed(b->c, b->st, b->prompt.v, n, NULL, NULL, e))
		return false;
	*seconds = (double)(time_mono_ns() - from) * 1e-9;
	return true;
}

/* n greedy steps of `width` sequences behind a short prompt. */
static bool decode_once(struct qwen_bench *b, uint32_t n, uint32_t width,
			double *seconds, struct err *e)
{
	struct qwen_token *t = xcalloc(width, sizeof(*t));
	bool ok = true;

	empty_cache(b);
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
	return is_prefill(k) ? prefill_once(b, k->tokens, seconds, e) :
			       decode_once(b, k->tokens, k->width, seconds, e);
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
		{ "--cache", c->cache }, { "--prompt", c->prompt },
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
		   "--decode %u --batch %u", (int)getpid(), k->phase,
		   (unsigned long long)c->threads,
		   (unsigned long long)c->chunk, (unsigned long long)c->seed,
		   is_prefill(k) ? k->tokens : b->longest,
		   is_prefill(k) ? 1 : k->tokens, k->width);
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
	return b->c->fresh ? in_fresh_process(b, k, seconds, e) :
			     qwen_bench_once(b, k, seconds, e);
}
