/*
 * engine/train/folder.c - weights from and to a Hugging Face folder.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/train/kernels.h"

static size_t count_of(const struct train_param *p)
{
	return (size_t)p->rows * p->cols;
}

/* Where weights are set: the masters, or what stands for them. */
static uint32_t value_of(const struct train_param *p)
{
	return p->master != TRAIN_NONE ? p->master : p->weight;
}

static void put_floats(struct train *x, const struct train_param *p,
		       const float *from)
{
	const struct train_graph *g = train_graph_of(x);
	uint32_t v = value_of(p);

	qwen_kernels_best()->narrow(train_type_of(g, &g->value[v]), from,
				    count_of(p), train_data(x, v));
}

/* ---- random ones ---- */

/* Box and Muller, from 53 bits each. */
static double normal_next(uint64_t *state)
{
	double u = ((double)(random_next(state) >> 11) + 1) * 0x1p-53;
	double v = (double)(random_next(state) >> 11) * 0x1p-53;

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static bool ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

void train_random(struct train *x, uint64_t seed)
{
	const struct train_graph *g = train_graph_of(x);
	double small = 1 / sqrt(2. * g->config.layers);

	for (uint32_t i = 0; i < g->n_tensors; i++) {
		const struct train_param *p = &g->param[i];
		float *w = xcalloc(count_of(p), sizeof(*w));
		uint64_t state = seed * 1000003 + i;
		bool added = ends_with(p->name, "o_proj.weight") ||
			     ends_with(p->name, "down_proj.weight");

		random_next(&state);
		for (size_t k = 0; k < count_of(p); k++)
			w[k] = p->matrix ?
				       (float)(0.02 * (added ? small : 1) *
					       normal_next(&state)) :
				       1;
		put_floats(x, p, w);
		free(w);
	}
	train_weights_round(x);
}

void train_adapters_random(struct train *x, uint64_t seed)
{
	const struct train_graph *g = train_graph_of(x);

	for (uint32_t i = g->n_tensors; i < g->n_params; i += 2) {
		const struct train_param *p = &g->param[i];
		float *w = train_data(x, p->weight);
		float far = 1 / sqrtf((float)p->cols);
		uint64_t state = seed * 1000003 + i;

		random_next(&state);
		for (size_t k = 0; k < count_of(p); k++)
			w[k] = far * ((float)(random_next(&state) >> 40) *
					      0x1p-23f - 1);
		memset(train_data(x, p[1].weight), 0,
		       count_of(&p[1]) * sizeof(float));
	}
	train_changed(x);
}

/* ---- from files ---- */

static bool read_param(struct train *x, const struct qwen_tensors *t,
		       const struct train_param *p, struct err *e)
{
	const uint64_t shape[2] = { p->matrix ? p->rows : p->cols, p->cols };
	const struct qwen_tensor *from =
		qwen_tensor_require(t, p->name, p->matrix ? 2 : 1, shape, e);

	if (!from)
		return false;
	if (from->dtype != QWEN_F32 && from->dtype != QWEN_F16 &&
	    from->dtype != QWEN_BF16)
		return err_set(e, ERR_INPUT, "%s: %s is %s; wanted F32, F16 or "
			       "BF16", from->file, p->name,
			       qwen_dtype_name(from->dtype));
	float *w = xcalloc(count_of(p), sizeof(*w));
	qwen_kernels_best()->widen(from->dtype == QWEN_F32 ? QWEN_W_F32 :
				   from->dtype == QWEN_F16 ? QWEN_W_F16 :
							     QWEN_W_BF16,
				   from->data, count_of(p), w);
	put_floats(x, p, w);
	free(w);
	return true;
}

bool train_read(struct train *x, const char *dir, struct err *e)
{
	const struct train_graph *g = train_graph_of(x);
	struct qwen_tensors t;

	if (!qwen_tensors_open(&t, dir, e))
		return false;
	bool ok = true;
	for (uint32_t i = 0; ok && i < g->n_tensors; i++)
		ok = read_param(x, &t, &g->param[i], e);
	qwen_tensors_close(&t);
	train_weights_round(x);
	return ok;
}

/* ---- to files ---- */

struct writing {
	const struct train *x;
	bool average;
	uint32_t first, n; /* parameters */
	size_t width;	   /* of an element in the file */
	float *wide;	   /* of the largest parameter */
	uint16_t *narrow;
	struct cpu_gemm_scratch gemm;
};

/* w += B A */
static void adapter_merge(struct writing *w, const struct train_param *p)
{
	const struct train_graph *g = train_graph_of(w->x);
	const struct train_param *a = &g->param[p->adapter];
	struct cpu_gemm product = {
		.m = p->rows, .n = p->cols, .k = a->rows, .alpha = 1,
		.beta = 1, .a = train_data(w->x, a[1].weight), .lda = a->rows,
		.b = train_data(w->x, a->weight), .ldb = p->cols,
		.b_type = CPU_GEMM_F32, .c = w->wide, .ldc = p->cols,
	};

	cpu_gemm(&product, &w->gemm, NULL);
}

static const void *param_bytes(void *ctx, size_t i, struct err *e)
{
	struct writing *w = ctx;
	const struct train_graph *g = train_graph_of(w->x);
	const struct train_param *p = &g->param[w->first + i];
	uint32_t v = w->average ? p->average : value_of(p);
	const void *data = train_data(w->x, v);

	(void)e;
	if (g->value[v].width == w->width && p->adapter == TRAIN_NONE)
		return data;
	qwen_kernels_best()->widen(train_type_of(g, &g->value[v]), data,
				   count_of(p), w->wide);
	if (p->adapter != TRAIN_NONE)
		adapter_merge(w, p);
	if (w->width == 4)
		return w->wide;
	qwen_kernels_best()->narrow(g->type, w->wide, count_of(p), w->narrow);
	return w->narrow;
}

static bool weights_write(struct writing *w, const char *dir, const char *name,
			  struct err *e)
{
	const struct train_graph *g = train_graph_of(w->x);
	const struct train_param *p = g->param + w->first;
	struct qwen_tensor *t = xcalloc(w->n, sizeof(*t));
	struct buf path = { 0 };
	size_t most = 0;

	for (uint32_t i = 0; i < w->n; i++) {
		t[i] = (struct qwen_tensor){
			.name = p[i].name,
			.dtype = w->width == 4	      ? QWEN_F32 :
				 g->type == QWEN_W_F16 ? QWEN_F16 :
							 QWEN_BF16,
			.n_dims = p[i].matrix ? 2 : 1,
			.shape = { p[i].matrix ? p[i].rows : p[i].cols,
				   p[i].cols },
		};
		most = count_of(&p[i]) > most ? count_of(&p[i]) : most;
	}
	w->wide = xcalloc(most, sizeof(*w->wide));
	w->narrow = xcalloc(most, sizeof(*w->narrow));
	buf_printf(&path, "%s/%s", dir, name);
	bool ok = qwen_tensors_write(path.data, t, w->n, param_bytes, w, e);
	buf_fini(&path);
	cpu_gemm_scratch_fini(&w->gemm);
	free(w->wide);
	free(w->narrow);
	free(t);
	return ok;
}

bool train_write(const struct train *x, const char *dir, bool average,
		 struct err *e)
{
	const struct train_graph *g = train_graph_of(x);
	/* Norms are f32 in a graph, and of the matrices' type in its file. */
	struct writing w = { .x = x, .average = average, .n = g->n_tensors,
			     .width = g->value[g->param[0].weight].width };

	return train_fetch(x, e) && file_make_folders(dir, e) &&
	       qwen_config_write(&g->config, dir, e) &&
	       weights_write(&w, dir, "model.safetensors", e);
}

/* The kinds of matrices that have adapters: "q_proj". */
static json_t *targets_json(const struct train_graph *g)
{
	json_t *list = json_array();

	for (int k = 0; k < TRAIN_TARGETS; k++) {
		const char *name = train_target_name[k];
		for (uint32_t i = 0; i < g->n_tensors; i++)
			if (g->param[i].adapter != TRAIN_NONE &&
			    strstr(g->param[i].name, name)) {
				json_array_append_new(list, json_string(name));
				break;
			}
	}
	return list;
}

bool train_adapters_write(const struct train *x, const char *dir,
			  const char *base, struct err *e)
{
	const struct train_graph *g = train_graph_of(x);
	struct writing w = { .x = x, .first = g->n_tensors,
			     .n = g->n_params - g->n_tensors, .width = 4 };
	int rank = (int)g->param[g->n_tensors].rows;

	if (!train_fetch(x, e) || !file_make_folders(dir, e))
		return false;
	json_t *name = json_string(base);
	json_t *j = json_pack("{s:s, s:s, s:o, s:i, s:i, s:o, s:f, s:s, s:b, "
			      "s:b, s:b}", "peft_type", "LORA", "task_type",
			      "CAUSAL_LM", "base_model_name_or_path",
			      name ? name : json_null(),
			      "r", rank, "lora_alpha", rank, "target_modules",
			      targets_json(g), "lora_dropout", 0., "bias",
			      "none", "fan_in_fan_out", 0, "use_rslora", 0,
			      "inference_mode", 1);
	return qwen_json_write(dir, "adapter_config.json", j, e) &&
	       weights_write(&w, dir, "adapter_model.safetensors", e);
}
