/*
 * results - every measurement of T0 in one sqlite file.
 *
 * A run is one invocation of a tool on one host, device and build.  It holds
 * results (a metric of a case, with its raw samples), verdicts (was it
 * correct?) and, for ISA discovery, one row per opcode slot.  Every row says
 * where its number came from: `hardware`, `emulated`, `simulated` or
 * `published`.  Units are SI (s, Hz, B, B/s, FLOP/s), never ms or GB, so that
 * two rows of one metric can be compared without reading a prefix.
 *
 * Promises:
 *  - What a call has committed survives kill -9 of the process, a full disk
 *    and a power cut.  A file is never half-written: it opens again as it is.
 *  - Several processes may write one file at a time; each waits for the others
 *    for up to 30 s.
 *  - A newer schema, another program's database, a damaged file and a file
 *    that cannot be written are refused with path and remedy, and left alone.
 *  - The views v_runs, v_results, v_sensors, v_verdicts, v_slots,
 *    v_latest_slots, v_slot_summary, v_baselines, v_notes, v_tunes,
 *    v_tune_checks, v_calibrations and v_experiments are the public interface
 *    for sqlite3 and scripts.  Tables may change with the schema version; the
 *    views keep their columns.
 *
 * A handle belongs to one thread at a time; a process may have several.  It
 * must not be used in a child after fork(), not even closed: the child opens
 * the file again.  And no code may open the file except through sqlite, for
 * closing it would drop this process's locks.  Functions that return bool
 * return false after filling *e.  Ids are positive; 0 means "none".  Text
 * arguments are UTF-8 and are copied; NULL text means "not known".
 *
 * A tool does, in this order (see the functions for what each line means):
 *
 *	db = res_open(opt_db, RES_WRITE, &e);
 *	res_host_self(db, &start.host, &e);
 *	res_build_self(db, &start.build, &e);
 *	res_device_id(db, &device, &start.device, &e);
 *	res_run_resume(db, &start, &run, &e);
 *	if (!run)
 *		res_run_begin(db, &start, &run, &e);
 *	res_batch_begin(db);
 *	... res_case_id, res_result_add, res_slot_put ...
 *	res_batch_commit(db, &e);
 *	res_run_finish(db, run, RES_COMPLETE, 0, NULL, &e);
 *	res_close(db);
 */
#ifndef T0_RESULTS_H
#define T0_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct res_db;

/* ------------------------------------------------------------- names.c -- */

/* Where a number came from.  Never mix two of them in one verdict. */
enum res_origin {
	RES_HARDWARE,  /* measured on a real GPU or CPU */
	RES_EMULATED,  /* run by the gfx1100 in software: exact, not timed */
	RES_SIMULATED, /* predicted by the pipeline simulator or cost model */
	RES_PUBLISHED, /* from a paper, manual or vendor; `source` names it */
};

/* How far a run came.  A killed run stays `running` with a dead owner. */
enum res_state {
	RES_RUNNING,
	RES_COMPLETE,
	RES_INTERRUPTED, /* stopped by the user; may be resumed */
	RES_FAILED,	 /* stopped by an error; may not be resumed */
};

/* Which direction of a metric is good; decides what a regression is. */
enum res_better { RES_LOWER, RES_HIGHER, RES_NEITHER };

/* What question a verdict answers. */
enum res_kind {
	RES_CORRECTNESS, /* the values are right */
	RES_COHERENCE,	 /* generated text makes sense */
	RES_GATE,	 /* against the accepted baseline */
	RES_DISCOVERY,	 /* what was found against what was expected */
};

/* Its answer.  A check that could not run is RES_NODATA, never RES_PASS. */
enum res_answer {
	RES_PASS,
	RES_FAIL,
	RES_REGRESS,
	RES_IMPROVE,
	RES_INCONCLUSIVE,
	RES_NODATA,
};

/* What an opcode slot did when it was run as a black box. */
enum res_slot_verdict {
	RES_SLOT_EXECUTES, /* ended, and the positive control held */
	RES_SLOT_ILLEGAL,  /* raised an illegal-instruction exception */
	RES_SLOT_FAULTS,   /* raised another fault; `reason` names it */
	RES_SLOT_HANGS,	   /* passed its deadline */
	RES_SLOT_UNPROVEN, /* could not be judged; `reason` says why */
};

/* The words stored in the database ("hardware", "no data", "executes"). */
const char *res_origin_name(enum res_origin o);
const char *res_state_name(enum res_state s);
const char *res_better_name(enum res_better b);
const char *res_kind_name(enum res_kind k);
const char *res_answer_name(enum res_answer a);
const char *res_slot_verdict_name(enum res_slot_verdict v);

