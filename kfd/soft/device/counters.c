/*
 * kfd/soft/device/counters.c - performance counters: those of the shader
 * sequencer (SQ), a set per WGP and per shader engine, as PM4 packets program
 * and read them.
 *
 * They count what the executor knows exactly, instructions, waves and items;
 * cycles, stalls and caches it does not know, and selecting such an event is
 * refused.  While they count, waves run an instruction at a time.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "kfd/soft/device/dev.h"

#define SQ_COUNTERS  8u /* each has two registers for its choice */
#define SQG_COUNTERS 8u

/* Dword offsets; the names are those of AMD's register headers. */
enum {
	SQ_PERFCOUNTER0_LO = 0xd1c0,   /* 2 apart */
	SQG_PERFCOUNTER0_LO = 0xd1e4,  /* and _HI behind it */
	CP_PERFMON_CNTL = 0xd808,
	SQ_PERFCOUNTER0_SELECT = 0xd9c0,
	SQG_PERFCOUNTER0_SELECT = 0xd9d0,
	SQG_PERFCOUNTER_CTRL = 0xd9d8,
	SQG_PERFCOUNTER_CTRL2 = 0xd9da,
	SQ_PERFCOUNTER_CTRL = 0xd9e0,
	SQ_PERFCOUNTER_CTRL2 = 0xd9e2,
};
#define PERFMON_STATE 0xfu
enum { STATE_RESET, STATE_COUNTING, STATE_STOPPED };
#define CTRL_CS_EN (1u << 6)
#define CTRL2_FORCE_EN (1u << 0)
#define SELECT_EVENT 0x1ffu

/* Counted apart: waves of 32, waves of 64. */
#define SIZES 2

struct soft_counters {
	pthread_mutex_t lock; /* a leaf; guards what follows */
	uint32_t state, ctrl, ctrl2, sqg_ctrl, sqg_ctrl2;
	uint32_t select[2 * SQ_COUNTERS], sqg_select[SQG_COUNTERS];
	uint64_t (*n)[SIZES][SOFT_COUNT_COUNT]; /* of each WGP */
	unsigned n_wgps;
	char no_wgp[144]; /* why a place is refused */
};

static unsigned wgps_per_sa(const struct isa_chip *chip)
{
	return chip->cus_per_sa / 2;
}

/* --------------------------------------------------------------- events -- */

#define N(name) (1ull << (name))
#define VALU (N(ISA_PIPE_VALU) | N(ISA_PIPE_VALU64) | N(ISA_PIPE_QUARTER) | \
	      N(ISA_PIPE_TRANS) | N(ISA_PIPE_TRANS64) | N(ISA_PIPE_DOUBLE) | \
	      N(ISA_PIPE_WMMA))
#define LDS (N(ISA_PIPE_LDS) | N(ISA_PIPE_LDSDIR) | N(ISA_PIPE_FLAT))
#define TEX (N(ISA_PIPE_VMEM) | N(ISA_PIPE_FLAT))
#define ALL (N(ISA_PIPE_COUNT) - 1)
#define W32 1
#define W64 2

/* SQ_PERF_SEL_* of gfx11: which counts they are the sum of. */
static const struct event {
	uint16_t id;
	uint8_t sizes;
	uint64_t counts;
} events[] = {
	{ 0, W32 | W64, 0 },			      /* NONE */
	{ 4, W32 | W64, N(SOFT_COUNT_WAVES) },	      /* WAVES */
	{ 5, W32, N(SOFT_COUNT_WAVES) },	      /* WAVES_32 */
	{ 6, W64, N(SOFT_COUNT_WAVES) },	      /* WAVES_64 */
	{ 8, W32 | W64, N(SOFT_COUNT_ITEMS) },	      /* ITEMS */
	{ 19, W32 | W64, 0 },			      /* WAVES_RESTORED */
	{ 20, W32 | W64, 0 },			      /* WAVES_SAVED */
	{ 48, W32 | W64, ALL },			      /* INSTS_ALL */
	{ 49, W32 | W64, N(ISA_PIPE_BRANCH) },	      /* INSTS_BRANCH */
	{ 50, W32 | W64, N(SOFT_COUNT_NOT_TAKEN) },   /* INSTS_CBRANCH_... */
	{ 51, W32 | W64, N(SOFT_COUNT_TAKEN) },
	{ 56, W32 | W64, N(ISA_PIPE_FLAT) },	      /* INSTS_FLAT */
	{ 57, W32 | W64, LDS },			      /* INSTS_LDS */
	{ 58, W32 | W64, N(ISA_PIPE_SALU) },	      /* INSTS_SALU */
	{ 59, W32 | W64, N(ISA_PIPE_SMEM) },	      /* INSTS_SMEM */
	{ 61, W32 | W64, N(ISA_PIPE_MSG) },	      /* INSTS_SENDMSG */
	{ 62, W32 | W64, VALU },		      /* INSTS_VALU */
	{ 63, W32 | W64, N(ISA_PIPE_TRANS) },	      /* INSTS_VALU_TRANS32 */
	{ 65, W32 | W64, TEX },			      /* INSTS_TEX */
	{ 66, W32 | W64, N(SOFT_COUNT_LOADS) },	      /* INSTS_TEX_LOAD */
	{ 67, W32 | W64, N(SOFT_COUNT_STORES) },      /* INSTS_TEX_STORE */
	{ 68, W32 | W64, N(SOFT_COUNT_DELAYS) },      /* INSTS_DELAY_ALU */
	{ 70, W32, VALU | LDS | TEX },		      /* INSTS_WAVE32 */
	{ 71, W32, N(ISA_PIPE_FLAT) },		      /* INSTS_WAVE32_FLAT */
	{ 72, W32, LDS },			      /* INSTS_WAVE32_LDS */
	{ 73, W32, VALU },			      /* INSTS_WAVE32_VALU */
	{ 77, W32, TEX },			      /* INSTS_WAVE32_TEX */
	{ 78, W32, N(SOFT_COUNT_LOADS) },
	{ 79, W32, N(SOFT_COUNT_STORES) },
	{ 82, W32, ALL },			      /* WAVE32_INSTS */
	{ 83, W64, ALL },			      /* WAVE64_INSTS */
};
#define ACCEPTED_EVENTS                                                       \
	"this event is not counted; accepted: 4..6 (waves), 8 (items), 19, "  \
	"20, 48..51, 56..59, 61..63, 65..68, 70..73, 77..79, 82, 83 "	      \
	"(instructions); there are no cycles"

