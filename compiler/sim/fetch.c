/*
 * compiler/sim/fetch.c - instruction fetch.  Code comes in windows of two lines
 * (traces of cold straight code stall once per 256 bytes, and shortly once
 * between).  A wave's buffer runs ahead of it, by icache.ahead: when that enters
 * the second line of a window, the next window is asked for.  So cold code that
 * executes slowly waits no longer in all, and a wave that waits at the begin of
 * a window has asked for nothing yet.
 */
#include "compiler/sim/sim_int.h"

static uint64_t line_bytes(const struct sim *s)
{
	return sim_cycles(s, COST_IC_LINE);
}

/* Ask for the line at `now`, if nobody did yet; its arrival. */
static uint64_t request_line(struct sim *s, uint64_t line, uint64_t arrival)
{
	bool hit;
	uint64_t *ready = cache_find(&s->icache, line, &hit);

	if (!hit)
		*ready = arrival;
	return *ready;
}

/* The window of this line, at `now`. */
static void request_window(struct sim *s, uint64_t line, uint64_t now)
{
	uint64_t n = sim_cycles(s, COST_IC_WINDOW) / line_bytes(s);
	uint64_t first = line - line % n;
	uint64_t miss = now + sim_cycles(s, COST_IC_MISS);

	for (uint64_t i = first; i < first + n; i++)
		request_line(s, i,
			     miss + (i - first) * sim_cycles(s, COST_IC_HALF));
}

/* The wave's first instruction that ends in this line. */
static void enter_line(struct sim *s, struct wave *w, uint64_t line)
{
	uint64_t n = sim_cycles(s, COST_IC_WINDOW) / line_bytes(s);

	if (!w->fetch_line || (w->fetch_line - 1) / n != line / n)
		w->fetch_next = false;
	w->fetch_line = line + 1;
	request_window(s, line, s->now);
	w->fetched = sim_max(w->fetched, request_line(s, line, s->now));
}

uint64_t sim_fetch(struct sim *s, struct wave *w)
{
	uint64_t bytes = sim_cycles(s, COST_IC_WINDOW);
	uint64_t last = sim_spill_pc(s, w->pc) +
			w->info->in.size_bytes - 1;
	uint64_t line = last / line_bytes(s);

	if (s->c->warm_code || (w->fetch_line == line + 1 && w->fetch_next))
		return w->fetched;
	if (w->fetch_line != line + 1)
		enter_line(s, w, line);
	if (last % bytes + sim_cycles(s, COST_IC_AHEAD) >= line_bytes(s)) {
		w->fetch_next = true;
		request_window(s, line + bytes / line_bytes(s),
			       sim_max(s->now, w->fetched));
	}
	return w->fetched;
}

void sim_fetched(struct sim *s, uint64_t pc)
{
	uint64_t n = sim_cycles(s, COST_IC_WINDOW) / line_bytes(s);
	uint64_t line = sim_spill_pc(s, pc) / line_bytes(s);

	for (uint64_t i = line - line % n; i < line - line % n + n; i++)
		request_line(s, i, s->now);
}
