/*
 * What the tools can do, out of their own tables: `--help=bash` has every
 * command with its options, a value's with "=" behind them.
 */
#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "tests/attack/tools/campaign.h"

/* What the command prints. */
static bool read_output(const char *line, struct buf *out, struct err *e)
{
	FILE *p = popen(line, "r");
	char chunk[4096];
	size_t n;

	if (!p)
		return err_set(e, ERR_IO, "cannot run %s", line);
	while ((n = fread(chunk, 1, sizeof(chunk), p)) > 0)
		buf_add(out, chunk, n);
	return pclose(p) == 0 || err_set(e, ERR_IO, "%s failed", line);
}

/* "--chip= --lines": into the row. */
static void add_options(struct campaign *c, struct command_row *row, char *text)
{
	char *rest = NULL;

	for (char *w = strtok_r(text, " ", &rest); w;
	     w = strtok_r(NULL, " ", &rest)) {
		size_t len = strlen(w);
		const bool value = w[len - 1] == '=';

		w[len - value] = '\0';
		vec_push(&row->options, ((struct option_row){
			arena_strdup(&c->mem, w), value }));
	}
}

/* A line "\tdis) words='--chip= ...' ;;"; the one of * is all of them. */
static void add_command(struct campaign *c, struct tool_row *tool, char *line)
{
	char *paren = strchr(line, ')'), *quote = strchr(line, '\'');
	char *end = quote ? strchr(quote + 1, '\'') : NULL;

	if (line[0] != '\t' || !paren || !end || paren > quote)
		return;
	*paren = *end = '\0';
	const bool any = !strcmp(line + 1, "*");
	struct command_row *row = vec_add(&tool->commands);
	row->name = any ? "" : arena_strdup(&c->mem, line + 1);
	add_options(c, row, quote + 1);
}

static bool read_tool(struct campaign *c, const char *name, struct err *e)
{
	struct buf text = { 0 }, line = { 0 };
	struct tool_row *tool = vec_add(&c->tools);
	char *rest = NULL;

	tool->name = arena_strdup(&c->mem, name);
	buf_printf(&line, "'%s/%s' --help=bash", c->build, name);
	bool ok = read_output(line.data, &text, e);
	for (char *l = ok ? strtok_r(text.data, "\n", &rest) : NULL; l;
	     l = strtok_r(NULL, "\n", &rest))
		add_command(c, tool, l);
	if (ok && !tool->commands.n)
		ok = err_set(e, ERR_INPUT, "%s --help=bash names no command",
			     name);
	buf_fini(&text);
	buf_fini(&line);
	return ok;
}

static int is_tool(const struct dirent *d)
{
	return !strncmp(d->d_name, "t0-", 3) && !strchr(d->d_name, '.');
}

bool tables_read(struct campaign *c, struct err *e)
{
	struct dirent **entry;
	int n = scandir(c->build, &entry, is_tool, alphasort);
	bool ok = n > 0 || err_set(e, ERR_INPUT, "%s: no tools", c->build);

	for (int i = 0; i < n; i++) {
		char path[512];

		snprintf(path, sizeof(path), "%s/%s", c->build,
			 entry[i]->d_name);
		if (ok && access(path, X_OK) == 0)
			ok = read_tool(c, entry[i]->d_name, e);
		free(entry[i]);
	}
	if (n >= 0)
		free(entry);
	return ok;
}

void tables_free(struct campaign *c)
{
	for (size_t t = 0; t < c->tools.n; t++) {
		struct tool_row *tool = &c->tools.v[t];

		for (size_t i = 0; i < tool->commands.n; i++)
			vec_fini(&tool->commands.v[i].options);
		vec_fini(&tool->commands);
	}
	vec_fini(&c->tools);
}

const struct tool_row *table_tool(const struct campaign *c, const char *name)
{
	for (size_t i = 0; i < c->tools.n; i++)
		if (!strcmp(c->tools.v[i].name, name))
			return &c->tools.v[i];
	return NULL;
}

const struct command_row *table_command(const struct tool_row *t,
					const char *name)
{
	for (size_t i = 0; t && i < t->commands.n; i++)
		if (!strcmp(t->commands.v[i].name, name))
			return &t->commands.v[i];
	return NULL;
}
