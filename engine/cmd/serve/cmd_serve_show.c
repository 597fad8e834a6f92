/*
 * engine/cmd/serve/cmd_serve_show.c - t0-qwen3 serve --tui.
 */
#include "base/panel/panel.h"
#include "engine/cmd/serve/cmd_serve.h"

void serve_show(const struct server *s, struct panel *p, struct serve_shown *x)
{
	const struct qwen_batch_counts *n = &s->counts;
	const uint64_t now = time_mono_ns();

	if (!p)
		return;
	if (!x->at_ns || now - x->at_ns >= 1000000000) {
		const double rate = (double)(n->tokens - x->tokens) * 1e9 /
				    (double)(now - x->at_ns);

		if (x->at_ns) {
			panel_set(p, "tokens/s", "%.1f", rate);
			panel_point(p, "tokens/s", rate);
		}
		*x = (struct serve_shown){ now, n->tokens };
	}
	panel_set(p, "requests", "%llu, %llu finished, %llu refused",
		  (unsigned long long)s->requests,
		  (unsigned long long)s->finished,
		  (unsigned long long)s->refused);
	panel_set(p, "sequences", "%u run, %u wait", n->running, n->waiting);
	panel_set(p, "cache", "%u blocks left", n->blocks_left);
	panel_set(p, "tokens", "%llu written, %llu of prompts",
		  (unsigned long long)n->tokens,
		  (unsigned long long)n->prompt_tokens);
	panel_draw(p);
}