/* ---------------------------------------------------------------- db.c -- */

enum res_mode {
	RES_READ,  /* the file must exist; works on a read-only medium */
	RES_WRITE, /* creates the file, brings an older schema forward */
};

/* The file a tool uses: `arg` (its --db), else $T0_DB, else "t0.db". */
const char *res_path(const char *arg);
/* What --db says of itself. */
#define RES_DB_HELP "the database (default: $T0_DB, else t0.db)"

/*
 * Open the database at res_path(path).  An older schema is brought forward in
 * one transaction: after a crash it is either old or new.  Returns NULL after
 * filling *e: ERR_INPUT for a file that is damaged, newer or not T0's, ERR_PERM
 * for one that may not be written, ERR_IO for the disk, ERR_BUSY after 30 s.
 */
struct res_db *res_open(const char *path, enum res_mode mode, struct err *e);
/*
 * To read, but one that nobody named (neither `path` nor $T0_DB) may be
 * missing: then true, and *out is NULL, which res_close() takes.
 */
bool res_open_if(const char *path, struct res_db **out, struct err *e);

/* Drops what an open batch has not committed.  NULL is allowed. */
void res_close(struct res_db *db);

/* The file of a database that nobody has open, and sqlite's files beside it. */
void res_remove(const char *path);

/* The path that was opened; lives as long as `db`. */
const char *res_db_path(const struct res_db *db);

/* --------------------------------------------------------------- sql.c -- */

/*
 * Outside a batch every call commits by itself and waits for the disk.  After
 * res_batch_begin() rows are committed together: after 256 rows, or with the
 * first row that comes a second or more after the batch's first.  A batch is
 * for speed only; a kill loses the rows since the last commit, nothing else.
 *
 * Other writers wait while a batch holds rows, so call res_batch_commit()
 * before anything slow (a launch that may hang).  It returns true only when
 * every row before it is on the disk; batching goes on with the next row.
 * After an error the rows since the last commit are gone.
 */
void res_batch_begin(struct res_db *db);
bool res_batch_commit(struct res_db *db, struct err *e);
/* Commits and goes back to a commit per call. */
bool res_batch_end(struct res_db *db, struct err *e);

/*
 * Run one SELECT and append its rows to `t`, whose columns the caller has set
 * with table_init(); column counts must agree.  SQL NULL becomes a NULL cell.
 * Reals are printed with `digits` significant digits, 0 = as many as it takes
 * to read the same number back.  `binds` has a letter per `?` of the SQL and
 * names the argument that follows: 't' const char * (NULL = SQL NULL),
 * 'i' int64_t, 'd' double (NaN = SQL NULL).
 */
bool res_query(struct res_db *db, struct table *t, int digits, struct err *e,
	       const char *sql, const char *binds, ...);
/* The single integer of a SELECT; *out is 0 when it has no row. */
bool res_query_int(struct res_db *db, int64_t *out, struct err *e,
		   const char *sql, const char *binds, ...);

/* -------------------------------------------------------- provenance.c -- */

/*
 * Hosts, devices and builds are rows of facts.  The same facts always give the
 * same id, in whichever process; any changed fact (a new kernel, a firmware
 * update) gives a new row, so an old run keeps saying what it ran on.
 */

struct res_device {
	const char *name;     /* "Radeon RX 7900 XTX" */
	const char *gfx;      /* "gfx1100" */
	const char *uid;      /* KFD unique_id in hex; tells twins apart */
	const char *pci;      /* "0000:03:00.0" */
	const char *driver;   /* "kfd 1.14" or "soft" */
	const char *firmware; /* "mec=550 sdma=21" */
	const char *facts;    /* anything else: a JSON object, NULL = {} */
	enum res_origin origin; /* of what it yields: RES_EMULATED for soft */
	int64_t cu_count;
	int64_t vram_bytes;
};

bool res_device_id(struct res_db *db, const struct res_device *d, int64_t *id,
		   struct err *e);

/*
 * Machines and executables are known by hashes that name their algorithm,
 * "xxh3-128:HEX": they tell contents apart, and are no protection against
 * forgery.  Those of different algorithms cannot be compared: whoever compares
 * them says so, and that measuring again helps.  Files and exports of before
 * version 6 had "fnv1a-64".
 */