static const struct event *find_event(uint32_t select)
{
	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		if (events[i].id == (select & SELECT_EVENT))
			return &events[i];
	return NULL;
}

/* Of one WGP. */
static uint64_t event_value(const struct soft_counters *k, uint32_t select,
			    unsigned wgp)
{
	const struct event *e = find_event(select);
	uint64_t sum = 0;

	for (int size = 0; size < SIZES; size++)
		for (int i = 0; i < SOFT_COUNT_COUNT; i++)
			if (e->sizes >> size & 1 && e->counts >> i & 1)
				sum += k->n[wgp][size][i];
	return sum;
}

/* ------------------------------------------------------------- counting -- */

void soft_counters_init(struct soft_card *c)
{
	const struct isa_chip *chip = c->chip;
	struct soft_counters *k = c->counters = xcalloc(1, sizeof(*k));

	k->n_wgps = isa_chip_cus(chip) / 2;
	k->n = xcalloc(k->n_wgps, sizeof(*k->n));
	snprintf(k->no_wgp, sizeof(k->no_wgp),
		 "GRBM_GFX_INDEX names a WGP that is not there; accepted: "
		 "SE 0..%u, SA 0..%u, INSTANCE 4 * (0..%u)",
		 chip->n_se - 1, chip->sa_per_se - 1, wgps_per_sa(chip) - 1);
	pthread_mutex_init(&k->lock, NULL);
}

void soft_counters_fini(struct soft_card *c)
{
	pthread_mutex_destroy(&c->counters->lock);
	free(c->counters->n);
	free(c->counters);
}

bool soft_counters_on(struct soft_card *c, bool enabled)
{
	struct soft_counters *k = c->counters;
	bool on;

	pthread_mutex_lock(&k->lock);
	on = k->state == STATE_COUNTING &&
	     (k->ctrl | k->sqg_ctrl) & CTRL_CS_EN &&
	     (enabled || (k->ctrl2 | k->sqg_ctrl2) & CTRL2_FORCE_EN);
	pthread_mutex_unlock(&k->lock);
	return on;
}

/* Where HW_ID1 says that a wave is. */
static unsigned wgp_of(const struct isa_chip *chip, uint32_t hw_id1)
{
	const unsigned wgp = hw_id1 >> 10 & 0xf, sa = hw_id1 >> 16 & 1,
		       se = hw_id1 >> 18 & 7;

	return (se * chip->sa_per_se + sa) * wgps_per_sa(chip) + wgp;
}

void soft_counters_add(struct soft_card *c, const struct soft_run *r)
{
	struct soft_counters *k = c->counters;
	const struct soft_wave *w = r->g.wave;
	uint64_t *n = k->n[wgp_of(c->chip, w->hw_id1)][w->wave_size == 64];

	pthread_mutex_lock(&k->lock);
	for (int i = 0; i < SOFT_COUNT_COUNT; i++)
		n[i] += r->counts[i];
	pthread_mutex_unlock(&k->lock);
}

/* ------------------------------------------------------------ registers -- */

