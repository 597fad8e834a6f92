/*
 * engine/cmd/serve/cmd_chat_show.c - answers as they come, thoughts apart.
 */
#include <string.h>

#include "engine/cmd/serve/cmd_chat.h"

static const char *const names[] = { "show", "dim", "hide" };

const char *chat_thinking_name(enum chat_thinking how)
{
	return names[how];
}

bool chat_thinking_parse(const char *name, enum chat_thinking *out,
			 struct err *e)
{
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(name, names[i]) == 0) {
			*out = (enum chat_thinking)i;
			return true;
		}
	return err_set(e, ERR_USAGE,
		       "thinking \"%s\"; wanted show, dim or "
		       "hide",
		       name);
}

/* Nothing goes out before the first character that is no line break. */
static void put_text(struct chat_show *s, const char *text, size_t len)
{
	for (; len && !s->printed && (*text == '\n' || *text == '\r'); len--)
		text++;
	if (!len || (s->inside && s->how == CHAT_HIDE))
		return;
	s->printed = true;
	fwrite(text, 1, len, s->to);
}

static void turn_over(struct chat_show *s)
{
	static const char *const mark[] = { "<think>", "</think>" };
	bool hide = s->how == CHAT_HIDE, dim = s->how == CHAT_DIM && s->paint;

	if (!s->inside && dim)
		fputs("\033[2m", s->to);
	if (!hide) {
		fputs(mark[s->inside], s->to);
		s->printed = true;
	}
	if (s->inside && dim)
		fputs("\033[22m", s->to);
	s->inside = !s->inside;
}

/* How many bytes at the end of a text may be the begin of a mark? */
static size_t begun_mark(const char *text, size_t len, const char *mark)
{
	size_t n = strlen(mark) - 1 < len ? strlen(mark) - 1 : len;

	while (n && memcmp(text + len - n, mark, n) != 0)
		n--;
	return n;
}

void chat_show_text(struct chat_show *s, const char *text, size_t len)
{
	size_t at = 0;

	buf_add(&s->held, text, len);
	for (;;) {
		const char *mark = s->inside ? "</think>" : "<think>";
		const char *from = s->held.data + at;
		size_t left = s->held.len - at;
		const char *found = memmem(from, left, mark, strlen(mark));
		if (!found) {
			size_t keep = begun_mark(from, left, mark);
			put_text(s, from, left - keep);
			memmove(s->held.data, s->held.data + s->held.len - keep,
				keep);
			s->held.len = keep;
			break;
		}
		put_text(s, from, (size_t)(found - from));
		turn_over(s);
		at = (size_t)(found - s->held.data) + strlen(mark);
	}
	fflush(s->to);
}

void chat_show_end(struct chat_show *s)
{
	put_text(s, s->held.data, s->held.len);
	if (s->inside && s->how == CHAT_DIM && s->paint)
		fputs("\033[22m", s->to);
	buf_fini(&s->held);
	fflush(s->to);
}
