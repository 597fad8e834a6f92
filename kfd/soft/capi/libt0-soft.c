/*
 * kfd/soft/capi/libt0-soft.c - the C interface to the executor: workgroups
 * over threads, without a device.
 *
 * As many workgroups are in flight as fit in memory, and each gives way to
 * others after some thousand instructions, so that workgroups that wait for
 * one another come to an end.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "kfd/abi.h"
#include "kfd/soft/capi/libt0-soft.h"
#include "kfd/soft/exec/exec.h"

#define EXPORT __attribute__((visibility("default")))

#define VGPRS 256u
#define LDS_MAX_BYTES 65536u
#define GROUP_MAX 1024u
#define THREADS_MAX 256u
#define RESIDENT_MAX_BYTES (UINT64_C(256) << 20)
#define SCRATCH_MAX_BYTES (UINT64_C(16) << 30)
#define SLICE_INSTS 4096u
#define TURN_SLICES 32
/* Apertures where no process has memory. */
#define LDS_BASE 0x0001000000000000ull
#define SCRATCH_BASE 0x0002000000000000ull

_Static_assert(T0_SOFT_ILLEGAL == (int)SOFT_FAULT_ILLEGAL &&
		       T0_SOFT_UNSUPPORTED == (int)SOFT_FAULT_UNSUPPORTED &&
		       T0_SOFT_MEMORY == (int)SOFT_FAULT_MEMORY &&
		       T0_SOFT_APERTURE == (int)SOFT_FAULT_APERTURE &&
		       T0_SOFT_ALIGN == (int)SOFT_FAULT_ALIGN &&
		       T0_SOFT_TRAP == (int)SOFT_FAULT_TRAP &&
		       T0_SOFT_HANG == (int)SOFT_FAULT_HANG &&
		       T0_SOFT_ARGUMENT == (int)SOFT_FAULT_PACKET,
	       "status codes are fault kinds");

struct group {
	struct soft_group g;
	struct group *next;
	bool fresh;
	uint64_t index;
	uint8_t *regs, *scratch;
};

struct run {
	struct t0_soft_launch l;
	struct soft_env env;
	struct soft_range *map; /* of the process, sorted */
	size_t n_map, cap_map;
	uint32_t waves, wave_size, lds_bytes, max_resident;
	uint64_t total, deadline;
	pthread_mutex_t lock; /* guards what follows */
	uint64_t started, ended;
	uint32_t resident;
	struct group *waiting, **waiting_end, *spare;
	struct t0_soft_fault fault;
};

/* ---------------------------------------------------- address space ---- */

static void add_range(struct run *r, uint64_t from, uint64_t to, uint32_t flags)
{
	if (from >= to)
		return;
	VEC_GROW(r->map, r->n_map, 1, r->cap_map);
	r->map[r->n_map++] = (struct soft_range){
		.va = from,
		.size_bytes = to - from,
		.host = (uint8_t *)(uintptr_t)from,
		.flags = flags,
	};
}

/* A mapping of the process; the code inside it can be executed. */
static void add_mapping(struct run *r, uint64_t from, uint64_t to,
			uint32_t flags)
{
	const uint64_t code = (uintptr_t)r->l.code;
	const uint64_t end = code + r->l.code_bytes;
	const uint64_t a = code > from ? code : from;
	const uint64_t b = end < to ? end : to;

	if (a >= b) {
		add_range(r, from, to, flags);
		return;
	}
	add_range(r, from, a, flags);
	add_range(r, a, b, flags | SOFT_MEM_EXEC);
	add_range(r, b, to, flags);
}

static bool read_map(struct run *r)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char *line = NULL;
	size_t cap = 0;

	if (!f)
		return false;
	while (getline(&line, &cap, f) > 0) {
		uint64_t from, to;
		char perm[5];

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &from, &to,
			   perm) != 3 || perm[0] != 'r' || strstr(line, "[v"))
			continue;
		add_mapping(r, from, to, SOFT_MEM_READ |
			    (perm[1] == 'w' ? SOFT_MEM_WRITE : 0));
	}
	const bool whole = feof(f);
	free(line);
	fclose(f);
	return whole;
}

static bool find_range(void *ctx, uint64_t va, struct soft_range *out)
{
	const struct run *r = ctx;
	size_t lo = 0, hi = r->n_map;

	while (lo < hi) {
		const size_t mid = (lo + hi) / 2;

		if (r->map[mid].va + r->map[mid].size_bytes <= va)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == r->n_map || va < r->map[lo].va)
		return false;
	*out = r->map[lo];
	return true;
}

static uint64_t read_realtime(void *ctx)
{
	(void)ctx;
	return time_mono_ns() / 10; /* 100 MHz */
}

/* ------------------------------------------------------------ groups ---- */

static size_t wave_bytes(const struct run *r)
{
	return (size_t)r->wave_size * VGPRS * 4;
}

