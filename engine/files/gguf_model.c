/*
 * engine/files/gguf_model.c - a Qwen3 model in a GGUF file: the names of its
 * tensors and the keys that say what it is.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/files/files_int.h"

/* ---- names ---- */

static const struct {
	const char *gguf, *folder;
} ends_name[] = {
	{ "token_embd", "model.embed_tokens" },
	{ "output_norm", "model.norm" },
	{ "output", "lm_head" },
}, layer_name[] = {
	{ "attn_norm", "input_layernorm" },
	{ "attn_q", "self_attn.q_proj" },
	{ "attn_k", "self_attn.k_proj" },
	{ "attn_v", "self_attn.v_proj" },
	{ "attn_output", "self_attn.o_proj" },
	{ "attn_q_norm", "self_attn.q_norm" },
	{ "attn_k_norm", "self_attn.k_norm" },
	{ "ffn_norm", "post_attention_layernorm" },
	{ "ffn_gate", "mlp.gate_proj" },
	{ "ffn_up", "mlp.up_proj" },
	{ "ffn_down", "mlp.down_proj" },
	{ "ffn_gate_inp", "mlp.gate" },
}, experts_name[] = { /* [experts] of them in one tensor */
	{ "ffn_gate_exps", "gate_proj" },
	{ "ffn_up_exps", "up_proj" },
	{ "ffn_down_exps", "down_proj" },
};

/* Is `s` = a, then b, then c? */
static bool is_joined(const char *s, const char *a, const char *b,
		      const char *c)
{
	size_t la = strlen(a), lb = strlen(b);

	return strncmp(s, a, la) == 0 && strncmp(s + la, b, lb) == 0 &&
	       strcmp(s + la + lb, c) == 0;
}

/* The number of a layer behind `begin`, and what follows its point. */
static const char *skip_layer(const char *name, const char *begin, int *layer)
{
	size_t n = strlen(begin);
	char *end;

	if (strncmp(name, begin, n) != 0 || name[n] < '0' || name[n] > '9')
		return NULL;
	unsigned long i = strtoul(name + n, &end, 10);
	*layer = (int)i;
	/* Written as the number is: not 007. */
	char text[16];
	snprintf(text, sizeof(text), "%lu.", i);
	return i < 100000 && strncmp(name + n, text, strlen(text)) == 0 ?
		       end + 1 : NULL;
}

const char *qwen_gguf_rename(struct arena *mem, const char *name, bool to_gguf)
{
	const char *begin = to_gguf ? "model.layers." : "blk.", *rest;
	int layer;

	for (size_t i = 0; i < ARRAY_SIZE(ends_name); i++)
		if (is_joined(name, to_gguf ? ends_name[i].folder :
					      ends_name[i].gguf, ".weight", ""))
			return arena_printf(mem, "%s.weight", to_gguf ?
					    ends_name[i].gguf :
					    ends_name[i].folder);
	rest = skip_layer(name, begin, &layer);
	for (size_t i = 0; rest && i < ARRAY_SIZE(layer_name); i++)
		if (is_joined(rest, to_gguf ? layer_name[i].folder :
					      layer_name[i].gguf, ".weight",
			      ""))
			return arena_printf(mem, "%s%d.%s.weight", to_gguf ?
					    "blk." : "model.layers.", layer,
					    to_gguf ? layer_name[i].gguf :
						      layer_name[i].folder);
	return NULL;
}

/* What the matrix of expert `i` in this tensor is called in folders, or NULL. */
static const char *expert_name(struct arena *mem, const struct qwen_tensor *t,
			       uint64_t i)
{
	int layer;
	const char *rest = t->n_dims == 3 ? skip_layer(t->name, "blk.",
						       &layer) : NULL;

	for (size_t k = 0; rest && k < ARRAY_SIZE(experts_name); k++)
		if (is_joined(rest, experts_name[k].gguf, ".weight", ""))
			return arena_printf(mem, "model.layers.%d.mlp.experts."
					    "%llu.%s.weight", layer,
					    (unsigned long long)i,
					    experts_name[k].folder);
	return NULL;
}

const char *qwen_expert_name(struct arena *mem, uint32_t layer, uint32_t expert,
			     int part)
{
	return arena_printf(mem, "model.layers.%u.mlp.experts.%u.%s", layer,
			    expert, experts_name[part].folder);
}

