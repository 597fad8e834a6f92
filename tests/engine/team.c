/*
 * A model on several devices in software, against tests/ref/qwen.h, one device
 * and the CPU backend; and with a device that dies at any packet.
 */
#include <unistd.h>

#include "engine/gpu/gpu_int.h"
#include "engine/model/model.h"
#include "engine/state/state.h"
#include "kfd/kfd.h"
#include "kfd/soft/inject/inject.h"
#include "kfd/soft/soft.h"
#include "kfd/soft/watch/watch.h"
#include "tests/ref/qwen.h"

#define N     23
#define VOCAB 515 /* cut unevenly */
static uint32_t ids[N];
static struct threads *threads;
static char root[] = "/tmp/t0-team-XXXXXX";

/* A model on devices of its own. */
struct on {
	struct qwen_model m;
	struct kfd_driver *driver;
	bool open;
};

static bool no_links; /* of the machines that on_open() makes */

static bool on_open(struct on *o, const char *dir, enum qwen_weights w,
		    uint32_t devices, bool checked)
{
	const struct soft_options soft = { .cards = devices,
					   .small_bar = no_links,
					   .deadline_ns = 200000000 };
	const struct soft_watch_options watch = { .check = checked };
	struct qwen_load how = { .convert = true,
				 .weights = w,
				 .backend = &qwen_gpu,
				 .devices = devices };
	struct err e = { 0 };

	o->driver = how.driver = kfd_soft_new(&soft, &e);
	o->open = (!checked || soft_watch_attach(o->driver, &watch, &e)) &&
		  qwen_model_load(&o->m, dir, &how, threads, &e);
	if (!ok(o->open, "%u devices with weights of %s", devices,
		qwen_weights_name(w)))
		diag("%s", e.msg);
	return o->open;
}

static void on_close(struct on *o, bool checked)
{
	struct buf found = { 0 };

	if (!o->open)
		return;
	if (checked)
		is_u64(soft_watch_findings(o->driver, &found), 0,
		       "checked mode finds nothing");
	if (found.len)
		diag("%.2000s", found.data);
	buf_fini(&found);
	qwen_model_close(&o->m);
}

static void make_model(const char *dir, bool tied, uint32_t kv_heads)
{
	struct qwen_synthetic how = { .weights = QWEN_W_F32, .seed = 7 };
	struct err e = { 0 };

	qwen_shape_find("tiny", &how.config, &e);
	how.config.heads = 16;
	how.config.kv_heads = kv_heads;
	how.config.ffn = 9 * QWEN_GROUP;
	how.config.vocab = VOCAB;
	how.config.tied = tied;
	if (!ok(qwen_synthetic_write(dir, &how, &e), "a model is made"))
		diag("%s", e.msg);
}

/* All logits of ids[0..N), fed in pieces; and that the best is the largest. */
static bool feed(const struct qwen_model *m, uint32_t chunk, float *out)
{
	struct qwen_shape shape = { .sequences = 2, .positions = 64,
				    .max_tokens = N };
	struct err e = { 0 };
	struct qwen_state *s = qwen_state_new(m, &shape, &e);
	bool good = s;

	for (uint32_t at = 0, n; good && at < N; at += n) {
		struct qwen_token t[N];

		n = at + chunk < N ? chunk : N - at;
		for (uint32_t i = 0; i < n; i++)
			t[i] = (struct qwen_token){ ids[at + i], 1, true,
						    true, false };
		good = qwen_forward(s, t, n, &e);
		for (uint32_t i = 0; good && i < n; i++) {
			const float *v = qwen_logits(s, i);
			uint32_t best = 0;

			memcpy(out + (at + i) * VOCAB, v, VOCAB * sizeof(*v));
			for (uint32_t k = 1; k < VOCAB; k++)
				best = v[k] > v[best] ? k : best;
			good = qwen_argmax(s, i) == best;
		}
	}
	if (!good)
		diag("%s", e.msg);
	qwen_state_free(s);
	return good;
}

