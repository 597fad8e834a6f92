/*
 * probes/host/host_run.c - a run of host probes: rows, table, comparison with
 * last time.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probes/host/host.h"

static void device_row(const struct host_cpu *c, struct arena *mem,
		       struct res_device *d)
{
	*d = (struct res_device){
		.name = c->name,
		.gfx = "x86-64",
		.driver = "host",
		.facts = arena_printf(mem, "{\"microarchitecture\":\"%s\","
					   "\"identified_by\":\"%s\"}",
				      host_arch_name(c->arch), c->why),
		.origin = RES_HARDWARE,
	};
}

static bool begin_run(struct host_session *h, const char *verb, struct err *e)
{
	char inputs[128];
	struct res_device d;
	struct res_start s = { .argc = h->o->argc, .argv = h->o->argv,
			       .inputs = inputs, .seed = h->o->seed,
			       .shard = &h->o->shard };

	s.tool = arena_printf(&h->run.mem, "t0-probe %s --device host", verb);
	res_params(inputs, sizeof(inputs), "inst:s",
		   h->o->inst ? h->o->inst : "all");
	device_row(&h->cpu, &h->run.mem, &d);
	h->run.origin = RES_HARDWARE;
	h->run.db = res_open(h->o->db, RES_WRITE, e);
	return h->run.db && res_host_self(h->run.db, &s.host, e) &&
	       res_build_self(h->run.db, &s.build, e) &&
	       res_device_id(h->run.db, &d, &s.device, e) &&
	       res_run_begin(h->run.db, &s, &h->run.id, e);
}

bool host_begin(struct host_session *h, const struct probe_opts *o,
		const char *verb, const char *columns, struct err *e)
{
	*h = (struct host_session){ .o = o };
	host_cpu_read(&h->cpu);
	probe_perf_open(&h->perf);
	table_init(&h->table, columns);
	if (!h->cpu.invariant)
		return err_set(e, ERR_UNSUPPORTED, "%s: the time-stamp counter "
			       "is not invariant (CPUID 0x80000007), so there "
			       "is no clock to measure with", h->cpu.name);
	if (!o->quiet)
		fold_printf(stderr, 2,
			    "t0-probe: device: %s, %s (%s), TSC %.3f GHz\n"
			    "t0-probe: %s\n",
			    h->cpu.name, host_arch_name(h->cpu.arch),
			    h->cpu.why, (double)h->cpu.tsc_hz * 1e-9,
			    h->perf.what);
	if (!begin_run(h, verb, e))
		return false;
	res_batch_begin(h->run.db);
	return true;
}

static bool store_verdict(struct host_session *h, int64_t case_id,
			  const struct probe_series *s, struct err *e)
{
	const bool wrong = s->rejected[PROBE_PAIR_VALUE];
	const struct res_verdict v = {
		.run = h->run.id, .case_id = case_id,
		.kind = RES_CORRECTNESS,
		.answer = wrong ? RES_FAIL : RES_PASS,
		.reason = wrong ? "the loop's final value differs from C's" :
				  "the loop's final value is what C computes",
	};

	return res_verdict_add(h->run.db, &v, e);
}

bool host_store(struct host_session *h, const char *area, const char *name,
		const char *params, const char *metric, const char *unit,
		const struct probe_series *s, double clock_hz, struct err *e)
{
	const struct res_interval r = probe_series_median(s);
	struct res_result row = { .run = h->run.id, .metric = metric,
				  .unit = unit, .value = r.value, .lo = r.lo,
				  .hi = r.hi, .n = (int64_t)s->n,
				  .clock_hz = clock_hz,
				  .better = strcmp(metric, "bandwidth") ?
						    RES_LOWER :
						    RES_HIGHER,
				  .origin = RES_HARDWARE, .samples = s->v,
				  .n_samples = s->n };

	if (!res_case_id(h->run.db, area, name, params, &row.case_id, e))
		return false;
	return store_verdict(h, row.case_id, s, e) &&
	       (!s->n || res_result_add(h->run.db, &row, NULL, e));
}

bool host_again(struct host_session *h, struct err *e)
{
	static const char sql[] =
		"SELECT count(*) FROM v_results n JOIN v_results p "
		"ON p.run = ? AND p.case_id = n.case_id "
		"AND p.metric = n.metric WHERE n.run = ? "
		"AND n.lo IS NOT NULL AND p.lo IS NOT NULL ";
	char agree[512];
	int64_t before, all, same;

	snprintf(agree, sizeof(agree), "%s AND n.lo <= p.hi AND p.lo <= n.hi",
		 sql);
	if (!res_batch_commit(h->run.db, e) ||
	    !res_run_previous(h->run.db, h->run.id, &before, e))
		return false;
	if (!before || h->o->quiet)
		return true;
	if (!res_query_int(h->run.db, &all, e, sql, "ii", before, h->run.id) ||
	    !res_query_int(h->run.db, &same, e, agree, "ii", before,
			   h->run.id))
		return false;
	fold_printf(stderr, 2,
		    "t0-probe: %lld of %lld results agree with run %lld "
		    "within the intervals of both\n",
		    (long long)same, (long long)all, (long long)before);
	return true;
}

int host_end(struct host_session *h, bool good, int code, struct err *e)
{
	const struct probe_opts *o = h->o;

	if (good)
		good = res_batch_end(h->run.db, e);
	probe_perf_close(&h->perf);
	good = probe_run_end(&h->run, o, good, code, e) &&
	       probe_print_table(o, &h->table, &h->rejects, e);
	table_fini(&h->table);
	return good ? code : err_exit_code(e);
}
