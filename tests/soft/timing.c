/*
 * Timed mode of the soft device (kfd/soft/watch/watch.h): a client for which
 * every instruction costs seven cycles steps the waves, and the counters,
 * stamps and addresses are those that follow from it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "isa/tables/tables.h"
#include "kfd/kfd.h"
#include "kfd/soft/soft.h"
#include "kfd/soft/watch/watch.h"
#include "tests/code.h"
#include "tests/tap.h"

#define MS 1000000ull
#define COST 7u
#define FIRST 0xffff0u /* SHADER_CYCLES wraps two instructions later */
#define CLK_MHZ 7.0
#define WAVES_MAX 64
#define OUT_BYTES (1u << 16)

#define CLOCKS_INSTS 18
 struct record { /* of a store_b128 */
	uint32_t cycles, difference, realtime[2];
};

/* ------------------------------------------------------------- client ---- */

struct toy {
	uint64_t leave;	   /* workgroups that are not started */
	uint64_t quit;	   /* return after so many steps; 0: never */
	uint64_t out_at;   /* the buffer, as the client sees it */
	/* What it saw. */
	struct soft_timed_dispatch d;
	char kernel[64];
	uint64_t cycle, steps, barriers, stores, began;
	uint64_t early, bad_id, bad_look, bad_store, bad_start;
	uint32_t getreg[WAVES_MAX][2]; /* cycles of both, by wave of the grid */
	uint32_t id_at[32]; /* by dword of the code */
	_Atomic bool stopped; /* the host may be told of a fault before */
};

struct toy_group {
	struct soft_run *r; /* NULL: ended */
	int n_waves, n_arrived;
	uint32_t id[3];
	enum soft_timed_state state[8];
	unsigned n_getreg[8];
};

static void check_store(struct toy *t, const struct toy_group *g, int wave,
			const struct soft_timed_inst *in)
{
	const uint64_t mine = 16 * (64 * g->id[0] + 32 * (unsigned)wave);
	const uint64_t base =
		(t->stores ? t->out_at : in->access[0].at - mine) + mine;
	bool good = in->n_accesses == 32 && in->access_bytes == 16 &&
		    in->kind == (TRACE_MEMORY | TRACE_WRITE) &&
		    in->exec == UINT32_MAX && base % 16 == 0;

	for (uint32_t i = 0; good && i < 32; i++)
		good = in->access[i].lane == (int)i &&
		       in->access[i].at == base + 16 * i;
	t->out_at = base - mine;
	t->stores++;
	t->bad_store += !good;
}

static void look(struct toy *t, struct soft_timed *td, struct toy_group *g,
		 int wave)
{
	const unsigned number = g->id[0] * 2 + (unsigned)wave;
	struct soft_timed_inst in;
	uint64_t at;

	if (!soft_timed_look(td, g->r, wave, &in)) {
		t->bad_look++;
		return;
	}
	at = (in.pc - t->d.entry_va) / 4;
	if (at >= ARRAY_SIZE(t->id_at))
		return;
	t->bad_id += !in.id || (t->id_at[at] && t->id_at[at] != in.id);
	t->id_at[at] = in.id;
	if (in.in->op == ISA_s_getreg_b32 && number < WAVES_MAX) {
		t->early += g->n_getreg[wave] && g->n_arrived < g->n_waves;
		t->getreg[number][g->n_getreg[wave]++] = (uint32_t)t->cycle;
	}
	if (in.in->op == ISA_global_store_b128)
		check_store(t, g, wave, &in);
}

/* False: the client has to return. */
static bool step(struct toy *t, struct soft_timed *td, struct toy_group *g,
		 int wave)
{
	struct soft_timed_step s;

	if (g->state[wave] != SOFT_TIMED_READY)
		return true;
	look(t, td, g, wave);
	s = soft_timed_step(td, g->r, wave, t->cycle);
	t->cycle += COST;
	t->steps++;
	g->state[wave] = s.state;
	g->n_arrived += s.state == SOFT_TIMED_BARRIER || s.barrier_opened;
	if (s.barrier_opened) {
		t->barriers++;
		for (int w = 0; w < g->n_waves; w++)
			if (g->state[w] == SOFT_TIMED_BARRIER)
				g->state[w] = SOFT_TIMED_READY;
	}
	if (s.group_ended)
		g->r = NULL;
	t->stopped |= s.state == SOFT_TIMED_STOP;
	return !t->stopped && (!t->quit || t->steps < t->quit);
}

