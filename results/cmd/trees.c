/*
 * results/cmd/trees.c - commits, checked out and built.
 *
 * A tree is a work tree of git in the user's cache.  A file beside it says that
 * it was built, or why not, so that a killed command finds it again.
 */
#include "results/cmd/trees.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/vec.h"
#include "results/process/process.h"

#define BUILD "make --no-print-directory m=rel all"

/* ----------------------------------------------------------------- git -- */

static bool run_git(const char *dir, struct buf *out,
		    const char *const *words, struct err *e)
{
	const char *quiet[] = { "GIT_TERMINAL_PROMPT=0" };
	struct buf log = { 0 };
	int fd = scratch_file(&log, "git", e);
	bool ok = fd >= 0;

	if (ok) {
		struct process p = { "git", words, dir, quiet, 1, log.data,
				     NULL };

		close(fd);
		ok = process_run(&p, e) &&
		     (!out || file_read(log.data, 0, out, e));
		unlink(log.data);
	}
	buf_fini(&log);
	while (out && out->len && out->data[out->len - 1] == '\n')
		out->data[--out->len] = 0;
	return ok;
}

bool trees_git_words(const struct trees *t, struct buf *out,
		     const char *const *words, struct err *e)
{
	return run_git(t->repository, out, words, e);
}

bool trees_git(const struct trees *t, struct buf *out, struct err *e, ...)
{
	VEC(const char *) words = { 0 };
	const char *word = "git";
	va_list ap;

	va_start(ap, e);
	for (; word; word = va_arg(ap, const char *))
		vec_push(&words, word);
	va_end(ap);
	vec_push(&words, NULL);
	bool ok = trees_git_words(t, out, words.v, e);
	vec_fini(&words);
	return ok;
}

bool trees_resolve(const struct trees *t, const char *name,
		   char out[TREE_COMMIT], struct err *e)
{
	struct buf what = { 0 }, hash = { 0 };

	buf_printf(&what, "%s^{commit}", name);
	bool ok = trees_git(t, &hash, NULL, "rev-parse", "--verify", "--quiet",
			    "--end-of-options", what.data, NULL);
	ok = ok && hash.len >= 40 && hash.len < TREE_COMMIT;
	if (ok)
		snprintf(out, TREE_COMMIT, "%s", hash.data);
	else
		err_set(e, ERR_INPUT, "%s: no commit of %s", name,
			t->repository);
	buf_fini(&what);
	buf_fini(&hash);
	return ok;
}

/* -------------------------------------------------------------- opened -- */

