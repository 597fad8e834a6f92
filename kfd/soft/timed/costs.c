/*
 * kfd/soft/timed/costs.c - costs of a card, as a file names them.
 */
#include <stdlib.h>
#include <string.h>

#include "kfd/soft/timed/timed.h"

/* A line of the file, without its end and comment. */
static bool set_line(struct cost_model *m, char *line, const char *path,
		     int number, struct err *e)
{
	char *end = NULL, *value = strchr(line, '=');
	double v;

	line[strcspn(line, "#\r")] = '\0';
	if (!line[strspn(line, " \t")])
		return true;
	if (!value)
		return err_set(e, ERR_INPUT, "%s:%d: '%.60s': wanted "
			       "NAME=VALUE", path, number, line);
	*value++ = '\0';
	v = strtod(value, &end);
	if (end == value || end[strspn(end, " \t")])
		return err_set(e, ERR_INPUT, "%s:%d: %.60s=%.40s: wanted a "
			       "number", path, number, line, value);
	return cost_set(m, line, v, COST_DEFAULT, e) ||
	       err_wrap(e, "%s:%d", path, number);
}

bool soft_model_read(struct cost_model *m, const char *path, struct err *e)
{
	struct buf b = { 0 };
	int number = 0;
	bool ok = file_read(path, 0, &b, e);

	for (char *at = ok ? b.data : NULL, *next; ok && at && *at;
	     at = next) {
		next = at + strcspn(at, "\n");
		if (*next)
			*next++ = '\0';
		ok = set_line(m, at, path, ++number, e);
	}
	buf_fini(&b);
	return ok;
}
