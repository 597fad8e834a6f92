/*
 * autotune/tuner/store.c - a run of the tuner in the database, and its keys.
 */
#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "autotune/tuner/tune.h"
#include "compiler/sim/sim.h"

static void finish_digest(XXH3_state_t *x, char out[20])
{
	snprintf(out, 20, "%016llx",
		 (unsigned long long)XXH3_64bits_digest(x));
}

static XXH3_state_t *new_digest(void)
{
	XXH3_state_t *x = XXH3_createState();

	if (!x)
		mem_ran_out(576, MEM_HERE); /* xxhash.h: its size */
	return x;
}

void tune_object_digest(const struct gemm_code *code, char out[20])
{
	XXH3_state_t *x = new_digest();

	XXH3_64bits_reset(x);
	for (int i = 0; i < code->n; i++)
		XXH3_64bits_update(x, code->object[i].bytes.data,
				   code->object[i].bytes.len);
	finish_digest(x, out);
	XXH3_freeState(x);
}

/* This program: compiler, simulator and search are all in it. */
static bool code_digest(struct tune_store *s, int64_t build, struct err *e)
{
	struct table t;
	bool ok;

	table_init(&t, "binary");
	ok = res_query(s->db, &t, 0, e, "SELECT binary FROM builds WHERE "
		       "id = ?", "i", build);
	if (ok && t.n_rows)
		snprintf(s->code, sizeof(s->code), "%s", t.row[0][0]);
	table_fini(&t);
	return ok;
}

/*
 * Simulated times of gfx1100 are on no device; others' name their chip, so that
 * none is compared with those of another.
 */
static bool name_device(const struct tune_store *s, int64_t *device,
			struct err *e)
{
	char name[48];
	const struct res_device row = { .name = name, .gfx = s->chip,
					.driver = "sim",
					.origin = RES_SIMULATED };

	snprintf(name, sizeof(name), "%s, pipeline simulator", s->chip);
	return !strcmp(s->chip, TUNE_CHIP) ||
	       res_device_id(s->db, &row, device, e);
}

bool tune_store_open(struct tune_store *s, const struct tune_opts *o,
		     struct err *e)
{
	struct res_start start = { .tool = "t0-tune", .argc = o->argc,
				   .argv = o->argv, .seed = o->seed,
				   .shard = o->shard, .work = o->work };

	*s = (struct tune_store){ 0 };
	snprintf(s->chip, sizeof(s->chip), "%s", o->costs->chip);
	cost_digest(o->costs, s->costs);
	s->db = res_open(o->db, RES_WRITE, e);
	return s->db && res_host_self(s->db, &start.host, e) &&
	       res_build_self(s->db, &start.build, e) &&
	       code_digest(s, start.build, e) &&
	       name_device(s, &start.device, e) &&
	       res_run_begin(s->db, &start, &s->run, e);
}

bool tune_store_close(struct tune_store *s, bool good, bool interrupted,
		      struct err *e)
{
	enum res_state state = !good ? RES_FAILED
		: interrupted ? RES_INTERRUPTED : RES_COMPLETE;

	if (s->db && s->run) {
		/* An error that ended the run must not be hidden by another. */
		bool ended = res_run_finish(s->db, s->run, state,
					    good ? 0 : err_exit_code(e),
					    good ? NULL : e->msg,
					    good ? e : NULL);
		good = good && ended;
	}
	res_close(s->db);
	*s = (struct tune_store){ 0 };
	return good;
}

struct res_tune_key tune_store_key(const struct tune_store *s,
				   const struct tune_problem *p,
				   enum res_origin origin,
				   const char *operands, char op[TUNE_TEXT])
{
	gemm_op_name(&p->op, op, TUNE_TEXT);
	return (struct res_tune_key){
		.target = s->chip, .op = op, .m = p->m, .n = p->n,
		.k = p->k, .batch = p->batch, 
		.caches = tune_caches_name(p->caches), .origin = origin,
		.operands = operands, .costs = s->costs, .code = s->code,
	};
}

/* ---- results ---- */

static bool case_of(struct tune_store *s, const struct tune_speed *x,
		    int64_t *id, struct err *e)
{
	const struct tune_problem *p = x->problem;
	char op[TUNE_TEXT], config[TUNE_TEXT];
	char params[512];
	const bool ours = x->winner;

	gemm_op_name(&p->op, op, sizeof(op));
	gemm_config_name(x->config, config, sizeof(config));
	res_params(params, sizeof(params),
		   "m:u n:u k:u type:s ?batch:u ?caches:s ?tile_m:u ?tile_n:u "
		   "?config:s",
		   p->m, p->n, p->k, op, p->batch > 1 ? p->batch : 0,
		   p->caches != TUNE_WARM ? tune_caches_name(p->caches) : NULL,
		   ours ? 0 : x->config->m, ours ? 0 : x->config->n,
		   ours ? NULL : config);
	return res_case_id(s->db, ours ? "gemm" : "tune",
			   ours ? "t0" : "t0-tune", params, id, e);
}

/* Of a roofline: every element of A, B and C crosses memory once. */
static bool put_intensity(struct tune_store *s, const struct tune_speed *x,
			  int64_t case_id, struct err *e)
{
	double each = tune_flop(x->problem) / tune_bytes(x->problem);
	struct res_result r = {
		.run = s->run, .case_id = case_id, .metric = "intensity",
		.unit = "FLOP/B", .value = each, .lo = each, .hi = each, .n = 1,
		.clock_hz = NAN, .better = RES_NEITHER,
		.origin = RES_SIMULATED,
	};

	return res_result_add(s->db, &r, NULL, e);
}

/* What is simulated may be off so far, as measurements say. */
static void set_range(struct res_result *r, const char *chip)
{
	const struct sim_range *off = sim_range(SIM_RANGE_TIMES, chip);

	if (!off)
		return;
	r->lo = r->value / off->most;
	r->hi = r->value / off->least;
}

bool tune_store_speed(struct tune_store *s, const struct tune_speed *x,
		      struct err *e)
{
	double flop = tune_flop(x->problem);
	struct res_result r = {
		.run = s->run, .metric = "flops", .unit = "FLOP/s",
		.value = flop / x->time_s, .lo = flop / x->hi_s,
		.hi = flop / x->lo_s, .n = x->n, .clock_hz = x->clock_hz,
		.better = RES_HIGHER, .origin = x->origin,
	};
	struct res_verdict v = { .run = s->run, .kind = RES_CORRECTNESS,
				 .answer = RES_PASS };

	if (x->origin == RES_SIMULATED && isnan(r.lo))
		set_range(&r, s->chip);
	if (!case_of(s, x, &r.case_id, e) ||
	    !res_result_add(s->db, &r, &v.result, e))
		return false;
	v.case_id = r.case_id;
	return !x->winner || (res_verdict_add(s->db, &v, e) &&
			      put_intensity(s, x, r.case_id, e));
}
