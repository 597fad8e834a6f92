/*
 * engine/train/checkpoint.c - a run in a file.
 *
 *	magic, bytes of `about`, struct train_place, `about`, values, checksum
 *
 * All in the machine's byte order: a checkpoint goes on where it was made.
 * Values are those of every parameter that learns: weights (masters where
 * there are some), the optimizer's, the average.  The checksum is XXH64 of all
 * before it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "engine/train/train.h"

struct head {
	char magic[8];
	uint64_t about_bytes;
	struct train_place place;
};
static const char magic[8] = "T0train2";

#define VALUES 4
/* The values of a parameter that are kept; TRAIN_NONE among them. */
static void values_of(const struct train_param *p, uint32_t out[VALUES])
{
	out[0] = p->gradient == TRAIN_NONE ? TRAIN_NONE :
		 p->master != TRAIN_NONE   ? p->master :
					     p->weight;
	out[1] = p->state[0];
	out[2] = p->state[1];
	out[3] = p->average;
}

static size_t value_bytes(const struct train_graph *g, uint32_t v)
{
	const struct train_value *x = &g->value[v];

	return v == TRAIN_NONE ? 0 : x->rows * x->cols * x->width;
}

/* A file with the checksum of what went through so far. */
struct stream {
	FILE *f;
	XXH64_state_t *sum;
};

static bool stream_write(struct stream *s, const void *data, size_t n)
{
	XXH64_update(s->sum, data, n);
	return fwrite(data, 1, n, s->f) == n;
}

static bool stream_read(struct stream *s, void *data, size_t n)
{
	if (fread(data, 1, n, s->f) != n)
		return false;
	XXH64_update(s->sum, data, n);
	return true;
}

static bool stream_open(struct stream *s, const char *path, const char *how)
{
	*s = (struct stream){ .f = fopen(path, how) };
	if (!s->f)
		return false;
	s->sum = XXH64_createState();
	XXH64_reset(s->sum, 0);
	return true;
}

/* ---- writing ---- */

static bool write_all(const struct train *x, struct stream *s,
		      const char *about, const struct train_place *p)
{
	const struct train_graph *g = train_graph_of(x);
	struct head h = { .about_bytes = strlen(about), .place = *p };
	bool ok;

	memcpy(h.magic, magic, sizeof(magic));
	ok = stream_write(s, &h, sizeof(h)) &&
	     stream_write(s, about, h.about_bytes);
	for (uint32_t i = 0; ok && i < g->n_params; i++) {
		uint32_t v[VALUES];

		values_of(&g->param[i], v);
		for (int k = 0; ok && k < VALUES; k++)
			ok = v[k] == TRAIN_NONE ||
			     stream_write(s, train_data(x, v[k]),
					  value_bytes(g, v[k]));
	}
	uint64_t sum = XXH64_digest(s->sum);
	return ok && stream_write(s, &sum, sizeof(sum)) &&
	       fflush(s->f) == 0 && fsync(fileno(s->f)) == 0;
}

bool train_checkpoint_write(const struct train *x, const char *path,
			    const char *about, const struct train_place *p,
			    struct err *e)
{
	struct buf part = { 0 };
	struct stream s;

	if (!train_fetch(x, e))
		return false;
	buf_printf(&part, "%s.part", path);
	bool ok = stream_open(&s, part.data, "wb");
	if (ok) {
		ok = write_all(x, &s, about, p);
		int why = errno;
		if (fclose(s.f) != 0 && ok)
			ok = false;
		else
			errno = why; /* of the first that failed */
		XXH64_freeState(s.sum);
	}
	ok = ok && rename(part.data, path) == 0;
	if (ok) {
		file_sync_folder(path);
	} else {
		err_sys(e, ERR_IO, errno, "%s: the checkpoint cannot be "
			"written", path);
		unlink(part.data);
	}
	buf_fini(&part);
	return ok;
}

/* ---- reading ---- */

/* Compares what two runs are, line by line. */
static bool check_about(const char *path, const char *was, const char *is,
			struct err *e)
{
	while (*was || *is) {
		size_t n = strcspn(was, "\n"), m = strcspn(is, "\n");

		if (n != m || memcmp(was, is, n) != 0)
			return err_set(e, ERR_INPUT, "%s: is of a run with "
				       "\"%.*s\"; this one has \"%.*s\": "
				       "wanted the same options, or another "
				       "folder", path, (int)n, was, (int)m,
				       is);
		was += n + (was[n] == '\n');
		is += m + (is[m] == '\n');
	}
	return true;
}

static bool read_values(struct train *x, struct stream *s)
{
	const struct train_graph *g = train_graph_of(x);

	for (uint32_t i = 0; i < g->n_params; i++) {
		uint32_t v[VALUES];

		values_of(&g->param[i], v);
		for (int k = 0; k < VALUES; k++)
			if (v[k] != TRAIN_NONE &&
			    !stream_read(s, train_data(x, v[k]),
					 value_bytes(g, v[k])))
				return false;
	}
	return true;
}

#define ABOUT_BYTES 65536

static bool read_all(struct train *x, struct stream *s, const char *path,
		     const char *about, struct train_place *p, struct err *e)
{
	static const char damaged[] = "%s: the checkpoint is damaged: %s; "
				      "wanted one that t0-qwen3 train wrote";
	struct head h;
	uint64_t sum;
	char more;

	if (!stream_read(s, &h, sizeof(h)) ||
	    memcmp(h.magic, magic, sizeof(magic)) != 0 ||
	    h.about_bytes > ABOUT_BYTES)
		return err_set(e, ERR_INPUT, damaged, path, "its head");
	char *was = xcalloc(1, h.about_bytes + 1);
	bool ok = stream_read(s, was, h.about_bytes) ||
		  err_set(e, ERR_INPUT, damaged, path, "it is too short");
	ok = ok && check_about(path, was, about, e);
	free(was);
	if (!ok)
		return false;
	if (!read_values(x, s))
		return err_set(e, ERR_INPUT, damaged, path, "it is too short");
	uint64_t want = XXH64_digest(s->sum);
	if (fread(&sum, sizeof(sum), 1, s->f) != 1 || sum != want ||
	    fread(&more, 1, 1, s->f) != 0)
		return err_set(e, ERR_INPUT, damaged, path, "its checksum");
	*p = h.place;
	train_weights_round(x);
	return true;
}

bool train_checkpoint_read(struct train *x, const char *path,
			   const char *about, struct train_place *p,
			   struct err *e)
{
	struct stream s;

	if (!stream_open(&s, path, "rb"))
		return err_sys(e, ERR_IO, errno, "%s", path);
	bool ok = read_all(x, &s, path, about, p, e);
	fclose(s.f);
	XXH64_freeState(s.sum);
	return ok;
}