static void start(struct toy *t, struct soft_timed *td, struct toy_group *g,
		  uint64_t index)
{
	memset(g, 0, sizeof(*g));
	g->r = soft_timed_start(td, index);
	if (!g->r) {
		t->bad_start++;
		return;
	}
	t->bad_start += soft_timed_start(td, index) != NULL;
	g->n_waves = soft_timed_waves(g->r);
	soft_timed_group_id(g->r, g->id);
}

/* Two workgroups at a time, their waves in turn. */
static void toy_run(void *ctx, struct soft_timed *td,
		    const struct soft_timed_dispatch *d)
{
	struct toy *t = ctx;
	struct toy_group g[2] = { { 0 }, { 0 } };
	uint64_t next = 0;
	bool go = true;

	t->d = *d;
	snprintf(t->kernel, sizeof(t->kernel), "%s", d->kernel);
	t->cycle = FIRST;
	soft_timed_clock(td, FIRST, CLK_MHZ);
	__atomic_store_n(&t->began, 1, __ATOMIC_RELEASE);
	while (go) {
		for (int i = 0; i < 2; i++)
			if (!g[i].r && next + t->leave < d->total)
				start(t, td, &g[i], next++);
		if (!g[0].r && !g[1].r)
			break;
		for (int i = 0; go && i < 2; i++)
			for (int w = 0; go && g[i].r && w < g[i].n_waves; w++)
				go = step(t, td, &g[i], w);
	}
	t->bad_start += next == d->total &&
			soft_timed_start(td, next) != NULL;
	if (go)
		soft_timed_end(td, t->cycle);
}

/* ---------------------------------------------------------------- rig ---- */

struct rig {
	struct toy toy;
	struct kfd_dev *dev;
	struct kfd_queue *q;
	struct kfd_mem *out;
	struct err e;
};

static struct rig *rig_open(const struct soft_options *o, bool check)
{
	const struct soft_watch_options w = { .check = check };
	struct rig *r = xcalloc(1, sizeof(*r));
	struct kfd_driver *d = kfd_soft_new(o, &r->e);
	const struct soft_timing client = { &r->toy, toy_run };

	if (!d || !soft_watch_attach(d, &w, &r->e) ||
	    !soft_set_timing(d, &client, &r->e) ||
	    !kfd_open_driver(&r->dev, d, -1, "test", &r->e) ||
	    !kfd_queue_new(r->dev, NULL, &r->q, &r->e) ||
	    !kfd_mem_alloc(r->dev, KFD_GTT, OUT_BYTES, "out", &r->out, &r->e)) {
		diag("%s", r->e.msg);
		exit(1);
	}
	memset(r->out->cpu, 0xee, OUT_BYTES);
	return r;
}

static void rig_close(struct rig *r)
{
	kfd_close(r->dev);
	free(r);
}

/* A kernel of timing.s. */
static const struct kfd_kernel *kernel(struct rig *r, const char *name)
{
	const struct code c = code_of("tests/soft/timing.s", name);
	const struct kfd_raw_desc d = { .name = name,
					.rsrc1 = 0x60af0000,
					.rsrc2 = 0x9e, /* s15: workgroup id */
					.properties = 0x408,
					.kernarg_bytes = 8 };
	const struct kfd_kernel *k = NULL;

	if (!kfd_code_raw(r->dev, c.dw, c.size_bytes, &d, &k, &r->e)) {
		diag("%s", r->e.msg);
		exit(1);
	}
	return k;
}

static bool run(struct rig *r, const struct kfd_kernel *k, uint32_t n,
		uint32_t wg, struct kfd_timing *t)
{
	const struct kfd_launch l = { .kernel = k,
				      .grid = { n },
				      .wg = { wg },
				      .args = &r->out->va,
				      .args_bytes = 8,
				      .deadline_ns =
					      time_mono_ns() + 60000 * MS };

	return kfd_run(r->q, &l, t, &r->e);
}

/* --------------------------------------------------------------- tests ---- */

