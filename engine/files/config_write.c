/*
 * engine/files/config_write.c - config.json and generation_config.json,
 * written; files of a model's folder in another.
 */
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/files/files.h"

static void add_json(struct buf *out, json_t *j)
{
	char *text = json_dumps(j, JSON_INDENT(2));

	buf_adds(out, text);
	free(text);
	json_decref(j);
}

/* The tokens that end a text, one by itself. */
static json_t *stops_json(const struct qwen_config *c)
{
	json_t *list = json_array();

	if (c->n_stops == 1) {
		json_decref(list);
		return json_integer(c->stop[0]);
	}
	for (uint32_t i = 0; i < c->n_stops; i++)
		json_array_append_new(list, json_integer(c->stop[i]));
	return list;
}

void qwen_config_print(const struct qwen_config *c, struct buf *config,
		       struct buf *generation)
{
	json_t *j = json_pack(
		"{s:[s], s:s, s:s, s:b, s:i, s:i, s:i, s:i, s:i, s:i, s:i, "
		"s:i, s:f, s:f, s:b, s:b, s:n}",
		"architectures", c->experts.n ? "Qwen3MoeForCausalLM" :
						"Qwen3ForCausalLM",
		"model_type", c->experts.n ? "qwen3_moe" : "qwen3",
		"hidden_act", "silu", "attention_bias", 0,
		"num_hidden_layers", (int)c->layers,
		"hidden_size", (int)c->hidden,
		"num_attention_heads", (int)c->heads,
		"num_key_value_heads", (int)c->kv_heads,
		"head_dim", (int)c->head_dim, "intermediate_size", (int)c->ffn,
		"vocab_size", (int)c->vocab,
		"max_position_embeddings", (int)c->max_positions,
		"rope_theta", c->rope_theta, "rms_norm_eps", c->norm_eps,
		"tie_word_embeddings", (int)c->tied,
		"use_sliding_window", 0, "rope_scaling");

	if (c->experts.n)
		json_object_update_new(j, json_pack(
			"{s:i, s:i, s:i, s:b, s:i, s:[]}", "num_experts",
			(int)c->experts.n, "num_experts_per_tok",
			(int)c->experts.used, "moe_intermediate_size",
			(int)c->ffn, "norm_topk_prob", (int)c->experts.normed,
			"decoder_sparse_step", 1, "mlp_only_layers"));
	if (c->engram.rows)
		json_object_set_new(j, "t0_engram",
				    json_pack("{s:i, s:i}", "rows",
					      (int)c->engram.rows, "layer",
					      (int)c->engram.layer));
	if (c->yarn.factor > 0)
		json_object_set_new(j, "rope_scaling", json_pack(
			"{s:s, s:f, s:i, s:f, s:f, s:f}", "rope_type", "yarn",
			"factor", c->yarn.factor,
			"original_max_position_embeddings",
			(int)c->yarn.positions, "beta_fast", c->yarn.fast,
			"beta_slow", c->yarn.slow, "attention_factor",
			c->yarn.attention));
	if (c->n_stops)
		json_object_set_new(j, "eos_token_id",
				    json_integer(c->stop[0]));
	add_json(config, j);
	j = json_pack("{s:b}", "do_sample", (int)c->sample);
	if (c->sample) {
		json_object_set_new(j, "temperature",
				    json_real(c->temperature));
		json_object_set_new(j, "top_k", json_integer(c->top_k));
		json_object_set_new(j, "top_p", json_real(c->top_p));
	}
	if (c->sample && c->min_p > 0)
		json_object_set_new(j, "min_p", json_real(c->min_p));
	if (c->repetition_penalty != 1)
		json_object_set_new(j, "repetition_penalty",
				    json_real(c->repetition_penalty));
	if (c->n_stops)
		json_object_set_new(j, "eos_token_id", stops_json(c));
	add_json(generation, j);
}

bool qwen_text_write(const char *dir, const char *name, const struct buf *text,
		     struct err *e)
{
	struct buf path = { 0 };

	buf_printf(&path, "%s/%s", dir, name);
	bool ok = file_write_atomic(path.data, text->data, text->len, e);
	buf_fini(&path);
	return ok;
}

void qwen_file_remove(const char *dir, const char *name)
{
	struct buf path = { 0 };

	buf_printf(&path, "%s/%s", dir, name);
	unlink(path.data);
	buf_fini(&path);
}

bool qwen_file_copy(const char *from, const char *dir, const char *name,
		    bool *there, struct err *e)
{
	struct buf path = { 0 }, text = { 0 };

	buf_printf(&path, "%s/%s", from, name);
	const bool found = access(path.data, R_OK) == 0;
	const bool ok = !found || (file_read(path.data, 0, &text, e) &&
				   qwen_text_write(dir, name, &text, e));

	if (!found)
		qwen_file_remove(dir, name);
	if (there)
		*there = found;
	buf_fini(&path);
	buf_fini(&text);
	return ok;
}

bool qwen_json_write(const char *dir, const char *name, json_t *j,
		     struct err *e)
{
	struct buf text = { 0 };

	add_json(&text, j);
	bool ok = qwen_text_write(dir, name, &text, e);
	buf_fini(&text);
	return ok;
}

bool qwen_config_write(const struct qwen_config *c, const char *dir,
		       struct err *e)
{
	struct buf config = { 0 }, generation = { 0 };

	qwen_config_print(c, &config, &generation);
	bool ok = qwen_text_write(dir, "config.json", &config, e) &&
		  qwen_text_write(dir, "generation_config.json", &generation,
				  e);
	buf_fini(&config);
	buf_fini(&generation);
	return ok;
}
