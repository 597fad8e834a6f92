/*
 * What kernels print: objects made by clang 19 (tests/data/printf) on the soft
 * device, against libc's printf of the same values; buffers that are too
 * small, damaged or shared by many packets; and formats and arguments that
 * nobody sane would write.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "isa/object/object.h"
#include "kfd/kfd.h"
#include "kfd/runtime/printf.h"
#include "tests/tap.h"

#define MS 1000000ull
#define DATA "tests/data/printf/"

struct rig {
	struct kfd_dev *dev;
	struct kfd_queue *q;
	struct kfd_code *code;
	struct buf text;
	struct err e;
};

static void collect(void *ctx, const char *text, size_t len)
{
	buf_add(ctx, text, len);
}

static void quit(const struct rig *r)
{
	diag("%s", r->e.msg);
	exit(1);
}

static void rig_open(struct rig *r, const char *file, uint32_t bytes,
		     bool wait)
{
	const struct kfd_queue_opts o = { .print = collect,
					  .print_ctx = &r->text,
					  .printf_bytes = bytes,
					  .printf_wait = wait };
	struct buf co = { 0 };

	*r = (struct rig){ 0 };
	if (!kfd_open(&r->dev, "soft", &r->e) ||
	    !kfd_queue_new(r->dev, &o, &r->q, &r->e) ||
	    !file_read(file, 0, &co, &r->e) ||
	    !kfd_code_load(r->dev, co.data, co.len, &r->code, &r->e))
		quit(r);
	buf_fini(&co);
}

static void rig_close(struct rig *r)
{
	const bool freed = kfd_queue_free(r->q, &r->e);

	kfd_code_unload(r->code);
	ok(freed && kfd_close_check(r->dev, &r->e),
	   "nothing is left behind (%s)", r->e.msg);
	buf_fini(&r->text);
}

static struct kfd_launch launch(struct rig *r, const char *name, uint32_t n,
				const void *args)
{
	struct kfd_launch l = { .grid = { n },
				.wg = { n < 256 ? n : 256 },
				.args = args,
				.deadline_ns = time_mono_ns() + 60000 * MS };

	if (!kfd_code_kernel(r->code, name, &l.kernel, &r->e))
		quit(r);
	l.args_bytes = l.kernel->explicit_bytes;
	return l;
}

static bool run(struct rig *r, const char *name, uint32_t n, const void *args)
{
	const struct kfd_launch l = launch(r, name, n, args);
	const bool good = kfd_run(r->q, &l, NULL, &r->e);

	if (!good)
		diag("%s", r->e.msg);
	return good;
}

static struct kfd_print_stats stats(const struct rig *r)
{
	struct kfd_print_stats s;

	kfd_queue_print_stats(r->q, &s);
	return s;
}

/* The next line of *s, ended with NUL; NULL at the end. */
static char *next_line(char **s)
{
	char *line = *s, *end = line ? strchr(line, '\n') : NULL;

	if (!end)
		return NULL;
	*end = 0;
	*s = end + 1;
	return line;
}

/* ---------------------------------------------------------- OpenCL ---- */

