/*
 * compiler/sim/object_source.c - waves of a code object's kernel, followed by
 * what its code computes (machine.h).
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/sim/machine.h"

#define KERNARG_VA (UINT64_C(1) << 46)
#define PACKET_VA (KERNARG_VA + (1u << 20))
#define LINE_BYTES 128
/* Loads of the last arguments may read on to there. */
#define KERNARG_ALIGN 64u

/* Bits of COMPUTE_PGM_RSRC2. */
enum { RSRC2_X = 1 << 7, RSRC2_Y = 1 << 8, RSRC2_Z = 1 << 9,
       RSRC2_INFO = 1 << 10 };

/* What the packet processor reads of a dispatch packet (HSA). */
struct packet {
	uint16_t header, setup, group_size[3], reserved;
	uint32_t grid[3], private_bytes, group_bytes;
	uint64_t kernel, kernarg, reserved2, signal;
};

struct object {
	struct machine_code code;
	struct sim_launch l;
	struct packet packet;
	uint8_t *arguments;
	struct sim_memory *memory;
	struct machine *wave; /* [n_waves]; v NULL: not resident */
	struct sim_sharing *share; /* [dwords], NULL: not looked for yet */
	int every;
	/* How far the loop at `asked_pc` goes, for a workgroup + 1. */
	struct machine scout;
	uint64_t asked_pc, left;
	int asked_group;
};

/* ---- the state that a wave begins with ---- */

static int set_sgpr_pair(struct machine *m, int reg, uint64_t v)
{
	machine_set_sgpr(m, reg, (uint32_t)v);
	machine_set_sgpr(m, reg + 1, (uint32_t)(v >> 32));
	return reg + 2;
}

static void user_sgprs(struct machine *m, const struct object *o)
{
	uint32_t props = o->l.kernel->desc.properties;
	int reg = 0;

	if (props & CO_PROP_PRIVATE_SEGMENT_BUFFER)
		reg += 4;
	if (props & CO_PROP_DISPATCH_PTR)
		reg = set_sgpr_pair(m, reg, PACKET_VA);
	if (props & CO_PROP_QUEUE_PTR)
		reg += 2;
	if (props & CO_PROP_KERNARG_SEGMENT_PTR)
		reg = set_sgpr_pair(m, reg, KERNARG_VA);
	if (props & CO_PROP_DISPATCH_ID)
		reg += 2;
	if (props & CO_PROP_FLAT_SCRATCH_INIT)
		reg += 2;
	if (props & CO_PROP_PRIVATE_SEGMENT_SIZE)
		machine_set_sgpr(m, reg, o->packet.private_bytes);
}

static void group_sgprs(struct machine *m, const struct object *o,
			const uint32_t id[3], int wave, int waves)
{
	uint32_t rsrc2 = o->l.kernel->desc.rsrc2;
	int reg = co_descriptor_user_sgprs(&o->l.kernel->desc);

	if (isa_gen_info(o->code.gen)->ids_in_ttmp) {
		machine_set_sgpr(m, ISA_R_TTMP0 + 9, id[0]);
		machine_set_sgpr(m, ISA_R_TTMP0 + 7, id[1] | id[2] << 16);
		return;
	}
	for (int k = 0; k < 3; k++)
		if (rsrc2 & (uint32_t)RSRC2_X << k)
			machine_set_sgpr(m, reg++, id[k]);
	if (rsrc2 & RSRC2_INFO)
		machine_set_sgpr(m, reg, (uint32_t)!wave << 31 |
				 (uint32_t)waves);
}

/*
 * Work-item ids are packed into v0, 10 bits each, or lie in v0 to v2.  A wave
 * without any, of a partial workgroup, does not exist.
 */
static void set_work_items(struct machine *m, const struct object *o,
			   const uint32_t size[3], int wave)
{
	const bool packed = isa_gen_info(o->code.gen)->packed_ids;
	uint32_t n = (uint32_t)o->code.wave_size, id[3][64];
	uint32_t first = (uint32_t)wave * n, total = size[0] * size[1] *
						     size[2];
	uint64_t exec = 0;

	for (uint32_t l = 0; l < n; l++) {
		uint32_t i = first + l;

		id[0][l] = i % size[0];
		id[1][l] = i / size[0] % size[1];
		id[2][l] = i / size[0] / size[1];
		if (packed)
			id[0][l] |= id[1][l] << 10 | id[2][l] << 20;
		exec |= (uint64_t)(i < total) << l;
	}
	for (int k = 0; k < (packed ? 1 : 3) && k < o->code.vgprs; k++)
		machine_set_vgpr(&o->code, m, k, id[k]);
	machine_set_sgpr(m, ISA_R_EXEC_LO, (uint32_t)exec);
	machine_set_sgpr(m, ISA_R_EXEC_HI, (uint32_t)(exec >> 32));
	m->ended = !exec;
}

