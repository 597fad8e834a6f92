/* Texts, conversations and shards as rows of tokens. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/corpus/corpus.h"
#include "tests/tap.h"

static char root[] = "/tmp/t0-corpus-XXXXXX";
static struct qwen_tokenizer *tok;
static uint32_t end;
#define VOCAB 300

static const char *write_file(const char *name, const void *data, size_t n)
{
	static char path[128];
	struct err e = { 0 };

	snprintf(path, sizeof(path), "%s/%s", root, name);
	if (!file_write_unsynced(path, data, n, &e))
		diag("%s", e.msg);
	return path;
}

static const char *write_text(const char *name, const char *s)
{
	return write_file(name, s, strlen(s));
}

static struct corpus read_one(const char *path, bool words)
{
	struct corpus c = { .end = end };
	struct err e = { 0 };

	if (!ok(corpus_add(&c, path, words ? tok : NULL, VOCAB, &e),
		"%s is read", strrchr(path, '/') + 1))
		diag("%s", e.msg);
	return c;
}

/* Tokens as text again, "|" for the end of a document. */
static char *show_rows(const struct corpus *c, bool learnt)
{
	static char out[512];
	struct qwen_detokenizer d = { 0 };
	struct buf b = { 0 };

	for (size_t i = 0; i < c->n; i++) {
		if (c->skipped && c->skipped[i] && learnt)
			continue;
		if (c->token[i] == end)
			buf_addc(&b, '|');
		else
			qwen_detokenize(&d, tok, c->token[i], &b);
	}
	qwen_detokenize_end(&d, &b);
	buf_adds(&b, "");
	snprintf(out, sizeof(out), "%s", b.data);
	buf_fini(&b);
	return out;
}

static void test_texts(void)
{
	struct corpus c = read_one(write_text("a.txt", "one two"), true);
	struct err e = { 0 };

	is_str(show_rows(&c, false), "one two|", "a text is one document");
	corpus_fini(&c);
	static const _Atomic int stop = SIGTERM;
	c = (struct corpus){ .end = end, .stop = &stop };
	ok(!corpus_add(&c, write_text("a.txt", "one two"), tok, VOCAB, &e) &&
		   e.code == ERR_STOPPED,
	   "a signal ends reading it");
	e = (struct err){ 0 };
	corpus_fini(&c);
	c = read_one(write_text("b.jsonl",
				"{\"text\": \"x\"}\n\n{\"text\": \"y\", "
				"\"id\": 3}\n"),
		     true);
	is_str(show_rows(&c, false), "x|y|", "a line of JSON is a document");
	corpus_fini(&c);
	ok(!corpus_add(&c,
		       write_text("c.jsonl", "{\"text\": \"x\"}\n{\"a\": 1}\n"),
		       tok, VOCAB, &e),
	   "a line without text is refused");
	has_str(e.msg, "c.jsonl:2", "and named");
	corpus_fini(&c);
	e = (struct err){ 0 };
	ok(!corpus_add(&c, write_text("d.txt", "x"), NULL, VOCAB, &e),
	   "text without a tokenizer is refused");
	corpus_fini(&c);
	mkdir(write_text("folder", ""), 0777);
	char path[160], other[160];
	snprintf(path, sizeof(path), "%s/docs", root);
	mkdir(path, 0777);
	write_text("docs/2", "second");
	write_text("docs/1", "first");
	snprintf(other, sizeof(other), "%s/docs/3", root);
	ok(symlink("1", other) == 0, "a link to a file");
	c = read_one(path, true);
	is_str(show_rows(&c, false), "first|second|",
	       "a folder is its files by name, without links");
	corpus_fini(&c);
}

static void test_talk(void)
{
	struct corpus c =
		read_one(write_text("talk.jsonl",
				    "{\"messages\": [{\"role\": \"user\", "
				    "\"content\": \"moo\"}, {\"role\": "
				    "\"assistant\", \"content\": \"yes\"}]}\n"),
			 true);

	has_str(show_rows(&c, false), "<|im_start|>user\nmoo<|im_end|>",
		"a conversation is written as its template has it");
	ok(!strstr(show_rows(&c, true), "moo"),
	   "the user's turn is not learnt");
	has_str(show_rows(&c, true), "yes<|im_end|>",
		"the answer is, and its end");
	ok(!strstr(show_rows(&c, true), "assistant"), "but not who speaks");
	corpus_fini(&c);
}

static void test_shards(void)
{
	const uint16_t plain[] = { 5, 6, 299, 7 };
	const uint32_t wide[] = { 9, 8, 299 };
	uint32_t head[256] = { 20240520, 1, 4 };
	struct buf b = { 0 };
	struct corpus c = read_one(write_file("empty.bin", "", 0), false);

	is_u64(c.n, 0, "of no bytes are no tokens");
	corpus_fini(&c);
	c = read_one(write_file("n.bin", plain, sizeof(plain)), false);
	struct err e = { 0 };

	is_u64(c.n, 4, "uint16 alone: as many tokens");
	is_u64(c.token[2], 299, "in their order");
	corpus_fini(&c);
	buf_add(&b, head, sizeof(head));
	buf_add(&b, plain, sizeof(plain));
	c = read_one(write_file("l.bin", b.data, b.len), false);
	is_u64(c.n, 4, "behind a header: as many tokens");
	is_u64(c.token[3], 7, "in their order, too");
	corpus_fini(&c);
	ok(!corpus_add(&c, write_file("cut.bin", b.data, b.len - 2), NULL,
		       VOCAB, &e),
	   "a shard that was cut is refused");
	has_str(e.msg, "4 tokens", "with what its header says");
	buf_reset(&b);
	head[0] = 20240801;
	head[2] = 3;
	buf_add(&b, head, sizeof(head));
	buf_add(&b, wide, sizeof(wide));
	c = read_one(write_file("w.bin", b.data, b.len), false);
	is_u64(c.n == 3 ? c.token[0] : 0, 9, "uint32 behind a header");
	corpus_fini(&c);
	ok(!corpus_add(&c, write_file("o.bin", (uint16_t[]){ 1, 300 }, 4), NULL,
		       VOCAB, &e),
	   "a token that the model lacks is refused");
	has_str(e.msg, "token 1 is 300", "and named");
	corpus_fini(&c);
	buf_fini(&b);
}

