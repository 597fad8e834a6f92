/*
 * The page of a kernel, t0-sim --html, in a real browser: what it says, who can
 * read it, how large it is, and that it asks for nothing.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/ref/browser.h"
#include "tests/ref/web.h"
#include "tests/tap.h"

static char folder[] = "/tmp/t0-page-XXXXXX";

static bool make_page(const char *name, const char *kernel)
{
	char line[512];
	struct stat st;

	snprintf(line, sizeof(line),
		 "%s --what-if --html %s/%s.html %s >%s/out",
		 web_tool("t0-sim"), folder, name, kernel, folder);
	if (!is_i64(system(line), 0, "a page of %s", name))
		return false;
	snprintf(line, sizeof(line), "%s/%s.html", folder, name);
	if (stat(line, &st))
		st.st_size = INT32_MAX;
	return ok(st.st_size < 2000000, "of less than 2 MB: %lld bytes",
		  (long long)st.st_size);
}

static void test_saxpy(void)
{
	if (!make_page("saxpy",
		       "tests/data/kernels/saxpy.co saxpy f32:2 "
		       "buf:64k:f32 buf:64k:f32 u32:65536 --grid 65536 "
		       "--block 256"))
		return;
	browser_looks("saxpy", folder, "saxpy.html");
	is_str(browser_eval("document.querySelector('h1').textContent"),
	       "saxpy", "it says whose page it is");
	browser_click("nav a[href=\"#code\"]");
	is_str(browser_eval("document.querySelector('#code')"
			    ".getBoundingClientRect().top < innerHeight"),
	       "true", "one gets to the code by a press");
}

static void test_loops(void)
{
	char line[512];

	snprintf(line, sizeof(line), "%s -k softmax -o %s/softmax.co",
		 web_tool("t0-cc"), folder);
	if (!is_i64(system(line), 0, "a kernel with loops"))
		return;
	snprintf(line, sizeof(line), "%s/softmax.co softmax", folder);
	if (!make_page("loops", line))
		return;
	browser_looks("loops", folder, "loops.html");
	ok(atoi(browser_eval("document.querySelectorAll('tr.src').length")) > 9,
	   "source lines stand above what they became");
	browser_click("td.loop a");
	is_str(browser_eval("document.querySelector('tr:target') !== null"),
	       "true", "a loop's end leads to its head");
}

int main(void)
{
	char line[128];

	unsetenv("T0_DB");
	browser_require();
	if (!mkdtemp(folder))
		BUG("no folder");
	if (ok(browser_start(folder), "a browser begins")) {
		test_saxpy();
		test_loops();
		is_u64(browser_n_foreign(), 0, "nothing else is asked for");
		is_u64(browser_n_errors(), 0, "no error is on the console");
	}
	browser_end();
	snprintf(line, sizeof(line), "rm -r %s", folder);
	is_i64(system(line), 0, "all is cleared away");
	return plan_done();
}