/* One wave: every figure can be worked out by hand. */
static void test_one_wave(void)
{
	struct rig *r = rig_open(NULL, false);
	const struct record *o = r->out->cpu;
	struct kfd_timing t = { 0 };
	uint64_t real;

	ok(run(r, kernel(r, "clocks"), 32, 32, &t), "one wave runs (%s)",
	   r->e.msg);
	is_u64(r->toy.steps, CLOCKS_INSTS, "it was stepped");
	is_str(r->toy.kernel, "", "bare code has no name");
	is_u64(r->toy.d.total + r->toy.d.wave_size + r->toy.d.group_size[0] +
		       r->toy.d.waves_per_group,
	       1 + 32 + 32 + 1, "and its sizes");
	is_u64(o[0].cycles, FIRST + COST,
	       "SHADER_CYCLES is that of the step");
	is_i64((int32_t)o[0].difference, 5 * (int)COST - 0x100000,
	       "20 bits: the second reading has wrapped");
	is_u64(o[0].difference & 0xfffff, 5 * COST,
	       "modulo 2^20 five instructions lie between them");
	real = o[0].realtime[0] | (uint64_t)o[0].realtime[1] << 32;
	is_u64(real - t.start_ticks, 300,
	       "the real time is three instructions, 3 us at 7 MHz, on");
	is_u64(t.device_ns, 18000, "18 instructions took 18 us");
	is_u64(memcmp(&o[0], &o[31], sizeof(*o)), 0, "for all lanes");
	is_u64(r->toy.barriers, 0, "a single wave waits at no barrier");
	is_u64(r->toy.bad_look + r->toy.bad_id + r->toy.bad_store, 0,
	       "instructions were seen as they are");
	rig_close(r);
}

/* Counters of all waves are those of their steps. */
static uint64_t wrong_counters(const struct rig *r, unsigned n_waves)
{
	const struct record *o = r->out->cpu;
	uint64_t bad = 0;

	for (unsigned w = 0; w < n_waves; w++) {
		const uint32_t *g = r->toy.getreg[w];
		const uint32_t c0 = g[0] & 0xfffff, c1 = g[1] & 0xfffff;

		for (unsigned i = 0; i < 32; i++)
			bad += o[w * 32 + i].cycles != c0 ||
			       o[w * 32 + i].difference != c1 - c0 ||
			       ((c1 - c0) & 0xfffff) % COST;
	}
	return bad;
}

static void test_groups(void)
{
	struct rig *r = rig_open(NULL, true);
	struct kfd_timing t = { 0 };

	ok(run(r, kernel(r, "clocks"), 16 * 64, 64, &t),
	   "16 workgroups of two waves run, two at a time, checked (%s)",
	   r->e.msg);
	is_u64(r->toy.steps, 32 * CLOCKS_INSTS, "every instruction was a step");
	is_u64(r->toy.early, 0, "no wave passed a barrier before the others");
	is_u64(r->toy.barriers, 16, "16 barriers opened");
	is_u64(wrong_counters(r, 32), 0, "each wave has its own cycles");
	is_u64(r->toy.stores, 32, "the client saw 32 stores");
	is_u64(r->toy.bad_store, 0, "with the addresses of their lanes");
	is_u64(r->toy.bad_start, 0, "a workgroup can be started only once");
	is_u64(t.device_ns, 32 * 18000, "stamps follow the cycles");
	rig_close(r);
}

/* Where the client sees the buffer, and where the host has put it. */
static uint64_t seen_at(uint64_t *host)
{
	struct rig *r = rig_open(NULL, false);
	uint64_t at;

	ok(run(r, kernel(r, "clocks"), 64, 64, NULL), "a dispatch runs (%s)",
	   r->e.msg);
	*host = r->out->va;
	at = r->toy.out_at;
	rig_close(r);
	return at;
}

