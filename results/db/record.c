/*
 * results/db/record.c - what a tool worked out, as a run of exact values.
 */
#include <math.h>

#include "results/db/res.h"

bool res_record_begin(struct res_record *r, const char *path,
		      const struct res_start *what, struct err *e)
{
	struct res_start start = *what;

	*r = (struct res_record){ .db = res_open(path, RES_WRITE, e),
				  .origin = RES_SIMULATED };
	if (!r->db)
		return false;
	if (res_host_self(r->db, &start.host, e) &&
	    res_build_self(r->db, &start.build, e) &&
	    res_run_begin(r->db, &start, &r->run, e)) {
		res_batch_begin(r->db);
		return true;
	}
	res_close(r->db);
	r->db = NULL;
	return false;
}

bool res_record_case(struct res_record *r, const char *area, const char *name,
		     const char *params, struct err *e)
{
	return res_case_id(r->db, area, name, params, &r->case_id, e);
}

bool res_record_exact(struct res_record *r, const char *metric,
		      const char *unit, double value, enum res_better better,
		      struct err *e)
{
	struct res_result x = {
		.run = r->run, .case_id = r->case_id, .metric = metric,
		.unit = unit, .value = value, .lo = value, .hi = value, .n = 1,
		.clock_hz = NAN, .better = better, .origin = r->origin,
	};

	return res_result_add(r->db, &x, NULL, e);
}

bool res_record_verdict(struct res_record *r, enum res_answer answer,
			const char *reason, const char *detail, struct err *e)
{
	struct res_verdict v = { .run = r->run, .case_id = r->case_id,
				 .kind = RES_CORRECTNESS, .answer = answer,
				 .reason = reason, .detail = detail };

	return res_verdict_add(r->db, &v, e);
}

bool res_record_end(struct res_record *r, bool ok, struct err *e)
{
	if (!r->db)
		return ok;
	ok = ok && res_batch_end(r->db, e);
	if (r->run)
		ok = res_run_finish(r->db, r->run, ok ? RES_COMPLETE :
				    RES_FAILED, ok ? 0 : err_exit_code(e),
				    ok ? NULL : e->msg, ok ? e : NULL) && ok;
	res_close(r->db);
	*r = (struct res_record){ 0 };
	return ok;
}
