/*
 * engine/model/quantize.c - quantised models written, and their loss of
 * quality.
 */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "engine/model/model.h"

/* ---- the file ---- */

struct piece {
	const void *data;
	size_t size_bytes;
};

struct writer {
	json_t *header;
	struct piece *v;
	size_t n, cap;
	uint64_t at; /* in the data part */
};

static void piece_add(struct writer *w, const char *name, const char *dtype,
		      uint64_t rows, uint64_t cols, const void *data,
		      size_t size_bytes)
{
	json_t *shape = cols ? json_pack("[I,I]", (json_int_t)rows,
					 (json_int_t)cols) :
			       json_pack("[I]", (json_int_t)rows);

	json_object_set_new(w->header, name, json_pack(
		"{s:s, s:o, s:[I,I]}", "dtype", dtype, "shape", shape,
		"data_offsets", (json_int_t)w->at,
		(json_int_t)(w->at + size_bytes)));
	vec_push(w, (struct piece){ data, size_bytes });
	w->at += size_bytes;
}

/* f32 first, then f16, then bytes: everything lies aligned to its type. */
enum { NORMS, SCALES, INTEGERS, ORDERS };

struct collect {
	struct writer *w;
	int order;
};

/* Both lists are those of dtype.def. */
static const char *own_name(enum qwen_weights w)
{
	return qwen_dtype_name(
		(enum qwen_dtype)(QWEN_BOOL + w - QWEN_W_INT4));
}

static bool part_add(void *ctx, const struct qwen_part *p, struct err *e)
{
	struct collect *c = ctx;
	const struct qwen_matrix *m = p->matrix;
	char name[160];

	if (!m) {
		if (c->order == NORMS)
			piece_add(c->w, p->name, "F32", p->n, 0, *p->norm,
				  p->n * sizeof(**p->norm));
		return true;
	}
	if (p->router) {
		if (c->order == NORMS)
			piece_add(c->w, p->name, "F32", m->rows, m->cols,
				  m->data, qwen_matrix_bytes(m));
		return true;
	}
	if (qwen_is_own(m->type)) {
		if (c->order == INTEGERS)
			piece_add(c->w, p->name, own_name(m->type), m->rows,
				  m->cols, m->data, qwen_matrix_bytes(m));
		return true;
	}
	if (m->type != QWEN_W_INT8 && m->type != QWEN_W_INT4)
		return err_set(e, ERR_USAGE, "tensor %s is %s; wanted int8, "
			       "int4, int6_N or int3_N", p->name,
			       qwen_weights_name(m->type));
	uint32_t groups = m->cols / QWEN_GROUP;
	uint32_t cols = m->type == QWEN_W_INT4 ? m->cols / 2 : m->cols;
	snprintf(name, sizeof(name), "%s_scale", p->name);
	if (c->order == SCALES)
		piece_add(c->w, name, "F16", m->rows, groups, m->scale,
			  (size_t)m->rows * groups * 2);
	else if (c->order == INTEGERS)
		piece_add(c->w, p->name, m->type == QWEN_W_INT4 ? "U8" : "I8",
			  m->rows, cols, m->data, (size_t)m->rows * cols);
	return true;
}

/* The header's length, the header up to a cache line, the data. */
static bool stream_write(const struct writer *w, FILE *f)
{
	char *text = json_dumps(w->header, JSON_COMPACT);
	size_t len = strlen(text), padded = (8 + len + 63) / 64 * 64 - 8;
	uint8_t head[8];
	bool ok;

	for (int i = 0; i < 8; i++)
		head[i] = (uint8_t)((uint64_t)padded >> 8 * i);
	ok = fwrite(head, 1, 8, f) == 8 && fwrite(text, 1, len, f) == len;
	for (; ok && len < padded; len++)
		ok = fputc(' ', f) != EOF;
	for (size_t i = 0; ok && i < w->n; i++)
		ok = fwrite(w->v[i].data, 1, w->v[i].size_bytes, f) ==
		     w->v[i].size_bytes;
	free(text);
	return ok && fflush(f) == 0 && fsync(fileno(f)) == 0;
}

static bool file_write(const struct writer *w, const char *to, struct err *e)
{
	struct buf path = { 0 }, tmp = { 0 };

	buf_printf(&path, "%s/model.safetensors", to);
	buf_printf(&tmp, "%s.%d.tmp", path.data, (int)getpid());
	FILE *f = fopen(tmp.data, "wb");
	bool ok = f && stream_write(w, f);
	int why = errno;
	if (f && fclose(f) != 0 && ok) {
		ok = false;
		why = errno;
	}
	if (ok && rename(tmp.data, path.data) != 0) {
		ok = false;
		why = errno;
	}
	if (!ok) {
		unlink(tmp.data);
		err_sys(e, ERR_IO, why, "%s: cannot be written", path.data);
	}
	buf_fini(&path);
	buf_fini(&tmp);
	return ok;
}

