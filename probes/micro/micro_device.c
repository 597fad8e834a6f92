/*
 * probes/micro/micro_device.c - a gfx11 device with a clock, and probes that
 * run on it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probes/micro/micro.h"

#define SAMPLES	      11
/*
 * The simulator repeats itself, so there a sample is one pair, and one
 * dispatch gives as many as an interval takes.
 */
#define SAMPLES_SIM   6
#define PAIRS	      5
#define PILOT	      4 /* iterations */
#define LOOP_CYCLES   40000.0 /* of the shorter loop on a card */
#define LOOP_SIM      4000.0  /* ticks of 10 ns must resolve 0.5 % */
#define ITERATIONS_MIN 8 /* the first and last are not like the others */
#define ITERATIONS_MAX 20000
#define DATA_BYTES    (64u << 20)
#define COUNTER_BITS  20
#define REALTIME_HZ   1e8
#define DEADLINE_NS   120000000000ull

/* --------------------------------------------------------------- device -- */

static bool is_sim(const char *spec)
{
	return spec && !strncmp(spec, "sim", 3) &&
	       (!spec[3] || spec[3] == ':');
}

/* Of the simulator, "sim" or "sim:gfx1201", or of the device. */
static bool find_chip(const char *spec, char chip[16], struct err *e)
{
	snprintf(chip, 16, "%s", COST_CHIP);
	if (!is_sim(spec) || !spec[3])
		return true;
	const struct isa_chip *c = isa_chip_find(spec + 4);

	if (!c || !c->device_id)
		return err_set(e, ERR_USAGE, "--device %s: there is no such "
			       "chip in software; t0-device list shows all",
			       spec);
	snprintf(chip, 16, "%s", c->name);
	return true;
}

static bool open_device(struct micro_device *d, struct err *e)
{
	if (is_sim(d->o->device)) {
		d->brief = true;
		d->timed = probe_timed_new(&d->costs);
		return probe_timed_open(d->timed, &d->dev, e);
	}
	if (d->o->set.n)
		return err_set(e, ERR_USAGE, "--set changes the simulator's "
			       "costs: it wants --device sim");
	if (!kfd_open(&d->dev, d->o->device, e))
		return false;
	if (probe_origin(kfd_info(d->dev)) == RES_EMULATED)
		return err_set(e, ERR_UNSUPPORTED, "%s: the soft device alone "
			       "has no time, only a count of instructions; "
			       "--device sim lets the pipeline simulator be "
			       "its clock", kfd_info(d->dev)->why);
	d->brief = probe_origin(kfd_info(d->dev)) == RES_SIMULATED;
	return probe_lock(kfd_info(d->dev), &d->lock, e);
}

static bool open_memory(struct micro_device *d, struct err *e)
{
	const size_t out = MICRO_WAVE_BYTES * MICRO_WAVES_MAX;
	const struct kfd_queue_opts o = { .stop = d->o->stop };

	return kfd_queue_new(d->dev, &o, &d->q, e) &&
	       kfd_mem_alloc(d->dev, KFD_GTT, out, "results", &d->out, e) &&
	       kfd_mem_alloc(d->dev, KFD_VRAM, DATA_BYTES, "data", &d->data, e);
}