/* ---- rows ---- */

#define N 103

static struct corpus open_numbers(void)
{
	struct corpus c = { .end = 255 };
	uint16_t id[N];
	struct err e = { 0 };

	for (uint16_t i = 0; i < N; i++)
		id[i] = i == 20 || i == 50 ? 255 : i;
	corpus_add(&c, write_file("numbers.bin", id, sizeof(id)), NULL, VOCAB,
		   &e);
	return c;
}

static void test_rows(void)
{
	struct corpus c = open_numbers();
	uint32_t id[10], position[10], target[10];
	struct corpus_rows r;
	struct err e = { 0 };
	unsigned seen[256] = { 0 }, targets = 0;

	ok(corpus_rows_init(&r, &c, 3, N, 10, false, 0, &e), "rows in order");
	is_u64(r.n, 10, "100 tokens: 99 targets in 10 rows");
	for (uint64_t i = 0; i < r.n; i++) {
		targets += corpus_row(&r, i, id, position, target);
		for (int k = 0; k < 10; k++)
			if (target[k] != CORPUS_IGNORE)
				seen[target[k]]++;
	}
	is_u64(targets, 97, "all but those behind the end of a document");
	for (int i = 4; i < N; i++)
		if (seen[i] != (i != 20 && i != 50 && i != 21 && i != 51))
			diag("token %d is seen %u times", i, seen[i]);
	is_u64(seen[255], 2, "ends of documents are learnt");
	is_u64(seen[21] + seen[51], 0, "what follows them is not");
	corpus_row(&r, 1, id, position, target); /* tokens 13 to 22 */
	is_u64(id[0], 13, "the second row begins where the first ended");
	is_u64(position[0], 0, "at position 0");
	is_u64(position[7], 7, "positions go on up to the end of a document");
	is_u64(position[8], 0, "and begin again behind it");
	is_u64(target[6], 255, "the last token learns the end");
	is_u64(target[7], CORPUS_IGNORE, "the end learns nothing");
	is_u64(target[8], 22, "the first one of the next learns again");
	corpus_row(&r, 9, id, position, target); /* 93 to 102 */
	is_u64(target[9], CORPUS_IGNORE, "nothing comes behind the last");
	corpus_rows_fini(&r);

	ok(corpus_rows_init(&r, &c, 0, 14, 10, false, 0, &e),
	   "rows with an empty tail");
	is_u64(corpus_row(&r, 1, id, position, target), 3,
	       "the last row has the rest");
	is_u64(target[3], CORPUS_IGNORE, "and nothing behind it");
	corpus_rows_fini(&r);
	ok(!corpus_rows_init(&r, &c, 5, 6, 10, true, 0, &e),
	   "one token is refused");
	corpus_fini(&c);
}

static void test_order(void)
{
	struct corpus c = open_numbers();
	uint32_t id[10], position[10], target[10];
	uint32_t first[3][24];
	struct corpus_rows r;
	struct err e = { 0 };
	size_t n = 0;
	bool all = true;

	for (uint64_t seed = 7; seed < 10; seed++) {
		corpus_rows_init(&r, &c, 0, N, 10, true, seed == 9 ? 7 : seed,
				 &e);
		n = r.n;
		for (uint64_t i = 0; i < 2 * n; i++) {
			corpus_row(&r, i, id, position, target);
			first[seed - 7][i] = id[0] == 255 ? id[1] - 1 : id[0];
		}
		corpus_rows_fini(&r);
	}
	is_u64(n, 10, "102 targets: 10 rows, with a shift of up to 2");
	is_mem(first[0], first[2], 2 * n * 4, "a seed gives the same order");
	ok(memcmp(first[0], first[1], 2 * n * 4) != 0, "another one another");
	ok(memcmp(first[0], first[0] + n, n * 4) != 0, "so does an epoch");
	for (uint32_t want = 0; want < n; want++) {
		bool found = false;
		for (size_t i = 0; i < n; i++)
			found |= first[0][i] / 10 == want;
		all &= found;
	}
	ok(all, "an epoch has every row");
	/* Rows can be asked for from anywhere. */
	corpus_rows_init(&r, &c, 0, N, 10, true, 7, &e);
	corpus_row(&r, n + 4, id, position, target);
	is_u64(id[0] == 255 ? id[1] - 1 : id[0], first[0][n + 4],
	       "a row is the same without those before it");
	corpus_rows_fini(&r);
	corpus_fini(&c);
}

int main(void)
{
	struct buf json = { 0 };
	struct err e = { 0 };

	if (!mkdtemp(root))
		return 2;
	qwen_bpe_train("some words, some more words", 27, VOCAB - 20, &json,
		       &e);
	const struct qwen_source source = { .json = json.data };
	tok = qwen_tokenizer_parse(&source, &e);
	end = (uint32_t)qwen_token_find(tok, "<|endoftext|>");
	test_texts();
	test_talk();
	test_shards();
	test_rows();
	test_order();
	qwen_tokenizer_free(tok);
	buf_fini(&json);
	char cmd[64];
	snprintf(cmd, sizeof(cmd), "rm -r '%s'", root);
	ok(system(cmd) == 0, "the files are removed");
	return plan_done();
}
