/*
 * kfd/soft/timed/preload/costs.c - inside libt0-soft-timed.so: the card of
 * `t0-soft run --costs FILE`.
 *
 * As libt0-soft-preload.so, and its device has the costs of $T0_SOFT_COSTS.
 */
#include <stdlib.h>

#include "kfd/soft/preload/preload.h"
#include "kfd/soft/timed/timed.h"

static struct cost_model costs;

static bool add_costs(struct kfd_driver *d, const struct isa_chip *chip,
		      struct err *e)
{
	const char *path = getenv("T0_SOFT_COSTS");

	if (!path || !*path)
		return true;
	cost_fini(&costs);
	cost_init(&costs, chip ? chip->name : COST_CHIP);
	return soft_model_read(&costs, path, e) &&
	       soft_model_attach(d, &costs, e);
}

__attribute__((constructor)) static void set_up(void)
{
	pl_made = add_costs;
}