static bool begin_run(struct micro_device *d, const char *verb, struct err *e)
{
	struct probe_run *r = &d->run;
	struct buf inputs = { 0 };
	struct res_device row;
	struct res_start s = { .argc = d->o->argc, .argv = d->o->argv,
			       .seed = d->o->seed, .shard = &d->o->shard };

	probe_device_row(kfd_info(d->dev), &r->mem, &row);
	if (d->timed) {
		row.name = arena_printf(&r->mem, "%s, pipeline simulator",
					row.gfx);
		row.driver = "sim";
		row.origin = RES_SIMULATED;
	}
	r->origin = row.origin;
	buf_printf(&inputs, "{\"inst\":\"%s\",\"set\":\"",
		   d->o->inst ? d->o->inst : "all");
	for (int i = 0; i < d->o->set.n; i++)
		buf_printf(&inputs, "%s%s", i ? " " : "", d->o->set.v[i]);
	buf_adds(&inputs, "\"}");
	s.tool = arena_printf(&r->mem, "t0-probe %s", verb);
	s.inputs = arena_strdup(&r->mem, inputs.data);
	buf_fini(&inputs);
	r->db = res_open(d->o->db, RES_WRITE, e);
	if (!r->db || !res_host_self(r->db, &s.host, e) ||
	    !res_build_self(r->db, &s.build, e) ||
	    !res_device_id(r->db, &row, &s.device, e) ||
	    !res_run_begin(r->db, &s, &r->id, e))
		return false;
	res_batch_begin(r->db);
	return true;
}

bool micro_device_open(struct micro_device *d, const struct probe_opts *o,
		       const char *verb, const char *columns, struct err *e)
{
	*d = (struct micro_device){ .o = o, .lock = { .fd = -1 } };
	table_init(&d->table, columns);
	char chip[16];

	const bool known = find_chip(o->device, chip, e);
	cost_init(&d->costs, chip);
	if (!known)
		return false;
	if (o->costs)
		memcpy(d->costs.row, o->costs->row, sizeof(d->costs.row));
	if (!cost_set_list(&d->costs, &o->set, e) || !open_device(d, e))
		return false;
	if (!o->quiet)
		fold_printf(stderr, 2, "t0-probe: device: %s%s\n",
			    kfd_info(d->dev)->why,
			    d->timed ? "; results are simulated" : "");
	return open_memory(d, e) && begin_run(d, verb, e);
}

int micro_device_close(struct micro_device *d, bool good, struct err *e)
{
	const struct probe_opts *o = d->o;
	int code = d->wrong ? EXIT_NO : EXIT_YES;

	if (good)
		good = res_batch_end(d->run.db, e);
	kfd_lock_drop(&d->lock);
	kfd_close(d->dev);
	probe_timed_free(d->timed);
	cost_fini(&d->costs);
	good = probe_run_end(&d->run, o, good, code, e) &&
	       probe_print_table(o, &d->table, &d->rejects, e);
	if (good && code)
		err_set(e, ERR_DEVICE, "%u probes computed something else than "
			"C", d->wrong);
	table_fini(&d->table);
	return good ? code : err_exit_code(e);
}

/* -------------------------------------------------------------- a probe -- */

static uint32_t sim_samples(const struct probe_opts *o)
{
	return o->samples && o->samples < SAMPLES_SIM ? (uint32_t)o->samples :
							SAMPLES_SIM;
}

bool micro_probe_init(struct micro_probe *p, struct micro_device *d,
		      const struct micro_text *t, const char *name,
		      double copies, uint32_t iterations, struct err *e)
{
	const uint32_t vgprs = t->vgprs ? t->vgprs : 128;
	const struct kfd_raw_desc desc = {
		.name = name,
		.rsrc1 = probe_rsrc1(probe_gen(d->dev), vgprs),
		.rsrc2 = 15u << 1 | 1u << 7, /* 15 user registers, group id */
		.properties = 1u << 10 | 1u << 3,
		.kernarg_bytes = 32,
		.lds_bytes = t->lds_bytes,
	};

	*p = (struct micro_probe){ .d = d, .copies = copies,
				   .iterations = iterations,
				   .waves = t->waves ? t->waves : 1,
				   .groups = 1,
				   .reps = (d->brief ? sim_samples(d->o) :
						       PAIRS) + 1,
				   .right = true };
	p->series = (struct probe_series){ .name = name, .ctx = p };
	return micro_kernel_assemble(kfd_info(d->dev)->gfx, t, &p->code, e) &&
	       kfd_code_raw(d->dev, p->code.data, p->code.len, &desc,
			    &p->kernel, e);
}

