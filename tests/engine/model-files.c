/* The files of a model: what is read, and what is refused and how. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/files/files.h"
#include "tests/tap.h"

/* ---- safetensors ---- */

/* A file of this header and `data_bytes` of 0, 1, 2 ... */
static char *file_make(const char *header, size_t data_bytes, size_t *size)
{
	size_t pad = (8 - strlen(header) % 8) % 8;
	size_t n = strlen(header) + pad;
	char *f = xcalloc(1, 8 + n + data_bytes);

	for (int i = 0; i < 8; i++)
		f[i] = (char)(n >> 8 * i);
	memcpy(f + 8, header, strlen(header));
	memset(f + 8 + strlen(header), ' ', pad);
	for (size_t i = 0; i < data_bytes; i++)
		f[8 + n + i] = (char)i;
	*size = 8 + n + data_bytes;
	return f;
}

static void test_reads(void)
{
	struct qwen_tensors t;
	struct err e = { 0 };
	size_t size;
	char *f = file_make("{\"b\":{\"dtype\":\"F32\",\"shape\":[2,3],"
			    "\"data_offsets\":[8,32]},\"__metadata__\":{},"
			    "\"a\":{\"dtype\":\"BF16\",\"shape\":[4],"
			    "\"data_offsets\":[0,8]},"
			    "\"none\":{\"dtype\":\"I8\",\"shape\":[0,5],"
			    "\"data_offsets\":[32,32]}}", 32, &size);

	if (!ok(qwen_tensors_parse(&t, "f", f, size, &e), "a file is read"))
		diag("%s", e.msg);
	is_u64(t.n_tensors, 3, "with all its tensors");
	is_u64(t.total_bytes, 32, "and their bytes");
	const struct qwen_tensor *b = qwen_tensor_find(&t, "b");
	ok(b && b->dtype == QWEN_F32 && b->n_dims == 2 && b->shape[0] == 2 &&
	   b->shape[1] == 3 && b->count == 6, "type and shape are read");
	is_mem(b->data, "\x08\x09\x0a\x0b", 4, "its data are in place");
	ok(!qwen_tensor_find(&t, "c"), "what is not there is not found");
	uint64_t shape[] = { 3, 2 };
	ok(!qwen_tensor_require(&t, "b", 2, shape, &e), "another shape");
	has_str(e.msg, "tensor b has shape [2, 3], but config.json wants "
		"[3, 2]", "names both");
	ok(!qwen_tensor_require(&t, "c", 2, shape, &e), "a missing tensor");
	has_str(e.msg, "tensor c is missing", "is named");
	qwen_tensors_close(&t);
	free(f);
}

/* y begins at byte 2 of the data. */
static void test_unaligned(void)
{
	static const char header[] =
		"{\"x\":{\"dtype\":\"I8\",\"shape\":[2],\"data_offsets\":"
		"[0,2]},\"y\":{\"dtype\":\"F32\",\"shape\":[3],"
		"\"data_offsets\":[2,14]}}";
	size_t size;
	struct qwen_tensors t;
	struct err e = { 0 };
	char *f = file_make(header, 14, &size);

	if (!ok(qwen_tensors_parse(&t, "f", f, size, &e),
		"values that lie unaligned are read"))
		diag("%s", e.msg);
	const struct qwen_tensor *y = qwen_tensor_find(&t, "y");
	ok((uintptr_t)y->data % 4 == 0, "they are aligned in memory");
	is_mem(y->data, "\2\3\4\5\6\7\10\11\12\13\14\15", 12,
	       "and the same");
	is_mem(qwen_tensor_find(&t, "x")->data, "\0\1", 2, "as others are");
	qwen_tensors_close(&t);
	free(f);
}

#define ENTRY(dtype, shape, places) \
	"{\"x\":{\"dtype\":" dtype ",\"shape\":" shape \
	",\"data_offsets\":" places "}}"

