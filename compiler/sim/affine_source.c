/*
 * compiler/sim/affine_source.c - a wave source that follows the code by a
 * description of its loops, and computes addresses instead of recording them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/sim/sim.h"

/* What the description says about one offset. */
struct place {
	bool loop, taken, memory;
	uint64_t trips;
	int64_t base, lane, row, wave, group, step;
	uint64_t fold;
	double share, near;
};

struct walker {
	uint64_t pc;
	bool ended;
	uint32_t *count; /* [code dwords] executions, or trips left */
	struct sim_lanes *lanes;
};

struct affine {
	struct arena mem;
	struct place **place;	/* [code dwords], NULL: nothing said */
	struct isa_inst *inst;	/* [code dwords] */
	bool *decoded;
	struct walker *walker;	/* [n_waves], made when a group begins */
	size_t dwords;
	uint64_t exec;
	bool guess; /* some memory instruction has no line */
	bool guided; /* some branch has one */
	struct trace_access access[TRACE_ACCESSES_MAX];
};

/* ---- the description ---- */

struct parser {
	struct affine *a;
	struct sim_source *s;
	const char *name;
	int line;
	struct err *e;
};

static bool reject_line(const struct parser *p, const char *what,
			const char *got)
{
	return err_set(p->e, ERR_INPUT, "%s:%d: %s, not \"%s\"", p->name,
		       p->line, what, got ? got : "nothing");
}

static bool parse_number(const struct parser *p, const char *text, int64_t *v)
{
	char *end;

	errno = 0;
	if (text && *text) {
		*v = strtoll(text, &end, 0);
		if (!*end && !errno)
			return true;
	}
	return reject_line(p, "wanted a number", text);
}

static bool parse_count(const struct parser *p, const char *text, int64_t most,
			int64_t *v)
{
	return parse_number(p, text, v) &&
	       ((*v >= 1 && *v <= most) ||
		reject_line(p, "out of range", text));
}

static struct place *place_at(const struct parser *p, const char *text)
{
	int64_t off;

	if (!parse_number(p, text, &off))
		return NULL;
	if (off < 0 || off % 4 || (uint64_t)off / 4 >= p->a->dwords) {
		reject_line(p, "wanted the offset of an instruction", text);
		return NULL;
	}
	struct place **at = &p->a->place[off / 4];
	if (!*at)
		*at = arena_alloc(&p->a->mem, sizeof(**at));
	return *at;
}

static bool set_field(const struct parser *p, struct place *at, char *word)
{
	static const char *const name[] = { "base", "lane", "row", "wave",
					    "group", "step", "fold", "share",
					    "near" };
	char *value = strchr(word, '=');
	int64_t v;
	size_t k = 0;

	if (!value)
		return reject_line(p, "wanted NAME=NUMBER", word);
	*value++ = '\0';
	if (!parse_number(p, value, &v))
		return false;
	while (k < ARRAY_SIZE(name) && strcmp(word, name[k]))
		k++;
	switch (k) {
	case 6:
		at->fold = (uint64_t)v;
		return v > 0 || reject_line(p, "fold: wanted 1 or more", value);
	case 7:
		at->share = (double)v;
		return v > 0 ||
		       reject_line(p, "share: wanted 1 or more", value);
	case 8:
		at->near = (double)v;
		return v > 0 || reject_line(p, "near: wanted 1 or more", value);
	case 9:
		return reject_line(p,
				   "wanted base, lane, fold, row, wave, group, "
				   "step, share or near",
				   word);
	}
	(&at->base)[k] = v;
	return true;
}

static bool parse_at(const struct parser *p, char **rest)
{
	struct place *at = place_at(p, strtok_r(NULL, " \t", rest));
	char *word;

	if (!at)
		return false;
	at->memory = true;
	at->fold = 64;
	at->share = at->near = 1;
	while ((word = strtok_r(NULL, " \t", rest)))
		if (!set_field(p, at, word))
			return false;
	return true;
}

static bool parse_branch(const struct parser *p, bool loop, char **rest)
{
	struct place *at = place_at(p, strtok_r(NULL, " \t", rest));
	int64_t v = 0;

	if (!at)
		return false;
	p->a->guided = true;
	at->taken = !loop;
	at->loop = loop;
	if (loop && !parse_count(p, strtok_r(NULL, " \t", rest), 1 << 30, &v))
		return false;
	at->trips = (uint64_t)v;
	return true;
}

