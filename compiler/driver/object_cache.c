/*
 * compiler/driver/object_cache.c - objects from the pack, from the cache's
 * folder, or compiled and put there.
 *
 * What lies in the folder is run: it must be the user's alone, and so must
 * each entry, which is a plain file and no link.  Its hash and key tell what
 * was damaged or copied to another name; against others only that helps.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#include "compiler/cost/cost.h"
#include "compiler/driver/cc.h"

/* ---------------------------------------------------------------- keys ---- */

struct object_key object_key_hash(const char *what, const struct cc_options *o)
{
	const char *chip = o->chip ? o->chip : "";
	uint32_t number[] = { (uint32_t)o->level, o->max_vgprs, o->waves,
			      o->wgp, o->cu, o->no_verify };
	XXH3_state_t *h = XXH3_createState();
	char costs[COST_DIGEST];
	struct cost_model defaults;

	if (!h)
		mem_ran_out(576, MEM_HERE); /* xxhash.h: its size */
	XXH3_128bits_reset(h);
	XXH3_128bits_update(h, what, strlen(what) + 1);
	XXH3_128bits_update(h, chip, strlen(chip) + 1);
	XXH3_128bits_update(h, number, sizeof(number));
	cost_init(&defaults, chip);
	cost_digest(o->costs ? o->costs : &defaults, costs);
	XXH3_128bits_update(h, costs, strlen(costs));
	cost_fini(&defaults);
	XXH128_hash_t d = XXH3_128bits_digest(h);
	XXH3_freeState(h);
	return (struct object_key){ d.high64, d.low64 };
}

/* -------------------------------------------------------------- folder ---- */

static char *join_path(const char *a, const char *b)
{
	struct buf s = { 0 };

	buf_printf(&s, "%s/%s", a, b);
	return s.data;
}

/* The folder of all builds, or NULL; the caller's. */
static char *root_folder(void)
{
	const char *own = getenv("T0_CACHE");

	if (own)
		return *own ? xstrdup(own) : NULL;
	return file_cache_folder(NULL);
}

void object_cache_init(struct object_cache *c, object_warn_fn *warn, void *ctx)
{
	const struct prebuilt pack = prebuilt_embedded();
	const struct object_key build = prebuilt_build(&pack);
	char *root = root_folder(), name[36];

	*c = (struct object_cache){ .warn = warn, .warn_ctx = ctx };
	snprintf(name, sizeof(name), "%016llx%016llx",
		 (unsigned long long)build.hi, (unsigned long long)build.lo);
	if (root && (build.hi || build.lo)) {
		c->folder = join_path(root, name);
		/* It is in use. */
		utimensat(AT_FDCWD, c->folder, NULL, AT_SYMLINK_NOFOLLOW);
	}
	free(root);
}

void object_cache_fini(struct object_cache *c)
{
	free(c->folder);
	c->folder = NULL;
}

/* ---------------------------------------------------------- old builds ---- */

enum { MONTH_S = 30 * 24 * 3600 };

static bool is_build(const char *name)
{
	return strlen(name) == 32 && strspn(name, "0123456789abcdef") == 32;
}

/* The entries of a build, then its folder; strangers' files keep it. */
static void remove_build(const char *folder)
{
	const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW |
					    O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	for (struct dirent *f; d && (f = readdir(d));) {
		size_t n = strlen(f->d_name);
		if (n > 3 && !strcmp(f->d_name + n - 3, ".co"))
			unlinkat(dirfd(d), f->d_name, 0);
	}
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	rmdir(folder);
}

/* What lies beside `folder` and was not used for long. */
static void remove_old(const char *folder)
{
	char *root = xstrdup(folder);
	const time_t now = time(NULL);
	struct stat st;

	*strrchr(root, '/') = 0;
	DIR *d = opendir(root);
	for (struct dirent *f; d && (f = readdir(d));) {
		char *path = join_path(root, f->d_name);
		if (is_build(f->d_name) && strcmp(path, folder) &&
		    !lstat(path, &st) && S_ISDIR(st.st_mode) &&
		    now - st.st_mtime > MONTH_S)
			remove_build(path);
		free(path);
	}
	if (d)
		closedir(d);
	free(root);
}

/* ------------------------------------------------------------- entries ---- */

static char *entry_path(const struct object_cache *c, struct object_key key)
{
	struct buf s = { 0 };

	buf_printf(&s, "%s/%016llx%016llx.co", c->folder,
		   (unsigned long long)key.hi, (unsigned long long)key.lo);
	return s.data;
}

/* Stands before the object in the file. */
struct entry {
	char magic[8];
	struct object_key key;
	uint64_t len, hash;
};

static struct entry entry_for(struct object_key key, const void *data,
			      size_t len)
{
	struct entry x = { .magic = "T0JIT1", .key = key, .len = len,
			   .hash = XXH3_64bits(data, len) };

	return x;
}

enum { ENTRY_MAX_BYTES = 64 << 20 };

