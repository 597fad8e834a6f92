/*
 * The chat page of t0-qwen3 serve in a real browser: it types and clicks as a
 * user would.  The model has learnt what it answers.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/ref/browser.h"
#include "tests/ref/web.h"
#include "tests/tap.h"

static char folder[] = "/tmp/t0-page-XXXXXX";
static struct web_server server;

static char home[64]; /* the server's address */

/* ---- a server ---- */

static bool serve(const char *options, uint16_t port)
{
	char line[512], log[64];

	snprintf(line, sizeof(line), "--threads 1 -m %s/%s", folder, options);
	snprintf(log, sizeof(log), "%s/log", folder);
	server = web_start(line, port, log);
	snprintf(home, sizeof(home), "http://127.0.0.1:%u/", server.port);
	browser_home(home);
	return ok(server.pid, "a server of %s", options);
}

static void visit(void)
{
	browser_visit(home);
	ok(browser_wait("document.readyState === 'complete' && "
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
	is_str(browser_eval("model.textContent"), "talker",
	       "it says who talks");
	is_str(browser_eval("document.activeElement.id"), "say",
	       "one may type at once");
	browser_eval("temperature.value = 0; temperature.onchange(); 0");
	browser_type("Hello there");
	browser_press("Enter", 13);
	ok(browser_wait(WRITTEN ".includes('tokens in')"), "Enter sends");
	is_str(browser_eval(LAST("user") ".innerText.trim()"), "Hello there",
	       "it stands there");
	is_str(browser_eval(
		       LAST("assistant") ".querySelector('.text').textContent"),
	       "Good day to you, my friend!", "with the answer below it");
	is_str(browser_eval(LAST("thought") ".textContent"),
	       "The user greets me.", "and the thought apart from that");
	is_str(browser_eval("getComputedStyle(" LAST(
		       "thought") ").color !== "
				  "getComputedStyle(" LAST("text") ").color"),
	       "true", "the thought is dim");
	browser_type("What is the sea?");
	browser_click("#send");
	ok(browser_wait(
		   "document.querySelectorAll('.assistant').length == 2 && " WRITTEN
		   ".includes('tokens in')"),
	   "a button sends, too");
	is_str(browser_eval(
		       LAST("assistant") ".querySelector('.text').textContent"),
	       "The sea is salt water, and large.",
	       "the answer is that to the whole talk");
	browser_shot("talk", false);
	browser_click(".again");
	ok(browser_wait(
		   "document.querySelectorAll('.assistant').length == 2 && " WRITTEN
		   ".includes('tokens in')"),
	   "it can be asked for again");
	is_str(browser_eval(
		       LAST("assistant") ".querySelector('.text').textContent"),
	       "The sea is salt water, and large.", "and comes again");
}

static void test_history(void)
{
	visit();
	is_str(browser_eval("document.querySelectorAll('.turn').length + ' ' + "
			    "talks[0].length"),
	       "4 4", "the talk is there after a reload");
	browser_click("#new");
	is_str(browser_eval("document.querySelectorAll('.turn').length"), "0",
	       "a new one is empty");
	browser_type("<img src=x onerror=alert(1)>&amp;");
	browser_press("Enter", 13);
	ok(browser_wait(WRITTEN ".includes('tokens in')"), "it has an answer");
	is_str(browser_eval(LAST("user") ".querySelector('.text').textContent"),
	       "<img src=x onerror=alert(1)>&amp;", "what is typed is text");
	is_str(browser_eval("document.images.length"), "0", "and no picture");
	is_str(browser_eval("document.querySelectorAll('#talks li').length"),
	       "2", "there are two talks");
	browser_click("#talks li:nth-child(2) button");
	is_str(browser_eval(
		       LAST("assistant") ".querySelector('.text').textContent"),
	       "The sea is salt water, and large.", "the first can be read");
	browser_click("#talks li:nth-child(1) .forget");
	is_str(browser_eval("document.querySelectorAll('#talks li').length"),
	       "1", "the second forgotten");
}

/* While the server stands still in the middle of an answer. */
static void test_stop(void)
{
	visit();
	browser_click("#new");
	browser_type("Tell me everything");
	browser_press("Enter", 13);
	ok(browser_wait("document.querySelector('.writing')?.textContent"
			".length > 0"),
	   "a long answer begins");
	kill(server.pid, SIGSTOP);
	browser_shot("writing", false);
	is_str(browser_eval("$('send').hidden + ' ' + $('stop').hidden"),
	       "true false", "it can be stopped");
	browser_click("#stop");
	ok(browser_wait(WRITTEN ".includes('stopped')"), "it stops at once");
	ok(atoi(browser_eval(
		   LAST("assistant") ".firstChild.textContent.length + " LAST(
			   "text") ".textContent.length")) > 0,
	   "what there was of it stays");
	is_str(browser_eval("$('send').hidden + ' ' + $('stop').hidden"),
	       "false true", "one may go on");
	kill(server.pid, SIGCONT);
	ok(web_idle(&server, 60) &&
		   web_metric(server.port, "requests_cancelled_total") == 1,
	   "and the server has stopped, too");
	is_u64(browser_n_errors(), 0, "no error was on the console");
	if (browser_n_errors())
		diag("%s", browser_first_error());
}

static void test_trouble(void)
{
	browser_type("Are you there?");
	browser_press("Enter", 13);
	ok(browser_wait(WRITTEN ".includes('has gone')"),
	   "a server that has gone is told of");
	browser_shot("gone", false);
}

static void test_key(void)
{
	visit();
	ok(browser_wait("model.textContent.includes('key')"),
	   "a server with a key wants it");
	is_str(browser_eval("key.closest('details').open"), "true",
	       "there is a place for it");
	browser_click("#key");
	browser_type("secret");
	browser_press("Tab", 9);
	ok(browser_wait("model.textContent === 'talker'"),
	   "which opens the way");
	browser_click("#new");
	browser_click("#say");
	browser_type("Hello there");
	browser_press("Enter", 13);
	ok(browser_wait(WRITTEN ".includes('tokens in')"), "to answers");
	browser_shot("settings", false);
}

int main(void)
{
	char line[256];
	FILE *f;

	unsetenv("T0_DB");
	signal(SIGPIPE, SIG_IGN);
	browser_require();
	if (!mkdtemp(folder))
		BUG("no folder");
	if (!make_models())
		return plan_done();
	if (ok(browser_start(folder), "a browser begins") &&
	    serve("talker", 0)) {
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
		is_u64(browser_n_foreign(), 0,
		       "nobody but the server was asked");
		is_i64(web_end(&server, SIGTERM), 143, "which ends");
	}
	browser_end();
	snprintf(line, sizeof(line), "rm -r %s", folder);
	is_i64(system(line), 0, "all is cleared away");
	return plan_done();
}
