/*
 * engine/cmd/train/cmd_train_show.c - t0-qwen3 train --tui.
 */
#include <math.h>

#include "base/panel/panel.h"
#include "engine/cmd/train/cmd_train.h"

void qwen_school_show(const struct qwen_school *s, double loss, double speed)
{
	panel_progress(s->panel, s->place.step, s->rule.steps);
	panel_set(s->panel, "loss", "%.4f", loss);
	panel_set(s->panel, "tokens/s", "%.0f", speed);
	panel_set(s->panel, "gradients", "%.3g", s->norm);
	panel_set(s->panel, "rate", "%.3g",
		  train_rate(&s->rule, s->place.step - 1));
	panel_point(s->panel, "loss", loss);
	panel_draw(s->panel);
}

void qwen_school_show_held(const struct qwen_school *s,
			   const struct qwen_lesson *l)
{
	if (isnan(l->valid))
		return;
	panel_set(s->panel, "held out", "loss %.4f, %.4f bits per byte",
		  l->valid, l->bits_per_byte);
	panel_set(s->panel, "best held out", "loss %.4f",
		  fmin(l->valid, s->place.best));
}
