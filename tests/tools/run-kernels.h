/*
 * run-kernels - kernels from end to end, for tests: t0-run takes a code object,
 * runs it on the soft device and writes its buffers.  The prebuilt objects of
 * tests/data/kernels always run; where clang-19 is installed, the same sources
 * run compiled at -O0, -O2 and -O3 too, and what clang-19 -S writes assembled
 * by t0-isa asm.
 */
#ifndef T0_TESTS_RUN_KERNELS_H
#define T0_TESTS_RUN_KERNELS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/tap.h"

#define SOURCES	 "tests/data/kernels"
#define MAX_ARGS 8

/* The chip that the kernels are compiled for and run on. */
static inline const char *chip(void)
{
	const char *name = getenv("T0_TEST_CHIP");

	return name ? name : "gfx1100";
}

static inline bool is_gfx1100(void)
{
	return !strcmp(chip(), "gfx1100");
}

static char dir[] = "/tmp/t0-run-XXXXXX"; /* of input and output files */
static const char *objects;		  /* folder of the *.co */
static const char *label;		  /* "prebuilt", "-O2" */
static uint64_t seed = 1;

/* xorshift64*: the inputs must not come from the tool under test. */
static inline uint32_t next_random(void)
{
	seed ^= seed >> 12;
	seed ^= seed << 25;
	seed ^= seed >> 27;
	return (uint32_t)(seed * UINT64_C(0x2545f4914f6cdd1d) >> 32);
}

/* A small integer, so that sums of products stay exact. */
static inline int small(int limit)
{
	return (int)(next_random() % (uint32_t)(2 * limit + 1)) - limit;
}

/* ---- running ------------------------------------------------------------ */

struct arg {
	const char *text; /* a value as it stands, or NULL */
	void *data;	  /* memory, replaced by what the kernel left */
	size_t size_bytes;
};
#define MEM(array) \
	{ \
		NULL, (array), sizeof(array) \
	}

static inline void add_args(struct buf *command, const struct arg *arg, int n)
{
	for (int i = 0; i < n; i++) {
		struct err e = { 0 };
		char path[64];

		if (arg[i].text) {
			buf_printf(command, " %s", arg[i].text);
			continue;
		}
		snprintf(path, sizeof(path), "%s/%d", dir, i);
		if (!file_write_atomic(path, arg[i].data, arg[i].size_bytes,
				       &e))
			diag("%s", e.msg);
		buf_printf(command, " 'buf:%zu=file:%s>%s.out'",
			   arg[i].size_bytes, path, path);
	}
}

static inline bool read_back(const struct arg *arg, int n)
{
	for (int i = 0; i < n; i++) {
		struct buf b = { 0 }, path = { 0 };
		struct err e = { 0 };
		bool good;

		if (arg[i].text)
			continue;
		buf_printf(&path, "%s/%d.out", dir, i);
		good = file_read(path.data, 0, &b, &e) &&
		       b.len == arg[i].size_bytes;
		if (good)
			memcpy(arg[i].data, b.data, b.len);
		unlink(path.data);
		buf_fini(&b);
		buf_fini(&path);
		if (!good)
			return false;
	}
	return true;
}

