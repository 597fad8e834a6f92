/*
 * The method of the probes against what others published for this processor:
 * how many latencies and intervals agree within 5 % or 0.1 cycle, and how many
 * of a second run lie within the intervals of the first.
 *
 *	tests/bench/host [INST]
 *
 * Only the instructions that begin so.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "probes/host/host.h"
#include "tests/bench/rows.h"

enum { LATENCY, INTERVAL };

static const char *const what_name[] = { [LATENCY] = "latencies",
					 [INTERVAL] = "intervals" };

static unsigned count_of(const char *text, const char *word)
{
	unsigned n = 0;

	for (; (text = strstr(text, word)); text++)
		n++;
	return n;
}

/* Of the table of one run, which has "yes" or "no" where one is published. */
static bool report_published(struct bench_rows *r, const char *csv,
			     struct err *e)
{
	struct buf text = { 0 };

	if (!file_read(csv, 0, &text, e))
		return false;
	const unsigned yes = count_of(text.data, ",yes,");
	const unsigned all = yes + count_of(text.data, ",no,");

	if (all)
		printf("%-9s %5.1f %% of %u published figures agree\n",
		       r->name + strlen("host/"),
		       100 * bench_ratio_one(r, "published figures", RES_HIGHER,
					     (double)yes / all), all);
	else
		printf("%-9s SKIPPED: no figures of this processor are "
		       "published\n", r->name + strlen("host/"));
	buf_fini(&text);
	return true;
}

/* Of the two runs that `db` has last. */
static bool report_again(struct bench_rows *r, const char *path, struct err *e)
{
	static const char sql[] =
		"SELECT count(*) FROM v_results n JOIN v_results p ON p.run = "
		"n.run - 1 AND p.case_id = n.case_id AND p.metric = n.metric "
		"WHERE n.run = (SELECT max(run) FROM v_results) "
		"AND n.lo IS NOT NULL AND p.lo IS NOT NULL";
	char agree[512];
	int64_t all = 0, same = 0;
	struct res_db *db = res_open(path, RES_READ, e);

	snprintf(agree, sizeof(agree), "%s AND n.lo <= p.hi AND p.lo <= n.hi",
		 sql);
	bool good = db && res_query_int(db, &all, e, sql, "") &&
		    res_query_int(db, &same, e, agree, "");
	res_close(db);
	if (good && all)
		printf("%-9s %5.1f %% of %lld results of a second run agree\n",
		       r->name + strlen("host/"),
		       100 * bench_ratio_one(r, "a second run", RES_HIGHER,
					     (double)same / (double)all),
		       (long long)all);
	return good;
}

static bool bench(struct bench_rows *r, const struct probe_opts *o, int what,
		  struct err *e)
{
	int code = 0;

	for (int i = 0; i < 2 && !code; i++)
		code = what == LATENCY ? host_latency(o, e) :
					 host_throughput(o, e);
	bench_case(r, what_name[what], NULL);
	return (!code ||
		(e->code ? false :
		 err_set(e, ERR_INPUT, "%s: wrong results", what_name[what]))) &&
	       report_published(r, o->format_out, e) &&
	       report_again(r, o->db, e);
}

int main(int argc, char **args)
{
	static const _Atomic int stop = 0;
	char name[] = "bench-host", *argv[] = { name, NULL };
	char dir[] = "/tmp/t0-bench-host-XXXXXX", db[64], csv[64], remove[64];
	const struct probe_opts o = { .device = "host", .db = db, .seed = 1,
				      .argc = 1, .argv = argv, .stop = &stop,
				      .samples = bench_rounds(100) < 100 ? 6 :
									   0,
				      .inst = argc > 1 ? args[1] : NULL,
				      .format = TABLE_CSV, .format_out = csv };
	struct bench_rows r;
	struct err e = { 0 };

	if (!mkdtemp(dir))
		return EXIT_TROUBLE;
	snprintf(db, sizeof(db), "%s/t0.db", dir);
	snprintf(csv, sizeof(csv), "%s/table.csv", dir);
	snprintf(remove, sizeof(remove), "rm -r '%s'", dir);
	bench_open(&r, "host", argc, args);
	bool good = bench(&r, &o, LATENCY, &e) && bench(&r, &o, INTERVAL, &e);
	if (system(remove) && good)
		good = err_set(&e, ERR_IO, "%s is left", dir);
	return bench_close(&r, good, &e);
}
