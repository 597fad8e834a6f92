/*
 * compiler/sim/examine/vector.c - hardware traces: read, replay, compare.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "compiler/sim/examine/examine.h"

enum {
	FILL_BYTES = 64, /* code that a trace may leave out at a time */
	VGPRS = 24,	 /* waves of a trace were resident: they fit */
};

/* ---- reading ---- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_code(struct vector *v, const char *hex, const char *where,
		       struct err *e)
{
	size_t n = strlen(hex) / 2;

	v->code = xcalloc(n + ISA_MAX_SIZE_BYTES, 1);
	v->code_bytes = n;
	for (size_t i = 0; i < n; i++) {
		int hi = hex_digit(hex[2 * i]), lo = hex_digit(hex[2 * i + 1]);

		if (hi < 0 || lo < 0)
			return err_set(e, ERR_INPUT, "%s: code: no hex digits "
				       "at byte %zu", where, i);
		v->code[i] = (uint8_t)(hi << 4 | lo);
	}
	return true;
}

enum { SLOTS = 256 }; /* numbers of waves in a trace */

/* Where the reader is: the last cycle, and which wave has which slot. */
struct reading {
	uint64_t last, base;
	int wave[SLOTS]; /* + 1; 0: none */
};

static bool add_event(struct vector *v, json_t *j, struct reading *r,
		      const char *where, struct err *e)
{
	json_int_t cycle = json_integer_value(json_array_get(j, 0));
	json_int_t wave = json_integer_value(json_array_get(j, 2));
	json_int_t off = json_integer_value(json_array_get(j, 3));
	struct vector_event *ev = &v->event[v->n];
	uint64_t *last = &r->last, *base = &r->base;

	if (cycle < 0 || wave < 0 || wave >= SLOTS || off < 0 ||
	    (uint64_t)off >= v->code_bytes || off % 4 ||
	    v->n_waves == VECTOR_WAVES_MAX)
		return err_set(e, ERR_INPUT, "%s: event %d: cycle %lld, wave "
			       "%lld, offset %lld", where, v->n,
			       (long long)cycle, (long long)wave,
			       (long long)off);
	uint64_t c = (uint64_t)cycle;
	if (v->n && (c < *last || c - *last > VECTOR_JUMP)) {
		*base += c - *last - 1;
		v->n_segments++;
	}
	if (!v->n) {
		*base = c;
		v->n_segments = 1;
	}
	*last = c;
	*ev = (struct vector_event){ .cycle = c - *base, .off = (uint32_t)off,
				     .segment = v->n_segments - 1 };
	if (!r->wave[wave])
		r->wave[wave] = ++v->n_waves;
	ev->wave = r->wave[wave] - 1;
	v->n++;
	return true;
}

static bool parse_events(struct vector *v, json_t *events, const char *where,
			 struct err *e)
{
	struct reading r = { 0 };
	size_t i;
	json_t *j;

	v->event = xcalloc(json_array_size(events) + 1, sizeof(*v->event));
	json_array_foreach(events, i, j) {
		const char *type = json_string_value(json_array_get(j, 1));

		json_int_t wave = json_integer_value(json_array_get(j, 2));
		if (type && !strcmp(type, "I") &&
		    !add_event(v, j, &r, where, e))
			return false;
		if (type && !strcmp(type, "END") && wave >= 0 && wave < SLOTS)
			r.wave[wave] = 0;
	}
	return v->n || err_set(e, ERR_INPUT, "%s: no instruction events",
			       where);
}

/* ---- paths ---- */

static int size_at(const struct vector *v, uint32_t off)
{
	struct isa_target t = { ISA_GFX11, 32, false };
	struct isa_inst in;

	if (off >= v->code_bytes ||
	    sim_decode(v->code + off, v->code_bytes - off, &t, &in))
		return 0;
	return in.size_bytes;
}

static void push_offset(struct vector_path *p, uint32_t off, int event)
{
	if (p->n == p->cap) {
		p->cap = vec_capacity(p->cap, p->n, 1, sizeof(p->cap),
				      sizeof(*p->off));
		p->off = xrealloc(p->off, (size_t)p->cap * sizeof(*p->off));
		p->event = xrealloc(p->event,
				    (size_t)p->cap * sizeof(*p->event));
	}
	p->off[p->n] = off;
	p->event[p->n++] = event;
}

