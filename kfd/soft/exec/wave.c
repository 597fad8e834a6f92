/*
 * kfd/soft/exec/wave.c - a wave's main loop.
 *
 * With its decoded instructions (code.h), its memory and its faults.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <xmmintrin.h>

#include "isa/text/text.h"
#include "kfd/soft/exec/code.h"
#include "kfd/soft/exec/fast/fast.h"
#include "kfd/soft/exec/mem.h"

/* ------------------------------------------------------ decoded code ---- */

#define CHUNK_NODES 128
#define FIRST_SLOTS 1024 /* a power of two */
#define MOST_NODES (1u << 16) /* for code that is gone has some, too */

struct soft_chunk {
	struct soft_chunk *older;
	struct soft_node node[CHUNK_NODES];
};

struct soft_code_cache *soft_code_cache_new(void)
{
	struct soft_code_cache *c = xcalloc(1, sizeof(*c));

	c->most = SOFT_HOST_CODE;
	c->n_slots = FIRST_SLOTS;
	c->slot = xcalloc(c->n_slots, sizeof(*c->slot));
	return c;
}

bool soft_executes(enum isa_gen gen)
{
	return gen < ISA_GFX11 || gen == ISA_GFX11 || gen == ISA_GFX11_5 ||
	       gen == ISA_GFX12;
}

static void forget_ranges(struct soft_code_cache *c)
{
	const size_t used = c->n_lines < SOFT_LINES ? c->n_lines : SOFT_LINES;

	memset(c->recent, 0, sizeof(c->recent));
	memset(c->line, 0, used * sizeof(c->line[0]));
}

void soft_code_cache_reset(struct soft_code_cache *c)
{
	while (c->chunk) {
		struct soft_chunk *older = c->chunk->older;

		free(c->chunk);
		c->chunk = older;
	}
	soft_superblocks_free(c);
	soft_patterns_free(c);
	forget_ranges(c);
	memset(c->slot, 0, c->n_slots * sizeof(*c->slot));
	c->n_used = 0;
	c->n_in_chunk = 0;
	c->cur = NULL;
	c->again = false;
}

void soft_code_cache_free(struct soft_code_cache *c)
{
	if (!c)
		return;
	soft_code_cache_reset(c);
	free(c->slot);
	free(c);
}

void soft_code_cache_limit(struct soft_code_cache *c, enum soft_form most)
{
	c->most = most;
}

void soft_code_cache_stale(struct soft_code_cache *c)
{
	c->epoch++;
	forget_ranges(c);
}

static struct soft_node **find_slot(struct soft_code_cache *c, uint64_t key)
{
	size_t mask = c->n_slots - 1;
	size_t i = (key * UINT64_C(0x9e3779b97f4a7c15)) >> 32 & mask;

	while (c->slot[i] && c->slot[i]->key != key)
		i = (i + 1) & mask;
	return &c->slot[i];
}

static void grow_slots(struct soft_code_cache *c)
{
	struct soft_node **old = c->slot;
	size_t n = c->n_slots;

	c->n_slots *= 2;
	c->slot = xcalloc(c->n_slots, sizeof(*c->slot));
	for (size_t i = 0; i < n; i++)
		if (old[i])
			*find_slot(c, old[i]->key) = old[i];
	free(old);
}

static struct soft_node *node_new(struct soft_code_cache *c, uint64_t key)
{
	struct soft_node *n;

	if (!c->chunk || c->n_in_chunk == CHUNK_NODES) {
		struct soft_chunk *k = xmalloc(sizeof(*k));

		k->older = c->chunk;
		c->chunk = k;
		c->n_in_chunk = 0;
	}
	if (2 * ++c->n_used > c->n_slots)
		grow_slots(c);
	n = &c->chunk->node[c->n_in_chunk++];
	memset(n, 0, sizeof(*n));
	n->key = key;
	*find_slot(c, key) = n;
	return n;
}

/* ------------------------------------------------------------ faults ---- */

/* The bytes at the faulting instruction, as far as they can be read. */
static void copy_code(struct soft_wave *w, struct soft_fault_info *f, int want)
{
	const struct soft_env *env = w->group->env;
	struct soft_range r;
	uint64_t n;

	if (!env->find(env->ctx, f->pc, &r) || f->pc - r.va >= r.size_bytes)
		return;
	n = r.size_bytes - (f->pc - r.va);
	f->code_bytes = n < (uint64_t)want ? (int)n : want;
	memcpy(f->code, r.host + (f->pc - r.va), f->code_bytes);
}

