/*
 * results/db/shard.c - one of N equal parts of a work, dealt by content.
 */
#include "results/db/res.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static bool is_label(const char *s)
{
	return *s && strlen(s) < RES_SHARD_LABEL &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			 "0123456789-_.") == strlen(s);
}

/* "I" or "N", from 1; 0: neither. */
static unsigned parse_count(const char **s)
{
	unsigned v = 0;

	for (; **s >= '0' && **s <= '9' && v <= RES_SHARDS; ++*s)
		v = v * 10 + (unsigned)(**s - '0');
	return v <= RES_SHARDS ? v : 0;
}

bool res_shard_parse(const char *text, struct res_shard *s, struct err *e)
{
	const char *at = text ? text : getenv(RES_SHARD);

	*s = (struct res_shard){ 0 };
	if (!at || !*at)
		return true;
	text = at;
	s->index = parse_count(&at);
	bool ok = *at == '/';
	if (ok)
		at++;
	s->count = parse_count(&at);
	ok = ok && s->index && s->index <= s->count;
	if (ok && *at == ':' && is_label(at + 1))
		snprintf(s->label, sizeof(s->label), "%s", at + 1);
	else if (*at)
		ok = false;
	return ok || err_set(e, ERR_USAGE, "shard \"%s\": wanted I/N, such as "
			     "2/7, with N up to %d, and :NAME behind it for a "
			     "work that is done more than once", text,
			     RES_SHARDS);
}

bool res_shard_has(const struct res_shard *s, const char *content)
{
	return !s->count ||
	       XXH3_64bits(content, strlen(content)) % s->count ==
		       s->index - 1;
}

void res_shard_print(const struct res_shard *s, const char *work,
		     char out[RES_SHARD_TEXT])
{
	snprintf(out, RES_SHARD_TEXT, "%u/%u%s%s", s->index, s->count,
		 *s->label ? ":" : "", s->label);
	if (work)
		snprintf(out + strlen(out), RES_SHARD_TEXT - strlen(out),
			 "#%016llx", (unsigned long long)
			 XXH3_64bits(work, strlen(work)));
}

void res_shard_inputs(struct buf *out, const char *inputs,
		      const struct res_shard *s, const char *work)
{
	char text[RES_SHARD_TEXT];
	size_t len = strlen(inputs);

	buf_adds(out, inputs);
	if (!s || !s->count)
		return;
	res_shard_print(s, work, text);
	while (len && inputs[len - 1] != '}')
		len--;
	out->len = len ? len - 1 : 0;
	buf_printf(out, "%s\"shard\":\"%s\"}",
		   strspn(inputs, "{ ") < out->len ? "," : "", text);
}
