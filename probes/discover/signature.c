/*
 * probes/discover/signature.c - what a slot changed, as text and as a table.
 */
#include <string.h>
#include <xxhash.h>

#include "probes/discover/discover.h"

#define TEXT_PARTS 8	/* further registers are counted only */
#define CODE_NEAR  4096 /* bytes around the slot that are its own kernel */

struct text {
	char *out;
	size_t size, len;
	int parts, more;
	struct buf all; /* that the hash at the end is of */
};

static void add_text(struct text *t, const char *text)
{
	if (t->parts++ < TEXT_PARTS)
		t->len += (size_t)snprintf(t->out + t->len, t->size - t->len,
					   "%s%s", t->len ? " " : "", text);
	else
		t->more++;
}

static void mix_hash(struct text *t, uint32_t w)
{
	buf_add(&t->all, &w, sizeof(w));
}

static void mix_name(struct text *t, const char *name)
{
	buf_add(&t->all, name, strlen(name) + 1);
}

static void add_value(struct text *t, const char *name, uint32_t value,
		      bool stable)
{
	char part[48];

	if (stable)
		snprintf(part, sizeof(part), "%s=%08x", name, value);
	else
		snprintf(part, sizeof(part), "%s=~", name);
	mix_name(t, name);
	mix_hash(t, stable ? value : 0);
	add_text(t, part);
}

static void sign_scalar(struct text *t, const char *name, uint32_t was,
			uint32_t is, uint32_t again)
{
	if (was != is || is != again)
		add_value(t, name, is, is == again);
}

/* A register pair that holds an address of the kernel itself. */
static bool code_pair(const struct probe_state *is, int r, uint64_t pc,
		      int64_t *off)
{
	uint64_t v;

	if (r + 1 >= PROBE_SGPRS)
		return false;
	v = is->s[r] | (uint64_t)is->s[r + 1] << 32;
	*off = (int64_t)(v - pc);
	return *off > -CODE_NEAR && *off < CODE_NEAR;
}

static void sign_scalars(struct text *t, const struct probe_state *was,
			 const struct probe_state *is,
			 const struct probe_state *again, uint64_t pc)
{
	char name[48];
	int64_t off;

	for (int r = 0; r < PROBE_S_MARK; r++) {
		if (was->s[r] == is->s[r] && is->s[r] == again->s[r])
			continue;
		if (code_pair(is, r, pc, &off)) {
			snprintf(name, sizeof(name), "s[%d:%d]=pc%+lld", r,
				 r + 1, (long long)off);
			mix_name(t, name);
			add_text(t, name);
			r++;
			continue;
		}
		snprintf(name, sizeof(name), "s%d", r);
		/* The high half of a counter is no more stable than the low. */
		if (r && is->s[r - 1] != again->s[r - 1])
			add_value(t, name, 0, false);
		else
			sign_scalar(t, name, was->s[r], is->s[r], again->s[r]);
	}
	sign_scalar(t, "scc", was->scc, is->scc, again->scc);
	sign_scalar(t, "vcc_lo", was->vcc[0], is->vcc[0], again->vcc[0]);
	sign_scalar(t, "vcc_hi", was->vcc[1], is->vcc[1], again->vcc[1]);
	sign_scalar(t, "exec_lo", was->exec[0], is->exec[0], again->exec[0]);
	sign_scalar(t, "exec_hi", was->exec[1], is->exec[1], again->exec[1]);
	sign_scalar(t, "m0", was->m0, is->m0, again->m0);
	sign_scalar(t, "mode", was->mode, is->mode, again->mode);
}

static void sign_vector(struct text *t, int r, const uint32_t *was,
			const uint32_t *is, const uint32_t *again)
{
	char name[16];
	bool stable = true;

	if (!memcmp(was, is, 4 * PROBE_LANES) &&
	    !memcmp(is, again, 4 * PROBE_LANES))
		return;
	snprintf(name, sizeof(name), "v%d", r);
	for (int l = 0; l < PROBE_LANES; l++) {
		stable &= is[l] == again[l];
		mix_hash(t, is[l] == again[l] ? is[l] : 0);
	}
	add_value(t, name, is[0], stable);
}

/* Dwords of a memory: how many changed. */
static void sign_memory(struct text *t, const char *name, const uint32_t *was,
			const uint32_t *is, const uint32_t *again, int n)
{
	char part[48];
	int changed = 0;

	for (int i = 0; i < n; i++) {
		if (was[i] == is[i] && is[i] == again[i])
			continue;
		changed++;
		mix_hash(t, (uint32_t)i);
		mix_hash(t, is[i] == again[i] ? is[i] : 0);
	}
	if (!changed)
		return;
	mix_name(t, name);
	snprintf(part, sizeof(part), "%s:%d", name, changed);
	add_text(t, part);
}

