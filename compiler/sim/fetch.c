/*
 * compiler/sim/fetch.c - instruction fetch.  Code comes in windows of two lines
 * (traces of cold straight code stall once per 256 bytes, and shortly once
 * between); a wave that enters the second line of a window asks for the next
 * window.
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

static void request_window(struct sim *s, uint64_t line)
{
	uint64_t n = sim_cycles(s, COST_IC_WINDOW) / line_bytes(s);
	uint64_t first = line - line % n;
	uint64_t miss = s->now + sim_cycles(s, COST_IC_MISS);

	for (uint64_t i = first; i < first + n; i++)
		request_line(s, i,
			     miss + (i - first) * sim_cycles(s, COST_IC_HALF));
}

uint64_t sim_fetch(struct sim *s, struct wave *w)
{
	uint64_t n = sim_cycles(s, COST_IC_WINDOW) / line_bytes(s);
	uint64_t line = (w->pc + w->info->in.size_bytes - 1) / line_bytes(s);

	if (s->c->warm_code || w->fetch_line == line + 1)
		return w->fetched;
	w->fetch_line = line + 1;
	request_window(s, line);
	w->fetched = sim_max(w->fetched, request_line(s, line, s->now));
	if (line % n == n - 1)
		request_window(s, line + 1);
	return w->fetched;
}

void sim_fetched(struct sim *s, uint64_t pc)
{
	uint64_t n = sim_cycles(s, COST_IC_WINDOW) / line_bytes(s);
	uint64_t line = pc / line_bytes(s);

	for (uint64_t i = line - line % n; i < line - line % n + n; i++)
		request_line(s, i, s->now);
}
