/*
 * engine/text/tokenizer_cache.c - a tokenizer as tables in a file.
 *
 * Reading 11 MB of JSON takes a quarter of a second, mapping what came of it a
 * few milliseconds.  The file is named by a hash of the texts that it was made
 * of, and holds one of its own content, so that a damaged one is read anew.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "engine/text/text_int.h"

#define MAGIC 0x31304b4f54305430ull /* "0T0TOK01", the layout's version */

/* Behind it: tokens, merges, ids of added tokens, and the tokens' bytes. */
struct head {
	uint64_t magic, content; /* XXH3 of all that follows */
	XXH128_hash_t source;
	uint64_t size_bytes;
	uint32_t n_tokens, merge_mask, n_added, text_bytes;
	uint32_t of_byte[256];
};

struct stored {
	uint32_t at, len; /* in the bytes; at is NO_TOKEN where there is none */
	uint32_t flags;	  /* 1: added, 2: special */
};

static XXH128_hash_t hash_source(const struct qwen_source *s)
{
	const char *text[] = { s->json, s->vocab, s->merges, s->added,
			       s->config };
	XXH128_hash_t h = { 0, 0 };

	for (size_t i = 0; i < ARRAY_SIZE(text); i++) {
		XXH128_hash_t one =
			text[i] ? XXH3_128bits(text[i], strlen(text[i])) :
				  (XXH128_hash_t){ i, 0 };
		XXH128_hash_t both[] = { h, one };
		h = XXH3_128bits(both, sizeof(both));
	}
	return h;
}

/* The file of a source; NULL: no cache is wanted, or possible. */
static char *cache_path(XXH128_hash_t h, char **folder)
{
	const char *own = getenv("T0_CACHE");
	struct buf b = { 0 };

	*folder = !own ? file_cache_folder(NULL) : *own ? xstrdup(own) : NULL;
	if (!*folder)
		return NULL;
	buf_printf(&b, "%s/tokenizer-%016llx%016llx", *folder,
		   (unsigned long long)h.high64, (unsigned long long)h.low64);
	return b.data;
}

static uint64_t hash_content(const struct head *h)
{
	const size_t skip = offsetof(struct head, source);

	return XXH3_64bits((const char *)h + skip, h->size_bytes - skip);
}

static size_t tables_bytes(const struct head *h)
{
	return sizeof(*h) + (size_t)h->n_tokens * sizeof(struct stored) +
	       (h->merge_mask + (size_t)1) * sizeof(struct merge) +
	       (size_t)h->n_added * sizeof(uint32_t) + h->text_bytes;
}

/* Is all of it there and as it was written? */
static bool is_whole(const struct head *h, size_t size, XXH128_hash_t source)
{
	return size >= sizeof(*h) && h->magic == MAGIC &&
	       h->size_bytes == size && tables_bytes(h) == size &&
	       XXH128_isEqual(h->source, source) &&
	       hash_content(h) == h->content;
}

/* Our own file, mapped; NULL: there is none. */
static const struct head *map_file(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	void *p = MAP_FAILED;
	struct stat s;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode) &&
	    s.st_uid == geteuid() && s.st_size >= (off_t)sizeof(struct head)) {
		*size = (size_t)s.st_size;
		p = mmap(NULL, *size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd,
			 0);
	}
	close(fd);
	return p == MAP_FAILED ? NULL : p;
}

/* The tables of a file that is whole; it stays mapped. */
static struct qwen_tokenizer *tables_of(const struct head *h, size_t size)
{
	const struct stored *x = (const void *)(h + 1);
	const struct merge *merge = (const void *)(x + h->n_tokens);
	const uint32_t *added = (const void *)(merge + h->merge_mask + 1);
	const char *text = (const char *)(added + h->n_added);
	struct qwen_tokenizer *t = xcalloc(1, sizeof(*t));

