/*
 * engine/cmd/cmd_bench_show.c - what bench measured, for people.
 *
 * A line is a test, with what is constant above it on a narrow terminal: model,
 * size, parameters, weights, backend, threads.
 */
#include <string.h>

#include "engine/cmd/cmd_bench.h"

/* "1.5 GiB", "596 M" */
static void add_scaled(struct table *t, int col, double value, const char *unit)
{
	struct buf text = { 0 };

	unit_print(&text, value, unit);
	table_cell(t, col, "%s", text.data);
	buf_fini(&text);
}

static void add_count(struct table *t, int col, double n)
{
	if (n < 1e6)
		table_cell(t, col, "%.0f", n);
	else
		table_cell(t, col, "%.4g %s", n / (n < 1e9 ? 1e6 : 1e9),
			   n < 1e9 ? "M" : "B");
}

/* "prefill 512", "decode 128 x4 @4096": of four texts behind 4096 tokens. */
static void add_test(struct table *t, const char *const *from)
{
	const char *batch = from[BENCH_BATCH], *depth = from[BENCH_DEPTH];
	struct buf text = { 0 };

	buf_printf(&text, "%s %s", from[BENCH_PHASE], from[BENCH_TOKENS]);
	if (batch && strcmp(batch, "1") != 0)
		buf_printf(&text, " x%s", batch);
	if (depth && strcmp(depth, "0") != 0)
		buf_printf(&text, " @%s", depth);
	table_cell(t, 0, "%s", text.data);
	buf_fini(&text);
}

/* Columns behind the test that are as in the whole table. */
static const struct {
	const char *head;
	int from;
} taken[] = {
	{ "#tok/s", BENCH_SPEED },
	{ "#from", BENCH_SPEED_LO },
	{ "#to", BENCH_SPEED_HI },
	{ "#first token s", BENCH_FIRST },
	{ "#% of limit", BENCH_PERCENT },
	{ "limit", BENCH_LIMIT },
	{ "#gain", BENCH_GAIN },
	{ "#tau", BENCH_TAU },
	{ "#acceptance", BENCH_ACCEPTANCE },
	{ "activations", BENCH_ACTIVATIONS },
	{ "#samples", BENCH_SAMPLES },
};
enum {
	TAKEN = ARRAY_SIZE(taken),
	MODEL = 1 + TAKEN,
	SIZE,
	PARAMETERS,
	WEIGHTS,
	BACKEND,
	THREADS
};

static void add_row(const struct qwen_bench *b, struct table *t,
		    const char *const *from)
{
	const struct qwen_model *m = &b->s.model;

	table_row(t);
	add_test(t, from);
	for (int i = 0; i < TAKEN; i++)
		if (from[taken[i].from])
			table_cell(t, 1 + i, "%s", from[taken[i].from]);
	table_cell(t, MODEL, "%s", qwen_cmd_name(b->c->model));
	add_scaled(t, SIZE, (double)m->tensors.total_bytes, "B");
	add_count(t, PARAMETERS, (double)qwen_config_params(&m->config));
	table_cell(t, WEIGHTS, "%s", qwen_weights_name(m->layer[0].q.type));
	table_cell(t, BACKEND, "%s", m->backend->name);
	table_cell(t, THREADS, "%u", threads_count(b->s.threads));
}

bool qwen_bench_show(const struct qwen_bench *b, struct err *e)
{
	struct buf columns = { 0 };
	struct table t;

	if (b->c->cmd.format != TABLE_TEXT &&
	    b->c->cmd.format != TABLE_MARKDOWN)
		return cmd_table(&b->c->cmd, &b->t, e);
	buf_adds(&columns, "test");
	for (int i = 0; i < TAKEN; i++)
		buf_printf(&columns, ",%s", taken[i].head);
	buf_adds(&columns, ",model,size,parameters,weights,backend,#threads");
	table_init(&t, columns.data);
	for (int i = 0; i < b->t.n_rows; i++)
		add_row(b, &t, b->t.row[i]);
	bool ok = cmd_table(&b->c->cmd, &t, e);
	table_fini(&t);
	buf_fini(&columns);
	return ok;
}
