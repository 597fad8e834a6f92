/*
 * engine/cmd/serve/cmd_chat_line.c - what a user types.
 */
#include <errno.h>
#include <histedit.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/cmd/serve/cmd_chat.h"

enum { KEPT_LINES = 1000, LINE_BYTES = 1 << 20 };

struct chat_lines {
	const struct cmd *c;
	EditLine *el; /* NULL: no terminal */
	History *history;
	char *path; /* of the history's file; NULL: none */
	struct buf text;
	struct file_lines in; /* without a terminal */
	struct buf line;      /* of it, with its break */
	bool more; /* the line before goes on */
	bool warned;
};

static char *prompt_of(EditLine *el)
{
	static char first[] = "> ", more[] = ". ";
	struct chat_lines *l;

	el_get(el, EL_CLIENTDATA, &l);
	return l->more ? more : first;
}

/* $XDG_STATE_HOME/t0/chat, or the same in ~/.local/state. */
static char *usual_path(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	struct buf b = { 0 };

	if (state && *state == '/')
		buf_printf(&b, "%s/t0", state);
	else if (home && *home)
		buf_printf(&b, "%s/.local/state/t0", home);
	else
		return NULL;
	if (!file_make_folders(b.data, NULL)) {
		buf_fini(&b);
		return NULL;
	}
	buf_adds(&b, "/chat");
	return b.data;
}

static void open_terminal(struct chat_lines *l, const char *path)
{
	HistEvent ev;

	setlocale(LC_CTYPE, "");
	if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
		setlocale(LC_CTYPE, "C.UTF-8");
	l->el = el_init(l->c->tool->name, stdin, stdout, stderr);
	if (!l->el)
		return;
	el_set(l->el, EL_CLIENTDATA, l);
	el_set(l->el, EL_PROMPT, prompt_of);
	el_set(l->el, EL_EDITOR, "emacs");
	l->history = history_init();
	history(l->history, &ev, H_SETSIZE, KEPT_LINES);
	history(l->history, &ev, H_SETUNIQUE, 1);
	el_set(l->el, EL_HIST, history, l->history);
	el_source(l->el, NULL);
	l->path = !path ? usual_path() : *path ? xstrdup(path) : NULL;
	if (l->path)
		history(l->history, &ev, H_LOAD, l->path);
}

struct chat_lines *chat_lines_open(const struct cmd *c, const char *path)
{
	struct chat_lines *l = xcalloc(1, sizeof(*l));

	l->c = c;
	if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
		open_terminal(l, path);
	else
		file_lines_open(&l->in, "-", LINE_BYTES, NULL);
	return l;
}

void chat_lines_close(struct chat_lines *l)
{
	if (!l)
		return;
	if (l->el) {
		history_end(l->history);
		el_end(l->el);
	} else {
		file_lines_close(&l->in);
	}
	free(l->path);
	buf_fini(&l->line);
	buf_fini(&l->text);
	free(l);
}

bool chat_lines_terminal(const struct chat_lines *l)
{
	return l->el != NULL;
}

/* What a user said is nobody else's. */
static void keep_line(struct chat_lines *l, const char *line)
{
	HistEvent ev;
	mode_t before;

	if (!line[strspn(line, " \t\n")])
		return;
	history(l->history, &ev, H_ENTER, line);
	if (!l->path)
		return;
	before = umask(077);
	if (history(l->history, &ev, H_SAVE, l->path) < 0 && !l->warned) {
		l->warned = true;
		cmd_remark(l->c,
			   "%s: cannot keep the history there "
			   "(--history)",
			   l->path);
	}
	umask(before);
}

/* A line with its break, or NULL: of a terminal, or of a file. */
static const char *type_line(struct chat_lines *l, bool *stopped)
{
	int n = 0;

	errno = 0;
	el_resize(l->el);
	const char *line = el_gets(l->el, &n);
	if (line)
		keep_line(l, line);
	*stopped = !line && errno == EINTR;
	return line;
}

static const char *read_line(struct chat_lines *l, bool *stopped, struct err *e)
{
	char *line;
	size_t n;

	if (!file_lines_next(&l->in, &line, &n, e)) {
		*stopped = e->code == ERR_STOPPED;
		if (*stopped)
			*e = (struct err){ 0 };
		return NULL;
	}
	if (!line)
		return NULL;
	buf_reset(&l->line);
	buf_add(&l->line, line, n);
	if (!l->in.cut)
		buf_addc(&l->line, '\n');
	return l->line.data;
}

enum chat_line chat_lines_next(struct chat_lines *l, const char **text,
			       struct err *e)
{
	const char *line;
	bool stopped = false;

	buf_reset(&l->text);
	buf_adds(&l->text, "");
	l->more = false;
	while ((line = l->el ? type_line(l, &stopped) :
			       read_line(l, &stopped, e))) {
		size_t n = strcspn(line, "\r\n");
		l->more = n && line[n] && line[n - 1] == '\\';
		buf_add(&l->text, line, n - l->more);
		if (!l->more)
			break;
		buf_addc(&l->text, '\n');
	}
	*text = l->text.data;
	if (e->code != ERR_NONE)
		return CHAT_LINE_FAILED;
	if (line || (l->text.len && !stopped))
		return CHAT_LINE;
	if (l->el)
		fputs(stopped ? "^C\n" : "\n", stdout);
	return stopped ? CHAT_LINE_STOPPED : CHAT_LINE_END;
}
