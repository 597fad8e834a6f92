/*
 * engine/text/coherence_self.c - built-in streams that the detector must tell
 * apart.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "engine/text/text.h"

/* Ids of a vocabulary of 256 bytes and six added tokens. */
enum { END = 256, START, THINK, UNTHINK, CALL, UNCALL };
static const char added[] =
	"[{\"id\":256,\"content\":\"<|im_end|>\",\"special\":true},"
	"{\"id\":257,\"content\":\"<|im_start|>\",\"special\":true},"
	"{\"id\":258,\"content\":\"<think>\",\"special\":false},"
	"{\"id\":259,\"content\":\"</think>\",\"special\":false},"
	"{\"id\":260,\"content\":\"<tool_call>\",\"special\":false},"
	"{\"id\":261,\"content\":\"</tool_call>\",\"special\":false}]";

#define STREAM_MAX 512

/*
 * A stream is made of `varied` tokens without order, then `loop` tokens of
 * period `period`, then `text`, in which '<' '>' '[' ']' '|' '$' stand for
 * <think> </think> <tool_call> </tool_call> <|im_start|> <|im_end|>.
 */
static const struct self {
	const char *name;
	unsigned varied, loop, period;
	const char *text;
	int broken; /* the limit that must be, or -1 */
} self[] = {
	{ "varied text", 400, 0, 0, "$", -1 },
	{ "a short answer", 0, 0, 0, "Yes.$", -1 },
	{ "a thought", 0, 0, 0, "<Let me see.>Paris$", -1 },
	{ "a call", 0, 0, 0,
	  "[{\"name\":\"f\",\"arguments\":{\"x\":1}}]$", -1 },
	{ "a line of dashes", 200, 40, 1, "$", -1 },
	{ "nothing", 0, 0, 0, "$", QWEN_LIMIT_min_tokens },
	{ "one token for ever", 0, 300, 1, "", QWEN_LIMIT_unique_share },
	{ "a loop of 1 in text", 200, 60, 1, "", QWEN_LIMIT_loop_tokens },
	{ "a loop of 5", 150, 100, 5, "", QWEN_LIMIT_loop_tokens },
	{ "a loop of 17", 150, 120, 17, "", QWEN_LIMIT_loop_tokens },
	{ "a loop of 64", 100, 300, 64, "", QWEN_LIMIT_loop_tokens },
	{ "a leaked special token", 100, 0, 0, "|user$",
	  QWEN_LIMIT_special_tokens },
	{ "an end in the middle", 10, 0, 0, "a$b$", QWEN_LIMIT_special_tokens },
	{ "an empty thought", 0, 0, 0, "<\n\n>Paris$",
	  QWEN_LIMIT_empty_think },
	{ "a broken call", 0, 0, 0, "[{\"name\":\"f\",]$",
	  QWEN_LIMIT_bad_tool_calls },
	{ "a call without arguments", 0, 0, 0, "[{\"name\":\"f\"}]$",
	  QWEN_LIMIT_bad_tool_calls },
	{ "a call that does not end", 0, 0, 0,
	  "[{\"name\":\"f\",\"arguments\":{}}$", QWEN_LIMIT_bad_tool_calls },
};

static uint32_t id_of(char c)
{
	static const char mark[] = "$|<>[]";
	const char *at = strchr(mark, c);

	return at ? END + (uint32_t)(at - mark) : (unsigned char)c;
}

static size_t stream_make(const struct self *s, uint32_t *id)
{
	uint32_t x = 12345;
	size_t n = 0;

	for (unsigned i = 0; i < s->varied; i++) {
		x = x * 1664525 + 1013904223;
		id[n++] = x >> 16 & 127;
	}
	for (unsigned i = 0; i < s->loop; i++)
		id[n++] = 130 + i % s->period;
	for (const char *p = s->text; *p; p++)
		id[n++] = id_of(*p);
	return n;
}

/* A vocabulary in which byte b is token b: letters as GPT-2 writes bytes. */
static struct qwen_tokenizer *bytes_only(struct err *e)
{
	json_t *vocab = json_object();
	unsigned next = 256;

	for (unsigned b = 0; b < 256; b++) {
		bool itself = (b >= '!' && b <= '~') ||
			      (b >= 0xa1 && b != 0xad);
		unsigned c = itself ? b : next++;
		char s[3] = { (char)c, 0, 0 };
		if (c >= 0x80) {
			s[0] = (char)(0xc0 | c >> 6);
			s[1] = (char)(0x80 | (c & 0x3f));
		}
		json_object_set_new(vocab, s, json_integer(b));
	}
	char *text = json_dumps(vocab, 0);
	struct qwen_source src = { .vocab = text, .merges = "",
				   .added = added };
	struct qwen_tokenizer *t = qwen_tokenizer_parse(&src, e);
	free(text);
	json_decref(vocab);
	return t;
}

static bool self_check(const struct self *s, const struct qwen_tokenizer *t,
		       struct err *e)
{
	uint32_t id[STREAM_MAX], stop = END;
	struct qwen_stream stream = { id, stream_make(s, id), &stop, 1, true };
	struct qwen_limits limits;
	struct qwen_coherence c;

	qwen_limits_init(&limits);
	qwen_coherence_check(&c, &stream, t, &limits);
	if (s->broken < 0 && !c.passed)
		return err_set(e, ERR_INPUT, "self-test: %s was refused",
			       s->name);
	if (s->broken >= 0 && !c.broken[s->broken])
		return err_set(e, ERR_INPUT, "self-test: %s passed %s", s->name,
			       qwen_limit_name((enum qwen_limit)s->broken));
	return true;
}

bool qwen_coherence_selftest(struct err *e)
{
	struct qwen_tokenizer *t = bytes_only(e);
	bool ok = t != NULL;

	for (size_t i = 0; ok && i < ARRAY_SIZE(self); i++)
		ok = self_check(&self[i], t, e);
	qwen_tokenizer_free(t);
	return ok;
}
