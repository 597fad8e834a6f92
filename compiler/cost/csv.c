/*
 * compiler/cost/csv.c - comma-separated values, quoted or not.
 */
#include <stddef.h>
#include <string.h>

#include "compiler/cost/cost.h"

/* One field: unquoted in place; false at the end of the record. */
static bool next_field(struct csv *c)
{
	char *in = c->at, *out = c->at;
	char *field = out;
	bool quoted = *in == '"';

	if (c->n < CSV_COLUMNS_MAX)
		c->field[c->n++] = field;
	in += quoted;
	while (*in && (quoted || (*in != ',' && *in != '\n'))) {
		if (quoted && *in == '"') {
			if (in[1] != '"') {
				quoted = false;
				in++;
				continue;
			}
			in++;
		}
		*out++ = *in++;
	}
	bool more = *in == ',';
	c->at = *in ? in + 1 : in;
	if (out > field && out[-1] == '\r')
		out--;
	*out = '\0';
	return more;
}

bool csv_next(struct csv *c)
{
	if (!c->at || !*c->at)
		return false;
	c->n = 0;
	while (next_field(c))
		;
	return true;
}

int csv_column(const struct csv *c, const char *name)
{
	for (int i = 0; i < c->n; i++)
		if (!strcmp(c->field[i], name))
			return i;
	return -1;
}

const char *csv_cell(const struct csv *c, int column)
{
	return column >= 0 && column < c->n ? c->field[column] : "";
}