enum { RES_IDENTITY = 48 };
void res_identity(const void *data, size_t len_bytes, char out[RES_IDENTITY]);
bool res_is_same_algorithm(const char *a, const char *b);

/* The host and the executable that this process is. */
bool res_host_self(struct res_db *db, int64_t *id, struct err *e);
bool res_build_self(struct res_db *db, int64_t *id, struct err *e);

/* ------------------------------------------------------------- shard.c -- */

/*
 * One of N parts of a work, as --shard I/N or this variable of the environment
 * says.  Each piece of the work is dealt by what it is ("cost/v_add_f32"), never
 * by its place in a list: for any N every piece is in one shard, whichever
 * machine looks, and a shard may have none.
 *
 * The run of a shard says so in its inputs, "shard":"I/N:LABEL#HASH"; a merge of
 * all N makes one run of them (`t0-results merge`).  Works that are done more
 * than once by one build are told apart by the label.
 */
#define RES_SHARD "T0_SHARD"
enum { RES_SHARDS = 65536, RES_SHARD_LABEL = 40, RES_SHARD_TEXT = 96 };
struct res_shard {
	unsigned index, count; /* index from 1; count 0: the whole work */
	char label[RES_SHARD_LABEL];
};
#define RES_SHARD_HELP \
	"only part I of N of the work, for t0-results merge (default: $T0_SHARD)"
/* `text`, else the environment; neither, or "": the whole. */
bool res_shard_parse(const char *text, struct res_shard *s, struct err *e);
bool res_shard_has(const struct res_shard *s, const char *content);
void res_shard_print(const struct res_shard *s, const char *work,
		     char out[RES_SHARD_TEXT]);
/* The inputs of a run of this shard, as they are stored. */
void res_shard_inputs(struct buf *out, const char *inputs,
		      const struct res_shard *s, const char *work);

/* ------------------------------------------------------------ shards.c -- */

/* Makes one run of each work whose shards are all here; *joined: how many. */
bool res_shards_join(struct res_db *db, int64_t *joined, struct err *e);

/* -------------------------------------------------------------- runs.c -- */

/* What a run starts from.  Zero-initialise. */
struct res_start {
	const char *tool; /* "t0-probe discover" */
	int argc;
	char *const *argv;  /* stored as a line that a shell reads back */
	const char *inputs; /* JSON object: every option and input hash that
			     * decides what the run does; NULL = {} */
	int64_t host, build;
	int64_t device; /* 0 = ran on no GPU */
	uint64_t seed;	/* kept as the signed integer of the same 64 bits */
	const struct res_shard *shard; /* NULL, or of none: the whole */
	const char *work; /* of a shard: what `inputs` do not say of the whole;
			   * NULL: they say it all */
	bool whole; /* the run and its rows are stored together at its end, or
		     * not at all: for rows that are all known at its begin,
		     * since others cannot write the while */
};

/*
 * A process that is one of a series (several that are compared) finds the
 * series and its side in the environment, and its run keeps both.  The host's
 * load is kept as the condition "load".
 */
#define RES_SERIES "T0_SERIES"
#define RES_SIDE   "T0_SIDE"
bool res_run_begin(struct res_db *db, const struct res_start *s, int64_t *run,
		   struct err *e);

/*
 * Take over the newest run with the same tool, host, device, build (binary
 * included) and inputs, if it did not end: interrupted, or its process died.
 * *run is its id, now owned by this process, or 0 when there is nothing to go
 * on with.  A run whose process is still alive is never taken.
 */
bool res_run_resume(struct res_db *db, const struct res_start *s, int64_t *run,
		    struct err *e);

/* End a run; `reason` may be NULL.  Refused for a run that has ended. */
bool res_run_finish(struct res_db *db, int64_t run, enum res_state state,
		    int exit_code, const char *reason, struct err *e);

/*
 * The newest complete run before `run` with the same tool and inputs on the
 * same device (name, gfx, uid, origin), whatever its build; 0 = none.
 */
bool res_run_previous(struct res_db *db, int64_t run, int64_t *previous,
		      struct err *e);

/* ----------------------------------------------------------- measure.c -- */