/* What lies between two traced instructions, if it leads to the second. */
static void fill_gap(const struct vector *v, struct vector_path *p, uint32_t to)
{
	uint32_t off[FILL_BYTES / 4];
	uint32_t at = p->off[p->n - 1];
	int n = 0, size = size_at(v, at);

	for (at += (uint32_t)size; size && at < to && n < FILL_BYTES / 4;
	     at += (uint32_t)size) {
		off[n++] = at;
		size = size_at(v, at);
	}
	for (int i = 0; at == to && i < n; i++)
		push_offset(p, off[i], -1);
}

static bool make_paths(struct vector *v, const char *where, struct err *e)
{
	v->path = xcalloc((size_t)v->n_waves, sizeof(*v->path));
	for (int i = 0; i < v->n; i++) {
		struct vector_event *ev = &v->event[i];
		struct vector_path *p = &v->path[ev->wave];

		if (!size_at(v, ev->off))
			return err_set(e, ERR_INPUT, "%s: event %d: no "
				       "instruction at offset %u", where, i,
				       ev->off);
		if (p->n)
			fill_gap(v, p, ev->off);
		else
			p->start = ev->cycle;
		push_offset(p, ev->off, i);
	}
	return true;
}

static bool take_object(struct vector *v, json_t *j, const char *where,
			struct err *e)
{
	const char *code = json_string_value(json_object_get(j, "code"));
	const char *kernel = json_string_value(json_object_get(j, "kernel"));
	const char *id = json_string_value(json_object_get(j, "sha"));
	json_t *events = json_object_get(j, "events");

	if (!code || !json_is_array(events))
		return err_set(e, ERR_INPUT, "%s: wanted an object with code "
			       "and events", where);
	snprintf(v->kernel, sizeof(v->kernel), "%s", kernel ? kernel : "?");
	snprintf(v->id, sizeof(v->id), "%s", id ? id : where);
	v->clock_mhz = 1000 * json_number_value(json_object_get(j,
							"gpu_clk_ghz"));
	return parse_code(v, code, where, e) &&
	       parse_events(v, events, where, e) &&
	       make_paths(v, where, e) && (vector_find_groups(v), true);
}

bool vector_parse(struct vector *v, const char *json, size_t len,
		  const char *where, struct err *e)
{
	json_error_t why;
	json_t *j = json_loadb(json, len, 0, &why);

	memset(v, 0, sizeof(*v));
	bool ok = j ? take_object(v, j, where, e) :
		      err_set(e, ERR_INPUT, "%s: %s", where, why.text);
	json_decref(j);
	if (!ok)
		vector_fini(v);
	return ok;
}

void vector_fini(struct vector *v)
{
	for (int w = 0; v->path && w < v->n_waves; w++) {
		free(v->path[w].off);
		free(v->path[w].event);
	}
	free(v->path);
	free(v->code);
	free(v->event);
	memset(v, 0, sizeof(*v));
}

/* ---- replay ---- */

struct replay {
	struct vector *v;
	int *at;	     /* [n_waves] */
	struct sim_lanes *lanes; /* [n_waves] */
};

static bool replay_pc(struct sim_source *s, int wave, uint64_t *pc)
{
	struct replay *r = s->ctx;
	const struct vector_path *p = &r->v->path[wave];

	if (wave >= r->v->n_waves || r->at[wave] == p->n)
		return false;
	*pc = s->code_va + p->off[r->at[wave]];
	return true;
}

static bool replay_step(struct sim_source *s, int wave, uint64_t cycle,
			struct sim_step *out, struct err *e)
{
	struct replay *r = s->ctx;
	const struct vector_path *p = &r->v->path[wave];
	int ev = p->event[r->at[wave]];
	uint32_t off = p->off[r->at[wave]++];
	struct isa_target t = { ISA_GFX11, 32, false };
	struct isa_inst in;

	(void)e;
	*out = (struct sim_step){ .exec = UINT32_MAX };
	if (!isa_decode(&t, r->v->code + off, r->v->code_bytes - off, &in)) {
		sim_lanes_access(&r->lanes[wave], &in, out);
		sim_lanes_exec(&r->lanes[wave], &in);
	}
	if (ev >= 0) {
		r->v->event[ev].guess = cycle;
		r->v->event[ev].seen = true;
	}
	return true;
}