	t->map = (void *)(uintptr_t)h;
	t->map_bytes = size;
	t->n_tokens = t->cap_tokens = h->n_tokens;
	t->token = xcalloc(h->n_tokens + (size_t)1, sizeof(*t->token));
	for (uint32_t i = 0; i < h->n_tokens; i++)
		t->token[i] = (struct token){
			.bytes = x[i].at == NO_TOKEN ? NULL : text + x[i].at,
			.len = x[i].len,
			.added = x[i].flags & 1,
			.special = x[i].flags & 2,
		};
	memcpy(t->of_byte, h->of_byte, sizeof(t->of_byte));
	t->merge = (struct merge *)(uintptr_t)merge;
	t->merge_mask = h->merge_mask;
	t->n_added = t->cap_added = h->n_added;
	t->added = xmalloc((h->n_added + (size_t)1) * sizeof(*t->added));
	memcpy(t->added, added, h->n_added * sizeof(*added));
	for (uint32_t i = 0; i < h->n_added; i++)
		t->added_first[(unsigned char)*t->token[added[i]].bytes] = true;
	return t;
}

static struct qwen_tokenizer *read_stored(XXH128_hash_t source,
					  const char *path)
{
	struct qwen_tokenizer *t = NULL;
	size_t size = 0;
	const struct head *h = path ? map_file(path, &size) : NULL;

	if (h && is_whole(h, size, source))
		t = tables_of(h, size);
	else if (h)
		munmap((void *)(uintptr_t)h, size);
	return t;
}

/* Tokens with their bytes one behind the other, each with a zero behind it. */
static void add_tokens(const struct qwen_tokenizer *t, struct head *h,
		       struct buf *out, struct buf *text)
{
	for (uint32_t i = 0; i < t->n_tokens; i++) {
		const struct token *k = &t->token[i];
		struct stored x = { NO_TOKEN, k->len,
				    k->added | (unsigned)k->special << 1 };
		if (k->bytes) {
			x.at = (uint32_t)text->len;
			buf_add(text, k->bytes, k->len);
			buf_addc(text, '\0');
		}
		buf_add(out, &x, sizeof(x));
	}
	h->text_bytes = (uint32_t)text->len;
}

static void write_stored(XXH128_hash_t source, const struct qwen_tokenizer *t,
			 const char *folder, const char *path)
{
	struct head h = { .magic = MAGIC, .source = source,
			  .n_tokens = t->n_tokens,
			  .merge_mask = t->merge_mask,
			  .n_added = t->n_added };
	struct buf out = { 0 }, text = { 0 };
	struct err e = { 0 };

	memcpy(h.of_byte, t->of_byte, sizeof(h.of_byte));
	buf_add(&out, &h, sizeof(h));
	add_tokens(t, &h, &out, &text);
	buf_add(&out, t->merge,
		(t->merge_mask + (size_t)1) * sizeof(*t->merge));
	buf_add(&out, t->added, t->n_added * sizeof(*t->added));
	buf_add(&out, text.data, text.len);
	h.size_bytes = out.len;
	memcpy(out.data, &h, sizeof(h));
	h.content = hash_content((const struct head *)(void *)out.data);
	memcpy(out.data, &h, sizeof(h));
	/* One that cannot be written costs the time of the next start. */
	if (file_make_folders(folder, &e))
		file_write_unsynced(path, out.data, out.len, &e);
	buf_fini(&out);
	buf_fini(&text);
}

/* Shorter texts are read sooner than a file is found. */
enum { LONG_BYTES = 16 << 10 };

struct qwen_tokenizer *qwen_tokenizer_get(const struct qwen_source *s,
					  struct err *e)
{
	const char *text = s->json ? s->json : s->vocab;
	struct qwen_tokenizer *t;
	char *folder, *path;

	if (strlen(text) < LONG_BYTES)
		return qwen_tokenizer_parse(s, e);
	XXH128_hash_t source = hash_source(s);
	path = cache_path(source, &folder);
	t = path ? read_stored(source, path) : NULL;
	if (t && !qwen_split_compile(t, e)) {
		qwen_tokenizer_free(t);
		t = NULL;
	} else if (!t) {
		t = qwen_tokenizer_parse(s, e);
		if (t && path)
			write_stored(source, t, folder, path);
	}
	free(folder);
	free(path);
	return t;
}

struct qwen_tokenizer *qwen_tokenizer_of_text(struct buf *json, struct err *e)
{
	buf_addc(json, '\0');
	return qwen_tokenizer_get(&(struct qwen_source){ .json = json->data },
				  e);
}
