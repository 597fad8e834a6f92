/*
 * Tiny mixtures of experts, and routers whose scores tie or are no numbers.
 */
#ifndef T0_TESTS_MIXTURE_H
#define T0_TESTS_MIXTURE_H

#include "engine/model/model.h"
#include "tests/ref/qwen.h"

/* In root/name; good until the next call. */
static inline const char *mixture_make(const char *root, const char *name,
				       enum qwen_weights w, uint32_t n,
				       uint32_t used, bool normed)
{
	static char path[128];
	struct qwen_synthetic how = { .weights = w, .seed = 3, .shards = 1 };
	struct err e = { 0 };

	qwen_shape_find("tiny-moe", &how.config, &e);
	how.config.experts = (struct qwen_experts){ n, used, normed };
	snprintf(path, sizeof(path), "%s/%s", root, name);
	if (!ok(qwen_synthetic_write(path, &how, &e), "%s: is made", name))
		diag("%s", e.msg);
	return path;
}

/* How the n values of a router change, rows of as many. */
typedef void router_change(float *v, size_t n, size_t row);

static inline void router_zero(float *v, size_t n, size_t row)
{
	(void)row;
	memset(v, 0, n * sizeof(*v));
}

/* Every expert's row is that of the one before, if that is even. */
static inline void router_twins(float *v, size_t n, size_t row)
{
	for (size_t i = row; i + row <= n; i += 2 * row)
		memcpy(v + i, v + i - row, row * sizeof(*v));
}

static inline void router_broken(float *v, size_t n, size_t row)
{
	(void)row;
	for (size_t i = 0; i < n; i++)
		v[i] = NAN;
}

/* Of equal scores the first experts are taken. */
static const struct router_tie {
	const char *name;
	router_change *how;
} router_ties[] = { { "all scores are 0", router_zero },
		    { "scores in pairs", router_twins } };

/* The bytes of a layer's router, f32, are changed where they lie. */
static inline void mixture_change(const char *dir, int layer, router_change *how)
{
	enum { HIDDEN = 64 };
	struct ref r = { 0 };
	char name[64], path[192];

	ref_open(&r, dir);
	snprintf(name, sizeof(name), "model.layers.%d.mlp.gate.weight", layer);
	json_t *place = json_object_get(json_object_get(r.header, name),
					"data_offsets");
	size_t from = (size_t)json_integer_value(json_array_get(place, 0));
	size_t to = (size_t)json_integer_value(json_array_get(place, 1));
	how((float *)(void *)(r.file + r.data + from), (to - from) / 4, HIDDEN);
	snprintf(path, sizeof(path), "%s/model.safetensors", dir);
	FILE *f = fopen(path, "r+b");
	if (!f || fseek(f, (long)(r.data + from), SEEK_SET) ||
	    fwrite(r.file + r.data + from, 1, to - from, f) != to - from ||
	    fclose(f))
		BUG("%s cannot be changed", path);
	ref_close(&r);
}

#endif
