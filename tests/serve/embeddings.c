/*
 * Embeddings that t0-qwen3 serve tells, against a model in double precision
 * (tests/ref/qwen.h), on the processor and on a gfx1100 in software.
 */
#include "engine/text/text.h"
#include "tests/ref/qwen.h"
#include "tests/serve/client.h"

static const char path[] = "/v1/embeddings";
static struct served served;
static struct qwen_tokenizer *tok;
static struct ref ref;

/* The embedding of ids[n], of length 1: [hidden]. */
static double *want_vector(const uint32_t *ids, int n, bool mean)
{
	double *v = ref_hidden(&ref, ids, n), sum = 0;
	double *out = xcalloc((size_t)ref.hidden, sizeof(*out));

	for (int i = 0; i < ref.hidden; i++) {
		for (int t = mean ? 0 : n - 1; t < n; t++)
			out[i] += v[(size_t)t * (size_t)ref.hidden + (size_t)i];
		sum += out[i] * out[i];
	}
	for (int i = 0; i < ref.hidden; i++)
		out[i] /= sqrt(sum);
	free(v);
	return out;
}

static double distance_to(json_t *got, const uint32_t *ids, int n, bool mean)
{
	double *want = want_vector(ids, n, mean), most = 0;

	if (json_array_size(got) != (size_t)ref.hidden)
		most = INFINITY;
	for (int i = 0; i < ref.hidden; i++)
		most = fmax(most, fabs(json_number_value(
					       json_array_get(got, (size_t)i)) -
				       want[i]));
	free(want);
	return most;
}

/* Texts of several lengths, longer than a piece, at once. */
static void test_texts(bool mean, bool end, const char *name)
{
	static const char *const text[] = {
		"a", "The program",
		"Where it is said that all of it is free, "
		"one may look again: it is not so, and "
		"never was. \xc3\xa4\xf0\x9f\x99\x82"
	};
	struct qwen_encoder *x = qwen_encoder_new(tok);
	long status;
	json_t *got = ask_json(&served, path,
			       json_pack("{s:s,s:[s,s,s]}", "model", "m",
					 "input", text[0], text[1], text[2]),
			       &status);
	double most = 0;
	size_t all = 0;

	for (size_t i = 0; i < 3; i++) {
		struct qwen_ids ids = { 0 };
		struct err e = { 0 };
		char at[32];
		snprintf(at, sizeof(at), "data.%zu.embedding", i);
		qwen_encode(x, text[i], strlen(text[i]), 0, &ids, &e);
		if (end)
			qwen_ids_add(&ids, (uint32_t)qwen_token_find(
						   tok, "<|endoftext|>"));
		most = fmax(most, distance_to(get_at(got, at), ids.v,
					      (int)ids.n, mean));
		all += ids.n;
		qwen_ids_fini(&ids);
	}
	ok(status == 200 && most < 2e-5,
	   "%s: three texts are within 2e-5 of double precision: %g", name,
	   most);
	is_i64(json_integer_value(get_at(got, "usage.prompt_tokens")),
	       (int64_t)all, "%s: all tokens are counted", name);
	is_i64(json_integer_value(get_at(got, "usage.total_tokens")),
	       (int64_t)all, "%s: and none follow", name);
	qwen_encoder_free(x);
	json_decref(got);
}

static void test_ids(bool mean, const char *name)
{
	static const uint32_t ids[2][5] = { { 5, 300, 17, 17, 256 },
					    { 1, 2, 3, 4, 99 } };
	json_t *list[2], *got;
	long status;
	double most = 0;

	for (int i = 0; i < 2; i++)
		list[i] = json_pack("[i,i,i,i,i]", ids[i][0], ids[i][1],
				    ids[i][2], ids[i][3], ids[i][4]);
	got = ask_json(&served, path, json_pack("{s:O}", "input", list[0]),
		       &status);
	most = distance_to(get_at(got, "data.0.embedding"), ids[0], 5, mean);
	ok(most < 2e-5 && json_array_size(get_at(got, "data")) == 1,
	   "%s: one list of tokens: %g", name, most);
	json_decref(got);
	got = ask_json(&served, path,
		       json_pack("{s:[o,o]}", "input", list[0], list[1]),
		       &status);
	most = distance_to(get_at(got, "data.1.embedding"), ids[1], 5, mean);
	ok(most < 2e-5 && json_integer_value(get_at(got, "data.1.index")) == 1,
	   "%s: two lists of tokens: %g", name, most);
	json_decref(got);
}

