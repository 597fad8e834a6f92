/* cmd_train - what the files of t0-qwen3 train share. */
#ifndef T0_ENGINE_CMD_TRAIN_CMD_TRAIN_H
#define T0_ENGINE_CMD_TRAIN_CMD_TRAIN_H

#include "base/vec.h"
#include "engine/cmd/cmd.h"
#include "engine/corpus/corpus.h"
#include "engine/cpu/cpu.h"
#include "engine/train/gpu/gpu.h"
#include "engine/train/train.h"

/* A line of log.csv, and a row of the database. */
struct qwen_lesson {
	uint64_t step, tokens; /* that were done */
	double loss;	       /* mean since the line before, in nats */
	double rate, norm;     /* of the last step */
	double valid;	       /* loss of what is held out; NAN: none */
	double bits_per_byte;  /* of its text; NAN: no text */
};

struct qwen_school {
	struct qwen_cmd *c;
	const char *into;
	struct threads *threads;
	struct train_gpu *gpu; /* NULL: the processor learns */
	struct train_backend backend;
	struct qwen_tokenizer *tok;
	struct qwen_config config;
	struct corpus data, valid;
	struct corpus_rows rows, held; /* held.c is NULL: nothing is held out */
	struct train_how how;
	struct train_rule rule;
	struct train_graph g;
	struct train *x;
	struct train_place place;
	struct buf about; /* what the run is, for its checkpoints */
	VEC(struct qwen_lesson) log;
	/* of speed */
	struct qwen_roofline *peak; /* NULL on a device */
	double fma;		    /* FLOP/s, the best seen; 0: not known */
	uint64_t begin_ns, begin_step, begin_tokens;
	/* of the batches of a step: [accumulate][rows * length] */
	uint32_t *ids, *positions, *targets;
	double norm;	 /* of the last step's gradients */
	unsigned broken; /* steps in a row whose gradients were no numbers */
	struct panel *panel; /* NULL: none was asked for */
};

/* --------------------------------------------------------- cmd_train.c --- */

/* Learns as the options say into a folder, then prints, unless NULL. */
bool qwen_school_teach(struct qwen_cmd *c, const char *into,
		       bool (*print)(const struct qwen_school *s,
				     struct err *e),
		       struct err *e);

/*
 * Makes the folder that is written: what cannot be is found before it learns.
 * The model's own is refused, which would be written over.
 */
bool qwen_school_folder(const struct qwen_school *s, struct err *e);
/*
 * What of it the options say: how it learns; the model's sizes and the corpus's
 * end, with a tokenizer that is there; the rows of text, which need both.
 */
bool qwen_school_how(struct qwen_school *s, struct err *e);
bool qwen_school_config(struct qwen_school *s, struct err *e);
bool qwen_school_corpus(struct qwen_school *s, struct err *e);
void qwen_school_close(struct qwen_school *s);

/* --------------------------------------------------- cmd_train_heads.c --- */

/* --medusa N, --eagle N: heads of --model learn, into a folder of their own. */
bool qwen_heads_teach(struct qwen_cmd *c, const char *into, struct err *e);

/* --------------------------------------------------------- cmd_sweep.c --- */

/*
 * --sweep: a run for each combination of the file's values, each in a folder of
 * its own in `into`; those of other shards are theirs.  When all are there,
 * `into`/best is a link to the one that the rule in cmd_sweep.c chooses.
 */
bool qwen_sweep_run(struct qwen_cmd *c, const char *into, struct err *e);

/* ----------------------------------------------------- cmd_train_run.c --- */

/*
 * All steps.  ERR_STOPPED: ended early, as it was asked to; what was learnt
 * since the last checkpoint is lost.
 */
bool qwen_school_run(struct qwen_school *s, struct err *e);

/* --------------------------------------------------- cmd_train_show.c --- */

/* Of a step: its loss, the tokens of a second, the seconds that are left. */
void qwen_school_show(const struct qwen_school *s, double loss, double speed);
/* What is held out was looked at. */
void qwen_school_show_held(const struct qwen_school *s, const struct qwen_lesson *l);

/* ----------------------------------------------------- cmd_train_log.c --- */

/* INTO/NAME; the caller frees it. */
char *qwen_school_path(const struct qwen_school *s, const char *name);
/* Adds a line and writes the file, whole. */
bool qwen_log_add(struct qwen_school *s, const struct qwen_lesson *l,
		  struct err *e);
/* The lines of a run that goes on, up to its step. */
bool qwen_log_read(struct qwen_school *s, struct err *e);
/*
 * Of a folder: has its run ended, and the least loss of what is held out; NAN
 * where there is none yet.
 */
bool qwen_log_best(struct qwen_cmd *c, const char *into, bool *done,
		   double *loss, struct err *e);
/* The log as rows, where --db names a database; a sweep's runs once. */
bool qwen_log_store(const struct qwen_school *s, struct err *e);
/* What INTO's model makes of --prompt, on stderr. */
bool qwen_school_sample(const struct qwen_school *s, struct err *e);

#endif
