/*
 * engine/files/config.c - config.json and generation_config.json.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/files/files_int.h"

#define MAX_FILE_BYTES (1u << 20)

#define SHOWN_BYTES 40
/* A value as its file has it, cut short, for messages. */
static const char *show_value(const json_t *v, char out[static SHOWN_BYTES])
{
	char *all = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);

	snprintf(out, SHOWN_BYTES, "%s", all ? all : "missing");
	free(all);
	return out;
}

/* One key of config.json that is a positive whole number. */
struct count_key {
	const char *name;
	size_t offset;
	uint32_t max;
};
#define AT(field) offsetof(struct qwen_config, field)
static const struct count_key expert_key[] = {
	{ "num_experts", AT(experts.n), QWEN_EXPERTS_MAX },
	{ "num_experts_per_tok", AT(experts.used), QWEN_EXPERTS_USED },
	{ "moe_intermediate_size", AT(ffn), 1 << 22 },
};
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
	char text[SHOWN_BYTES];

	/* Older files leave the head size to be divided out. */
	if (!v && k->offset == AT(head_dim) && c->heads &&
	    c->hidden % c->heads == 0)
		n = c->hidden / c->heads;
	else if (!json_is_integer(v))
		return err_set(e, ERR_INPUT, "\"%s\" is %s; wanted a whole "
			       "number", k->name, show_value(v, text));
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
	char text[SHOWN_BYTES];
	if (!json_is_number(v) || !isfinite(x) || x < lo || x > hi)
		return err_set(e, ERR_INPUT,
			       "\"%s\" is %s; wanted a number "
			       "from %g to %g",
			       key, show_value(v, text), lo, hi);
	*out = x;
	return true;
}

/* true or false; keeps *out where the key is missing. */
static bool bool_read(const json_t *j, const char *key, bool *out,
		      struct err *e)
{
	const json_t *v = json_object_get(j, key);
	char text[SHOWN_BYTES];

	if (!v || json_is_null(v))
		return true;
	if (!json_is_boolean(v))
		return err_set(e, ERR_INPUT, "\"%s\" is %s; wanted true or "
			       "false", key, show_value(v, text));
	*out = json_is_true(v);
	return true;
}

/* What a key must be, if it is there at all, for the engine to be right. */
static const struct {
	const char *key;
	enum { NULL_OR_FALSE, IS_STRING } want;
	const char *string;
} fixed_key[] = {
	{ "hidden_act", IS_STRING, "silu" },
	{ "attention_bias", NULL_OR_FALSE, NULL },
	{ "use_sliding_window", NULL_OR_FALSE, NULL },
};

static bool fixed_check(const json_t *j, struct err *e)
{
	char text[SHOWN_BYTES];

	for (size_t i = 0; i < ARRAY_SIZE(fixed_key); i++) {
		const json_t *v = json_object_get(j, fixed_key[i].key);
		const char *s = json_string_value(v);
		if (fixed_key[i].want == NULL_OR_FALSE && v &&
		    !json_is_null(v) && !json_is_false(v))
			return err_set(e, ERR_UNSUPPORTED,
				       "\"%s\" is %s; "
				       "this engine knows only models without "
				       "it",
				       fixed_key[i].key, show_value(v, text));
		if (fixed_key[i].want == IS_STRING &&
		    (!s || strcmp(s, fixed_key[i].string) != 0))
			return err_set(e, ERR_UNSUPPORTED,
				       "\"%s\" is %s; wanted \"%s\"",
				       fixed_key[i].key, show_value(v, text),
				       fixed_key[i].string);
	}
	return true;
}

static bool is_mixture(const json_t *j)
{
	const char *type = json_string_value(json_object_get(j, "model_type"));

	return type && strcmp(type, "qwen3_moe") == 0;
}

static bool type_check(const json_t *j, struct err *e)
{
	const json_t *v = json_object_get(j, "model_type");
	const char *s = json_string_value(v);
	char text[SHOWN_BYTES];

	return is_mixture(j) || (s && strcmp(s, "qwen3") == 0) ||
	       err_set(e, ERR_UNSUPPORTED, "\"model_type\" is %s; wanted "
		       "\"qwen3\" or \"qwen3_moe\"", show_value(v, text));
}

