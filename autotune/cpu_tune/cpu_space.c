/*
 * autotune/cpu_tune/cpu_space.c - configurations: as text, and all that a
 * problem may have.
 */
#include <string.h>

#include "autotune/cpu/gemm_int.h"
#include "autotune/cpu_tune/cpu_tune.h"

static const char *const path_name[CPU_GEMM_PATHS] = { "auto", "dot", "normal",
						       "swapped" };
static const char *const level_name[] = { "v2",	  "v3",	  "v4",	      "amx",
					  "bf16", "vnni", "avx-vnni", "bytes" };

/* ---- words ---- */

void cpu_gemm_config_name(const struct cpu_gemm_config *c,
			  char out[CPU_GEMM_TEXT])
{
	if (c->path == CPU_GEMM_DOT)
		snprintf(out, CPU_GEMM_TEXT, "dot %s ahead%u",
			 level_name[c->level - 2], c->ahead_bytes);
	else
		snprintf(out, CPU_GEMM_TEXT,
			 "%s %s %ux%u kc%u depth%u nc%u",
			 path_name[c->path], level_name[c->level - 2], c->rows,
			 c->vecs, c->kc, c->depth, c->nc);
}

bool cpu_gemm_config_parse(const char *s, struct cpu_gemm_config *c,
			   struct err *e)
{
	unsigned rows = 0, vecs = 0, kc = 0, depth = 0, nc = 0, ahead = 0;
	char path[16] = "", level[16], again[CPU_GEMM_TEXT];

	*c = (struct cpu_gemm_config){ .path = CPU_GEMM_AUTO };
	if (sscanf(s, "dot %15s ahead%u", level, &ahead) != 2 &&
	    sscanf(s, "%15s %15s %ux%u kc%u depth%u nc%u", path, level, &rows,
		   &vecs, &kc, &depth, &nc) != 7)
		*level = 0;
	*c = (struct cpu_gemm_config){
		.path = CPU_GEMM_DOT,
		.level = 2,
		.rows = (uint8_t)rows,
		.vecs = (uint8_t)vecs,
		.kc = (uint16_t)kc,
		.nc = (uint16_t)nc,
		.depth = (uint16_t)depth,
		.ahead_bytes = (uint16_t)ahead,
	};
	for (int i = CPU_GEMM_NORMAL; i < CPU_GEMM_PATHS; i++)
		if (!strcmp(path, path_name[i]))
			c->path = (enum cpu_gemm_path)i;
	for (size_t i = 0; i < ARRAY_SIZE(level_name); i++)
		if (!strcmp(level, level_name[i]))
			c->level = (uint8_t)(i + 2);
	/* Whatever does not come out the same was no such name. */
	cpu_gemm_config_name(c, again);
	return !strcmp(s, again) ||
	       err_set(e, ERR_INPUT,
		       "\"%s\" is no configuration of a host product; wanted, "
		       "for example, \"normal v3 6x2 kc512 depth512 "
		       "nc256\"",
		       s);
}

void cpu_problem_op(const struct cpu_problem *p, char out[CPU_GEMM_TEXT])
{
	snprintf(out, CPU_GEMM_TEXT, "%s*%s[%s]", cpu_gemm_type_name(p->a_as),
		 cpu_gemm_type_name(p->b_type), p->b_by_n ? "n][k" : "k][n");
}

/* ---- the space ---- */

struct space {
	struct cpu_gemm g;
	struct cpu_gemm_config *out;
	size_t n, cap;
};

static bool is_same_config(const struct cpu_gemm_config *a,
			   const struct cpu_gemm_config *b)
{
	char x[CPU_GEMM_TEXT], y[CPU_GEMM_TEXT];

	cpu_gemm_config_name(a, x);
	cpu_gemm_config_name(b, y);
	return !strcmp(x, y);
}

static void add_config(struct space *s, const struct cpu_gemm_config *c)
{
	const char *why;

	if (s->n == s->cap || !cpu_gemm_legal(&s->g, c, &why))
		return;
	for (size_t i = 0; i < s->n; i++)
		if (is_same_config(&s->out[i], c))
			return;
	s->out[s->n++] = *c;
}

static void add_dots(struct space *s, unsigned level)
{
	static const uint16_t ahead[] = { 0, 512, 1024, 2048, 4096, 8192 };

	for (size_t i = 0; i < ARRAY_SIZE(ahead); i++)
		add_config(s, &(struct cpu_gemm_config){
				      .path = CPU_GEMM_DOT,
				      .level = (uint8_t)level,
				      .ahead_bytes = ahead[i] });
}

