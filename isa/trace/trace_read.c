/*
 * isa/trace/trace_read.c - reads traces; isa/trace/trace.h describes the file,
 * which is not trusted.
 */
#include <string.h>

#include "isa/trace/trace.h"

static bool refuse_trace(const struct trace_reader *r, const char *what,
			 struct err *e)
{
	return err_set(e, ERR_INPUT, "trace: %s at byte %zu", what,
		       (size_t)(r->at - r->begin));
}

static bool get_varint(struct trace_reader *r, uint64_t *v, struct err *e)
{
	*v = 0;
	for (int shift = 0; shift < 64; shift += 7) {
		uint8_t b;

		if (r->at == r->end)
			return refuse_trace(r, "a number is cut off", e);
		b = *r->at++;
		*v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return true;
	}
	return refuse_trace(r, "a number has more than 64 bits", e);
}

static bool get_u32(struct trace_reader *r, uint32_t *v, struct err *e)
{
	uint64_t wide;

	if (!get_varint(r, &wide, e))
		return false;
	if (wide > UINT32_MAX)
		return refuse_trace(r, "a number has more than 32 bits", e);
	*v = (uint32_t)wide;
	return true;
}

static bool get_varint3(struct trace_reader *r, uint32_t v[3], struct err *e)
{
	return get_u32(r, &v[0], e) && get_u32(r, &v[1], e) &&
	       get_u32(r, &v[2], e);
}

static bool get_signed(struct trace_reader *r, uint64_t *v, struct err *e)
{
	if (!get_varint(r, v, e))
		return false;
	*v = *v >> 1 ^ -(*v & 1);
	return true;
}

static bool get_byte(struct trace_reader *r, uint8_t *v, struct err *e)
{
	if (r->at == r->end)
		return refuse_trace(r, "a record is cut off", e);
	*v = *r->at++;
	return true;
}

static bool get_text(struct trace_reader *r, const uint8_t **text, size_t *len,
		     struct err *e)
{
	uint64_t n;

	if (!get_varint(r, &n, e))
		return false;
	if (n > (size_t)(r->end - r->at))
		return refuse_trace(r, "a text is longer than the file", e);
	*text = r->at;
	*len = n;
	r->at += n;
	return true;
}

bool trace_reader_init(struct trace_reader *r, const void *bytes, size_t len,
		       struct err *e)
{
	memset(r, 0, sizeof(*r));
	r->begin = r->at = bytes;
	if (len < 8 || memcmp(bytes, "T0TRACE", 7))
		return err_set(e, ERR_INPUT, "this is no trace");
	if (r->at[7] != 1)
		return err_set(e, ERR_UNSUPPORTED,
			       "trace of version %u, wanted 1", r->at[7]);
	r->end = r->at + len;
	r->at += 8;
	return true;
}

static void reset_reader_deltas(struct trace_reader *r)
{
	r->next_pc = r->last_pc = r->last_exec = 0;
}

static bool get_dispatch(struct trace_reader *r, struct err *e)
{
	struct trace_dispatch *d = &r->dispatch;
	const uint8_t *name = NULL;
	size_t len = 0;

	reset_reader_deltas(r);
	if (!get_varint(r, &d->number, e) || !get_text(r, &name, &len, e))
		return false;
	len = len < sizeof(d->kernel) ? len : sizeof(d->kernel) - 1;
	memcpy(d->kernel, name, len);
	d->kernel[len] = '\0';
	return get_varint(r, &d->entry_va, e) && get_u32(r, &d->wave_size, e) &&
	       get_varint3(r, d->n_groups, e) &&
	       get_varint3(r, d->group_size, e) &&
	       get_u32(r, &d->lds_bytes, e) &&
	       get_u32(r, &d->scratch_bytes, e) && get_u32(r, &d->vgprs, e) &&
	       get_varint(r, &d->code_va, e) &&
	       get_text(r, &d->code, &d->code_bytes, e);
}

static bool get_accesses(struct trace_reader *r, struct trace_event *ev,
			 struct err *e)
{
	if (!get_byte(r, &ev->kind, e) || !get_u32(r, &ev->access_bytes, e) ||
	    !get_u32(r, &ev->n_accesses, e))
		return false;
	if (ev->n_accesses > TRACE_ACCESSES_MAX)
		return refuse_trace(r, "an instruction has too many accesses",
				    e);
	for (uint32_t i = 0; i < ev->n_accesses; i++) {
		uint32_t lane;
		uint64_t delta;

		if (!get_u32(r, &lane, e) || !get_signed(r, &delta, e))
			return false;
		if (lane > 64)
			return refuse_trace(r, "a lane is above 63", e);
		ev->access[i].lane = (int16_t)((int)lane - 1);
		ev->access[i].at = r->last_at += delta;
	}
	return true;
}

static bool get_inst(struct trace_reader *r, struct trace_event *ev,
		     struct err *e)
{
	uint64_t delta = 0;
	uint32_t size = 0;
	uint8_t flags = 0;

	if (!get_byte(r, &flags, e))
		return false;
	ev->pc = r->next_pc;
	if (!(flags & TRACE_NEXT)) {
		if (!get_signed(r, &delta, e))
			return false;
		ev->pc = r->last_pc + delta * 4;
	}
	if (!get_u32(r, &size, e))
		return false;
	ev->exec = r->last_exec;
	if (flags & TRACE_EXEC && !get_varint(r, &ev->exec, e))
		return false;
	if (flags & TRACE_ACCESS && !get_accesses(r, ev, e))
		return false;
	r->last_pc = ev->pc;
	r->next_pc = ev->pc + (uint64_t)size * 4;
	r->last_exec = ev->exec;
	return true;
}

static bool fill_event(struct trace_reader *r, struct trace_event *ev,
		       enum trace_type type)
{
	ev->type = type;
	ev->dispatch = r->dispatch;
	memcpy(ev->group, r->group, sizeof(ev->group));
	ev->wave = r->wave;
	return true;
}

bool trace_next(struct trace_reader *r, struct trace_event *ev, struct err *e)
{
	uint8_t tag;

	ev->n_accesses = 0;
	ev->kind = 0;
	while (!r->over) {
		if (r->at == r->end)
			return refuse_trace(
				r, "the file ends without its end record", e);
		tag = *r->at++;
		switch (tag) {
		case 'D':
			return get_dispatch(r, e) &&
			       fill_event(r, ev, TRACE_DISPATCH);
		case 'W':
			reset_reader_deltas(r);
			if (!get_varint3(r, r->group, e) ||
			    !get_u32(r, &r->wave, e))
				return false;
			break;
		case 'I':
			return get_inst(r, ev, e) &&
			       fill_event(r, ev, TRACE_INST);
		case 'B':
			return fill_event(r, ev, TRACE_BARRIER);
		case 'E':
			return fill_event(r, ev, TRACE_WAVE_END);
		case 'Z':
			r->over = true;
			break;
		default:
			return refuse_trace(r, "an unknown record", e);
		}
	}
	return false;
}
