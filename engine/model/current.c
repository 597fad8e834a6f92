/*
 * engine/model/current.c - is a copy of a model still the one to be made?
 */
#include <dirent.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/model/model.h"
#include "engine/text/text.h"

static bool is_after(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec :
				      a.tv_nsec > b.tv_nsec;
}

/*
 * A file that is moved or copied with its old time is new, too, which only the
 * change of its status tells.
 */
static bool is_older(const char *path, struct timespec made)
{
	struct stat s;

	return stat(path, &s) == 0 && is_after(made, s.st_mtim) &&
	       is_after(made, s.st_ctim);
}

/* A folder's files; copies as GGUF files that lie beside them are none. */
static bool model_is_older(const char *path, struct timespec made)
{
	DIR *d = opendir(path);
	struct buf file = { 0 };
	bool older = true;

	if (!d)
		return is_older(path, made);
	for (const struct dirent *f; older && (f = readdir(d));) {
		buf_reset(&file);
		buf_printf(&file, "%s/%s", path, f->d_name);
		older = f->d_name[0] == '.' ||
			fnmatch("*.gguf", f->d_name, 0) == 0 ||
			is_older(file.data, made);
	}
	buf_fini(&file);
	closedir(d);
	return older;
}

static bool same_tensors(const char *path, const struct qwen_tensor *t,
			 size_t n)
{
	struct qwen_tensors there;
	struct err none = { 0 };

	if (!qwen_tensors_open(&there, path, &none))
		return false;
	bool same = there.n_tensors == n;
	for (size_t i = 0; same && i < n; i++) {
		const struct qwen_tensor *is =
			qwen_tensor_find(&there, t[i].name);

		same = is && is->dtype == t[i].dtype &&
		       is->n_dims == t[i].n_dims &&
		       memcmp(is->shape, t[i].shape,
			      t[i].n_dims * sizeof(*t[i].shape)) == 0;
	}
	qwen_tensors_close(&there);
	return same;
}

bool qwen_copy_is_current(const char *from, const char *to, const char *weights,
			  const struct qwen_tensor *t, size_t n)
{
	struct qwen_config config;
	struct err none = { 0 };
	struct stat s;

	return stat(weights, &s) == 0 && model_is_older(from, s.st_mtim) &&
	       is_older("/proc/self/exe", s.st_mtim) &&
	       qwen_tokenizer_there(from) == qwen_tokenizer_there(to) &&
	       qwen_config_load(&config, to, &none) && same_tensors(to, t, n);
}
