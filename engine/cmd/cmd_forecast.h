/* cmd_forecast - what the files of t0-qwen3 forecast share. */
#ifndef T0_ENGINE_CMD_FORECAST_H
#define T0_ENGINE_CMD_FORECAST_H

#include "engine/cmd/cmd.h"
#include "results/db/results.h"

/* A pass of one sequence, and its speed. */
struct qwen_published {
	bool decode; /* a token, else a prompt */
	const char *model;
	double parameters, weight_bytes;
	uint32_t tokens, behind; /* positions of the cache before them */
	double rate;		 /* tokens per second */
	const char *source;
};

/* ---------------------------------------------- cmd_forecast_near.c ---- */

/* What was published of the pass that is nearest; NULL: of none that is near. */
const struct qwen_published *qwen_published_near(const struct qwen_published *a);
/* A pass's speed with its range as a row; and beside `near`, unless NULL. */
bool qwen_forecast_store(struct res_record *r, const char *model,
			 const struct qwen_published *x,
			 const struct qwen_published *near, struct err *e);

#endif
