/*
 * compiler/isel/select_args.c - kernel arguments, by scalar loads.
 */
#include "compiler/isel/select.h"

static int arg_dword(const struct ssa_arg *a)
{
	return (int)a->offset / 4;
}

static int arg_last_dword(const struct ssa_arg *a)
{
	return (int)(a->offset + ssa_type_bytes(a->type) - 1) / 4;
}

static void load_piece(struct sel *s, int at, int n)
{
	static const uint16_t op[] = { ISA_s_load_b32, ISA_s_load_b64,
				       ISA_s_load_b128, ISA_s_load_b256 };
	struct mir_opnd d = sel_new_s(s, n);
	int k = 0;

	while (1 << k < n)
		k++;
	sel_raw(s, op[k], d, s->kernarg, mir_imm((uint32_t)at * 4));
	for (uint32_t a = 0; a < s->f->n_args; a++) {
		const struct ssa_arg *arg = &s->f->arg[a];
		int first = arg_dword(arg), last = arg_last_dword(arg);

		if (first >= at && last < at + n)
			s->arg[a] = mir_part(d, first - at, last - first + 1);
	}
}

static bool arg_is_used(const struct sel *s, uint32_t a)
{
	for (struct ssa_block *b = s->f->first; b; b = b->next)
		for (struct ssa_inst *i = b->first; i; i = i->next)
			if (i->op == SSA_arg && i->imm == a &&
			    s->val[i->id].uses)
				return true;
	return false;
}

/* Does a load of dwords [at, at + n) cut an argument into two? */
static bool splits_arg(const struct sel *s, int at, int n)
{
	for (uint32_t a = 0; a < s->f->n_args; a++) {
		int first = arg_dword(&s->f->arg[a]);
		int last = arg_last_dword(&s->f->arg[a]);

		if (first < at + n && last >= at + n)
			return true;
	}
	return false;
}

/* As few loads as cover the arguments that are used, and nothing beyond. */
void sel_args(struct sel *s)
{
	int end = 0, done = 0;

	for (uint32_t a = 0; a < s->f->n_args; a++)
		if (arg_is_used(s, a))
			end = arg_last_dword(&s->f->arg[a]) + 1;
	for (uint32_t a = 0; a < s->f->n_args; a++) {
		int at = arg_dword(&s->f->arg[a]), n = 8;

		if (!arg_is_used(s, a) || at < done)
			continue;
		/* Pairs stay aligned. */
		while (n > 1 && (at + n > end || at % (n > 2 ? 2 : n) ||
				 splits_arg(s, at, n)))
			n /= 2;
		if (at + n <= arg_last_dword(&s->f->arg[a]))
			n = arg_last_dword(&s->f->arg[a]) + 1 - at;
		load_piece(s, at, n);
		done = at + n;
	}
}
