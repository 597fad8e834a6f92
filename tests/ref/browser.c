#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/ref/browser.h"
#include "tests/tap.h"

static pid_t browser;
static int to_browser, from_browser;
static struct buf heard;
static int last_id;
static char session[64], home[256];
static unsigned n_errors, n_foreign;
static char first_error[512];

static const char *find_browser(void)
{
	static const char *const names[] = { "/usr/bin/chromium",
					     "/usr/bin/chromium-browser",
					     "/usr/bin/google-chrome" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!access(names[i], X_OK))
			return names[i];
	return NULL;
}

void browser_require(void)
{
	if (find_browser())
		return;
	diag("NO BROWSER: install chromium to have the page used in one");
	skip_all("no chromium: the page was not used in a browser");
}

static void run_browser(const char *folder)
{
	const char *path = find_browser();
	char profile[128], log[128];
	int in[2], out[2], err;

	snprintf(profile, sizeof(profile), "--user-data-dir=%s/profile",
		 folder);
	snprintf(log, sizeof(log), "%s/browser", folder);
	if (pipe(in) || pipe(out) || (browser = fork()) < 0)
		BUG("no browser");
	if (!browser) {
		err = open(log, O_WRONLY | O_CREAT, 0600);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		/* Its ends are 3 and 4; the others may stand there. */
		int read_end = fcntl(in[0], F_DUPFD, 10);
		int write_end = fcntl(out[1], F_DUPFD, 10);
		dup2(err, 1);
		dup2(err, 2);
		dup2(read_end, 3);
		dup2(write_end, 4);
		closefrom(5);
		execl(path, path, "--headless", "--no-sandbox", "--disable-gpu",
		      "--remote-debugging-pipe", "--window-size=1000,760",
		      "--force-prefers-reduced-motion", profile, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	to_browser = in[1];
	from_browser = out[0];
}

/* What happens in the page without being asked for. */
static void note_event(json_t *j)
{
	const char *what = json_string_value(json_object_get(j, "method"));
	json_t *p = json_object_get(j, "params"), *entry, *url;
	char *text = json_dumps(p, JSON_COMPACT);

	entry = json_object_get(p, "entry");
	url = json_object_get(json_object_get(p, "request"), "url");
	if (!strcmp(what, "Runtime.exceptionThrown") ||
	    (!strcmp(what, "Log.entryAdded") &&
	     !strcmp(json_string_value(json_object_get(entry, "level")),
		     "error"))) {
		if (!n_errors++)
			snprintf(first_error, sizeof(first_error), "%s", text);
	}
	if (!strcmp(what, "Network.requestWillBeSent") &&
	    strncmp(json_string_value(url), home, strlen(home)) != 0 &&
	    strncmp(json_string_value(url), "data:", 5) != 0) {
		n_foreign++;
		diag("the page asks for %s", json_string_value(url));
	}
	free(text);
}

/* The next message; NULL: none within a minute. */
static json_t *hear(void)
{
	struct pollfd p = { .fd = from_browser, .events = POLLIN };
	char bytes[65536], *end;
	ssize_t n;

	while (!heard.len || !(end = memchr(heard.data, '\0', heard.len))) {
		if (poll(&p, 1, 60000) <= 0 ||
		    (n = read(from_browser, bytes, sizeof(bytes))) <= 0)
			return NULL;
		buf_add(&heard, bytes, (size_t)n);
	}
	json_t *j = json_loads(heard.data, 0, NULL);
	size_t used = (size_t)(end - heard.data) + 1;
	memmove(heard.data, heard.data + used, heard.len - used);
	heard.len -= used;
	return j;
}

/* What the browser returns; takes `params`.  An empty object: an error. */
static json_t *command(const char *method, json_t *params)
{
	json_t *j = json_pack("{s:i,s:s,s:o}", "id", ++last_id, "method",
			      method, "params", params);
	char *text;
	json_t *result;

	if (*session)
		json_object_set_new(j, "sessionId", json_string(session));
	text = json_dumps(j, JSON_COMPACT);
	json_decref(j);
	for (size_t at = 0, n = strlen(text) + 1; at < n;) {
		ssize_t some = write(to_browser, text + at, n - at);
		if (some <= 0)
			break;
		at += (size_t)some;
	}
	free(text);
	while ((j = hear())) {
		if (json_integer_value(json_object_get(j, "id")) == last_id)
			break;
		if (json_object_get(j, "method"))
			note_event(j);
		json_decref(j);
	}
	result = json_incref(json_object_get(j, "result"));
	if (!result)
		diag("%s: no result", method);
	json_decref(j);
	return result ? result : json_object();
}

static void send_method(const char *method, json_t *params)
{
	json_decref(command(method, params));
}

bool browser_start(const char *folder)
{
	run_browser(folder);
	json_t *r = command("Target.createTarget",
			    json_pack("{s:s}", "url", "about:blank"));
	json_t *id = json_incref(json_object_get(r, "targetId"));

	json_decref(r);
	if (!id)
		return false;
	r = command("Target.attachToTarget",
		    json_pack("{s:o,s:b}", "targetId", id, "flatten", 1));
	snprintf(session, sizeof(session), "%s",
		 json_string_value(json_object_get(r, "sessionId")));
	json_decref(r);
	send_method("Runtime.enable", json_object());
	send_method("Log.enable", json_object());
	send_method("Network.enable", json_object());
	send_method("Page.enable", json_object());
	return true;
}

void browser_end(void)
{
	kill(-browser, SIGKILL);
	waitpid(browser, NULL, 0);
	buf_fini(&heard);
}

void browser_home(const char *address)
{
	snprintf(home, sizeof(home), "%s", address);
}

unsigned browser_n_foreign(void)
{
	return n_foreign;
}

unsigned browser_n_errors(void)
{
	return n_errors;
}

const char *browser_first_error(void)
{
	return first_error;
}

void browser_visit(const char *address)
{
	send_method("Page.navigate", json_pack("{s:s}", "url", address));
}

void browser_look(int width, int height, bool phone, bool dark)
{
	send_method("Emulation.setDeviceMetricsOverride",
		    json_pack("{s:i,s:i,s:i,s:b}", "width", width, "height",
			      height, "deviceScaleFactor", 1, "mobile", phone));
	send_method("Emulation.setEmulatedMedia",
		    json_pack("{s:[{s:s,s:s}]}", "features", "name",
			      "prefers-color-scheme", "value",
			      dark ? "dark" : "light"));
}

const char *browser_eval(const char *expression)
{
	static struct buf text;
	json_t *r = command("Runtime.evaluate",
			    json_pack("{s:s,s:b,s:b}", "expression", expression,
				      "returnByValue", 1, "awaitPromise", 1));
	json_t *value = json_object_get(json_object_get(r, "result"), "value");
	char *other = json_dumps(value, JSON_ENCODE_ANY);

	buf_reset(&text);
	buf_adds(&text, json_is_string(value) ? json_string_value(value) :
			other		      ? other :
						"undefined");
	free(other);
	json_decref(r);
	return text.data;
}

bool browser_wait(const char *expression)
{
	for (int i = 0; i < 600; i++, usleep(50000))
		if (!strcmp(browser_eval(expression), "true"))
			return true;
	diag("this never became true: %s", expression);
	return false;
}

void browser_press(const char *key, int code)
{
	send_method("Input.dispatchKeyEvent",
		    json_pack("{s:s,s:s,s:i,s:s}", "type", "keyDown", "key",
			      key, "windowsVirtualKeyCode", code, "text",
			      code == 13 ? "\r" : ""));
	send_method("Input.dispatchKeyEvent",
		    json_pack("{s:s,s:s,s:i}", "type", "keyUp", "key", key,
			      "windowsVirtualKeyCode", code));
}

void browser_type(const char *text)
{
	send_method("Input.insertText", json_pack("{s:s}", "text", text));
}

void browser_click(const char *selector)
{
	static const char *const parts[] = { "mousePressed", "mouseReleased" };
	char line[256];
	double x, y;

	snprintf(
		line, sizeof(line),
		"(() => { const e = document.querySelector('%s'); "
		"e.scrollIntoView({ block: 'center' }); "
		"const r = e.getBoundingClientRect(); return (r.x + r.width / 2) + ' ' + "
		"(r.y + r.height / 2) })()",
		selector);
	if (sscanf(browser_eval(line), "%lf %lf", &x, &y) != 2) {
		diag("nothing to click: %s", selector);
		return;
	}
	for (int i = 0; i < 2; i++)
		send_method("Input.dispatchMouseEvent",
			    json_pack("{s:s,s:f,s:f,s:s,s:i}", "type", parts[i],
				      "x", x, "y", y, "button", "left",
				      "clickCount", 1));
}

void browser_shot(const char *name, bool whole)
{
	const char *to = getenv("T0_SHOTS");
	char line[512];
	json_t *r;
	FILE *f;

	if (!to)
		return;
	snprintf(line, sizeof(line), "base64 -d >'%s/%s.png'", to, name);
	r = command("Page.captureScreenshot",
		    json_pack("{s:b}", "captureBeyondViewport", whole));
	f = popen(line, "w");
	if (f) {
		fputs(json_string_value(json_object_get(r, "data")), f);
		pclose(f);
	}
	json_decref(r);
}

/* What a node of the accessibility tree says under a key. */
static const char *text_of(json_t *node, const char *key)
{
	const char *s = json_string_value(
		json_object_get(json_object_get(node, key), "value"));

	return s ? s : "";
}

unsigned browser_n_nameless(char first[128])
{
	static const char *const roles[] = { "link",	 "button", "searchbox",
					     "textbox",	 "meter",  "image",
					     "combobox", "region", "checkbox" };
	json_t *r = command("Accessibility.getFullAXTree", json_object()),
	       *node;
	unsigned n = 0;
	size_t i;

	*first = 0;
	json_array_foreach (json_object_get(r, "nodes"), i, node)
		for (size_t k = 0; k < ARRAY_SIZE(roles); k++)
			if (!json_is_true(json_object_get(node, "ignored")) &&
			    !strcmp(text_of(node, "role"), roles[k]) &&
			    !*text_of(node, "name") && !n++)
				snprintf(first, 128, "a %s", roles[k]);
	json_decref(r);
	return n;
}