/* A file of one broken header over 16 bytes of data, and what is said. */
static const struct {
	const char *what, *header, *part;
} broken[] = {
	{ "no object", "[]", "not a JSON object" },
	{ "half an object", "{\"x\":", "not a JSON object" },
	{ "a name twice", "{\"x\":{},\"x\":{}}", "not a JSON object" },
	{ "no type", "{\"x\":{\"shape\":[]}}", "tensor x: dtype is missing" },
	{ "an unknown type", ENTRY("\"F8\"", "[16]", "[0,16]"), "dtype is F8" },
	{ "a shape that is a number", ENTRY("\"I8\"", "16", "[0,16]"),
	  "not a list" },
	{ "nine dimensions", ENTRY("\"I8\"", "[1,1,1,1,1,1,1,1,16]", "[0,16]"),
	  "at most 8" },
	{ "a negative dimension", ENTRY("\"I8\"", "[-16]", "[0,16]"),
	  "dimension 0" },
	{ "a shape that overflows",
	  ENTRY("\"I8\"", "[4294967296,4294967296,4]", "[0,16]"),
	  "dimension 1" },
	{ "a byte count that overflows",
	  ENTRY("\"F64\"", "[4611686018427387904]", "[0,16]"), "needs" },
	{ "no place", ENTRY("\"I8\"", "[16]", "[0]"), "[begin, end]" },
	{ "a negative place", ENTRY("\"I8\"", "[16]", "[-1,15]"),
	  "[begin, end]" },
	{ "a place behind the file", ENTRY("\"I8\"", "[17]", "[0,17]"),
	  "leave the file, which has 16 bytes" },
	{ "an end before the begin", ENTRY("\"I8\"", "[0]", "[8,4]"), "leave" },
	{ "fewer bytes than the shape", ENTRY("\"F32\"", "[5]", "[0,16]"),
	  "has 16 bytes, but its shape needs 5 values of F32" },
	{ "a gap", ENTRY("\"I8\"", "[8]", "[8,16]"), "begins at byte 8" },
	{ "data of nobody", ENTRY("\"I8\"", "[8]", "[0,8]"),
	  "end at byte 8 of the data, which has 16" },
	{ "an overlap",
	  "{\"x\":{\"dtype\":\"I8\",\"shape\":[10],\"data_offsets\":[0,10]},"
	  "\"y\":{\"dtype\":\"I8\",\"shape\":[8],\"data_offsets\":[8,16]}}",
	  "tensor y begins at byte 8 of the data, but the one before it ends "
	  "at 10" },
};

static void test_broken(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		struct qwen_tensors t;
		struct err e = { 0 };
		size_t size;
		char *f = file_make(broken[i].header, 16, &size);
		ok(!qwen_tensors_parse(&t, "f.st", f, size, &e) &&
		   e.code == ERR_INPUT, "%s is refused", broken[i].what);
		has_str(e.msg, broken[i].part, "%s: says what", broken[i].what);
		has_str(e.msg, "f.st: ", "%s: names the file", broken[i].what);
		free(f);
	}
}

static void test_lengths(void)
{
	struct qwen_tensors t;
	struct err e = { 0 };
	size_t size;
	char *f = file_make("{}", 0, &size);

	ok(qwen_tensors_parse(&t, "f", f, size, &e), "no tensor at all");
	qwen_tensors_close(&t);
	for (size_t n = 0; n < size; n++)
		if (qwen_tensors_parse(&t, "f", f, n, &e))
			break;
		else
			is_i64(e.code, ERR_INPUT, "cut to %zu bytes", n);
	memset(f, 0xff, 8);
	ok(!qwen_tensors_parse(&t, "f", f, size, &e), "a header of 2^64 bytes");
	has_str(e.msg, "18446744073709551615", "is told with its length");
	free(f);
}

static void put(const char *dir, const char *name, const void *data, size_t n)
{
	struct buf path = { 0 };
	struct err e = { 0 };

	buf_printf(&path, "%s/%s", dir, name);
	file_write_atomic(path.data, data, n, &e);
	buf_fini(&path);
}

static void index_put(const char *dir, const char *text)
{
	put(dir, "model.safetensors.index.json", text, strlen(text));
}

static void index_refused(const char *dir, const char *text, const char *part,
			  const char *name)
{
	struct qwen_tensors t;
	struct err e = { 0 };

	index_put(dir, text);
	ok(!qwen_tensors_open(&t, dir, &e), "%s is refused", name);
	has_str(e.msg, part, "%s: says why", name);
}