/* The room where the first device was is taken when the second one comes. */
static void test_addresses(void)
{
	uint64_t host[2], at[2];
	void *room;

	at[0] = seen_at(&host[0]);
	room = mmap((void *)(uintptr_t)host[0], OUT_BYTES, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	at[1] = seen_at(&host[1]);
	munmap(room, OUT_BYTES);
	ok(host[0] != host[1], "two devices' buffers lie apart on the host");
	is_u64(at[1], at[0], "but not for the client");
	is_u64(at[0] >> 40, 1, "who sees them behind 2^40");
	is_u64(at[0] % 4096, 0, "in whole pages");
}

/* What the client leaves is executed all the same. */
static void test_leaves(uint64_t leave, uint64_t quit, const char *name)
{
	struct rig *r = rig_open(NULL, false);
	const struct record *o = r->out->cpu;
	unsigned missing = 0;

	r->toy.leave = leave;
	r->toy.quit = quit;
	ok(run(r, kernel(r, "clocks"), 16 * 64, 64, NULL), "%s (%s)", name,
	   r->e.msg);
	for (int i = 0; i < 16 * 64; i++)
		missing += o[i].cycles == 0xeeeeeeee;
	is_u64(missing, 0, "every workgroup is there");
	rig_close(r);
}

static void test_fault(void)
{
	struct rig *r = rig_open(NULL, false);

	ok(!run(r, kernel(r, "illegal"), 64, 64, NULL), "an illegal one fails");
	has_str(r->e.msg, "illegal instruction", "as it does untimed");
	for (int i = 0; i < 1000 && !r->toy.stopped; i++)
		usleep(1000);
	ok(r->toy.stopped, "the client was told to stop");
	is_u64(r->toy.bad_look, 1, "there was nothing to see");
	rig_close(r);
}

/* Of a code object the client gets the kernel's name; null args fault. */
static void test_name(void)
{
	struct rig *r = rig_open(NULL, false);
	const struct kfd_kernel *k;
	struct kfd_code *code;
	struct buf co = { 0 };
	uint8_t none[64] = { 0 };
	struct kfd_launch l = { .wg = { 32 }, .grid = { 32 }, .args = none };

	if (!file_read("tests/data/kernels/divide.co", 0, &co, &r->e) ||
	    !kfd_code_load(r->dev, co.data, co.len, &code, &r->e)) {
		diag("%s", r->e.msg);
		exit(1);
	}
	k = kfd_code_at(code, 0);
	l.kernel = k;
	l.args_bytes = k->explicit_bytes;
	ok(!kfd_run(r->q, &l, NULL, &r->e),
	   "a kernel without arguments faults");
	is_str(r->toy.kernel, k->name, "the client knows its name");
	buf_fini(&co);
	rig_close(r);
}

static void test_stop(void)
{
	struct rig *r = rig_open(NULL, false);
	const struct kfd_launch l = { .kernel = kernel(r, "endless"),
				      .args = &r->out->va,
				      .args_bytes = 8 };
	uint64_t ticket;

	ok(kfd_submit(r->q, &l, &ticket, &r->e), "an endless kernel starts");
	while (!__atomic_load_n(&r->toy.began, __ATOMIC_ACQUIRE))
		;
	ok(kfd_queue_free(r->q, &r->e), "its queue can be freed (%s)",
	   r->e.msg);
	ok(r->toy.stopped, "which stops the client");
	rig_close(r);
}

static void test_refused(void)
{
	struct rig *r = rig_open(NULL, false);
	const struct soft_timing client = { &r->toy, toy_run };
	struct kfd_driver *d = kfd_linux_new(), *s;
	struct err e = { 0 };

	ok(!soft_set_timing(d, &client, &e), "a real card takes no client");
	has_str(e.msg, "\"kfd\"", "it says which driver");
	d->free(d);
	rig_close(r);
	s = kfd_soft_new(NULL, &e);
	d = s;
	if (!s)
		return;
	int fd = s->open(s, "/dev/kfd", 0);
	e = (struct err){ 0 };
	ok(!soft_set_timing(d, &client, &e), "nor does an open device");
	has_str(e.msg, "before", "it says why");
	s->close(s, fd);
	s->free(s);
}

int main(void)
{
	test_one_wave();
	test_groups();
	test_addresses();
	test_leaves(16, 0, "a client that starts nothing");
	test_leaves(9, 0, "a client that starts 7 of 16 workgroups");
	test_leaves(0, 100, "a client that gives up after 100 steps");
	test_fault();
	test_name();
	test_stop();
	test_refused();
	return plan_done();
}
