/*
 * engine/cmd/cmd_tokenize.c - t0-qwen3 tokenize: text to ids, and back.
 */
#include <ctype.h>
#include <string.h>
#include <utf8proc.h>

#include "engine/cmd/cmd.h"

struct tokenizing {
	struct qwen_cmd *c;
	struct qwen_tokenizer *tok;
	struct qwen_encoder *encoder;
	struct table table; /* of tokens, with offsets */
	bool tabled;
};

/* ---- text to ids ---- */

static void add_number(struct buf *out, uint32_t v)
{
	char digits[10];
	unsigned n = sizeof(digits);

	do
		digits[--n] = (char)('0' + v % 10);
	while (v /= 10);
	buf_add(out, digits + n, sizeof(digits) - n);
}

/* Control characters, and bytes that are none of UTF-8, are escaped. */
static void add_escaped(struct buf *out, const char *s, size_t n)
{
	const utf8proc_uint8_t *u = (const utf8proc_uint8_t *)s;

	for (size_t i = 0; i < n;) {
		utf8proc_int32_t c;
		utf8proc_ssize_t len =
			utf8proc_iterate(u + i, (utf8proc_ssize_t)(n - i), &c);

		if (len > 1 && c > 0x9f)
			buf_add(out, s + i, (size_t)len);
		else if (u[i] == '\n')
			buf_adds(out, "\\n");
		else if (u[i] == '\\')
			buf_adds(out, "\\\\");
		else if (len == 1 && u[i] >= ' ' && u[i] < 0x7f)
			buf_addc(out, s[i]);
		else
			buf_printf(out, "\\x%02x", u[i]);
		i += len > 1 && c > 0x9f ? (size_t)len : 1;
	}
}

/* A row for each token; returns the bytes of all. */
static size_t add_rows(struct tokenizing *z, const struct qwen_ids *ids)
{
	struct buf text = { 0 };
	size_t at = 0, n = 0;

	for (size_t i = 0; i < ids->n; i++) {
		const char *s = qwen_token_bytes(z->tok, ids->v[i], &n, NULL);

		text.len = 0;
		add_escaped(&text, s, n);
		table_row(&z->table);
		table_cell(&z->table, 0, "%zu", at);
		table_cell(&z->table, 1, "%zu", at + n);
		table_cell(&z->table, 2, "%u", ids->v[i]);
		table_cell(&z->table, 3, "%.*s", (int)text.len, text.data);
		at += n;
	}
	buf_fini(&text);
	return at;
}

static size_t print_ids(struct tokenizing *z, const struct qwen_ids *ids)
{
	struct buf line = { 0 };
	size_t bytes = 0, n = 0;

	for (size_t i = 0; i < ids->n; i++) {
		qwen_token_bytes(z->tok, ids->v[i], &n, NULL);
		bytes += n;
		if (i)
			buf_addc(&line, ' ');
		add_number(&line, ids->v[i]);
	}
	buf_addc(&line, '\n');
	fwrite(line.data, 1, line.len, z->c->cmd.out);
	buf_fini(&line);
	return bytes;
}

static bool encode_text(struct tokenizing *z, const char *name,
			const struct buf *text, struct err *e)
{
	struct qwen_ids ids = { 0 };
	bool ok = qwen_encode(z->encoder, text->data ? text->data : "",
			      text->len, z->c->plain ? QWEN_PLAIN : 0, &ids, e);

	if (ok) {
		size_t bytes = z->tabled ? add_rows(z, &ids) :
					   print_ids(z, &ids);
		cmd_remark(&z->c->cmd, "%s: %zu tokens of %zu bytes", name,
			   ids.n, text->len);
		if (bytes != text->len && z->tabled)
			cmd_remark(&z->c->cmd,
				   "%s: was brought to Unicode "
				   "form NFC; offsets are of its %zu bytes "
				   "there",
				   name, bytes);
	}
	qwen_ids_fini(&ids);
	return ok;
}

/* ---- ids to text ---- */