/* Of a mixture every layer has experts, as in all that were published. */
static bool experts_read(struct qwen_config *c, const json_t *j, struct err *e)
{
	const json_t *step = json_object_get(j, "decoder_sparse_step");
	const json_t *dense = json_object_get(j, "mlp_only_layers");
	char text[SHOWN_BYTES];

	if (!is_mixture(j))
		return true;
	if (step && json_integer_value(step) != 1)
		return err_set(e, ERR_UNSUPPORTED, "\"decoder_sparse_step\" is "
			       "%s; wanted 1: experts in every layer",
			       show_value(step, text));
	if (dense && !json_is_null(dense) &&
	    (!json_is_array(dense) || json_array_size(dense)))
		return err_set(e, ERR_UNSUPPORTED, "\"mlp_only_layers\" is %s; "
			       "wanted [], experts in every layer",
			       show_value(dense, text));
	for (size_t i = 0; i < ARRAY_SIZE(expert_key); i++)
		if (!count_read(j, &expert_key[i], c, e))
			return false;
	if (c->experts.used > c->experts.n)
		return err_set(e, ERR_INPUT, "\"num_experts_per_tok\" is %u; "
			       "wanted 1 to the %u of \"num_experts\"",
			       c->experts.used, c->experts.n);
	return bool_read(j, "norm_topk_prob", &c->experts.normed, e);
}

static bool engram_read(struct qwen_config *c, const json_t *j, struct err *e)
{
	static const struct count_key key[] = {
		{ "rows", AT(engram.rows), QWEN_ENGRAM_ROWS },
		{ "layer", AT(engram.layer), 1024 },
	};
	const json_t *x = json_object_get(j, "t0_engram");

	if (!x || json_is_null(x))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(key); i++)
		if (!count_read(x, &key[i], c, e))
			return err_wrap(e, "\"t0_engram\"");
	return c->engram.layer < c->layers ||
	       err_set(e, ERR_INPUT,
		       "\"t0_engram\": \"layer\" is %u; wanted one of the %u "
		       "layers but the first",
		       c->engram.layer, c->layers);
}

/* Newer files say of each layer how far back it looks. */
static bool layers_check(const struct qwen_config *c, const json_t *j,
			 struct err *e)
{
	const json_t *list = json_object_get(j, "layer_types"), *v;
	char text[SHOWN_BYTES];
	size_t i;

	if (!list || json_is_null(list))
		return true;
	if (json_array_size(list) != c->layers)
		return err_set(e, ERR_INPUT, "\"layer_types\" is %s; wanted a "
			       "list of %u", show_value(list, text), c->layers);
	json_array_foreach(list, i, v) {
		const char *s = json_string_value(v);
		if (!s || strcmp(s, "full_attention") != 0)
			return err_set(e, ERR_UNSUPPORTED, "\"layer_types\" "
				       "has %s for layer %zu; this engine "
				       "knows only \"full_attention\"",
				       show_value(v, text), i);
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
	char text[SHOWN_BYTES];

	if (!json_is_integer(v) || id < 0 || id >= c->vocab)
		return err_set(e, ERR_INPUT, "\"eos_token_id\" has %s; wanted "
			       "tokens from 0 to %u", show_value(v, text),
			       c->vocab - 1);
	if (qwen_config_stops(c, (uint32_t)id))
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

/* What an object of rotary parameters may have beside its base. */
static const struct {
	const char *key;
	size_t offset;
	double lo, hi;
} yarn_key[] = {
	{ "factor", AT(yarn.factor), 1, 1e4 },
	{ "original_max_position_embeddings", AT(yarn.positions), 1, 1 << 28 },
	{ "beta_fast", AT(yarn.fast), 1e-3, 1e6 },
	{ "beta_slow", AT(yarn.slow), 1e-3, 1e6 },
	{ "attention_factor", AT(yarn.attention), 1e-3, 1e3 },
};

static bool is_yarn_key(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(yarn_key); i++)
		if (strcmp(yarn_key[i].key, key) == 0)
			return true;
	return false;
}

static bool rope_key_check(const char *name, const char *key, const json_t *v,
			   bool yarn, struct err *e)
{
	bool type = strcmp(key, "rope_type") == 0 || strcmp(key, "type") == 0;
	const char *s = json_string_value(v);
	char text[SHOWN_BYTES];

	if (type ? s && (strcmp(s, "default") == 0 ||
			 (yarn && strcmp(s, "yarn") == 0)) :
		   strcmp(key, "rope_theta") == 0 || (yarn && is_yarn_key(key)))
		return true;
	return err_set(e, ERR_UNSUPPORTED, "\"%s\" has \"%s\": %s; this "
		       "engine knows only rotary embeddings of the "
		       "\"rope_type\" \"default\" or \"yarn\"", name, key,
		       show_value(v, text));
}

/* What is not said is as published. */
static bool yarn_read(struct qwen_config *c, const json_t *rope, struct err *e)
{
	struct qwen_yarn *y = &c->yarn;

	*y = (struct qwen_yarn){ .fast = 32, .slow = 1,
				 .positions = c->max_positions };
	for (size_t i = 0; i < ARRAY_SIZE(yarn_key); i++)
		if (!real_read(rope, yarn_key[i].key, yarn_key[i].lo,
			       yarn_key[i].hi, (double *)((char *)c +
							  yarn_key[i].offset),
			       e))
			return false;
	if (y->factor < 1)
		return err_set(e, ERR_INPUT, "\"yarn\" without \"factor\"");
	if (y->attention == 0)
		y->attention = 0.1 * log(y->factor) + 1;
	if (y->factor * y->positions > c->max_positions)
		c->max_positions = (uint32_t)fmin(y->factor * y->positions,
						  1 << 28);
	return true;
}

static bool is_yarn(const json_t *rope)
{
	const char *a = json_string_value(json_object_get(rope, "rope_type"));
	const char *b = json_string_value(json_object_get(rope, "type"));

	return (a && strcmp(a, "yarn") == 0) || (b && strcmp(b, "yarn") == 0);
}

/* Newer files keep the rotary base in an object, which older ones scale by. */
static bool rope_read(struct qwen_config *c, json_t *j, const char *name,
		      struct err *e)
{
	json_t *rope = json_object_get(j, name), *v;
	const bool yarn = is_yarn(rope);
	char text[SHOWN_BYTES];
	const char *key;

