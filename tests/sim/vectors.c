/*
 * Recorded traces of a real card: predicted issue times against traced ones.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compiler/sim/examine/examine.h"
#include "tests/tap.h"

#define PATH "../shared/vectors/gfx1100_timing.jsonl"

static int by_number(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* A trace made by hand: two adds, the second on the first's result. */
static void test_small(const struct cost_model *m)
{
	static const char json[] = "{\"code\":\"000100060301000600000006"
		"0000b0bf\",\"kernel\":\"k\",\"sha\":\"x\",\"gpu_clk_ghz\":2.5,"
		"\"events\":[[100,\"I\",0,0,\"\"],[101,\"I\",0,4,\"\"],"
		"[102,\"ALUEXEC\",\"VALU\"],[105,\"I\",0,8,\"\"]]}";
	struct err e = { 0 };
	struct vector v;

	ok(vector_parse(&v, json, strlen(json), "line 1", &e), "is read: %s",
	   e.msg);
	is_i64(v.n, 3, "other events are left out");
	ok(vector_predict(&v, m, &e), "is predicted: %s", e.msg);
	is_u64(v.event[1].guess, 1, "the second issues a cycle later");
	is_u64(v.event[2].guess, 2, "and the third");
	is_u64(v.duration, 5, "it took 5 cycles");
	is_u64(v.predicted, 2, "2 are predicted");
	/* Distances of 1 and 4 cycles, both predicted as 1. */
	ok(fabs(v.issue_error - 3.0 / 5) < 1e-12 && v.within == 0.5,
	   "3 of 5 cycles are misplaced, one distance of two");
	vector_fini(&v);
	ok(!vector_parse(&v, "{\"code\":\"00\"}", 13, "line 2", &e),
	   "without events: %s", e.msg);
	e.code = ERR_NONE;
	ok(!vector_parse(&v, json, 40, "line 3", &e), "cut off: %s", e.msg);
	e.code = ERR_NONE;
	const char far[] = "{\"code\":\"0000b0bf\",\"events\":"
			   "[[1,\"I\",0,64,\"\"]]}";
	ok(!vector_parse(&v, far, strlen(far), "line 4", &e),
	   "an offset outside the code: %s", e.msg);
}

/* Slots 3 and 9; 3 is used twice: three waves. */
static void test_slots(const struct cost_model *m)
{
	static const char json[] = "{\"code\":\"0001000603010006\",\"events\":["
		"[100,\"I\",9,0,\"\"],[101,\"I\",3,0,\"\"],"
		"[104,\"I\",3,4,\"\"],[105,\"END\",3,0,0],"
		"[200,\"I\",3,0,\"\"],[201,\"I\",3,4,\"\"]]}";
	struct err e = { 0 };
	struct vector v;

	ok(vector_parse(&v, json, strlen(json), "line 5", &e), "slots: %s",
	   e.msg);
	is_i64(v.n_waves, 3, "a slot's next wave is another one");
	ok(vector_predict(&v, m, &e), "are predicted: %s", e.msg);
	is_u64(v.event[3].guess, 100, "its first issue is given");
	is_u64(v.event[4].guess, 101, "the next one predicted");
	vector_fini(&v);
}

/* A trace of waves that all add, come to a barrier, and add. */
static void make_barriers(struct buf *b, int waves, int size)
{
	buf_printf(b, "{\"code\":\"000100060000bdbf0001000600"
		   "00b0bf\",\"kernel\":\"k\",\"sha\":\"b\",\"events\":[");
	/* Two rounds of eight; those of a group leave 20 behind its last. */
	for (int t = 0; t < 4000; t++)
		for (int w = 0; w < waves; w++) {
			int at = 10 + w * 40, last = 10 + w / size * size * 40 +
						     (size - 1) * 40;
			const char *sep = b->data[b->len - 1] == '[' ? "" : ",";

			if (t == at)
				buf_printf(b, "%s[%d,\"I\",%d,0]", sep, t, w);
			if (t == at + 1)
				buf_printf(b, "%s[%d,\"I\",%d,4]", sep, t, w);
			if (t == last + 21)
				buf_printf(b, "%s[%d,\"I\",%d,8]", sep, t, w);
		}
	buf_printf(b, "]}");
}

