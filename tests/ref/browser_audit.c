#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ref/browser.h"
#include "tests/tap.h"

/* Each press of Tab leads to something else, and one sees what it is. */
static void walk_keys(const char *name)
{
	static const char reach[] =
		"[...document.querySelectorAll('a[href], button, input, select, "
		"summary, [tabindex=\"0\"]')].filter(e => e.checkVisibility())";
	char line[512];
	int n, reached = 0, unseen = 0;

	snprintf(line, sizeof(line), "%s.length", reach);
	n = atoi(browser_eval(line));
	browser_eval("window.reached = new Set(); scrollTo(0, 0); "
		     "document.activeElement.blur(); 0");
	for (int i = 0; i < n + 8; i++) {
		browser_press("Tab", 9);
		unseen += !strcmp(
			browser_eval(
				"(() => { const e = document.activeElement; "
				"if (e === document.body) return false; "
				"reached.add(e); const s = getComputedStyle(e); "
				"return s.outlineStyle === 'none' || "
				"parseFloat(s.outlineWidth) < 1; })()"),
			"true");
	}
	snprintf(line, sizeof(line), "%s.filter(e => reached.has(e)).length",
		 reach);
	reached = atoi(browser_eval(line));
	is_i64(reached, n, "%s: keys reach all %d", name, n);
	is_i64(unseen, 0, "%s: and show where they are", name);
}

void browser_audit(const char *name, bool keys)
{
	char first[128];
	struct buf js = { 0 };
	struct err e;

	if (!file_read("tests/ref/audit.js", 1 << 20, &js, &e))
		BUG("%s", e.msg);
	is_str(browser_eval(js.data), "", "%s: WCAG has nothing to say", name);
	if (!is_u64(browser_n_nameless(first), 0, "%s: all has a name", name))
		diag("%s", first);
	if (keys)
		walk_keys(name);
	buf_fini(&js);
}

void browser_looks(const char *name, const char *folder, const char *page)
{
	static const struct {
		const char *name;
		int width, height;
		bool phone, dark;
	} looks[] = { { "desktop", 1280, 900, false, false },
		      { "desktop-dark", 1280, 900, false, true },
		      { "phone-dark", 390, 844, true, true },
		      { "phone", 390, 844, true, false } };
	char view[128], address[256];

	snprintf(address, sizeof(address), "file://%s/", folder);
	browser_home(address);
	snprintf(address, sizeof(address), "file://%s/%s", folder, page);
	for (size_t i = 0; i < ARRAY_SIZE(looks); i++) {
		browser_look(looks[i].width, looks[i].height, looks[i].phone,
			     looks[i].dark);
		browser_visit(address);
		browser_wait("document.readyState === 'complete'");
		snprintf(view, sizeof(view), "%s-%s", name, looks[i].name);
		browser_audit(view, i % 3 == 0);
		browser_shot(view, true);
	}
}
