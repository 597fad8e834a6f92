/*
 * engine/cpu - the backend that computes on this processor: the manual.
 *
 * cpu_decode.c does passes of few tokens, bound by reading the weights;
 * cpu_prefill.c those of many, bound by multiply-adds; cpu_forward.c shares out
 * the work to the threads.  roofline.c measures what both are a share of.
 */
#ifndef T0_ENGINE_CPU_H
#define T0_ENGINE_CPU_H

#include "base/threads.h"
#include "engine/state/state.h"

/* ----------------------------------------------------- cpu_forward.c ---- */

extern const struct qwen_backend qwen_cpu;

/*
 * What activations are rounded to before products with weights of a type, of
 * passes of many tokens (`wide`) or of few.  AUTO: with integers int8, wide
 * where there is a unit for it; with bf16 bf16, where AVX-512 has it, of few
 * where the kernels are those of AVX-512, too; else not at all.  What was asked
 * for is taken, but for int8 with other weights than integers: those stay as
 * they are.
 */
enum qwen_activations cpu_activations(const struct qwen_model *m,
				      enum qwen_weights w, bool wide);

/* -------------------------------------------------------- roofline.c ---- */

/*
 * What the engine's speed is a share of: how fast this machine's threads read
 * memory, and how many multiply-adds they do.
 *
 * Both are measured as the engine runs, with the same pool of threads and the
 * same level of kernels, and by the caller in turn with what is compared with
 * them: on a shared machine only a ratio within one run means anything.
 *
 * The buffer is as large as the weights of a token and in large pages where
 * there are some.  The way of reading it (streams side by side, distance of
 * the prefetch) is the best of all tried, so that the limit is an honest one.
 */
struct qwen_roofline;

struct qwen_roofline *qwen_roofline_new(struct threads *t,
					const struct qwen_kernels *k,
					uint64_t size_bytes, struct err *e);
void qwen_roofline_free(struct qwen_roofline *p);

/*
 * B/s of one pass of all threads over the buffer, from its begin until the last
 * of them has ended.  Blocks are dealt out as rows of weights are, so that a
 * thread whose memory is slower reads less of them: the limit is what all
 * threads reach together, not twice what the slower one does.
 */
double qwen_roofline_read(struct qwen_roofline *p);
/*
 * FLOP/s of all threads, over some 20 ms, by the best unit that this processor
 * has for products with weights of a type, whatever activations are rounded to:
 * AMX (by its bf16), AVX-512 BF16, VNNI, or else f32 multiply-adds; and its name.
 */
double qwen_roofline_product(struct qwen_roofline *p, enum qwen_weights w);
const char *qwen_roofline_unit(enum qwen_weights w);
/* The same for f32: what training is a share of. */
double qwen_roofline_fma(struct qwen_roofline *p);
/* "2 streams, 768 and 3072 bytes ahead": of the two caches */
const char *qwen_roofline_pattern(const struct qwen_roofline *p);

#endif
