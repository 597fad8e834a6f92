/*
 * engine/files/checksum.c - are a model's weights what they were?
 */
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/threads.h"
#include "engine/files/files_int.h"

static const char *const what_name[] = {
	[QWEN_CHECKSUM_NONE] = "none",
	[QWEN_CHECKSUM_STORE] = "store",
	[QWEN_CHECKSUM_VERIFY] = "verify",
};

bool qwen_checksum_parse(const char *name, enum qwen_checksum *c, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(what_name); i++)
		if (strcmp(name, what_name[i]) == 0) {
			*c = (enum qwen_checksum)i;
			return true;
		}
	return err_set(e, ERR_USAGE,
		       "got checksum \"%s\"; wanted store, verify "
		       "or none",
		       name);
}

/* As xxh128sum prints it. */
#define HASH_CHARS 32
struct hash {
	char text[HASH_CHARS + 1];
};

struct hashing {
	const struct qwen_tensors *t;
	struct hash *hash; /* [t->n_maps] */
};

/* A file is one stream, and thus one thread's. */
static void files_hash(void *ctx, struct threads *t, unsigned thread)
{
	const struct hashing *h = ctx;
	struct threads_deal d;
	size_t from, to;

	threads_deal(&d, t, thread, h->t->n_maps, 1);
	while (threads_take(&d, &from, &to))
		for (size_t i = from; i < to; i++) {
			const struct qwen_map *m = &h->t->map[i];
			XXH128_hash_t x = XXH3_128bits(m->base, m->size_bytes);
			snprintf(h->hash[i].text, sizeof(h->hash[i].text),
				 "%016llx%016llx", (unsigned long long)x.high64,
				 (unsigned long long)x.low64);
		}
}

static const char *file_name(const struct qwen_map *m)
{
	const char *slash = strrchr(m->path, '/');

	return slash ? slash + 1 : m->path;
}

static bool hashes_store(const struct hashing *h, const char *path,
			 struct err *e)
{
	struct buf b = { 0 };

	for (size_t i = 0; i < h->t->n_maps; i++)
		buf_printf(&b, "%s  %s\n", h->hash[i].text,
			   file_name(&h->t->map[i]));
	bool ok = file_write_atomic(path, b.data, b.len, e);
	buf_fini(&b);
	return ok;
}

/* Of a line for this file its hash, which ends at a blank; NULL: no line. */
static const char *hash_find(const char *text, const char *name)
{
	const size_t len = strlen(name);

	for (const char *at = text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strcspn(at, " \n") == HASH_CHARS &&
		    strncmp(at + HASH_CHARS, "  ", 2) == 0 &&
		    strncmp(at + HASH_CHARS + 2, name, len) == 0 &&
		    strchr("\n", at[HASH_CHARS + 2 + len]))
			return at;
	}
	return NULL;
}

static bool hashes_verify(const struct hashing *h, const char *path,
			  struct err *e)
{
	struct buf b = { 0 };
	bool ok = file_read(path, 1 << 20, &b, e) ||
		  err_wrap(e, "there is nothing to verify with; --checksum "
			      "store writes it");

	buf_adds(&b, "");
	for (size_t i = 0; ok && i < h->t->n_maps; i++) {
		const struct qwen_map *m = &h->t->map[i];
		const char *wanted = hash_find(b.data, file_name(m));
		if (!wanted)
			ok = err_set(e, ERR_INPUT,
				     "%s: has no line \"HASH  "
				     "%s\"; --checksum store writes all anew",
				     path, file_name(m));
		else if (memcmp(wanted, h->hash[i].text, HASH_CHARS) != 0)
			ok = err_set(e, ERR_INPUT,
				     "%s: its checksum is %s, but "
				     "%s has %.*s: it was changed or is "
				     "damaged; get it again, or take it as it "
				     "is with --checksum store",
				     m->path, h->hash[i].text, path, HASH_CHARS,
				     wanted);
	}
	buf_fini(&b);
	return ok;
}

bool qwen_checksum_do(enum qwen_checksum what, const struct qwen_tensors *t,
		      const char *model, struct threads *threads, struct err *e)
{
	struct hashing h = { t, xcalloc(t->n_maps, sizeof(*h.hash)) };
	struct buf path = { 0 };
	bool ok = true;

	if (qwen_is_file(model))
		buf_printf(&path, "%s.xxh128", model);
	else
		buf_printf(&path, "%s/" QWEN_CHECKSUM_FILE, model);
	if (what != QWEN_CHECKSUM_NONE)
		threads_run(threads, files_hash, &h);
	if (what == QWEN_CHECKSUM_STORE)
		ok = hashes_store(&h, path.data, e);
	else if (what == QWEN_CHECKSUM_VERIFY)
		ok = hashes_verify(&h, path.data, e);
	buf_fini(&path);
	free(h.hash);
	return ok;
}
