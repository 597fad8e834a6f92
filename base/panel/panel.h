/*
 * panel - a long run, full screen on a terminal: what there is to know, how far
 * it is, and a curve.
 *
 * All functions but panel_open() take NULL and do nothing then, so a command
 * asks for a panel where `--tui` was given and goes on the same without.  One
 * thread draws.
 */
#ifndef T0_BASE_PANEL_H
#define T0_BASE_PANEL_H

#include "base/base.h"

struct panel;

/*
 * Takes the terminal that stdout is; NULL where it is none, or one that cannot
 * be drawn on, which is said on stderr.  What is written to stdout and stderr
 * meanwhile stays until the end; the last line of it is shown.  However the
 * process ends, by any signal, a child of it gives the terminal back.
 */
struct panel *panel_open(const char *tool, const char *what);
/* Gives the terminal back, and what was written meanwhile to it. */
void panel_close(struct panel *p);

/* A fact with its name; another value replaces the one before. */
void panel_set(struct panel *p, const char *name, const char *fmt, ...)
	T0_PRINTF(3, 4);
/* total 0: nobody knows how much there is. */
void panel_progress(struct panel *p, uint64_t done, uint64_t total);
/* The next value of the curve; the first name of one stays. */
void panel_point(struct panel *p, const char *name, double value);
/* Draws, at most ten times a second; the key q is SIGINT. */
void panel_draw(struct panel *p);

#endif
