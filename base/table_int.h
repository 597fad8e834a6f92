/*
 * table_int.h - what table*.c share; not for other folders.
 */
#ifndef T0_BASE_TABLE_INT_H
#define T0_BASE_TABLE_INT_H

#include "base/base.h"

/* ----------------------------------------------------------- table.c ---- */

/* Length in bytes of the UTF-8 sequence at `s`, 0 if it is malformed. */
size_t table_utf8_len(const char *s);

/* ------------------------------------------------------ table_text.c ---- */

void table_print_text(const struct table *t, FILE *file, struct buf *out);
void table_print_markdown(const struct table *t, struct buf *out);

#endif
