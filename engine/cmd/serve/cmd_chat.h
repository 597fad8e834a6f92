/*
 * engine/cmd/serve/cmd_chat.h - what the parts of t0-qwen3 chat share.
 */
#ifndef T0_ENGINE_CMD_CHAT_H
#define T0_ENGINE_CMD_CHAT_H

#include "engine/cmd/cmd.h"

/* -------------------------------------------------- cmd_chat_talk.c ---- */

struct chat_turn {
	const char *role; /* "system", "user" or "assistant" */
	char *text;	  /* UTF-8 without zero bytes */
	/*
	 * Of an answer, as the model wrote it, so that the cache has the same;
	 * none: the text's.
	 */
	struct qwen_ids ids;
};

/* A conversation.  Zero-initialise. */
struct chat_talk {
	struct chat_turn *v;
	size_t n, cap;
};

/* Text is copied; what is no UTF-8, and zero bytes, become U+FFFD. */
struct chat_turn *chat_talk_add(struct chat_talk *t, const char *role,
				const char *text, size_t len);
/* Only the first n turns stay. */
void chat_talk_truncate(struct chat_talk *t, size_t n);
void chat_talk_fini(struct chat_talk *t);
/* The system's turn becomes this; "" is none. */
void chat_talk_system(struct chat_talk *t, const char *text);
/*
 * Appends the conversation as the chat template has it, thoughts of earlier
 * answers left out, with the assistant's turn opened.
 */
bool chat_talk_ids(const struct chat_talk *t, struct qwen_encoder *x,
		   bool no_think, struct qwen_ids *out, struct err *e);
/* As JSON, [{"role", "content"}]: what generate --messages takes. */
bool chat_talk_save(const struct chat_talk *t, const char *path, struct err *e);
/* Replaces the conversation; it stays on an error. */
bool chat_talk_load(struct chat_talk *t, const char *path, struct err *e);

/* -------------------------------------------------- cmd_chat_show.c ---- */

enum chat_thinking { CHAT_SHOW, CHAT_DIM, CHAT_HIDE };
bool chat_thinking_parse(const char *name, enum chat_thinking *out,
			 struct err *e);
const char *chat_thinking_name(enum chat_thinking how);

/* Prints an answer as it comes, thoughts in their way. */
struct chat_show {
	FILE *to;
	enum chat_thinking how;
	bool paint;	 /* may there be escape sequences? */
	bool inside;	 /* a thought */
	bool printed;	 /* anything at all */
	struct buf held; /* what may be the begin of a mark */
};
void chat_show_text(struct chat_show *s, const char *text, size_t len);
/* The rest; colours are as before. */
void chat_show_end(struct chat_show *s);

/* -------------------------------------------------- cmd_chat_line.c ---- */

/*
 * Lines of a terminal, which are edited and kept in a history, or of a file.  A
 * line that ends with a backslash goes on in the next.
 */
struct chat_lines;
/* `path`: the history's file; NULL: the usual one, "": none. */
struct chat_lines *chat_lines_open(const struct cmd *c, const char *path);
void chat_lines_close(struct chat_lines *l);
bool chat_lines_terminal(const struct chat_lines *l);
enum chat_line {
	CHAT_LINE,
	CHAT_LINE_STOPPED,
	CHAT_LINE_END,
	CHAT_LINE_FAILED, /* to be read: `e` says why */
};
/* *text is good until the next call. */
enum chat_line chat_lines_next(struct chat_lines *l, const char **text,
			       struct err *e);

/* --------------------------------------------------- cmd_chat_set.c ---- */

/* "NAME VALUE" changes an option, "" prints all that can be. */
bool chat_set(struct qwen_cmd *c, const struct qwen_config *m, const char *text,
	      struct err *e);

#endif