static bool lock_trees(struct trees *t, struct err *e)
{
	struct buf path = { 0 };

	buf_printf(&path, "%s/lock", t->folder);
	t->lock = open(path.data, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	bool ok = t->lock >= 0 ||
		  err_sys(e, ERR_IO, errno, "%s: cannot open", path.data);
	if (ok && flock(t->lock, LOCK_EX | LOCK_NB))
		ok = err_set(e, ERR_BUSY, "%s: another bench-commits, bisect "
			     "or experiment of this repository runs; wait for "
			     "it", path.data);
	buf_fini(&path);
	return ok;
}

static char *trees_folder(const char *repository, struct err *e)
{
	char id[RES_IDENTITY];
	struct buf name = { 0 };

	res_identity(repository, strlen(repository), id);
	buf_printf(&name, "trees/%.16s", strchr(id, ':') + 1);
	char *folder = file_cache_folder(name.data);
	buf_fini(&name);
	if (!folder)
		err_set(e, ERR_INPUT, "no place for trees of commits: set "
			"HOME or XDG_CACHE_HOME");
	return folder;
}

bool trees_open(struct trees *t, struct show *s, struct err *e)
{
	struct buf top = { 0 };

	*t = (struct trees){ .s = s, .lock = -1 };
	bool ok = trees_git(t, &top, e, "rev-parse", "--show-toplevel", NULL) ||
		  err_wrap(e, "wanted a git repository");
	if (ok)
		t->repository = xstrdup(top.data);
	buf_fini(&top);
	ok = ok && (t->folder = trees_folder(t->repository, e)) &&
	     file_make_folders(t->folder, e) && lock_trees(t, e);
	if (!ok)
		trees_close(t, true);
	return ok;
}

static void unlink_beside(const char *path, const char *suffix)
{
	struct buf b = { 0 };

	buf_printf(&b, "%s%s", path, suffix);
	unlink(b.data);
	buf_fini(&b);
}

static void remove_trees(struct trees *t)
{
	struct buf list = { 0 };
	size_t len = strlen(t->folder);

	if (!trees_git(t, &list, NULL, "worktree", "list", "--porcelain", NULL))
		return;
	for (char *line = strtok(list.data, "\n"); line;
	     line = strtok(NULL, "\n")) {
		char *path = line + strlen("worktree ");
		if (strncmp(line, "worktree ", 9) ||
		    strncmp(path, t->folder, len) || path[len] != '/')
			continue;
		unlink_beside(path, ".built");
		unlink_beside(path, ".broken");
		trees_git(t, NULL, NULL, "worktree", "remove", "--force", path,
			  NULL);
	}
	buf_fini(&list);
}

void trees_close(struct trees *t, bool keep)
{
	if (t->lock >= 0 && !keep)
		remove_trees(t);
	if (t->lock >= 0)
		close(t->lock);
	free(t->folder);
	free(t->repository);
	*t = (struct trees){ .lock = -1 };
}

/* --------------------------------------------------------------- built -- */

/* Text of the file `path`SUFFIX, or false if there is none. */
static bool read_beside(const struct tree *tree, const char *suffix,
			struct buf *out)
{
	struct buf path = { 0 };

	buf_printf(&path, "%s%s", tree->path.data, suffix);
	bool ok = file_read(path.data, 1 << 16, out, NULL);
	buf_fini(&path);
	return ok;
}

static bool write_beside(const struct tree *tree, const char *suffix,
			 const char *text, struct err *e)
{
	struct buf path = { 0 };

	buf_printf(&path, "%s%s", tree->path.data, suffix);
	bool ok = file_write_atomic(path.data, text, strlen(text), e);
	buf_fini(&path);
	return ok;
}

static void refuse_tree(struct tree *tree, const char *what,
			const struct err *why)
{
	snprintf(tree->reason, sizeof(tree->reason), "%s: %.230s", what,
		 why->msg);
	for (char *s = tree->reason; (s = strchr(s, '\n'));)
		*s = ' ';
}

static bool name_tree(const struct trees *t, const char *commit,
		      const char *patch, struct tree *tree, struct err *e)
{
	const char *build = t->s->o.build ? t->s->o.build : BUILD;
	char id[RES_IDENTITY] = "";
	struct buf bytes = { 0 };
	bool ok = !patch || file_read(patch, 0, &bytes, e);

	snprintf(tree->commit, sizeof(tree->commit), "%s", commit);
	if (patch && ok)
		res_identity(bytes.data, bytes.len, id);
	snprintf(tree->name, sizeof(tree->name), "%.12s%s%.8s", commit,
		 patch ? "+" : "", patch && ok ? strchr(id, ':') + 1 : "");
	buf_reset(&bytes);
	buf_printf(&bytes, "%s %s %s", commit, id, build);
	res_identity(bytes.data, bytes.len, id);
	snprintf(tree->key, sizeof(tree->key), "%.40s %s", commit, id);
	buf_printf(&tree->path, "%s/%s-%.8s", t->folder, tree->name,
		   strchr(id, ':') + 1);
	buf_fini(&bytes);
	return ok;
}

static bool check_out(const struct trees *t, const struct tree *tree,
		      struct err *e)
{
	struct stat st;

	/* What a kill left half made is made anew. */
	if (!stat(tree->path.data, &st))
		trees_git(t, NULL, NULL, "worktree", "remove", "--force",
			  "--force", tree->path.data, NULL);
	trees_git(t, NULL, NULL, "worktree", "prune", NULL);
	return trees_git(t, NULL, e, "worktree", "add", "--quiet", "--detach",
			 tree->path.data, tree->commit, NULL);
}

static bool apply_patch(struct tree *tree, const char *patch)
{
	char *real = realpath(patch, NULL);
	struct err why = { 0 };
	const char *words[] = { "git", "apply", "--whitespace=nowarn", real, NULL };
	bool ok = real && run_git(tree->path.data, NULL, words, &why);

	if (!ok)
		refuse_tree(tree, "does not apply", &why);
	free(real);
	return ok;
}

static bool run_build(const struct trees *t, struct tree *tree)
{
	const char *build = t->s->o.build ? t->s->o.build : BUILD;
	const char *const words[] = { "sh", "-c", build, NULL };
	const char *const set[] = { "MAKEFLAGS=", "MAKELEVEL=" };
	struct buf log = { 0 };
	struct err why = { 0 };

	buf_printf(&log, "%s.log", tree->path.data);
	struct process p = { "sh", words, tree->path.data, set,
			     ARRAY_SIZE(set), log.data, t->s->cmd.stop };
	bool ok = process_run(&p, &why);
	if (!ok)
		refuse_tree(tree, "does not build", &why);
	unlink(log.data);
	buf_fini(&log);
	return ok;
}

static bool make_tree(const struct trees *t, const char *patch,
		      struct tree *tree, struct err *e)
{
	const _Atomic int *stop = cmd_catch_signals(&t->s->cmd);

	cmd_remark(&t->s->cmd, "building %s", tree->name);
	if (!check_out(t, tree, e))
		return false;
	bool ok = (!patch || apply_patch(tree, patch)) &&
		  run_build(t, tree);
	if (*stop)
		return err_set(e, ERR_STOPPED, "the same command goes on");
	tree->built = ok;
	return ok ? write_beside(tree, ".built", "", e) :
		    write_beside(tree, ".broken", tree->reason, e);
}

bool trees_build(const struct trees *t, const char *commit, const char *patch,
		 struct tree *tree, struct err *e)
{
	struct buf text = { 0 };
	struct stat st;

	if (!name_tree(t, commit, patch, tree, e))
		return false;
	bool there = !stat(tree->path.data, &st), ok = true;
	if (there && read_beside(tree, ".built", &text))
		tree->built = true;
	else if (read_beside(tree, ".broken", &text))
		snprintf(tree->reason, sizeof(tree->reason), "%s",
			 text.data ? text.data : "");
	else
		ok = make_tree(t, patch, tree, e);
	buf_fini(&text);
	return ok;
}

void tree_fini(struct tree *tree)
{
	buf_fini(&tree->path);
}

/* ---------------------------------------------------------------- code -- */

/* The sections that are loaded, but the build id; false: no ELF file. */
static bool add_sections(struct buf *out, char *bytes, size_t len)
{
	Elf *elf = elf_version(EV_CURRENT) == EV_NONE ? NULL :
		   elf_memory(bytes, len);
	bool found = elf && elf_kind(elf) == ELF_K_ELF;
	Elf_Scn *scn = NULL;
	GElf_Shdr h;

	while (found && (scn = elf_nextscn(elf, scn))) {
		Elf_Data *d = gelf_getshdr(scn, &h) ? elf_rawdata(scn, NULL) :
						      NULL;
		if (d && d->d_buf && (h.sh_flags & SHF_ALLOC) &&
		    h.sh_type != SHT_NOBITS && h.sh_type != SHT_NOTE)
			buf_add(out, d->d_buf, d->d_size);
	}
	elf_end(elf);
	return found;
}

/* Every place that has the first 12 digits of the commit, or more. */
static void mask_commit(struct buf *b, const char *commit)
{
	char *at = b->data;

	while (b->len && (at = memmem(at, b->len - (size_t)(at - b->data),
				      commit, 12))) {
		size_t n = 0;
		while (n < strlen(commit) && at + n < b->data + b->len &&
		       at[n] == commit[n])
			at[n++] = '=';
		at += n;
	}
}

bool tree_code(const struct tree *tree, const char *path,
	       char out[RES_IDENTITY], struct err *e)
{
	struct buf file = { 0 }, code = { 0 };
	bool ok = file_read(path, 0, &file, e);

	if (ok && !add_sections(&code, file.data, file.len))
		buf_add(&code, file.data, file.len);
	mask_commit(&code, tree->commit);
	res_identity(code.data, code.len, out);
	buf_fini(&file);
	buf_fini(&code);
	return ok;
}
