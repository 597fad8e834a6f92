/*
 * engine/weights/cache.c - the keys and values of attention.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/weights/weights.h"

#define LARGE_PAGE ((size_t)2 << 20)

static const struct {
	const char *name;
	enum qwen_weights type;
} kind[] = {
	{ "f32", QWEN_W_F32 },	   { "f16", QWEN_W_F16 },
	{ "bf16", QWEN_W_BF16 },   { "f8", QWEN_W_F8 },
	{ "int8", QWEN_W_INT8 },   { "int4", QWEN_W_INT4 },
	{ "int4r", QWEN_W_INT4R },
};

static bool kind_find(const char *name, size_t n, enum qwen_weights *w)
{
	for (size_t i = 0; i < ARRAY_SIZE(kind); i++)
		if (strlen(kind[i].name) == n &&
		    memcmp(kind[i].name, name, n) == 0) {
			*w = kind[i].type;
			return true;
		}
	return false;
}

bool qwen_kinds_parse(const char *text, struct qwen_kinds *k, struct err *e)
{
	const size_t n = strcspn(text, ",");
	const char *values = text[n] ? text + n + 1 : text;

	return (kind_find(text, n, &k->keys) &&
		kind_find(values, strlen(values), &k->values)) ||
	       err_set(e, ERR_USAGE,
		       "got the type \"%s\" of a cache; wanted "
		       "f32, f16, bf16, f8, int8, int4 or int4r, or two of "
		       "them, of keys and of values: int8,int4",
		       text);
}

static const char *kind_name(enum qwen_weights w)
{
	for (size_t i = 0; i < ARRAY_SIZE(kind); i++)
		if (kind[i].type == w)
			return kind[i].name;
	return "none";
}

const char *qwen_kinds_print(struct qwen_kinds k, char out[QWEN_KINDS_TEXT])
{
	bool same = k.keys == k.values;

	snprintf(out, QWEN_KINDS_TEXT, "%s%s%s", kind_name(k.keys),
		 same ? "" : ",", same ? "" : kind_name(k.values));
	return out;
}

/* Are there scales in f16 for each group, behind the integers? */
static bool is_scaled(enum qwen_weights w)
{
	return w == QWEN_W_INT8 || w == QWEN_W_INT4 || w == QWEN_W_INT4R;
}

/* Of one vector, without scales. */
static size_t code_bytes(enum qwen_weights type, uint32_t n)
{
	switch (type) {
	case QWEN_W_F32:
		return 4 * (size_t)n;
	case QWEN_W_F16:
	case QWEN_W_BF16:
		return 2 * (size_t)n;
	case QWEN_W_INT4:
	case QWEN_W_INT4R:
		return n / 2;
	default:
		return n;
	}
}

size_t qwen_kept_bytes(enum qwen_weights w, uint32_t n)
{
	return code_bytes(w, n) +
	       (is_scaled(w) ? n / QWEN_GROUP * sizeof(uint16_t) : 0);
}

uint64_t qwen_position_bytes(struct qwen_kinds k, const struct qwen_config *c)
{
	return (uint64_t)c->layers * c->kv_heads *
	       (qwen_kept_bytes(k.keys, c->head_dim) +
		qwen_kept_bytes(k.values, c->head_dim));
}

static enum qwen_weights type_of(const struct qwen_cache *c,
				 enum qwen_part_of part)
{
	return part == QWEN_KEYS ? c->type.keys : c->type.values;
}

/*
 * Large pages, but for the first run of each sequence: short texts take no more
 * than their own vectors.  Blocks are all large pages: they are full soon.
 */
static uint8_t *map_pages(const struct qwen_cache *c, uint64_t size_bytes)
{
	uint64_t part = size_bytes / c->sequences;
	uint8_t *p = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (c->blocks)
		madvise(p, size_bytes, MADV_HUGEPAGE);
	for (uint32_t s = 0; s < c->sequences && c->runs > 1 && !c->blocks;
	     s++) {
		uint8_t *from = p + s * part + part / c->runs;
		from += -(uintptr_t)from % LARGE_PAGE;
		if (from < p + (s + 1) * part)
			madvise(from, (size_t)(p + (s + 1) * part - from),
				MADV_HUGEPAGE);
	}
	return p;
}

static bool kind_check(const struct qwen_cache *c, enum qwen_weights w,
		       struct err *e)
{
	return !is_scaled(w) || c->head_dim % QWEN_GROUP == 0 ||
	       err_set(e, ERR_UNSUPPORTED,
		       "a cache of %s for heads of %u; "
		       "wanted f32, f16, bf16 or f8, or heads that are "
		       "multiples of %d",
		       kind_name(w), c->head_dim, QWEN_GROUP);
}