static size_t scratch_bytes(const struct run *r)
{
	return (size_t)r->l.scratch_bytes_per_lane * r->wave_size;
}

static struct group *group_new(const struct run *r)
{
	const size_t regs = r->waves * wave_bytes(r) + r->lds_bytes + 64;
	struct group *g = xcalloc(1, sizeof(*g));

	g->g.env = &r->env;
	g->g.wave = xcalloc(r->waves, sizeof(*g->g.wave));
	g->regs = xaligned(64, (regs + 63) & ~(size_t)63);
	g->scratch = xcalloc(r->waves, scratch_bytes(r) + 1);
	return g;
}

static void group_free(struct group *g)
{
	free(g->g.wave);
	free(g->regs);
	free(g->scratch);
	free(g);
}

static uint32_t mode_of(uint32_t rsrc1)
{
	uint32_t mode = rsrc1 >> 12 & 0xff;

	if (!rsrc1) /* round to nearest, keep denormals */
		return SOFT_MODE_DENORM_F32 | SOFT_MODE_DENORM_F16_F64 |
		       SOFT_MODE_DX10_CLAMP | SOFT_MODE_IEEE;
	mode |= rsrc1 & AMD_RSRC1_DX10_CLAMP ? SOFT_MODE_DX10_CLAMP : 0;
	mode |= rsrc1 & AMD_RSRC1_IEEE_MODE ? SOFT_MODE_IEEE : 0;
	mode |= rsrc1 & AMD_RSRC1_FP16_OVFL ? SOFT_MODE_FP16_OVFL : 0;
	return mode;
}

static void init_scalars(const struct run *r, struct soft_wave *w)
{
	const uint32_t n = AMD_RSRC2_USER_SGPRS(r->l.rsrc2);
	const uint64_t kernarg = (uintptr_t)r->l.kernarg;
	uint32_t *s = w->s + n;

	if (r->l.user_sgprs) {
		memcpy(w->s, r->l.user_sgprs, r->l.n_user_sgprs * 4);
	} else {
		w->s[0] = (uint32_t)kernarg;
		w->s[1] = (uint32_t)(kernarg >> 32);
	}
	for (int i = 0; i < 3; i++)
		if (r->l.rsrc2 & AMD_RSRC2_WORKGROUP_ID_X << i)
			*s++ = w->group->id[i];
}

static void init_vectors(const struct run *r, struct soft_wave *w)
{
	const uint32_t *n = r->l.group_size;
	const uint32_t total = n[0] * n[1] * n[2];

	for (uint32_t i = 0; i < r->wave_size; i++) {
		const uint32_t flat = (uint32_t)w->index * r->wave_size + i;
		const uint32_t x = flat % n[0], y = flat / n[0] % n[1];

		if (flat >= total)
			return;
		w->v[i / SOFT_LANES][0][i % SOFT_LANES] =
			x | y << 10 | flat / n[0] / n[1] << 20;
		w->s[ISA_R_EXEC_LO + i / SOFT_LANES] |= 1u << i % SOFT_LANES;
	}
}

static void wave_start(const struct run *r, struct group *g, int index)
{
	struct soft_wave *w = &g->g.wave[index];
	uint8_t *regs = g->regs + (size_t)index * wave_bytes(r);

	memset(w, 0, sizeof(*w));
	w->group = &g->g;
	w->pc = (uintptr_t)r->l.code;
	w->mode = mode_of(r->l.rsrc1);
	w->wave_size = (int)r->wave_size;
	w->n_vgprs = VGPRS;
	w->index = index;
	w->v[0] = (void *)regs;
	w->v[1] = r->wave_size == 64 ? (void *)(regs + wave_bytes(r) / 2) :
				       NULL;
	w->scratch = g->scratch + (size_t)index * scratch_bytes(r);
	w->scratch_lane_bytes = r->l.scratch_bytes_per_lane;
	w->scratch_va = (uintptr_t)w->scratch;
	w->state = SOFT_READY;
	w->signalled = w->opened = w->named_opened = false;
	w->joined = 0;
	w->start_clock = read_realtime(NULL);
	init_scalars(r, w);
	init_vectors(r, w);
}

static void group_start(const struct run *r, struct group *g)
{
	const uint32_t *n = r->l.groups;

	g->g.id[0] = (uint32_t)(g->index % n[0]);
	g->g.id[1] = (uint32_t)(g->index / n[0] % n[1]);
	g->g.id[2] = (uint32_t)(g->index / n[0] / n[1]);
	g->g.n_waves = (int)r->waves;
	g->g.n_ended = g->g.n_waiting = 0;
	g->g.lds = g->regs + r->waves * wave_bytes(r);
	g->g.lds_size_bytes = r->lds_bytes;
	memset(g->regs, 0, r->waves * wave_bytes(r) + r->lds_bytes);
	memset(g->scratch, 0, r->waves * scratch_bytes(r));
	for (int i = 0; i < g->g.n_waves; i++)
		wave_start(r, g, i);
	g->fresh = false;
}