void micro_probe_fini(struct micro_probe *p)
{
	buf_fini(&p->code);
	if (p->kernel)
		kfd_code_unload(p->kernel->code);
	p->kernel = NULL;
}

struct record {
	uint32_t cycles[4];   /* around the shorter loop, and the longer */
	uint64_t realtime[2]; /* before and behind both */
	uint8_t unused[MICRO_REC_BYTES - 32];
};

static bool launch_probe(struct micro_probe *p, uint32_t iterations,
			 uint32_t reps, struct err *e)
{
	struct micro_device *d = p->d;
	const struct {
		uint64_t out, data;
		uint32_t iterations, reps, warm, unused;
	} args = { d->out->va, d->data->va, iterations, reps, p->warm, 0 };
	const struct kfd_launch l = { .kernel = p->kernel,
				      .grid = { 32 * p->waves * p->groups },
				      .wg = { 32 * p->waves },
				      .args = &args,
				      .args_bytes = sizeof(args),
				      .deadline_ns = time_mono_ns() +
						     DEADLINE_NS };

	if (d->timed) {
		probe_timed_code(d->timed, p->code.data, p->code.len,
				 p->kernel->entry_va);
		/* So that SHADER_CYCLES wraps in some of the runs. */
		probe_timed_first(d->timed, d->first += 777777);
	}
	memset(d->out->cpu, 0, d->out->size_bytes);
	return kfd_run(d->q, &l, NULL, e) &&
	       (!d->timed || probe_timed_check(d->timed, e));
}

static const struct record *record_of(const struct micro_probe *p,
				      uint32_t wave, uint32_t rep)
{
	return (const struct record *)((const uint8_t *)p->d->out->cpu +
				       wave * MICRO_WAVE_BYTES) + rep;
}

/* Mean over the waves of the time that a loop took. */
static double loop_cycles(const struct micro_probe *p, uint32_t rep, int loop)
{
	double sum = 0;

	for (uint32_t w = 0; w < p->waves; w++) {
		const struct record *r = record_of(p, w, rep);

		sum += probe_ticks_between(r->cycles[2 * loop],
					   r->cycles[2 * loop + 1],
					   COUNTER_BITS);
	}
	return sum / p->waves;
}

/* Shader clock over repetitions [from, to) of wave 0. */
static double clock_of(const struct micro_probe *p, uint32_t from, uint32_t to)
{
	double cycles = 0, ticks = 0;

	for (uint32_t i = from; i < to; i++) {
		const struct record *r = record_of(p, 0, i);

		cycles += probe_ticks_between(r->cycles[0], r->cycles[3],
					      COUNTER_BITS);
		ticks += (double)(r->realtime[1] - r->realtime[0]);
	}
	return ticks > 0 ? cycles / ticks * REALTIME_HZ : 0;
}

static bool values_right(const struct micro_probe *p)
{
	const uint8_t *at = (const uint8_t *)p->d->out->cpu + MICRO_VALUES_AT;

	return !p->has_values || !memcmp(at, p->want, sizeof(p->want));
}

/* All repetitions but the first become pairs. */
static bool dispatch_pairs(struct micro_probe *p, struct err *e)
{
	if (!launch_probe(p, p->iterations, p->reps, e))
		return false;
	p->right &= values_right(p);
	const double mean = clock_of(p, 1, p->reps);
	p->clock_hz = mean;
	p->next = 0;
	p->n_pairs = p->reps - 1;
	for (uint32_t i = 0; i < p->n_pairs; i++) {
		struct probe_pair *v = &p->pair[i];

		*v = (struct probe_pair){
			.before = clock_of(p, i + 1, i + 2),
			.after = mean,
			.copies = p->copies * p->iterations,
			.wrong = !p->right,
		};
		const double clock = (v->before + v->after) / 2;
		if (clock > 0) {
			v->shorter = loop_cycles(p, i + 1, 0) / clock;
			v->longer = loop_cycles(p, i + 1, 1) / clock;
		}
	}
	return true;
}