/* Can nobody but the user (and root) have put something there? */
static bool check_owner(const char *path, const struct stat *s, struct err *e)
{
	if (s->st_uid != geteuid())
		return err_set(e, ERR_PERM, "%s: belongs to user %u, wanted "
			       "one of user %u", path, (unsigned)s->st_uid,
			       (unsigned)geteuid());
	if (s->st_mode & S_IWOTH ||
	    (s->st_mode & S_IWGRP && s->st_gid != getegid()))
		return err_set(e, ERR_PERM, "%s: others may write to it (mode "
			       "%04o); chmod go-w would mend that", path,
			       (unsigned)s->st_mode & 07777);
	return true;
}

/* The folder and the one that it stands in; those not there are no danger. */
static bool check_folders(const struct object_cache *c, struct err *e)
{
	char *path = xstrdup(c->folder);
	struct stat s;
	bool good = stat(path, &s) || check_owner(path, &s, e);

	*strrchr(path, '/') = 0;
	good = good && (stat(path, &s) || check_owner(path, &s, e));
	free(path);
	return good;
}

/* The bytes of an entry; false if it is none, or not the user's. */
static bool read_own(const char *path, struct buf *out)
{
	/* Neither follow a link nor wait for who writes to a pipe. */
	const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
					  O_CLOEXEC);
	char chunk[65536];
	ssize_t n = -1;
	struct stat s;

	if (fd >= 0 && !fstat(fd, &s) && S_ISREG(s.st_mode) &&
	    s.st_size <= ENTRY_MAX_BYTES && check_owner(path, &s, NULL))
		while ((n = read(fd, chunk, sizeof(chunk))) > 0 &&
		       out->len <= ENTRY_MAX_BYTES)
			buf_add(out, chunk, (size_t)n);
	if (fd >= 0)
		close(fd);
	return n == 0;
}

/* False if it is not there, or is not what was written. */
static bool entry_read(const struct object_cache *c, struct object_key key,
		       struct cache_object *out)
{
	char *path = entry_path(c, key);
	struct entry x, want;
	bool good = check_folders(c, NULL) && read_own(path, &out->own) &&
		    out->own.len > sizeof(x);

	if (good) {
		memcpy(&x, out->own.data, sizeof(x));
		out->bytes = (const uint8_t *)out->own.data + sizeof(x);
		out->len = out->own.len - sizeof(x);
		want = entry_for(key, out->bytes, out->len);
		good = !memcmp(&x, &want, sizeof(x));
	}
	if (!good)
		cache_object_fini(out);
	free(path);
	return good;
}

static bool entry_write(const struct object_cache *c, struct object_key key,
			const struct buf *object, struct err *e)
{
	struct entry x = entry_for(key, object->data, object->len);
	char *path = entry_path(c, key);
	struct buf all = { 0 };
	bool new_build = access(c->folder, F_OK) != 0, good;
	struct stat s;

	buf_add(&all, &x, sizeof(x));
	buf_add(&all, object->data, object->len);
	good = file_make_folders(c->folder, e) && check_folders(c, e);
	/* A link would be followed, a pipe written to. */
	if (good && !lstat(path, &s) && !S_ISREG(s.st_mode) &&
	    !S_ISDIR(s.st_mode))
		unlink(path);
	good = good && file_write_atomic(path, all.data, all.len, e);
	if (good && new_build)
		remove_old(c->folder);
	buf_fini(&all);
	free(path);
	return good;
}

static void warn_once(struct object_cache *c, const struct err *e)
{
	char text[sizeof(e->msg) + 128];

	if (!c->warn || atomic_exchange(&c->warned, true))
		return;
	snprintf(text, sizeof(text), "kernels are compiled at every run: %s "
		 "(T0_CACHE names another folder; empty: none)", e->msg);
	c->warn(c->warn_ctx, text);
}

/* ------------------------------------------------------------- objects ---- */

static bool compile_object(struct object_cache *c,
			   const struct object_request *r,
			   struct object_key key, struct cache_object *out,
			   struct err *e)
{
	struct ssa_func *f = r->build(r->ctx, e);
	struct cc_object obj = { 0 };
	struct err cache = { 0 };
	bool good = f && cc_compile(f, r->options, &obj, e);

	ssa_func_free(f);
	if (!good)
		return err_wrap(e, "%s", r->what);
	atomic_fetch_add(&c->compiled, 1);
	if (c->folder && !entry_write(c, key, &obj.bytes, &cache))
		warn_once(c, &cache);
	*out = (struct cache_object){ .from = OBJECT_COMPILED,
				      .own = obj.bytes };
	out->bytes = (const uint8_t *)out->own.data;
	out->len = out->own.len;
	return true;
}

bool object_cache_get(struct object_cache *c, const struct object_request *r,
		      struct cache_object *out, struct err *e)
{
	const struct object_key key = object_key_hash(r->what, r->options);
	const struct prebuilt pack = prebuilt_embedded();

	*out = (struct cache_object){ .from = OBJECT_PREBUILT };
	out->bytes = prebuilt_find(&pack, key, &out->len);
	if (out->bytes)
		return true;
	out->from = OBJECT_CACHED;
	if (c->folder && entry_read(c, key, out))
		return true;
	return compile_object(c, r, key, out, e);
}

void cache_object_fini(struct cache_object *o)
{
	buf_fini(&o->own);
	o->bytes = NULL;
	o->len = 0;
}

const char *object_from_name(enum object_from from)
{
	static const char *const name[] = { "pack", "cache", "compiled" };

	return name[from];
}