static bool parse_line(const struct parser *p, char *text)
{
	char *rest, *word = strtok_r(text, " \t\r", &rest);
	int64_t v;

	if (!word || *word == '#')
		return true;
	if (!strcmp(word, "at"))
		return parse_at(p, &rest);
	if (!strcmp(word, "loop") || !strcmp(word, "taken"))
		return parse_branch(p, *word == 'l', &rest);
	char *arg = strtok_r(NULL, " \t\r", &rest);
	if (!strcmp(word, "exec")) {
		char *end = arg;

		p->a->exec = arg ? strtoull(arg, &end, 16) : 0;
		return (arg && end != arg && !*end) ||
		       reject_line(p, "exec: wanted a mask in hex", arg);
	}
	if (!strcmp(word, "groups"))
		return parse_count(p, arg, 65536, &v) &&
		       (p->s->n_groups = (int)v);
	if (!strcmp(word, "waves"))
		return parse_count(p, arg, SIM_WAVES_MAX, &v) &&
		       (p->s->waves_per_group = (int)v);
	return reject_line(p, "wanted groups, waves, exec, loop, taken or at",
			   word);
}

/* Walkers of all waves are made at once. */
static bool check_waves(const struct parser *p)
{
	int most = (1 << 19) / p->s->waves_per_group;

	return p->s->n_groups <= most ||
	       err_set(p->e, ERR_INPUT, "%s: %d workgroups of %d waves: wanted "
		       "up to %d", p->name, p->s->n_groups,
		       p->s->waves_per_group, most);
}

static bool parse_description(struct parser *p, const char *text)
{
	char *copy = arena_strdup(&p->a->mem, text);
	bool ok = true;

	for (char *next = copy; ok && next && *next;) {
		char *line = next;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		p->line++;
		ok = parse_line(p, line);
	}
	return ok;
}

/* ---- the waves ---- */

static struct walker *walker_of(const struct sim_source *s, int wave)
{
	const struct affine *a = s->ctx;

	return &a->walker[wave];
}

/* Pointers are the same for all waves; ids of work-items and group differ. */
static struct sim_lanes *new_lanes(const struct sim_source *s, int group,
				   int wave)
{
	struct sim_lanes *l = xmalloc(sizeof(*l));

	sim_lanes_init(l, 0);
	for (int k = 0; k < SIM_LANES; k++)
		l->v[0][k] += (uint32_t)(wave * s->wave_size);
	if (s->group_sgpr)
		l->s[s->group_sgpr] = (uint32_t)group;
	return l;
}

static bool affine_begin(struct sim_source *s, int group, uint64_t cycle,
			 struct err *e)
{
	struct affine *a = s->ctx;

	(void)cycle;
	(void)e;
	for (int k = 0; k < s->waves_per_group; k++) {
		struct walker *w = walker_of(s, group * s->waves_per_group + k);

		w->pc = s->code_va;
		w->count = xcalloc(a->dwords, sizeof(*w->count));
		if (a->guess)
			w->lanes = new_lanes(s, group, k);
	}
	return true;
}

static bool affine_pc(struct sim_source *s, int wave, uint64_t *pc)
{
	const struct walker *w = walker_of(s, wave);

	*pc = w->pc;
	return !w->ended;
}

static struct isa_target target_of(const struct sim_source *s)
{
	const struct isa_chip *chip =
		s->chip ? isa_chip_of_code(s->chip) : NULL;

	return (struct isa_target){ chip ? chip->gen : ISA_GFX11, s->wave_size,
				    false };
}

static const struct isa_inst *decode_at(struct sim_source *s, uint64_t off,
					struct err *e)
{
	struct affine *a = s->ctx;
	struct isa_target t = target_of(s);

	if (off / 4 >= a->dwords) {
		err_set(e, ERR_INPUT, "offset %llu: outside the code",
			(unsigned long long)off);
		return NULL;
	}
	if (!a->decoded[off / 4]) {
		const char *why = isa_decode(&t, s->code + off,
					     s->code_bytes - off,
					     &a->inst[off / 4]);
		if (why) {
			err_set(e, ERR_INPUT, "offset %llu: %s",
				(unsigned long long)off, why);
			return NULL;
		}
		a->decoded[off / 4] = true;
	}
	return &a->inst[off / 4];
}