static double worst_of(const float *got, const double *want)
{
	double most = 0;

	for (uint32_t i = 0; i < N; i++)
		most = fmax(most,
			    worst(got + i * VOCAB, want + i * VOCAB, VOCAB));
	return most;
}

static double apart(const float *a, const float *b)
{
	double want[VOCAB], most = 0;

	for (uint32_t i = 0; i < N; i++) {
		for (uint32_t k = 0; k < VOCAB; k++)
			want[k] = b[i * VOCAB + k];
		most = fmax(most, worst(a + i * VOCAB, want, VOCAB));
	}
	return most;
}

static float *logits_new(void)
{
	return xcalloc((size_t)N * VOCAB, sizeof(float));
}

/* ---- logits ---- */

/* Sums in one shot and in two have the same bits. */
static void test_shots(struct on *o, uint32_t chunk, const float *one)
{
	struct gpu_team *team = o->m.device;
	float *two = logits_new();

	team->one_shot_bytes = 0;
	ok(feed(&o->m, chunk, two), "in two shots");
	ok(!memcmp(one, two, (size_t)N * VOCAB * sizeof(*one)),
	   "are the same bits");
	free(two);
}

static void test_exact(const char *dir, uint32_t least, uint32_t most)
{
	float *alone = logits_new(), *got = logits_new();
	struct ref r = { 0 };
	char what[64];
	struct on o;

	ref_open(&r, dir);
	double *want = ref_logits(&r, ids, N);
	if (on_open(&o, dir, QWEN_W_F32, 1, false))
		ok(feed(&o.m, 5, alone), "one device answers");
	on_close(&o, false);
	for (uint32_t n = least; n <= most; n *= 2) {
		const bool checked = n == least;

		snprintf(what, sizeof(what), "%u devices", n);
		if (!on_open(&o, dir, QWEN_W_F32, n, checked))
			continue;
		ok(feed(&o.m, 5, got), "they answer");
		close_to(worst_of(got, want), 1e-4, what);
		close_to(apart(got, alone), 1e-5, "as one device");
		if (n > 2)
			test_shots(&o, 5, got);
		on_close(&o, checked);
	}
	free(want);
	free(alone);
	free(got);
	ref_close(&r);
}

/* Without links parts lie in the host's memory, and have the same bits. */
static void test_no_links(const char *dir)
{
	float *linked = logits_new(), *got = logits_new();

	for (int i = 0; i < 2; i++) {
		struct on o;
		no_links = i;
		if (on_open(&o, dir, QWEN_W_F32, 4, false)) {
			const struct gpu_team *team = o.m.device;
			is_i64(team->shared,
			       i ? KFD_GTT : KFD_VRAM_PRIVATE,
			       "where they meet");
			ok(feed(&o.m, 5, i ? got : linked), "they answer");
			if (i)
				test_shots(&o, 5, got);
		}
		on_close(&o, false);
	}
	no_links = false;
	ok(!memcmp(linked, got, (size_t)N * VOCAB * sizeof(*got)),
	   "the same bits");
	free(linked);
	free(got);
}

/* Bounds as in gpu.c. */
static void test_weights(const char *dir)
{
	static const double bound[] = { 1e-4, 1e-2, 8e-2, .15, 1.5 };
	float *got = logits_new(), *one = logits_new();
	struct ref r = { 0 };
	char what[64];
	struct on o;

	ref_open(&r, dir);
	double *want = ref_logits(&r, ids, N);
	for (int w = QWEN_W_F16; w <= QWEN_W_INT4; w++) {
		if (on_open(&o, dir, (enum qwen_weights)w, 1, false))
			feed(&o.m, 3, one);
		on_close(&o, false);
		if (!on_open(&o, dir, (enum qwen_weights)w, 4, false))
			continue;
		snprintf(what, sizeof(what), "4 devices of %s",
			 qwen_weights_name((enum qwen_weights)w));
		ok(feed(&o.m, 3, got), "they answer");
		close_to(worst_of(got, want), bound[w], what);
		close_to(apart(got, one), 1e-5, "as one device");
		ok(feed(&o.m, N, got), "in products of tiles");
		close_to(worst_of(got, want), 1.5 * bound[w], what);
		test_shots(&o, N, got);
		on_close(&o, false);
	}
	free(want);
	free(got);
	free(one);
	ref_close(&r);
}

