/*
 * compiler/cmd/cmd_sim_waves.c - waves over time, and what would help, as text.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/cmd/cmd_sim.h"

/* ---- waves over time ---- */

enum { WAVES_SHOWN = 16 };

/* What issues is a capital, what is waited for a small letter. */
static const char pipe_letter[SIM_PIPE_COUNT] = {
	[SIM_PIPE_VALU] = 'V', [SIM_PIPE_TRANS] = 'T', [SIM_PIPE_WMMA] = 'X',
	[SIM_PIPE_SALU] = 'S', [SIM_PIPE_BRANCH] = 'B', [SIM_PIPE_SMEM] = 'K',
	[SIM_PIPE_LDS] = 'L', [SIM_PIPE_VMEM] = 'M', [SIM_PIPE_EXPORT] = 'E',
	[SIM_PIPE_SPECIAL] = 'W',
};
static const char stall_letter[SIM_STALL_COUNT] = {
	[SIM_START] = '.', [SIM_FETCH] = 'f', [SIM_BRANCH] = 'b',
	[SIM_DEPEND] = 'd', [SIM_QUEUE] = 'q', [SIM_PIPE] = 'p',
	[SIM_OPERAND] = 'o', [SIM_VMCNT] = 'm', [SIM_VSCNT] = 'w',
	[SIM_LDSCNT] = 'l', [SIM_SMEMCNT] = 'k', [SIM_EXPCNT] = 'e',
	[SIM_MEMQ] = 'u', [SIM_BARRIER] = '|', [SIM_NOP] = 'n',
	[SIM_OLDER] = 'r', [SIM_DRAIN] = 'x',
};

/* Cycles of a wave in a column, by letter. */
struct column {
	uint32_t cycles[128];
};

static void add_cycles(struct column *c, uint64_t from, uint64_t to,
		       uint64_t each, int n, char letter)
{
	while (from < to && from / each < (uint64_t)n) {
		const uint64_t end = (from / each + 1) * each;
		const uint64_t most = end < to ? end : to;

		c[from / each].cycles[(int)letter] += (uint32_t)(most - from);
		from = most;
	}
}

/* Issues are what one looks for: they show where waits are longer, too. */
static char column_letter(const struct column *c)
{
	char best = ' ';
	uint32_t most = 0;

	for (int k = 1; k < 128; k++) {
		const uint32_t weight = k >= 'A' && k <= 'Z' ? 4 : 1;

		if (c->cycles[k] * weight > most) {
			most = c->cycles[k] * weight;
			best = (char)k;
		}
	}
	return best;
}

static void add_wave(const struct show_sim *s, int wave, uint64_t each,
		     int width, struct column *c, struct buf *out)
{
	const struct sim_timeline *t = s->timeline;
	uint64_t last = 0;

	memset(c, 0, (size_t)width * sizeof(*c));
	for (size_t i = 0; i < t->n; i++) {
		const struct sim_timeline_event *ev = &t->v[i];

		if (ev->wave != wave)
			continue;
		add_cycles(c, ev->ready, ev->cycle, each, width,
			   stall_letter[ev->stall]);
		add_cycles(c, ev->cycle, ev->cycle + 1, each, width,
			   pipe_letter[ev->pipe]);
		last = ev->cycle + 1;
	}
	if (s->r->wave[wave].end > last)
		add_cycles(c, last, s->r->wave[wave].end, each, width,
			   stall_letter[SIM_DRAIN]);
	buf_printf(out, "%5d  ", wave);
	for (int i = 0; i < width; i++)
		buf_addc(out, column_letter(&c[i]));
	buf_addc(out, '\n');
}

/* The letters that are in use, with their meaning. */
static void add_legend(const struct show_sim *s, struct buf *out)
{
	buf_adds(out, "issues:");
	for (int p = 0; p < SIM_PIPE_COUNT; p++)
		if (s->r->busy[p] && pipe_letter[p])
			buf_printf(out, " %c %s", pipe_letter[p],
				   sim_pipe_name(p));
	buf_adds(out, "\nwaits: ");
	for (int k = 1; k < SIM_STALL_COUNT; k++)
		if (s->r->stall[k] && k != SIM_START)
			buf_printf(out, " %c %s", stall_letter[k],
				   sim_stall_name(k));
	buf_addc(out, '\n');
}

void show_waves(const struct show_sim *s, int columns, struct buf *out)
{
	enum { LABEL = 7 };
	const int width = columns - LABEL;
	const uint64_t each = s->r->cycles / (uint64_t)width + 1;
	struct column *c = xcalloc((size_t)width, sizeof(*c));
	const int n = s->r->n_waves < WAVES_SHOWN ? s->r->n_waves : WAVES_SHOWN;

	buf_printf(out, " wave  a column is %llu cycle%s\n",
		   (unsigned long long)each, each == 1 ? "" : "s");
	for (int i = 0; i < n; i++)
		add_wave(s, i, each, width, c, out);
	if (n < s->r->n_waves)
		buf_printf(out, "       and %d waves more\n",
			   s->r->n_waves - n);
	add_legend(s, out);
	free(c);
}

/* ---- what would help ---- */

bool show_gains(const struct show_sim *s, FILE *out, struct err *e)
{
	struct table t;

	if (!s->n_gains) {
		fputs("\nwhat would help: none of the changes that can be tried "
		      "makes it 1 % faster\n", out);
		return true;
	}
	fputs("\nwhat would help, simulated again with one flaw mended:\n", out);
	table_init(&t, "flaw,#times_as_fast,what to do");
	for (int i = 0; i < s->n_gains; i++) {
		table_row(&t);
		table_cell(&t, 0, "%s", s->gain[i].change->name);
		table_cell(&t, 1, "%.2f", s->gain[i].times);
		table_cell(&t, 2, "%s", s->gain[i].change->how);
	}
	bool ok = table_print(&t, TABLE_TEXT, out, e);
	table_fini(&t);
	return ok;
}