/* Markers that did not run: dwords consumed or jumped over. */
static void sign_markers(struct text *t, const struct probe_state *is)
{
	char part[48];
	int skipped = 0;

	while (skipped < PROBE_MARKERS && !is->s[PROBE_S_MARK + skipped])
		skipped++;
	for (int i = skipped; i < PROBE_MARKERS; i++)
		if (is->s[PROBE_S_MARK + i] != 1)
			skipped = -1;
	if (!skipped)
		return;
	if (skipped < 0)
		snprintf(part, sizeof(part), "markers=%x,%x,%x,%x", is->s[40],
			 is->s[41], is->s[42], is->s[43]);
	else
		snprintf(part, sizeof(part), "skips=%d", skipped);
	mix_name(t, part);
	add_text(t, part);
}

void probe_signature(const struct probe_state *was,
		     const struct probe_state *is,
		     const struct probe_state *again, uint64_t pc,
		     char *out, size_t size)
{
	struct text t = { .out = out, .size = size };

	out[0] = 0;
	for (int r = 0; r < PROBE_VGPRS; r++)
		sign_vector(&t, r, was->v[r], is->v[r], again->v[r]);
	sign_scalars(&t, was, is, again, pc);
	sign_memory(&t, "lds", was->lds, is->lds, again->lds, PROBE_LDS_DW);
	sign_memory(&t, "scratch", was->scratch[0], is->scratch[0],
		    again->scratch[0], PROBE_SCRATCH_DW * PROBE_LANES);
	sign_memory(&t, "mem", was->mem, is->mem, again->mem, PROBE_MEM_DW);
	sign_markers(&t, is);
	if (!t.parts)
		snprintf(out, size, "nothing");
	else if (t.more)
		t.len += (size_t)snprintf(out + t.len, size - t.len, " +%d",
					  t.more);
	if (t.parts)
		snprintf(out + t.len, size - t.len, " #xxh3-64:%016llx",
			 (unsigned long long)XXH3_64bits(t.all.data,
							 t.all.len));
	buf_fini(&t.all);
}

/* -------------------------------------------------------------- table --- */

static void add_change_row(struct table *t, const char *name, int lane,
			   uint32_t was, uint32_t is)
{
	if (was == is)
		return;
	table_row(t);
	table_cell(t, 0, "%s", name);
	if (lane >= 0)
		table_cell(t, 1, "%d", lane);
	table_cell(t, 2, "%08x", was);
	table_cell(t, 3, "%08x", is);
}

static void add_lane_rows(struct table *t, const char *prefix,
			  const uint32_t (*was)[PROBE_LANES],
			  const uint32_t (*is)[PROBE_LANES], int n)
{
	char name[32];

	for (int r = 0; r < n; r++) {
		snprintf(name, sizeof(name), "%s%d", prefix, r);
		for (int l = 0; l < PROBE_LANES; l++)
			add_change_row(t, name, l, was[r][l], is[r][l]);
	}
}

static void add_dword_rows(struct table *t, const char *prefix,
			   const uint32_t *was, const uint32_t *is, int n,
			   int origin)
{
	char name[32];

	for (int i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%s%+d", prefix,
			 4 * (i - origin));
		add_change_row(t, name, -1, was[i], is[i]);
	}
}

void probe_signature_table(const struct probe_state *was,
			   const struct probe_state *is, struct table *t)
{
	char name[16];

	table_init(t, "where,#lane,before,after");
	add_lane_rows(t, "v", was->v, is->v, PROBE_VGPRS);
	for (int r = 0; r < PROBE_SGPRS; r++) {
		snprintf(name, sizeof(name), "s%d", r);
		add_change_row(t, name, -1, was->s[r], is->s[r]);
	}
	add_change_row(t, "scc", -1, was->scc, is->scc);
	add_change_row(t, "vcc_lo", -1, was->vcc[0], is->vcc[0]);
	add_change_row(t, "vcc_hi", -1, was->vcc[1], is->vcc[1]);
	add_change_row(t, "exec_lo", -1, was->exec[0], is->exec[0]);
	add_change_row(t, "exec_hi", -1, was->exec[1], is->exec[1]);
	add_change_row(t, "m0", -1, was->m0, is->m0);
	add_change_row(t, "mode", -1, was->mode, is->mode);
	add_dword_rows(t, "lds", was->lds, is->lds, PROBE_LDS_DW, 0);
	add_lane_rows(t, "scratch", was->scratch, is->scratch,
		      PROBE_SCRATCH_DW);
	add_dword_rows(t, "mem", was->mem, is->mem, PROBE_MEM_DW,
		       PROBE_MEM_DW / 2);
}