static bool start_fault(struct soft_wave *w, enum soft_fault_kind kind)
{
	const struct soft_node *n = w->group->code->cur;
	struct soft_fault_info *f = &w->fault;

	if (w->state == SOFT_FAULTED)
		return false;
	w->state = SOFT_FAULTED;
	memset(f, 0, sizeof(*f));
	f->kind = kind;
	f->lane = -1;
	if (n)
		w->pc = n->pc;
	f->pc = w->pc;
	if (n)
		copy_code(w, f, n->u.in.size_bytes);
	return true;
}

void soft_raise(struct soft_wave *w, enum soft_fault_kind kind,
		const char *fmt, ...)
{
	va_list ap;

	if (!start_fault(w, kind))
		return;
	va_start(ap, fmt);
	vsnprintf(w->fault.text, sizeof(w->fault.text), fmt, ap);
	va_end(ap);
}

static void raise_memory(struct soft_wave *w, uint64_t va, bool write, int lane,
			 const char *why)
{
	struct soft_fault_info *f = &w->fault;

	if (!start_fault(w, SOFT_FAULT_MEMORY))
		return;
	f->va = va;
	f->write = write;
	f->lane = lane;
	snprintf(f->text, sizeof(f->text), "%s at 0x%llx: %s",
		 write ? "write" : "read", (unsigned long long)va, why);
}

/* ------------------------------------------------------------- bind ---- */

/* *op is the decoder's reason. */
static void run_illegal(struct soft_wave *w, const struct soft_uop *u)
{
	soft_raise(w, SOFT_FAULT_ILLEGAL, "illegal instruction: %s",
		   (const char *)u->op);
}

/*
 * Why not.  The kernel driver gives the VMIDs of compute processes no global
 * data share and no global wave sync (their sizes are set to 0), and the data
 * share of ordered append belongs to graphics pipelines.
 */
static const char *why_not(const struct isa_inst *in)
{
	switch (in->op) {
	case ISA_ds_gws_sema_release_all:
	case ISA_ds_gws_init:
	case ISA_ds_gws_sema_v:
	case ISA_ds_gws_sema_br:
	case ISA_ds_gws_sema_p:
	case ISA_ds_gws_barrier:
		return ": compute processes have no global wave sync (GWS)";
	case ISA_ds_ordered_count:
		return ": ordered append needs a graphics pipeline and its "
		       "global data share (GDS)";
	}
	if (in->fmt == ISA_FMT_MIMG && soft_image_refusal(in))
		return soft_image_refusal(in);
	if (isa_op_info(in->op)->flags & ISA_GFX)
		return ": graphics only";
	if (in->fmt == ISA_FMT_DS && in->f[ISA_F_GDS])
		return ": compute processes have no global data share (GDS)";
	return "";
}

static void run_unsupported(struct soft_wave *w, const struct soft_uop *u)
{
	char name[64];

	isa_print_name(&u->in, name, sizeof(name));
	soft_raise(w, SOFT_FAULT_UNSUPPORTED,
		   "%s is not executed by the emulator%s", name,
		   why_not(&u->in));
}

static soft_handler *bind_handler(const struct isa_inst *in, const void **op)
{
	soft_handler *fn;

	*op = NULL;
	switch (in->fmt) {
	case ISA_FMT_SOP1:
	case ISA_FMT_SOP2:
	case ISA_FMT_SOPC:
	case ISA_FMT_SOPK:
	case ISA_FMT_SOPP:
		fn = soft_control_handler(in);
		return fn ? fn : soft_salu_handler(in, op);
	case ISA_FMT_SMEM:
		return soft_smem_handler(in, op);
	case ISA_FMT_DS:
		return soft_lds_handler(in, op);
	case ISA_FMT_FLAT:
	case ISA_FMT_GLOBAL:
	case ISA_FMT_SCRATCH:
	case ISA_FMT_MUBUF:
	case ISA_FMT_MTBUF:
	case ISA_FMT_MIMG:
		return soft_vmem_handler(in, op);
	}
	return soft_valu_handler(in, op);
}

static int highest_vgpr(const struct isa_inst *in)
{
	int n = 0;

	for (int i = 0; i < in->n_opnd; i++) {
		const struct isa_operand *o = &in->opnd[i];
		int end = o->reg + (o->dwords ? o->dwords : 1);

		if (o->kind == ISA_K_VGPR && end > n)
			n = end;
	}
	return n;
}

/* Fill a node whose key is set from the `size` bytes of code at its pc. */
static void decode_node(struct soft_node *n, const uint8_t *code, uint64_t size,
			enum isa_gen gen, int wave_size)
{
	struct isa_target t = { gen, wave_size, .lax = true };
	size_t max = size < ISA_MAX_SIZE_BYTES ? size : ISA_MAX_SIZE_BYTES;
	const char *why = isa_decode(&t, code, max, &n->u.in);

