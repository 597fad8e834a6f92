/*
 * engine/text/detokenize.c - tokens to text, a whole character at a time.
 */
#include <string.h>

#include "engine/text/text.h"

/* Bytes of the character that begins with `c`; 1 for what begins none. */
static unsigned length_of(unsigned char c)
{
	if (c >= 0xc2 && c <= 0xdf)
		return 2;
	if (c >= 0xe0 && c <= 0xef)
		return 3;
	return c >= 0xf0 && c <= 0xf4 ? 4 : 1;
}

static void byte_put(struct qwen_detokenizer *d, char c, struct buf *out)
{
	bool follows = ((unsigned char)c & 0xc0) == 0x80;

	if (d->n_held && !follows) /* cut short: never complete */
		qwen_detokenize_end(d, out);
	d->held[d->n_held++] = c;
	if (d->n_held == length_of((unsigned char)d->held[0]))
		qwen_detokenize_end(d, out);
}

void qwen_detokenize(struct qwen_detokenizer *d, const struct qwen_tokenizer *t,
		     uint32_t id, struct buf *out)
{
	bool special;
	size_t len;
	const char *s = qwen_token_bytes(t, id, &len, &special);

	if (!s || (special && d->skip_special))
		return;
	for (size_t i = 0; i < len; i++)
		byte_put(d, s[i], out);
}

void qwen_detokenize_end(struct qwen_detokenizer *d, struct buf *out)
{
	buf_add(out, d->held, d->n_held);
	d->n_held = 0;
}
