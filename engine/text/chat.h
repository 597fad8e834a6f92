/*
 * chat - a conversation as the text that Qwen3 was trained on.
 *
 * The published chat template, written out: turns between <|im_start|> and
 * <|im_end|>, tools in the system turn, results of tools as user turns, and
 * thoughts of earlier turns left out.  Byte for byte what the template gives
 * (tests compare with its rules), for encoding without QWEN_PLAIN.
 */
#ifndef T0_ENGINE_CHAT_H
#define T0_ENGINE_CHAT_H

#include "base/base.h"

enum {
	QWEN_CHAT_PROMPT = 1 << 0,   /* ends with the assistant's turn opened */
	QWEN_CHAT_NO_THINK = 1 << 1, /* thinking off: an empty one is given */
};

/*
 * `messages`: JSON, a list of {"role": "system" | "user" | "assistant" |
 * "tool", "content", and for the assistant optionally "reasoning_content" and
 * "tool_calls": [{"name", "arguments"}] or [{"function": {...}}]}.  `tools`:
 * JSON, a list of any objects, or NULL.  Appends to `out`.
 */
bool qwen_chat(const char *messages, const char *tools, unsigned flags,
	       struct buf *out, struct err *e);
/* One user's turn, with a system turn before it unless `system` is NULL. */
void qwen_chat_one(const char *system, const char *user, unsigned flags,
		   struct buf *out);

#endif
