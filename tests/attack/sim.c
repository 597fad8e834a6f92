/*
 * What the simulator reads from others: descriptions, recorded traces, traces
 * of the soft device, code, tables.  The first byte chooses which.  It must
 * end, stay inside its input, and account for every cycle of every wave.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler/cost/cost.h"
#include "compiler/sim/examine/examine.h"
#include "compiler/sim/machine.h"

enum { CYCLES = 20000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct sim_result *r)
{
	for (int w = 0; w < r->n_waves; w++) {
		uint64_t sum = 0;

		for (int k = 0; k < SIM_STALL_COUNT; k++)
			sum += r->wave[w].stall[k];
		if (sum != r->wave[w].end - r->wave[w].start)
			BUG("wave %d: %llu cycles of %llu", w,
			    (unsigned long long)sum,
			    (unsigned long long)(r->wave[w].end -
						 r->wave[w].start));
	}
}

static void simulate(struct sim_source *s, const struct cost_model *m)
{
	struct sim_config c = { .cost = m, .max_cycles = CYCLES };
	struct sim_result r;
	struct err e = { 0 };

	if (sim_run(s, &c, &r, &e))
		check(&r);
	sim_fini(&r);
}

/* v_add, s_add, ds_load, s_cbranch -4, s_endpgm: with any description. */
static void description(const char *text, const struct cost_model *m)
{
	static const uint32_t code[] = { 0x06000300, 0x80028102, 0xd8d80000,
					 0x01000000, 0xbfa2fffb, 0xbfb00000 };
	struct sim_source s = { .vgprs = 16 };
	struct err e = { 0 };

	if (!sim_affine_open(&s, (const uint8_t *)code, sizeof(code), 4096,
			     text, "fuzz", &e))
		return;
	simulate(&s, m);
	sim_affine_close(&s);
}

static void machine_code(const uint8_t *code, size_t size,
			 const struct cost_model *m)
{
	struct sim_source s = { .vgprs = 64, .waves_per_group = 2 };
	struct err e = { 0 };

	if (size < 4 || !sim_affine_open(&s, code, size & ~(size_t)3, 4096, "",
					 "fuzz", &e))
		return;
	simulate(&s, m);
	sim_affine_close(&s);
}

/* A wave with fewer registers than the code may name. */
static void followed(const uint8_t *code, size_t size)
{
	struct machine_code c = {
		.code = code, .va = 4096, .size_bytes = size,
		.wave_size = size % 2 ? 64 : 32, .vgprs = 32,
		.memory = (struct sim_memory[]){ { 1 << 16, code, size } },
		.n_memory = 1,
		.guess = true,
	};
	uint32_t lanes[64] = { 0, 1, 2, 3 };
	struct machine m;
	struct sim_step step;
	struct err e = { 0 };

	machine_code_init(&c);
	machine_init(&c, &m);
	machine_set_vgpr(&c, &m, 0, lanes);
	machine_set_sgpr(&m, 0, 1 << 16);
	machine_set_sgpr(&m, 1, 0);
	for (int i = 0; i < CYCLES && !m.ended; i++)
		if (!machine_step(&c, &m, &step, &e))
			break;
	machine_fini(&m);
	machine_code_fini(&c);
}

static void soft_trace(const uint8_t *bytes, size_t size,
		       const struct cost_model *m)
{
	struct sim_source s = { 0 };
	struct err e = { 0 };

	if (!sim_trace_open(&s, bytes, size, 0, 2, &e))
		return;
	simulate(&s, m);
	sim_trace_close(&s);
}

static void hardware_trace(const char *text, size_t size,
			   const struct cost_model *m)
{
	struct vector v;
	struct err e = { 0 };

	if (vector_parse(&v, text, size, "fuzz", &e)) {
		vector_predict(&v, m, &e);
		vector_fini(&v);
	}
}

static void table(char *text)
{
	struct csv c = { .at = text };

	while (csv_next(&c))
		for (int i = 0; i < c.n; i++)
			if (strlen(csv_cell(&c, i)) > strlen(c.field[i]))
				BUG("a cell is not a field");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cost_model m;

	if (size < 2 || size > 65536)
		return 0;
	char *text = xmalloc(size);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	cost_init(&m, "gfx1100");
	switch (*data % 6) {
	case 0:
		description(text, &m);
		break;
	case 1:
		machine_code((uint8_t *)text, size - 1, &m);
		break;
	case 2:
		soft_trace((uint8_t *)text, size - 1, &m);
		break;
	case 3:
		hardware_trace(text, size - 1, &m);
		break;
	case 4:
		table(text);
		break;
	case 5:
		followed((uint8_t *)text, size - 1);
		break;
	}
	cost_fini(&m);
	free(text);
	return 0;
}