/* Whole cache lines, so that every head's begin with one. */
static size_t round_up(size_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

static void lay_out(struct qwen_cache *c, enum qwen_part_of part)
{
	const enum qwen_weights w = type_of(c, part);
	const size_t code = code_bytes(w, c->head_dim);
	const size_t scale = qwen_kept_bytes(w, c->head_dim) - code;

	c->code_bytes[part] = round_up(c->together * code);
	c->scale_bytes[part] = round_up(c->together * scale);
}

/* Keys and values of a layer that lie together, without scales. */
static size_t codes_bytes(const struct qwen_cache *c)
{
	return c->kv_heads *
	       (c->code_bytes[QWEN_KEYS] + c->code_bytes[QWEN_VALUES]);
}

static size_t layer_bytes(const struct qwen_cache *c)
{
	return codes_bytes(c) +
	       c->kv_heads * (c->scale_bytes[QWEN_KEYS] +
			      c->scale_bytes[QWEN_VALUES]);
}

bool qwen_cache_init(struct qwen_cache *c, struct err *e)
{
	uint64_t mapped, count;

	if (!kind_check(c, c->type.keys, e) ||
	    !kind_check(c, c->type.values, e))
		return false;
	c->run = c->positions < QWEN_RUN ? c->positions : QWEN_RUN;
	c->runs = (c->positions + c->run - 1) / c->run;
	c->together = c->blocks ? QWEN_BLOCK : c->run;
	count = c->blocks ? c->blocks : (uint64_t)c->sequences * c->runs;
	lay_out(c, QWEN_KEYS);
	lay_out(c, QWEN_VALUES);
	if (__builtin_mul_overflow(c->layers * (uint64_t)layer_bytes(c), count,
				   &mapped) ||
	    mapped > UINT64_MAX / 4)
		return err_set(e, ERR_USAGE,
			       "%u sequences of %u positions "
			       "are too many",
			       c->sequences, c->positions);
	c->size_bytes = (uint64_t)c->layers * c->kv_heads *
			(qwen_kept_bytes(c->type.keys, c->head_dim) +
			 qwen_kept_bytes(c->type.values, c->head_dim)) *
			(c->blocks ? count * QWEN_BLOCK :
				     (uint64_t)c->sequences * c->positions);
	c->mapped_bytes = mapped;
	c->data = map_pages(c, mapped);
	if (c->data && c->blocks)
		c->table = xcalloc(c->sequences, sizeof(*c->table));
	return c->data || err_set(e, ERR_NOMEM,
				  "no memory for a cache of %llu bytes; "
				  "fewer positions, int8 or int4r need less",
				  (unsigned long long)mapped);
}

void qwen_cache_fini(struct qwen_cache *c)
{
	if (c->data)
		munmap(c->data, c->mapped_bytes);
	free(c->table);
	*c = (struct qwen_cache){ 0 };
}

/* The positions of a run or block of one head. */
struct part {
	uint8_t *code;
	uint16_t *scale;
};

/* What comes first is farthest apart. */
static struct part part_at(const struct qwen_cache *c,
			   const struct qwen_place *p, uint32_t position)
{
	const uint32_t part = position / c->together;
	size_t i = c->blocks ? c->table[p->sequence][part] :
			       (size_t)p->sequence * c->runs + part;
	uint8_t *code, *scale;

	code = c->data + (i * c->layers + p->layer) * layer_bytes(c);
	scale = code + codes_bytes(c);
	if (p->part == QWEN_VALUES) {
		code += c->kv_heads * c->code_bytes[QWEN_KEYS];
		scale += c->kv_heads * c->scale_bytes[QWEN_KEYS];
	}
	code += p->head * c->code_bytes[p->part];
	scale += p->head * c->scale_bytes[p->part];
	return (struct part){ code, (uint16_t *)scale };
}

static void put_bytes(const struct qwen_cache *c, uint8_t *code,
		      uint16_t *scale, const float *x)
{
	const uint32_t groups = c->head_dim / QWEN_GROUP;
	float d[QWEN_PAD / QWEN_GROUP], sum[QWEN_PAD / QWEN_GROUP];

	for (uint32_t g = 0, n; g < groups; g += n) {
		n = groups - g < ARRAY_SIZE(d) ? groups - g : ARRAY_SIZE(d);
		const struct qwen_quants q = {
			.q = (int8_t *)code + (size_t)g * QWEN_GROUP,
			.d = d,
			.sum = sum,
		};
		c->k->quantize(x + (size_t)g * QWEN_GROUP, n * QWEN_GROUP, &q);
		c->k->narrow(QWEN_W_F16, d, n, scale + g);
	}
}

static void put_turned(const struct qwen_cache *c, uint8_t *code,
		       uint16_t *scale, const float *x)
{
	float turned[1024];

	if (c->head_dim > ARRAY_SIZE(turned))
		BUG("heads of %u", c->head_dim);
	memcpy(turned, x, c->head_dim * sizeof(*x));
	c->k->turn(turned, c->head_dim);
	c->k->round_int4(turned, c->head_dim, code, scale);
}

void qwen_cache_put(const struct qwen_cache *c, const struct qwen_place *p,
		    uint32_t position, const float *x)
{
	const enum qwen_weights type = type_of(c, p->part);
	const size_t bytes = code_bytes(type, c->head_dim);
	const uint32_t at = position % c->together;
	const struct part part = part_at(c, p, position);
	uint8_t *code = part.code + at * bytes;
	uint16_t *scale = part.scale + (size_t)at * (c->head_dim / QWEN_GROUP);

	switch (type) {
	case QWEN_W_INT8:
		put_bytes(c, code, scale, x);
		return;
	case QWEN_W_INT4:
		c->k->round_int4(x, c->head_dim, code, scale);
		return;
	case QWEN_W_INT4R:
		put_turned(c, code, scale, x);
		return;
	default:
		c->k->narrow(type, x, c->head_dim, code);
	}
}

struct qwen_matrix qwen_cache_rows(const struct qwen_cache *c,
				   const struct qwen_place *p, uint32_t from,
				   uint32_t n)
{
	const enum qwen_weights type = type_of(c, p->part);
	const struct part part = part_at(c, p, from);

	return (struct qwen_matrix){
		type == QWEN_W_INT4R ? QWEN_W_INT4 : type,
		n < c->together ? n : c->together, c->head_dim, part.code,
		is_scaled(type) ? part.scale : NULL
	};
}

void qwen_cache_copy(const struct qwen_cache *c, uint32_t from, uint32_t to)
{
	size_t bytes = c->layers * layer_bytes(c);

	memcpy(c->data + to * bytes, c->data + from * bytes, bytes);
}
