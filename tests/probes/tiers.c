/*
 * Tier 5's report of a wrong accumulator map: a result whose every element
 * says where it belongs, laid out wrongly in known ways.
 */
#include <math.h>
#include <string.h>

#include "probes/tiers/tiers.h"
#include "tests/tap.h"

/* What the ISA says: lane l, register v hold row 2v + l/16, column l%16. */
static float element(int row, int col)
{
	return (float)(16 * row + col);
}

static void right(float d[8][32])
{
	for (int v = 0; v < 8; v++)
		for (int l = 0; l < 32; l++)
			d[v][l] = element(2 * v + l / 16, l % 16);
}

static void says(const char *name, float d[8][32], const char *part,
		 const char *where)
{
	struct buf text = { 0 };

	ok(tiers_wmma_pattern((const float(*)[32])d, false, &text),
	   "%s: seen to be wrong", name);
	diag("%s", text.data);
	has_str(text.data, part, "%s: it is recognised", name);
	has_str(text.data, where, "%s: an element is shown", name);
	buf_fini(&text);
}

int main(void)
{
	float d[8][32];
	struct buf text = { 0 };

	right(d);
	ok(!tiers_wmma_pattern((const float(*)[32])d, false, &text),
	   "the layout of the ISA is right");
	is_u64(text.len, 0, "and there is nothing to say of it");
	ok(tiers_wmma_pattern((const float(*)[32])d, true, &text) &&
	   strstr(text.data, "as on gfx11"), "but not on gfx12");
	buf_reset(&text);
	for (int v = 0; v < 8; v++)
		for (int l = 0; l < 32; l++)
			d[v][l] = element(v + l / 16 * 8, l % 16);
	ok(!tiers_wmma_pattern((const float(*)[32])d, true, &text),
	   "rows in halves are right on gfx12");
	says("rows in halves", d, "rows in halves",
	     "register 1 of lane 0 holds [1][0], wanted [2][0]");
	for (int v = 0; v < 8; v++)
		for (int l = 0; l < 32; l++)
			d[v][l] = element(2 * v + 1 - l / 16, l % 16);
	says("lanes exchanged", d, "upper and lower lanes are exchanged",
	     "register 0 of lane 16 holds [0][0], wanted [1][0]");
	for (int v = 0; v < 8; v++)
		for (int l = 0; l < 32; l++)
			d[v][l] = element(l % 16, 2 * v + l / 16);
	says("transposed", d, "transposed",
	     "register 7 of lane 31 holds [15][15], wanted [15][15]");
	for (int v = 0; v < 8; v++)
		for (int l = 0; l < 32; l++)
			d[v][l] = element(2 * v, l % 16);
	says("one half", d, "the upper half is missing", "128 of 256");
	right(d);
	d[3][5] = NAN;
	says("one element", d, "1 of 256 elements are wrong",
	     "register 0 of lane 0 holds [0][0]");
	right(d);
	d[7][31] = -1;
	says("a strange value", d, "1 of 256 elements",
	     "register 7 of lane 31 holds -1");
	buf_fini(&text);
	return plan_done();
}
