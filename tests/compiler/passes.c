/*
 * Each pass of the middle on texts written by hand: what it makes of them, and
 * what it must leave alone.
 *
 * The cases are tests/data/ssa/passes/PASS.ssa: "; case: NAME", a body that
 * follows tests/data/ssa/prelude.ssa, and "; expect:" with the body that the
 * pass makes of it, or "; expect: unchanged".
 *
 * Both bodies are brought to one form before they are compared: what nothing
 * needs goes, constants stand at the start, values and blocks are numbered as
 * they come.
 */
#include <dirent.h>
#include <stdlib.h>

#include "compiler/opt/pass.h"
#include "tests/compiler/ssa-run.h"

/* ------------------------------------------------------- the common form -- */

static int by_kind(const void *a, const void *b)
{
	const struct ssa_inst *x = *(struct ssa_inst *const *)a;
	const struct ssa_inst *y = *(struct ssa_inst *const *)b;

	if (x->op != y->op)
		return x->op < y->op ? -1 : 1;
	if (x->type.kind != y->type.kind)
		return x->type.kind < y->type.kind ? -1 : 1;
	return x->imm < y->imm ? -1 : x->imm > y->imm;
}

/* Leaves of the entry in one order, at its start. */
static void sort_leaves(struct ssa_func *f)
{
	struct ssa_inst *leaf[256];
	size_t n = 0;

	for (struct ssa_inst *i = f->first->first; i != f->first->last;
	     i = i->next)
		if (!i->n_args && ssa_op_info(i->op)->flags & SSA_OP_PURE)
			leaf[n++] = i;
	qsort(leaf, n, sizeof(*leaf), by_kind);
	for (size_t k = n; k-- > 0;) {
		ssa_unlink(leaf[k]);
		ssa_insert_before(f->first->first, leaf[k]);
	}
}

static void renumber(struct ssa_func *f)
{
	f->n_insts = f->n_blocks = 0;
	for (struct ssa_block *b = f->first; b; b = b->next) {
		b->id = f->n_blocks++;
		for (uint32_t k = 0; k < b->n_params; k++)
			b->param[k]->id = f->n_insts++;
		for (struct ssa_inst *i = b->first; i; i = i->next)
			i->id = f->n_insts++;
	}
}

/* The function as text in the common form; frees it. */
static void common_form(struct ssa_func *f, struct buf *out)
{
	struct err e = { 0 };
	bool changed;

	buf_reset(out);
	if (!ssa_pass_run(f, "dce", &changed, &e))
		buf_adds(out, e.msg);
	/* Equal constants are one. */
	for (struct ssa_inst *i = f->first->first, *next; i; i = next) {
		next = i->next;
		for (struct ssa_inst *j = f->first->first;
		     i->op == SSA_const && j != i; j = j->next)
			if (j->op == SSA_const && j->imm == i->imm &&
			    ssa_type_eq(j->type, i->type)) {
				ssa_replace(f, i, j);
				ssa_unlink(i);
				break;
			}
	}
	sort_leaves(f);
	renumber(f);
	ssa_print(f, out);
	ssa_func_free(f);
}

/* ----------------------------------------------------------------- cases -- */

static struct ssa_func *parse_body(const char *prelude, const char *body)
{
	struct buf text = { 0 };

	buf_printf(&text, "%s%s", prelude, body);
	struct ssa_func *f = ssa_text(text.data);

	buf_fini(&text);
	return f;
}

static void run_case(const char *pass, const char *name, const char *prelude,
		     const char *before, const char *after)
{
	struct buf got = { 0 }, want = { 0 };
	struct ssa_func *f = parse_body(prelude, before);
	struct err e = { 0 };
	bool changed = false;

	ok(ssa_pass_run(f, pass, &changed, &e), "%s: %s: runs%s", pass, name,
	   e.msg);
	common_form(f, &got);
	common_form(parse_body(prelude, after), &want);
	is_str(got.data, want.data, "%s: %s", pass, name);
	buf_fini(&got);
	buf_fini(&want);
}

/* What follows `mark` in *text, which is ended there; NULL if it is not. */
static char *split_at(char *text, const char *mark)
{
	char *at = text ? strstr(text, mark) : NULL;

	if (!at)
		return NULL;
	*at = 0;
	return at + strlen(mark);
}

