/*
 * Who keeps the terminal while a panel has it.
 */
#ifndef T0_BASE_PANEL_INT_H
#define T0_BASE_PANEL_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct keeper {
	int terminal;	/* what stdout was */
	int was_stderr; /* -1: that is no terminal, and stays */
	int said;	/* a file in memory that both are meanwhile */
	int alive;	/* closed by the end of the process */
	pid_t child;
};

bool keeper_begin(struct keeper *k);
void keeper_end(struct keeper *k);
/* The last line that was written meanwhile. */
void keeper_last_line(const struct keeper *k, char *out, size_t size);

#endif