/* Groups of 4 among 22 waves, more than a SIMD holds at a time. */
static void test_barriers(const struct cost_model *m)
{
	uint64_t cycles = (uint64_t)(cost_value(m, COST_BARRIER) +
				     3 * cost_value(m, COST_BARRIER_WAVE));
	struct err e = { 0 };
	struct buf b = { 0 };
	struct vector v;
	int wrong = 0;

	make_barriers(&b, 22, 4);
	ok(vector_parse(&v, b.data, b.len, "line 6", &e), "barriers: %s",
	   e.msg);
	is_i64(v.n_waves, 22, "waves");
	is_i64(v.group_waves, 4, "four of them meet each time");
	ok(vector_predict(&v, m, &e), "are predicted: %s", e.msg);
	for (int i = 0; i < v.n; i++)
		if (v.event[i].off == 8 && v.event[i].wave < 20) {
			int last = v.event[i].wave / 4 * 4 + 3;
			/* The last add of the last wave is a cycle before. */
			uint64_t at = (uint64_t)(last * 40 + 1) + cycles;

			wrong += v.event[i].guess < at ||
				 v.event[i].guess > at + 8;
		}
	is_i64(wrong, 0, "all leave when the last one of their group has come");
	vector_fini(&v);
	buf_fini(&b);
}

static void test_rank(void)
{
	/* Ranks 1 2 3 4 and 1 3 2 4: 1 - 6 * 2 / (4 * 15) */
	const double x[] = { 1, 2, 3, 4 }, y[] = { 10, 30, 20, 40 };

	ok(fabs(sim_rank(x, y, 4) - 0.8) < 1e-12, "Spearman by hand");
	ok(fabs(sim_rank(x, x, 4) - 1) < 1e-12, "the same order: 1");
}

static void test_file(const struct cost_model *m)
{
	struct err e = { 0 };
	struct buf b = { 0 };
	double share[256];
	int n = 0, bad_rank = 0, line = 0, beyond = 0;

	if (!file_read(PATH, 0, &b, &e)) {
		skip("no %s: nothing to judge with", PATH);
		return;
	}
	for (char *at = b.data, *next; at && *at && n < 256; at = next) {
		struct vector v;
		char where[32];

		next = strchr(at, '\n');
		size_t len = next ? (size_t)(next++ - at) : strlen(at);
		snprintf(where, sizeof(where), "line %d", ++line);
		if (!vector_parse(&v, at, len, where, &e) ||
		    !vector_predict(&v, m, &e)) {
			ok(false, "%s: %s", where, e.msg);
			e.code = ERR_NONE;
			continue;
		}
		share[n++] = fabs((double)v.predicted / (double)v.duration - 1);
		beyond += share[n - 1] > 0.2;
		bad_rank += !(v.rank >= 0.9);
		vector_fini(&v);
	}
	qsort(share, (size_t)n, sizeof(*share), by_number);
	ok(n >= 10, "%d traces", n);
	ok(n && share[n / 2] <= 0.08, "median error of their duration: %.2f %%",
	   n ? 100 * share[n / 2] : 100);
	is_i64(beyond, 0, "none is off by more than 20 %%, the worst by %.2f",
	       n ? 100 * share[n - 1] : 100);
	is_i64(bad_rank, 0, "issues are in the order of the trace: 0.9");
	buf_fini(&b);
}

int main(void)
{
	struct cost_model m;

	cost_init(&m, "gfx1100");
	test_rank();
	test_small(&m);
	test_slots(&m);
	test_barriers(&m);
	test_file(&m);
	cost_fini(&m);
	return plan_done();
}
