/*
 * compiler/isel/legalize_printf.c - printf as records in the runtime's ring.
 *
 * The protocol is kfd/runtime/printf.h's: each active lane reserves space by an
 * atomic add, waits for the host to free some if the ring says so, else counts
 * what it drops, stores its arguments and, after a fence, the mark that shows
 * the record to the host.
 */
#include <string.h>

#include "compiler/isel/select.h"

/* struct kfd_printf_ring, byte offsets; the mark of a written record. */
enum { RING_LIMIT = 8, RING_MASK = 16, RING_WAIT = 20, RING_DROPPED = 24,
       RING_DATA = 64 };
#define WRITTEN 0x80000000u

struct printer {
	struct ssa_func *f;
	uint32_t arg;	       /* number of the ring's kernel argument */
	const char **entry;    /* of the metadata, one per printf */
	uint32_t n_entries;
	struct ssa_block *b;   /* being filled */
	uint32_t line;
};

static const struct ssa_type t_i1 = { SSA_I1, 1 }, t_i32 = { SSA_I32, 1 };
static const struct ssa_type t_i64 = { SSA_I64, 1 }, t_ptr = { SSA_PTR, 1 };
static const struct ssa_type t_void = { SSA_VOID, 0 };

static struct ssa_inst *append_inst(struct printer *p, enum ssa_op op,
				    struct ssa_type t, uint32_t n,
				    struct ssa_inst *const *arg)
{
	struct ssa_inst *i = ssa_inst_new(p->f, op, t, n, arg);

	i->line = p->line;
	ssa_append(p->b, i);
	return i;
}

#define MAKE(p, op, t, ...) \
	append_inst(p, op, t, \
		    sizeof((struct ssa_inst *[]){ __VA_ARGS__ }) / \
			    sizeof(struct ssa_inst *), \
		    (struct ssa_inst *[]){ __VA_ARGS__ })

static struct ssa_inst *append_const(struct printer *p, struct ssa_type t,
				     uint64_t v)
{
	struct ssa_inst *c = ssa_const(p->f, t, v);

	c->line = p->line;
	ssa_append(p->b, c);
	return c;
}

static struct ssa_inst *append_load(struct printer *p, struct ssa_inst *ring,
				    struct ssa_type t, int32_t off)
{
	struct ssa_inst *i =
		MAKE(p, SSA_load, t, ring, append_const(p, t_i32, 0));

	i->off = off;
	i->align = 2;
	i->flags = SSA_VOLATILE;
	return i;
}

static void append_store(struct printer *p, struct ssa_inst *data,
			 struct ssa_inst *at, int32_t off, struct ssa_inst *v,
			 struct ssa_inst *mask)
{
	struct ssa_inst *i = MAKE(p, SSA_store, t_void, data, at, v, mask);

	i->off = off;
	i->align = 2;
	i->flags = SSA_VOLATILE;
}

/* ---------------------------------------------------------------- text ---- */

/* "ID:N:BYTES1:...:FORMAT", with newline and colon spelt out. */
static const char *entry_text(struct printer *p, const struct ssa_inst *i)
{
	struct buf b = { 0 };
	const char *text;

	buf_printf(&b, "%u:%u", p->n_entries + 1, i->n_args);
	for (uint32_t k = 0; k < i->n_args; k++)
		buf_printf(&b, ":%u", ssa_type_bytes(i->arg[k]->type));
	buf_addc(&b, ':');
	for (const char *c = p->f->format[i->imm]; *c; c++)
		if (*c == '\n')
			buf_adds(&b, "\\n");
		else if (*c == ':')
			buf_adds(&b, "\\72");
		else
			buf_addc(&b, *c);
	text = arena_strdup(p->f->arena, b.data);
	buf_fini(&b);
	return text;
}

/* --------------------------------------------------------------- blocks ----
 */

/* What follows `i` in its block, its end included, becomes a new block. */
static struct ssa_block *split_block(struct printer *p, struct ssa_inst *i)
{
	struct ssa_block *rest = ssa_block_after(p->f, i->block);

	while (i->next) {
		struct ssa_inst *x = i->next;

		ssa_unlink(x);
		ssa_append(rest, x);
	}
	return rest;
}

static void append_jump(struct printer *p, struct ssa_block *to)
{
	ssa_jump_to(p->f, p->b, to, 0, NULL)->line = p->line;
}

/* Lanes stay until there is room, or they need not wait for it. */
static struct ssa_inst *wait_loop(struct printer *p, struct ssa_inst *ring,
				  struct ssa_inst *end, struct ssa_block *loop,
				  struct ssa_block *out)
{
	struct ssa_inst *room, *go, *br, *param;