const char *qwen_gguf_experts_name(struct arena *mem, uint32_t layer, int part)
{
	return arena_printf(mem, "blk.%u.%s.weight", layer,
			    experts_name[part].gguf);
}

#define MATRICES_MAX (1 << 22)

/* Tensors of all experts become matrices of each. */
static bool experts_split(struct qwen_tensors *t, struct err *e)
{
	size_t n = 0, all = 0;

	for (size_t i = 0; i < t->n_tensors; i++) {
		const struct qwen_tensor *x = &t->tensor[i];
		bool joined = expert_name(&t->mem, x, 0) != NULL;
		if (joined && (x->shape[0] < 1 ||
			       x->shape[0] > QWEN_EXPERTS_MAX))
			return err_set(e, ERR_INPUT, "%s: tensor %s is of %llu "
				       "experts; wanted 1 to %d", x->file,
				       x->name, (unsigned long long)x->shape[0],
				       QWEN_EXPERTS_MAX);
		all += joined ? x->shape[0] : 1;
		if (all > MATRICES_MAX)
			return err_set(e, ERR_INPUT, "%s: wanted at most %d "
				       "matrices, of experts and others",
				       x->file, MATRICES_MAX);
	}
	struct qwen_tensor *to = xcalloc(all + 1, sizeof(*to));
	for (size_t i = 0; i < t->n_tensors; i++) {
		const struct qwen_tensor *x = &t->tensor[i];
		const uint64_t experts =
			expert_name(&t->mem, x, 0) ? x->shape[0] : 1;
		for (uint64_t k = 0; k < experts; k++, n++) {
			to[n] = *x;
			if (!expert_name(&t->mem, x, 0))
				continue;
			to[n].name = expert_name(&t->mem, x, k);
			to[n].n_dims = 2;
			to[n].shape[0] = x->shape[1];
			to[n].shape[1] = x->shape[2];
			to[n].count = x->count / experts;
			to[n].size_bytes = x->size_bytes / experts;
			to[n].offset = x->offset + k * to[n].size_bytes;
			to[n].data = (const char *)x->data +
				     k * to[n].size_bytes;
		}
	}
	free(t->tensor);
	t->tensor = to;
	t->n_tensors = all;
	return true;
}

bool qwen_gguf_tensors(struct qwen_tensors *t, const char *path, struct err *e)
{
	struct qwen_gguf g;

	*t = (struct qwen_tensors){ 0 };
	if (!qwen_gguf_open(&g, path, e))
		return false;
	free(g.value);
	*t = g.t;
	if (!experts_split(t, e)) {
		qwen_tensors_close(t);
		return false;
	}
	for (size_t i = 0; i < t->n_tensors; i++) {
		const char *name = qwen_gguf_rename(
			&t->mem, t->tensor[i].name, false);
		/* What is left as it is will have no place in the model. */
		t->tensor[i].name = name ? name : t->tensor[i].name;
	}
	if (qwen_tensors_sort(t, e))
		return true;
	qwen_tensors_close(t);
	return false;
}

/* ---- what the model is ---- */

/* Keys behind "qwen3." or "qwen3moe.", in the order of config.json's. */
struct number_key {
	const char *gguf, *json;
	bool real;
};
static const struct number_key config_key[] = {
	{ "block_count", "num_hidden_layers", false },
	{ "embedding_length", "hidden_size", false },
	{ "attention.head_count", "num_attention_heads", false },
	{ "attention.head_count_kv", "num_key_value_heads", false },
	{ "attention.key_length", "head_dim", false },
	{ "feed_forward_length", "intermediate_size", false },
	{ "context_length", "max_position_embeddings", false },
	{ "rope.freq_base", "rope_theta", true },
	{ "attention.layer_norm_rms_epsilon", "rms_norm_eps", true },
}, expert_key[] = {
	{ "expert_count", "num_experts", false },
	{ "expert_used_count", "num_experts_per_tok", false },
	{ "expert_feed_forward_length", "moe_intermediate_size", false },
}, yarn_key[] = {
	{ "rope.scaling.factor", "factor", true },
	{ "rope.scaling.original_context_length",
	  "original_max_position_embeddings", false },
	{ "rope.scaling.yarn_beta_fast", "beta_fast", true },
	{ "rope.scaling.yarn_beta_slow", "beta_slow", true },
}, generation_key[] = {
	{ "general.sampling.temp", "temperature", true },
	{ "general.sampling.top_k", "top_k", false },
	{ "general.sampling.top_p", "top_p", true },
	{ "general.sampling.min_p", "min_p", true },
	{ "general.sampling.penalty_repeat", "repetition_penalty", true },
};

