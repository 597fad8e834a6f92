/*
 * isa/launch/triton.c - what Triton writes beside an object: NAME.json.
 *
 * Of that file count: "name" of the kernel, "num_warps" and "warp_size" (of the
 * target, in newer versions), "shared" (dynamic LDS), "target" and "arch" (the
 * chip), "num_ctas" (clusters), and "global_scratch_size" and
 * "profile_scratch_size": since there is such a key, kernels have such a
 * pointer behind the arguments of the source, null where the size is 0, else
 * memory of so many bytes for each workgroup.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "isa/launch/launch_int.h"

enum { JSON_MOST_BYTES = 1 << 20 };

/* "x/matmul.hsaco" -> "x/matmul.json", owned by the caller. */
static char *path_beside(const char *path)
{
	const char *slash = strrchr(path, '/'), *dot = strrchr(path, '.');
	size_t n = dot && dot > (slash ? slash + 1 : path) ?
			   (size_t)(dot - path) : strlen(path);
	char *out = xmalloc(n + sizeof(".json"));

	memcpy(out, path, n);
	strcpy(out + n, ".json");
	return out;
}

/* The file, or NULL with what is wrong with it in `why`. */
static json_t *parse_file(const char *path, struct buf *why)
{
	struct buf text = { 0 };
	struct err e = { 0 };
	json_error_t at;
	json_t *root = NULL;

	if (!file_read(path, JSON_MOST_BYTES, &text, &e)) {
		buf_adds(why, e.msg);
	} else {
		root = json_loadb(text.data ? text.data : "", text.len, 0, &at);
		if (!root)
			buf_printf(why, "line %d: %s", at.line, at.text);
	}
	buf_fini(&text);
	return root;
}

/* A number of this name, 0..most; `otherwise` where there is none. */
static uint64_t number_of(const json_t *o, const char *key, uint64_t most,
			  uint64_t otherwise)
{
	const json_t *v = json_object_get(o, key);
	json_int_t n = json_integer_value(v);

	return json_is_integer(v) && n >= 0 && (uint64_t)n <= most ?
		       (uint64_t)n : otherwise;
}

/* NULL, or why the file says nothing about this object. */
static const char *not_about(const struct launch_plan *l, const json_t *root)
{
	const json_t *target = json_object_get(root, "target");
	const char *name = json_string_value(json_object_get(root, "name"));
	const char *chip = json_string_value(json_object_get(target, "arch"));

	if (!name || !json_is_integer(json_object_get(root, "num_warps")) ||
	    !json_is_integer(json_object_get(root, "shared")))
		return "not Triton's (no name, num_warps and shared)";
	if (!chip)
		chip = json_string_value(json_object_get(root, "arch"));
	if (chip && strcmp(chip, l->co.chip))
		return "of another chip";
	if (!co_kernel_find(&l->co, name))
		return "of a kernel that the object does not have";
	if (l->kernel_name && strcmp(name, l->kernel_name))
		return "of another kernel";
	return NULL;
}

static bool take_numbers(struct launch_triton *t, const json_t *root,
			 struct err *e)
{
	static const char *const scratch[] = { "global_scratch_size",
					       "profile_scratch_size" };
	const json_t *target = json_object_get(root, "target");
	uint64_t lanes = number_of(target, "warp_size", 64, 32);
	uint64_t warps = number_of(root, "num_warps", 32, 0);
	uint64_t lds = number_of(root, "shared", 65536, UINT64_MAX);

	lanes = number_of(root, "warp_size", 64, lanes);
	lanes = number_of(root, "threads_per_warp", 64, lanes);
	if (!warps || !lanes || warps * lanes > 1024)
		return err_set(e, ERR_INPUT, "%s: num_warps times warp_size: "
			       "wanted 1..1024 work-items", t->path);
	if (lds == UINT64_MAX)
		return err_set(e, ERR_INPUT, "%s: shared: wanted 0..65536 "
			       "bytes of LDS", t->path);
	if (number_of(root, "num_ctas", 1, 2) > 1 &&
	    json_object_get(root, "num_ctas"))
		return err_set(e, ERR_UNSUPPORTED, "%s: num_ctas: clusters of "
			       "workgroups are not to be had on gfx11, "
			       "wanted 1", t->path);
	t->items = (uint32_t)(warps * lanes);
	t->lds_bytes = (uint32_t)lds;
	for (size_t i = 0; i < ARRAY_SIZE(scratch); i++) {
		uint64_t n = number_of(root, scratch[i], UINT32_MAX,
				       UINT64_MAX);

		if (!json_object_get(root, scratch[i]))
			continue;
		if (n == UINT64_MAX)
			return err_set(e, ERR_INPUT, "%s: %s: wanted 0..2^32-1 "
				       "bytes", t->path, scratch[i]);
		t->scratch_bytes[t->n_scratch++] = n;
	}
	return true;
}

bool triton_read(struct launch_plan *l, struct err *e)
{
	char *path = path_beside(l->path);
	struct stat st;
	struct buf why = { 0 };
	json_t *root = NULL;
	bool good = true;

	if (strcmp(path, l->path) && !stat(path, &st) && S_ISREG(st.st_mode))
		root = parse_file(path, &why);
	if (root && not_about(l, root))
		buf_adds(&why, not_about(l, root));
	if (why.len)
		launch_remark(l, "%s is not used: %s", path, why.data);
	if (root && !why.len) {
		struct launch_triton *t = &l->triton;

		t->path = xstrdup(path);
		t->kernel = xstrdup(json_string_value(
			json_object_get(root, "name")));
		good = take_numbers(t, root, e);
		if (good)
			launch_remark(l, "%s: kernel %s, %u work-items a "
				      "workgroup, %u bytes of LDS, %d pointers "
				      "of its own", path, t->kernel, t->items,
				      t->lds_bytes, t->n_scratch);
	}
	json_decref(root);
	buf_fini(&why);
	free(path);
	return good;
}

bool triton_add_scratch(struct launch_plan *l, struct err *e)
{
	const struct launch_triton *t = &l->triton;
	uint32_t n[3];
	const uint64_t groups = launch_groups(l, n);

	if (!l->kernel->has_metadata || !t->n_scratch ||
	    (uint32_t)(l->n_args + t->n_scratch) != l->kernel->n_user_args)
		return true;
	for (int i = 0; i < t->n_scratch; i++) {
		struct operand *o = &l->arg[l->n_args++];
		const uint64_t each = t->scratch_bytes[i];

		*o = (struct operand){ .text = "Triton's own" };
		if (!each) {
			o->kind = OPERAND_VALUE;
			o->type = value_type_find("x64", 3);
			o->count = 1;
			o->size_bytes = 8;
			o->data = xcalloc(8, 1);
			continue;
		}
		if (groups > OPERAND_MAX_BYTES / each)
			return err_set(e, ERR_USAGE, "%s: %llu bytes for each "
				       "of %llu workgroups: expected at most "
				       "1 TiB", t->path,
				       (unsigned long long)each,
				       (unsigned long long)groups);
		o->kind = OPERAND_BUFFER;
		o->type = value_type_find("u8", 2);
		o->count = o->size_bytes = groups * each;
		o->untouched = true;
	}
	return true;
}
