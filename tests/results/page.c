/*
 * The page of t0-results report in a real browser: who can read it, what its
 * heads and fields do, how large it is, and that it asks for nothing from
 * elsewhere.
 */
#include <stdlib.h>
#include <unistd.h>

#include "tests/ref/browser.h"
#include "tests/ref/web.h"
#include "tests/tap.h"

static char folder[] = "/tmp/t0-page-XXXXXX";

static bool make_report(void)
{
	char tool[256], line[2048];

	snprintf(tool, sizeof(tool), "%s", web_tool("t0-results"));
	snprintf(line, sizeof(line),
		 "export T0_DB=%s/t0.db; awk -v loss=0.1 -f "
		 "tests/data/results/fixture.awk | '%s' import --quiet - && "
		 "'%s' baseline accept 4 >%s/out && { '%s' gate --any-host "
		 ">%s/out; '%s' report --quiet %s/report; }",
		 folder, tool, tool, folder, tool, folder, tool, folder);
	return is_i64(system(line), 0, "a report");
}

#define BOX "document.querySelector('#costs ~ div.scroll')"
#define NAMES(rows) \
	"[..." BOX ".querySelectorAll('tr')].slice(1)" rows \
	".map(r => r.cells[0].textContent)"
#define LEFT NAMES(".filter(r => !r.hidden)")

static void test_tables(void)
{
	char most[128];

	browser_eval(BOX ".id = 'box'; 0");
	browser_click("#box th button");
	browser_click("#box th button");
	is_str(browser_eval(NAMES("") ".join() === " NAMES(
		       "") ".sort((x, y) => y.localeCompare(x)).join()"),
	       "true", "two presses on a head sort downwards");
	is_str(browser_eval(BOX ".querySelector('th').ariaSort"), "descending",
	       "which is said");
	snprintf(most, sizeof(most), "%s",
		 browser_eval(NAMES("") "[0].slice(0, 8)"));
	browser_eval(BOX ".previousElementSibling.id = 'sought'; 0");
	browser_click("#sought");
	browser_type(most);
	is_str(browser_eval(
		       "(() => { const left = " LEFT
		       "; return left.length > 0 && "
		       "left.length < " NAMES(
			       "") ".length && "
				   "left.every(v => v.includes(sought.value)); })()"),
	       "true", "what is typed leaves the rows that have it");
	browser_click("nav a[href=\"#runs\"]");
	is_str(browser_eval("document.querySelector('#runs')"
			    ".getBoundingClientRect().top < innerHeight"),
	       "true", "one gets to a section by a press");
}

int main(void)
{
	char line[256];

	unsetenv("T0_DB");
	browser_require();
	if (access("/usr/bin/gnuplot", X_OK))
		skip_all("gnuplot is not installed");
	if (!mkdtemp(folder))
		BUG("no folder");
	if (ok(browser_start(folder), "a browser begins") && make_report()) {
		snprintf(line, sizeof(line),
			 "du -b --exclude '*.p*' "
			 "--exclude '*.gp' --exclude '*.csv' -s %s/report | "
			 "awk '{ exit $1 > 2000000 }'",
			 folder);
		is_i64(system(line), 0,
		       "the page and its pictures are less "
		       "than 2 MB");
		snprintf(line, sizeof(line), "%s/report", folder);
		browser_looks("report", line, "index.html");
		test_tables();
		is_u64(browser_n_errors(), 0, "no error is on the console");
		is_u64(browser_n_foreign(), 0, "nothing else is asked for");
	}
	browser_end();
	snprintf(line, sizeof(line), "rm -r %s", folder);
	is_i64(system(line), 0, "all is cleared away");
	return plan_done();
}
