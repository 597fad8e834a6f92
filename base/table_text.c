/*
 * base/table_text.c - result tables for readers: text, which fits the terminal,
 * and markdown.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/table_int.h"

static const char not_measured[] = "n/a";

/* ---- what a reader sees of a cell ---- */

/* The column that says in which unit the row is; -1: there is none. */
static int unit_column(const struct table *t)
{
	for (int i = 0; i < t->n_cols; i++)
		if (!strcmp(t->head[i], "unit"))
			return i;
	return -1;
}

/* The first value of a row decides for all of them. */
static double row_scale(const struct table *t, int row, int unit,
			const char **scaled)
{
	*scaled = unit < 0 ? NULL : t->row[row][unit];
	for (int i = 0; *scaled && i < t->n_cols; i++) {
		const char *s = t->row[row][i];

		if (t->scaled[i] && s)
			return unit_scale(atof(s), *scaled, scaled);
	}
	return 1;
}

/* A table whose cells are as they are shown: its rows are of *mem. */
static void show_cells(const struct table *t, struct table *shown,
		       struct arena *mem)
{
	const int unit = unit_column(t);

	*shown = *t;
	if (unit < 0)
		return;
	shown->row = arena_alloc(mem, ((size_t)t->n_rows + 1) *
				      sizeof(*shown->row));
	for (int r = 0; r < t->n_rows; r++) {
		const char *scaled;
		const double by = row_scale(t, r, unit, &scaled);

		shown->row[r] = t->row[r];
		if (scaled == t->row[r][unit])
			continue;
		shown->row[r] = arena_alloc(mem, (size_t)t->n_cols *
						 sizeof(**shown->row));
		for (int i = 0; i < t->n_cols; i++) {
			const char *s = t->row[r][i];

			shown->row[r][i] = i == unit ? scaled :
				!t->scaled[i] || !s ? s :
				arena_printf(mem, "%.5g", atof(s) * by);
		}
	}
}

static const char *cell_text(const struct table *t, int row, int col)
{
	const char *s = row < 0 ? t->head[col] : t->row[row][col];

	return s ? s : not_measured;
}

/* One column for each character; a malformed byte is shown as one '?'. */
static size_t text_width(const char *s)
{
	size_t width = 0;

	for (; *s; width++) {
		size_t len = table_utf8_len(s);
		s += len ? len : 1;
	}
	return width;
}

/*
 * At most `width` columns of `s`, "..." at the end if that cuts it.  Control
 * characters would tear the table or drive the terminal, so they become '?'.
 */
static void add_text(struct buf *out, const char *s, size_t width)
{
	bool cut = text_width(s) > width;
	size_t dots = cut ? (width < 3 ? width : 3) : 0;

	for (size_t left = width - dots; *s && left; left--) {
		size_t len = table_utf8_len(s);
		bool plain = len > 1 || (len == 1 && !iscntrl(*s));
		if (plain)
			buf_add(out, s, len);
		else
			buf_addc(out, '?');
		s += len ? len : 1;
	}
	buf_add(out, "...", dots);
}

/* ---- which columns, and how wide ---- */

struct layout {
	size_t *width; /* [n_cols] */
	bool *left_out; /* [n_cols] */
	size_t limit;  /* of a line; 0: none */
	bool paint;
};

static size_t terminal_width(FILE *out)
{
	struct winsize size;
	int fd = fileno(out);

	if (fd < 0 || !isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) != 0)
		return 0;
	return size.ws_col;
}

static size_t line_width(const struct table *t, const struct layout *l)
{
	size_t total = 0;

	for (int i = 0; i < t->n_cols; i++)
		if (!l->left_out[i])
			total += l->width[i] + (total ? 2 : 0);
	return total;
}

static bool is_empty(const struct table *t, int col)
{
	for (int r = 0; r < t->n_rows; r++)
		if (t->row[r][col])
			return false;
	return true;
}

static bool is_constant(const struct table *t, int col)
{
	for (int r = 1; r < t->n_rows; r++)
		if (strcmp(cell_text(t, r, col), cell_text(t, 0, col)))
			return false;
	return t->n_rows > 1;
}

/* Has it cells of three words?  What has none names something. */
static bool is_prose(const struct table *t, int col)
{
	bool prose = false;

	for (int r = 0; r < t->n_rows; r++) {
		const char *blank = strchr(cell_text(t, r, col), ' ');

		prose |= blank && strchr(blank + 1, ' ');
	}
	return prose && col && !t->numeric[col];
}

/* The first column is what the row is about, and stays. */
static void leave_out_empty(const struct table *t, struct layout *l)
{
	for (int i = 1; i < t->n_cols && t->n_rows; i++)
		l->left_out[i] = is_empty(t, i);
}

static void leave_out_constant(const struct table *t, struct layout *l)
{
	for (int i = 1; i < t->n_cols; i++)
		l->left_out[i] |= is_constant(t, i);
}

/* Cuts the widest column of prose, a step at a time, until a line fits. */
static void cut_prose(const struct table *t, struct layout *l)
{
	enum { NARROWEST = 12 };

	for (size_t total = line_width(t, l); total > l->limit; total--) {
		int widest = -1;

		for (int i = 0; i < t->n_cols; i++)
			if (!l->left_out[i] && l->width[i] > NARROWEST &&
			    is_prose(t, i) &&
			    (widest < 0 || l->width[i] > l->width[widest]))
				widest = i;
		if (widest < 0)
			return;
		l->width[widest]--;
	}
}