static bool text_is(const struct qwen_gguf_value *v, const char *wanted)
{
	const uint8_t *at = NULL;
	const char *text;
	size_t len;

	return v && !v->array && qwen_gguf_text(v, &at, &text, &len) &&
	       len == strlen(wanted) && memcmp(text, wanted, len) == 0;
}

static bool is_mixture(const struct qwen_gguf *g)
{
	return text_is(qwen_gguf_find(g, "general.architecture"), "qwen3moe");
}

/* Behind the name of the architecture: what a key of this kind of model holds. */
static const struct qwen_gguf_value *model_key(const struct qwen_gguf *g,
					       const char *name)
{
	char key[96];

	snprintf(key, sizeof(key), "%s.%s",
		 is_mixture(g) ? "qwen3moe" : "qwen3", name);
	return qwen_gguf_find(g, key);
}

/* Adds a key's number; false if it is there and is none. */
static bool number_add(json_t *to, const struct qwen_gguf_value *v, bool real,
		       const char *name, struct err *e)
{
	int64_t whole = 0;
	double x = 0;

	if (v->array || !(real ? qwen_gguf_real(v, 0, &x) :
				 qwen_gguf_int(v, 0, &whole)))
		return err_set(e, ERR_INPUT, "%s is not a%s number", v->key,
			       real ? "" : " whole");
	json_object_set_new(to, name, real ? json_real(x) :
					     json_integer(whole));
	return true;
}

/* What the engine would compute wrongly. */
static bool kind_check(const struct qwen_gguf *g, struct err *e)
{
	const struct qwen_gguf_value *v =
		qwen_gguf_find(g, "general.architecture");
	int64_t a, b;

	if (!text_is(v, "qwen3") && !is_mixture(g))
		return err_set(e, ERR_UNSUPPORTED, "general.architecture is "
			       "neither \"qwen3\" nor \"qwen3moe\": this "
			       "engine knows only Qwen3 models");
	v = model_key(g, "rope.scaling.type");
	if (v && !text_is(v, "none") && !text_is(v, "yarn"))
		return err_set(e, ERR_UNSUPPORTED, "rope.scaling.type is "
			       "neither \"none\" nor \"yarn\"; this engine "
			       "knows no other");
	v = model_key(g, "attention.sliding_window");
	if (v && (!qwen_gguf_int(v, 0, &a) || a))
		return err_set(e, ERR_UNSUPPORTED, "there is an "
			       "attention.sliding_window; this engine "
			       "knows only models without it");
	const struct qwen_gguf_value *k =
		model_key(g, "attention.key_length");
	v = model_key(g, "attention.value_length");
	if (k && v && qwen_gguf_int(k, 0, &a) && qwen_gguf_int(v, 0, &b) &&
	    a != b)
		return err_set(e, ERR_UNSUPPORTED, "keys of %lld beside values "
			       "of %lld; this engine wants them alike",
			       (long long)a, (long long)b);
	return true;
}

static bool yarn_add(const struct qwen_gguf *g, json_t *config, struct err *e)
{
	const struct qwen_gguf_value *v;
	double factor, attention;

	if (!text_is(model_key(g, "rope.scaling.type"), "yarn"))
		return true;
	json_t *rope = json_pack("{s:s}", "rope_type", "yarn");
	json_object_set_new(config, "rope_scaling", rope);
	for (size_t i = 0; i < ARRAY_SIZE(yarn_key); i++) {
		v = model_key(g, yarn_key[i].gguf);
		if (v && !number_add(rope, v, yarn_key[i].real,
				     yarn_key[i].json, e))
			return false;
	}
	/* By what follows from the factor. */
	v = model_key(g, "rope.scaling.attn_factor");
	factor = json_number_value(json_object_get(rope, "factor"));
	if (v && factor >= 1 && qwen_gguf_real(v, 0, &attention))
		json_object_set_new(rope, "attention_factor", json_real(
			attention * (0.1 * log(factor) + 1)));
	return true;
}

