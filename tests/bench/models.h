/*
 * Benchmarks of a model of the 0.6B shape: every type of weights, on one thread
 * and on two.
 *
 *	tests/bench/NAME [MODEL [WEIGHTS [THREADS [PHASE]]]]
 *
 * Without MODEL one is made, 1.2 GB in TMPDIR or /tmp, and removed afterwards.
 */
#ifndef T0_TESTS_BENCH_MODELS_H
#define T0_TESTS_BENCH_MODELS_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/model/model.h"
#include "tests/bench/rows.h"

struct bench_models {
	struct bench_rows rows;
	const char *weights, *phase; /* NULL: every phase */
	unsigned threads, rounds;
};

static inline bool bench_make_model(const char *dir, struct err *e)
{
	struct qwen_synthetic how = { .weights = QWEN_W_BF16, .seed = 1 };

	return qwen_shape_find("0.6b", &how.config, e) &&
	       qwen_synthetic_write(dir, &how, e);
}

/* main() of such a benchmark: run() measures b->weights on b->threads. */
static inline int bench_each(struct bench_models *b, const char *name, int argc,
			     char **argv,
			     void (*run)(struct bench_models *, const char *dir))
{
	static const char *const types[] = { "bf16", "int8", "int4" };
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct buf made = { 0 }, command = { 0 };
	struct err e = { 0 };
	bool good = argc > 1 || (scratch_folder(&made, NULL, name, &e) &&
				 bench_make_model(made.data, &e));

	bench_open(&b->rows, name, argc, argv);
	b->phase = argc > 4 ? argv[4] : NULL;
	for (size_t w = 0; good && w < ARRAY_SIZE(types); w++) {
		if (argc > 2 && strcmp(argv[2], types[w]) != 0)
			continue;
		b->weights = types[w];
		for (b->threads = 1; b->threads <= 2 && b->threads <= cpus;
		     b->threads++)
			if (argc < 4 || b->threads == (unsigned)atoi(argv[3]))
				run(b, argc > 1 ? argv[1] : made.data);
	}
	if (made.len) {
		buf_printf(&command, "rm -r '%s'", made.data);
		if (system(command.data) != 0 && good)
			good = err_set(&e, ERR_IO, "%s is left", made.data);
	}
	buf_fini(&made);
	buf_fini(&command);
	return bench_close(&b->rows, good, &e);
}

#endif
