/*
 * compiler/sim/timeline.c - what every wave did when, for trace viewers.
 */
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "compiler/sim/sim.h"

void sim_timeline_issue(void *ctx, const struct sim_event *ev)
{
	struct sim_timeline *t = ctx;

	if (t->n == SIM_TIMELINE_MAX) {
		t->full = true;
		return;
	}
	vec_push(t, (struct sim_timeline_event){
		.cycle = ev->cycle, .ready = ev->ready, .busy = ev->busy,
		.op = ev->in->op, .wave = (int16_t)ev->wave,
		.simd = (uint8_t)ev->simd, .stall = (uint8_t)ev->stall,
		.pipe = (uint8_t)ev->pipe, .pc = ev->pc,
	});
}

void sim_timeline_fini(struct sim_timeline *t)
{
	free(t->v);
	memset(t, 0, sizeof(*t));
}

/* Names have no characters that JSON would mind. */
static void put_event(struct buf *b, const char *name, const char *kind,
		      uint64_t ts, uint64_t dur,
		      const struct sim_timeline_event *ev)
{
	buf_printf(b, "{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\","
		   "\"ts\":%llu,\"dur\":%llu,\"pid\":%d,\"tid\":%d,"
		   "\"args\":{\"pc\":\"0x%llx\",\"pipe_cycles\":%u}},\n", name,
		   kind, (unsigned long long)ts, (unsigned long long)dur,
		   ev->simd, ev->wave, (unsigned long long)ev->pc, ev->busy);
}

static void put_names(struct buf *b, const struct sim_result *r)
{
	for (int i = 0; i < SIM_SIMDS; i++)
		buf_printf(b, "{\"name\":\"process_name\",\"ph\":\"M\","
			   "\"pid\":%d,\"args\":{\"name\":\"CU %d SIMD %d\"}},"
			   "\n", i, i / 2, i);
	for (int i = 0; i < r->n_waves; i++)
		buf_printf(b, "{\"name\":\"thread_name\",\"ph\":\"M\","
			   "\"pid\":%d,\"tid\":%d,\"args\":{\"name\":"
			   "\"wave %d\"}},\n", r->wave[i].simd, i, i);
	for (int i = 0; i < r->n_occupancy; i++)
		buf_printf(b, "{\"name\":\"resident waves\",\"ph\":\"C\","
			   "\"pid\":0,\"ts\":%llu,\"args\":{\"waves\":%d}},\n",
			   (unsigned long long)r->occupancy[i].cycle,
			   r->occupancy[i].waves);
}

bool sim_timeline_write(const struct sim_timeline *t,
			const struct sim_result *r, const char *path,
			struct err *e)
{
	struct buf b = { 0 };

	buf_adds(&b, "{\"traceEvents\":[\n");
	put_names(&b, r);
	for (size_t i = 0; i < t->n; i++) {
		const struct sim_timeline_event *ev = &t->v[i];

		if (ev->cycle > ev->ready)
			put_event(&b, sim_stall_name(ev->stall), "stall",
				  ev->ready, ev->cycle - ev->ready, ev);
		put_event(&b, isa_op_info(ev->op)->name,
			  sim_pipe_name(ev->pipe), ev->cycle, 1, ev);
	}
	buf_printf(&b, "{\"name\":\"end\",\"ph\":\"i\",\"s\":\"g\",\"pid\":0,"
		   "\"tid\":0,\"ts\":%llu}],\n\"displayTimeUnit\":\"ns\","
		   "\"otherData\":{\"unit\":\"1 us is 1 cycle\","
		   "\"clock_mhz\":%.6g,\"origin\":\"simulated\","
		   "\"complete\":%s}}\n",
		   (unsigned long long)r->cycles, r->clock_mhz,
		   t->full ? "false" : "true");
	bool ok = file_write_atomic(path, b.data, b.len, e);
	buf_fini(&b);
	return ok;
}
