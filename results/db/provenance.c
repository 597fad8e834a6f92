/*
 * results/db/provenance.c - hosts, devices and builds, and which process owns a
 * run.
 */
#include "results/db/res.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <xxhash.h>

void res_identity(const void *data, size_t len_bytes, char out[RES_IDENTITY])
{
	XXH128_hash_t h = XXH3_128bits(data, len_bytes);

	snprintf(out, RES_IDENTITY, "xxh3-128:%016llx%016llx",
		 (unsigned long long)h.high64, (unsigned long long)h.low64);
}

bool res_is_same_algorithm(const char *a, const char *b)
{
	const char *end = strchr(a, ':'), *other = strchr(b, ':');

	if (!end || !other)
		return end == other;
	return end - a == other - b && !strncmp(a, b, (size_t)(end - a));
}

/* The file's bytes, or nothing if it cannot be read. */
static struct buf read_or_empty(const char *path)
{
	struct buf b = { 0 };

	if (!file_read(path, 0, &b, NULL))
		buf_reset(&b);
	return b;
}

static void first_line(const char *path, char *out, size_t size_bytes)
{
	struct buf b = read_or_empty(path);

	snprintf(out, size_bytes, "%.*s",
		 b.data ? (int)strcspn(b.data, "\n") : 0,
		 b.data ? b.data : "");
	buf_fini(&b);
}

/* ------------------------------------------------------------- rows -- */

bool res_device_id(struct res_db *db, const struct res_device *d, int64_t *id,
		   struct err *e)
{
	return res_upsert(db, id, e,
		"SELECT id FROM devices WHERE name = ? AND gfx = ? AND "
		"uid = ? AND pci = ? AND driver = ? AND firmware = ? AND "
		"facts = ? AND origin = ? AND cu_count = ? AND vram_bytes = ?",
		"INSERT INTO devices(name, gfx, uid, pci, driver, firmware, "
		"facts, origin, cu_count, vram_bytes) "
		"VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
		"ssssssssii", d->name, d->gfx, d->uid, d->pci, d->driver,
		d->firmware, d->facts ? d->facts : "{}",
		res_origin_name(d->origin), d->cu_count, d->vram_bytes);
}

/* ---------------------------------------------------------- this host -- */

/* Of the machine id: stable, not telling. */
static void machine_identity(char out[RES_IDENTITY])
{
	char id[256];

	first_line("/etc/machine-id", id, sizeof(id));
	if (!*id && gethostname(id, sizeof(id) - 1))
		*id = 0;
	res_identity(id, strlen(id), out);
}

/* The first "model name" of /proc/cpuinfo; other machines have none. */
static void cpu_name(char *out, size_t size_bytes)
{
	struct buf b = read_or_empty("/proc/cpuinfo");
	const char *p = b.data ? strstr(b.data, "model name") : NULL;

	p = p ? strchr(p, ':') : NULL;
	p = p ? p + 1 + strspn(p + 1, " \t") : "";
	snprintf(out, size_bytes, "%.*s", (int)strcspn(p, "\n"), p);
	buf_fini(&b);
}

bool res_host_self(struct res_db *db, int64_t *id, struct err *e)
{
	char machine[RES_IDENTITY], cpu[256], kernel[256] = "";
	struct utsname u;

	machine_identity(machine);
	cpu_name(cpu, sizeof(cpu));
	if (uname(&u) == 0)
		snprintf(kernel, sizeof(kernel), "%.80s %.80s %.80s",
			 u.sysname, u.release, u.machine);
	return res_upsert(db, id, e,
		"SELECT id FROM hosts WHERE machine = ? AND cpu = ? "
		"AND kernel = ? AND cores = ? AND mem_bytes = ?",
		"INSERT INTO hosts(machine, cpu, kernel, cores, mem_bytes) "
		"VALUES(?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
		"sssii", machine, cpu, kernel,
		(int64_t)sysconf(_SC_NPROCESSORS_ONLN),
		(int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
}

/* What the compiler tells about the flags that matter to a measurement. */
static const char build_flags[] =
#ifdef __OPTIMIZE__
	"optimized"
#else
	"unoptimized"
#endif
#ifdef __SANITIZE_ADDRESS__
	" asan"
#endif
#ifdef __SANITIZE_THREAD__
	" tsan"
#endif
	;

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

bool res_build_self(struct res_db *db, int64_t *id, struct err *e)
{
	char binary[RES_IDENTITY], commit[64];
	struct buf exe = { 0 };

	if (!file_read("/proc/self/exe", 0, &exe, e))
		return err_wrap(e, "which binary this is");
	res_identity(exe.data, exe.len, binary);
	buf_fini(&exe);
	/* base marks a tree with uncommitted changes by a "+" at the end. */
	snprintf(commit, sizeof(commit), "%s", t0_commit());
	char *plus = strchr(commit, '+');
	if (plus)
		*plus = 0;
	return res_upsert(db, id, e,
		"SELECT id FROM builds WHERE version = ? AND git_commit = ? "
		"AND dirty = ? AND compiler = ? AND flags = ? AND binary = ?",
		"INSERT INTO builds(version, git_commit, dirty, compiler, "
		"flags, binary) VALUES(?, ?, ?, ?, ?, ?) "
		"ON CONFLICT DO NOTHING",
		"ssisss", T0_VERSION, commit, (int64_t)(plus != NULL),
		COMPILER, build_flags, binary);
}

/* ------------------------------------------------------------- owners -- */

/*
 * Field 22 of /proc/PID/stat: start in clock ticks after boot; with the pid it
 * names a process for as long as the machine is up.  Counted after the last
 * ')', because the command name may hold spaces.
 */
static unsigned long long process_start(long pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	struct buf b = read_or_empty(path);
	char *p = b.data ? strrchr(b.data, ')') : NULL;
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	unsigned long long start = p ? strtoull(p, NULL, 10) : 0;
	buf_fini(&b);
	return start;
}

/* A pid means what it says only in its boot and its pid namespace. */
struct place {
	char boot[64];
	unsigned long long ns;
};

static void find_place(struct place *p)
{
	struct stat s;

	first_line("/proc/sys/kernel/random/boot_id", p->boot,
		   sizeof(p->boot));
	p->ns = stat("/proc/self/ns/pid", &s) ? 0 : s.st_ino;
}

void res_owner_self(char *out, size_t size_bytes)
{
	struct place p;

	find_place(&p);
	snprintf(out, size_bytes, "%s %llu %ld %llu", p.boot, p.ns,
		 (long)getpid(), process_start(getpid()));
}

/*
 * A process of this boot in another container cannot be looked up: it counts
 * as alive, because taking a run from its live owner is worse than not taking
 * over a dead one's.
 */
bool res_owner_alive(const char *owner)
{
	char boot[64];
	unsigned long long ns, start;
	long pid;
	struct place p;

	find_place(&p);
	if (sscanf(owner, "%63s %llu %ld %llu", boot, &ns, &pid, &start) != 4 ||
	    strcmp(boot, p.boot))
		return false;
	return ns != p.ns || (start && process_start(pid) == start);
}
