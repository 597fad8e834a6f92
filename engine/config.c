#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "engine/config.h"

#define MAX_FILE_BYTES (1u << 20)

/* One key of config.json that is a positive whole number. */
struct count_key {
	const char *name;
	size_t offset;
	uint32_t max;
};
#define AT(field) offsetof(struct qwen_config, field)
static const struct count_key count_key[] = {
	{ "num_hidden_layers", AT(layers), 1024 },
	{ "hidden_size", AT(hidden), 1 << 20 },
	{ "num_attention_heads", AT(heads), 4096 },
	{ "num_key_value_heads", AT(kv_heads), 4096 },
	{ "head_dim", AT(head_dim), 1024 },
	{ "intermediate_size", AT(ffn), 1 << 22 },
	{ "vocab_size", AT(vocab), 1 << 24 },
	{ "max_position_embeddings", AT(max_positions), 1 << 28 },
};

static bool count_read(const json_t *j, const struct count_key *k,
		       struct qwen_config *c, struct err *e)
{
	const json_t *v = json_object_get(j, k->name);
	json_int_t n = json_integer_value(v);

	/* Older files leave the head size to be divided out. */
	if (!v && k->offset == AT(head_dim) && c->heads &&
	    c->hidden % c->heads == 0)
		n = c->hidden / c->heads;
	else if (!json_is_integer(v))
		return err_set(e, ERR_INPUT, "\"%s\" is %s; wanted a number",
			       k->name, v ? "not a whole number" : "missing");
	if (n < 1 || n > k->max)
		return err_set(e, ERR_INPUT, "\"%s\" is %lld; wanted 1 to %u",
			       k->name, (long long)n, k->max);
	*(uint32_t *)((char *)c + k->offset) = (uint32_t)n;
	return true;
}

/* A number from `lo` to `hi`; keeps *out where the key is missing. */
static bool real_read(const json_t *j, const char *key, double lo, double hi,
		      double *out, struct err *e)
{
	const json_t *v = json_object_get(j, key);

	if (!v || json_is_null(v))
		return true;
	double x = json_number_value(v);
	if (!json_is_number(v) || !isfinite(x) || x < lo || x > hi)
		return err_set(e, ERR_INPUT,
			       "\"%s\" is not a number from %g to %g", key, lo,
			       hi);
	*out = x;
	return true;
}

/* What a key must be, if it is there at all, for the engine to be right. */
static const struct {
	const char *key;
	enum { NULL_OR_FALSE, IS_STRING } want;
	const char *string;
} fixed_key[] = {
	{ "model_type", IS_STRING, "qwen3" },
	{ "hidden_act", IS_STRING, "silu" },
	{ "attention_bias", NULL_OR_FALSE, NULL },
	{ "use_sliding_window", NULL_OR_FALSE, NULL },
	{ "rope_scaling", NULL_OR_FALSE, NULL },
	{ "quantization_config", NULL_OR_FALSE, NULL },
};

static bool fixed_check(const json_t *j, struct err *e)
{
	for (size_t i = 0; i < ARRAY_SIZE(fixed_key); i++) {
		const json_t *v = json_object_get(j, fixed_key[i].key);
		const char *s = json_string_value(v);
		if (fixed_key[i].want == NULL_OR_FALSE && v &&
		    !json_is_null(v) && !json_is_false(v))
			return err_set(e, ERR_UNSUPPORTED, "\"%s\" is set; "
				       "this engine knows only models without "
				       "it", fixed_key[i].key);
		if (fixed_key[i].want == IS_STRING &&
		    (!s || strcmp(s, fixed_key[i].string) != 0))
			return err_set(e, ERR_UNSUPPORTED,
				       "\"%s\" is \"%s\"; wanted \"%s\"",
				       fixed_key[i].key, s ? s : "missing",
				       fixed_key[i].string);
	}
	return true;
}

static bool shape_check(const struct qwen_config *c, struct err *e)
{
	if (c->heads % c->kv_heads)
		return err_set(e, ERR_INPUT, "%u query heads cannot share %u "
			       "key-value heads evenly", c->heads, c->kv_heads);
	if (c->head_dim % 2)
		return err_set(e, ERR_INPUT,
			       "\"head_dim\" is %u; rotary pairs need it even",
			       c->head_dim);
	return true;
}

static bool stop_add(struct qwen_config *c, const json_t *v, struct err *e)
{
	json_int_t id = json_integer_value(v);

	if (!json_is_integer(v) || id < 0 || id >= c->vocab)
		return err_set(e, ERR_INPUT, "\"eos_token_id\" has a value "
			       "that is not a token from 0 to %u",
			       c->vocab - 1);
	for (uint32_t i = 0; i < c->n_stops; i++)
		if (c->stop[i] == (uint32_t)id)
			return true;
	if (c->n_stops == QWEN_MAX_STOPS)
		return err_set(e, ERR_INPUT, "\"eos_token_id\" has more than "
			       "%d tokens", QWEN_MAX_STOPS);
	c->stop[c->n_stops++] = (uint32_t)id;
	return true;
}