	memcpy(n->code, code, max);
	if (why) {
		n->u.fn = run_illegal;
		n->u.op = why;
		n->u.in.size_bytes = 4;
	} else {
		soft_unify(&n->u.in);
		soft_extend_offset(&n->u.in);
		n->u.fn = bind_handler(&n->u.in, &n->u.op);
		if (!n->u.fn)
			n->u.fn = run_unsupported;
		else
			n->n_vgprs = highest_vgpr(&n->u.in), n->sound = true;
		n->moves = n->sound && soft_pattern_is_for(&n->u);
		n->branches = soft_control_handler(&n->u.in) &&
			      !soft_control_is_nothing(&n->u.in);
	}
	n->next_pc = n->pc + n->u.in.size_bytes;
}

/* The node at w->pc; NULL after raising a fault. */
static struct soft_node *fetch_node(struct soft_wave *w,
				    struct soft_code_cache *c)
{
	const struct soft_env *env = w->group->env;
	uint64_t key = w->pc | (w->wave_size == 64);
	struct soft_range r;
	struct soft_node *n;

	c->cur = NULL;
	if (!env->find(env->ctx, w->pc, &r) || r.size_bytes < 4 ||
	    w->pc - r.va > r.size_bytes - 4) {
		raise_memory(w, w->pc, false, -1, "no code there: not mapped");
		return NULL;
	}
	if (!(r.flags & SOFT_MEM_EXEC)) {
		raise_memory(w, w->pc, false, -1,
			     "no code there: not executable");
		return NULL;
	}
	n = node_new(c, key);
	n->pc = w->pc;
	decode_node(n, r.host + (w->pc - r.va), r.size_bytes - (w->pc - r.va),
		    env->gen, w->wave_size);
	n->epoch = c->epoch;
	return n;
}

/* Has memory what the node was decoded from, and all that runs with it? */
static bool is_unchanged(const struct soft_wave *w, const struct soft_node *n)
{
	const struct soft_env *env = w->group->env;
	const struct soft_node *last = n->fast ? n->fast->last : n;
	struct soft_range r;

	if (!env->find(env->ctx, n->pc, &r) || !(r.flags & SOFT_MEM_EXEC))
		return false;
	for (; n; n = n->next) {
		const uint64_t at = n->pc - r.va, size = n->u.in.size_bytes;

		/* What is illegal may be so for what comes behind it. */
		if (n->u.fn == run_illegal || at >= r.size_bytes ||
		    r.size_bytes - at < size ||
		    memcmp(r.host + at, n->code, size))
			return false;
		if (n == last)
			return true;
	}
	return false;
}

/* The node at w->pc, and the link to it from the one before. */
static struct soft_node *find_node(struct soft_wave *w,
				   struct soft_code_cache *c,
				   struct soft_node *from)
{
	struct soft_node *n = *find_slot(c, w->pc | (w->wave_size == 64));

	if (n ? n->epoch != c->epoch && !is_unchanged(w, n) :
		c->n_used >= MOST_NODES) {
		soft_code_cache_reset(c);
		n = from = NULL;
	}
	if (n)
		n->epoch = c->epoch;
	else
		n = fetch_node(w, c);
	if (!n || !from)
		return n;
	if (w->pc == from->next_pc)
		from->next = n;
	else
		from->jump = n;
	return n;
}

/* -------------------------------------------------------------- loop ---- */

static void too_few_vgprs(struct soft_wave *w, const struct soft_node *n)
{
	soft_raise(w, SOFT_FAULT_ILLEGAL,
		   "v%d is used, but the wave has allocated %d VGPRs",
		   n->n_vgprs - 1, w->n_vgprs);
}

static inline struct soft_node *
follow_link(struct soft_wave *w, struct soft_code_cache *c, struct soft_node *n)
{
	struct soft_node *to = w->pc == n->next_pc ? n->next : n->jump;

	return to && to->pc == w->pc && to->epoch == c->epoch ?
		       to :
		       find_node(w, c, n);
}

/*
 * `entered`: not from the instruction before it.  Only what is entered often
 * becomes the top of a superblock, which then holds those behind it, too.
 */
static void run_one(struct soft_wave *w, struct soft_code_cache *c,
		    struct soft_node *n, bool entered)
{
	c->cur = n;
	w->pc = n->next_pc;
	w->n_insts++;
	if (n->n_vgprs > w->n_vgprs)
		too_few_vgprs(w, n);
	else
		n->u.fn(w, &n->u);
	if (entered && ++n->n_entries == SOFT_HOT_AFTER && c->cur == n &&
	    c->most != SOFT_HANDLERS) {
		soft_superblock_translate(c, n, w->mode);
		/* Some of it may not have run since the cache was stale. */
		if (!is_unchanged(w, n))
			soft_code_cache_stale(c);
	}
}

