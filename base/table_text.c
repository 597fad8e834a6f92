/*
 * base/table_text.c - result tables for readers: text, which fits the terminal,
 * and markdown.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

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

/*
 * Control characters would tear the table or drive the terminal, so they become
 * '?', as malformed bytes do.
 */
static void add_text(struct buf *out, const char *s, size_t len)
{
	for (const char *end = s + len; s < end;) {
		const size_t n = table_utf8_len(s);

		if (n > 1 || (n == 1 && !iscntrl((unsigned char)*s)))
			buf_add(out, s, n);
		else
			buf_addc(out, '?');
		s += n ? n : 1;
	}
}

/* ---- which columns, and how wide ---- */

/*
 * Prose is folded to no less, nor into many lines while there is room for few;
 * a narrower column is never folded.
 */
enum { NARROWEST = 16, FEW = 3, WIDE = 40 };

struct layout {
	size_t *width;	/* [n_cols] in full */
	size_t *least;	/* [n_cols] and folded to few lines */
	size_t *word;	/* [n_cols] and folded to its longest word */
	bool *left_out; /* [n_cols] */
	size_t limit;	/* of a line; 0: none */
	int second;	/* names rows beside the first; 0: nothing does */
	bool paint;
};

static bool is_empty(const struct table *t, int col)
{
	for (int r = 0; r < t->n_rows; r++)
		if (t->row[r][col] && *t->row[r][col])
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

static size_t longest_word(const char *s)
{
	size_t longest = 0;

	for (size_t width = 0; *s;) {
		const size_t len = table_utf8_len(s);

		width = *s == ' ' ? 0 : width + 1;
		longest = width > longest ? width : longest;
		s += len ? len : 1;
	}
	return longest;
}

static void measure_columns(const struct table *t, struct layout *l)
{
	for (int i = 0; i < t->n_cols; i++) {
		const bool prose = is_prose(t, i);
		size_t least = NARROWEST;

		for (int row = -1; row < t->n_rows; row++) {
			const char *s = cell_text(t, row, i);
			const size_t width = text_width(s);
			const size_t word = prose ? longest_word(s) : width;

			if (width > l->width[i])
				l->width[i] = width;
			if (word > least)
				least = word;
		}
		l->word[i] = least < l->width[i] ? least : l->width[i];
		const size_t few = l->width[i] / FEW;

		if (prose && few > least)
			least = few < WIDE ? few : WIDE;
		l->least[i] = least < l->width[i] ? least : l->width[i];
	}
}

static size_t line_width(const struct table *t, const struct layout *l)
{
	size_t total = 0;

	for (int i = 0; i < t->n_cols; i++)
		if (!l->left_out[i])
			total += l->width[i] + (total ? 2 : 0);
	return total;
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

struct names {
	const struct table *t;
	int col;
};

static int compare_names(const void *a, const void *b, void *names)
{
	const struct names *n = names;
	const int r = *(const int *)a, s = *(const int *)b;
	const int first = strcmp(cell_text(n->t, r, 0), cell_text(n->t, s, 0));

	return first ? first :
		       strcmp(cell_text(n->t, r, n->col),
			      cell_text(n->t, s, n->col));
}

/* Has each row other cells than all others in the first column and `col`? */
static bool names_rows(const struct table *t, int col)
{
	struct names n = { t, col };
	int *rows = xcalloc((size_t)t->n_rows, sizeof(*rows));
	bool all = true;

	for (int r = 0; r < t->n_rows; r++)
		rows[r] = r;
	qsort_r(rows, (size_t)t->n_rows, sizeof(*rows), compare_names, &n);
	for (int r = 1; r < t->n_rows; r++)
		all &= compare_names(&rows[r - 1], &rows[r], &n) != 0;
	free(rows);
	return all;
}

/* A column that tells rows apart where the first does not. */
static int second_name(const struct table *t, const struct layout *l)
{
	for (int i = 0; i < t->n_cols; i++)
		if (!l->left_out[i] && names_rows(t, i) &&
		    l->width[0] + l->width[i] < l->limit / 2)
			return i;
	return 0;
}

/* ---- text ---- */

static void pad_to(struct buf *out, size_t n)
{
	for (; n; n--)
		buf_addc(out, ' ');
}

/* Bytes of `s` that its column shows in one line. */
static size_t cell_length(const char *s, size_t width)
{
	return text_width(s) > width ? fold_length(s, width) : strlen(s);
}

/* A line of a cell; returns what the next ones have. */
static const char *text_cell(const struct table *t, int col, const char *s,
			     const char *sgr, size_t width, bool last,
			     struct buf *out)
{
	const size_t len = cell_length(s, width);
	struct buf shown = { 0 };

	add_text(&shown, s, len);
	const size_t used = len ? text_width(shown.data) : 0;
	const size_t pad = used < width ? width - used : 0;

	if (t->numeric[col])
		pad_to(out, pad);
	if (sgr && len)
		buf_adds(out, sgr);
	buf_add(out, shown.data, shown.len);
	if (sgr && len)
		buf_adds(out, PAINT_OFF);
	if (!t->numeric[col] && !last)
		pad_to(out, pad);
	buf_fini(&shown);
	return s + len + strspn(s + len, " ");
}

/* A row's columns of the part, in as many lines as they are folded to. */
static void text_row(const struct table *t, int row, const struct layout *l,
		     const size_t *width, const char **rest, struct buf *out)
{
	int last = 0;
	bool more = true, folded = false;

	for (int i = 0; i < t->n_cols; i++) {
		rest[i] = cell_text(t, row, i);
		last = width[i] ? i : last;
	}
	while (more) {
		more = false;
		for (int i = 0; i <= last; i++) {
			const char *sgr = !l->paint	? NULL :
					  row < 0	? PAINT_BOLD :
					  t->numeric[i] ? NULL :
							  paint_word(rest[i]);

			if (!width[i])
				continue;
			rest[i] = text_cell(t, i, rest[i], sgr, width[i],
					    i == last, out);
			more |= *rest[i] != '\0';
			if (i < last)
				buf_adds(out, "  ");
		}
		while (folded && out->len && out->data[out->len - 1] == ' ')
			out->data[--out->len] = '\0';
		buf_addc(out, '\n');
		folded = true;
	}
}

/* "unit: cycle, origin: simulated", folded. */
static void text_constants(const struct table *t, const struct layout *l,
			   struct buf *out)
{
	struct buf line = { 0 };
	size_t at = 0;

	for (int i = 0; i < t->n_cols; i++) {
		const char *s = t->n_rows ? cell_text(t, 0, i) : not_measured;

		if (!l->left_out[i] || is_empty(t, i))
			continue;
		buf_reset(&line);
		buf_printf(&line, "%s: ", t->head[i]);
		add_text(&line, s, strlen(s));
		const size_t width = text_width(line.data);

		if (at)
			buf_adds(out, at + 2 + width > l->limit ? ",\n" : ", ");
		at = at && at + 2 + width <= l->limit ? at + 2 + width : width;
		fold_text(out, line.data, l->limit, 2);
	}
	if (at)
		buf_addc(out, '\n');
	buf_fini(&line);
}

/* One row: its values below each other. */
static void text_list(const struct table *t, const struct layout *l,
		      struct buf *out)
{
	size_t names = 0;

	for (int i = 0; i < t->n_cols; i++)
		if (!l->left_out[i] && text_width(t->head[i]) > names)
			names = text_width(t->head[i]);
	const size_t room = l->limit > names + 2 + NARROWEST ?
				    l->limit - names - 2 :
				    NARROWEST;

	for (int i = 0; i < t->n_cols; i++) {
		const char *s = cell_text(t, 0, i), *head = t->head[i];

		while (!l->left_out[i] && *s) {
			const size_t len = cell_length(s, room);

			buf_adds(out, head);
			pad_to(out, names + 2 - text_width(head));
			add_text(out, s, len);
			buf_addc(out, '\n');
			s += len + strspn(s + len, " ");
			head = "";
		}
	}
}

/* Narrows the widest column of prose, a step at a time, until a line fits. */
static void share_room(const struct table *t, const struct layout *l,
		       size_t *width)
{
	size_t used = 0;

	for (int i = 0; i < t->n_cols; i++)
		if (width[i]) {
			width[i] = l->width[i];
			used += l->width[i] + (i ? 2 : 0);
		}
	for (int widest = 0; l->limit && used > l->limit && widest >= 0;) {
		widest = -1;
		for (int i = 0; i < t->n_cols; i++)
			if (width[i] > l->word[i] &&
			    (widest < 0 || width[i] > width[widest]))
				widest = i;
		if (widest >= 0) {
			width[widest]--;
			used--;
		}
	}
}

/*
 * As many columns from *next on as a line has room for, and how wide each is
 * there; false: none is left.
 */
static bool next_part(const struct table *t, const struct layout *l, int *next,
		      size_t *width)
{
	const bool again = *next > 0;
	size_t used = 0;
	bool any = false;

	memset(width, 0, (size_t)t->n_cols * sizeof(*width));
	for (int i = 0; i < t->n_cols; i++) {
		const bool name = i == 0 || (again && i == l->second);

		if (l->left_out[i] || (i < *next && !name))
			continue;
		if (any && l->limit && used + 2 + l->least[i] > l->limit)
			break;
		if (i >= *next) {
			*next = i + 1;
			any |= i > 0 || t->n_cols == 1;
		}
		width[i] = l->least[i];
		used += l->least[i] + (i ? 2 : 0);
	}
	share_room(t, l, width);
	return any;
}

/* Has the row something but its name in this part? */
static bool has_values(const struct table *t, int row, const struct layout *l,
		       const size_t *width)
{
	for (int i = 1; i < t->n_cols; i++)
		if (width[i] && i != l->second && t->row[row][i])
			return true;
	return false;
}

static void text_parts(const struct table *t, const struct layout *l,
		       struct buf *out)
{
	size_t *width = xcalloc((size_t)t->n_cols, sizeof(*width));
	const char **rest = xcalloc((size_t)t->n_cols, sizeof(*rest));
	int next = 0;

	for (int n = 0; next_part(t, l, &next, width) || !n; n++) {
		if (n)
			buf_addc(out, '\n');
		for (int row = -1; row < t->n_rows; row++)
			if (!n || row < 0 || has_values(t, row, l, width))
				text_row(t, row, l, width, rest, out);
		if (!t->n_rows)
			break;
	}
	free(width);
	free(rest);
}

void table_print_text(const struct table *t, FILE *file, struct buf *out)
{
	struct arena mem = { 0 };
	struct table shown;
	struct layout l = {
		.width = xcalloc((size_t)t->n_cols, sizeof(*l.width)),
		.least = xcalloc((size_t)t->n_cols, sizeof(*l.least)),
		.word = xcalloc((size_t)t->n_cols, sizeof(*l.word)),
		.left_out = xcalloc((size_t)t->n_cols, sizeof(*l.left_out)),
		.limit = terminal_width(file),
		.paint = paint_wanted(file),
	};

	show_cells(t, &shown, &mem);
	measure_columns(&shown, &l);
	if (l.limit)
		leave_out_empty(&shown, &l);
	const bool narrow = l.limit && line_width(&shown, &l) > l.limit;

	if (narrow && t->n_rows == 1) {
		text_list(&shown, &l, out);
	} else {
		if (narrow) {
			leave_out_constant(&shown, &l);
			text_constants(&shown, &l, out);
			l.second = second_name(&shown, &l);
		}
		text_parts(&shown, &l, out);
	}
	free(l.width);
	free(l.least);
	free(l.word);
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
