/*
 * The chat page of t0-qwen3 serve in a real browser: chromium without a window,
 * told by its debugging protocol (JSON with a NUL behind it, over two pipes) to
 * type and click as a user would.  The model has learnt what it answers.
 *
 * T0_SHOTS=FOLDER keeps pictures of what the browser shows.
 */
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/ref/web.h"
#include "tests/tap.h"

static char folder[] = "/tmp/t0-page-XXXXXX";
static struct web_server server;

/* ---- a browser ---- */

static pid_t browser;
static int to_browser, from_browser;
static struct buf heard;
static int last_id;
static char session[64], home[64]; /* the server's address */
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

static void start_browser(const char *path)
{
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

static void tell(const char *method, json_t *params)
{
	json_decref(command(method, params));
}

static bool open_tab(void)
{
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
	tell("Runtime.enable", json_object());
	tell("Log.enable", json_object());
	tell("Network.enable", json_object());
	tell("Page.enable", json_object());
	return true;
}

/* The value of an expression as text; valid until the next call. */
static const char *eval(const char *expression)
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

/* Until an expression is true. */
static bool wait_for(const char *expression)
{
	for (int i = 0; i < 600; i++, usleep(50000))
		if (!strcmp(eval(expression), "true"))
			return true;
	diag("this never became true: %s", expression);
	return false;
}

static void press(const char *key, int code)
{
	tell("Input.dispatchKeyEvent",
	     json_pack("{s:s,s:s,s:i,s:s}", "type", "keyDown", "key", key,
		       "windowsVirtualKeyCode", code, "text",
		       code == 13 ? "\r" : ""));
	tell("Input.dispatchKeyEvent",
	     json_pack("{s:s,s:s,s:i}", "type", "keyUp", "key", key,
		       "windowsVirtualKeyCode", code));
}

static void type_text(const char *text)
{
	tell("Input.insertText", json_pack("{s:s}", "text", text));
}

/* With the mouse, in the middle of what a selector finds. */
static void click(const char *selector)
{
	static const char *const parts[] = { "mousePressed", "mouseReleased" };
	char line[256];
	double x, y;

	snprintf(line, sizeof(line),
		 "(() => { const r = document.querySelector('%s')"
		 ".getBoundingClientRect(); return (r.x + r.width / 2) + ' ' + "
		 "(r.y + r.height / 2) })()",
		 selector);
	if (sscanf(eval(line), "%lf %lf", &x, &y) != 2) {
		diag("nothing to click: %s", selector);
		return;
	}
	for (int i = 0; i < 2; i++)
		tell("Input.dispatchMouseEvent",
		     json_pack("{s:s,s:f,s:f,s:s,s:i}", "type", parts[i], "x",
			       x, "y", y, "button", "left", "clickCount", 1));
}

static void keep_shot(const char *name)
{
	const char *to = getenv("T0_SHOTS");
	char line[512];
	json_t *r;
	FILE *f;

	if (!to)
		return;
	snprintf(line, sizeof(line), "base64 -d >'%s/%s.png'", to, name);
	r = command("Page.captureScreenshot", json_object());
	f = popen(line, "w");
	if (f) {
		fputs(json_string_value(json_object_get(r, "data")), f);
		pclose(f);
	}
	json_decref(r);
}

/* ---- a server ---- */

static bool serve(const char *options, uint16_t port)
{
	char line[512], log[64];

	snprintf(line, sizeof(line), "--threads 1 -m %s/%s", folder, options);
	snprintf(log, sizeof(log), "%s/log", folder);
	server = web_start(line, port, log);
	snprintf(home, sizeof(home), "http://127.0.0.1:%u/", server.port);
	return ok(server.pid, "a server of %s", options);
}

static void visit(void)
{
	tell("Page.navigate", json_pack("{s:s}", "url", home));
	ok(wait_for("document.readyState === 'complete' && "
		    "model.textContent !== ''"),
	   "the page is there");
}

#define WRITTEN \
	"!document.querySelector('.writing') && " \
	"document.querySelectorAll('.assistant .note') " \
	"[document.querySelectorAll('.assistant').length - 1]?.textContent"
#define LAST(part) "[...document.querySelectorAll('." part "')].at(-1)"

static const char teach[] =
	"{\"messages\":[{\"role\":\"user\",\"content\":\"Hello there\"},"
	"{\"role\":\"assistant\",\"content\":\"<think>\\nThe user greets me."
	"\\n</think>\\n\\nGood day to you, my friend!\"}]}\n"
	"{\"messages\":[{\"role\":\"user\",\"content\":\"Hello there\"},"
	"{\"role\":\"assistant\",\"content\":\"Good day to you, my friend!\"},"
	"{\"role\":\"user\",\"content\":\"What is the sea?\"},"
	"{\"role\":\"assistant\",\"content\":\"<think>\\nA question.\\n"
	"</think>\\n\\nThe sea is salt water, and large.\"}]}\n";

static bool make_models(void)
{
	char line[1024], path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/talk.jsonl", folder);
	f = fopen(path, "w");
	for (int i = 0; f && i < 20; i++)
		fputs(teach, f);
	if (!f || fclose(f))
		BUG("no talk");
	snprintf(line, sizeof(line),
		 "%s train -q --data %s --valid %s --steps 120 --length 96 "
		 "--rows 4 --hidden 64 --heads 2 --kv-heads 1 --layers 2 "
		 "--vocab 400 --optimizer muon --rate 0.01 --eval-every 60 "
		 "%s/talker >/dev/null",
		 web_tool("t0-qwen3"), path, path, folder);
	if (!is_i64(system(line), 0, "a model learns a talk"))
		return false;
	snprintf(line, sizeof(line), "%s make -q --model %s/endless",
		 web_tool("t0-qwen3"), folder);
	return is_i64(system(line), 0, "one talks nonsense");
}

/* ---- what a user does ---- */

static void test_talk(void)
{
	visit();
	is_str(eval("model.textContent"), "talker", "it says who talks");
	is_str(eval("document.activeElement.id"), "say",
	       "one may type at once");
	eval("temperature.value = 0; temperature.onchange(); 0");
	type_text("Hello there");
	press("Enter", 13);
	ok(wait_for(WRITTEN ".includes('tokens in')"), "Enter sends");
	is_str(eval(LAST("user") ".innerText.trim()"), "Hello there",
	       "it stands there");
	is_str(eval(LAST("assistant") ".querySelector('.text').textContent"),
	       "Good day to you, my friend!", "with the answer below it");
	is_str(eval(LAST("thought") ".textContent"), "The user greets me.",
	       "and the thought apart from that");
	is_str(eval("getComputedStyle(" LAST(
		       "thought") ").color !== "
				  "getComputedStyle(" LAST("text") ").color"),
	       "true", "the thought is dim");
	type_text("What is the sea?");
	click("#send");
	ok(wait_for(
		   "document.querySelectorAll('.assistant').length == 2 && " WRITTEN
		   ".includes('tokens in')"),
	   "a button sends, too");
	is_str(eval(LAST("assistant") ".querySelector('.text').textContent"),
	       "The sea is salt water, and large.",
	       "the answer is that to the whole talk");
	keep_shot("talk");
	click(".again");
	ok(wait_for(
		   "document.querySelectorAll('.assistant').length == 2 && " WRITTEN
		   ".includes('tokens in')"),
	   "it can be asked for again");
	is_str(eval(LAST("assistant") ".querySelector('.text').textContent"),
	       "The sea is salt water, and large.", "and comes again");
}

static void test_history(void)
{
	visit();
	is_str(eval("document.querySelectorAll('.turn').length + ' ' + "
		    "talks[0].length"),
	       "4 4", "the talk is there after a reload");
	click("#new");
	is_str(eval("document.querySelectorAll('.turn').length"), "0",
	       "a new one is empty");
	type_text("<img src=x onerror=alert(1)>&amp;");
	press("Enter", 13);
	ok(wait_for(WRITTEN ".includes('tokens in')"), "it has an answer");
	is_str(eval(LAST("user") ".querySelector('.text').textContent"),
	       "<img src=x onerror=alert(1)>&amp;", "what is typed is text");
	is_str(eval("document.images.length"), "0", "and no picture");
	is_str(eval("document.querySelectorAll('#talks li').length"), "2",
	       "there are two talks");
	click("#talks li:nth-child(2) button");
	is_str(eval(LAST("assistant") ".querySelector('.text').textContent"),
	       "The sea is salt water, and large.", "the first can be read");
	click("#talks li:nth-child(1) .forget");
	is_str(eval("document.querySelectorAll('#talks li').length"), "1",
	       "the second forgotten");
}

/* While the server stands still in the middle of an answer. */
static void test_stop(void)
{
	visit();
	click("#new");
	type_text("Tell me everything");
	press("Enter", 13);
	ok(wait_for("document.querySelector('.writing')?.textContent"
		    ".length > 0"),
	   "a long answer begins");
	kill(server.pid, SIGSTOP);
	keep_shot("writing");
	is_str(eval("$('send').hidden + ' ' + $('stop').hidden"), "true false",
	       "it can be stopped");
	click("#stop");
	ok(wait_for(WRITTEN ".includes('stopped')"), "it stops at once");
	ok(atoi(eval(LAST("assistant") ".firstChild.textContent.length + " LAST(
		   "text") ".textContent.length")) > 0,
	   "what there was of it stays");
	is_str(eval("$('send').hidden + ' ' + $('stop').hidden"), "false true",
	       "one may go on");
	kill(server.pid, SIGCONT);
	ok(web_idle(&server, 60) &&
		   web_metric(server.port, "requests_cancelled_total") == 1,
	   "and the server has stopped, too");
	is_u64(n_errors, 0, "no error was on the console");
	if (n_errors)
		diag("%s", first_error);
}

static void test_trouble(void)
{
	type_text("Are you there?");
	press("Enter", 13);
	ok(wait_for(WRITTEN ".includes('has gone')"),
	   "a server that has gone is told of");
	keep_shot("gone");
}

static void test_key(void)
{
	visit();
	ok(wait_for("model.textContent.includes('key')"),
	   "a server with a key wants it");
	is_str(eval("key.closest('details').open"), "true",
	       "there is a place for it");
	click("#key");
	type_text("secret");
	press("Tab", 9);
	ok(wait_for("model.textContent === 'talker'"), "which opens the way");
	click("#new");
	click("#say");
	type_text("Hello there");
	press("Enter", 13);
	ok(wait_for(WRITTEN ".includes('tokens in')"), "to answers");
	keep_shot("settings");
}

int main(void)
{
	const char *path = find_browser();
	char line[256];
	FILE *f;

	unsetenv("T0_DB");
	signal(SIGPIPE, SIG_IGN);
	if (!path) {
		diag("NO BROWSER: install chromium to have the page used in "
		     "one");
		skip_all("no chromium: the page was not used in a browser");
	}
	if (!mkdtemp(folder))
		BUG("no folder");
	if (!make_models())
		return plan_done();
	start_browser(path);
	if (ok(open_tab(), "a browser begins") && serve("talker", 0)) {
		const uint16_t port = server.port;
		test_talk();
		test_history();
		web_end(&server, SIGTERM);
		serve("endless --sequences 1 --context 24000 --tokens 20000",
		      port);
		test_stop();
		web_end(&server, SIGKILL);
		test_trouble();
		snprintf(line, sizeof(line), "%s/key", folder);
		f = fopen(line, "w");
		if (!f || fputs("secret\n", f) < 0 || fclose(f))
			BUG("no key");
		snprintf(line, sizeof(line), "talker --api-key-file %s/key",
			 folder);
		serve(line, port);
		test_key();
		is_u64(n_foreign, 0, "nobody but the server was asked");
		is_i64(web_end(&server, SIGTERM), 143, "which ends");
	}
	kill(-browser, SIGKILL);
	waitpid(browser, NULL, 0);
	buf_fini(&heard);
	snprintf(line, sizeof(line), "rm -r %s", folder);
	is_i64(system(line), 0, "all is cleared away");
	return plan_done();
}