/* ------------------------------------------------------------ faults ---- */

static void set_fault(struct run *r, const struct soft_wave *w, int status,
		      uint64_t va, int lane, const char *text)
{
	struct t0_soft_fault *f = &r->fault;
	const uint32_t *id = w->group->id;

	pthread_mutex_lock(&r->lock);
	if (!f->status) {
		f->status = status;
		memcpy(f->workgroup, id, sizeof(f->workgroup));
		f->wave = (uint32_t)w->index;
		f->lane = lane;
		f->pc = w->pc;
		f->address = va;
		snprintf(f->text, sizeof(f->text),
			 "%s: %s (workgroup %u,%u,%u, wave %d, byte 0x%" PRIx64
			 " of the code)", t0_soft_status_name(status), text,
			 id[0], id[1], id[2], w->index,
			 w->pc - (uintptr_t)r->l.code);
	}
	pthread_mutex_unlock(&r->lock);
}

/* ---------------------------------------------------------- schedule ---- */

enum turn { TURN_ENDED, TURN_MORE, TURN_FAILED };

static bool run_slice(struct run *r, struct soft_wave *w)
{
	if (w->state != SOFT_READY)
		return true;
	soft_wave_run(w, SLICE_INSTS);
	if (w->state != SOFT_FAULTED)
		return true;
	w->pc = w->fault.pc;
	set_fault(r, w, (int)w->fault.kind, w->fault.va, w->fault.lane,
		  w->fault.text);
	return false;
}

static enum turn run_turn(struct run *r, struct group *g)
{
	for (int n = 0; n < TURN_SLICES; n++) {
		for (int i = 0; i < g->g.n_waves; i++)
			if (!run_slice(r, &g->g.wave[i]))
				return TURN_FAILED;
		soft_open_barrier(&g->g, NULL, NULL);
		if (g->g.n_ended == g->g.n_waves)
			return TURN_ENDED;
	}
	if (!r->deadline || time_mono_ns() < r->deadline)
		return TURN_MORE;
	set_fault(r, g->g.wave, T0_SOFT_HANG, 0, -1, "the deadline has passed");
	return TURN_FAILED;
}

/* New workgroups first, then those that gave way. */
static struct group *take_group(struct run *r)
{
	struct group *g = NULL;

	pthread_mutex_lock(&r->lock);
	if (r->fault.status) {
		;
	} else if (r->started < r->total && r->resident < r->max_resident) {
		g = r->spare;
		if (g)
			r->spare = g->next;
		else
			g = group_new(r);
		g->index = r->started++;
		g->fresh = true;
		r->resident++;
	} else if (r->waiting) {
		g = r->waiting;
		r->waiting = g->next;
		if (!r->waiting)
			r->waiting_end = &r->waiting;
	}
	pthread_mutex_unlock(&r->lock);
	return g;
}

static void put_group(struct run *r, struct group *g, enum turn t)
{
	pthread_mutex_lock(&r->lock);
	if (t == TURN_MORE) {
		g->next = NULL;
		*r->waiting_end = g;
		r->waiting_end = &g->next;
	} else {
		r->ended += t == TURN_ENDED;
		r->resident--;
		g->next = r->spare;
		r->spare = g;
	}
	pthread_mutex_unlock(&r->lock);
}

static void *run_worker(void *arg)
{
	struct soft_code_cache *code = soft_code_cache_new();
	struct run *r = arg;
	struct group *g;

	while ((g = take_group(r))) {
		if (g->fresh)
			group_start(r, g);
		g->g.code = code;
		for (int i = 0; i < g->g.n_waves; i++)
			memset(&g->g.wave[i].last, 0,
			       sizeof(g->g.wave[i].last));
		put_group(r, g, run_turn(r, g));
	}
	soft_code_cache_free(code);
	return NULL;
}

static void run_all(struct run *r)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t n = r->l.threads ? r->l.threads :
		     cpus > 0	  ? (uint32_t)cpus :
				    1;
	pthread_t thread[THREADS_MAX];
	uint32_t started = 0;

	if (n > THREADS_MAX)
		n = THREADS_MAX;
	if (n > r->total)
		n = (uint32_t)r->total;
	while (started + 1 < n &&
	       !pthread_create(&thread[started], NULL, run_worker, r))
		started++;
	run_worker(r);
	while (started)
		pthread_join(thread[--started], NULL);
}

/* ------------------------------------------------------------ launch ---- */

