/*
 * csv - tables that others published: RFC 4180, a header, columns by name.
 */
#ifndef T0_COMPILER_CSV_H
#define T0_COMPILER_CSV_H

#include <stdbool.h>

#define CSV_COLUMNS_MAX 64

/* Over a text that is cut into fields in place; zero-initialise, set `at`. */
struct csv {
	char *at;
	char *field[CSV_COLUMNS_MAX]; /* of the last record */
	int n;
};

/* ------------------------------------------------------------- csv.c ---- */

/* The next record: true.  Fields beyond CSV_COLUMNS_MAX are lost. */
bool csv_next(struct csv *c);
/* After the header was read: where the column of this name is, or -1. */
int csv_column(const struct csv *c, const char *name);
/* The cell of the last record, "" where the column or the cell is not. */
const char *csv_cell(const struct csv *c, int column);

#endif
