/*
 * tests/ref/mutants.c - kernels without a wait or a barrier.
 */
#include "tests/ref/mutants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "isa/code/code.h"
#include "isa/object/object.h"
#include "isa/text/text.h"
#include "isa/verify/verify.h"
#include "kfd/cmd/value.h"
#include "tests/ref/late.h"

enum { MAX_WORDS = 64, MAX_MEMORY = 40, MAX_SITES = 4096 };

#define CODE_VA	   UINT64_C(0x7000000000)
#define KERNARG_VA UINT64_C(0x6000000000)
#define PACKET_VA  UINT64_C(0x6100000000)
#define BUFFER_VA  UINT64_C(0x1000000000)

/* ---------------------------------------------------------------- job ---- */

struct job {
	char *copy, *word[MAX_WORDS];
	int n_words;
	const char *name, *path, *kernel_name;
	uint32_t grid[3], block[3], more_lds;
	struct operand arg[MAX_MEMORY];
	int n_args;

	struct buf file;
	struct co co;
	const struct co_kernel *kernel;
	uint8_t *image; /* as it is loaded */
	uint8_t *kernarg, packet[64];
	uint32_t kernarg_bytes;
	uint8_t *result[MAX_MEMORY]; /* what the unchanged kernel leaves */
	uint64_t steps;
};

static void parse_three(const char *text, uint32_t out[3])
{
	char *end;

	for (int i = 0; i < 3; i++) {
		out[i] = (uint32_t)strtoul(text, &end, 10);
		out[i] = out[i] ? out[i] : 1;
		text = *end == ',' ? end + 1 : "";
	}
}

/* As t0-run does: the block that the kernel was compiled for, one of them. */
static void default_shape(struct job *j)
{
	if (!j->block[0]) {
		memcpy(j->block, j->kernel->reqd_workgroup_size,
		       sizeof(j->block));
		if (!j->block[0])
			parse_three("32", j->block);
	}
	if (!j->grid[0])
		memcpy(j->grid, j->block, sizeof(j->grid));
}

static bool parse_job(struct job *j, const char *line, struct err *e)
{
	char *save, *s;
	int at = 1;

	j->copy = xstrdup(line);
	for (s = strtok_r(j->copy, "\t\n", &save); s && j->n_words < MAX_WORDS;
	     s = strtok_r(NULL, "\t\n", &save))
		j->word[j->n_words++] = s;
	for (; at + 1 < j->n_words && j->word[at][0] == '-'; at += 2)
		if (!strcmp(j->word[at], "--lds"))
			j->more_lds = (uint32_t)atoi(j->word[at + 1]);
		else if (!strcmp(j->word[at], "--grid"))
			parse_three(j->word[at + 1], j->grid);
		else
			parse_three(j->word[at + 1], j->block);
	if (at + 2 > j->n_words || j->n_words - at - 2 > MAX_MEMORY)
		return err_set(e, ERR_INPUT, "'%s': no object and kernel",
			       line);
	j->name = j->word[0];
	j->path = j->word[at];
	j->kernel_name = j->word[at + 1];
	for (int i = at + 2; i < j->n_words; i++)
		if (!operand_parse(&j->arg[j->n_args++], j->word[i], 1, e))
			return false;
	return true;
}

/* ----------------------------------------------------------- arguments ---- */

static uint64_t hidden_value(const struct job *j, enum co_arg_kind kind)
{
	switch (kind) {
	case CO_ARG_HIDDEN_BLOCK_COUNT_X:
	case CO_ARG_HIDDEN_BLOCK_COUNT_Y:
	case CO_ARG_HIDDEN_BLOCK_COUNT_Z:
		return j->grid[kind - CO_ARG_HIDDEN_BLOCK_COUNT_X] /
		       j->block[kind - CO_ARG_HIDDEN_BLOCK_COUNT_X];
	case CO_ARG_HIDDEN_GROUP_SIZE_X:
	case CO_ARG_HIDDEN_GROUP_SIZE_Y:
	case CO_ARG_HIDDEN_GROUP_SIZE_Z:
		return j->block[kind - CO_ARG_HIDDEN_GROUP_SIZE_X];
	case CO_ARG_HIDDEN_REMAINDER_X:
	case CO_ARG_HIDDEN_REMAINDER_Y:
	case CO_ARG_HIDDEN_REMAINDER_Z:
		return j->grid[kind - CO_ARG_HIDDEN_REMAINDER_X] %
		       j->block[kind - CO_ARG_HIDDEN_REMAINDER_X];
	case CO_ARG_HIDDEN_GRID_DIMS:
		return j->grid[2] > 1 ? 3 : j->grid[1] > 1 ? 2 : 1;
	default:
		return 0;
	}
}