/* The tokens that end a text: of a turn, too. */
static bool stops_add(const struct qwen_gguf *g, json_t *to, struct err *e)
{
	static const char *const key[] = { "tokenizer.ggml.eos_token_id",
					   "tokenizer.ggml.eot_token_id" };
	json_t *list = json_array();
	int64_t id;

	json_object_set_new(to, "eos_token_id", list);
	for (size_t i = 0; i < ARRAY_SIZE(key); i++) {
		const struct qwen_gguf_value *v = qwen_gguf_find(g, key[i]);
		if (v && !qwen_gguf_int(v, 0, &id))
			return err_set(e, ERR_INPUT, "%s is not a whole "
				       "number", key[i]);
		if (v)
			json_array_append_new(list, json_integer(id));
	}
	return true;
}

static bool sizes_add(const struct qwen_gguf *g, json_t *to, struct err *e)
{
	const struct qwen_tensor *embed =
		qwen_tensor_find(&g->t, "token_embd.weight");

	if (!embed || embed->n_dims != 2 || embed->shape[0] > INT32_MAX)
		return err_set(e, ERR_INPUT, "tensor token_embd.weight is "
			       "missing, or no matrix");
	json_object_set_new(to, "vocab_size",
			    json_integer((json_int_t)embed->shape[0]));
	json_object_set_new(to, "tie_word_embeddings", json_boolean(
		!qwen_tensor_find(&g->t, "output.weight")));
	json_object_set_new(to, "model_type", json_string(
		is_mixture(g) ? "qwen3_moe" : "qwen3"));
	json_object_set_new(to, "hidden_act", json_string("silu"));
	return true;
}

static bool numbers_add(const struct qwen_gguf *g, const struct number_key *key,
			size_t n, json_t *to, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		const struct qwen_gguf_value *v = model_key(g, key[i].gguf);
		if (!v && !key[i].real && strcmp(key[i].json, "head_dim") != 0)
			return err_set(e, ERR_INPUT, "key %s.%s is missing",
				       is_mixture(g) ? "qwen3moe" : "qwen3",
				       key[i].gguf);
		if (v && !number_add(to, v, key[i].real, key[i].json, e))
			return false;
	}
	return true;
}

/* Such files do not say it: theirs are made to sum to 1. */
static bool experts_add(const struct qwen_gguf *g, json_t *config,
			struct err *e)
{
	json_object_set_new(config, "norm_topk_prob", json_true());
	return !is_mixture(g) ||
	       numbers_add(g, expert_key, ARRAY_SIZE(expert_key), config, e);
}

static bool keys_add(const struct qwen_gguf *g, json_t *config,
		     json_t *generation, struct err *e)
{
	if (!numbers_add(g, config_key, ARRAY_SIZE(config_key), config, e) ||
	    !experts_add(g, config, e))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(generation_key); i++) {
		const struct qwen_gguf_value *v =
			qwen_gguf_find(g, generation_key[i].gguf);
		if (v && !number_add(generation, v, generation_key[i].real,
				     generation_key[i].json, e))
			return false;
	}
	/* Who says how to sample wants it. */
	json_object_set_new(generation, "do_sample", json_boolean(
		json_object_get(generation, "temperature") != NULL));
	return yarn_add(g, config, e) && stops_add(g, generation, e);
}

bool qwen_gguf_config(struct qwen_config *c, const struct qwen_gguf *g,
		      struct err *e)
{
	json_t *config = json_object(), *generation = json_object();
	bool ok = kind_check(g, e) && sizes_add(g, config, e) &&
		  keys_add(g, config, generation, e);

	if (ok) {
		char *a = json_dumps(config, 0), *b = json_dumps(generation, 0);
		ok = qwen_config_parse(c, a, b, e) ||
		     err_wrap(e, "its keys as those of a folder");
		free(a);
		free(b);
	}
	json_decref(config);
	json_decref(generation);
	return ok;
}

bool qwen_gguf_config_load(struct qwen_config *c, const char *path,
			   struct err *e)
{
	struct qwen_gguf g;

	if (!qwen_gguf_open(&g, path, e))
		return false;
	bool ok = qwen_gguf_config(c, &g, e) || err_wrap(e, "%s", path);
	qwen_gguf_close(&g);
	return ok;
}