	if (!rope || json_is_null(rope))
		return true;
	if (!json_is_object(rope))
		return err_set(e, ERR_INPUT, "\"%s\" is %s; wanted an object",
			       name, show_value(rope, text));
	json_object_foreach(rope, key, v)
		if (!rope_key_check(name, key, v, yarn, e))
			return false;
	return (real_read(rope, "rope_theta", 1, 1e12, &c->rope_theta, e) &&
		(!yarn || yarn_read(c, rope, e))) ||
	       err_wrap(e, "\"%s\"", name);
}

static bool config_read(struct qwen_config *c, json_t *j, struct err *e)
{
	if (!type_check(j, e) || !fixed_check(j, e))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(count_key); i++)
		if (!count_read(j, &count_key[i], c, e))
			return false;
	return experts_read(c, j, e) && engram_read(c, j, e) &&
	       shape_check(c, e) && layers_check(c, j, e) &&
	       bool_read(j, "tie_word_embeddings", &c->tied, e) &&
	       real_read(j, "rope_theta", 1, 1e12, &c->rope_theta, e) &&
	       rope_read(c, j, "rope_scaling", e) &&
	       rope_read(c, j, "rope_parameters", e) &&
	       real_read(j, "rms_norm_eps", 0, 1, &c->norm_eps, e) &&
	       stops_read(c, j, e) &&
	       qwen_packing_read(&c->packing,
				 json_object_get(j, "quantization_config"), e);
}

static bool generation_read(struct qwen_config *c, const json_t *j,
			    struct err *e)
{
	const json_t *v = json_object_get(j, "top_k");
	double top_k = 0;
	char text[SHOWN_BYTES];

	if (v && !json_is_null(v) && !json_is_integer(v))
		return err_set(e, ERR_INPUT, "\"top_k\" is %s; wanted a whole "
			       "number", show_value(v, text));
	if (!bool_read(j, "do_sample", &c->sample, e) ||
	    !real_read(j, "temperature", 0, 1e6, &c->temperature, e) ||
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

	if (access(dir, F_OK) != 0)
		return err_set(e, ERR_INPUT,
			       "%s: no such folder or file; "
			       "wanted a model: a GGUF file, or a folder with "
			       "config.json and safetensors (git clone "
			       "https://huggingface.co/Qwen/Qwen3-0.6B); "
			       "t0-qwen3 make writes a random one",
			       dir);
	if (qwen_is_hfq(dir))
		return qwen_hfq_config_load(c, dir, e);
	if (qwen_is_file(dir))
		return qwen_gguf_config_load(c, dir, e);
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
	uint64_t n = c->experts.n;
	uint64_t ffn = 3 * h * c->ffn * (n ? n : 1) + h * n;
	uint64_t layer = attention + ffn + 2 * h + 2 * d;

	uint64_t engram = c->engram.rows ? (2ull * c->engram.rows + 1) * h : 0;

	return c->layers * layer + h + h * c->vocab * (c->tied ? 1 : 2) +
	       engram;
}

bool qwen_config_stops(const struct qwen_config *c, uint32_t id)
{
	for (uint32_t i = 0; i < c->n_stops; i++)
		if (c->stop[i] == id)
			return true;
	return false;
}

double qwen_config_flop(const struct qwen_config *c, uint32_t n)
{
	double h = c->hidden, d = (double)c->heads * c->head_dim;
	double attention = h * (2 * d + 2. * c->kv_heads * c->head_dim);
	double pairs = n * (n + 1.) / 2; /* of a query and a key */
	double used = c->experts.n ? c->experts.used : 1;
	double ffn = 3 * h * c->ffn * used + h * c->experts.n;

	return 2 * (c->layers * (n * (attention + ffn) +
				 2 * d * pairs) + h * c->vocab);
}
