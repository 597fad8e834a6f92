/*
 * What t0-qwen3 serve answers has the form that OpenAI's reference shows:
 * tests/serve/shapes holds a request each and the published answer, whose
 * names, types and fixed words the server's must have, and no others.
 */
#include <glob.h>

#include "tests/serve/client.h"

static struct served served;

/* Words that are the same in every answer. */
static bool is_fixed(const char *key)
{
	static const char *const fixed[] = { "object", "role", "type",
					     "finish_reason" };

	for (size_t i = 0; i < ARRAY_SIZE(fixed); i++)
		if (!strcmp(fixed[i], key))
			return true;
	return false;
}

static bool has_shape(json_t *got, json_t *want, const char *key, bool quiet);

static bool object_has_shape(json_t *got, json_t *want, bool quiet)
{
	json_t *any = json_object_get(want, "*"), *x;
	const char *key;
	bool same = true;

	json_object_foreach(want, key,
			    x) if (!any && !json_object_get(got, key))
	{
		if (!quiet)
			diag("%s is missing", key);
		same = false;
	}
	json_object_foreach(got, key, x)
	{
		json_t *its = any ? any : json_object_get(want, key);
		if (!its && !quiet)
			diag("%s is too much", key);
		same = same && its && has_shape(x, its, key, quiet);
	}
	return same;
}

static bool has_shape(json_t *got, json_t *want, const char *key, bool quiet)
{
	const bool any = json_is_string(want) &&
			 !strcmp(json_string_value(want), "*");
	bool same = any || json_typeof(got) == json_typeof(want) ||
		    (json_is_real(want) && json_is_number(got));
	json_t *x;
	size_t i;

	if (same && json_is_object(want))
		return object_has_shape(got, want, quiet);
	if (same && json_is_array(want)) {
		same = !json_array_size(got) == !json_array_size(want);
		json_array_foreach (got, i, x)
			same = same && has_shape(x, json_array_get(want, 0),
						 key, quiet);
	}
	if (same && !any && json_is_string(want) && is_fixed(key))
		same = json_equal(got, want);
	if (!same && !quiet)
		diag("%s differs", key);
	return same;
}

/*
 * Every event has a recorded one's shape, the ends that of the ends.  How many
 * pieces there are between is a matter of time.
 */
static bool events_have_shape(json_t *got, json_t *want)
{
	const size_t n = json_array_size(got), most = json_array_size(want);

	for (size_t i = 0; i < n; i++) {
		json_t *event = json_array_get(got, i);
		size_t k = i == 0 ? 0 : i + 1 == n ? most - 1 : 0;
		const bool end = i == 0 || i + 1 == n;
		while (k < most && !end &&
		       !has_shape(event, json_array_get(want, k), "", true))
			k++;
		if (k == most ||
		    !has_shape(event, json_array_get(want, k), "", false)) {
			char *text = json_dumps(event, 0);
			diag("%s", text);
			free(text);
			return false;
		}
	}
	return n > 1;
}

static void test_shape(const char *file)
{
	json_t *r = json_load_file(file, 0, NULL),
	       *request = json_object_get(r, "request"),
	       *events = json_object_get(r, "events"), *got;
	const char *path = text_at(r, "path"), *name = strrchr(file, '/') + 1;
	char *body = json_is_string(request) ?
			     xstrdup(json_string_value(request)) :
			     json_dumps(request, 0);
	long status;

	if (events) {
		got = ask_stream(&served, path, json_incref(request), &status);
	} else {
		struct buf b = ask_text(&served, path, body, &status);
		got = json_loads(b.data, 0, NULL);
		buf_fini(&b);
	}
	ok(got && status == json_integer_value(json_object_get(r, "status")) &&
		   (events ? events_have_shape(got, events) :
			     has_shape(got, json_object_get(r, "answer"), "",
				       false)),
	   "an answer is as OpenAI's: %s", name);
	free(body);
	json_decref(got);
	json_decref(r);
}

int main(void)
{
	const char *src = getenv("T0_SRC");
	char pattern[512];
	glob_t files;

	model_make(&served);
	if (!ok(server_start(&served, NULL), "a server starts"))
		return plan_done();
	snprintf(pattern, sizeof(pattern), "%s/tests/serve/shapes/*.json",
		 src ? src : ".");
	if (ok(!glob(pattern, 0, NULL, &files) && files.gl_pathc >= 14,
	       "answers are recorded")) {
		for (size_t i = 0; i < files.gl_pathc; i++)
			test_shape(files.gl_pathv[i]);
		globfree(&files);
	}
	ok(server_end(&served), "the server ends");
	model_remove(&served);
	return plan_done();
}