/*
 * Cases that are compared and gated.  Two runs are comparable if host, device,
 * origin, unit, direction, all inputs and all conditions that are words agree:
 * so put every option and hash that decides the outcome into `inputs` (model,
 * prompt bytes, route, operand distribution), and what merely was so into the
 * run's conditions ("governor", "power_profile" as words; temperatures and
 * clocks as numbers; "occupancy" for the gate's checklist).  Take at least six
 * samples.  A counted value is exact: n = 1 and lo = hi = value.  Text speed
 * has the unit "token/s" and needs a coherence verdict beside the correctness
 * one.
 *
 * Cases that are drawn (results/cmd/plots.def) and what the plots expect of
 * them:
 *
 *	area      name          params                 metric [unit]
 *	cost      mnemonic      any                    latency, interval [cycle]
 *	memory    access kind   {"bytes":N}, and       latency [s],
 *	                        "threads" if several   bandwidth [B/s]
 *	lds       instruction   {"stride":dwords}      interval [cycle]
 *	overlap   instruction   {"with":second,        interval [cycle], of both
 *	                         "alone":which}        or of the one alone
 *	waves     instruction   {"waves":N}            interval [cycle]
 *	branch    what          {"waves":N}            latency [cycle]
 *	fetch     instruction   {"code_bytes":N}       latency [cycle]
 *	tiers     tier and check                       verdicts
 *	kernel    kernel        {"tokens":of a pass}   flops [FLOP/s] and
 *	                                               intensity [FLOP/B]
 *	peak      pipe, memory  {}                     flops [FLOP/s] or
 *	                                               bandwidth [B/s]
 *	gemm      library       {"m","n","k","type"}   flops [FLOP/s], and
 *	                                               intensity [FLOP/B]
 *	tune      tuner         {"m","n","k",
 *	                         "tile_m","tile_n"}    flops [FLOP/s]
 *	predict   kernel        {"set":group}          reference, predicted [s]
 *	forecast  model         {"phase","tokens",
 *	                         "behind"}             tokens_per_s [token/s]
 *	engine    model         {"phase","tokens",
 *	                         "batch" or "how"}     any [token/s]
 *	load      model         {"rate":per second,    throughput [token/s],
 *	                         "requests":N}         answers, goodput [1/s];
 *	                                               first_token, inter_token,
 *	                                               answer, and their
 *	                                               _p90, _p99 [s]
 *	dispatch  method        {"mode","packets":N}   latency [s], with samples
 *	verify    kernel        {"object":file}        findings, and each rule
 *	                                               that found some [1]
 *	sim       kernel        {"object","groups",    time [s], cycles [cycle]
 *	                         "grid","workgroup"}
 *	bench     program/row   any, "to" of a ratio   time [s], cpu_time [s],
 *	                                               rate [X/s], ratio [1]
 *	compile   kernel        {"chip","level"}       vgprs, sgprs, waves, lds,
 *	                                               scratch, spills, insts,
 *	                                               bytes; cycles; time [s]
 *	quantize  model         {"weights":type}       bytes_per_token [B],
 *	                                               mean_kl, perplexity [1]
 *	train     model         {"step":N}             loss, valid_loss [nat],
 *	                                               learning_rate [1]
 *	step      model         {"rows","length",      speed [token/s],
 *	                         "accumulate"}         limit_share [1] and
 *	                                               memory [B]; of a kernel,
 *	                        with "part","kernel"   share [1] of the time
 *
 * `interval` is the time from one issue to the next of independent
 * instructions.  Published numbers go into a run of their own with origin
 * `published`; they are drawn beside the device that was measured last.
 * `t0-results costs` lists the area "cost".
 */

/*
 * The parameters of a case or the inputs of a run as JSON: `keys` are names in
 * their order, each with the type of its value, "bytes:U threads:u ?with:s":
 * s text, d int, u unsigned, U uint64_t, X uint64_t as 16 hexadecimal digits, b
 * bool; a name after '?' is left out where its value is NULL, 0 or false.  Rows
 * are found by this very text, so names and order of what was ever stored stay.
 */
void res_params(char *out, size_t size_bytes, const char *keys, ...);

/*
 * A case is what is measured, apart from who measures it: the names stay the
 * same over years and commits.  `params` is a JSON object, always written with
 * its keys in the same order (NULL = {}).
 */
bool res_case_id(struct res_db *db, const char *area, const char *name,
		 const char *params, int64_t *id, struct err *e);

/* A reading of the device's sensors; NAN = the driver does not say, never 0. */
struct res_sensors {
	double sclk_hz, mclk_hz; /* of the shader and the memory */
	double load;		 /* 0..1 */
	double power_w;
	double edge_c, junction_c, memory_c; /* degrees Celsius */
};

/*
 * One metric of one case in one run; a second row for it is refused.  NAN in
 * lo, hi and clock_hz means "not known"; the value itself must be finite.
 */