/* Blocks of one tile: how much is packed at a time. */
static void add_blocks(struct space *s, struct cpu_gemm_config c)
{
	static const uint16_t kc[] = { 512, 256, 384, 768, 1024 };
	bool swapped = c.path == CPU_GEMM_SWAPPED;

	for (size_t i = 0; i < ARRAY_SIZE(kc); i++) {
		/* A larger one than k would do the same as k. */
		if (kc[i] >= 2 * s->g.k && kc[i] > 256)
			continue;
		c.kc = kc[i];
		for (int deep = 0; deep <= swapped; deep++)
			for (int half = 0; half < 2; half++) {
				cpu_gemm_blocks(&s->g, deep, &c);
				if (half)
					c.nc = (uint16_t)(c.nc / 2);
				add_config(s, &c);
			}
	}
}

/* The largest tiles of each width, and smaller ones. */
static void add_tiles(struct space *s, enum cpu_gemm_path path, unsigned level)
{
	unsigned lanes = cpu_gemm_kernels(level)->lanes;
	size_t columns = path == CPU_GEMM_SWAPPED ? s->g.m : s->g.n;

	for (unsigned v = 1; v <= CPU_GEMM_VECS_MAX; v++) {
		unsigned most = cpu_gemm_rows_max(level, s->g.b_type, v);
		if (most == 0 || (v > 1 && (v - 1) * lanes >= columns))
			continue;
		unsigned rows[] = { most, most * 6 / 7, most * 2 / 3 };
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
			add_blocks(s, (struct cpu_gemm_config){
					      .path = path,
					      .level = (uint8_t)level,
					      .rows = (uint8_t)rows[i],
					      .vecs = (uint8_t)v });
	}
}

/* Every tile of a unit of bytes, with so many groups in the first cache. */
static void add_bytes(struct space *s, unsigned level)
{
	static const uint16_t kc[] = { 12, 4, 6, 8, 10, 16, 24, 32, 64 };
	unsigned rows;

	for (unsigned v = 1; v <= CPU_GEMM_VECS_MAX; v++) {
		rows = cpu_gemm_rows_max(level, s->g.b_type, v);
		for (; rows; rows--)
			for (size_t i = 0; i < ARRAY_SIZE(kc); i++)
				add_config(s, &(struct cpu_gemm_config){
						      .path = CPU_GEMM_NORMAL,
						      .level = (uint8_t)level,
						      .rows = (uint8_t)rows,
						      .vecs = (uint8_t)v,
						      .kc = kc[i],
						      .depth = kc[i],
						      .nc = 1 });
	}
}

/* Units that are taken for what A is rounded to. */
static void add_units(struct space *s, unsigned level)
{
	if (s->g.a_as == CPU_GEMM_BF16 && level >= 4 &&
	    cpu_gemm_may(CPU_LEVEL_BF16)) {
		add_tiles(s, CPU_GEMM_NORMAL, CPU_LEVEL_BF16);
		add_tiles(s, CPU_GEMM_SWAPPED, CPU_LEVEL_BF16);
	}
	for (unsigned unit = CPU_LEVEL_VNNI; unit < CPU_LEVELS; unit++)
		if (s->g.a_as == CPU_GEMM_INT8 && cpu_gemm_may(unit) &&
		    level >= (unit == CPU_LEVEL_VNNI ? 4 : 3))
			add_bytes(s, unit);
}

/* How deep a strip goes, and how many columns are packed for it. */
static void add_amx(struct space *s, enum cpu_gemm_path path)
{
	static const uint16_t depth[] = { 1024, 256, 512, 768, 1536, 2048 };
	struct cpu_gemm_config c = { .path = path, .level = CPU_AMX_LEVEL,
				     .rows = 32, .vecs = 2, .kc = CPU_AMX_K };

	for (size_t i = 0; i < ARRAY_SIZE(depth); i++) {
		/* A larger one than k would do the same as k. */
		if (depth[i] >= 2 * s->g.k && depth[i] > 256)
			continue;
		cpu_amx_blocks(&s->g, depth[i], &c);
		for (unsigned quarter = 2; quarter <= 5; quarter++) {
			struct cpu_gemm_config part = c;
			part.nc = (uint16_t)(c.nc * quarter / 4);
			add_config(s, &part);
		}
	}
}

size_t cpu_gemm_candidates(const struct cpu_problem *p, unsigned level,
			   struct cpu_gemm_config *out, size_t cap)
{
	struct space s = { .out = out,
			   .cap = cap,
			   .g = { .m = p->m,
				  .n = p->n,
				  .k = p->k,
				  .b_type = p->b_type,
				  .b_by_n = p->b_by_n,
				  .a_as = p->a_as } };
	struct cpu_gemm_config first;

	if (level == cpu_gemm_level())
		cpu_gemm_default(&s.g, &first);
	else
		cpu_gemm_plan(&s.g, level, &first);
	add_config(&s, &first);
	add_units(&s, level);
	if (level == CPU_AMX_LEVEL) {
		add_amx(&s, CPU_GEMM_NORMAL);
		add_amx(&s, CPU_GEMM_SWAPPED);
		level = 4;
	}
	add_dots(&s, level);
	add_tiles(&s, CPU_GEMM_NORMAL, level);
	add_tiles(&s, CPU_GEMM_SWAPPED, level);
	return s.n;
}