/* Whole workgroups: waves behind the last one have no path. */
static int count_groups(const struct vector *v)
{
	return (v->n_waves + v->group_waves - 1) / v->group_waves;
}

static bool simulate_trace(struct vector *v, const struct cost_model *m,
			   struct err *e)
{
	size_t n = (size_t)count_groups(v) * (size_t)v->group_waves;
	struct replay r = {
		.v = v,
		.at = xcalloc(n, sizeof(int)),
		.lanes = xcalloc(n, sizeof(struct sim_lanes)),
	};
	uint64_t *start = xcalloc(n, sizeof(*start));
	/* A trace shows one SIMD, number 0. */
	int *simd = xcalloc(n, sizeof(*simd));
	struct sim_result res;
	struct sim_source s = {
		.ctx = &r, .code = v->code, .code_bytes = v->code_bytes,
		.code_va = 0x1000, .wave_size = 32,
		.waves_per_group = v->group_waves,
		.n_groups = count_groups(v), .vgprs = VGPRS,
		.pc = replay_pc, .step = replay_step,
	};
	struct sim_config c = {
		.cost = m, .clock_mhz = v->clock_mhz, .warmth = SIM_COLD,
		.start = start, .simd = simd, .lax = true,
	};

	for (int w = 0; w < (int)n; w++) {
		int last = w < v->n_waves ? w : v->n_waves - 1;

		start[w] = v->path[last].start;
		sim_lanes_init(&r.lanes[w], 0);
	}
	bool ok = sim_run(&s, &c, &res, e);
	free(r.at);
	free(r.lanes);
	free(start);
	free(simd);
	if (!ok)
		return err_wrap(e, "%s %s", v->kernel, v->id);
	sim_fini(&res);
	return true;
}

/* ---- comparison ---- */

/* Segments behind the first are aligned at their first event. */
static void align_segments(struct vector *v)
{
	int64_t shift = 0;
	int segment = 0;

	for (int i = 0; i < v->n; i++) {
		struct vector_event *ev = &v->event[i];

		if (ev->segment != segment) {
			segment = ev->segment;
			shift = (int64_t)ev->cycle - (int64_t)ev->guess;
		}
		ev->guess = (uint64_t)((int64_t)ev->guess + shift);
	}
}

static uint64_t abs_diff(uint64_t a, uint64_t b)
{
	return a < b ? b - a : a - b;
}

static void compare_times(struct vector *v)
{
	double *real = xcalloc((size_t)v->n, sizeof(double));
	double *guess = xcalloc((size_t)v->n, sizeof(double));

	v->duration = v->predicted = 0;
	for (int i = 0; i < v->n; i++) {
		const struct vector_event *ev = &v->event[i];

		real[i] = (double)ev->cycle;
		guess[i] = (double)ev->guess;
		if (ev->cycle > v->duration)
			v->duration = ev->cycle;
		if (ev->guess > v->predicted)
			v->predicted = ev->guess;
	}
	v->rank = sim_rank(real, guess, (size_t)v->n);
	free(real);
	free(guess);
}

/* From issue to issue of one wave, within a segment. */
static void compare_distances(struct vector *v)
{
	int *last = xmalloc((size_t)v->n_waves * sizeof(*last));
	uint64_t real = 0, off = 0;
	int n = 0, good = 0;

	memset(last, -1, (size_t)v->n_waves * sizeof(*last));
	for (int i = 0; i < v->n; i++) {
		const struct vector_event *a, *b = &v->event[i];

		if (last[b->wave] >= 0 &&
		    v->event[last[b->wave]].segment == b->segment) {
			a = &v->event[last[b->wave]];
			uint64_t d = abs_diff(b->cycle - a->cycle,
					      b->guess - a->guess);
			n++;
			good += d <= 1;
			real += b->cycle - a->cycle;
			off += d;
		}
		last[b->wave] = i;
	}
	free(last);
	v->within = n ? (double)good / n : 1;
	v->issue_error = real ? (double)off / (double)real : 0;
}

bool vector_predict(struct vector *v, const struct cost_model *m,
		    struct err *e)
{
	if (!simulate_trace(v, m, e))
		return false;
	align_segments(v);
	compare_times(v);
	compare_distances(v);
	return true;
}