static void test_shards(void)
{
	char dir[] = "/tmp/t0-shards-XXXXXX", cmd[64];
	struct qwen_tensors t;
	struct err e = { 0 };
	size_t size;
	char *a, *b;

	if (!ok(mkdtemp(dir) != NULL, "a folder"))
		return;
	ok(!qwen_tensors_open(&t, dir, &e), "an empty folder is refused");
	has_str(e.msg, "make-model", "with what to do");
	a = file_make(ENTRY("\"I8\"", "[16]", "[0,16]"), 16, &size);
	put(dir, "one.st", a, size);
	b = file_make("{\"y\":{\"dtype\":\"I8\",\"shape\":[4],"
		      "\"data_offsets\":[0,4]}}", 4, &size);
	put(dir, "two.st", b, size);
	index_put(dir, "{\"weight_map\":{\"x\":\"one.st\",\"y\":\"two.st\"}}");
	if (!ok(qwen_tensors_open(&t, dir, &e), "two shards are opened"))
		diag("%s", e.msg);
	is_u64(t.n_tensors, 2, "with the tensors of both");
	is_u64(t.n_maps, 2, "each mapped once");
	qwen_tensors_close(&t);
	index_refused(dir, "{\"weight_map\":{\"x\":\"../one.st\"}}",
		      "not the name of a file", "a path out of the folder");
	index_refused(dir, "{\"weight_map\":{\"x\":\"three.st\"}}",
		      "three.st: cannot be opened", "a shard that is missing");
	index_refused(dir, "{\"weight_map\":{\"z\":\"one.st\"}}",
		      "tensor z is not in one.st", "a tensor that is missing");
	index_refused(dir, "{\"weight_map\":{\"y\":\"one.st\","
			   "\"x\":\"two.st\"}}",
		      "but the index has it in", "shards exchanged");
	index_refused(dir, "{\"weight_map\":7}", "no object", "no map");
	put(dir, "three.st", a, 8 + strlen(ENTRY("\"I8\"", "[16]", "[0,16]")) +
	    (8 - strlen(ENTRY("\"I8\"", "[16]", "[0,16]")) % 8) % 8 + 16);
	index_refused(dir, "{\"weight_map\":{\"x\":\"one.st\","
			   "\"w\":\"three.st\"}}",
		      "is in", "a tensor in two shards");
	snprintf(cmd, sizeof(cmd), "rm -r '%s'", dir);
	ok(system(cmd) == 0, "the folder goes");
	free(a);
	free(b);
}

/* ---- config.json ---- */

/* Qwen3-0.6B as published. */
#define SHAPE "\"model_type\":\"qwen3\",\"hidden_act\":\"silu\"," \
	"\"num_hidden_layers\":28,\"hidden_size\":1024," \
	"\"num_attention_heads\":16,\"num_key_value_heads\":8," \
	"\"head_dim\":128,\"intermediate_size\":3072,\"vocab_size\":151936," \
	"\"max_position_embeddings\":40960,\"rms_norm_eps\":1e-06"
#define BASE  SHAPE ",\"tie_word_embeddings\":true"
#define FULL9 FULL3 FULL3 FULL3
#define FULL3 FULL FULL FULL
#define FULL  "\"full_attention\","

static void test_config(void)
{
	struct qwen_config c;
	struct err e = { 0 };

	if (!ok(qwen_config_parse(&c, "{" BASE ",\"rope_theta\":1000000,"
				  "\"eos_token_id\":151645,"
				  "\"rope_scaling\":null}",
				  "{\"do_sample\":true,\"temperature\":0.6,"
				  "\"top_k\":20,\"top_p\":0.95,"
				  "\"eos_token_id\":[151645,151643]}", &e),
		"Qwen3-0.6B is read"))
		diag("%s", e.msg);
	is_u64(c.layers, 28, "layers");
	is_u64(c.kv_heads, 8, "key-value heads");
	is_f64(c.rope_theta, 1e6, "rotary base");
	is_f64(c.temperature, 0.6, "temperature");
	is_u64(c.top_k, 20, "top k");
	is_u64(c.n_stops, 2, "a stop token in both files counts once");
	/* Published: 0.6 B parameters, of which 0.44 B are not embeddings. */
	is_u64(qwen_config_params(&c), 596049920, "its parameters");
	ok(qwen_config_parse(&c, "{" BASE ",\"rope_parameters\":{\"rope_theta\""
			     ":5000000,\"rope_type\":\"default\"}}", NULL, &e),
	   "the rotary base in an object of its own");
	is_f64(c.rope_theta, 5e6, "is found there");
	ok(qwen_config_parse(&c, "{" BASE ",\"rope_theta\":1000000,"
			     "\"rope_scaling\":{\"rope_type\":\"default\"},"
			     "\"layer_types\":[" FULL9 FULL9 FULL9
			     "\"full_attention\"]}", NULL, &e),
	   "what is said and changes nothing is read");
	is_f64(c.rope_theta, 1e6, "with its base");
	is_f64(c.temperature, 1, "without generation_config.json: no change");
}

