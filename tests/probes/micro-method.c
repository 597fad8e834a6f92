/*
 * The method of measuring, on machines that are made up: their clock jumps,
 * their counter wraps, their loops compute the wrong thing.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/common/common.h"
#include "tests/tap.h"

/* A machine on which one copy costs 5 cycles and the rest of a loop 37. */
struct machine {
	unsigned reads;
	unsigned jump_every;  /* the clock moves in every n-th pair */
	unsigned cut_every;
	unsigned wrong_from; /* from this pair on the value is wrong */
	double clock;
	unsigned noise; /* of the time, in ticks, up to this */
	uint64_t seed;
};

static bool read_machine(void *ctx, struct probe_pair *p, struct err *e)
{
	struct machine *m = ctx;
	const unsigned n = ++m->reads;
	const double noise =
		m->noise ? (double)(random_next(&m->seed) % m->noise) : 0;

	(void)e;
	p->before = m->clock;
	p->after = m->jump_every && n % m->jump_every == 0 ? m->clock * 1.02 :
							      m->clock;
	p->copies = 1000;
	p->shorter = (1000 * 5 + 37) / m->clock;
	p->longer = (2000 * 5 + 37) / m->clock + noise;
	p->cut = m->cut_every && n % m->cut_every == 0;
	if (p->cut)
		p->longer *= 3;
	if (p->after != p->before)
		p->longer /= 1.01;
	p->wrong = m->wrong_from && n >= m->wrong_from;
	return true;
}

static void run(struct probe_series *s, struct machine *m)
{
	const struct probe_plan plan = { .samples = 11, .pairs = 3,
					 .seed = 7 };
	struct err e = { 0 };

	*s = (struct probe_series){ .name = "made up", .read = read_machine,
				    .ctx = m };
	ok(probe_measure(&plan, &s, 1, &e), "runs");
}

static void test_judge(void)
{
	struct probe_pair p = { .before = 1, .after = 1, .shorter = 100,
				.longer = 600, .copies = 100 };
	double c;

	is_u64(probe_pair_cycles(&p, &c), PROBE_PAIR_GOOD,
	       "a good pair is good");
	is_f64(c, 5, "and gives the cost of one copy");
	p.after = 1.004;
	is_u64(probe_pair_cycles(&p, &c), PROBE_PAIR_GOOD,
	       "the clock may move by 0.4 %%");
	p.after = 1.006;
	is_u64(probe_pair_cycles(&p, &c), PROBE_PAIR_CLOCK,
	       "and may not by 0.6 %%");
	ok(isnan(c), "then there is no cost");
	p.after = 0;
	is_u64(probe_pair_cycles(&p, &c), PROBE_PAIR_CLOCK,
	       "a clock that could not be read is not a clock");
	p.after = 1;
	p.longer = 99;
	is_u64(probe_pair_cycles(&p, &c), PROBE_PAIR_ORDER,
	       "the longer loop must not be the shorter");
	p.wrong = true;
	is_u64(probe_pair_cycles(&p, &c), PROBE_PAIR_VALUE,
	       "a wrong value comes first");
	p = (struct probe_pair){ .before = 2, .after = 2, .shorter = 50,
				 .longer = 300, .copies = 100 };
	probe_pair_cycles(&p, &c);
	is_f64(c, 5, "ticks are made into cycles by the clock");
}

static void test_wrap(void)
{
	is_u64(probe_ticks_between(100, 350, 20), 250,
	       "a difference without wrap");
	is_u64(probe_ticks_between(0xfff00, 0x00010, 20), 0x110,
	       "a counter of 20 bits wraps");
	is_u64(probe_ticks_between(0xfff00, 0xfff00, 20), 0,
	       "no time is no time");
	is_u64(probe_ticks_between(1, 0, 20), 0xfffff, "the longest time");
	is_u64(probe_ticks_between(0xabcfff00, 0xabc00010, 20), 0x110,
	       "bits above the counter do not matter");
	is_u64(probe_ticks_between(5, 3, 32), 0xfffffffe, "32 bits");
}

static void test_machines(void)
{
	static struct probe_series s;
	struct machine m = { .clock = 1.4 };
	struct buf why = { 0 };

	run(&s, &m);
	is_u64(s.n, 11, "a quiet machine gives all samples");
	is_u64(m.reads, 33, "from no more pairs than it takes");
	ok(fabs(probe_series_median(&s).value - 5) < 1e-9,
	   "what surrounds the copies drops out");
	ok(probe_series_median(&s).lo < 5 && probe_series_median(&s).hi > 5,
	   "and the interval is never empty");

	m = (struct machine){ .clock = 1, .jump_every = 3 };
	run(&s, &m);
	is_u64(s.n, 11, "clock jumps: all samples are had");
	ok(fabs(probe_series_median(&s).value - 5) < 1e-9,
	   "clock jumps: they leave no trace");
	is_u64(s.rejected[PROBE_PAIR_CLOCK], m.reads / 3,
	       "clock jumps: each was counted");
	probe_rejects_print(s.rejected, &why);
	has_str(why.data, "16 clock moved", "clock jumps: and is told of");
	buf_reset(&why);

	m = (struct machine){ .clock = 1, .jump_every = 1 };
	run(&s, &m);
	is_u64(s.n, 0, "a clock that never stands gives no samples");
	ok(s.gave_up, "and ends");
	ok(m.reads < 100, "soon");

	m = (struct machine){ .clock = 1, .cut_every = 2 };
	run(&s, &m);
	ok(fabs(probe_series_median(&s).value - 5) < 1e-9,
	   "interruptions leave no trace");
	ok(s.rejected[PROBE_PAIR_CUT] > 0, "and are counted");

	m = (struct machine){ .clock = 1, .wrong_from = 20 };
	run(&s, &m);
	is_u64(s.n, 6, "a wrong final value ends the series");
	ok(s.gave_up && s.rejected[PROBE_PAIR_VALUE] == 1, "at once");
	probe_rejects_print(s.rejected, &why);
	has_str(why.data, "1 wrong final value", "and is told of");
	buf_fini(&why);
}

