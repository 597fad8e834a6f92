/*
 * Mixtures of experts on the gfx1100 backend, on the device in software in
 * checked mode, against tests/ref/qwen.h and the CPU backend.
 */
#include <unistd.h>

#include "engine/gpu/gpu.h"
#include "kfd/kfd.h"
#include "kfd/soft/soft.h"
#include "kfd/soft/watch/watch.h"
#include "tests/engine/mixture.h"

#define N 40
static uint32_t ids[N];
static struct threads *threads;
static char root[] = "/tmp/t0-mixture-gpu-XXXXXX";

/* A model on a device of its own, watched or not. */
struct on {
	struct qwen_model m;
	struct kfd_driver *driver;
	bool watched;
};

static bool on_open(struct on *o, const char *dir, const struct qwen_load *load,
		    bool watched)
{
	const struct soft_watch_options check = { .check = true };
	struct qwen_load how = *load;
	struct err e = { 0 };

	*o = (struct on){ .driver = kfd_soft_new(NULL, &e),
			  .watched = watched };
	how.backend = &qwen_gpu;
	how.driver = o->driver;
	bool good = (!watched || soft_watch_attach(o->driver, &check, &e)) &&
		    qwen_model_load(&o->m, dir, &how, threads, &e);
	if (!ok(good, "a mixture is on the device"))
		diag("%s", e.msg);
	return good;
}

static void on_close(struct on *o)
{
	struct buf found = { 0 };

	if (o->watched)
		is_u64(soft_watch_findings(o->driver, &found), 0,
		       "checked mode finds nothing");
	if (found.len)
		diag("%.2000s", found.data);
	buf_fini(&found);
	qwen_model_close(&o->m);
}

/* Feeds the first n ids in pieces; the worst error over all of them. */
static double error_of(const struct qwen_model *m, uint32_t n, uint32_t chunk,
		       const double *want)
{
	const struct qwen_shape shape = { .sequences = 2, .positions = N + 8,
					  .max_tokens = N };
	const uint32_t vocab = m->config.vocab;
	struct qwen_token t[N];
	struct err e = { 0 };
	double most = 0;
	struct qwen_state *s = qwen_state_new(m, &shape, &e);

	for (uint32_t i = 0; i < n; i++)
		t[i] = (struct qwen_token){ ids[i], 1, true, false, false };
	for (uint32_t at = 0; s && at < n; at += chunk) {
		uint32_t some = at + chunk < n ? chunk : n - at;
		if (!qwen_forward(s, t + at, some, &e))
			most = INFINITY;
		for (uint32_t i = 0; i < some && most < INFINITY; i++)
			most = fmax(most, worst(qwen_logits(s, i),
						want + (size_t)(at + i) * vocab,
						(int)vocab));
	}
	if (e.code)
		diag("%s", e.msg);
	qwen_state_free(s);
	return e.code ? INFINITY : most;
}

static void test_close(const struct qwen_model *m, const double *want,
		       uint32_t n, uint32_t chunk, double bound,
		       const char *what)
{
	char text[128];

	snprintf(text, sizeof(text), "%s, %u at once", what, chunk);
	close_to(error_of(m, n, chunk, want), bound, text);
}

static void test_against_reference(void)
{
	static const struct {
		const char *name;
		uint32_t n, used;
		bool normed, watched;
	} test[] = {
		{ "twelve, three of them", 12, 3, true, true },
		{ "shares that are not normed", 12, 3, false, false },
		{ "all of them", 5, 5, true, false },
		{ "one of many", 67, 1, true, false },
		{ "more than a group has waves", 20, 17, true, false },
		{ "an expert alone", 1, 1, true, false },
	};
	static const uint32_t chunk[] = { 1, 7, N };
	const struct qwen_load plain = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(test); i++) {
		const uint32_t n = i ? N : 12;
		struct ref r = { 0 };
		struct on o;
		const char *dir = mixture_make(root, test[i].name,
					       QWEN_W_F32, test[i].n,
				       test[i].used, test[i].normed);
		ref_open(&r, dir);
		double *want = ref_logits(&r, ids, N);
		if (on_open(&o, dir, &plain, test[i].watched)) {
			for (size_t k = 0; k < ARRAY_SIZE(chunk); k++)
				test_close(&o.m, want, n, chunk[k], 1e-4,
					   test[i].name);
			on_close(&o);
		}
		free(want);
		ref_close(&r);
	}
}

/* Of equal scores the first experts are taken. */
static void test_ties(void)
{
	const struct router_tie *tie = router_ties;
	const struct qwen_load plain = { 0 };
	struct on o;

	for (size_t i = 0; i < ARRAY_SIZE(router_ties); i++) {
		struct ref r = { 0 };
		const char *dir = mixture_make(root, tie[i].name,
					       QWEN_W_F32, 12, 3, true);
		mixture_change(dir, 0, tie[i].how);
		mixture_change(dir, 1, tie[i].how);
		ref_open(&r, dir);
		double *want = ref_logits(&r, ids, N);
		if (on_open(&o, dir, &plain, false)) {
			test_close(&o.m, want, N, 1, 1e-4, tie[i].name);
			test_close(&o.m, want, N, N, 1e-4, tie[i].name);
			on_close(&o);
		}
		free(want);
		ref_close(&r);
	}
	const char *dir = mixture_make(root, "no numbers", QWEN_W_F32, 12, 3, true);
	const struct qwen_shape shape = { 1, 8, 1, qwen_both(QWEN_W_F32), NULL, 0 };
	const struct qwen_token t = { .id = 3, .logits = true };
	struct err e = { 0 };
	mixture_change(dir, 1, router_broken);
	if (!on_open(&o, dir, &plain, true))
		return;
	struct qwen_state *s = qwen_state_new(&o.m, &shape, &e);
	ok(s && qwen_forward(s, &t, 1, &e) && isnan(qwen_logits(s, 0)[0]),
	   "scores that are no numbers give none");
	qwen_state_free(s);
	on_close(&o);
}

