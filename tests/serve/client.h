/*
 * tests/serve/client.h - t0-qwen3 serve with a tiny model, and what clients of
 * it see.
 */
#ifndef T0_TESTS_SERVE_CLIENT_H
#define T0_TESTS_SERVE_CLIENT_H

#include <curl/curl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/tap.h"

struct served {
	char dir[32], url[128];
	pid_t pid;
};

/* Writes the model; then a server of it, with more arguments, NULL the last. */
static inline void model_make(struct served *s)
{
	const char *build = getenv("T0_BUILD");
	char command[512];

	if (!build)
		skip_all("T0_BUILD is not set");
	strcpy(s->dir, "/tmp/t0-serve-XXXXXX");
	if (!mkdtemp(s->dir))
		skip_all("no folder");
	snprintf(command, sizeof(command),
		 "%s/t0-qwen3 make --model %s/model -q --weights f32", build,
		 s->dir);
	if (system(command))
		skip_all("no model");
}

static inline bool server_start(struct served *s, const char *const *more)
{
	char tool[512], model[64], line[128] = "";
	const char *args[24] = { "t0-qwen3", "serve", "-q",	   "-m", model,
				 "--port",   "0",     "--threads", "1" };
	int said[2], n = 9;
	FILE *f;

	for (int i = 0; more && more[i]; i++)
		args[n++] = more[i];
	snprintf(tool, sizeof(tool), "%s/t0-qwen3", getenv("T0_BUILD"));
	snprintf(model, sizeof(model), "%s/model", s->dir);
	if (pipe(said))
		return false;
	s->pid = fork();
	if (!s->pid) {
		dup2(said[1], 1);
		execv(tool, (char *const *)args);
		_exit(127);
	}
	close(said[1]);
	f = fdopen(said[0], "r");
	if (!f || !fgets(line, sizeof(line), f) ||
	    sscanf(line, "listening on %127s", s->url) != 1)
		return false;
	fclose(f);
	return true;
}

/* Ends it; was that by the signal, with nothing left? */
static inline bool server_end(struct served *s)
{
	int status;

	kill(s->pid, SIGTERM);
	return waitpid(s->pid, &status, 0) == s->pid && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 128 + SIGTERM;
}

static inline void model_remove(struct served *s)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", s->dir);
	ok(system(command) == 0, "the model is gone");
}

static inline size_t take_body(char *data, size_t size, size_t n, void *out)
{
	buf_add(out, data, size * n);
	return size * n;
}

/* The body of the answer; the caller's. */
static inline struct buf ask_text(const struct served *s, const char *path,
				  const char *body, long *status)
{
	struct buf out = { 0 };
	char url[256];
	CURL *c = curl_easy_init();

	snprintf(url, sizeof(url), "%s%s", s->url, path);
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, &out);
	curl_easy_setopt(c, CURLOPT_TIMEOUT, 120L);
	curl_easy_perform(c);
	curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, status);
	curl_easy_cleanup(c);
	buf_adds(&out, "");
	return out;
}

/* Takes the reference to `request`. */
static inline json_t *ask_json(const struct served *s, const char *path,
			       json_t *request, long *status)
{
	char *body = json_dumps(request, 0);
	struct buf b = ask_text(s, path, body, status);
	json_t *j = json_loads(b.data, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL,
			       NULL);

	json_decref(request);
	free(body);
	buf_fini(&b);
	return j;
}

/* The same as a stream: a list of its events; NULL: they are framed wrongly. */
static inline json_t *ask_stream(const struct served *s, const char *path,
				 json_t *request, long *status)
{
	json_t *all = json_array(), *one;
	char *body;

	json_object_set_new(request, "stream", json_true());
	body = json_dumps(request, 0);
	struct buf b = ask_text(s, path, body, status);
	const char *at = b.data, *end;
	for (; !strncmp(at, "data: {", 7) && (end = strstr(at, "\n\n"));
	     at = end + 2) {
		one = json_loadb(at + 6, (size_t)(end - at - 6),
				 JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
		json_array_append_new(all, one);
	}
	if (strcmp(at, "data: [DONE]\n\n")) {
		diag("in a stream: %.200s", at);
		json_decref(all);
		all = NULL;
	}
	json_decref(request);
	free(body);
	buf_fini(&b);
	return all;
}

/* "a.0.b" of an answer: borrowed; NULL: it is not there. */
static inline json_t *get_at(json_t *j, const char *path)
{
	char part[64];

	for (int n; *path && j; path += n + (path[n] == '.')) {
		n = (int)strcspn(path, ".");
		snprintf(part, sizeof(part), "%.*s", n, path);
		j = json_is_array(j) ? json_array_get(j, (size_t)atoi(part)) :
				       json_object_get(j, part);
	}
	return j;
}

static inline const char *text_at(json_t *j, const char *path)
{
	const char *s = json_string_value(get_at(j, path));

	return s ? s : "(no string)";
}

#endif