/* One that holds what was written, or NULL. */
static uint32_t *find_setting(struct soft_counters *k, uint32_t at)
{
	if (at - SQ_PERFCOUNTER0_SELECT < ARRAY_SIZE(k->select))
		return &k->select[at - SQ_PERFCOUNTER0_SELECT];
	if (at - SQG_PERFCOUNTER0_SELECT < SQG_COUNTERS)
		return &k->sqg_select[at - SQG_PERFCOUNTER0_SELECT];
	return at == SQ_PERFCOUNTER_CTRL   ? &k->ctrl :
	       at == SQ_PERFCOUNTER_CTRL2  ? &k->ctrl2 :
	       at == SQG_PERFCOUNTER_CTRL  ? &k->sqg_ctrl :
	       at == SQG_PERFCOUNTER_CTRL2 ? &k->sqg_ctrl2 :
	       at == CP_PERFMON_CNTL	   ? &k->state :
					     NULL;
}

static bool is_select(uint32_t at)
{
	return at >= SQ_PERFCOUNTER0_SELECT &&
	       at < SQG_PERFCOUNTER0_SELECT + SQG_COUNTERS;
}

static bool is_sq_value(uint32_t at)
{
	return at - SQ_PERFCOUNTER0_LO < 2 * SQ_COUNTERS && at % 2 == 0;
}

static bool is_sqg_value(uint32_t at)
{
	return at - SQG_PERFCOUNTER0_LO < 2 * SQG_COUNTERS;
}

bool soft_counters_have(uint32_t at)
{
	static const uint32_t controls[] = {
		CP_PERFMON_CNTL, SQ_PERFCOUNTER_CTRL, SQ_PERFCOUNTER_CTRL2,
		SQG_PERFCOUNTER_CTRL, SQG_PERFCOUNTER_CTRL2,
	};

	for (size_t i = 0; i < ARRAY_SIZE(controls); i++)
		if (at == controls[i])
			return true;
	return is_select(at) || is_sq_value(at) || is_sqg_value(at);
}

const char *soft_counters_write(struct soft_card *c, uint32_t at,
				uint32_t value)
{
	struct soft_counters *k = c->counters;
	uint32_t *setting = find_setting(k, at);

	if (!setting)
		return "it only counts; accepted: reads";
	if (is_select(at) && !find_event(value))
		return ACCEPTED_EVENTS;
	if (at == CP_PERFMON_CNTL)
		value &= PERFMON_STATE;
	if (at == CP_PERFMON_CNTL && value > STATE_STOPPED)
		return "accepted: states 0 (reset), 1 (count), 2 (stop)";
	pthread_mutex_lock(&k->lock);
	*setting = value;
	if (at == CP_PERFMON_CNTL && value == STATE_RESET)
		memset(k->n, 0, k->n_wgps * sizeof(*k->n));
	pthread_mutex_unlock(&k->lock);
	return NULL;
}

/* GRBM_GFX_INDEX; broadcast to all reads the first. */
struct place {
	unsigned se, sa, wgp;
};

static struct place place_of(uint32_t grbm_index)
{
	return (struct place){
		.se = grbm_index >> 31 & 1 ? 0 : grbm_index >> 16 & 0xff,
		.sa = grbm_index >> 29 & 1 ? 0 : grbm_index >> 8 & 0xff,
		.wgp = grbm_index >> 30 & 1 ? 0 : (grbm_index & 0xff) >> 2,
	};
}

/* A shader engine's sum. */
static uint64_t engine_value(const struct soft_card *c, uint32_t select,
			     unsigned se)
{
	const struct soft_counters *k = c->counters;
	const unsigned each = k->n_wgps / c->chip->n_se;
	uint64_t sum = 0;

	for (unsigned i = 0; i < each; i++)
		sum += event_value(k, select, se * each + i);
	return sum;
}

const char *soft_counters_read(struct soft_card *c, uint32_t at,
			       uint32_t grbm_index, uint32_t *value)
{
	const struct place x = place_of(grbm_index);
	struct soft_counters *k = c->counters;
	const uint32_t *setting = find_setting(k, at);
	const uint32_t i = is_sq_value(at) ? (at - SQ_PERFCOUNTER0_LO) / 2 :
					     (at - SQG_PERFCOUNTER0_LO) / 2;
	uint64_t v;

	const struct isa_chip *chip = c->chip;
	const unsigned per_sa = wgps_per_sa(chip);
	if (x.se >= chip->n_se || x.sa >= chip->sa_per_se || x.wgp >= per_sa)
		return k->no_wgp;
	pthread_mutex_lock(&k->lock);
	if (setting)
		v = *setting;
	else if (is_sq_value(at))
		v = event_value(k, k->select[2 * i],
				(x.se * chip->sa_per_se + x.sa) * per_sa +
					x.wgp);
	else
		v = engine_value(c, k->sqg_select[i], x.se);
	pthread_mutex_unlock(&k->lock);
	/* The odd registers of engines are the high halves. */
	*value = (uint32_t)(is_sqg_value(at) && at % 2 ? v >> 32 : v);
	return NULL;
}