static void init_wave(const struct object *o, struct machine *m, uint64_t index,
		      int wave, int waves)
{
	const uint32_t *n = o->l.groups;
	uint32_t id[3] = { (uint32_t)(index % n[0]),
			   (uint32_t)(index / n[0] % n[1]),
			   (uint32_t)(index / n[0] / n[1]) };
	uint32_t size[3], items = 1;

	for (int k = 0; k < 3; k++) {
		uint64_t first = (uint64_t)id[k] * o->l.group_size[k];
		uint64_t left = o->packet.grid[k] > first ?
					o->packet.grid[k] - first : 0;

		size[k] = left < o->l.group_size[k] ? (uint32_t)left
						    : o->l.group_size[k];
		items *= size[k];
	}
	if (items < (uint32_t)(waves * o->code.wave_size))
		waves = (int)((items + (uint32_t)o->code.wave_size - 1) /
			      (uint32_t)o->code.wave_size);
	machine_init(&o->code, m);
	user_sgprs(m, o);
	group_sgprs(m, o, id, wave, waves);
	set_work_items(m, o, size, wave);
}

/* ---- the source ---- */

static bool object_begin(struct sim_source *s, int group, uint64_t cycle,
			 struct err *e)
{
	struct object *o = s->ctx;
	int n = s->waves_per_group;

	(void)cycle;
	(void)e;
	for (int w = 0; w < n; w++)
		init_wave(o, &o->wave[group * n + w],
			  o->l.first + (uint64_t)group * (uint64_t)o->every, w,
			  n);
	return true;
}

static bool object_pc(struct sim_source *s, int wave, uint64_t *pc)
{
	const struct object *o = s->ctx;
	const struct machine *m = &o->wave[wave];

	*pc = m->pc;
	return m->v && !m->ended;
}

static bool object_step(struct sim_source *s, int wave, uint64_t cycle,
			struct sim_step *out, struct err *e)
{
	struct object *o = s->ctx;
	struct machine *m = &o->wave[wave];

	(void)cycle;
	if (!machine_step(&o->code, m, out, e))
		return false;
	s->unknown = o->code.unknown;
	if (m->ended)
		machine_fini(m);
	return true;
}

/* Ask a copy.  Waves of one workgroup make the same trips: the last answer. */
static bool object_trips(struct sim_source *s, int wave, uint64_t pc,
			 uint64_t *left, struct err *e)
{
	struct object *o = s->ctx;
	int group = wave / s->waves_per_group;

	if (o->asked_group != group + 1 || o->asked_pc != pc) {
		machine_copy(&o->code, &o->scout, &o->wave[wave]);
		if (!machine_jump(&o->code, &o->scout, pc, UINT64_MAX,
				  &o->left, e))
			return false;
		o->asked_group = group + 1;
		o->asked_pc = pc;
	}
	*left = o->left;
	return true;
}

static bool object_jump(struct sim_source *s, int wave, uint64_t most,
			uint64_t *taken, struct err *e)
{
	struct object *o = s->ctx;
	struct machine *m = &o->wave[wave];

	o->asked_group = 0;
	return machine_jump(&o->code, m, m->pc, most, taken, e);
}

/* ---- lines that several workgroups fetch ---- */

/* Lines that loads fetched, and for which workgroup and array last. */
struct lines {
	struct { uint64_t key; uint32_t last; } *slot; /* [n_slots] */
	size_t n_slots, n;
};

static void grow_lines(struct lines *l)
{
	struct lines old = *l;

	l->n_slots = old.n_slots ? 2 * old.n_slots : 4096;
	l->slot = xcalloc(l->n_slots, sizeof(*l->slot));
	for (size_t i = 0; i < old.n_slots; i++) {
		size_t at = old.slot[i].key * UINT64_C(0x9e3779b97f4a7c15) >>
			    20;

		if (!old.slot[i].key)
			continue;
		while (l->slot[at % l->n_slots].key)
			at++;
		l->slot[at % l->n_slots] = old.slot[i];
	}
	free(old.slot);
}

/* How a line is met: again by who had it last, by another, or first. */
enum meeting { MEET_AGAIN, MEET_OTHER, MEET_FIRST };

static enum meeting meet_line(struct lines *l, uint64_t key, uint32_t who)
{
	if (2 * l->n >= l->n_slots)
		grow_lines(l);
	size_t at = key * UINT64_C(0x9e3779b97f4a7c15) >> 20;

	while (l->slot[at % l->n_slots].key &&
	       l->slot[at % l->n_slots].key != key)
		at++;
	at %= l->n_slots;
	enum meeting how = !l->slot[at].key		? MEET_FIRST
			   : l->slot[at].last != who ? MEET_OTHER
						      : MEET_AGAIN;

