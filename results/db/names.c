/*
 * results/db/names.c - the words that the database stores for our enums.
 */
#include "results/db/results.h"

static const char *name_at(const char *const *names, size_t n, unsigned i)
{
	if (i >= n)
		BUG("no name for value %u of %zu", i, n);
	return names[i];
}

#define NAMED(function, type, ...)                                    \
	const char *function(enum type value)                         \
	{                                                             \
		static const char *const names[] = { __VA_ARGS__ };   \
		return name_at(names, ARRAY_SIZE(names), (unsigned)value); \
	}

/* In the order of the enums in results.h; schema.def checks the same words. */
NAMED(res_origin_name, res_origin, "hardware", "emulated", "simulated",
      "published")
NAMED(res_state_name, res_state, "running", "complete", "interrupted",
      "failed")
NAMED(res_better_name, res_better, "lower", "higher", "none")
NAMED(res_kind_name, res_kind, "correctness", "coherence", "gate", "discovery")
NAMED(res_answer_name, res_answer, "pass", "fail", "regress", "improve",
      "inconclusive", "no data")
NAMED(res_slot_verdict_name, res_slot_verdict, "executes", "illegal", "faults",
      "hangs", "unproven")