/* ---- tokens ---- */

static uint64_t decode_greedy(const struct qwen_model *m)
{
	struct qwen_shape shape = { .sequences = 1, .positions = 64,
				    .max_tokens = 4 };
	struct qwen_token t = { .id = 1, .best = true };
	struct err e = { 0 };
	struct qwen_state *s = qwen_state_new(m, &shape, &e);
	uint64_t hash = 0;

	for (int i = 0; i < 40 && qwen_forward(s, &t, 1, &e); i++) {
		t.id = qwen_argmax(s, 0);
		hash = hash * 1000003 + t.id;
	}
	if (e.code)
		diag("%s", e.msg);
	qwen_state_free(s);
	return hash;
}

static void test_greedy(const char *dir)
{
	struct qwen_load how = { 0 };
	struct qwen_model cpu;
	struct err e = { 0 };
	struct on o;

	ok(qwen_model_load(&cpu, dir, &how, threads, &e), "on the CPU");
	const uint64_t want = decode_greedy(&cpu);
	for (uint32_t n = 1; n <= 8; n *= 2)
		if (on_open(&o, dir, QWEN_W_F32, n, false)) {
			is_u64(decode_greedy(&o.m), want, "the same tokens");
			on_close(&o, false);
		}
	qwen_model_close(&cpu);
}

/* ---- what goes wrong ---- */

static void test_stop(const char *dir)
{
	static _Atomic int stop;
	struct qwen_shape shape = { .sequences = 1, .positions = 64,
				    .max_tokens = 4, .stop = &stop };
	struct qwen_token t = { .id = 5, .best = true, .logits = true };
	float want[VOCAB];
	struct err e = { 0 };
	struct on o;

	if (!on_open(&o, dir, QWEN_W_F32, 2, false))
		return;
	struct qwen_state *s = qwen_state_new(&o.m, &shape, &e);
	ok(qwen_forward(s, &t, 1, &e), "a token");
	memcpy(want, qwen_logits(s, 0), sizeof(want));
	qwen_state_truncate(s, 0, 0);
	stop = 1;
	ok(!qwen_forward(s, &t, 1, &e) && e.code == ERR_STOPPED,
	   "a signal ends a pass");
	stop = 0;
	ok(qwen_forward(s, &t, 1, &e) &&
		   !memcmp(want, qwen_logits(s, 0), sizeof(want)),
	   "the next one is as if there had been none");
	qwen_state_free(s);
	on_close(&o, false);
}

/* A pass whose packet number `at`, of whichever device, goes wrong. */
static bool dies_at(const char *dir, enum soft_inject_what what, uint64_t at,
		    bool *struck, struct err *e)
{
	const struct soft_options soft = { .cards = 2,
					   .deadline_ns = 200000000 };
	const struct soft_inject rule = {
		.what = what, .after = at, .va = 0x123456789000, .ns = 50000000
	}; /* of a hang */
	struct qwen_load how = { .backend = &qwen_gpu, .devices = 2 };
	struct qwen_shape shape = { .sequences = 1, .positions = 64,
				    .max_tokens = 4 };
	struct qwen_token t = { .id = 5, .best = true };
	struct soft_census before, c;
	struct qwen_model m;
	bool good;

	struct kfd_driver *d = how.driver = kfd_soft_new(&soft, e);
	if (!qwen_model_load(&m, dir, &how, threads, e))
		return false;
	soft_census(d, &before);
	struct qwen_state *s = qwen_state_new(&m, &shape, e);
	good = qwen_forward(s, &t, 1, e);
	soft_inject(d, &rule);
	good = good && qwen_forward(s, &t, 1, e);
	*struck = soft_injected(d, what);
	if (*struck && !good) {
		struct err again = { 0 };
		good = !qwen_forward(s, &t, 1, &again) &&
		       strstr(again.msg, "loaded again");
	}
	qwen_state_free(s);
	soft_census(d, &c);
	good = good && c.queues == before.queues;
	qwen_model_close(&m);
	return good;
}