	l->n += how == MEET_FIRST;
	l->slot[at].key = key;
	l->slot[at].last = who;
	return how;
}

/* Per instruction: lines of all who fetch, and different ones. */
struct demand {
	uint32_t all, different; /* workgroups of the GPU */
	uint32_t near_all, near_different; /* WGPs of our array */
	uint32_t n; /* executions by the wave at hand */
};

struct survey {
	struct demand *d; /* [dwords] */
	struct lines gpu, array;
};

/* Of workgroup `g`, of WGP `wgp` of our array or -1. */
static void count_lines(struct survey *v, size_t at, const struct sim_step *st,
			uint32_t g, int wgp)
{
	struct demand *d = &v->d[at];
	uint64_t last = 0;

	for (uint32_t k = 0; k < st->n_accesses; k++) {
		uint64_t line = st->access[k].at / LINE_BYTES + 1;
		uint64_t key = line << 24 | (at & 0xffffff);

		if (line == last)
			continue;
		last = line;
		enum meeting how = meet_line(&v->gpu, key, g);

		d->all += how != MEET_AGAIN;
		d->different += how == MEET_FIRST;
		if (wgp < 0)
			continue;
		how = meet_line(&v->array, key, (uint32_t)wgp);
		d->near_all += how != MEET_AGAIN;
		d->near_different += how == MEET_FIRST;
	}
}

enum { STEPS_MAX = 1 << 16 };

/* The first wave of a group, until it has been everywhere once. */
static bool sample_group(struct object *o, struct survey *v, uint32_t group,
			 int wgp, int waves)
{
	struct machine m;
	struct err e = { 0 };
	size_t dwords = o->code.size_bytes / 4;
	bool ok = true, again = false;

	for (size_t i = 0; i < dwords; i++)
		v->d[i].n = 0;
	init_wave(o, &m, group, 0, waves);
	for (int n = 0; n < STEPS_MAX && ok && !m.ended && !again; n++) {
		size_t at = (m.pc - o->code.va) / 4;
		struct sim_step st = { 0 };
		uint64_t pc = m.pc;

		ok = machine_step(&o->code, &m, &st, &e);
		if (!ok || at >= dwords)
			break;
		if (st.n_accesses && !v->d[at].n &&
		    (st.kind & TRACE_SPACE) == TRACE_MEMORY &&
		    !(st.kind & TRACE_WRITE) && st.access[0].lane >= 0)
			count_lines(v, at, &st, group, wgp);
		/* The second jump back of a loop. */
		again = m.pc < pc && v->d[at].n;
		v->d[at].n++;
	}
	machine_fini(&m);
	return ok;
}

static double share_ratio(uint32_t all, uint32_t different)
{
	return different ? (double)all / different : 1;
}

/*
 * Workgroups go round robin over the shader arrays and, in them, over the
 * WGPs.  Those of one WGP are visited one after the other, for the simulated
 * L1 sees by itself what they share.
 */
static void find_sharing(struct sim_source *s)
{
	struct object *o = s->ctx;
	size_t dwords = o->code.size_bytes / 4;
	struct survey v = { .d = xcalloc(dwords + 1, sizeof(*v.d)) };
	uint64_t unknown = o->code.unknown;
	uint64_t total = (uint64_t)o->l.groups[0] * o->l.groups[1] *
			 o->l.groups[2];
	uint64_t every = (uint64_t)o->every;
	uint64_t arrays = (uint64_t)s->arrays, near = (uint64_t)s->array_wgps;
	bool ok = true;

	for (uint64_t first = 0; first < every; first++)
		for (int k = 0; k < s->n_groups && ok; k++) {
			uint64_t g = first + (uint64_t)k * every;

			ok = g >= total ||
			     sample_group(
				     o, &v, (uint32_t)g,
				     first % arrays ?
					     -1 :
					     (int)(first / arrays % near),
				     s->waves_per_group);
		}
	o->share = xcalloc(dwords + 1, sizeof(*o->share));
	for (size_t i = 0; i < dwords; i++)
		o->share[i] = (struct sim_sharing){
			share_ratio(v.d[i].all, v.d[i].different),
			share_ratio(v.d[i].near_all, v.d[i].near_different),
		};
	o->code.unknown = unknown;
	free(v.d);
	free(v.gpu.slot);
	free(v.array.slot);
}

static void object_sharing(struct sim_source *s, uint64_t pc,
			   struct sim_sharing *out)
{
	const struct object *o = s->ctx;

	if (!o->share)
		find_sharing(s);
	*out = o->share[(pc - s->code_va) / 4];
}

/* ---- opening ---- */