static void line(struct buf *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void line(struct buf *b, const char *fmt, ...)
{
	char text[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_adds(b, text);
}

struct all { /* as the kernel takes them */
	int32_t i;
	uint32_t u;
	int64_t l;
	uint64_t ul;
	double d;
	float f;
	uint16_t h;
	uint64_t p;
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat"
static void expect_all(struct buf *b, const struct all *x, double h)
{
	const int i = x->i;
	const unsigned u = x->u;
	const double d = x->d, f = (double)x->f;
	const char c = (char)('a' + i % 26);

	line(b, "%d|%i|%5d|%-5d|%05d|%+d|% d|%.3d\n", i, i, i, i, i, i, i, i);
	line(b, "%u|%o|%#o|%x|%X|%#x|%08x\n", u, u, u, u, u, u, u);
	line(b, "%ld|%lu|%lx|%20ld|%-20ld|\n", x->l, x->ul, x->ul, x->l, x->l);
	line(b, "%hd|%hu|%hhd|%hhu|%hhx\n", (short)i, (unsigned short)u,
	     (signed char)i, (unsigned char)u, (unsigned char)u);
	line(b, "%f|%e|%g|%a|%E|%G\n", d, d, d, d, d, d);
	line(b, "%.0f|%10.3f|%-10.3f|%+.2e|%#g|%012.4f\n", f, f, f, f, f, f);
	line(b, "%c%c%c|%5c|%-5c|\n", c, 'b', '%', 'x', 'y');
	line(b, "%s|%10s|%-10s|%.2s|%s|%s|\n", "abcde", "right", "left", "cut",
	     "", "ab");
	line(b, "text %s of 4 %d and %s of 8: %d\n", "four", i, "eight888", i);
	line(b, "%p|%%|100%%\n", (void *)(uintptr_t)x->p);
	line(b, "%f,%f,%f,%f|%e,%e,%e,%e|%d,%d,%d|%d,%d,%d,%d|%x,%x\n", f, -f,
	     2 * f, 0.0, f, -f, 2 * f, 0.0, i, -i, 7, 1, -1, 127, -128, i, -i);
	line(b, "%f colon : tab \t quote \" backslash \\ bell \a end\n", h);
	line(b, "plain\n");
}
#pragma GCC diagnostic pop

static void test_conversions(void)
{
	static const struct {
		struct all x;
		double h; /* of x.h */
	} cases[] = {
		{ { 42, 3000000000u, 1234567890123, 0xfedcba9876543210, 3.25,
		    1.5f, 0x3e00, 0x7f1234567000 }, 1.5 },
		{ { -17, 7, -9000000000000000000, UINT64_MAX, -1e300, -0.1f,
		    0xc000, 0xdeadbeef }, -2 },
		{ { -2147483647, 0, -1, 1, 0.0, 1e-30f, 0x0001, 1 }, 0x1p-24 },
		{ { 300, UINT32_MAX, INT64_MIN, 0, __builtin_inf(), 1e30f,
		    0x7c00, 16 }, __builtin_inf() },
		{ { 5, 70000, 5, 5, -__builtin_nan(""), -0.0f, 0xfc00, 7 },
		  -__builtin_inf() },
	};
	struct rig r;

	rig_open(&r, DATA "opencl.co", 0, false);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buf want = { 0 };
		char *got, *w, *g_line, *w_line;

		buf_reset(&r.text);
		ok(run(&r, "all", 32, &cases[i].x), "case %zu runs", i);
		expect_all(&want, &cases[i].x, cases[i].h);
		got = r.text.data, w = want.data;
		while ((w_line = next_line(&w))) {
			g_line = next_line(&got);
			is_str(g_line ? g_line : "(nothing)", w_line,
			       "case %zu: as libc has it", i);
		}
		ok(!next_line(&got), "case %zu: and no more", i);
		buf_fini(&want);
	}
	is_u64(stats(&r).records, 13 * ARRAY_SIZE(cases), "all were counted");
	is_u64(stats(&r).damaged + stats(&r).dropped, 0, "none was lost");
	rig_close(&r);
}

/* How many lines of the kernel `lanes` are right, each lane once. */
static unsigned count_lanes(struct buf *text, unsigned n, unsigned *wrong)
{
	uint8_t *seen = xcalloc(n, 1);
	char *at = text->data, *l, want[128];
	unsigned good = 0, i;

	while ((l = next_line(&at))) {
		if (*l == '[')
			continue;
		if (sscanf(l, "lane %u:", &i) != 1 || i >= n || seen[i]++) {
			++*wrong;
			continue;
		}
		snprintf(want, sizeof(want), "lane %u: %u %.3f", i,
			 i * 2654435761u, (double)(0.5f * (float)i));
		if (strcmp(l, want))
			++*wrong;
		else
			good++;
	}
	free(seen);
	return good;
}

static void test_lanes(void)
{
	const int n = 10000;
	unsigned wrong = 0;
	struct rig r;

	rig_open(&r, DATA "opencl.co", 0, false);
	ok(run(&r, "lanes", 10240, &n), "10,000 lanes print");
	is_u64(count_lanes(&r.text, 10000, &wrong), 10000, "each its line");
	is_u64(wrong, 0, "and nothing else");
	rig_close(&r);

	rig_open(&r, DATA "opencl.co", 8192, false);
	ok(run(&r, "lanes", 10240, &n), "they print into 8 KiB");
	has_str(r.text.data,
		"[printf of kernel 'lanes': at least 1 record lost",
		"it is said that this did not do");
	/* 16 bytes each, behind 8 of head. */
	is_u64(count_lanes(&r.text, 10000, &wrong), (8192 - 16) / 16,
	       "as many as fit are there");
	is_u64(wrong, 0, "and they are right");
	ok(stats(&r).dropped > 0, "the loss is counted");
	rig_close(&r);
}

/* More printing packets than buffers: the text is by packets. */
static void test_order(void)
{
	unsigned at = 0, bad = 0;
	char *text, *l;
	struct rig r;

	rig_open(&r, DATA "opencl.co", 8192, false);
	for (int n = 1; n <= 30; n++) {
		const struct kfd_launch k = launch(&r, "lanes", 32, &n);

		if (!kfd_put(r.q, &k, NULL, &r.e))
			quit(&r);
	}
	ok(kfd_drain(r.q, time_mono_ns() + 60000 * MS, &r.e),
	   "30 printing packets run (%s)", r.e.msg);
	text = r.text.data;
	for (unsigned n = 1; n <= 30; n++)
		for (unsigned i = 0; i < n; i++, at++) {
			unsigned lane;

			l = next_line(&text);
			bad += !l || sscanf(l, "lane %u", &lane) != 1 ||
			       lane >= n;
		}
	ok(!next_line(&text), "465 lines");
	is_u64(bad, 0, "those of each packet together, in order");
	rig_close(&r);
}

static uint64_t field(const void *args, size_t at, size_t bytes)
{
	uint64_t v = 0;

	memcpy(&v, (const char *)args + at, bytes);
	return v;
}

/* Offsets are those of code object version 5. */
static void test_hidden(void)
{
	static const struct {
		unsigned at, bytes;
		uint64_t wanted;
		const char *name;
	} t[] = {
		{ 0, 4, 3, "block count x" },	{ 4, 4, 5, "block count y" },
		{ 8, 4, 2, "block count z" },	{ 12, 2, 32, "group size x" },
		{ 14, 2, 2, "group size y" },	{ 16, 2, 4, "group size z" },
		{ 18, 2, 4, "remainder x" },	{ 20, 2, 1, "remainder y" },
		{ 22, 2, 3, "remainder z" },	{ 40, 8, 0, "global offset x" },
		{ 48, 8, 0, "global offset y" },
		{ 56, 8, 0, "global offset z" },
		{ 64, 2, 3, "grid dimensions" },
		/* What nothing stands behind. */
		{ 88, 8, 0, "multigrid sync" }, { 96, 8, 0, "heap" },
		{ 104, 8, 0, "default queue" },
		{ 112, 8, 0, "completion action" },
	};
	struct kfd_mem *out;
	struct rig r;

	rig_open(&r, DATA "opencl.co", 0, false);
	if (!kfd_mem_alloc(r.dev, KFD_GTT, 4096, "out", &out, &r.e))
		quit(&r);
	struct kfd_launch k = launch(&r, "hidden", 1, &out->va);
	const uint32_t grid[3] = { 100, 11, 11 }, wg[3] = { 32, 2, 4 };
	memcpy(k.grid, grid, sizeof(grid));
	memcpy(k.wg, wg, sizeof(wg));
	ok(kfd_run(r.q, &k, NULL, &r.e), "a kernel reads its hidden arguments "
	   "(%s)", r.e.msg);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		is_u64(field(out->cpu, t[i].at, t[i].bytes), t[i].wanted, "%s",
		       t[i].name);
	ok(field(out->cpu, 72, 8) % 4096 == 0 && field(out->cpu, 72, 8),
	   "the printf buffer is there");
	ok(field(out->cpu, 80, 8), "and that of hostcalls");
	ok(field(out->cpu, 200, 8), "and the queue");
	kfd_mem_free(r.dev, out);
	rig_close(&r);
}

/* ------------------------------------------------------------ the ring ---- */

static unsigned count_items(struct buf *text, unsigned items, unsigned lines,
			    unsigned *wrong)
{
	uint8_t *seen = xcalloc(items * lines, 1);
	unsigned good = 0, i, k;
	char *at = text->data, *l, want[128];

	while ((l = next_line(&at))) {
		if (*l == '[')
			continue;
		if (sscanf(l, "item %u line %u", &i, &k) != 2 || i >= items ||
		    k >= lines || seen[i * lines + k]++) {
			++*wrong;
			continue;
		}
		snprintf(want, sizeof(want), "item %u line %u of %f", i, k,
			 i / 8.0);
		if (strcmp(l, want))
			++*wrong;
		else
			good++;
	}
	free(seen);
	return good;
}

static void test_ring(void)
{
	const int lines = 20;
	unsigned wrong = 0, good = 0;
	struct rig r;

	rig_open(&r, DATA "ring.co", 8192, true);
	ok(run(&r, "ring", 512, &lines),
	   "512 items print 20 lines each into a ring of 4 KiB");
	is_u64(count_items(&r.text, 512, 20, &wrong), 10240,
	       "waiting for room, all of them came");
	is_u64(wrong, 0, "once, and right");
	is_u64(stats(&r).dropped, 0, "none was dropped");
	rig_close(&r);

	rig_open(&r, DATA "ring.co", 8192, false);
	wrong = 0;
	for (int i = 0; i < 3; i++) {
		buf_reset(&r.text);
		ok(run(&r, "ring", 2048, &lines), "without waiting");
		has_str(r.text.data, "records lost", "it says what is lost");
		good += count_items(&r.text, 2048, 20, &wrong);
	}
	is_u64(wrong, 0, "what came is right");
	is_u64(good, stats(&r).records, "and was counted");
	is_u64(stats(&r).records + stats(&r).dropped, 3 * 40960,
	       "every record is accounted for");
	rig_close(&r);
}

/* The same code in an object that isa/ has written, as for our compiler. */
static void test_own_object(void)
{
	static const char *const format[] = {
		"1:3:4:4:8:item %d line %d of %f\\n" };
	struct co_build_arg arg[32] = { { 0 } };
	struct co_build_kernel b = { .wave = 32, .arg = arg,
				     .printf = format,
				     .n_printf = 1 };
	const int lines = 3;
	unsigned wrong = 0;
	struct buf file = { 0 }, out = { 0 };
	struct co co;
	struct rig r;

	rig_open(&r, DATA "ring.co", 0, false);
	kfd_code_unload(r.code);
	if (!file_read(DATA "ring.co", 0, &file, &r.e) ||
	    !co_parse(&co, file.data, file.len, &r.e))
		quit(&r);
	const struct co_kernel *k = co_kernel_find(&co, "ring");
	b.name = k->name;
	b.code = k->code;
	b.code_bytes = k->code_bytes;
	b.desc = k->desc;
	b.vgprs = k->vgpr_count;
	b.sgprs = k->sgpr_count;
	for (; b.n_args < (int)k->n_args; b.n_args++)
		arg[b.n_args] = (struct co_build_arg){
			.name = k->args[b.n_args].name,
			.kind = k->args[b.n_args].kind,
			.offset = k->args[b.n_args].offset,
			.size = k->args[b.n_args].size };
	ok(co_build("gfx1100", 5, &b, 1, &out, &r.e) &&
	   kfd_code_load(r.dev, out.data, out.len, &r.code, &r.e),
	   "an object of our own with formats (%s)", r.e.msg);
	if (r.code) {
		ok(run(&r, "ring", 64, &lines), "its kernel prints");
		is_u64(count_items(&r.text, 64, 3, &wrong), 192, "all lines");
		is_u64(wrong, 0, "and no other");
		kfd_code_unload(r.code);
		r.code = NULL;
		buf_reset(&r.text);
		ok(kfd_code_load(r.dev, out.data, out.len, &r.code, &r.e) &&
		   run(&r, "ring", 64, &lines),
		   "the queue prints once who printed last is gone (%s)",
		   r.e.msg);
		is_u64(count_items(&r.text, 64, 3, &wrong), 192, "as much");
	}
	co_fini(&co);
	buf_fini(&file);
	buf_fini(&out);
	rig_close(&r);
}

static void test_broken(void)
{
	struct rig r;

	rig_open(&r, DATA "ring.co", 8192, false);
	for (int what = 0; what < 5; what++) {
		const uint64_t before = stats(&r).damaged;

		ok(run(&r, "broken", 32, &what), "damage %d", what);
		ok(stats(&r).damaged > before || what == 3,
		   "is noticed (%llu)", (unsigned long long)stats(&r).damaged);
	}
	buf_reset(&r.text);
	ok(run(&r, "ring", 32, &(int){ 1 }), "a sound kernel after that");
	unsigned wrong = 0;
	is_u64(count_items(&r.text, 32, 1, &wrong), 32, "prints all it has");
	is_u64(wrong, 0, "and no rubbish");
	rig_close(&r);
}

/* ------------------------------------------------------------ hostcall ---- */

static void test_hip(void)
{
	enum { N = 300 };
	static const char *const kind[] = {
		"an even number, said at such a length that it takes more "
		"parts than one", "odd" };
	struct { int32_t n, gap; uint64_t out; } args = { .n = N };
	struct kfd_mem *out;
	uint8_t seen[N] = { 0 };
	unsigned good = 0, wrong = 0;
	char *at, *l, want[256];
	struct rig r;

	rig_open(&r, DATA "hip.co", 0, false);
	if (!kfd_mem_alloc(r.dev, KFD_GTT, 4 * N, "lengths", &out, &r.e))
		quit(&r);
	args.out = out->va;
	const struct kfd_launch base = launch(&r, "hip", 320, &args);
	struct kfd_launch k = base;
	k.wg[0] = 64;
	k.stack_bytes = base.kernel->dynamic_stack ? 1024 : 0;
	ok(kfd_run(r.q, &k, NULL, &r.e), "HIP's printf calls the host (%s)",
	   r.e.msg);
	at = r.text.data;
	while ((l = next_line(&at))) {
		unsigned i;

		if (sscanf(l, "hip %u", &i) != 1 || i >= N || seen[i]++) {
			wrong++;
			continue;
		}
		snprintf(want, sizeof(want), "hip %u %s %f %lld %c %*d", i,
			 kind[i & 1], -1.5 * i, (long long)i << 32,
			 'a' + (int)i % 26, 6, -(int)i);
		good += !strcmp(l, want) &&
			((int32_t *)out->cpu)[i] == (int)strlen(want) + 1;
	}
	is_u64(good, N, "300 lanes print, and learn the length");
	is_u64(wrong, 0, "and nothing else");
	kfd_mem_free(r.dev, out);
	rig_close(&r);
}

/* ------------------------------------------------------------- formats ---- */

static void words(const char *format, const void *args, size_t len,
		  const char *want)
{
	struct buf b = { 0 };

	kfd_format_words(format, args, len, &b);
	is_str(b.data ? b.data : "", want, "\"%s\"", format);
	buf_fini(&b);
}

static void test_formats(void)
{
	const uint64_t three[] = { 3, (uint64_t)-4, 5 };
	const uint64_t s[] = { 0x636261, 9 }; /* "abc" */
	const double d[] = { 1.5, 0.25 };

	words("%d %d %u", three, 24, "3 -4 5");
	words("%*d|%-*d|", three, 24, " -4|(missing)|");
	words("%d %d %d %d", three, 24, "3 -4 5 (missing)");
	words("%s=%d", s, 16, "abc=9");
	words("%F %A", d, 16, "1.500000 0X1P-2");
	words("%n %q %", three, 24, "%n %q %");
	words("%", NULL, 0, "%");
	words("%v5d|%v99d", three, 24, "%v5d|%v99d");
	words("%1000000000d", three, 0, "(missing)");
	struct buf b = { 0 };
	kfd_format_words("%99999d%.99999f", three, 16, &b);
	ok(b.len > 512 && b.len < 2048, "widths have a limit (%zu)", b.len);
	buf_fini(&b);
}

static uint32_t rng(uint64_t *s)
{
	*s = *s * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(*s >> 33);
}

/* Any format, any list of sizes, any bytes: a sanitizer watches. */
static void test_hostile(uint64_t seed)
{
	static const char letters[] =
		"%%%%-+ #0123456789.*vhlLjzt diouxXcsfFeEgGaApnq\\:7a";
	uint64_t s = seed;
	size_t bytes = 0;

	for (int i = 0; i < 20000; i++) {
		char entry[128];
		int n = snprintf(entry, sizeof(entry), "1:%u:", rng(&s) % 5);
		const uint32_t sizes = entry[2] - '0';
		const size_t len = rng(&s) % 40;
		uint8_t *args = xmalloc(len + 1);
		const char *const list[] = { entry };
		struct kfd_formats *f;
		struct buf b = { 0 };

		for (uint32_t k = 0; k < sizes; k++)
			n += snprintf(entry + n, sizeof(entry) - (size_t)n,
				      "%u:", rng(&s) % 20);
		for (int k = rng(&s) % 24; k > 0; k--)
			entry[n++] = letters[rng(&s) % (sizeof(letters) - 1)];
		entry[n] = 0;
		args = xrealloc(args, len ? len : 1);
		for (size_t k = 0; k < len; k++)
			args[k] = (uint8_t)(rng(&s) % 3 ? rng(&s) : 0);
		f = kfd_formats_new(list, 1);
		kfd_format_record(f, 1, args, len, &b);
		kfd_format_words(strrchr(entry, ':') + 1, args, len, &b);
		bytes += b.len;
		buf_fini(&b);
		kfd_formats_free(f);
		free(args);
	}
	ok(bytes > 0, "20,000 hostile formats (seed %llu)",
	   (unsigned long long)seed);
}

int main(void)
{
	test_conversions();
	test_lanes();
	test_order();
	test_hidden();
	test_ring();
	test_own_object();
	test_broken();
	test_hip();
	test_formats();
	test_hostile(20261121);
	return plan_done();
}
