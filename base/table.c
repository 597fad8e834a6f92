/*
 * base/table.c - result tables: their cells, and as JSON or CSV.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/table_int.h"
#include "base/vec.h"

void table_init(struct table *t, const char *columns)
{
	*t = (struct table){ .n_cols = 1 };
	for (const char *s = columns; *s; s++)
		t->n_cols += *s == ',';
	size_t n = (size_t)t->n_cols;
	t->head = arena_alloc(&t->mem, n * sizeof(*t->head));
	t->numeric = arena_alloc(&t->mem, n * sizeof(*t->numeric));
	t->scaled = arena_alloc(&t->mem, n * sizeof(*t->scaled));
	for (int i = 0; i < t->n_cols; i++) {
		size_t len = strcspn(columns, ",");
		t->scaled[i] = *columns == '~';
		t->numeric[i] = *columns == '#' || t->scaled[i];
		int skip = t->numeric[i];
		t->head[i] = arena_printf(&t->mem, "%.*s", (int)len - skip,
					  columns + skip);
		columns += len + 1;
	}
}

void table_row(struct table *t)
{
	VEC_GROW(t->row, t->n_rows, 1, t->cap_rows);
	t->row[t->n_rows++] =
		arena_alloc(&t->mem, (size_t)t->n_cols * sizeof(**t->row));
}

void table_cell(struct table *t, int col, const char *fmt, ...)
{
	char small[256];
	va_list ap;

	if (t->n_rows == 0 || col < 0 || col >= t->n_cols)
		BUG("table_cell: column %d of %d, %d rows", col, t->n_cols,
		    t->n_rows);
	va_start(ap, fmt);
	int n = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	if (n < 0)
		BUG("table_cell: bad format \"%s\"", fmt);
	char *s = arena_alloc(&t->mem, (size_t)n + 1);
	if ((size_t)n < sizeof(small)) {
		memcpy(s, small, (size_t)n + 1);
	} else {
		va_start(ap, fmt);
		vsnprintf(s, (size_t)n + 1, fmt, ap);
		va_end(ap);
	}
	t->row[t->n_rows - 1][col] = s;
}

void table_fini(struct table *t)
{
	free(t->row);
	arena_fini(&t->mem);
	*t = (struct table){ 0 };
}

/*
 * Length in bytes of the UTF-8 sequence at `s`, 0 if it is malformed
 * (Unicode 15, table 3-7: no overlong forms, no surrogates, at most U+10FFFF).
 */
size_t table_utf8_len(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned char low = 0x80, high = 0xbf; /* bounds of the second byte */
	size_t len;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf) {
		len = 2;
	} else if ((s[0] & 0xf0) == 0xe0) {
		len = 3;
		if (s[0] == 0xe0)
			low = 0xa0;
		else if (s[0] == 0xed)
			high = 0x9f;
	} else if (s[0] >= 0xf0 && s[0] <= 0xf4) {
		len = 4;
		if (s[0] == 0xf0)
			low = 0x90;
		else if (s[0] == 0xf4)
			high = 0x8f;
	} else {
		return 0;
	}
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

/* ---- JSON (RFC 8259) ---- */

static const char *skip_digits(const char *s)
{
	while (isdigit((unsigned char)*s))
		s++;
	return s;
}

/* Is `s` a number by the grammar of JSON?  "0x10", "inf" and "007" are not. */
static bool is_json_number(const char *s)
{
	s += *s == '-';
	const char *end = skip_digits(s);
	if (end == s || (*s == '0' && end != s + 1))
		return false;
	s = end;
	if (*s == '.') {
		end = skip_digits(++s);
		if (end == s)
			return false;
		s = end;
	}
	if (*s == 'e' || *s == 'E') {
		s++;
		s += *s == '+' || *s == '-';
		end = skip_digits(s);
		if (end == s)
			return false;
		s = end;
	}
	return *s == '\0';
}

static void json_string(const char *s, struct buf *out)
{
	buf_addc(out, '"');
	while (*s) {
		size_t len = table_utf8_len(s);
		if (len == 0)
			buf_adds(out, "\\ufffd");
		else if (*s == '"' || *s == '\\')
			buf_printf(out, "\\%c", *s);
		else if (*s == '\n')
			buf_adds(out, "\\n");
		else if (*s == '\t')
			buf_adds(out, "\\t");
		else if (len == 1 && (unsigned char)*s < 0x20)
			buf_printf(out, "\\u%04x", (unsigned char)*s);
		else
			buf_add(out, s, len);
		s += len ? len : 1;
	}
	buf_addc(out, '"');
}

static void print_json(const struct table *t, struct buf *out)
{
	buf_addc(out, '[');
	for (int row = 0; row < t->n_rows; row++) {
		buf_adds(out, row ? ",\n  {" : "\n  {");
		for (int i = 0; i < t->n_cols; i++) {
			const char *s = t->row[row][i];
			if (i)
				buf_adds(out, ", ");
			json_string(t->head[i], out);
			buf_adds(out, ": ");
			if (!s)
				buf_adds(out, "null");
			else if (t->numeric[i] && is_json_number(s))
				buf_adds(out, s);
			else
				json_string(s, out);
		}
		buf_addc(out, '}');
	}
	buf_adds(out, t->n_rows ? "\n]\n" : "]\n");
}

/* ---- CSV (RFC 4180) ---- */

/* NULL is an empty field; an empty string is quoted, so that they differ. */
static void csv_field(const char *s, struct buf *out)
{
	if (!s)
		return;
	if (*s && !strpbrk(s, ",\"\r\n")) {
		buf_adds(out, s);
		return;
	}
	buf_addc(out, '"');
	for (; *s; s++) {
		if (*s == '"')
			buf_addc(out, '"');
		buf_addc(out, *s);
	}
	buf_addc(out, '"');
}

static void print_csv(const struct table *t, struct buf *out)
{
	for (int row = -1; row < t->n_rows; row++) {
		const char **cell = row < 0 ? t->head : t->row[row];
		for (int i = 0; i < t->n_cols; i++) {
			if (i)
				buf_addc(out, ',');
			csv_field(cell[i], out);
		}
		buf_adds(out, "\r\n");
	}
}

bool table_print(const struct table *t, enum table_format f, FILE *out,
		 struct err *e)
{
	struct buf text = { 0 };

	if (f == TABLE_JSON)
		print_json(t, &text);
	else if (f == TABLE_CSV)
		print_csv(t, &text);
	else if (f == TABLE_MARKDOWN)
		table_print_markdown(t, &text);
	else
		table_print_text(t, out, &text);
	bool done = fwrite(text.data, 1, text.len, out) == text.len &&
		    fflush(out) == 0;
	int errnum = errno;
	buf_fini(&text);
	if (done)
		return true;
	return out == stdout ? stdout_check(e) :
			       err_sys(e, ERR_IO, errnum, "table: cannot write");
}
