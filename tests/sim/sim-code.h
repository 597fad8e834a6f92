/* sim-code.h - assemble a few lines and simulate them, for tests. */
#ifndef T0_TESTS_SIM_CODE_H
#define T0_TESTS_SIM_CODE_H

#include <stdlib.h>
#include <string.h>

#include "compiler/sim/sim.h"
#include "isa/text/text.h"
#include "tests/tap.h"

/* Machine code of lines of text; instructions only. */
static inline size_t assemble(const char *text, uint8_t *code, size_t room)
{
	struct isa_target t = { ISA_GFX11, 32, false };
	size_t n = 0;

	while (*text) {
		char line[256];
		struct isa_inst in;
		size_t len = strcspn(text, "\n");

		snprintf(line, sizeof(line), "%.*s", (int)len, text);
		text += len + (text[len] == '\n');
		if (!line[strspn(line, " \t")])
			continue;
		const char *why = isa_parse(&t, line, NULL, NULL, &in);
		if (why || n + ISA_MAX_SIZE_BYTES > room)
			BUG("%s: %s", line, why ? why : "too long");
		n += (size_t)isa_encode(&in, code + n);
	}
	return n;
}

/* What a test wants to know of a run. */
struct ran {
	struct sim_result r;
	struct cost_model m;
	uint64_t at[8][512]; /* [wave][n-th issue] cycle */
	int n[8];
	bool ok;
};

static inline void ran_issue(void *ctx, const struct sim_event *ev)
{
	struct ran *x = ctx;

	if (ev->wave < 8 && x->n[ev->wave] < 512)
		x->at[ev->wave][x->n[ev->wave]++] = ev->cycle;
}

/*
 * Simulate with warm code and caches; `set` is "name=value ..." of costs.
 * `vgprs` and `lds` decide how many groups are resident.
 */
static inline void run_code(struct ran *x, const char *text, const char *affine,
			    const char *set, int vgprs, uint32_t lds, bool cu)
{
	static uint8_t code[65536];
	struct err e = { 0 };
	char buf[512], *save, *word;
	struct sim_source s = { .vgprs = vgprs, .lds_bytes = lds,
				.cu_mode = cu };
	struct sim_config c = { .cost = &x->m, .warmth = SIM_WARM,
				.warm_code = true, .issued = ran_issue,
				.ctx = x };
	size_t n = assemble(text, code, sizeof(code));

	memset(x, 0, sizeof(*x));
	cost_init(&x->m, "gfx1100");
	snprintf(buf, sizeof(buf), "%s", set ? set : "");
	for (word = strtok_r(buf, " ", &save); word;
	     word = strtok_r(NULL, " ", &save)) {
		char *value = strchr(word, '=');

		*value = '\0';
		if (!cost_set(&x->m, word, strtod(value + 1, NULL),
			      COST_HARDWARE, &e))
			BUG("%s", e.msg);
	}
	if (!sim_affine_open(&s, code, n, 0x10000, affine ? affine : "",
			     "affine", &e))
		BUG("%s", e.msg);
	x->ok = sim_run(&s, &c, &x->r, &e);
	if (!x->ok)
		diag("%s", e.msg);
	sim_affine_close(&s);
}

/* The same with defaults, and data of so many bytes. */
static inline void run_from(struct ran *x, const char *text, const char *affine,
			    uint64_t footprint)
{
	static uint8_t code[65536];
	struct err e = { 0 };
	struct sim_source s = { .vgprs = 32 };
	struct sim_config c = { .cost = &x->m, .warmth = SIM_WARM,
				.warm_code = true,
				.footprint_bytes = footprint };
	size_t n = assemble(text, code, sizeof(code));

	memset(x, 0, sizeof(*x));
	cost_init(&x->m, "gfx1100");
	if (!sim_affine_open(&s, code, n, 0x10000, affine, "affine", &e))
		BUG("%s", e.msg);
	x->ok = sim_run(&s, &c, &x->r, &e);
	if (!x->ok)
		diag("%s", e.msg);
	sim_affine_close(&s);
}

static inline void ran_fini(struct ran *x)
{
	sim_fini(&x->r);
	cost_fini(&x->m);
}

#endif