static bool check_launch(const struct sim_launch *l, struct err *e)
{
	uint64_t items = 1, groups = 1;

	for (int k = 0; k < 3; k++) {
		items *= l->group_size[k];
		groups *= l->groups[k];
		if (items > 1024 || groups > UINT32_MAX)
			break;
	}
	if (!items || items > 1024)
		return err_set(e, ERR_INPUT, "workgroups of %u x %u x %u "
			       "work-items: wanted 1 to 1024",
			       l->group_size[0], l->group_size[1],
			       l->group_size[2]);
	if (!groups || groups > UINT32_MAX)
		return err_set(e, ERR_INPUT, "a grid of %u x %u x %u "
			       "workgroups: wanted 1 to 2^32", l->groups[0],
			       l->groups[1], l->groups[2]);
	if (l->kernarg_bytes < l->kernel->desc.kernarg_bytes)
		return err_set(e, ERR_INPUT, "%s: %zu bytes of arguments, its "
			       "descriptor wants %u", l->kernel->name,
			       l->kernarg_bytes, l->kernel->desc.kernarg_bytes);
	return true;
}

static void fill_source(struct sim_source *s, const struct object *o)
{
	const struct co_kernel *k = o->l.kernel;
	const struct co_descriptor *d = &k->desc;
	uint32_t items = o->l.group_size[0] * o->l.group_size[1] *
			 o->l.group_size[2];

	s->chip = k->chip;
	s->code = k->code;
	s->code_bytes = k->code_bytes;
	s->code_va = k->entry_vaddr;
	s->wave_size = co_descriptor_wave_size(d);
	s->waves_per_group = (int)((items + (uint32_t)s->wave_size - 1) /
				   (uint32_t)s->wave_size);
	s->lds_bytes = d->group_segment_bytes + o->l.lds_bytes;
	s->vgprs = co_descriptor_vgprs(d);
	s->cu_mode = !(d->rsrc1 >> 29 & 1);
	s->begin = object_begin;
	s->pc = object_pc;
	s->step = object_step;
	s->sharing = object_sharing;
	s->trips = object_trips;
	s->jump = object_jump;
}

static void fill_packet(struct object *o)
{
	for (int k = 0; k < 3; k++) {
		o->packet.group_size[k] = (uint16_t)o->l.group_size[k];
		o->packet.grid[k] = o->l.grid[k] ? o->l.grid[k] :
				    o->l.groups[k] * o->l.group_size[k];
	}
	o->packet.private_bytes = o->l.kernel->desc.private_segment_bytes;
	o->packet.group_bytes = o->l.kernel->desc.group_segment_bytes +
				o->l.lds_bytes;
	o->packet.kernarg = KERNARG_VA;
}

bool sim_object_open(struct sim_source *s, const struct sim_launch *l,
		     int n_groups, int every, struct err *e)
{
	struct object *o;

	memset(s, 0, sizeof(*s));
	if (!check_launch(l, e))
		return false;
	s->ctx = o = xcalloc(1, sizeof(*o));
	o->l = *l;
	o->every = every > 0 ? every : 1;
	const size_t room = (l->kernarg_bytes / KERNARG_ALIGN + 1) *
			    KERNARG_ALIGN;

	o->arguments = xcalloc(1, room);
	memcpy(o->arguments, l->kernarg_bytes ? l->kernarg : "",
	       l->kernarg_bytes);
	fill_packet(o);
	o->memory = xcalloc((size_t)l->n_memory + 2, sizeof(*o->memory));
	o->memory[0] = (struct sim_memory){ KERNARG_VA, o->arguments, room };
	o->memory[1] = (struct sim_memory){ PACKET_VA, &o->packet,
					    sizeof(o->packet) };
	for (int i = 0; i < l->n_memory; i++)
		o->memory[2 + i] = l->memory[i];
	s->n_groups = n_groups;
	fill_source(s, o);
	const struct isa_chip *chip =
		s->chip ? isa_chip_of_code(s->chip) : NULL;

	o->code = (struct machine_code){
		.code = s->code, .va = s->code_va, .size_bytes = s->code_bytes,
		.wave_size = s->wave_size, .vgprs = s->vgprs,
		.gen = chip ? chip->gen : ISA_GFX11, .memory = o->memory,
		.n_memory = 2 + l->n_memory,
		.guess = l->guess,
	};
	machine_code_init(&o->code);
	o->wave = xcalloc((size_t)n_groups * (size_t)s->waves_per_group,
			  sizeof(*o->wave));
	return true;
}

void sim_object_close(struct sim_source *s)
{
	struct object *o = s->ctx;

	if (!o)
		return;
	for (int i = 0; i < s->n_groups * s->waves_per_group; i++)
		machine_fini(&o->wave[i]);
	machine_code_fini(&o->code);
	machine_fini(&o->scout);
	free(o->wave);
	free(o->share);
	free(o->arguments);
	free(o->memory);
	free(o);
	s->ctx = NULL;
}
