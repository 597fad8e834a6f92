/*
 * compiler/cmd/cmd_sim_show.c - a simulation for people and programs.
 */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "compiler/cmd/cmd_sim.h"
#include "compiler/sim/examine/examine.h"
#include "isa/text/text.h"

static double share_of(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

/* Cycles of waves in which they did not issue. */
static uint64_t waits(const struct sim_result *r)
{
	uint64_t n = 0;

	for (int k = SIM_ISSUE + 1; k < SIM_STALL_COUNT; k++)
		n += r->stall[k];
	return n;
}

static uint64_t wave_cycles(const struct sim_result *r)
{
	uint64_t n = 0;

	for (int k = 0; k < SIM_STALL_COUNT; k++)
		n += r->stall[k];
	return n;
}

/* The reason that waves waited for longest; SIM_ISSUE: none did. */
static enum sim_stall longest_stall(const struct sim_result *r)
{
	int best = SIM_ISSUE;

	for (int k = SIM_ISSUE + 1; k < SIM_STALL_COUNT; k++)
		if (r->stall[k] > (best ? r->stall[best] : 0))
			best = k;
	return (enum sim_stall)best;
}

/*
 * A pipe limits where it has little time left.  Where all of them mostly wait,
 * what limits is what the waves wait for.
 */
static bool is_pipe_bound(const struct sim_result *r)
{
	return r->share[r->limit] >= 0.6 || !longest_stall(r);
}

static const char *limit_name(const struct sim_result *r)
{
	return is_pipe_bound(r) ? sim_pipe_name(r->limit) :
				  sim_stall_name(longest_stall(r));
}

void show_limit(const struct sim_result *r, struct buf *out)
{
	if (is_pipe_bound(r))
		buf_printf(out, "%s, %.1f %% busy", sim_pipe_name(r->limit),
			   100 * r->share[r->limit]);
	else
		buf_printf(out, "waiting, %.1f %% of it for %s: %s",
			   100 * share_of(r->stall[longest_stall(r)], waits(r)),
			   limit_name(r), sim_stall_text(longest_stall(r)));
}

/* Offsets of branches are dwords from the next instruction (RDNA3 ISA 5.1). */
bool show_branch(const struct sim_line *l, uint64_t *to)
{
	if (isa_op_info(l->in.op)->pipe != ISA_PIPE_BRANCH)
		return false;
	*to = l->pc + 4 +
	      (uint64_t)(int64_t)(int16_t)l->in.f[ISA_F_SIMM16] * 4;
	return true;
}

/* ---- text ---- */

/* Values begin here: what is folded goes on below them, behind two blanks. */
enum { HANG = 16 };

struct in_unit {
	char text[32];
};

static struct in_unit in_unit(double value, const char *unit)
{
	const char *scaled;
	const double by = unit_scale(value, unit, &scaled);
	struct in_unit u;

	snprintf(u.text, sizeof(u.text), "%.4g %s", value * by, scaled);
	return u;
}

static void print_head(const struct show_sim *s, FILE *out)
{
	const struct sim_result *r = s->r;
	char costs[128];

	cost_summary(s->m, costs, sizeof(costs));
	fold_printf(out, HANG, "%s %s: simulated, not measured\n", s->file,
		    s->kernel);
	fprintf(out, "  workgroups      %d of %d waves (wave%d), on one WGP\n",
		s->src->n_groups, s->src->waves_per_group, s->src->wave_size);
	fprintf(out, "  occupancy       %d of 16 waves a SIMD (limit: %s), %d "
		"resident\n", r->slots, r->occupancy_limit, r->resident);
	fprintf(out, "  time            %llu cycles, %s at %.0f MHz\n",
		(unsigned long long)r->cycles, in_unit(r->time_s, "s").text,
		r->clock_mhz);
	fprintf(out, "  instructions    %llu, %.3f a cycle\n",
		(unsigned long long)r->issues, share_of(r->issues, r->cycles));
	struct buf limit = { 0 };

	show_limit(r, &limit);
	if (!is_pipe_bound(r))
		fold_printf(out, HANG, "  limited by      %s\n", limit.data);
	buf_fini(&limit);
	fprintf(out, "  %s   %s, %.1f %% busy\n",
		is_pipe_bound(r) ? "limiting pipe" : "busiest pipe ",
		sim_pipe_name(r->limit), 100 * r->share[r->limit]);
	fold_printf(out, HANG, "  costs           %s\n", costs);
}

/* The limit of what it computes with: matrix units, or pairs of FMA. */
static double peak_flops(const struct show_sim *s, const char **of)
{
	const bool matrix = s->r->busy[SIM_PIPE_WMMA];

	*of = matrix ? "the matrix units" : "the vector ALUs in f32";
	return 4 * cost_value(s->m, COST_N_WGP) * s->r->clock_mhz * 1e6 *
	       (matrix ? cost_wmma_rate(s->m) : cost_fma_rate(s->m));
}

static void print_flop(const struct show_sim *s, FILE *out)
{
	const char *of;
	const double peak = peak_flops(s, &of), rate = s->flop / s->gpu->time_s;
	const struct sim_range *r = sim_range(SIM_RANGE_TIMES, s->m->chip);
	char range[80] = "";

	if (s->flop <= 0)
		return;
	if (r)
		snprintf(range, sizeof(range), " (%s to %s)",
			 in_unit(rate / r->most, "FLOP/s").text,
			 in_unit(rate / r->least, "FLOP/s").text);
	fold_printf(out, HANG,
		    "  arithmetic      %s%s, masked lanes counted, %.1f %% of "
		    "%s\n", in_unit(rate, "FLOP/s").text, range,
		    100 * rate / peak, of);
}

static double time_of(const struct show_sim *s)
{
	return s->gpu ? s->gpu->time_s : s->r->time_s;
}

/* No time without how far it may be off; what was measured is of one chip. */
static void print_range(const struct show_sim *s, FILE *out)
{
	const struct sim_range *r = sim_range(SIM_RANGE_TIMES, s->m->chip);
	const double time_s = time_of(s);

	if (!r) {
		fold_printf(out, HANG,
			    "  range           not known: nothing measured on a "
			    "%s is published\n", s->m->chip);
		return;
	}
	fold_printf(out, HANG,
		    "  range           %s to %s, as of 80 %% of %d %s\n",
		    in_unit(time_s * r->least, "s").text,
		    in_unit(time_s * r->most, "s").text, r->rows, r->of);
}

static void print_gpu(const struct show_sim *s, FILE *out)
{
	const struct sim_gpu *g = s->gpu;

	if (!g) {
		print_range(s, out);
		return;
	}
	fold_printf(out, HANG,
		    "  whole GPU       %llu workgroups on %d WGPs, %d at "
		    "once, %.0f round%s: %s and %s of launch (limit: %s)\n",
		    (unsigned long long)g->groups, g->wgps, g->groups_per_wgp,
		    g->full_rounds, g->full_rounds == 1 ? "" : "s",
		    in_unit(g->time_s, "s").text,
		    in_unit(g->launch_s, "s").text, g->limit);
	print_range(s, out);
	print_flop(s, out);
}

static bool print_pipes(const struct sim_result *r, FILE *out, struct err *e)
{
	struct table t;

	fprintf(out, "\n");
	table_init(&t, "pipe,#busy_cycles,#share_percent");
	for (int p = 0; p < SIM_PIPE_COUNT; p++) {
		if (!r->busy[p])
			continue;
		table_row(&t);
		table_cell(&t, 0, "%s", sim_pipe_name(p));
		table_cell(&t, 1, "%llu", (unsigned long long)r->busy[p]);
		table_cell(&t, 2, "%.1f", 100 * r->share[p]);
	}
	bool ok = table_print(&t, TABLE_TEXT, out, e);
	table_fini(&t);
	return ok;
}

static bool print_stalls(const struct sim_result *r, FILE *out, struct err *e)
{
	uint64_t all = wave_cycles(r);
	struct table t;

	fprintf(out, "\n");
	table_init(&t, "waves,#cycles,#share_percent,meaning");
	for (int k = 0; k < SIM_STALL_COUNT; k++) {
		if (!r->stall[k])
			continue;
		table_row(&t);
		table_cell(&t, 0, "%s", sim_stall_name(k));
		table_cell(&t, 1, "%llu", (unsigned long long)r->stall[k]);
		table_cell(&t, 2, "%.1f", 100 * share_of(r->stall[k], all));
		table_cell(&t, 3, "%s", sim_stall_text(k));
	}
	bool ok = table_print(&t, TABLE_TEXT, out, e);
	table_fini(&t);
	return ok;
}

bool show_text(const struct show_sim *s, FILE *out, struct err *e)
{
	print_head(s, out);
	print_gpu(s, out);
	return print_pipes(s->r, out, e) && print_stalls(s->r, out, e);
}

/* ---- annotated disassembly ---- */

/* "vmcnt 210.5, depend 3.0": cycles per execution, the longest first. */
void show_reasons(const struct sim_line *l, char *out, size_t size)
{
	bool done[SIM_STALL_COUNT] = { [SIM_ISSUE] = true };
	size_t n = 0;

	*out = '\0';
	for (int round = 0; round < 3; round++) {
		int best = 0;

		for (int k = 1; k < SIM_STALL_COUNT; k++)
			if (!done[k] && l->stall[k] &&
			    (!best || l->stall[k] > l->stall[best]))
				best = k;
		if (!best || n >= size)
			return;
		done[best] = true;
		n += (size_t)snprintf(out + n, size - n, "%s%s %.1f",
				      n ? ", " : "", sim_stall_name(best),
				      share_of(l->stall[best], l->issues));
	}
}

static uint64_t count_stalled(const struct sim_line *l)
{
	uint64_t n = 0;

	for (int k = 1; k < SIM_STALL_COUNT; k++)
		n += l->stall[k];
	return n;
}

bool show_annotated(const struct show_sim *s, FILE *out, struct err *e)
{
	struct isa_target t = { ISA_GFX11, s->src->wave_size, false };
	uint64_t all = wave_cycles(s->r);
	struct buf line = { 0 };

	fprintf(out,
		"\n  offset   issues  share  instruction                   "
		"; cycles of stalls\n");
	for (int i = 0; i < s->r->n_lines; i++) {
		const struct sim_line *l = &s->r->line[i];
		char text[ISA_TEXT_MAX], why[96];

		isa_print(&t, &l->in, text, sizeof(text));
		show_reasons(l, why, sizeof(why));
		buf_reset(&line);
		buf_printf(&line, "%8llx %8llu %5.1f%%  %-*s",
			   (unsigned long long)(l->pc - s->src->code_va),
			   (unsigned long long)l->issues,
			   100 * share_of(count_stalled(l) + l->issues, all),
			   *why || l->conflicts ? 29 : 0, text);
		if (*why)
			buf_printf(&line, " ; %s", why);
		if (l->conflicts)
			buf_printf(&line, " ; bank conflicts %.1f",
				   share_of(l->conflicts, l->issues));
		fold_printf(out, 28 - strspn(line.data, " "), "%s\n",
			    line.data);
	}
	buf_fini(&line);
	return !ferror(out) || err_set(e, ERR_IO, "writing the listing");
}

/* ---- JSON ---- */

static json_t *json_stalls(const uint64_t *stall)
{
	json_t *j = json_object();

	for (int k = 0; k < SIM_STALL_COUNT; k++)
		if (stall[k])
			json_object_set_new(j, sim_stall_name(k),
					    json_integer((json_int_t)stall[k]));
	return j;
}

static json_t *json_pipes(const struct sim_result *r)
{
	json_t *j = json_object();

	for (int p = 0; p < SIM_PIPE_COUNT; p++)
		json_object_set_new(j, sim_pipe_name(p),
				    json_real(r->share[p]));
	return j;
}

static json_t *json_lines(const struct show_sim *s)
{
	struct isa_target t = { ISA_GFX11, s->src->wave_size, false };
	json_t *j = json_array();

	for (int i = 0; i < s->r->n_lines; i++) {
		const struct sim_line *l = &s->r->line[i];
		char text[ISA_TEXT_MAX];

		isa_print(&t, &l->in, text, sizeof(text));
		json_array_append_new(j, json_pack(
			"{s:I,s:I,s:s,s:o,s:I,s:I}", "offset",
			(json_int_t)(l->pc - s->src->code_va), "issues",
			(json_int_t)l->issues, "text", text, "stalls",
			json_stalls(l->stall), "conflicts",
			(json_int_t)l->conflicts, "requests",
			(json_int_t)l->lines));
	}
	return j;
}

static json_t *json_occupancy(const struct sim_result *r)
{
	json_t *j = json_array();

	for (int i = 0; i < r->n_occupancy; i++)
		json_array_append_new(j, json_pack("[I,i]", (json_int_t)
			r->occupancy[i].cycle, r->occupancy[i].waves));
	return j;
}

static json_t *json_gains(const struct show_sim *s)
{
	json_t *j = json_array();

	for (int i = 0; i < s->n_gains; i++)
		json_array_append_new(j, json_pack(
			"{s:s,s:f,s:s}", "flaw", s->gain[i].change->name,
			"times", s->gain[i].times, "how",
			s->gain[i].change->how));
	return j;
}

static json_t *json_gpu(const struct sim_gpu *g)
{
	return g ? json_pack("{s:I,s:i,s:f,s:f,s:f,s:s}", "workgroups",
			     (json_int_t)g->groups, "at_once",
			     g->groups_per_wgp, "rounds", g->full_rounds,
			     "time_s", g->time_s, "launch_s", g->launch_s,
			     "limit", g->limit) : json_null();
}

bool show_json(const struct show_sim *s, bool annotate, FILE *out,
	       struct err *e)
{
	const struct sim_result *r = s->r;
	json_t *j = json_pack("{s:s,s:s,s:s,s:s,s:I,s:f,s:f,s:I,s:s,s:i,s:i}",
		"origin", "simulated", "file", s->file, "kernel", s->kernel,
		"costs", s->costs, "cycles", (json_int_t)r->cycles,
		"clock_hz", r->clock_mhz * 1e6, "time_s", r->time_s,
		"instructions", (json_int_t)r->issues, "limit",
		sim_pipe_name(r->limit), "slots", r->slots, "resident",
		r->resident);

	if (!j)
		return err_set(e, ERR_INPUT, "%s: its name is no UTF-8",
			       s->kernel);
	json_object_set_new(j, "limited_by", json_string(limit_name(r)));
	json_object_set_new(j, "pipes", json_pipes(r));
	json_object_set_new(j, "stalls", json_stalls(r->stall));
	json_object_set_new(j, "occupancy", json_occupancy(r));
	json_object_set_new(j, "gpu", json_gpu(s->gpu));
	if (s->flop > 0)
		json_object_set_new(j, "flop", json_real(s->flop));
	if (s->n_gains)
		json_object_set_new(j, "what_if", json_gains(s));
	json_object_set_new(j, "defaults", json_integer(cost_count(s->m,
							COST_DEFAULT)));
	if (annotate)
		json_object_set_new(j, "lines", json_lines(s));
	bool ok = !json_dumpf(j, out, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
	json_decref(j);
	fputc('\n', out);
	return ok || err_set(e, ERR_IO, "writing JSON");
}