/* The same of a wave whose accesses are watched. */
static void run_watched(struct soft_wave *w, struct soft_code_cache *c,
			struct soft_node *n)
{
	const bool sound = n->sound && n->n_vgprs <= w->n_vgprs;
	const uint32_t match = sound ? soft_watch_match(w, &n->u) : 0;

	run_one(w, c, n, true);
	if (!match || w->state != SOFT_READY)
		return;
	w->trapsts |= match;
	if (!w->privileged)
		soft_trap_enter(w, w->pc, 0);
}

/* The superblock of n; returns the node of its last instruction. */
static inline struct soft_node *run_superblock(struct soft_wave *w,
					       struct soft_code_cache *c,
					       struct soft_node *n)
{
	struct soft_node *last = soft_superblock_run(n->fast, w, c);

	if (__builtin_expect(c->again, 0)) {
		n->fast = NULL;
		n->n_entries = SOFT_HOT_AFTER - 1;
		c->again = false;
	}
	return last;
}

static bool is_conditional(const struct isa_inst *in)
{
	return in->op >= ISA_s_cbranch_scc0 && in->op <= ISA_s_cbranch_execnz;
}

/* The same of one whose instructions are counted, before they are executed. */
static void count_inst(uint64_t *counts, const struct isa_inst *in)
{
	const struct isa_op_info *o = isa_op_info(in->op);
	const bool vmem = o->pipe == ISA_PIPE_VMEM || o->pipe == ISA_PIPE_FLAT;

	counts[o->flags & ISA_END ? ISA_PIPE_SPECIAL : o->pipe]++;
	counts[SOFT_COUNT_DELAYS] += in->op == ISA_s_delay_alu;
	if (!vmem)
		return;
	if (o->flags & ISA_ATOMIC ? in->f[ISA_F_GLC] : o->flags & ISA_LOAD)
		counts[SOFT_COUNT_LOADS]++;
	else if (o->flags & (ISA_ATOMIC | ISA_STORE))
		counts[SOFT_COUNT_STORES]++;
}

/* One instruction of a wave that somebody looks at. */
static void run_seen(struct soft_wave *w, struct soft_code_cache *c,
		     struct soft_node *n, bool watched)
{
	uint64_t *counts = w->group->counts;
	const uint64_t behind = n->next_pc;
	const bool conditional = counts && is_conditional(&n->u.in);

	if (counts)
		count_inst(counts, &n->u.in);
	if (watched)
		run_watched(w, c, n);
	else
		run_one(w, c, n, true);
	if (conditional)
		counts[w->pc == behind ? SOFT_COUNT_NOT_TAKEN :
					 SOFT_COUNT_TAKEN]++;
}

void soft_wave_run(struct soft_wave *w, uint64_t max_insts)
{
	struct soft_code_cache *c = w->group->code;
	const bool watched = soft_is_watched(w);
	const bool seen = watched || w->group->counts;
	struct soft_node *n;

	/* A superblock that would have to be cut is for the next slice. */
	const bool whole = max_insts >= SOFT_SUPERBLOCK_INSTS;
	bool entered = true;

	if (w->state != SOFT_READY || max_insts == 0)
		return;
	w->s[ISA_R_NULL] = 0;
	w->mxcsr = _mm_getcsr();
	if (!w->group->env->ranges_stay)
		forget_ranges(c);
	n = find_node(w, c, NULL);
	while (n) {
		uint64_t before = w->n_insts;
		bool fast = false;

		if (seen) {
			run_seen(w, c, n, watched);
		} else if (soft_superblock_fits(n->fast, w, max_insts)) {
			n = run_superblock(w, c, n);
			fast = true;
		} else if (whole && n->fast && n->fast->n_insts > max_insts) {
			break;
		} else {
			if (n->moves && n->n_vgprs <= w->n_vgprs &&
			    c->most == SOFT_HOST_CODE)
				soft_pattern_note(w, c, n);
			run_one(w, c, n, entered);
		}
		max_insts -= w->n_insts - before;
		if (w->state != SOFT_READY || max_insts == 0)
			break;
		entered = fast || w->pc != n->next_pc || n->branches;
		n = follow_link(w, c, n);
	}
	c->cur = NULL;
}

/* ------------------------------------------------------------ memory ---- */