/*
 * What is rounded before a router may make it choose other experts where scores
 * nearly tie: where all are used it cannot.  Bounds are those of dense models.
 */
static void test_types(void)
{
	static const double bound[] = { 1e-4, 1e-2, 8e-2, .15, 1.5 };
	struct ref r = { 0 };
	const char *dir = mixture_make(root, "types", QWEN_W_F32, 5, 5, true);

	ref_open(&r, dir);
	double *want = ref_logits(&r, ids, N);
	for (int w = 0; w <= QWEN_W_INT4; w++) {
		const struct qwen_load how = {
			.convert = true, .weights = (enum qwen_weights)w
		};
		const char *name = qwen_weights_name(how.weights);
		const bool watched = w == QWEN_W_BF16 || w == QWEN_W_INT4;
		const uint32_t n = watched ? 33 : N;
		struct on o;
		if (!on_open(&o, dir, &how, watched))
			continue;
		ok(o.m.layer[0].router.type == QWEN_W_F32,
		   "%s: the router is f32", name);
		test_close(&o.m, want, n, 5, bound[w], name);
		test_close(&o.m, want, n, n, 1.5 * bound[w], name);
		on_close(&o);
	}
	free(want);
	ref_close(&r);
}

/* Its experts' columns are shared out among devices. */
static void test_team(void)
{
	const struct qwen_load how = { .backend = &qwen_gpu,
				       .device = "soft",
				       .devices = 2 };
	const char *dir = mixture_make(root, "team", QWEN_W_BF16, 12, 3, true);
	struct qwen_model m;
	struct err e = { 0 };
	struct ref r = { 0 };

	ref_open(&r, dir);
	double *want = ref_logits(&r, ids, 12);
	if (ok(qwen_model_load(&m, dir, &how, threads, &e),
	       "a mixture on two devices")) {
		test_close(&m, want, 12, 3, 1e-4, "two devices");
		qwen_model_close(&m);
	} else {
		diag("%s", e.msg);
	}
	free(want);
	ref_close(&r);
}

/* A hash of the 24 best tokens behind the first of ids. */
static uint64_t greedy(const struct qwen_model *m, uint32_t prompt)
{
	const struct qwen_shape shape = { 1, 64, N, qwen_both(QWEN_W_F32), NULL, 0 };
	struct qwen_token t[N];
	struct err e = { 0 };
	uint64_t hash = 0;
	struct qwen_state *s = qwen_state_new(m, &shape, &e);
	uint32_t n = prompt;

	for (uint32_t i = 0; i < n; i++)
		t[i] = (struct qwen_token){ .id = ids[i], .best = true };
	for (int i = 0; s && i < 24; i++) {
		if (!qwen_forward(s, t, n, &e)) {
			diag("%s", e.msg);
			break;
		}
		t[0] = (struct qwen_token){ .id = qwen_argmax(s, n - 1),
					    .best = true };
		hash = hash * 1000003 + t[0].id;
		n = 1;
	}
	qwen_state_free(s);
	return hash;
}

static void test_greedy(void)
{
	static const enum qwen_weights type[] = { QWEN_W_F32, QWEN_W_BF16 };

	for (size_t i = 0; i < ARRAY_SIZE(type); i++) {
		const struct qwen_load how = { .activations = QWEN_AS_F32 };
		const char *dir = mixture_make(root, "greedy", type[i], 12, 3, true);
		struct qwen_model cpu;
		struct err e = { 0 };
		struct on o;

		if (!ok(qwen_model_load(&cpu, dir, &how, threads, &e),
			"%s on the CPU", qwen_weights_name(type[i])) ||
		    !on_open(&o, dir, &how, false))
			continue;
		is_u64(greedy(&o.m, 3), greedy(&cpu, 3),
		       "greedy tokens are the same on both");
		on_close(&o);
		qwen_model_close(&cpu);
	}
}

int main(void)
{
	struct err e = { 0 };
	uint64_t seed = 11;
	char command[64];

	if (!mkdtemp(root))
		BUG("no temporary folder");
	for (int i = 0; i < N; i++)
		ids[i] = (uint32_t)(random_next(&seed) % 512);
	threads = threads_new(2, &e);
	test_against_reference();
	test_ties();
	test_types();
	test_team();
	test_greedy();
	threads_free(threads);
	snprintf(command, sizeof(command), "rm -rf %s", root);
	if (system(command))
		diag("%s is left", root);
	return plan_done();
}
