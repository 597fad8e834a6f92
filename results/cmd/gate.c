/*
 * results/cmd/gate.c - one case against its baseline.
 *
 * The limit is the baseline's and never moves: a case passes when a loss of
 * that size is excluded by processes that can find one, regresses when a loss is
 * proven and one of that size is not excluded, and is inconclusive otherwise.
 */
#include "results/cmd/cmd.h"

#include <math.h>
#include <string.h>

static void set_reason(struct gate_verdict *v, enum gate_answer a,
		       const char *fmt, ...) T0_PRINTF(3, 4);
static void set_reason(struct gate_verdict *v, enum gate_answer a,
		       const char *fmt, ...)
{
	va_list ap;

	v->answer = a;
	va_start(ap, fmt);
	vsnprintf(v->reason, sizeof(v->reason), fmt, ap);
	va_end(ap);
}

/* The shares lost: positive is bad, whichever way the metric counts. */
static struct res_interval loss_of(const char *better,
				   const struct res_interval *change)
{
	struct res_interval l = *change;

	if (!strcmp(better, "higher"))
		l = (struct res_interval){ -l.value, -l.hi, -l.lo };
	else if (!strcmp(better, "none"))
		l = (struct res_interval){
			fabs(l.value),
			l.lo > 0 ? l.lo : l.hi < 0 ? -l.hi : 0,
			fmax(fabs(l.lo), fabs(l.hi))
		};
	return l;
}

static bool is_pass(const char *verdict)
{
	return verdict && !strcmp(verdict, "pass");
}

/* A verdict of the baseline that the new result lacks or fails. */
static bool check_verdict(const char *what, const char *was, const char *is,
			  struct gate_verdict *v)
{
	if (is && (!strcmp(is, "fail") || !strcmp(is, "regress")))
		set_reason(v, GATE_REGRESS, "the %s check says %s", what, is);
	else if (is_pass(was) && !is_pass(is))
		set_reason(v, GATE_NODATA,
			   "no passing %s check, which the baseline "
			   "had: %s",
			   what, is ? is : "it did not run");
	else
		return true;
	return false;
}

/* A gain counts only for output that was checked. */
static void judge_gain(const struct measured *now, struct gate_verdict *v)
{
	/* Text: so its unit says, or that somebody tried to judge it. */
	bool text = !strcmp(now->first->unit, "token/s") || now->coherent;

	if (!is_pass(now->correct))
		set_reason(v, GATE_INCONCLUSIVE, "%.3g %% better, but no "
			   "correctness check passed", -100 * v->loss.value);
	else if (text && !is_pass(now->coherent))
		set_reason(v, GATE_INCONCLUSIVE, "%.3g %% better, but no "
			   "coherence check passed", -100 * v->loss.value);
	else
		set_reason(v, GATE_PASS, "%.3g %% better, and correct",
			   -100 * v->loss.value);
}

/* What else it would take, as far as it can be told. */
static void want_more(const struct gate_verdict *v, char *out, size_t size)
{
	size_t n = effect_processes(&v->effect, v->limit);

	if (n && v->effect.detectable > v->limit)
		snprintf(out, size, "; %zu processes a side would decide "
			 "(these find %.2g %%)", n,
			 100 * v->effect.detectable);
	else
		snprintf(out, size, "; take more processes");
}

/*
 * Is a loss of the limit excluded?  Not by chance: processes that would often
 * miss such a change exclude none.
 */
static bool is_excluded(const struct gate_verdict *v)
{
	if (v->effect.exact)
		return v->loss.hi < v->limit || v->loss.hi <= 0;
	return v->loss.hi < v->limit && v->effect.detectable <= v->limit;
}

static void judge_loss(const struct measured *now, struct gate_verdict *v)
{
	const struct res_interval *l = &v->loss;
	double limit = 100 * v->limit;
	bool excluded = is_excluded(v);
	char more[96];

	if (v->effect.proven && l->lo > 0 && !excluded)
		set_reason(v, GATE_REGRESS, "%.3g %% worse; this case may "
			   "lose less than %.3g %%", 100 * l->value, limit);
	else if (v->effect.proven && l->value <= -v->limit && l->hi < 0)
		judge_gain(now, v);
	else if (excluded && v->effect.proven && l->lo > 0)
		set_reason(v, GATE_PASS, "%.3g %% worse, less than the "
			   "%.3g %% that it may lose", 100 * l->value, limit);
	else if (excluded)
		set_reason(v, GATE_PASS, "no loss of %.3g %%", limit);
	else {
		want_more(v, more, sizeof(more));
		set_reason(v, GATE_INCONCLUSIVE, "a loss of %.3g %% cannot be "
			   "excluded: the interval reaches %.3g %%%s", limit,
			   100 * l->hi, more);
	}
}

/* No test was possible: whose fault is that? */
static void judge_untested(const struct measured *base,
			   const struct measured *now, struct gate_verdict *v)
{
	if (base->n < 2)
		set_reason(v, GATE_INCONCLUSIVE, "the baseline is one process: "
			   "its luck is not known; accept one of %d or more "
			   "(t0-results bench)", GATE_PROCESSES);
	else if (now->n < 2)
		set_reason(v, GATE_INCONCLUSIVE, "one process was measured: its "
			   "luck is not known; measure %d or more (t0-results "
			   "bench)", GATE_PROCESSES);
	else
		set_reason(v, GATE_INCONCLUSIVE, "%zu processes against the "
			   "baseline's %zu prove nothing among these rows; "
			   "measure %d or more", now->n, base->n,
			   GATE_PROCESSES);
}

void gate_judge(const struct measured *base, const struct measured *now,
		double alpha, double drift, struct gate_verdict *v)
{
	*v = (struct gate_verdict){ .limit = base->first->limit,
				    .loss = { NAN, NAN, NAN } };
	if (!now->first) {
		set_reason(v, GATE_NODATA, "nothing was measured");
		return;
	}
	v->effect = effect_of(base, now, alpha, drift);
	v->loss = loss_of(base->first->better, &v->effect.change);
	v->investigate = fabs(v->loss.value) >= GATE_INVESTIGATE;
	if (!check_verdict("correctness", base->correct, now->correct, v) ||
	    !check_verdict("coherence", base->coherent, now->coherent, v))
		return;
	if (v->effect.tested)
		judge_loss(now, v);
	else
		judge_untested(base, now, v);
}
