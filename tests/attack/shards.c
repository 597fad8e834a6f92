/*
 * Shards of tokens (.bin) from anywhere.  What is accepted is what the bytes
 * say, by a reading of its own, and can be cut into rows.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/corpus/corpus.h"
#include "tests/attack/driver/driver.h"

enum { VOCAB = 70000, END = 1, LENGTH = 7 };

static uint32_t number_at(const uint8_t *p, size_t bytes)
{
	uint32_t v = 0;

	while (bytes--)
		v = v << 8 | p[bytes];
	return v;
}

static void tokens_check(const struct corpus *c, const uint8_t *data,
			 size_t size)
{
	uint32_t mark = size >= 12 ? number_at(data, 4) : 0;
	size_t from = mark == 20240520 || mark == 20240801 ? 1024 : 0;
	size_t width = mark == 20240801 ? 4 : 2;

	if (from > size || (size - from) != c->n * width)
		abort();
	if (from && number_at(data + 8, 4) != c->n)
		abort();
	for (size_t i = 0; i < c->n; i++)
		if (c->token[i] != number_at(data + from + i * width, width) ||
		    c->token[i] >= VOCAB)
			abort();
}

/* Rows in order have every token that follows one of its document. */
static void rows_check(const struct corpus *c)
{
	uint32_t id[LENGTH], position[LENGTH], target[LENGTH];
	struct corpus_rows r;
	struct err e = { 0 };
	size_t want = 0, got = 0;

	if (!corpus_rows_init(&r, c, 0, c->n, LENGTH, false, 0, &e)) {
		if (c->n >= 2)
			abort();
		return;
	}
	for (size_t i = 0; i + 1 < c->n; i++)
		want += c->token[i] != END;
	for (size_t row = 0; row < r.n; row++)
		got += corpus_row(&r, row, id, position, target);
	if (got != want)
		abort();
	corpus_rows_fini(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *input = input_file(data, size, NULL);
	struct corpus c = { .end = END };
	struct err e = { 0 };
	char path[128];

	snprintf(path, sizeof(path), "%s.bin", input);
	if (rename(input, path) != 0)
		BUG("%s", path);
	if (corpus_add(&c, path, NULL, VOCAB, &e)) {
		tokens_check(&c, data, size);
		rows_check(&c);
	} else if (!e.msg[0]) {
		BUG("refused without a reason");
	}
	corpus_fini(&c);
	return 0;
}
