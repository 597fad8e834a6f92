/*
 * isa/trace/trace.c - writes traces; isa/trace/trace.h describes the file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "isa/trace/trace.h"

struct trace_writer {
	FILE *file;
	char *path;
	bool in_wave;
	uint32_t group[3], wave;
	uint64_t next_pc, last_pc, last_exec, last_at;
};

static void put_varint(struct trace_writer *w, uint64_t v)
{
	while (v >= 0x80) {
		putc_unlocked((int)(v & 0x7f) | 0x80, w->file);
		v >>= 7;
	}
	putc_unlocked((int)v, w->file);
}

static void put_signed(struct trace_writer *w, int64_t v)
{
	put_varint(w, (uint64_t)v << 1 ^ (uint64_t)(v >> 63));
}

static void put_text(struct trace_writer *w, const void *text, size_t len)
{
	put_varint(w, len);
	fwrite(text, 1, len, w->file);
}

static void put_varint3(struct trace_writer *w, const uint32_t v[3])
{
	for (int i = 0; i < 3; i++)
		put_varint(w, v[i]);
}

struct trace_writer *trace_create(const char *path, struct err *e)
{
	struct trace_writer *w = xcalloc(1, sizeof(*w));

	w->path = xstrdup(path);
	w->file = fopen(path, "wb");
	if (!w->file) {
		err_sys(e, ERR_IO, errno, "%s", path);
		free(w->path);
		free(w);
		return NULL;
	}
	fwrite("T0TRACE\1", 1, 8, w->file);
	return w;
}

static void reset_deltas(struct trace_writer *w)
{
	w->next_pc = w->last_pc = w->last_exec = 0;
}

void trace_put_dispatch(struct trace_writer *w, const struct trace_dispatch *d)
{
	putc_unlocked('D', w->file);
	put_varint(w, d->number);
	put_text(w, d->kernel, strlen(d->kernel));
	put_varint(w, d->entry_va);
	put_varint(w, d->wave_size);
	put_varint3(w, d->n_groups);
	put_varint3(w, d->group_size);
	put_varint(w, d->lds_bytes);
	put_varint(w, d->scratch_bytes);
	put_varint(w, d->vgprs);
	put_varint(w, d->code_va);
	put_text(w, d->code, d->code_bytes);
	w->in_wave = false;
	reset_deltas(w);
}

static void switch_wave(struct trace_writer *w, const uint32_t group[3],
			uint32_t wave)
{
	if (w->in_wave && w->wave == wave &&
	    !memcmp(w->group, group, sizeof(w->group)))
		return;
	putc_unlocked('W', w->file);
	put_varint3(w, group);
	put_varint(w, wave);
	memcpy(w->group, group, sizeof(w->group));
	w->wave = wave;
	w->in_wave = true;
	reset_deltas(w);
}

static void put_accesses(struct trace_writer *w, const struct trace_event *ev)
{
	putc_unlocked(ev->kind, w->file);
	put_varint(w, ev->access_bytes);
	put_varint(w, ev->n_accesses);
	for (uint32_t i = 0; i < ev->n_accesses; i++) {
		put_varint(w, (uint64_t)(ev->access[i].lane + 1));
		put_signed(w, (int64_t)(ev->access[i].at - w->last_at));
		w->last_at = ev->access[i].at;
	}
}

void trace_put_inst(struct trace_writer *w, const struct trace_event *ev,
		    uint32_t size_bytes)
{
	int flags = ev->n_accesses ? TRACE_ACCESS : 0;

	switch_wave(w, ev->group, ev->wave);
	flags |= ev->pc == w->next_pc ? TRACE_NEXT : 0;
	flags |= ev->exec != w->last_exec ? TRACE_EXEC : 0;
	putc_unlocked('I', w->file);
	putc_unlocked(flags, w->file);
	if (!(flags & TRACE_NEXT))
		put_signed(w, (int64_t)(ev->pc - w->last_pc) / 4);
	put_varint(w, size_bytes / 4);
	if (flags & TRACE_EXEC)
		put_varint(w, ev->exec);
	if (flags & TRACE_ACCESS)
		put_accesses(w, ev);
	w->last_pc = ev->pc;
	w->next_pc = ev->pc + size_bytes;
	w->last_exec = ev->exec;
}

void trace_put_barrier(struct trace_writer *w, const uint32_t group[3])
{
	switch_wave(w, group, w->in_wave ? w->wave : 0);
	putc_unlocked('B', w->file);
}

void trace_put_end(struct trace_writer *w, const uint32_t group[3],
		   uint32_t wave)
{
	switch_wave(w, group, wave);
	putc_unlocked('E', w->file);
}

bool trace_finish(struct trace_writer *w, struct err *e)
{
	bool good;

	putc_unlocked('Z', w->file);
	good = !ferror(w->file);
	good = !fclose(w->file) && good;
	if (!good)
		err_sys(e, ERR_IO, errno, "writing the trace %s", w->path);
	free(w->path);
	free(w);
	return good;
}
