/*
 * kfd/soft/watch/profile.c - texts about what waves executed: the profile, and
 * a wave's registers.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/text/text.h"
#include "kfd/soft/watch/watch_int.h"

static const char *const pipe_name[ISA_PIPE_COUNT] = {
	[ISA_PIPE_SALU] = "scalar",	   [ISA_PIPE_SMEM] = "scalar memory",
	[ISA_PIPE_VALU] = "vector",
	[ISA_PIPE_VALU64] = "vector, 2 passes",
	[ISA_PIPE_QUARTER] = "vector, 4 passes",
	[ISA_PIPE_TRANS] = "transcendental",
	[ISA_PIPE_TRANS64] = "transcendental f64",
	[ISA_PIPE_DOUBLE] = "f64",	   [ISA_PIPE_WMMA] = "matrix",
	[ISA_PIPE_LDS] = "LDS",		   [ISA_PIPE_LDSDIR] = "LDS direct",
	[ISA_PIPE_FLAT] = "flat memory",   [ISA_PIPE_VMEM] = "vector memory",
	[ISA_PIPE_EXPORT] = "export",	   [ISA_PIPE_BRANCH] = "branch",
	[ISA_PIPE_MSG] = "message",
	[ISA_PIPE_SPECIAL] = "wait and other",
};

static int by_pc(const void *a, const void *b)
{
	const struct site *x = *(struct site *const *)a;
	const struct site *y = *(struct site *const *)b;

	return (x->pc > y->pc) - (x->pc < y->pc);
}

static double percent_of(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

static void print_classes(const struct soft_watch *t, uint64_t all,
			  struct buf *out)
{
	uint64_t count[ISA_PIPE_COUNT] = { 0 };

	for (size_t i = 1; i <= t->n_sites; i++)
		count[t->site[i]->info->pipe] += t->site[i]->count;
	buf_printf(out, "%12s %6s  class\n", "executed", "%");
	for (int p = 0; p < ISA_PIPE_COUNT; p++)
		if (count[p])
			buf_printf(out, "%12llu %6.2f  %s\n",
				   (unsigned long long)count[p],
				   percent_of(count[p], all), pipe_name[p]);
	buf_printf(out, "%12llu %6.2f  all\n\n", (unsigned long long)all,
		   100.0);
}

/* "saxpy+0x34    v_mov_b32 v0, v1  (saxpy.cl:12)": no address of this run. */
static void print_place(const struct soft_watch *t, const struct site *s,
			struct buf *out)
{
	const struct isa_target target = { s->u.in.gen, s->wide ? 64 : 32,
					   true };
	char text[ISA_TEXT_MAX];
	struct buf place = { 0 };

	watch_place(t, s->pc, &place);
	isa_print(&target, &s->u.in, text, sizeof(text));
	const char *line = strstr(place.data, ", ");

	buf_printf(out, "%-16.*s  %s", (int)strcspn(place.data, " "),
		   place.data, text);
	if (line)
		buf_printf(out, "  (%s", line + 2);
	buf_addc(out, '\n');
	buf_fini(&place);
}

void profile_print(const struct soft_watch *t, struct buf *out)
{
	struct site **s = xcalloc(t->n_sites + 1, sizeof(*s));
	uint64_t all = 0, next = 0;

	for (size_t i = 0; i < t->n_sites; i++) {
		s[i] = t->site[i + 1];
		all += s[i]->count;
	}
	qsort(s, t->n_sites, sizeof(*s), by_pc);
	print_classes(t, all, out);
	buf_printf(out, "%12s %6s %6s  %-16s  instruction\n", "executed", "%",
		   "lanes", "place");
	for (size_t i = 0; i < t->n_sites; i++) {
		if (i && s[i]->pc != next)
			buf_printf(out, "%26s  ...\n", "");
		buf_printf(out, "%12llu %6.2f %6.1f  ",
			   (unsigned long long)s[i]->count,
			   percent_of(s[i]->count, all),
			   s[i]->count ?
				   (double)s[i]->lanes / (double)s[i]->count :
				   0);
		print_place(t, s[i], out);
		next = s[i]->pc + s[i]->u.in.size_bytes;
	}
	free(s);
}

static void dump_scalars(const struct soft_wave *w, struct buf *out)
{
	buf_printf(out, "  pc 0x%llx  scc %d  mode 0x%x\n",
		   (unsigned long long)w->pc, w->scc, w->mode);
	buf_printf(out, "  exec %08x %08x  vcc %08x %08x  m0 %08x\n",
		   w->s[ISA_R_EXEC_HI], w->s[ISA_R_EXEC_LO],
		   w->s[ISA_R_VCC_HI], w->s[ISA_R_VCC_LO], w->s[ISA_R_M0]);
	for (int i = 0; i < ISA_R_VCC_LO; i += 8) {
		buf_printf(out, "  s%-3d", i);
		for (int k = i; k < i + 8 && k < ISA_R_VCC_LO; k++)
			buf_printf(out, " %08x", w->s[k]);
		buf_addc(out, '\n');
	}
}

/* One row of eight lanes after the other; registers that are all 0 are left. */
static void dump_vgpr(const struct soft_wave *w, int reg, struct buf *out)
{
	uint32_t any = 0;

	for (int h = 0; h < soft_halves(w); h++)
		for (int i = 0; i < SOFT_LANES; i++)
			any |= w->v[h][reg][i];
	if (!any)
		return;
	for (int l = 0; l < w->wave_size; l += 8) {
		buf_printf(out, l ? "      " : "  v%-3d", reg);
		for (int k = l; k < l + 8; k++)
			buf_printf(out, " %08x",
				   w->v[k / SOFT_LANES][reg][k % SOFT_LANES]);
		buf_addc(out, '\n');
	}
}

void dump_wave(const struct soft_wave *w, struct buf *out)
{
	dump_scalars(w, out);
	for (int i = 0; i < w->n_vgprs; i++)
		dump_vgpr(w, i, out);
}