static bool read_pair(void *ctx, struct probe_pair *out, struct err *e)
{
	struct micro_probe *p = ctx;

	if (p->next == p->n_pairs && !dispatch_pairs(p, e))
		return false;
	*out = p->pair[p->next++];
	return true;
}

/* As many iterations as make the shorter loop long enough. */
static bool choose_iterations(struct micro_probe *p, struct err *e)
{
	const double want = p->d->brief ? LOOP_SIM : LOOP_CYCLES;

	if (!launch_probe(p, PILOT, 2, e))
		return false;
	const double n = PILOT * want / (loop_cycles(p, 1, 0) + 1);
	p->iterations = n < ITERATIONS_MIN ? ITERATIONS_MIN :
			n > ITERATIONS_MAX ? ITERATIONS_MAX :
					     (uint32_t)n;
	return true;
}

/* From what a copy of a chain takes to the latency of one instruction. */
static void one_latency(struct micro_probe *p)
{
	const struct micro_inst *i = p->stream ? NULL : p->inst;

	for (size_t k = 0; i && i->per && k < p->series.n; k++)
		p->series.v[k] = (p->series.v[k] - i->extra) / i->per;
}

bool micro_probe_run(struct micro_probe *p, size_t n, struct err *e)
{
	const struct probe_opts *o = p->d->o;
	const size_t samples = o->samples	? o->samples :
			       p->d->brief	? SAMPLES_SIM :
						  SAMPLES;
	struct probe_series **s = xmalloc((n + 1) * sizeof(*s));
	struct progress bar;
	const struct probe_plan plan = { .samples = samples,
					 .pairs = p->d->brief ? 1 : PAIRS,
					 .seed = o->seed, .stop = o->stop,
					 .progress = &bar };
	bool good = true;

	progress_init(&bar, "probing", n * samples, o->quiet);
	for (size_t i = 0; i < n && good; i++) {
		p[i].series.read = read_pair;
		s[i] = &p[i].series;
		good = p[i].iterations || choose_iterations(&p[i], e);
		if (good && p[i].inst)
			micro_inst_want(&p[i]);
	}
	good = good && probe_measure(&plan, s, n, e);
	for (size_t i = 0; i < n && good; i++)
		one_latency(&p[i]);
	progress_fini(&bar);
	free(s);
	return good;
}

static bool store_verdict(struct micro_probe *p, int64_t case_id,
			  struct err *e)
{
	const struct res_verdict v = {
		.run = p->d->run.id, .case_id = case_id,
		.kind = RES_CORRECTNESS,
		.answer = !p->has_values ? RES_NODATA :
			  p->right	 ? RES_PASS :
					   RES_FAIL,
		.reason = !p->has_values ? "no values to compare with" :
			  p->right	 ? "final values are what C computes" :
					   "final values differ from C's",
	};

	return res_verdict_add(p->d->run.db, &v, e);
}

bool micro_probe_store(struct micro_probe *p, const char *area,
		       const char *name, const char *params,
		       const char *metric, const char *unit, double scale,
		       struct err *e)
{
	struct probe_series s = p->series;
	struct res_interval r = probe_series_median(&s);
	struct res_result row = { .run = p->d->run.id, .metric = metric,
				  .unit = unit, .value = r.value * scale,
				  .lo = r.lo * scale, .hi = r.hi * scale,
				  .n = (int64_t)s.n, .clock_hz = p->clock_hz,
				  .better = RES_LOWER,
				  .origin = p->d->run.origin, .samples = s.v,
				  .n_samples = s.n };

	for (size_t i = 0; i < s.n; i++)
		s.v[i] *= scale;
	if (!res_case_id(p->d->run.db, area, name, params, &row.case_id, e))
		return false;
	return store_verdict(p, row.case_id, e) &&
	       (!s.n || res_result_add(p->d->run.db, &row, NULL, e));
}