	append_jump(p, loop);
	p->b = loop;
	room = MAKE(p, SSA_icmp, t_i1, end,
		    append_load(p, ring, t_i64, RING_LIMIT));
	room->sub = SSA_ULE;
	go = MAKE(p, SSA_icmp, t_i1, append_load(p, ring, t_i32, RING_WAIT),
		  append_const(p, t_i32, 0));
	go->sub = SSA_EQ;
	go = MAKE(p, SSA_or, t_i1, room, go);
	br = MAKE(p, SSA_branch, t_void, go);
	param = ssa_block_param(p->f, out, t_i1);
	ssa_edge_set(p->f, &br->edge[0], out, 1, &room);
	ssa_edge_set(p->f, &br->edge[1], loop, 0, NULL);
	p->b = out;
	return param;
}

static void write_record(struct printer *p, const struct ssa_inst *i,
			 struct ssa_inst *ring, struct ssa_inst *pos,
			 struct ssa_inst *room, uint32_t dwords)
{
	struct ssa_inst *at, *none, *drop, *mark;
	int32_t off = RING_DATA + 4;

	at = MAKE(p, SSA_and, t_i32, MAKE(p, SSA_trunc, t_i32, pos),
		  append_load(p, ring, t_i32, RING_MASK));
	at = MAKE(p, SSA_shl, t_i32, at, append_const(p, t_i32, 2));
	for (uint32_t k = 0; k < i->n_args; k++) {
		append_store(p, ring, at, off, i->arg[k], room);
		off += (int32_t)ssa_type_bytes(i->arg[k]->type);
	}
	append_inst(p, SSA_fence, t_void, 0, NULL);
	mark = append_const(p, t_i32,
			    WRITTEN | dwords << 16 | (p->n_entries + 1));
	append_store(p, ring, at, RING_DATA, mark, room);
	none = MAKE(p, SSA_xor, t_i1, room, append_const(p, t_i1, 1));
	drop = MAKE(p, SSA_atomic, t_i32, ring, append_const(p, t_i32, 0),
		    append_const(p, t_i32, 1), none);
	drop->sub = SSA_RMW_ADD;
	drop->off = RING_DROPPED;
	drop->align = 2;
}

static void lower_printf(struct printer *p, struct ssa_inst *i)
{
	struct ssa_block *before = i->block, *rest = split_block(p, i), *loop,
			 *out;
	struct ssa_inst *ring, *pos, *end, *room, *n;
	uint32_t dwords = 1;

	for (uint32_t k = 0; k < i->n_args; k++)
		dwords += ssa_type_bytes(i->arg[k]->type) / 4;
	p->line = i->line;
	p->b = before;
	loop = ssa_block_after(p->f, before);
	out = ssa_block_after(p->f, loop);
	ring = append_inst(p, SSA_arg, t_ptr, 0, NULL);
	ring->imm = p->arg;
	n = append_const(p, t_i64, dwords);
	pos = MAKE(p, SSA_atomic, t_i64, ring, append_const(p, t_i32, 0), n);
	pos->sub = SSA_RMW_ADD;
	pos->align = 3;
	end = MAKE(p, SSA_add, t_i64, pos, n);
	room = wait_loop(p, ring, end, loop, out);
	write_record(p, i, ring, pos, room, dwords);
	p->entry[p->n_entries] = entry_text(p, i);
	p->n_entries++;
	append_jump(p, rest);
	ssa_unlink(i);
}

/* --------------------------------------------------------------- driver ----
 */

static uint32_t count_printfs(const struct ssa_func *f)
{
	uint32_t n = 0;

	for (struct ssa_block *b = f->first; b; b = b->next)
		for (struct ssa_inst *i = b->first; i; i = i->next)
			n += i->op == SSA_printf;
	return n;
}

bool sel_legalize_printf(struct ssa_func *f, struct err *e)
{
	struct printer p = { .f = f };
	uint32_t n = count_printfs(f);

	if (n && f->n_args == SSA_MAX_ARGS)
		return err_set(e, ERR_UNSUPPORTED,
			       "kernel %s: printf needs an argument of its "
			       "own, and there are %u already",
			       f->name, f->n_args);
	if (n) { /* the ring is one more argument, which the runtime fills */
		p.arg = ssa_arg_add(f, SSA_PRINTF_RING, t_ptr);
		f->arg[p.arg].elem = t_i32;
		p.entry = arena_alloc(f->arena, n * sizeof(*p.entry));
	}
	while (p.n_entries < n) {
		struct ssa_inst *at = NULL;

		for (struct ssa_block *b = f->first; b && !at; b = b->next)
			for (struct ssa_inst *i = b->first; i && !at;
			     i = i->next)
				at = i->op == SSA_printf ? i : NULL;
		lower_printf(&p, at);
	}
	f->format = p.entry;
	f->n_formats = n;
	return true;
}