static uint64_t buffer_va(int i)
{
	return BUFFER_VA + ((uint64_t)i << 32);
}

static void put_user_arg(struct job *j, int i, const struct co_arg *a)
{
	const struct operand *o = &j->arg[i];
	uint64_t va = buffer_va(o->kind == OPERAND_REF ? o->ref : i) +
		      o->ref_offset;

	if (o->kind == OPERAND_VALUE) {
		memcpy(j->kernarg + a->offset, o->data,
		       o->size_bytes < a->size ? o->size_bytes : a->size);
		return;
	}
	if (o->kind == OPERAND_LDS) {
		uint32_t align = a->pointee_align ? a->pointee_align : 16;

		va = j->kernel->desc.group_segment_bytes + j->more_lds;
		va = (va + align - 1) / align * align;
		j->more_lds = (uint32_t)(va + o->size_bytes) -
			      j->kernel->desc.group_segment_bytes;
	}
	memcpy(j->kernarg + a->offset, &va, a->size);
}

static bool fill_arguments(struct job *j, struct err *e)
{
	const struct co_kernel *k = j->kernel;
	int user = 0;

	j->kernarg_bytes = k->kernarg_bytes + 256;
	j->kernarg = xcalloc(1, j->kernarg_bytes);
	for (uint32_t i = 0; i < k->n_args; i++) {
		const struct co_arg *a = &k->args[i];

		if (co_arg_is_hidden(a)) {
			uint64_t u = hidden_value(j, a->kind);

			memcpy(j->kernarg + a->offset, &u,
			       a->size < 8 ? a->size : 8);
			continue;
		}
		if (user == j->n_args)
			return err_set(e, ERR_INPUT, "%s: %d arguments, the "
				       "kernel has more", j->name, user);
		put_user_arg(j, user++, a);
	}
	/* hsa_kernel_dispatch_packet_t: sizes at 4 and 12. */
	for (int i = 0; i < 3; i++) {
		uint16_t block = (uint16_t)j->block[i];

		memcpy(j->packet + 4 + 2 * i, &block, 2);
		memcpy(j->packet + 12 + 4 * i, &j->grid[i], 4);
	}
	return true;
}

static bool load_job(struct job *j, struct err *e)
{
	if (!file_read(j->path, 0, &j->file, e) ||
	    !co_parse(&j->co, j->file.data, j->file.len, e))
		return false;
	j->kernel = co_kernel_require(&j->co, j->kernel_name, e);
	if (!j->kernel)
		return false;
	default_shape(j);
	if (!fill_arguments(j, e))
		return false;
	j->image = xcalloc(1, j->co.span_bytes);
	return co_image_build(&j->co, j->image, j->co.span_bytes, CODE_VA, e);
}

static void job_fini(struct job *j)
{
	for (int i = 0; i < j->n_args; i++)
		operand_fini(&j->arg[i]);
	for (int i = 0; i < MAX_MEMORY; i++)
		free(j->result[i]);
	free(j->kernarg);
	free(j->image);
	co_fini(&j->co);
	buf_fini(&j->file);
	free(j->copy);
}

/* ----------------------------------------------------------- reference ---- */

static int add_memory(struct late_memory *m, int n, uint64_t va, void *host,
		      size_t size)
{
	m[n] = (struct late_memory){ va, host, size };
	return n + 1;
}

/*
 * Run with this image; *same: the buffers are as those of the unchanged one,
 * which are kept if there are none yet.  False: it did not come to its end.
 */