static void run_file(const char *pass, const char *prelude)
{
	struct buf path = { 0 };

	buf_printf(&path, "passes/%s.ssa", pass);
	char *text = ssa_read(path.data);

	for (char *name = split_at(text, "\n; case: "), *next; name;
	     name = next) {
		next = split_at(name, "\n; case: ");
		char *after = split_at(name, "; expect:");
		char *before = split_at(name, "\n");

		if (!before || !after) {
			ok(false, "%s: %s: has input and expectation", pass,
			   name);
			continue;
		}
		run_case(pass, name, prelude, before,
			 strncmp(after, " unchanged", 10) ? after : before);
	}
	free(text);
	buf_fini(&path);
}

static int is_case_file(const struct dirent *d)
{
	const size_t n = strlen(d->d_name);

	return n > 4 && !strcmp(d->d_name + n - 4, ".ssa");
}

static void test_cases(void)
{
	char *prelude = ssa_read("prelude.ssa");
	struct dirent **file;
	const int n =
		scandir(SSA_DATA "passes", &file, is_case_file, alphasort);

	ok(n > 10, "there are cases");
	for (int k = 0; k < n; k++) {
		file[k]->d_name[strlen(file[k]->d_name) - 4] = 0;
		run_file(file[k]->d_name, prelude);
		free(file[k]);
	}
	if (n >= 0)
		free(file);
	free(prelude);
}

/* ------------------------------------------------------------- division -- */

/* Quotient and remainder of many numbers by d, with and without the pass. */
static int division_wrong(uint32_t d, bool is_signed)
{
	enum { N = 256 };
	static uint32_t in[N], out[2 * N];
	uint64_t seed = d;
	char text[512];
	struct ssa_call c = { 0 };
	struct err e = { 0 };
	int wrong = 0;
	bool changed;

	snprintf(text, sizeof(text),
		 "kernel d group %d 1 1 wave 32\narg i ptr i32\narg o ptr i32\n"
		 "b0:\n%%0 = arg ptr 0\n%%1 = arg ptr 1\n%%2 = const i32 %u\n"
		 "%%3 = local_id i32 0\n%%4 = const i32 2\n"
		 "%%5 = shl i32 %%3, %%4\n%%6 = load i32 %%0, %%5\n"
		 "%%7 = div_%c i32 %%6, %%2\n%%8 = rem_%c i32 %%6, %%2\n"
		 "store %%1, %%5, %%7\nstore %%1, %%5, %%8 +%d\nret\n",
		 N, d, is_signed ? 's' : 'u', is_signed ? 's' : 'u', N * 4);
	struct ssa_func *f = ssa_text(text);

	for (uint32_t k = 0; k < N; k++) /* near multiples, and any */
		in[k] = k < 128 ? (uint32_t)test_random(&seed) / d * d +
					  (k & 3) - 2 :
		k < 192 ? (uint32_t)test_random(&seed) : 0x7fffffe0u + k - 192;
	call_buffer(&c, in, sizeof(in));
	call_buffer(&c, out, sizeof(out));
	if (!ssa_pass_run(f, "magic_div", &changed, &e) || !changed ||
	    !call_run(f, &c, 1, 1, NULL, &e)) {
		diag("divide by %u: %s", d, e.msg);
		return 1;
	}
	for (uint32_t k = 0; k < N; k++) {
		const int64_t a = is_signed ? (int32_t)in[k] : (int64_t)in[k];

		wrong += out[k] != (uint32_t)(a / (int64_t)d);
		wrong += out[N + k] != (uint32_t)(a % (int64_t)d);
	}
	ssa_func_free(f);
	return wrong;
}

static void test_division(void)
{
	static const uint32_t large[] = { 0x7fffffff, 0x80000000, 0x80000001,
					  0xffffffff, 0x40000000, 0x10001,
					  641, 1000000007, 0x55555556 };
	int wrong = 0, wrong_s = 0;

	for (uint32_t d = 2; d < 300; d++) {
		wrong += division_wrong(d, false);
		wrong_s += division_wrong(d, true);
	}
	for (size_t k = 0; k < ARRAY_SIZE(large); k++) {
		wrong += division_wrong(large[k], false);
		if (large[k] < 0x80000000)
			wrong_s += division_wrong(large[k], true);
	}
	is_i64(wrong, 0, "divide: unsigned quotients and remainders");
	is_i64(wrong_s, 0, "divide: signed quotients and remainders");
}

int main(void)
{
	test_cases();
	test_division();
	return plan_done();
}
