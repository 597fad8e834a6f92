/*
 * compiler/cmd/cmd_sim_plot.c - pictures, drawn by gnuplot.
 */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compiler/cmd/cmd_sim.h"

enum { GNUPLOT_SECONDS = 60 };

static _Noreturn void exec_gnuplot(int script)
{
	dup2(script, STDIN_FILENO);
	alarm(GNUPLOT_SECONDS);
	execlp("gnuplot", "gnuplot", "-", (char *)NULL);
	_exit(127);
}

/* A script on a file without a name, so that pipes cannot fill up. */
static bool run_gnuplot(const struct buf *script, const char *path,
			struct err *e)
{
	FILE *f = tmpfile();
	int status = 0;

	if (!f)
		return err_sys(e, ERR_IO, errno, "a temporary file");
	bool written = fwrite(script->data, 1, script->len, f) == script->len &&
		       !fflush(f) && !fseek(f, 0, SEEK_SET);
	fflush(NULL);
	pid_t pid = written ? fork() : -1;
	if (!pid)
		exec_gnuplot(fileno(f));
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			break;
	fclose(f);
	if (pid > 0 && WIFEXITED(status) && !WEXITSTATUS(status))
		return true;
	return err_set(e, ERR_IO, "gnuplot could not draw %s; is it installed "
		       "(package gnuplot-nox)?", path);
}

static bool set_terminal(struct buf *b, const char *path, struct err *e)
{
	const char *dot = strrchr(path, '.');
	bool svg = dot && !strcmp(dot, ".svg");

	if (!svg && (!dot || strcmp(dot, ".png")))
		return err_set(e, ERR_USAGE, "%s: wanted a name that ends in "
			       ".svg or .png", path);
	if (strpbrk(path, "'\n"))
		return err_set(e, ERR_USAGE, "%s: quotes cannot be in the name "
			       "of a picture", path);
	buf_printf(b, "set terminal %s size 900,900 background '#ffffff'\n"
		   "set output '%s'\n", svg ? "svg" : "pngcairo", path);
	return true;
}

static void plot_occupancy(struct buf *b, const struct sim_result *r)
{
	buf_adds(b, "$occ << E\n");
	for (int i = 0; i < r->n_occupancy; i++)
		buf_printf(b, "%llu %d\n",
			   (unsigned long long)r->occupancy[i].cycle,
			   r->occupancy[i].waves);
	buf_printf(b, "%llu 0\nE\nset xlabel 'cycle'\nset ylabel "
		   "'resident waves'\nset yrange [0:*]\n"
		   "plot $occ using 1:2 with steps lw 2 notitle\n",
		   (unsigned long long)r->cycles);
}

/* Bars of named shares; `n` names and values above zero. */
static void plot_bars(struct buf *b, const char *title, int n,
		      const char *(*name)(int), const double *share)
{
	buf_printf(b, "$bars << E\n");
	for (int i = 0; i < n; i++)
		if (share[i] > 0)
			buf_printf(b, "\"%s\" %.4f\n", name(i),
				   100 * share[i]);
	buf_printf(b, "E\nset title '%s'\nset xlabel ''\nset ylabel '%%'\n"
		   "set yrange [0:*]\nset style fill solid 0.7\n"
		   "set boxwidth 0.7\nset xtics rotate by -35\n"
		   "plot $bars using 2:xtic(1) with boxes notitle\n", title);
}

static const char *pipe_name(int p)
{
	return sim_pipe_name(p);
}

static const char *stall_name(int k)
{
	return sim_stall_name(k);
}

bool plot_sim(const struct show_sim *s, const char *path, struct err *e)
{
	const struct sim_result *r = s->r;
	double share[SIM_STALL_COUNT], all = 0;
	struct buf b = { 0 };
	bool ok = set_terminal(&b, path, e);

	for (int k = 0; k < SIM_STALL_COUNT; k++)
		all += (double)r->stall[k];
	for (int k = 0; k < SIM_STALL_COUNT; k++)
		share[k] = (double)r->stall[k] / all;
	if (ok) {
		buf_printf(&b, "set multiplot layout 3,1 title 'simulated, "
			   "%llu cycles at %.0f MHz'\n",
			   (unsigned long long)r->cycles, r->clock_mhz);
		plot_occupancy(&b, r);
		plot_bars(&b, "pipes: share of their cycles", SIM_PIPE_COUNT,
			  pipe_name, r->share);
		plot_bars(&b, "cycles of the waves", SIM_STALL_COUNT,
			  stall_name, share);
		buf_adds(&b, "unset multiplot\n");
		ok = run_gnuplot(&b, path, e);
	}
	buf_fini(&b);
	return ok;
}

bool plot_validation(const double *reference, const double *predicted,
		     const char *const *group, size_t n, const char *path,
		     struct err *e)
{
	struct buf b = { 0 };
	bool ok = set_terminal(&b, path, e);

	buf_adds(&b, "set logscale xy\nset xlabel 'reference'\n"
		 "set ylabel 'predicted'\nset key left\n$p << E\n");
	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "%.9g %.9g\n", reference[i], predicted[i]);
	buf_adds(&b, "E\n$err << E\n");
	for (size_t i = 0; i < n; i++)
		buf_printf(&b, "\"%s\" %.4f\n", group[i],
			   100 * (predicted[i] / reference[i] - 1));
	buf_adds(&b, "E\nset multiplot layout 2,1\n"
		 "plot $p using 1:2 with points pt 7 title 'rows', "
		 "x title 'equal', 0.85*x dt 2 title '-15 %', 1.15*x dt 2 "
		 "title '+15 %'\nunset logscale\nset xlabel 'error (%)'\n"
		 "set ylabel 'rows'\nset boxwidth 5\nset style fill solid 0.7\n"
		 "plot $err using (5*floor($2/5)+2.5):(1) smooth frequency "
		 "with boxes notitle\nunset multiplot\n");
	ok = ok && run_gnuplot(&b, path, e);
	buf_fini(&b);
	return ok;
}