static bool run_late(struct job *j, uint8_t *image, enum late_order order,
		     bool *same, struct err *e)
{
	struct late_memory m[MAX_MEMORY + 4];
	uint8_t *host[MAX_MEMORY] = { 0 };
	struct late_run r = {
		.kernel = j->kernel, .memory = m, .order = order,
		.code_va = CODE_VA, .code_bytes = j->co.span_bytes,
		.kernarg_va = KERNARG_VA, .packet_va = PACKET_VA,
		.lds_bytes = j->kernel->desc.group_segment_bytes + j->more_lds,
		.scratch_bytes = j->kernel->desc.private_segment_bytes,
		.max_steps = j->steps ? 3 * j->steps + 100000 : 0,
	};
	bool good;

	memcpy(r.grid, j->grid, sizeof(r.grid));
	memcpy(r.block, j->block, sizeof(r.block));
	r.n_memory = add_memory(m, 0, CODE_VA, image, j->co.span_bytes);
	r.n_memory = add_memory(m, r.n_memory, KERNARG_VA, j->kernarg,
				j->kernarg_bytes);
	r.n_memory = add_memory(m, r.n_memory, PACKET_VA, j->packet,
				sizeof(j->packet));
	for (int i = 0; i < j->n_args; i++) {
		const struct operand *o = &j->arg[i];

		if (o->kind != OPERAND_BUFFER)
			continue;
		host[i] = xmalloc(o->size_bytes);
		memcpy(host[i], o->data, o->size_bytes);
		r.n_memory = add_memory(m, r.n_memory, buffer_va(i), host[i],
					o->size_bytes);
	}
	good = late_run(&r, e);
	*same = good;
	for (int i = 0; i < j->n_args; i++) {
		if (good && host[i] && j->result[i])
			*same &= !memcmp(host[i], j->result[i],
					 j->arg[i].size_bytes);
		if (good && host[i] && !j->result[i])
			j->result[i] = host[i];
		else
			free(host[i]);
	}
	if (good && !j->steps)
		j->steps = r.steps;
	return good;
}

static bool save_results(const struct job *j, const char *more, struct err *e)
{
	for (int i = 0; i < j->n_args && more; i++) {
		char path[600];

		if (!j->arg[i].save)
			continue;
		snprintf(path, sizeof(path), "%s%s", j->arg[i].save, more);
		if (!file_write_atomic(path, j->result[i],
				       j->arg[i].size_bytes, e))
			return false;
	}
	return true;
}

static bool run_unchanged(struct job *j, const char *save, struct err *e)
{
	for (int order = 0; order < LATE_ORDER_COUNT; order++) {
		bool same;

		if (!run_late(j, j->image, (enum late_order)order, &same, e))
			return err_wrap(e, "%s, order %d", j->name, order);
		if (!same)
			return err_set(e, ERR_INPUT, "%s: order %d of waves "
				       "has another result", j->name, order);
	}
	return save_results(j, save, e);
}

/* ------------------------------------------------------------- mutants ---- */

struct mutant {
	enum mutant_kind kind;
	uint64_t offset; /* from the kernel's entry */
	uint32_t word;
};

#define S_NOP UINT32_C(0xbf800000)

static void add_mutant(struct mutant *v, int *n, enum mutant_kind kind,
		       uint64_t at, uint32_t word)
{
	if (*n < MAX_SITES)
		v[(*n)++] = (struct mutant){ kind, at, word };
}

/* Each count that s_waitcnt waits for, one more. */
static void add_wait(struct mutant *v, int *n, uint64_t at, uint32_t word)
{
	add_mutant(v, n, MUTANT_REMOVED, at, S_NOP);
	for (int from = 4; from <= 10; from += 6)
		if ((word >> from & 63) < 63)
			add_mutant(v, n, MUTANT_WEAKENED, at,
				   word + (1u << from));
}

static int list_mutants(const struct job *j, struct mutant *v)
{
	const struct co_kernel *k = j->kernel;
	const struct isa_target t = { ISA_GFX11, (int)k->wave_size, true };
	struct isa_inst in;
	int n = 0;

	for (uint64_t at = 0; at < k->code_bytes; at += in.size_bytes) {
		uint32_t word;

		if (isa_decode(&t, k->code + at, k->code_bytes - at, &in))
			break;
		memcpy(&word, k->code + at, 4);
		if (in.op == ISA_s_waitcnt)
			add_wait(v, &n, at, word);
		if (in.op == ISA_s_waitcnt_vscnt) {
			add_mutant(v, &n, MUTANT_REMOVED, at, S_NOP);
			add_mutant(v, &n, MUTANT_WEAKENED, at, word + 1);
		}
		if (in.op == ISA_s_barrier)
			add_mutant(v, &n, MUTANT_BARRIER, at, S_NOP);
	}
	return n;
}

static bool does_matter(struct job *j, const struct mutant *x)
{
	uint8_t *image = xmalloc(j->co.span_bytes);
	bool matters = false;

	memcpy(image, j->image, j->co.span_bytes);
	memcpy(image + j->kernel->entry_off + x->offset, &x->word, 4);
	for (int i = 0; i < LATE_ORDER_COUNT && !matters; i++) {
		struct err e = { 0 };
		bool same;

		matters = !run_late(j, image, (enum late_order)i, &same, &e) ||
			  !same;
	}
	free(image);
	return matters;
}