/* The number at *at, which it steps behind; false: there is none. */
static bool read_id(const char **at, const char *end, uint64_t *id)
{
	const char *p = *at;

	for (*id = 0; p < end && isdigit((unsigned char)*p); p++)
		*id = *id > UINT32_MAX ? *id : *id * 10 + (uint64_t)(*p - '0');
	bool some = p > *at;
	*at = p;
	return some;
}

static bool decode_text(struct tokenizing *z, const char *name,
			const struct buf *text, struct err *e)
{
	struct qwen_detokenizer d = { 0 };
	const char *begin = text->data ? text->data : "", *at = begin;
	const char *end = begin + text->len;
	uint32_t size = qwen_tokenizer_size(z->tok);
	struct buf out = { 0 };
	bool ok = true;

	while (ok && at < end) {
		const char *from = at;
		size_t n;
		uint64_t id;

		if (strchr(" \t\r\n,[]", *at) && *at)
			at++;
		else if (read_id(&at, end, &id) && id < size &&
			 qwen_token_bytes(z->tok, (uint32_t)id, &n, NULL))
			qwen_detokenize(&d, z->tok, (uint32_t)id, &out);
		else
			ok = err_set(e, ERR_INPUT,
				     "%s: at byte %zu: no token; "
				     "wanted ids from 0 to %u with spaces or "
				     "commas between",
				     name, (size_t)(from - begin), size - 1);
	}
	qwen_detokenize_end(&d, &out);
	if (ok)
		fwrite(out.data, 1, out.len, z->c->cmd.out);
	buf_fini(&out);
	return ok;
}

/* ---- the command ---- */

static bool take_file(struct tokenizing *z, const char *path, struct err *e)
{
	const char *name = strcmp(path, "-") ? path : "standard input";
	struct buf text = { 0 };
	bool ok = file_read(path, 0, &text, e) &&
		  (z->c->detokenize ? decode_text(z, name, &text, e) :
				      encode_text(z, name, &text, e));

	buf_fini(&text);
	return ok;
}

static bool take_prompt(struct tokenizing *z, struct err *e)
{
	struct buf text = { 0 };

	buf_adds(&text, z->c->prompt);
	bool ok = z->c->detokenize ? decode_text(z, "--prompt", &text, e) :
				     encode_text(z, "--prompt", &text, e);
	buf_fini(&text);
	return ok;
}

static bool options_check(const struct tokenizing *z, int files, struct err *e)
{
	if (z->c->prompt && files)
		return err_set(e, ERR_USAGE,
			       "--prompt and %d files; wanted one "
			       "or the other",
			       files);
	if (z->c->detokenize && z->tabled)
		return err_set(e, ERR_USAGE,
			       "--detokenize with --offsets, --json "
			       "or --csv: a text has no columns");
	return !z->tabled || files < 2 ||
	       err_set(e, ERR_USAGE, "offsets in %d files; wanted one", files);
}

bool qwen_cmd_tokenize(struct cmd *r, struct err *e)
{
	struct qwen_cmd *c = (struct qwen_cmd *)r;
	struct tokenizing z = {
		.c = c, .tabled = c->offsets || c->cmd.format != TABLE_TEXT
	};

	if (!options_check(&z, r->argc, e))
		return false;
	if (!c->model)
		return err_set(e, ERR_USAGE,
			       "no tokenizer; wanted --model DIR, "
			       "a folder or GGUF file that has one");
	z.tok = qwen_tokenizer_load(c->model, e);
	if (!z.tok)
		return false;
	z.encoder = qwen_encoder_new(z.tok);
	qwen_encoder_stop(z.encoder, z.c->stop);
	table_init(&z.table, "#start,#end,#id,token");
	bool ok = true;
	if (c->prompt)
		ok = take_prompt(&z, e);
	else if (!r->argc)
		ok = take_file(&z, "-", e);
	for (int i = 0; ok && i < r->argc; i++)
		ok = take_file(&z, r->argv[i], e);
	if (ok && z.tabled)
		ok = cmd_table(&c->cmd, &z.table, e);
	table_fini(&z.table);
	qwen_encoder_free(z.encoder);
	qwen_tokenizer_free(z.tok);
	return ok;
}