static const struct {
	const char *what, *config, *part;
} bad_config[] = {
	{ "an empty file", "", "config.json: line" },
	{ "a list", "[]", "not a JSON object" },
	{ "NaN", "{" BASE ",\"rope_theta\":NaN}", "config.json: line 1" },
	{ "an infinite number", "{" BASE ",\"rope_theta\":1e999}", "line 1" },
	{ "a rotary base of zero", "{" BASE ",\"rope_theta\":0}",
	  "\"rope_theta\" is 0; wanted a number from 1 to 1e+12" },
	{ "a text for a number", "{" BASE ",\"rms_norm_eps2\":1,"
	  "\"rope_theta\":\"x\"}", "\"rope_theta\"" },
	{ "another model", "{\"model_type\":\"llama\"}",
	  "\"model_type\" is \"llama\"; wanted \"qwen3\" or \"qwen3_moe\"" },
	{ "rotary scaling", "{" BASE ",\"rope_scaling\":{\"type\":\"yarn\"}}",
	  "\"rope_scaling\": \"yarn\" without \"factor\"" },
	{ "YaRN of a factor below one", "{" BASE ",\"rope_scaling\":{\"type\":"
	  "\"yarn\",\"factor\":0.5}}", "\"factor\" is 0.5" },
	{ "YaRN of another formula", "{" BASE ",\"rope_scaling\":{\"type\":"
	  "\"yarn\",\"factor\":4.0,\"mscale\":1.0}}", "has \"mscale\"" },
	{ "rotary scaling in an object of its own",
	  "{" BASE ",\"rope_parameters\":{\"rope_theta\":1e6,"
	  "\"rope_type\":\"linear\"}}",
	  "\"rope_parameters\" has \"rope_type\": \"linear\"" },
	{ "a factor without a type",
	  "{" BASE ",\"rope_parameters\":{\"factor\":4.0}}",
	  "\"rope_parameters\" has \"factor\": 4.0" },
	{ "rotary embeddings by kind of layer",
	  "{" BASE ",\"rope_parameters\":{\"full_attention\":{}}}",
	  "\"rope_parameters\" has \"full_attention\"" },
	{ "a list of rotary parameters", "{" BASE ",\"rope_parameters\":[]}",
	  "\"rope_parameters\" is []; wanted an object" },
	{ "a rotary base of zero in an object",
	  "{" BASE ",\"rope_parameters\":{\"rope_theta\":0}}",
	  "\"rope_parameters\": \"rope_theta\" is 0" },
	{ "attention bias", "{" BASE ",\"attention_bias\":true}",
	  "\"attention_bias\" is true" },
	{ "a layer that slides", "{\"layer_types\":[" FULL9 FULL9 FULL9
	  "\"sliding_attention\"]," BASE "}",
	  "\"sliding_attention\" for layer 27" },
	{ "too few kinds of layers", "{" BASE ",\"layer_types\":[]}",
	  "\"layer_types\" is []; wanted a list of 28" },
	{ "a text for a truth", "{\"tie_word_embeddings\":\"false\"," SHAPE "}",
	  "\"tie_word_embeddings\" is \"false\"; wanted true or false" },
	{ "a missing key", "{\"model_type\":\"qwen3\",\"hidden_act\":\"silu\"}",
	  "\"num_hidden_layers\" is missing" },
	{ "a stop token beyond the vocabulary",
	  "{" BASE ",\"eos_token_id\":151936}", "from 0 to 151935" },
	{ "no layers", "{\"model_type\":\"qwen3\",\"hidden_act\":\"silu\","
	  "\"num_hidden_layers\":0}", "is 0; wanted 1 to 1024" },
	{ "heads that do not divide",
	  "{\"model_type\":\"qwen3\",\"hidden_act\":\"silu\","
	  "\"num_hidden_layers\":1,\"hidden_size\":64,"
	  "\"num_attention_heads\":4,\"num_key_value_heads\":3,"
	  "\"intermediate_size\":8,\"vocab_size\":9,"
	  "\"max_position_embeddings\":10}", "4 query heads cannot share 3" },
};

static void test_bad_config(void)
{
	struct qwen_config c;

	for (size_t i = 0; i < ARRAY_SIZE(bad_config); i++) {
		struct err e = { 0 };
		ok(!qwen_config_parse(&c, bad_config[i].config, NULL, &e),
		   "%s is refused", bad_config[i].what);
		has_str(e.msg, bad_config[i].part, "%s: says why",
			bad_config[i].what);
	}
	struct err e = { 0 };
	ok(!qwen_config_parse(&c, "{" BASE "}", "{\"top_p\":2}", &e),
	   "a probability of 2 is refused");
	has_str(e.msg, "generation_config.json: \"top_p\"", "with its file");
	ok(!qwen_config_parse(&c, "{" BASE "}", "{\"top_k\":2.5}", &e),
	   "half a token is refused");
	has_str(e.msg, "\"top_k\" is 2.5; wanted a whole number", "and shown");
	ok(!qwen_config_parse(&c, "{" BASE "}", "{\"do_sample\":1}", &e),
	   "a number for a truth is refused");
	has_str(e.msg, "\"do_sample\" is 1; wanted true or false", "as well");
}

int main(void)
{
	test_reads();
	test_unaligned();
	test_broken();
	test_lengths();
	test_shards();
	test_config();
	test_bad_config();
	return plan_done();
}
