/*
 * kfd/soft/preload/paths.c - which paths and inodes are the device's.
 *
 * Only raw system calls: these run before other libraries are initialised.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "kfd/soft/preload/preload.h"

__thread bool pl_inside;

/*
 * What the program shall not see of the machine that it runs on.  # is the
 * number of a card, * the rest of a name.
 */
static const char *const ours[] = {
	"/dev/kfd",
	"/dev/dri",
	"/sys/class/kfd",
	"/sys/class/drm",
	"/sys/devices/virtual/kfd",
	"/sys/devices/pci0000:00/0000:00:01.0/0000:#3:00.0",
	"/sys/dev/char/226:*",
	"/sys/bus/pci/devices",
	"/sys/bus/pci/drivers/amdgpu",
	"/sys/module/amdgpu",
	"/proc/modules",
};
#define KFD_MAJOR 511
#define DRM_MAJOR 226
#define RENDER_MINOR 128

void pl_node_path(enum pl_node node, char out[32])
{
	if (node == PL_KFD)
		strcpy(out, "/dev/kfd");
	else if (node < PL_CARD)
		snprintf(out, 32, "/dev/dri/renderD%d",
			 RENDER_MINOR + (int)(node - PL_RENDER));
	else
		snprintf(out, 32, "/dev/dri/card%d", (int)(node - PL_CARD));
}

const char *pl_root(void)
{
	/* The program may change its environment: the first answer stays. */
	static char root[PL_PATH];
	static int known;
	const char *env;

	if (!__atomic_load_n(&known, __ATOMIC_ACQUIRE)) {
		env = getenv("T0_SOFT_ROOT");
		if (env && strlen(env) < sizeof(root) / 2)
			strcpy(root, env);
		__atomic_store_n(&known, 1, __ATOMIC_RELEASE);
	}
	return root;
}

static bool is_below(const char *path, const char *dir)
{
	const size_t n = strlen(dir);

	return !strncmp(path, dir, n) && (!path[n] || path[n] == '/');
}

/* The same of a folder of `ours`. */
static bool is_ours(const char *path, const char *dir)
{
	for (; *dir && *dir != '*'; dir++, path++) {
		const bool card = *path >= '0' &&
				  *path < '0' + (int)SOFT_CARDS_MAX;

		if (*dir == '#' ? !card : *path != *dir)
			return false;
	}
	if (*dir == '*')
		path += strcspn(path, "/");
	return !*path || *path == '/';
}

const char *pl_lead(const char *path, char *out, size_t room)
{
	const size_t n = strlen(pl_root());

	if (path[0] != '/' || !n)
		return path;
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		if (!is_ours(path, ours[i]))
			continue;
		if (n + strlen(path) >= room)
			return path;
		memcpy(out, pl_root(), n);
		strcpy(out + n, path);
		return out;
	}
	return path;
}

const char *pl_path(const char *path, char out[PL_PATH])
{
	return pl_inside || !path ? path : pl_lead(path, out, PL_PATH);
}

void pl_strip(char *path)
{
	const char *root = pl_root();
	const size_t n = strlen(root);

	if (n && is_below(path, root))
		memmove(path, path + n, strlen(path + n) + 1);
}

static int raw_stat(int dir, const char *path, int flags, struct stat *st)
{
	return (int)syscall(SYS_newfstatat, dir, path, st, flags);
}

enum pl_node pl_node_of_inode(dev_t dev, ino_t ino)
{
	static struct {
		dev_t dev;
		ino_t ino;
	} id[PL_NODES];
	static int known;
	char path[PL_PATH], name[32];
	struct stat st;

	if (!pl_root()[0])
		return PL_NONE;
	for (int i = 0; !__atomic_load_n(&known, __ATOMIC_ACQUIRE) &&
			i < PL_NODES; i++) {
		pl_node_path((enum pl_node)i, name);
		snprintf(path, sizeof(path), "%.2000s%s", pl_root(), name);
		if (raw_stat(AT_FDCWD, path, 0, &st)) {
			if (i == PL_KFD)
				return PL_NONE;
			continue; /* of a card that there is not */
		}
		id[i].dev = st.st_dev;
		id[i].ino = st.st_ino;
	}
	__atomic_store_n(&known, 1, __ATOMIC_RELEASE);
	for (int i = 0; ino && i < PL_NODES; i++)
		if (id[i].ino == ino && id[i].dev == dev)
			return (enum pl_node)i;
	return PL_NONE;
}

enum pl_node pl_node_of_fd(int fd)
{
	struct stat st;

	if (pl_inside || fd < 0 || raw_stat(fd, "", AT_EMPTY_PATH, &st))
		return PL_NONE;
	return pl_node_of_inode(st.st_dev, st.st_ino);
}

dev_t pl_node_rdev(enum pl_node node)
{
	if (node == PL_KFD)
		return makedev(KFD_MAJOR, 0);
	return makedev(DRM_MAJOR, node < PL_CARD ?
					  RENDER_MINOR + node - PL_RENDER :
					  (unsigned)(node - PL_CARD));
}

void pl_show_stat(struct stat *st)
{
	const enum pl_node node = pl_node_of_inode(st->st_dev, st->st_ino);

	if (node == PL_NONE)
		return;
	st->st_mode = S_IFCHR | 0666;
	st->st_rdev = pl_node_rdev(node);
	st->st_size = st->st_blocks = 0;
}

void pl_show_statx(struct statx *sx)
{
	const enum pl_node node = pl_node_of_inode(
		makedev(sx->stx_dev_major, sx->stx_dev_minor), sx->stx_ino);

	if (node == PL_NONE)
		return;
	sx->stx_mode = S_IFCHR | 0666;
	sx->stx_rdev_major = major(pl_node_rdev(node));
	sx->stx_rdev_minor = minor(pl_node_rdev(node));
	sx->stx_size = sx->stx_blocks = 0;
}