static bool is_taken(const struct affine *a, struct walker *w, uint64_t at)
{
	const struct place *p = a->place[at];

	if (!p)
		return !a->guided && w->count[at]++;
	if (!p->loop || w->count[at]++ < p->trips)
		return p->taken || p->loop;
	w->count[at] = 0;
	return false;
}

static void drop_walker(struct walker *w)
{
	free(w->count);
	free(w->lanes);
	w->count = NULL;
	w->lanes = NULL;
}

static bool follow_control(struct sim_source *s, struct walker *w,
			   const struct isa_inst *in, struct err *e)
{
	const struct isa_op_info *op = isa_op_info(in->op);
	uint64_t at = (w->pc - s->code_va) / 4;
	bool relative = in->n_opnd && in->opnd[0].slot == ISA_SLOT_REL;

	w->pc += in->size_bytes;
	if (op->flags & ISA_END) {
		w->ended = true;
		drop_walker(w);
	} else if (relative &&
		   (in->op == ISA_s_branch || is_taken(s->ctx, w, at))) {
		w->pc += (uint64_t)(int64_t)(int16_t)in->f[ISA_F_SIMM16] * 4;
	} else if (in->op == ISA_s_setpc_b64 || in->op == ISA_s_swappc_b64) {
		return err_set(e, ERR_UNSUPPORTED, "offset %llu: %s goes where "
			       "an affine description cannot follow; use a "
			       "trace", (unsigned long long)at * 4, op->name);
	}
	return true;
}

static void fill_accesses(struct sim_source *s, int wave, const struct place *p,
			  const struct isa_inst *in, uint64_t n,
			  struct sim_step *out)
{
	struct affine *a = s->ctx;
	int group = wave / s->waves_per_group;
	int64_t first = p->base + wave % s->waves_per_group * p->wave +
			group * p->group + (int64_t)n * p->step;
	const uint64_t exec = a->exec;
	uint64_t column = 0;
	uint32_t k = 0;

	out->access_bytes = sim_access_bytes(in);
	for (int l = 0; l < s->wave_size; l++) {
		if (column == p->fold) {
			column = 0;
			first += p->row;
		}
		int64_t at = first + (int64_t)column++ * p->lane;
		if (!(exec >> l & 1))
			continue;
		a->access[k].lane = (int16_t)l;
		a->access[k++].at = (uint64_t)at;
	}
	out->n_accesses = k;
	out->access = a->access;
}

static void fill_step(struct sim_source *s, int wave, uint64_t at,
		      const struct isa_inst *in, struct sim_step *out)
{
	struct affine *a = s->ctx;
	const struct isa_op_info *op = isa_op_info(in->op);
	bool memory = op->flags & (ISA_LOAD | ISA_STORE | ISA_ATOMIC);
	struct walker *w = walker_of(s, wave);
	const struct place *p = a->place[at];

	*out = (struct sim_step){ .exec = a->exec };
	if (w->lanes && !(p && p->memory))
		sim_lanes_access(w->lanes, in, out);
	if (w->lanes)
		sim_lanes_exec(w->lanes, in);
	if (!memory || op->pipe == ISA_PIPE_SMEM || !p || !p->memory)
		return;
	out->kind = op->pipe == ISA_PIPE_LDS ? TRACE_LDS : TRACE_MEMORY;
	if (op->flags & ISA_STORE)
		out->kind |= TRACE_WRITE;
	if (op->flags & ISA_ATOMIC)
		out->kind |= TRACE_ATOMIC;
	fill_accesses(s, wave, p, in, w->count[at]++, out);
}

static bool affine_step(struct sim_source *s, int wave, uint64_t cycle,
			struct sim_step *out, struct err *e)
{
	struct walker *w = walker_of(s, wave);
	uint64_t off = w->pc - s->code_va;
	const struct isa_inst *in = decode_at(s, off, e);

	(void)cycle;
	if (!in)
		return false;
	fill_step(s, wave, off / 4, in, out);
	return follow_control(s, w, in, e);
}

