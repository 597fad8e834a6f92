/*
 * probes/common/run.c - a run in the database, around a device.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cmd.h"
#include "kfd/kfd.h"
#include "probes/common/common.h"

enum res_origin probe_origin(const struct kfd_info *in)
{
	return !strcmp(in->origin, "hardware")	? RES_HARDWARE :
	       !strcmp(in->origin, "simulated") ? RES_SIMULATED :
						  RES_EMULATED;
}

void probe_device_row(const struct kfd_info *in, struct arena *mem,
		      struct res_device *d)
{
	*d = (struct res_device){
		.name = arena_strdup(mem, in->name),
		.gfx = arena_strdup(mem, in->gfx),
		.uid = arena_printf(mem, "%016llx",
				    (unsigned long long)in->node.unique_id),
		.pci = arena_strdup(mem, in->pci),
		.driver = arena_printf(mem, "%s %u.%u", in->driver,
				       in->kfd_major, in->kfd_minor),
		.firmware = arena_printf(mem, "mec=%u sdma=%u",
					 in->node.fw_version,
					 in->node.sdma_fw_version),
		.origin = probe_origin(in),
		.cu_count = in->node.cu_count,
		.vram_bytes = (int64_t)in->node.vram_bytes,
	};
}

bool probe_run_begin(struct probe_run *r, const struct probe_opts *o,
		     const char *tool, const struct kfd_info *device,
		     const char *inputs, struct err *e)
{
	struct res_start start = { .tool = tool,
				   .argc = o->argc,
				   .argv = o->argv,
				   .inputs = inputs,
				   .seed = o->seed,
				   .shard = &o->shard };
	struct res_device rd;

	r->origin = RES_EMULATED;
	if (!r->db)
		r->db = res_open(o->db, RES_WRITE, e);
	if (!r->db || !res_host_self(r->db, &start.host, e) ||
	    !res_build_self(r->db, &start.build, e))
		return false;
	if (device) {
		probe_device_row(device, &r->mem, &rd);
		r->origin = rd.origin;
		if (!res_device_id(r->db, &rd, &start.device, e))
			return false;
	}
	return res_run_begin(r->db, &start, &r->id, e);
}

bool probe_run_verdict(struct probe_run *r, const char *area, const char *name,
		       enum res_answer answer, const char *reason,
		       struct err *e)
{
	struct res_verdict v = { .run = r->id, .kind = RES_CORRECTNESS,
				 .answer = answer, .reason = reason };

	return res_case_id(r->db, area, name, NULL, &v.case_id, e) &&
	       res_verdict_add(r->db, &v, e);
}

struct probe_reading probe_reading(struct kfd_dev *dev)
{
	struct probe_reading r = { 0 };
	struct kfd_sensors s;

	r.good = dev && kfd_sensors_read(dev, &s);
	if (!r.good)
		return r;
	/* NAN stays NAN. */
	r.s = (struct res_sensors){
		.sclk_hz = s.sclk_mhz * 1e6,
		.mclk_hz = s.mclk_mhz * 1e6,
		.load = s.load_pct / 100,
		.power_w = s.power_w,
		.edge_c = s.edge_c,
		.junction_c = s.junction_c,
		.memory_c = s.memory_c,
	};
	r.counts_evicted = kfd_evicted(dev, &r.evicted_ms, NULL);
	return r;
}

bool probe_was_evicted(const struct probe_reading *before,
		       const struct probe_reading *after)
{
	if (!before->counts_evicted || !after->counts_evicted ||
	    after->evicted_ms == before->evicted_ms)
		return false;
	fold_printf(
		stderr, 2,
		"t0-probe: warning: the driver kept our queues off the "
		"card for %llu ms while this was measured (memory pressure or "
		"suspend); measure again\n",
		(unsigned long long)(after->evicted_ms - before->evicted_ms));
	return true;
}

static int compare_double(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double probe_quantile(const double *v, size_t n, double q)
{
	double *s = xmalloc(n * sizeof(*s));
	size_t i = (size_t)(q * (double)(n - 1) + 0.5);

	memcpy(s, v, n * sizeof(*s));
	qsort(s, n, sizeof(*s), compare_double);
	const double x = s[i];
	free(s);
	return x;
}

bool probe_run_samples(struct probe_run *r, const char *area, const char *name,
		       const char *params, const char *metric,
		       const char *unit, enum res_better better,
		       const double *v, size_t n, struct err *e)
{
	struct res_result row = { .run = r->id, .metric = metric,
				  .unit = unit,
				  .value = probe_quantile(v, n, 0.5),
				  .lo = NAN, .hi = NAN, .n = (int64_t)n,
				  .clock_hz = NAN, .better = better,
				  .origin = r->origin, .samples = v,
				  .n_samples = n,
				  .before = r->before.good ? &r->before.s :
							     NULL,
				  .after = r->after.good ? &r->after.s : NULL };

	return res_case_id(r->db, area, name, params, &row.case_id, e) &&
	       res_result_add(r->db, &row, NULL, e);
}

bool probe_stopped(const struct probe_opts *o)
{
	return o->stop && *o->stop;
}

bool probe_in_shard(const struct probe_opts *o, const char *area,
		    const char *name)
{
	char content[128];

	snprintf(content, sizeof(content), "%s/%s", area, name);
	return res_shard_has(&o->shard, content);
}

bool probe_run_end(struct probe_run *r, const struct probe_opts *o, bool good,
		   int code, struct err *e)
{
	const int signal = probe_stopped(o) ? *o->stop : 0;

	if (r->db && r->id)
		good = res_run_finish(r->db, r->id,
				      signal ? RES_INTERRUPTED :
				      good ? RES_COMPLETE : RES_FAILED,
				      signal ? cmd_stop_status(signal) : code,
				      good ? NULL : e->msg, good ? e : NULL) &&
		       good;
	res_close(r->db);
	arena_fini(&r->mem);
	*r = (struct probe_run){ 0 };
	return good;
}

static void on_wait(void *ctx, const char *holder)
{
	(void)ctx;
	fold_printf(stderr, 2,
		    "t0-probe: waiting for %s, which measures on this "
		    "GPU\n",
		    holder);
}

bool probe_lock(const struct kfd_info *info, struct kfd_lock *l, struct err *e)
{
	const struct kfd_lock_opts o = { .timeout_ns = 120000000000ull,
					 .waiting = on_wait };

	return kfd_lock_take(info, &o, l, e);
}