/* Exit status of t0-run; its stderr is in DIR/err. */
static inline int run_status(const char *object, const char *kernel,
			     const char *options, const struct arg *arg, int n)
{
	struct buf command = { 0 };
	int status;

	buf_printf(&command,
		   "timeout 100 %s/t0-run --deadline 90 --device soft:%s %s "
		   "%s/%s.co %s",
		   getenv("T0_BUILD"), chip(), options, objects, object,
		   kernel);
	add_args(&command, arg, n);
	buf_printf(&command, " >%s/out 2>%s/err", dir, dir);
	status = system(command.data);
	buf_fini(&command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline void show_stderr(void)
{
	struct buf path = { 0 }, b = { 0 };
	struct err e = { 0 };

	buf_printf(&path, "%s/err", dir);
	if (file_read(path.data, 65536, &b, &e))
		diag("%s", b.len ? b.data : "nothing on stderr");
	buf_fini(&path);
	buf_fini(&b);
}

/* Some chips cannot express some kernels: those have no object, or lack one. */
static inline bool is_missing(const char *object, const char *kernel)
{
	struct buf command = { 0 };
	int status;

	if (is_gfx1100())
		return false;
	buf_printf(&command,
		   "%s/t0-isa meta %s/%s.co 2>/dev/null | grep -q '\\b%s\\b'",
		   getenv("T0_BUILD"), objects, object, kernel);
	status = system(command.data);
	buf_fini(&command);
	return status != 0;
}

static inline bool run(const char *object, const char *kernel,
		       const char *options, const struct arg *arg, int n)
{
	int status;
	bool good;

	if (is_missing(object, kernel)) {
		skip("%s: no %s on a %s", label, kernel, chip());
		return false;
	}
	status = run_status(object, kernel, options, arg, n);
	good = ok(status == 0 && read_back(arg, n), "%s: %s runs", label,
		  kernel);

	if (!good) {
		diag("exit status %d", status);
		show_stderr();
	}
	return good;
}

/* ---- numbers ------------------------------------------------------------- */

/* Bits of an integer of -2048..2048, which all these formats hold. */
static inline uint16_t f16_bits(int v)
{
	int sign = v < 0 ? 0x8000 : 0;
	int exp = 0;

	v = abs(v);
	if (!v)
		return 0;
	while (v >> (exp + 1))
		exp++;
	return (uint16_t)(sign | (exp + 15) << 10 | ((v << 10 >> exp) & 0x3ff));
}

static inline uint16_t bf16_bits(int v)
{
	float f = (float)v;
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return (uint16_t)(bits >> 16);
}

/* ---- variants ------------------------------------------------------------ */

static inline bool rebuild(const char *level)
{
	struct buf command = { 0 };
	int status;

	buf_printf(&command,
		   "cp " SOURCES "/*.cl " SOURCES "/*.s " SOURCES
		   "/gpu.h " SOURCES
		   "/rebuild %s && rm -f %s/*.co && CHIP=%s %s/rebuild %s "
		   ">%s/err 2>&1",
		   dir, dir, chip(), dir, level, dir);
	status = system(command.data);
	buf_fini(&command);
	return status == 0;
}

static inline void test_rebuilt(const char *level, void (*all)(void))
{
	label = level;
	objects = dir;
	if (ok(rebuild(level), "%s: clang-19 builds the kernels", level))
		all();
	else
		show_stderr();
}

/* Every source as text of clang's, then as an object of our assembler's. */
static inline bool assemble(const char *level)
{
	struct buf command = { 0 };
	int status;

	buf_printf(&command,
		   "cd " SOURCES " && for src in *.cl; do "
		   "clang-19 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa "
		   "-mcpu=%s -nogpulib -cl-kernel-arg-info %s -S "
		   "\"$src\" -o %s/k.s || { %s && continue; exit 1; }; "
		   "rm -f \"%s/${src%%.cl}.co\" && "
		   "%s/t0-isa asm %s/k.s -o \"%s/${src%%.cl}.co\" "
		   "|| [ $src = images.cl ] || exit 1; done >%s/err 2>&1",
		   chip(), level, dir, is_gfx1100() ? "false" : "true", dir,
		   getenv("T0_BUILD"), dir, dir, dir);
	status = system(command.data);
	buf_fini(&command);
	return status == 0;
}

static inline void test_assembled(const char *level, void (*all)(void))
{
	static char text[40];

	snprintf(text, sizeof(text), "t0-isa asm of %s", level);
	label = text;
	objects = dir;
	if (ok(assemble(level), "%s: builds the kernels", label))
		all();
	else
		show_stderr();
}

static inline void remove_files(void)
{
	struct buf command = { 0 };

	buf_printf(&command, "rm -rf %s", dir);
	if (system(command.data))
		diag("%s stays behind", dir);
	buf_fini(&command);
}

/*
 * Run `all` on the prebuilt objects and, if there is a compiler, on others;
 * with T0_TEST_LEVEL=-O2 on those of this level.
 */
static inline void test_variants(void (*all)(void))
{
	label = "prebuilt";
	objects = SOURCES;
	if (is_gfx1100())
		all();
	if (system("command -v clang-19 ld.lld-19 llvm-strip-19 llvm-mc-19 "
		   ">/dev/null 2>&1") != 0) {
		skip("clang-19, lld-19 or llvm-19 is not installed: only the "
		     "prebuilt kernels ran");
	} else if (getenv("T0_TEST_LEVEL")) {
		test_rebuilt(getenv("T0_TEST_LEVEL"), all);
	} else {
		test_rebuilt("-O0", all);
		/* Prebuilt ones are of -O3. */
		if (getenv("T0_SLOW")) {
			test_rebuilt("-O2", all);
			test_rebuilt("-O3", all);
		}
		test_assembled("-O2", all);
	}
	remove_files();
}

#endif