static const char *check_launch(struct run *r)
{
	struct t0_soft_launch *l = &r->l;
	uint64_t size = 1;

	r->total = 1;
	for (int i = 0; i < 3; i++) {
		l->groups[i] += !l->groups[i];
		l->group_size[i] += !l->group_size[i];
		if (l->group_size[i] > GROUP_MAX)
			return "a workgroup has at most 1024 work-items";
		size *= l->group_size[i];
		if (l->groups[i] > UINT64_C(1) << 62 >> 31 ||
		    r->total > UINT64_MAX / l->groups[i])
			return "there are too many workgroups";
		r->total *= l->groups[i];
	}
	r->wave_size = l->wave_size ? l->wave_size : 32;
	r->lds_bytes = (l->rsrc2 >> 15 & 0x1ff) * 512;
	r->waves = (uint32_t)((size + r->wave_size - 1) / r->wave_size);
	if (size > GROUP_MAX)
		return "a workgroup has at most 1024 work-items";
	if (r->wave_size != 32 && r->wave_size != 64)
		return "waves have 32 or 64 lanes";
	if (r->lds_bytes > LDS_MAX_BYTES)
		return "a workgroup has at most 65536 bytes of LDS";
	if (!l->code || l->code_bytes < 4 || (uintptr_t)l->code % 4)
		return "code must be dwords, aligned to 4";
	if (l->user_sgprs && l->n_user_sgprs > 102)
		return "there are too many user SGPRs";
	if (scratch_bytes(r) * r->waves > SCRATCH_MAX_BYTES)
		return "that much scratch does not fit";
	return NULL;
}

static uint32_t max_resident(const struct run *r)
{
	const uint64_t one = r->waves * (wave_bytes(r) + scratch_bytes(r)) +
			     r->lds_bytes;

	return (uint32_t)(1 + RESIDENT_MAX_BYTES / one);
}

static void groups_free(struct group *g)
{
	while (g) {
		struct group *next = g->next;

		group_free(g);
		g = next;
	}
}

EXPORT int t0_soft_run(const struct t0_soft_launch *l, struct t0_soft_fault *f)
{
	struct run r = { .l = *l, .fault = { .lane = -1 } };
	const char *why = check_launch(&r);

	if (!why && !read_map(&r))
		why = "/proc/self/maps cannot be read";
	if (why) {
		r.fault.status = T0_SOFT_ARGUMENT;
		snprintf(r.fault.text, sizeof(r.fault.text), "%s", why);
	} else {
		r.env = (struct soft_env){
			.gen = ISA_GFX11,
			.ctx = &r,
			.find = find_range,
			.realtime = read_realtime,
			.shared_base = LDS_BASE,
			.shared_limit = LDS_BASE | 0xffffffff,
			.private_base = SCRATCH_BASE,
			.private_limit = SCRATCH_BASE | 0xffffffff,
		};
		r.waiting_end = &r.waiting;
		r.max_resident = max_resident(&r);
		r.deadline = l->deadline_ns ? time_mono_ns() + l->deadline_ns :
					      0;
		pthread_mutex_init(&r.lock, NULL);
		run_all(&r);
		groups_free(r.waiting);
		groups_free(r.spare);
		pthread_mutex_destroy(&r.lock);
	}
	free(r.map);
	if (f)
		*f = r.fault;
	return r.fault.status;
}

EXPORT const char *t0_soft_status_name(int status)
{
	static const char *const name[] = {
		[T0_SOFT_OK] = "success",
		[T0_SOFT_ILLEGAL] = "illegal instruction",
		[T0_SOFT_UNSUPPORTED] = "unsupported instruction",
		[T0_SOFT_MEMORY] = "memory fault",
		[T0_SOFT_APERTURE] = "aperture violation",
		[T0_SOFT_ALIGN] = "misaligned atomic",
		[T0_SOFT_TRAP] = "trap",
		[T0_SOFT_HANG] = "hang",
		[T0_SOFT_ARGUMENT] = "bad argument",
	};

	return status >= 0 && status < (int)ARRAY_SIZE(name) ? name[status] :
							       "unknown";
}

EXPORT int run_asm_ex(const void *code, uint32_t code_bytes, uint32_t gx,
		      uint32_t gy, uint32_t gz, uint32_t lx, uint32_t ly,
		      uint32_t lz, const void *kernarg, uint32_t rsrc2,
		      uint32_t scratch_bytes_per_lane,
		      const uint32_t *user_sgprs, uint32_t n_user_sgprs)
{
	const struct t0_soft_launch l = {
		.code = code,
		.code_bytes = code_bytes,
		.groups = { gx, gy, gz },
		.group_size = { lx, ly, lz },
		.rsrc2 = rsrc2,
		.scratch_bytes_per_lane = scratch_bytes_per_lane,
		.user_sgprs = n_user_sgprs ? user_sgprs : NULL,
		.n_user_sgprs = n_user_sgprs,
		.kernarg = kernarg,
	};

	return t0_soft_run(&l, NULL);
}
