/*
 * store.h - a PostgreSQL that several runners share; not for others.
 *
 * libpq is loaded when a URL is opened (dlopen), so that neither the build nor
 * the tools need it.  What is in the store: results/store/store.def.
 */
#ifndef T0_RESULTS_STORE_H
#define T0_RESULTS_STORE_H

#include "base/base.h"

struct store;
struct store_rows;

/*
 * Connects; the schema must be there and not newer, and is brought forward
 * where the user may do that.  ERR_UNSUPPORTED without libpq, ERR_IO where
 * nobody answers, ERR_PERM, ERR_INPUT for a newer schema.
 */
struct store *store_open(const char *url, struct err *e);
void store_close(struct store *s);

/*
 * The statement's rows, which store_rows_free() frees; NULL after filling *e.
 * `param` is $1, or NULL.  *lost (may be NULL): the connection is gone, and it
 * may or may not have been done.
 */
struct store_rows *store_query(struct store *s, const char *sql,
			       const char *param, bool *lost, struct err *e);
int store_count(const struct store_rows *r);
/* Of the first column; lives as long as the rows. */
const char *store_text(const struct store_rows *r, int row);
/* Rows that an INSERT added. */
int64_t store_added(const struct store_rows *r);
void store_rows_free(struct store_rows *r);

/* Tries again to connect, until somebody answers or half a minute is over. */
bool store_reconnect(struct store *s, const _Atomic int *stop, struct err *e);

#endif
