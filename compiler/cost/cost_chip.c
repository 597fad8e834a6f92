/*
 * compiler/cost/cost_chip.c - the costs of a chip before any database: those of
 * cost.def on gfx1100; on others what chips.def and the chip's description say,
 * and for the rest guesses.
 */
#include <math.h>
#include <string.h>

#include "compiler/cost/cost_int.h"

#define GUESS "guess: taken over from gfx1100: "

static const struct known {
	const char *chip;
	enum cost_row row;
	double value;
	char confidence;
	const char *source;
} known[] = {
#define KNOWN(chip, id, value, conf, source) \
	{ #chip, COST_##id, value, conf, source },
#include "compiler/cost/chips.def"
};

static const struct known_op {
	const char *chip;
	enum isa_op op;
	double interval;
	char confidence;
	const char *source;
} known_ops[] = {
#define KNOWN_OP(chip, op, interval, conf, source) \
	{ #chip, ISA_##op, interval, conf, source },
#include "compiler/cost/chips.def"
};

static void set_row(struct cost_model *m, enum cost_row row, double value,
		    char confidence, const char *source)
{
	m->base[row] = (struct cost_base){ value, COST_PUBLISHED, confidence };
	m->row[row].source = source;
}

/* Sizes and numbers: isa/tables/chips.def; 0: the chip's are not there. */
static void take_description(struct cost_model *m, const struct isa_chip *c)
{
	static const char from[] = "isa/tables/chips.def";
	const struct isa_gen_info *g = isa_gen_info(c->gen);
	const struct {
		enum cost_row row;
		double value;
	} facts[] = {
		{ COST_N_WGP, isa_chip_cus(c) / 2.0 },
		{ COST_N_SE, c->n_se },
		{ COST_N_ARRAY, c->n_se * c->sa_per_se },
		{ COST_IC_BYTES, g->sqc_inst_kib * 1024.0 },
		{ COST_K_BYTES, g->sqc_data_kib * 1024.0 },
		{ COST_L0_BYTES, g->tcp_kib * 1024.0 },
		{ COST_L1_BYTES, g->gl1_kib * 1024.0 },
		{ COST_L2_BYTES, c->l2_kib * 1024.0 },
		{ COST_MALL_BYTES, c->mall_kib * 1024.0 },
	};

	for (size_t i = 0; c->n_se && i < ARRAY_SIZE(facts); i++)
		set_row(m, facts[i].row, facts[i].value, 'H', from);
}

static void take_known(struct cost_model *m)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i].chip, m->chip))
			set_row(m, known[i].row, known[i].value,
				known[i].confidence, known[i].source);
	for (size_t i = 0; i < ARRAY_SIZE(known_ops); i++) {
		const struct known_op *k = &known_ops[i];
		struct cost_op *op = &m->op[k->op];

		if (strcmp(k->chip, m->chip))
			continue;
		m->n_ops++;
		op->has_issue = true;
		op->issue = (struct cost_value){ .value = k->interval,
						 .origin = COST_PUBLISHED,
						 .spread = NAN,
						 .clock_hz = NAN,
						 .source = k->source };
	}
}

void cost_take_chip(struct cost_model *m)
{
	const struct isa_chip *c = isa_chip_find(m->chip);
	const bool own = !strcmp(m->chip, COST_CHIP);

	for (int i = 0; i < COST_ROW_COUNT; i++) {
		const struct cost_row_info *r = cost_row_info(i);

		m->base[i] =
			(struct cost_base){ r->value,
					    own ? COST_DEFAULT : COST_GUESS,
					    own ? r->confidence : 'L' };
		m->row[i].source =
			own ? r->source :
			      arena_printf(&m->mem, GUESS "%s", r->source);
	}
	if (own)
		return;
	if (c)
		take_description(m, c);
	take_known(m);
}
