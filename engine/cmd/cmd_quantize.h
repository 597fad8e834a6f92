/* cmd_quantize - what the files of t0-qwen3 quantize share. */
#ifndef T0_ENGINE_CMD_QUANTIZE_H
#define T0_ENGINE_CMD_QUANTIZE_H

#include "engine/cmd/cmd.h"
#include "results/db/results.h"

/* ---- cmd_quantize.c ---- */

/* The text of the command line, or as many ids from the seed: 2 at least. */
bool qwen_quality_text(const struct qwen_cmd *c, const struct qwen_session *s,
		       struct qwen_ids *ids, struct err *e);
/* How far b is from a over it, in windows of --context. */
bool qwen_quality_of(const struct qwen_cmd *c, const struct qwen_model *a,
		     const struct qwen_model *b, const struct qwen_ids *ids,
		     struct qwen_quality *q, struct err *e);
/* Rows of a model `name` whose weights are of a format, `q` against its own. */
bool qwen_quality_store(struct res_record *r, const char *name,
			const char *format, uint64_t token_bytes,
			const struct qwen_quality *q, struct err *e);

/* ---- cmd_calibrate.c ---- */

/*
 * The session's model becomes integers that fit the text of --calibrate: of one
 * type, or of several with so many bits for a weight at most, if any.
 */
bool qwen_calibrate_session(const struct qwen_cmd *c, struct qwen_session *s,
			    enum qwen_weights to, double bits, bool own,
			    struct err *e);
/* The command's model so, as a GGUF file. */
bool qwen_fitted_write(const struct qwen_cmd *c, enum qwen_weights to,
		       double bits, const char *path, struct err *e);

/* ---- cmd_frontier.c ---- */

bool qwen_frontier(struct qwen_cmd *c, struct err *e);

#endif