static bool affine_trips(struct sim_source *s, int wave, uint64_t pc,
			 uint64_t *left, struct err *e)
{
	const struct affine *a = s->ctx;
	const uint64_t at = (pc - s->code_va) / 4;
	const struct place *p = a->place[at];

	(void)e;
	*left = p && p->loop ? p->trips - walker_of(s, wave)->count[at] : 0;
	return true;
}

/* Follow the code, and keep count. */
static bool affine_jump(struct sim_source *s, int wave, uint64_t most,
			uint64_t *taken, struct err *e)
{
	struct affine *a = s->ctx;
	struct walker *w = walker_of(s, wave);
	const uint64_t at = (w->pc - s->code_va) / 4;
	const struct place *p = a->place[at];

	for (*taken = 0; *taken < most && !w->ended && p && p->loop &&
			 w->count[at] < p->trips; ++*taken)
		do {
			const uint64_t off = w->pc - s->code_va;
			const struct isa_inst *in = decode_at(s, off, e);

			if (!in)
				return false;
			if (w->lanes)
				sim_lanes_exec(w->lanes, in);
			if (a->place[off / 4] && a->place[off / 4]->memory)
				w->count[off / 4]++;
			if (!follow_control(s, w, in, e))
				return false;
		} while (!w->ended && (w->pc - s->code_va) / 4 != at);
	return true;
}

static void affine_sharing(struct sim_source *s, uint64_t pc,
			   struct sim_sharing *out)
{
	const struct affine *a = s->ctx;
	const struct place *p = a->place[(pc - s->code_va) / 4];

	if (p && p->memory)
		*out = (struct sim_sharing){ p->share, p->near };
}

/* ---- opening ---- */

/* Is there vector memory or LDS that the description leaves open? */
static bool is_open(const struct sim_source *s)
{
	const struct affine *a = s->ctx;
	struct isa_target t = target_of(s);
	struct isa_inst in;

	for (size_t off = 0; off < s->code_bytes; off += in.size_bytes) {
		const struct place *p = a->place[off / 4];

		if (isa_decode(&t, s->code + off, s->code_bytes - off, &in))
			in.size_bytes = 4;
		else if (isa_op_info(in.op)->flags &
				 (ISA_LOAD | ISA_STORE | ISA_ATOMIC) &&
			 isa_op_info(in.op)->pipe != ISA_PIPE_SMEM &&
			 !(p && p->memory))
			return true;
	}
	return false;
}

bool sim_affine_open(struct sim_source *s, const uint8_t *code, size_t bytes,
		     uint64_t code_va, const char *text, const char *name,
		     struct err *e)
{
	struct affine *a = xcalloc(1, sizeof(*a));
	struct parser p = { .a = a, .s = s, .name = name, .e = e };

	s->ctx = a;
	s->code = code;
	s->code_bytes = bytes;
	s->code_va = code_va;
	s->begin = affine_begin;
	s->pc = affine_pc;
	s->step = affine_step;
	s->sharing = affine_sharing;
	s->trips = affine_trips;
	s->jump = affine_jump;
	s->wave_size = s->wave_size ? s->wave_size : 32;
	s->n_groups = s->n_groups ? s->n_groups : 1;
	s->waves_per_group = s->waves_per_group ? s->waves_per_group : 1;
	a->dwords = bytes / 4;
	a->exec = s->wave_size == 64 ? UINT64_MAX : UINT32_MAX;
	a->place = arena_alloc(&a->mem, (a->dwords + 1) * sizeof(*a->place));
	a->inst = xcalloc(a->dwords + 1, sizeof(*a->inst));
	a->decoded = xcalloc(a->dwords + 1, sizeof(*a->decoded));
	if (!parse_description(&p, text) || !check_waves(&p)) {
		sim_affine_close(s);
		return false;
	}
	a->guess = is_open(s);
	a->walker = xcalloc((size_t)s->n_groups * (size_t)s->waves_per_group,
			    sizeof(*a->walker));
	return true;
}

void sim_affine_close(struct sim_source *s)
{
	struct affine *a = s->ctx;

	if (!a)
		return;
	for (int i = 0; a->walker && i < s->n_groups * s->waves_per_group; i++)
		drop_walker(&a->walker[i]);
	free(a->walker);
	free(a->inst);
	free(a->decoded);
	arena_fini(&a->mem);
	free(a);
	s->ctx = NULL;
}