static void test_deaths(const char *dir)
{
	static const struct {
		enum soft_inject_what what;
		const char *name;
		uint64_t step;
	} all[] = {
		{ SOFT_INJECT_ILLEGAL, "an illegal instruction", 3 },
		{ SOFT_INJECT_FAULT, "a page fault", 5 },
		{ SOFT_INJECT_REFUSE, "a refused packet", 5 },
		{ SOFT_INJECT_RESET, "a reset", 5 },
		{ SOFT_INJECT_HANG, "a hang", 7 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		uint64_t packets = 0, wrong = 0, unnamed = 0;
		bool struck = true;

		for (uint64_t at = 0; struck; at += all[i].step) {
			struct err e = { 0 };

			if (!dies_at(dir, all[i].what, at, &struck, &e) &&
			    !wrong++)
				diag("%s at %llu: %s", all[i].name,
				     (unsigned long long)at, e.msg);
			packets += struck;
			if (struck && !strstr(e.msg, "of 2") && !unnamed++)
				diag("%s", e.msg);
			if (at == all[i].step)
				diag("%s", e.msg);
		}
		ok(packets > 5, "%s at one of %llu packets", all[i].name,
		   (unsigned long long)packets);
		is_u64(wrong, 0, "is told, and leaves no queue");
		is_u64(unnamed, 0, "with the device that it was");
	}
	struct on o;
	if (on_open(&o, dir, QWEN_W_F32, 2, false))
		ok(decode_greedy(&o.m), "and the next run works");
	on_close(&o, false);
}

static void test_refuses(const char *dir)
{
	const struct {
		uint32_t devices;
		const char *says;
	} bad[] = { { 3, "the same number of each" }, { 9, "wanted 1 to 8" } };
	const char *device[] = { "soft*2", "soft" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct qwen_load how = { .backend = &qwen_gpu,
					 .device = "soft",
					 .devices = bad[i].devices };
		struct qwen_model m;
		struct err e = { 0 };

		ok(!qwen_model_load(&m, dir, &how, threads, &e),
		   "%u devices are refused", bad[i].devices);
		has_str(e.msg, bad[i].says, "and why");
	}
	for (size_t i = 0; i < ARRAY_SIZE(device); i++) {
		struct qwen_load how = { .backend = &qwen_gpu,
					 .device = device[i],
					 .devices = 4 };
		struct qwen_model m;
		struct err e = { 0 };
		const bool good = qwen_model_load(&m, dir, &how, threads, &e);

		is_i64(good, i, "four of %s", device[i]);
		if (good)
			qwen_model_close(&m);
		else
			has_str(e.msg, "4 devices are wanted", "says so");
	}
}

int main(void)
{
	char tied[64], untied[64], few[64], cmd[64];
	struct err e = { 0 };

	if (!mkdtemp(root))
		return 2;
	for (uint32_t i = 0; i < N; i++)
		ids[i] = (i * i * 37 + 11 * i + 3) % VOCAB;
	threads = threads_new(2, &e);
	snprintf(tied, sizeof(tied), "%s/tied", root);
	snprintf(untied, sizeof(untied), "%s/untied", root);
	snprintf(few, sizeof(few), "%s/few", root);
	make_model(tied, true, 8);
	make_model(untied, false, 8);
	make_model(few, true, 2);
	test_exact(tied, 2, 8);
	test_exact(untied, 2, 8);
	/* Of two heads of keys two devices each have the same. */
	test_exact(few, 4, 4);
	test_no_links(tied);
	test_weights(untied);
	test_greedy(tied);
	test_stop(tied);
	test_deaths(tied);
	test_refuses(tied);
	threads_free(threads);
	snprintf(cmd, sizeof(cmd), "rm -r '%s'", root);
	ok(system(cmd) == 0, "the folder goes");
	return plan_done();
}