static bool stops_read(struct qwen_config *c, const json_t *j, struct err *e)
{
	const json_t *v = json_object_get(j, "eos_token_id"), *one;
	size_t i;

	if (!v || json_is_null(v))
		return true;
	if (!json_is_array(v))
		return stop_add(c, v, e);
	json_array_foreach(v, i, one)
		if (!stop_add(c, one, e))
			return false;
	return true;
}

/* Newer files keep the rotary base in an object of its own. */
static bool rope_read(struct qwen_config *c, const json_t *j, struct err *e)
{
	const json_t *rope = json_object_get(j, "rope_parameters");
	const char *type =
		json_string_value(json_object_get(rope, "rope_type"));

	if (type && strcmp(type, "default") != 0)
		return err_set(e, ERR_UNSUPPORTED, "\"rope_type\" is \"%s\"; "
			       "wanted \"default\"", type);
	return real_read(rope ? rope : j, "rope_theta", 1, 1e12,
			 &c->rope_theta, e);
}

static bool config_read(struct qwen_config *c, const json_t *j, struct err *e)
{
	if (!fixed_check(j, e))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(count_key); i++)
		if (!count_read(j, &count_key[i], c, e))
			return false;
	c->tied = json_is_true(json_object_get(j, "tie_word_embeddings"));
	return shape_check(c, e) && rope_read(c, j, e) &&
	       real_read(j, "rms_norm_eps", 0, 1, &c->norm_eps, e) &&
	       stops_read(c, j, e);
}

static bool generation_read(struct qwen_config *c, const json_t *j,
			    struct err *e)
{
	double top_k = 0;

	c->sample = json_is_true(json_object_get(j, "do_sample"));
	if (!real_read(j, "temperature", 0, 1e6, &c->temperature, e) ||
	    !real_read(j, "top_p", 0, 1, &c->top_p, e) ||
	    !real_read(j, "min_p", 0, 1, &c->min_p, e) ||
	    !real_read(j, "top_k", 0, UINT32_MAX, &top_k, e) ||
	    !real_read(j, "repetition_penalty", 1e-3, 1e3,
		       &c->repetition_penalty, e) ||
	    !stops_read(c, j, e))
		return false;
	c->top_k = (uint32_t)top_k;
	return true;
}

static json_t *object_load(const char *text, struct err *e)
{
	json_error_t je;
	json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, &je);

	if (!j)
		err_set(e, ERR_INPUT, "line %d: %s", je.line, je.text);
	else if (!json_is_object(j)) {
		err_set(e, ERR_INPUT, "not a JSON object");
		json_decref(j);
		return NULL;
	}
	return j;
}

bool qwen_config_parse(struct qwen_config *c, const char *config,
		       const char *generation, struct err *e)
{
	*c = (struct qwen_config){ .rope_theta = 10000, .norm_eps = 1e-6,
				   .temperature = 1, .top_p = 1,
				   .repetition_penalty = 1 };
	json_t *j = object_load(config, e);
	bool ok = j && config_read(c, j, e);
	json_decref(j);
	if (!ok)
		return err_wrap(e, "config.json");
	if (!generation)
		return true;
	j = object_load(generation, e);
	ok = j && generation_read(c, j, e);
	json_decref(j);
	return ok || err_wrap(e, "generation_config.json");
}

bool qwen_config_load(struct qwen_config *c, const char *dir, struct err *e)
{
	struct buf config = { 0 }, generation = { 0 }, path = { 0 };
	bool has = false, ok = false;

	buf_printf(&path, "%s/config.json", dir);
	if (!file_read(path.data, MAX_FILE_BYTES, &config, e))
		goto out;
	buf_reset(&path);
	buf_printf(&path, "%s/generation_config.json", dir);
	has = access(path.data, F_OK) == 0;
	if (has && !file_read(path.data, MAX_FILE_BYTES, &generation, e))
		goto out;
	buf_adds(&config, "");
	buf_adds(&generation, "");
	ok = qwen_config_parse(c, config.data, has ? generation.data : NULL, e);
	if (!ok)
		err_wrap(e, "%s", dir);
out:
	buf_fini(&config);
	buf_fini(&generation);
	buf_fini(&path);
	return ok;
}

uint64_t qwen_config_params(const struct qwen_config *c)
{
	uint64_t h = c->hidden, d = c->head_dim;
	uint64_t attention = h * d * (2ull * c->heads + 2ull * c->kv_heads);
	uint64_t layer = attention + 3 * h * c->ffn + 2 * h + 2 * d;

	return c->layers * layer + h + h * c->vocab * (c->tied ? 1 : 2);
}

double qwen_config_flop(const struct qwen_config *c, uint32_t n)
{
	double h = c->hidden, d = (double)c->heads * c->head_dim;
	double attention = h * (2 * d + 2. * c->kv_heads * c->head_dim);
	double pairs = n * (n + 1.) / 2; /* of a query and a key */

	return 2 * (c->layers * (n * (attention + 3 * h * c->ffn) +
				 2 * d * pairs) + h * c->vocab);
}
