/*
 * Memory stays flat however many tokens a model makes: two sequences, filled to
 * the end of their context, emptied and begun again, on each backend.
 *
 * 2,400 tokens on the host and 260 on the device in software; 100,000 and 5,000
 * with T0_SLOW=1.  Those before them fill caches and pools: on the device about
 * 600, for every length of a context has memory of its own to find again.  A
 * thread may still hold what it needed for the last group, and another one get its
 * first late; so more follow where memory grew, a few times.  A leak always grows.
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "engine/model/model.h"
#include "engine/text/text.h"
#include "tests/tap.h"

enum { POSITIONS = 96, PROMPT = 7, SLACK_BYTES = 512 << 10 };
enum { WARM_UP = 640, SPANS_MOST = 6 };

/* Resident bytes, and those of the heap; sanitizers keep what is freed. */
static bool used_bytes(long *resident, long *heap)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	*resident = *heap = 0;
	return false;
#else
	unsigned long size, pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");
	bool good = f && fscanf(f, "%lu %lu", &size, &pages) == 2;

	if (f)
		fclose(f);
	*resident = (long)pages * 4096;
	*heap = (long)mallinfo2().uordblks;
	return good;
#endif
}

struct writer {
	const struct qwen_model *m;
	struct qwen_state *s;
	struct qwen_sampler sampler;
	struct qwen_tokenizer *words;
	struct qwen_detokenizer text;
	uint32_t last[2]; /* token of each sequence */
	uint64_t bytes;	  /* of text */
};

/* A prompt for each sequence whose context is full, or empty. */
static bool begin_again(struct writer *w, struct err *e)
{
	for (uint32_t q = 0; q < 2; q++) {
		struct qwen_token t[PROMPT];

		if (qwen_state_length(w->s, q) &&
		    qwen_state_length(w->s, q) < POSITIONS)
			continue;
		qwen_state_truncate(w->s, q, 0);
		for (uint32_t i = 0; i < PROMPT; i++)
			t[i] = (struct qwen_token){ .id = 3 * i + q,
						    .sequence = q };
		if (!qwen_forward(w->s, t, PROMPT, e))
			return false;
		w->last[q] = 1 + q;
	}
	return true;
}

/* One token for each sequence: the first sampled, the second the likeliest. */
static bool write_two(struct writer *w, struct err *e)
{
	struct buf out = { 0 };
	struct qwen_token t[2] = {
		{ .id = w->last[0], .sequence = 0, .logits = true },
		{ .id = w->last[1], .sequence = 1, .best = true },
	};

	if (!begin_again(w, e))
		return false;
	t[0].id = w->last[0];
	t[1].id = w->last[1];
	if (!qwen_forward(w->s, t, 2, e) ||
	    !qwen_sample(&w->sampler, qwen_logits(w->s, 0), &w->last[0], e))
		return false;
	w->last[1] = qwen_argmax(w->s, 1);
	qwen_sampler_see(&w->sampler, w->last[0]);
	qwen_detokenize(&w->text, w->words, w->last[0], &out);
	w->bytes += out.len;
	buf_fini(&out);
	return true;
}

static bool write_span(struct writer *w, long tokens, struct err *e)
{
	for (long done = 0; done < tokens; done += 2)
		if (!write_two(w, e))
			return false;
	return true;
}

static void write_tokens(struct writer *w, const char *name, long tokens)
{
	long begin[2] = { 0 }, end[2] = { 0 };
	struct err e = { 0 };
	bool good = write_span(w, WARM_UP, &e), flat = false;
	bool seen = used_bytes(&begin[0], &begin[1]);

	for (int i = 0; good && !flat && i < SPANS_MOST; i++) {
		good = write_span(w, tokens, &e);
		used_bytes(&end[0], &end[1]);
		diag("%s: resident %ld KiB, %+ld after %ld tokens; heap %ld "
		     "KiB, %+ld", name, begin[0] >> 10,
		     (end[0] - begin[0]) / 1024, tokens, begin[1] >> 10,
		     (end[1] - begin[1]) / 1024);
		flat = end[0] - begin[0] < SLACK_BYTES &&
		       end[1] - begin[1] < SLACK_BYTES;
		memcpy(begin, end, sizeof(begin));
	}
	ok(good && w->bytes, "%s: tokens %s", name, good ? "are made" : e.msg);
	if (seen)
		ok(flat, "and memory stays as it was");
	else
		skip("a sanitizer keeps freed memory");
}

static void test_backend(const char *dir, const char *backend, long tokens)
{
	const struct qwen_shape shape = { .sequences = 2,
					  .positions = POSITIONS,
					  .max_tokens = PROMPT,
					  .cache = qwen_both(QWEN_W_F32) };
	const struct qwen_sampling how = { .temperature = 1, .top_p = 1,
					   .repetition_penalty = 1.1,
					   .seed = 5 };
	struct err e = { 0 };
	struct qwen_load load = { .backend = qwen_backend_find(backend, &e),
				  .device = "soft" };
	struct threads *threads = threads_new(2, &e);
	struct writer w = { 0 };
	struct qwen_model m;

	if (!load.backend || !threads ||
	    !qwen_model_load(&m, dir, &load, threads, &e)) {
		ok(false, "%s: %s", backend, e.msg);
		threads_free(threads);
		return;
	}
	w.m = &m;
	w.s = qwen_state_new(&m, &shape, &e);
	w.words = qwen_tokenizer_load(dir, &e);
	if (w.s && w.words &&
	    qwen_sampler_init(&w.sampler, &how, m.config.vocab, &e))
		write_tokens(&w, backend, tokens);
	else
		ok(false, "%s: %s", backend, e.msg);
	qwen_sampler_fini(&w.sampler);
	qwen_tokenizer_free(w.words);
	qwen_state_free(w.s);
	qwen_model_close(&m);
	threads_free(threads);
}

int main(void)
{
	struct qwen_synthetic how = { .weights = QWEN_W_BF16, .seed = 7,
				      .shards = 1 };
	bool slow = getenv("T0_SLOW");
	char dir[] = "/tmp/t0-flat-XXXXXX", command[64];
	struct err e = { 0 };

	/* Otherwise freed memory that the heap keeps grows and shrinks. */
	mallopt(M_ARENA_MAX, 1);
	if (!mkdtemp(dir) || !qwen_shape_find("tiny", &how.config, &e) ||
	    !qwen_synthetic_write(dir, &how, &e))
		BUG("%s: %s", dir, e.msg);
	test_backend(dir, "cpu", slow ? 100000 : 2400);
	test_backend(dir, "gpu", slow ? 5000 : 260);
	snprintf(command, sizeof(command), "rm -r '%s'", dir);
	ok(system(command) == 0, "all is cleaned up");
	return plan_done();
}
