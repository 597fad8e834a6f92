/*
 * Fuzz target: tables of measurements of others, which the simulator is held
 * against.  The first byte chooses the kind of table.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/cost/cost.h"
#include "compiler/sim/examine/examine.h"
#include "tests/attack/driver/driver.h"

static void take_product(void *ctx, const struct others_row *row)
{
	(void)ctx;
	if (!(row->time_s > 0) || !row->m || !row->n || !row->k)
		BUG("a row of nothing: %dx%dx%d in %g s", row->m, row->n,
		    row->k, row->time_s);
}

static void take_loop(void *ctx, const struct loop_row *row)
{
	(void)ctx;
	if (!strlen(row->name) || isnan(row->predicted))
		BUG("a row of nothing");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cost_model m;
	struct err e = { 0 };
	const _Atomic int stop = 0;

	if (size < 2 || size > 4096)
		return 0;
	const char *path = input_file(data + 1, size - 1, NULL);
	cost_init(&m, "gfx1100");
	bool good = *data % 2 ?
		others_rows_run(path, &m, true, &stop, take_product, NULL,
				&e) :
		loop_rows_run(path, &m, take_loop, NULL, &e);
	if (!good && !e.msg[0])
		BUG("refused without a reason");
	cost_fini(&m);
	return 0;
}