struct res_result {
	int64_t run, case_id;
	const char *metric; /* "latency", "bandwidth" */
	const char *unit;   /* SI: "s", "cycle", "B/s", "FLOP/s" */
	double value;	    /* the median where there are samples */
	double lo, hi;	    /* 95 % interval of the median */
	int64_t n;	    /* samples behind the value */
	double clock_hz;    /* shader clock while it was measured */
	enum res_better better;
	enum res_origin origin;
	const char *source;    /* required for RES_PUBLISHED */
	const double *samples; /* [n_samples], in the order measured */
	size_t n_samples;
	/* Around the measurement; NULL = not read. */
	const struct res_sensors *before, *after;
};
/* Result and samples are stored together or not at all; id may be NULL. */
bool res_result_add(struct res_db *db, const struct res_result *r, int64_t *id,
		    struct err *e);

struct res_verdict {
	int64_t run;
	int64_t case_id; /* 0 = the whole run */
	int64_t result;	 /* 0 = the whole case */
	enum res_kind kind;
	enum res_answer answer;
	const char *reason; /* one line for people */
	const char *detail; /* JSON object, NULL = {} */
};
bool res_verdict_add(struct res_db *db, const struct res_verdict *v,
		     struct err *e);

/* ------------------------------------------------------------ record.c -- */

/*
 * What a tool worked out without measuring (the verifier, the compiler, the
 * simulator), where --db asks for rows: exact values of origin `simulated`, so
 * that they are compared between commits and machines.  Zero-initialise.
 */
struct res_record {
	struct res_db *db; /* NULL: nothing is recorded */
	int64_t run, case_id;
	enum res_origin origin; /* of the values from here on */
};
/* `what` without host and build, which are this process's. */
bool res_record_begin(struct res_record *r, const char *path,
		      const struct res_start *what, struct err *e);
/* What the values and verdicts behind it are about. */
bool res_record_case(struct res_record *r, const char *area, const char *name,
		     const char *params, struct err *e);
bool res_record_exact(struct res_record *r, const char *metric,
		      const char *unit, double value, enum res_better better,
		      struct err *e);
/* Of kind correctness. */
bool res_record_verdict(struct res_record *r, enum res_answer answer,
			const char *reason, const char *detail, struct err *e);
/* Ends the run, as complete if `ok`; returns whether all went well. */
bool res_record_end(struct res_record *r, bool ok, struct err *e);

/* ------------------------------------------------------------- slots.c -- */

/*
 * What is known of one opcode slot in one run.  (encoding, opcode, form) names
 * it; the rest is what was observed and what was expected.  A slot with a
 * non-empty `difference` is one that observation, table, emulator and oracle
 * do not agree about; `errata` then names the row that explains it.
 */
struct res_slot {
	const char *encoding; /* "VOP3", "SMEM" */
	int64_t opcode;
	const char *form;     /* "" plain; else "wave64", "dpp16", ... */
	const char *mnemonic; /* NULL = no table knows the slot */
	enum res_slot_verdict verdict;
	const char *signature; /* what it changed, e.g. "v0=3f800000 vcc" */
	const char *reason;    /* why faults, hangs or unproven */
	const char *expected;  /* what our table says: a slot verdict's word
				* or "decode-only"; NULL = nothing */
	const char *oracle;    /* what an outside disassembler calls it; "" =
				* it refuses; NULL = not asked */
	int emulated_ok;       /* 1 signature agrees with the emulated
				* semantics, 0 differs, -1 not compared */
	const char *difference;
	const char *errata;
};

/* Store one slot; a second put of the same slot replaces the first. */
bool res_slot_put(struct res_db *db, int64_t run, const struct res_slot *s,
		  struct err *e);

/*
 * Calls fn for every slot of a run, ordered by encoding, opcode, form.  The
 * strings live until fn returns.  fn returns false to stop early (no error).
 */
bool res_slot_each(struct res_db *db, int64_t run,
		   bool (*fn)(void *ctx, const struct res_slot *s), void *ctx,
		   struct err *e);

/*
 * Calls fn for every slot whose verdict, signature, expectation or difference
 * is not the same in both runs; `was` or `is` is NULL where that run has no
 * such slot.  Same order and lifetime as res_slot_each().  Refused
 * (ERR_UNSUPPORTED) where a signature ends in hashes of different algorithms.
 */
bool res_slot_diff(struct res_db *db, int64_t old_run, int64_t new_run,
		   bool (*fn)(void *ctx, const struct res_slot *was,
			      const struct res_slot *is),
		   void *ctx, struct err *e);

#endif