static bool verifier_objects(const struct co *co, const char *kernel)
{
	const struct co_kernel *k = co_kernel_find(co, kernel);
	struct verify_report r = { 0 };
	struct verify_input in;
	struct err e = { 0 };
	bool found = false;

	if (k && verify_input_kernel(&in, co, k, &e)) {
		found = isa_verify(&in, &r, &e) && r.n;
		verify_report_fini(&r);
		verify_input_fini(&in);
	}
	return found;
}

/* t0-run with the mutant's object instead of the job's. */
static bool run_reports(const struct mutants *m, const struct job *j,
			const char *object)
{
	struct buf command = { 0 };
	int status;

	buf_printf(&command, "timeout 100 '%s/t0-run' --check --quiet "
		   "--device soft --deadline 20", getenv("T0_BUILD"));
	for (int i = 1; i < j->n_words; i++) {
		char *word = xstrdup(j->word[i] == j->path ? object :
							     j->word[i]);
		char *save = strchr(word, '>');

		if (save && (!strncmp(word, "buf:", 4) ||
			     !strncmp(word, "out:", 4)))
			*save = '\0';
		buf_printf(&command, " '%s'", word);
		free(word);
	}
	buf_printf(&command, " >'%s/run.log' 2>&1", m->dir);
	status = system(command.data);
	buf_fini(&command);
	status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	/* 1: findings; 3: it faults or never ends */
	return status == 1 || status == 3;
}

static void judge_mutant(struct mutants *m, struct job *j,
			 const struct mutant *x)
{
	struct mutant_counts *c = &m->count[x->kind];
	struct buf changed = { 0 };
	char path[600], text[700];
	struct err e = { 0 };
	struct co co;

	c->made++;
	if (!does_matter(j, x))
		return;
	c->matter++;
	buf_add(&changed, j->file.data, j->file.len);
	memcpy(changed.data + ((const char *)j->kernel->code - j->file.data) +
		       x->offset,
	       &x->word, 4);
	snprintf(path, sizeof(path), "%s/mutant.co", m->dir);
	if (co_parse(&co, changed.data, changed.len, &e) &&
	    verifier_objects(&co, j->kernel_name)) {
		c->by_verifier++;
	} else if (file_write_atomic(path, changed.data, changed.len, &e) &&
		   run_reports(m, j, path)) {
		c->by_run++;
	} else {
		c->missed++;
		snprintf(text, sizeof(text), "missed: %s, %s+0x%llx, %s",
			 j->name, j->kernel_name,
			 (unsigned long long)x->offset,
			 x->kind == MUTANT_BARRIER ? "barrier removed" :
			 x->kind == MUTANT_REMOVED ? "wait removed" :
						     "wait weakened");
		if (m->say)
			m->say(text);
	}
	co_fini(&co);
	buf_fini(&changed);
}

static uint64_t next_random(struct mutants *m)
{
	m->seed ^= m->seed << 13;
	m->seed ^= m->seed >> 7;
	m->seed ^= m->seed << 17;
	return m->seed >> 11;
}

/* Up to per_kernel of the barriers, or of the waits, in random order. */
static void judge_some(struct mutants *m, struct job *j, struct mutant *v,
		       int n, bool barriers)
{
	for (int i = 0, done = 0; i < n && done < m->per_kernel; i++) {
		const int k = i + (int)(next_random(m) % (uint64_t)(n - i));
		const struct mutant x = v[k];

		v[k] = v[i];
		v[i] = x;
		if ((x.kind == MUTANT_BARRIER) != barriers)
			continue;
		judge_mutant(m, j, &x);
		done++;
	}
}

bool mutants_run(struct mutants *m, const char *line, struct err *e)
{
	struct mutant *v = xcalloc(MAX_SITES, sizeof(*v));
	struct job j = { 0 };
	bool good = parse_job(&j, line, e) && load_job(&j, e) &&
		    run_unchanged(&j, m->save, e);
	int n = good ? list_mutants(&j, v) : 0;

	/* Barriers are few: as many of them as of all others. */
	judge_some(m, &j, v, n, true);
	judge_some(m, &j, v, n, false);
	m->kernels += good;
	job_fini(&j);
	free(v);
	return good;
}