static bool range_holds(const struct soft_range *r, uint64_t va, uint64_t size)
{
	return va >= r->va && size <= r->size_bytes &&
	       va - r->va <= r->size_bytes - size;
}

/* The range that holds `va` becomes w->last, if it may be accessed so. */
static bool use_range(struct soft_wave *w, uint64_t va, uint32_t need, int lane)
{
	const struct soft_env *env = w->group->env;
	struct soft_range r;
	bool write = need & SOFT_MEM_WRITE;

	if (!range_holds(&w->last, va, 1)) {
		if (!env->find(env->ctx, va, &r) || !range_holds(&r, va, 1)) {
			raise_memory(w, va, write, lane, "not mapped");
			return false;
		}
		w->last = r;
	}
	if ((w->last.flags & need) == need)
		return true;
	raise_memory(w, va, write, lane,
		     need & SOFT_MEM_EXEC ? "not executable" :
		     write		  ? "read only" :
					    "not readable");
	return false;
}

void *soft_host_address(struct soft_wave *w, uint64_t va, uint32_t size_bytes,
			uint32_t need, int lane)
{
	if (!use_range(w, va, need, lane))
		return NULL;
	if (!range_holds(&w->last, va, size_bytes)) {
		raise_memory(w, w->last.va + w->last.size_bytes,
			     need & SOFT_MEM_WRITE, lane,
			     "the access runs past its mapping");
		return NULL;
	}
	return w->last.host + (va - w->last.va);
}

typedef uint16_t __attribute__((may_alias, aligned(1))) any16;
typedef uint32_t __attribute__((may_alias, aligned(1))) any32;
typedef uint64_t __attribute__((may_alias, aligned(1))) any64;

/* The largest power of two up to 8 that divides `host` and fits in `size`. */
static uint32_t access_unit(const void *host, uint32_t size)
{
	uint32_t n = 8;

	while (n > size || ((uintptr_t)host & (n - 1)))
		n >>= 1;
	return n;
}

static void copy_in(uint8_t *to, const uint8_t *from, uint32_t size)
{
	while (size) {
		uint32_t n = access_unit(from, size);

		switch (n) {
		case 8:
			*(any64 *)to = __atomic_load_n((const uint64_t *)from,
						       __ATOMIC_RELAXED);
			break;
		case 4:
			*(any32 *)to = __atomic_load_n((const uint32_t *)from,
						       __ATOMIC_RELAXED);
			break;
		case 2:
			*(any16 *)to = __atomic_load_n((const uint16_t *)from,
						       __ATOMIC_RELAXED);
			break;
		default:
			*to = __atomic_load_n(from, __ATOMIC_RELAXED);
		}
		to += n, from += n, size -= n;
	}
}

static void copy_out(uint8_t *to, const uint8_t *from, uint32_t size)
{
	while (size) {
		uint32_t n = access_unit(to, size);

		switch (n) {
		case 8:
			__atomic_store_n((uint64_t *)to, *(const any64 *)from,
					 __ATOMIC_RELAXED);
			break;
		case 4:
			__atomic_store_n((uint32_t *)to, *(const any32 *)from,
					 __ATOMIC_RELAXED);
			break;
		case 2:
			__atomic_store_n((uint16_t *)to, *(const any16 *)from,
					 __ATOMIC_RELAXED);
			break;
		default:
			__atomic_store_n(to, *from, __ATOMIC_RELAXED);
		}
		to += n, from += n, size -= n;
	}
}

/* How much of [va, va + size) the last range holds; at least its first byte. */
static uint32_t bytes_in_range(const struct soft_wave *w, uint64_t va,
			       uint32_t size)
{
	uint64_t left = w->last.va + w->last.size_bytes - va;

	return left < size ? (uint32_t)left : size;
}

bool soft_load(struct soft_wave *w, uint64_t va, void *out,
	       uint32_t size_bytes, int lane)
{
	uint8_t *to = out;

	while (size_bytes) {
		uint32_t n;

		if (!use_range(w, va, SOFT_MEM_READ, lane))
			return false;
		n = bytes_in_range(w, va, size_bytes);
		copy_in(to, w->last.host + (va - w->last.va), n);
		to += n, va += n, size_bytes -= n;
	}
	return true;
}

bool soft_store(struct soft_wave *w, uint64_t va, const void *in,
		uint32_t size_bytes, int lane)
{
	const uint8_t *from = in;

	while (size_bytes) {
		uint32_t n;

		if (!use_range(w, va, SOFT_MEM_WRITE, lane))
			return false;
		n = bytes_in_range(w, va, size_bytes);
		copy_out(w->last.host + (va - w->last.va), from, n);
		from += n, va += n, size_bytes -= n;
	}
	return true;
}