static bool folder_make(const char *from, const char *to, struct err *e)
{
	static const char *const file[] = {
		"config.json", "generation_config.json", "tokenizer.json",
		"vocab.json", "merges.txt", "added_tokens.json",
		"tokenizer_config.json",
	};
	struct stat a, b;

	if (mkdir(to, 0777) != 0 && errno != EEXIST)
		return err_sys(e, ERR_IO, errno, "%s: cannot be made", to);
	/* The weights that are read would be written over. */
	if (stat(from, &a) == 0 && stat(to, &b) == 0 && a.st_dev == b.st_dev &&
	    a.st_ino == b.st_ino)
		return err_set(e, ERR_USAGE, "%s and %s are the same folder; "
			       "wanted another one to write", from, to);
	for (size_t i = 0; i < ARRAY_SIZE(file); i++)
		if (!qwen_file_copy(from, to, file[i], NULL, e))
			return false;
	return true;
}

bool qwen_quantized_write(struct qwen_model *m, const char *from,
			  const char *to, struct err *e)
{
	if (qwen_is_file(from))
		return err_set(e, ERR_USAGE, "%s is a file; wanted a folder, "
			       "as t0-qwen3 convert makes it of one", from);
	struct writer w = { .header = json_object() };
	bool ok = folder_make(from, to, e);

	for (int i = 0; ok && i < ORDERS; i++)
		ok = qwen_model_each(m, part_add, &(struct collect){ &w, i },
				     e);
	ok = ok && file_write(&w, to, e);
	json_decref(w.header);
	free(w.v);
	return ok;
}

/* ---- quality ---- */

double qwen_divergence(const float *a, double ta, const float *b, double tb,
		       uint32_t n)
{
	double kl = 0;

	for (uint32_t i = 0; i < n; i++)
		kl += exp(a[i] - ta) * ((a[i] - ta) - (b[i] - tb));
	return kl;
}

static uint32_t find_argmax(const float *v, uint32_t n)
{
	uint32_t at = 0;

	for (uint32_t i = 1; i < n; i++)
		at = v[i] > v[at] ? i : at;
	return at;
}

/* Adds one prediction; `next` is what really came. */
static void add_prediction(struct qwen_quality *q, const float *a,
			   const float *b, uint32_t vocab, uint32_t next)
{
	const double ta = qwen_log_total(a, vocab);
	const double tb = qwen_log_total(b, vocab);
	const double kl = qwen_divergence(a, ta, b, tb, vocab);

	q->kl += kl;
	q->kl_off += kl * kl;
	q->kl_worst = fmax(q->kl_worst, kl);
	q->same_best += find_argmax(a, vocab) == find_argmax(b, vocab);
	q->perplexity_a += ta - a[next];
	q->perplexity_b += tb - b[next];
	q->tokens++;
}

/* Both models see the text in the same pieces. */
#define PIECE 32

/* From ids[0] on; n - 1 predictions. */
static bool window_compare(struct qwen_state *a, struct qwen_state *b,
			   const uint32_t *ids, uint32_t n, uint32_t vocab,
			   struct qwen_quality *q, struct err *e)
{
	struct qwen_token t[PIECE];

	qwen_state_truncate(a, 0, 0);
	qwen_state_truncate(b, 0, 0);
	for (uint32_t at = 0; at + 1 < n; at += PIECE) {
		uint32_t some = n - 1 - at < PIECE ? n - 1 - at : PIECE;
		for (uint32_t i = 0; i < some; i++)
			t[i] = (struct qwen_token){ .id = ids[at + i],
						    .logits = true };
		if (!qwen_forward(a, t, some, e) ||
		    !qwen_forward(b, t, some, e))
			return false;
		for (uint32_t i = 0; i < some; i++)
			add_prediction(q, qwen_logits(a, i), qwen_logits(b, i),
				       vocab, ids[at + i + 1]);
	}
	return true;
}

/* A window begins with the last token of the one before. */
static bool text_compare(struct qwen_state *a, struct qwen_state *b,
			 const struct qwen_sample_text *x, uint32_t vocab,
			 struct qwen_quality *q, struct err *e)
{
	bool ok = true;

	for (size_t at = 0; ok && at + 1 < x->n; at += x->window - 1)
		ok = window_compare(a, b, x->ids + at,
				    x->n - at < x->window ?
					    (uint32_t)(x->n - at) : x->window,
				    vocab, q, e);
	return ok;
}

bool qwen_quality(const struct qwen_model *a, const struct qwen_model *b,
		  const struct qwen_sample_text *text,
		  const _Atomic int *stop, struct qwen_quality *out,
		  struct err *e)
{
	struct qwen_shape shape = { .sequences = 1, .positions = text->window,
				    .max_tokens = PIECE, .stop = stop };
	struct qwen_state *sa = qwen_state_new(a, &shape, e);
	struct qwen_state *sb = sa ? qwen_state_new(b, &shape, e) : NULL;
	bool ok;

	*out = (struct qwen_quality){ 0 };
	ok = sb && text_compare(sa, sb, text, a->config.vocab, out, e);
	qwen_state_free(sa);
	qwen_state_free(sb);
	if (!ok)
		return false;
	out->kl /= out->tokens;
	out->kl_off = 1.96 * sqrt(fmax(0, out->kl_off / out->tokens -
					  out->kl * out->kl) / out->tokens);
	out->same_best /= out->tokens;
	out->perplexity_a = exp(out->perplexity_a / out->tokens);
	out->perplexity_b = exp(out->perplexity_b / out->tokens);
	return isfinite(out->kl) ||
	       err_set(e, ERR_DEVICE, "the logits are broken: their divergence "
		       "is not a number");
}
