/*
 * Opening a device that does not want to be opened: every row of the failure
 * table that shows before the first queue.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/runtime/inject.h"

#define KFD    "/dev/kfd"
#define RENDER "/dev/dri/renderD128"

/* One rule; opening fails with these words. */
static void refused(const char *name, const struct soft_options *o,
		    const struct soft_inject *rule, enum err_code code,
		    int exit, const char *what, const char *remedy,
		    uint64_t limit_ms)
{
	struct rig r;

	ok(!rig_open(&r, o, rule, rule ? 1 : 0), "%s: it does not open", name);
	rig_error(&r.e, code, exit, name, what, remedy);
	rig_close(&r, limit_ms, name);
}

static void test_files(void)
{
	const struct {
		const char *name, *path;
		int err;
		enum err_code code;
		int exit;
		const char *remedy;
	} t[] = {
		{ "no driver", KFD, ENOENT, ERR_NODEV, 77, "not loaded" },
		{ "no hardware", KFD, ENXIO, ERR_NODEV, 77, "not loaded" },
		{ "driver gone", KFD, ENODEV, ERR_NODEV, 77, "not loaded" },
		{ "no permission", KFD, EACCES, ERR_PERM, 2, "usermod -aG" },
		{ "container", KFD, EPERM, ERR_PERM, 2, "container" },
		{ "no render node", RENDER, ENOENT, ERR_NODEV, 77,
		  "not loaded" },
		{ "render node forbidden", RENDER, EACCES, ERR_PERM, 2,
		  "usermod -aG" },
		{ "too many files", KFD, EMFILE, ERR_IO, 2, "Too many" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		const struct soft_inject rule = { .what = SOFT_INJECT_OPEN,
						  .path = t[i].path,
						  .err = t[i].err,
						  .times = UINT64_MAX };

		refused(t[i].name, NULL, &rule, t[i].code, t[i].exit,
			t[i].path, t[i].remedy, 2000);
	}
}

/* A reset in progress locks /dev/kfd for a while. */
static void test_locked(void)
{
	struct soft_inject rule = { .what = SOFT_INJECT_OPEN, .err = EAGAIN,
				    .times = 20 };
	struct rig r;

	ok(rig_open(&r, NULL, &rule, 1) && rig_run(&r, 7, 5000),
	   "locked for 20 tries: it opens then and runs (%s)", r.e.msg);
	rig_close(&r, 3000, "locked for a while");
	rule.times = UINT64_MAX;
	refused("locked for good", NULL, &rule, ERR_BUSY, 2, KFD,
		"GPU reset is in progress", 8000);
}

static void test_nodes(void)
{
	const struct soft_options igpu = { .igpu_first = true };
	const struct soft_options hidden = { .hidden_node = true };
	const struct soft_options both = { .igpu_first = true,
					   .hidden_node = true };
	struct rig r;

	ok(rig_open(&r, &igpu, NULL, 0), "a gfx1036 before the card: opens");
	is_str(r.dev ? kfd_info(r.dev)->gfx : "", "gfx1100",
	       "the card is chosen, not the first node");
	is_u64(r.dev ? (uint64_t)kfd_info(r.dev)->node.index : 0, 2,
	       "which is node 2");
	ok(r.dev && rig_run(&r, 3, 5000), "and it runs (%s)", r.e.msg);
	rig_close(&r, 3000, "gfx1036 first");
	refused("node hidden by the cgroup", &hidden, NULL, ERR_NODEV, 77,
		"no gfx11 GPU", "hidden by the device cgroup", 2000);
	refused("only the gfx1036 is visible", &both, NULL, ERR_NODEV, 77,
		"kfd:0 is gfx1036", "hidden by the device cgroup", 2000);
}

static void test_versions(void)
{
	for (uint32_t minor = 1; minor <= 19; minor++) {
		const struct soft_options o = { .kfd_minor = minor };
		struct rig r;
		char name[32];

		snprintf(name, sizeof(name), "KFD 1.%u", minor);
		ok(rig_open(&r, &o, NULL, 0) && rig_run(&r, minor, 5000),
		   "%s runs a kernel (%s)", name, r.e.msg);
		is_u64(r.dev ? kfd_info(r.dev)->runtime_enabled : 9,
		       minor >= 13, "%s: wave exceptions from 1.13 on", name);
		rig_close(&r, 3000, name);
	}
}

/* The child has the parent's handles and may do nothing with them. */
static void test_fork(void)
{
	struct rig r;
	int status = -1;

	if (!ok(rig_open(&r, NULL, NULL, 0), "a device to fork with"))
		return;
	fflush(NULL);
	const pid_t pid = fork();
	if (!pid) {
		struct kfd_launch l = rig_launch(&r, 32, 1, 1000);
		struct kfd_mem *m;
		struct err e = { 0 };
		int bad = kfd_run(r.q, &l, NULL, &e) || e.code != ERR_USAGE ||
			  !strstr(e.msg, "fork");

		bad |= kfd_mem_alloc(r.dev, KFD_GTT, 4096, "x", &m, &e) * 2;
		kfd_close(r.dev);
		_exit(bad);
	}
	ok(pid > 0 && waitpid(pid, &status, 0) == pid, "the child ends");
	is_u64(WIFEXITED(status) ? (uint64_t)WEXITSTATUS(status) : 99, 0,
	       "every call in it was refused with the reason");
	ok(rig_run(&r, 21, 5000), "the parent goes on (%s)", r.e.msg);
	rig_close(&r, 3000, "fork");
}

int main(void)
{
	test_files();
	test_locked();
	test_nodes();
	test_versions();
	test_fork();
	return plan_done();
}