/* By a table of what each digit means, made here. */
static size_t read_base64(const char *s, unsigned char *out)
{
	static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmno"
				    "pqrstuvwxyz0123456789+/";
	uint32_t bits = 0, have = 0;
	size_t n = 0;

	for (; *s && *s != '='; s++) {
		bits = bits << 6 | (uint32_t)(strchr(digit, *s) - digit);
		have += 6;
		if (have >= 8) {
			have -= 8;
			out[n++] = (unsigned char)(bits >> have);
		}
	}
	return n;
}

static void test_base64(void)
{
	long status;
	json_t *r = json_pack("{s:s}", "input", "The program");
	json_t *list = ask_json(&served, path, json_incref(r), &status), *coded;
	unsigned char bytes[4096];
	size_t n, same = 0;
	float v;

	json_object_set_new(r, "encoding_format", json_string("base64"));
	coded = ask_json(&served, path, r, &status);
	n = read_base64(text_at(coded, "data.0.embedding"), bytes);
	for (size_t i = 0; i < n / sizeof(v); i++) {
		memcpy(&v, bytes + i * sizeof(v), sizeof(v));
		same += v == (float)json_number_value(json_array_get(
				     get_at(list, "data.0.embedding"), i));
	}
	is_u64(n, (size_t)ref.hidden * sizeof(v), "base 64 has all bytes");
	is_u64(same, (size_t)ref.hidden, "which are the same numbers");
	json_decref(list);
	json_decref(coded);
}

static void test_refused(void)
{
	static const struct {
		const char *body, *param;
	} row[] = {
		{ "{}", "input" },
		{ "{\"input\":[]}", "input" },
		{ "{\"input\":\"\"}", "input" },
		{ "{\"input\":[[]]}", "input" },
		{ "{\"input\":[\"a\",3]}", "input" },
		{ "{\"input\":[1,100000]}", "input" },
		{ "{\"input\":\"a\",\"encoding_format\":\"hex\"}",
		  "encoding_format" },
		{ "{\"input\":\"a\",\"dimensions\":7}", "dimensions" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		long status;
		struct buf b = ask_text(&served, path, row[i].body, &status);
		json_t *j = json_loads(b.data, 0, NULL);
		ok(status == 400 &&
			   !strcmp(text_at(j, "error.param"), row[i].param),
		   "refused: %s", row[i].body);
		json_decref(j);
		buf_fini(&b);
	}
}

int main(void)
{
	static const char *const how[][12] = {
		{ "--cache", "f32", "--chunk", "16", NULL },
		{ "--cache", "f32", "--chunk", "16", "--pooling", "mean",
		  NULL },
		{ "--cache", "f32", "--pooling", "mean", "--backend", "gpu",
		  "--device", "soft", "-w", "f32", "--context", "128" },
		{ "--cache", "f32", "--pooling", "end", NULL },
	};
	static const char *const name[] = { "last", "mean", "gfx1100", "end" };
	struct err e = { 0 };
	char model[64];

	model_make(&served);
	snprintf(model, sizeof(model), "%s/model", served.dir);
	tok = qwen_tokenizer_load(model, &e);
	ref_open(&ref, model);
	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		const char *args[ARRAY_SIZE(how[0]) + 1] = { NULL };
		memcpy(args, how[i], sizeof(how[i]));
		if (!ok(server_start(&served, args), "%s: it starts", name[i]))
			break;
		test_texts(strcmp(name[i], "last") && strcmp(name[i], "end"),
			   !strcmp(name[i], "end"), name[i]);
		test_ids(strcmp(name[i], "last") && strcmp(name[i], "end"),
			 name[i]);
		if (i == 0) {
			test_base64();
			test_refused();
		}
		ok(server_end(&served), "%s: it ends", name[i]);
	}
	ref_close(&ref);
	qwen_tokenizer_free(tok);
	model_remove(&served);
	return plan_done();
}
