/*
 * tests/ref/mutants.c - kernels without a wait or a barrier.
 */
#include "tests/ref/mutants.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "isa/code/code.h"
#include "isa/launch/launch.h"
#include "isa/verify/verify.h"
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
	const char *name;
	struct launch_plan l;
	uint8_t *image; /* as it is loaded */
	uint8_t packet[64];
	uint8_t *result[MAX_MEMORY]; /* what the unchanged kernel leaves */
	uint64_t steps;
};

static bool parse_job(struct job *j, const char *line, struct err *e)
{
	static const struct launch_plan defaults = LAUNCH_DEFAULTS;
	char *save, *s;
	int at = 1;

	j->l = defaults;
	j->copy = xstrdup(line);
	for (s = strtok_r(j->copy, "\t\n", &save); s && j->n_words < MAX_WORDS;
	     s = strtok_r(NULL, "\t\n", &save))
		j->word[j->n_words++] = s;
	j->name = j->n_words ? j->word[0] : "";
	for (; at + 1 < j->n_words && j->word[at][0] == '-'; at += 2)
		if (!strcmp(j->word[at], "--lds"))
			j->l.more_lds_bytes = strtoull(j->word[at + 1], NULL,
						       10);
		else if (!strcmp(j->word[at], "--grid"))
			j->l.grid_text = j->word[at + 1];
		else
			j->l.block_text = j->word[at + 1];
	return launch_parse(&j->l, j->n_words - at, j->word + at, e);
}

static uint64_t buffer_va(int i)
{
	return BUFFER_VA + ((uint64_t)i << 32);
}

/* hsa_kernel_dispatch_packet_t: sizes at 4 and 12. */
static void fill_packet(struct job *j)
{
	for (int i = 0; i < 3; i++) {
		uint16_t block = (uint16_t)j->l.block[i];

		memcpy(j->packet + 4 + 2 * i, &block, 2);
		memcpy(j->packet + 12 + 4 * i, &j->l.grid[i], 4);
	}
}

static bool load_job(struct job *j, struct err *e)
{
	struct launch_dispatch d = { 0 };
	struct launch_plan *l = &j->l;
	uint64_t va[LAUNCH_ARGS_MAX];

	for (int i = 0; i < LAUNCH_ARGS_MAX; i++)
		va[i] = buffer_va(i);
	if (!launch_load(l, false, e) || !launch_check(l, e))
		return false;
	if (l->n_args > MAX_MEMORY)
		return err_set(e, ERR_INPUT, "%s: %d arguments", j->name,
			       l->n_args);
	if (!launch_arguments(l, va, e))
		return false;
	memcpy(d.grid, l->grid, sizeof(d.grid));
	memcpy(d.block, l->block, sizeof(d.block));
	launch_hidden(&d, l->kernel->args, l->kernel->n_args, l->kernarg,
		      l->kernarg_bytes);
	fill_packet(j);
	j->image = xcalloc(1, l->co.span_bytes);
	return co_image_build(&l->co, j->image, l->co.span_bytes, CODE_VA, e);
}

static void job_fini(struct job *j)
{
	for (int i = 0; i < MAX_MEMORY; i++)
		free(j->result[i]);
	free(j->image);
	launch_fini(&j->l);
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
		.kernel = j->l.kernel, .memory = m, .order = order,
		.code_va = CODE_VA, .code_bytes = j->l.co.span_bytes,
		.kernarg_va = KERNARG_VA, .packet_va = PACKET_VA,
		.lds_bytes = j->l.kernel->desc.group_segment_bytes +
			     j->l.lds_bytes,
		.scratch_bytes = j->l.kernel->desc.private_segment_bytes,
		.max_steps = j->steps ? 3 * j->steps + 100000 : 0,
	};
	bool good;

	memcpy(r.grid, j->l.grid, sizeof(r.grid));
	memcpy(r.block, j->l.block, sizeof(r.block));
	r.n_memory = add_memory(m, 0, CODE_VA, image, j->l.co.span_bytes);
	r.n_memory = add_memory(m, r.n_memory, KERNARG_VA, j->l.kernarg,
				j->l.kernarg_bytes);
	r.n_memory = add_memory(m, r.n_memory, PACKET_VA, j->packet,
				sizeof(j->packet));
	for (int i = 0; i < j->l.n_args; i++) {
		const struct operand *o = &j->l.arg[i];

		if (o->kind != OPERAND_BUFFER)
			continue;
		host[i] = xmalloc(o->size_bytes);
		memcpy(host[i], o->data, o->size_bytes);
		r.n_memory = add_memory(m, r.n_memory, buffer_va(i), host[i],
					o->size_bytes);
	}
	good = late_run(&r, e);
	*same = good;
	for (int i = 0; i < j->l.n_args; i++) {
		if (good && host[i] && j->result[i])
			*same &= !memcmp(host[i], j->result[i],
					 j->l.arg[i].size_bytes);
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
	for (int i = 0; i < j->l.n_args && more; i++) {
		char path[600];

		if (!j->l.arg[i].save)
			continue;
		snprintf(path, sizeof(path), "%s%s", j->l.arg[i].save, more);
		if (!file_write_atomic(path, j->result[i],
				       j->l.arg[i].size_bytes, e))
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
	const struct co_kernel *k = j->l.kernel;
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
	uint8_t *image = xmalloc(j->l.co.span_bytes);
	bool matters = false;

	memcpy(image, j->image, j->l.co.span_bytes);
	memcpy(image + j->l.kernel->entry_off + x->offset, &x->word, 4);
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
		char *word = xstrdup(j->word[i] == j->l.path ? object :
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
	buf_add(&changed, j->l.file.data, j->l.file.len);
	memcpy(changed.data + ((const char *)j->l.kernel->code - j->l.file.data) +
		       x->offset,
	       &x->word, 4);
	snprintf(path, sizeof(path), "%s/mutant.co", m->dir);
	if (co_parse(&co, changed.data, changed.len, &e) &&
	    verifier_objects(&co, j->l.kernel->name)) {
		c->by_verifier++;
	} else if (file_write_atomic(path, changed.data, changed.len, &e) &&
		   run_reports(m, j, path)) {
		c->by_run++;
	} else {
		c->missed++;
		snprintf(text, sizeof(text), "missed: %s, %s+0x%llx, %s",
			 j->name, j->l.kernel->name,
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