/* Half of the noise is above the median, and the interval says how much. */
static void test_noise(void)
{
	static struct probe_series s;
	struct machine m = { .clock = 1, .noise = 400, .seed = 99 };
	const struct probe_plan plan = { .samples = 101, .pairs = 3,
					 .seed = 3 };
	struct probe_series *v = &s;
	struct err e = { 0 };

	s = (struct probe_series){ .name = "noisy", .read = read_machine,
				   .ctx = &m };
	ok(probe_measure(&plan, &v, 1, &e), "a noisy machine");
	const struct res_interval r = probe_series_median(&s);
	ok(r.value > 5.15 && r.value < 5.25, "its median is in the middle");
	ok(r.lo < 5.2 && r.hi > 5.2, "and the truth in the interval");
}

/* Two machines: the order in which they are read is not always the same. */
struct logged {
	struct machine m;
	char name, *log;
};

static bool read_logged(void *ctx, struct probe_pair *p, struct err *e)
{
	struct logged *l = ctx;
	const size_t n = strlen(l->log);

	l->log[n] = l->name;
	l->log[n + 1] = 0;
	return read_machine(&l->m, p, e);
}

static void test_order(void)
{
	char log[256] = "";
	struct logged a = { { .clock = 1 }, 'a', log },
		      b = { { .clock = 1 }, 'b', log };
	static struct probe_series s[2];
	struct probe_series *v[2] = { &s[0], &s[1] };
	const struct probe_plan plan = { .samples = 20, .pairs = 1, .seed = 5 };
	struct err e = { 0 };
	int same = 0;

	s[0] = (struct probe_series){ .name = "a", .read = read_logged,
				      .ctx = &a };
	s[1] = (struct probe_series){ .name = "b", .read = read_logged,
				      .ctx = &b };
	ok(probe_measure(&plan, v, 2, &e), "two series");
	is_u64(strlen(log), 40, "are read once per round each");
	for (int i = 0; i < 40; i += 2) {
		same += log[i] == 'a';
		if (log[i] == log[i + 1])
			ok(false, "round %d has both", i / 2);
	}
	ok(same > 3 && same < 17, "now one first, now the other");
}

/* What a table is in a form, with a row of 64 KiB that was cut 178 times. */
static void print_as(enum table_format format, struct buf *out)
{
	char path[] = "/tmp/t0-method-XXXXXX";
	const int fd = mkstemp(path);
	const struct probe_opts o = { .format = format,
				      .format_out = path,
				      .quiet = true };
	const struct probe_series s = {
		.rejected = { [PROBE_PAIR_CUT] = 178, [PROBE_PAIR_ORDER] = 2 }
	};
	struct probe_rejects all = { 0 };
	struct table t;
	struct err e = { 0 };

	ok(fd >= 0 && !close(fd), "a file");
	table_init(&t, "#bytes,what,rejected");
	table_row(&t);
	probe_bytes_cell(&o, &t, 0, 65536);
	table_cell(&t, 1, "read");
	probe_rejects_add(&all, &s, &t);
	probe_rejects_add(&all, &s, NULL);
	is_u64(all.n[PROBE_PAIR_CUT], 356, "all that was cut is counted");
	is_u64(all.empty, 2, "and what has no value");
	ok(probe_print_table(&o, &t, &all, &e) &&
		   file_read(path, 4096, out, &e),
	   "a table: %s", e.msg);
	buf_addc(out, 0);
	table_fini(&t);
	unlink(path);
}

static void test_forms(void)
{
	struct buf out = { 0 };

	print_as(TABLE_CSV, &out);
	is_str(out.data,
	       "bytes,what,rejected\r\n"
	       "65536,read,\"178 interrupted, 2 longer loop was not longer\""
	       "\r\n",
	       "programs are told why, by row");
	buf_reset(&out);
	print_as(TABLE_TEXT, &out);
	is_str(out.data, " bytes  what\n64 KiB  read\n",
	       "people are not, and read bytes in a unit of their size");
	buf_fini(&out);
}

static void test_cycle(void)
{
	enum { N = 1000 };
	static uint32_t next[N];
	uint32_t at = 0, n = 0;

	probe_random_cycle(next, N, 4);
	do {
		at = next[at];
		n++;
	} while (at && n <= N);
	is_u64(n, N, "the permutation is one cycle of all");
	is_u64(at, 0, "that ends where it began");
	int near = 0;
	for (uint32_t i = 0; i < N; i++)
		near += next[i] == i + 1;
	ok(near < 10, "and not in order");
}

int main(void)
{
	test_judge();
	test_wrap();
	test_machines();
	test_noise();
	test_order();
	test_forms();
	test_cycle();
	return plan_done();
}