/* ---- text ---- */

static void pad_to(struct buf *out, size_t n)
{
	for (; n; n--)
		buf_addc(out, ' ');
}

static void text_cell(const struct table *t, int row, int col, bool last,
		      const struct layout *l, struct buf *out)
{
	const char *s = cell_text(t, row, col);
	const char *sgr = !l->paint ? NULL : row < 0 ? PAINT_BOLD :
			  t->numeric[col] ? NULL : paint_word(s);
	const size_t used = text_width(s), width = l->width[col];
	const size_t pad = used < width ? width - used : 0;

	if (t->numeric[col])
		pad_to(out, pad);
	if (sgr)
		buf_adds(out, sgr);
	add_text(out, s, width);
	if (sgr)
		buf_adds(out, PAINT_OFF);
	if (!t->numeric[col] && !last)
		pad_to(out, pad);
}

/* Of the columns that `part` has, which the first is always among. */
static void text_row(const struct table *t, int row, const struct layout *l,
		     const bool *part, struct buf *out)
{
	int last = 0;

	for (int i = 0; i < t->n_cols; i++)
		last = part[i] ? i : last;
	for (int i = 0; i <= last; i++) {
		if (!part[i])
			continue;
		text_cell(t, row, i, i == last, l, out);
		if (i < last)
			buf_adds(out, "  ");
	}
	buf_addc(out, '\n');
}

/* "unit: cycle, origin: simulated", folded. */
static void text_constants(const struct table *t, const struct layout *l,
			   struct buf *out)
{
	size_t at = 0;

	for (int i = 0; i < t->n_cols; i++) {
		const char *s = t->n_rows ? cell_text(t, 0, i) : not_measured;
		const size_t width = text_width(t->head[i]) + text_width(s) + 2;

		if (!l->left_out[i] || is_empty(t, i) || !*s)
			continue;
		if (at && at + 2 + width > l->limit) {
			buf_adds(out, ",\n");
			at = 0;
		}
		if (at)
			buf_adds(out, ", ");
		buf_printf(out, "%s: ", t->head[i]);
		add_text(out, s, width);
		at += width + (at ? 2 : 0);
	}
	if (at)
		buf_addc(out, '\n');
}

/* As many columns from *next on as a line has room for; false: none is left. */
static bool next_part(const struct table *t, const struct layout *l, int *next,
		      bool *part)
{
	size_t used = l->width[0];
	bool any = t->n_cols == 1 && *next == 0;

	memset(part, 0, (size_t)t->n_cols * sizeof(*part));
	part[0] = true;
	if (*next == 0)
		*next = 1;
	for (; *next < t->n_cols; ++*next) {
		if (l->left_out[*next])
			continue;
		used += 2 + l->width[*next];
		if (any && l->limit && used > l->limit)
			return true;
		part[*next] = any = true;
	}
	return any;
}

static void text_parts(const struct table *t, const struct layout *l,
		       struct buf *out)
{
	bool *part = xcalloc((size_t)t->n_cols, sizeof(*part));
	int next = 0, n = 0;

	for (; next_part(t, l, &next, part) || !n; n++) {
		if (n)
			buf_addc(out, '\n');
		for (int row = -1; row < t->n_rows; row++)
			text_row(t, row, l, part, out);
		if (next >= t->n_cols)
			break;
	}
	free(part);
}

void table_print_text(const struct table *t, FILE *file, struct buf *out)
{
	struct arena mem = { 0 };
	struct table shown;
	struct layout l = {
		.width = xcalloc((size_t)t->n_cols, sizeof(*l.width)),
		.left_out = xcalloc((size_t)t->n_cols, sizeof(*l.left_out)),
		.limit = terminal_width(file), .paint = paint_wanted(file),
	};

	show_cells(t, &shown, &mem);
	for (int row = -1; row < t->n_rows; row++)
		for (int i = 0; i < t->n_cols; i++) {
			size_t w = text_width(cell_text(&shown, row, i));
			if (w > l.width[i])
				l.width[i] = w;
		}
	if (l.limit)
		leave_out_empty(&shown, &l);
	if (l.limit && line_width(&shown, &l) > l.limit) {
		leave_out_constant(&shown, &l);
		text_constants(&shown, &l, out);
		cut_prose(&shown, &l);
	}
	text_parts(&shown, &l, out);
	free(l.width);
	free(l.left_out);
	arena_fini(&mem);
}

/* ---- markdown (GitHub's tables) ---- */

static void markdown_cell(const char *s, struct buf *out)
{
	for (; *s; s++) {
		if (strchr("|\\`*_<[", *s))
			buf_addc(out, '\\');
		buf_addc(out, iscntrl((unsigned char)*s) ? ' ' : *s);
	}
}

void table_print_markdown(const struct table *t, struct buf *out)
{
	struct arena mem = { 0 };
	struct table shown;

	show_cells(t, &shown, &mem);
	for (int row = -1; row < t->n_rows; row++) {
		for (int i = 0; i < t->n_cols; i++) {
			buf_adds(out, i ? " | " : "| ");
			markdown_cell(cell_text(&shown, row, i), out);
		}
		buf_adds(out, " |\n");
		for (int i = 0; row < 0 && i < t->n_cols; i++)
			buf_adds(out, t->numeric[i] ? "| ---: " : "| --- ");
		if (row < 0)
			buf_adds(out, "|\n");
	}
	arena_fini(&mem);
}
