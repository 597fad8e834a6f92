/*
 * base/panel/panel.c - the screen, with ncurses.
 */
#include "base/panel/panel.h"

#include <curses.h>
#include <locale.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/panel/panel_int.h"

enum { FACTS = 32, POINTS = 4096 };

struct fact {
	char name[32], value[160];
};

struct panel {
	char title[160], curve[64];
	struct fact fact[FACTS];
	int n_facts;
	double point[POINTS];
	uint64_t n_points, done, total, start_ns, drawn_ns;
	struct keeper keeper;
	FILE *screen_file;
	SCREEN *screen;
};

/* ncurses would end the program its own way at these. */
static SCREEN *take_screen(FILE *out)
{
	static const int ours[] = { SIGINT, SIGTERM };
	struct sigaction old[ARRAY_SIZE(ours)];

	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		sigaction(ours[i], NULL, &old[i]);
	SCREEN *s = newterm(NULL, out, stdin);
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		sigaction(ours[i], &old[i], NULL);
	return s;
}

struct panel *panel_open(const char *tool, const char *what)
{
	const char *term = getenv("TERM");
	struct panel *p;

	if (!isatty(STDOUT_FILENO) || !term || !strcmp(term, "dumb")) {
		fprintf(stderr, "%s: --tui: %s; going on without\n", tool,
			!isatty(STDOUT_FILENO) ?
				"stdout is no terminal" :
				"TERM names no terminal that can be drawn on");
		return NULL;
	}
	p = xcalloc(1, sizeof(*p));
	p->start_ns = time_mono_ns();
	snprintf(p->title, sizeof(p->title), "%s: %s", tool, what);
	setlocale(LC_CTYPE, "");
	if (keeper_begin(&p->keeper) &&
	    (p->screen_file = fdopen(dup(p->keeper.terminal), "w")) &&
	    (p->screen = take_screen(p->screen_file))) {
		cbreak();
		noecho();
		curs_set(0);
		nodelay(stdscr, true);
		panel_draw(p);
		return p;
	}
	if (p->screen_file)
		fclose(p->screen_file);
	keeper_end(&p->keeper);
	free(p);
	fprintf(stderr,
		"%s: --tui: the terminal %s cannot be drawn on; going "
		"on without\n",
		tool, term);
	return NULL;
}

void panel_close(struct panel *p)
{
	if (!p)
		return;
	endwin();
	delscreen(p->screen);
	fclose(p->screen_file);
	keeper_end(&p->keeper);
	free(p);
}

void panel_set(struct panel *p, const char *name, const char *fmt, ...)
{
	va_list ap;
	int i = 0;

	if (!p)
		return;
	while (i < p->n_facts && strcmp(p->fact[i].name, name) != 0)
		i++;
	if (i == FACTS)
		return;
	if (i == p->n_facts)
		snprintf(p->fact[p->n_facts++].name, sizeof(p->fact[i].name),
			 "%s", name);
	va_start(ap, fmt);
	vsnprintf(p->fact[i].value, sizeof(p->fact[i].value), fmt, ap);
	va_end(ap);
}

void panel_progress(struct panel *p, uint64_t done, uint64_t total)
{
	if (!p)
		return;
	p->done = done;
	p->total = total;
}

void panel_point(struct panel *p, const char *name, double value)
{
	if (!p || !isfinite(value))
		return;
	if (!*p->curve)
		snprintf(p->curve, sizeof(p->curve), "%s", name);
	p->point[p->n_points++ % POINTS] = value;
}

/* ---- drawing ---- */

static void draw_bar(const struct panel *p, int y)
{
	const double share = (double)p->done / (double)p->total;
	const double s = (double)(time_mono_ns() - p->start_ns) * 1e-9;
	const int width = COLS > 60 ? COLS - 46 : 14;
	const int full = (int)(fmin(share, 1) * width);

	mvprintw(y, 1, "[");
	for (int i = 0; i < width; i++)
		addch(i < full ? '#' : ' ');
	printw("] %llu/%llu", (unsigned long long)p->done,
	       (unsigned long long)p->total);
	if (s > 1 && p->done && p->done < p->total)
		printw("  %.0f s left", s / share - s);
}

/* The value of column x of `width`: the mean of its share of the points. */
static double column_of(const struct panel *p, uint64_t n, int x, int width)
{
	const uint64_t from = n * (uint64_t)x / (uint64_t)width;
	uint64_t to = n * (uint64_t)(x + 1) / (uint64_t)width;
	double sum = 0;

	if (to == from)
		to++;
	for (uint64_t i = from; i < to; i++)
		sum += p->point[(p->n_points - n + i) % POINTS];
	return sum / (double)(to - from);
}

static void draw_curve(const struct panel *p, int top, int bottom)
{
	const uint64_t n = p->n_points < POINTS ? p->n_points : POINTS;
	const int margin = 12, room = COLS - margin - 2, rows = bottom - top;
	const int width = n < (uint64_t)room ? (int)n : room;
	double least = INFINITY, most = -INFINITY;

	if (rows < 3 || width < 1)
		return;
	mvprintw(top, 1, "%s", p->curve);
	for (int x = 0; x < width; x++) {
		least = fmin(least, column_of(p, n, x, width));
		most = fmax(most, column_of(p, n, x, width));
	}
	mvprintw(top + 1, 0, "%*.5g", margin - 2, most);
	mvprintw(bottom - 1, 0, "%*.5g", margin - 2, least);
	for (int x = 0; x < width; x++) {
		const double v = column_of(p, n, x, width);
		const double up = most > least ? (v - least) / (most - least) :
						 0.5;

		mvaddch(bottom - 1 - (int)lround(up * (rows - 2)), margin + x,
			'*');
	}
}

static void draw_all(const struct panel *p)
{
	const double s = (double)(time_mono_ns() - p->start_ns) * 1e-9;
	char last[256];
	int y = 2;

	erase();
	attron(A_REVERSE);
	mvprintw(0, 0, " %-*.*s%8.0f s ", COLS - 12, COLS - 12, p->title, s);
	attroff(A_REVERSE);
	if (p->total) {
		draw_bar(p, y);
		y += 2;
	}
	for (int i = 0; i < p->n_facts && y < LINES - 2; i++, y++) {
		mvprintw(y, 1, "%-22.22s", p->fact[i].name);
		attron(A_BOLD);
		printw(" %.*s", COLS - 26, p->fact[i].value);
		attroff(A_BOLD);
	}
	draw_curve(p, y + 1, LINES - 2);
	keeper_last_line(&p->keeper, last, sizeof(last));
	mvprintw(LINES - 1, 1, "%.*s", COLS - 12, last);
	mvprintw(LINES - 1, COLS - 8, "q ends");
	refresh();
}

void panel_draw(struct panel *p)
{
	const uint64_t now = time_mono_ns();

	if (!p || (p->drawn_ns && now - p->drawn_ns < 100000000))
		return;
	p->drawn_ns = now;
	if (isatty(STDIN_FILENO) && getch() == 'q')
		kill(getpid(), SIGINT);
	draw_all(p);
}
