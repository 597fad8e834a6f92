/*
 * Right kernels with a wait removed or weakened by one, or a barrier removed,
 * at random places: of those that matter, because the late reference executor
 * (tests/ref/late.h) then stores another result, the verifier or the checked
 * run finds 95 % or more.  Kernels are the library's, its matrix products,
 * and OpenCL kernels of clang-19, prebuilt and, where it is installed, at other
 * levels.  The unchanged kernels have the same result in every order of waves,
 * which is that of t0-run.
 *
 *	tests/soft/mutants JOBS PER-KERNEL [SAVE]	kernels of others
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler/gemm/gemm.h"
#include "isa/object/object.h"
#include "tests/ref/mutants.h"
#include "tests/tap.h"

static char dir[] = "/tmp/t0-mutants-XXXXXX";

/* ------------------------------------------------------------- kernels ---- */

struct launch {
	const char *object, *kernel, *shape, *args;
};

static const struct launch library[] = {
	{ "softmax", "softmax", "--grid 256 --block 128",
	  "out:1200:f32 buf:1200:f32=random(5,-3,3) i32:600" },
	{ "log_softmax", "log_softmax", "--grid 256 --block 128",
	  "out:1200:f32 buf:1200:f32=random(6,-3,3) i32:600" },
	{ "rms_norm", "rms_norm", "--grid 256 --block 128",
	  "out:600:f32 buf:600:f32=random(7) buf:300:f32=random(8) f32:1e-5 "
	  "i32:300" },
	{ "rms_norm_back", "rms_norm_back", "--grid 128 --block 128",
	  "out:300:f32 out:300:f32 buf:300:f32=random(9) "
	  "buf:300:f32=random(10) buf:300:f32=random(11) f32:1e-5 i32:300" },
	{ "cross_entropy", "cross_entropy", "--grid 256 --block 128",
	  "out:2:f32 buf:600:f32=random(12) buf:2:i32=7,250 i32:300" },
	{ "row_sum", "row_sum", "--grid 256 --block 128",
	  "out:2:f32 buf:1000:f32=random(13) i32:500" },
	{ "row_max", "row_max", "--grid 256 --block 128",
	  "out:2:f32 buf:1000:f32=random(14) i32:500" },
	{ "argmax", "argmax", "--grid 256 --block 128",
	  "out:2:i32 buf:1000:f32=random(15) i32:500" },
	{ "topk", "topk", "--grid 256 --block 256",
	  "out:5:f32 out:5:i32 buf:700:f32=random(16) i32:700 i32:5" },
	{ "transpose", "transpose", "--grid 1024 --block 256",
	  "out:2048:f32 buf:2048:f32=iota i32:32 i32:64" },
	{ "gemv", "gemv", "--grid 256 --block 128",
	  "out:8:f32 buf:2048:f32=random(17) buf:256:f32=random(18) i32:8 "
	  "i32:256" },
	{ "swiglu", "swiglu", "--grid 256 --block 256",
	  "out:500:f32 buf:500:f32=random(19) buf:500:f32=random(20) i32:500" },
	{ "attention", "attention", "--grid 128 --block 128",
	  "out:512:f32 buf:512:f32=random(21) buf:512:f32=random(22) "
	  "buf:512:f32=random(23) buf:2:i32=0,4 buf:1:i32=4 buf:1:i32=0 "
	  "i32:1 i32:1 i32:128 i32:128 i32:0 i64:0 i32:1 f32:0.1" },
};

static const struct launch opencl[] = {
	{ "reduce", "reduce", "--grid 1024 --block 256",
	  "buf:1024:f32=random(1) out:4:f32 u32:1000" },
	{ "scan", "scan", "--grid 512 --block 256",
	  "buf:512:i32=random(2,-99,99) out:512:i32 lds:1k" },
	{ "bitonic", "bitonic", "--block 256", "out:256:u32=random(3)" },
	{ "radix", "radix", "--block 128", "out:128:u32=random(4)" },
	{ "sgemm", "sgemm", "--grid 32,48 --block 16,16",
	  "buf:1665:f32=random(5) buf:945:f32=random(6) "
	  "out:777:f32=random(7) u32:37 u32:21 u32:45" },
	{ "fft", "fft", "--grid 128 --block 64",
	  "buf:512:f32=random(8) out:512:f32 buf:128:f32=random(9)" },
	{ "transpose", "transpose", "--grid 32,48",
	  "buf:1536:f32=iota out:1536:f32 u32:32 u32:48" },
	{ "histogram", "histogram", "--grid 1024 --block 128",
	  "buf:1024:u32=random(10) out:64:u32=iota u32:1001" },
	{ "life", "life", "--grid 48,24 --block 16,8",
	  "buf:1152:u8=random(11,0,1) out:1152:u8 i32:48 i32:24" },
	{ "gemv", "gemv", "--grid 320 --block 64",
	  "buf:1000:f64=random(12) buf:200:f64=random(13) out:5:f64 u32:200" },
	{ "wmma", "wmma", "--block 32",
	  "buf:256:f16=random(14) buf:256:f16=random(15) "
	  "buf:256:f32=random(16) out:256:f32" },
	{ "solve", "solve", "--block 64",
	  "buf:4096:f64=random(17,3,4) buf:64:f64=random(18) out:64:f64" },
	{ "images", "images", "--grid 64 --block 32",
	  "out:256:f32 buf:256:u32=random(21) buf:256:u32=random(22) "
	  "out:256:f32" },
	{ "packed", "f16", "--block 32",
	  "buf:32:u32=random(19,0,0x3c003c00) "
	  "buf:32:u32=random(20,0,0x3c003c00) out:32:u32" },
};

/* --------------------------------------------------------------- runs ---- */

static void say_missed(const char *text)
{
	diag("%s", text);
}

/* Words separated by tabs, and every buffer saved. */
static void add_words(struct buf *line, const char *words, bool save, int *n)
{
	char *copy = xstrdup(words), *keep, *s;

	for (s = strtok_r(copy, " ", &keep); s; s = strtok_r(NULL, " ", &keep)) {
		buf_printf(line, "\t%s", s);
		if (save && (!strncmp(s, "buf:", 4) || !strncmp(s, "out:", 4)))
			buf_printf(line, ">%s/%d", dir, *n);
		*n += save;
	}
	free(copy);
}

/* Shell words of t0-run: a line of the job without its name, quoted. */
static bool run_product(const char *line)
{
	struct buf command = { 0 };
	char *copy = xstrdup(line), *keep, *s;
	bool good;

	buf_printf(&command, "'%s/t0-run' --quiet --device soft --deadline 240",
		   getenv("T0_BUILD"));
	s = strtok_r(copy, "\t", &keep);
	while ((s = strtok_r(NULL, "\t", &keep)))
		buf_printf(&command, " '%s'", s);
	buf_printf(&command, " >'%s/log' 2>&1", dir);
	good = system(command.data) == 0;
	buf_fini(&command);
	free(copy);
	return good;
}

/* f32 within what orders of sums and approximate units allow, or equal. */
static bool same_values(const struct buf *a, const struct buf *b)
{
	double worst = 0, scale = 0;

	if (a->len != b->len)
		return false;
	if (!memcmp(a->data, b->data, a->len))
		return true;
	for (size_t i = 0; i + 4 <= a->len; i += 4) {
		float x, y;

		memcpy(&x, a->data + i, 4);
		memcpy(&y, b->data + i, 4);
		if (!isfinite(x) || !isfinite(y))
			return false;
		worst = fmax(worst, fabs((double)x - (double)y));
		scale = fmax(scale, fabs((double)x));
	}
	return worst <= 1e-5 * scale;
}

/* What the reference saved is what t0-run has written. */
static void compare_saved(const char *name, const char *line, int n_args)
{
	int same = 0, n = 0;

	if (!ok(run_product(line), "%s: t0-run runs it", name))
		return;
	for (int i = 0; i < n_args; i++) {
		struct buf ours = { 0 }, late = { 0 };
		char path[80], other[80];
		struct err e = { 0 };

		snprintf(path, sizeof(path), "%s/%d", dir, i);
		snprintf(other, sizeof(other), "%s/%d.late", dir, i);
		if (access(path, R_OK) == 0) {
			n++;
			same += file_read(path, 0, &ours, &e) &&
				file_read(other, 0, &late, &e) &&
				same_values(&ours, &late);
		}
		unlink(path);
		unlink(other);
		buf_fini(&ours);
		buf_fini(&late);
	}
	is_i64(same, n, "%s: the late executor has the same results", name);
}

static void run_line(struct mutants *m, const char *name, const char *line,
		     int n_args)
{
	struct err e = { 0 };

	if (ok(mutants_run(m, line, &e), "%s: every order, one result", name))
		compare_saved(name, line, n_args);
	else
		diag("%s", e.msg);
}

static void run_launch(struct mutants *m, const struct launch *l,
		       const char *path, const char *how)
{
	struct buf line = { 0 };
	char name[80];
	int n = 0;

	snprintf(name, sizeof(name), "%s %s", how, l->kernel);
	buf_printf(&line, "%s", name);
	add_words(&line, l->shape, false, &n);
	buf_printf(&line, "\t%s\t%s", path, l->kernel);
	add_words(&line, l->args, true, &n);
	run_line(m, name, line.data, n);
	buf_fini(&line);
}

/* ---------------------------------------------------- matrix products ---- */

static const char *const products[][2] = {
	{ "bf16_nt_bf16", "32x32x32_w2x2_b2_p1_u1_g8_pad_wgp" },
	{ "f16_nn_f32", "32x64x32_w1x2_b1_p1_u1_g8_swz_cu" },
	{ "f16_nt_f16", "32x32x16_w2x1_b3_p2_u2_g0_pad_cu" },
	{ "i8_nt_i32", "32x32x32_w2x2_b2_p1_u1_g8_pad_cu" },
	{ "f32_nn_f32", "64x32x16_w2x2_b2_p1_u1_g0_pad_cu" },
};

enum { A_AT = 1, B_AT, C_AT };

static const char *gemm_operand(uint64_t at, const struct gemm_op *op)
{
	const bool bytes = op->in == DSL_I8, wide = op->in == DSL_F32;

	if (at >> 40 == C_AT)
		return "out:8k:u8";
	return bytes ? "buf:4k:i8=random(31,-9,9)" :
	       wide  ? "buf:4k:f32=random(31)" :
	       op->in == DSL_BF16 ? "buf:4k:bf16=random(31)" :
				    "buf:4k:f16=random(31)";
}

/* The arguments that the launch has, by the object's metadata. */
static void gemm_line(struct buf *line, const struct co_kernel *k,
		      const uint8_t *args, const struct gemm_op *op, int *n)
{
	for (uint32_t i = 0; i < k->n_args; i++) {
		const struct co_arg *a = &k->args[i];
		uint64_t at = 0;

		if (co_arg_is_hidden(a))
			continue;
		if (a->kind == CO_ARG_GLOBAL_BUFFER) {
			memcpy(&at, args + a->offset, 8);
			if (at)
				add_words(line, gemm_operand(at, op), true, n);
			else
				add_words(line, "null", true, n);
			continue;
		}
		buf_adds(line, "\tbytes:");
		for (uint32_t b = 0; b < a->size; b++)
			buf_printf(line, "%02x", args[a->offset + b]);
		++*n;
	}
}

static bool run_gemm(struct mutants *m, const char *const names[2],
		     struct err *e)
{
	const struct gemm_shape s = { .m = 48, .n = 40, .k = 80 };
	const struct gemm_operands at = {
		.a = (uint64_t)A_AT << 40, .b = (uint64_t)B_AT << 40,
		.c = (uint64_t)C_AT << 40, .alpha = 1,
	};
	struct cc_options o;
	struct gemm_code code = { 0 };
	struct buf line = { 0 };
	struct gemm_config c;
	struct gemm_launch l;
	struct gemm_op op;
	struct co co = { 0 };
	char path[80];
	int n = 0;
	bool good;

	cc_options_init(&o);
	snprintf(path, sizeof(path), "%s/gemm.co", dir);
	good = gemm_op_parse(names[0], &op, e) &&
	       gemm_config_parse(names[1], &c, e) &&
	       gemm_check(&op, &c, e) &&
	       gemm_compile(&op, &c, &o, &code, e) &&
	       gemm_fits(&op, &c, &s, e) &&
	       gemm_launch(&op, &c, &s, &at, &l, e) &&
	       file_write_atomic(path, code.object[0].bytes.data,
				 code.object[0].bytes.len, e) &&
	       co_parse(&co, code.object[0].bytes.data,
			code.object[0].bytes.len, e);
	if (good) {
		buf_printf(&line, "%s\t--grid\t%u,%u,%u\t--block\t%u\t%s\t%s",
			   names[0], l.step[0].groups[0] * l.step[0].group_size,
			   l.step[0].groups[1], l.step[0].groups[2],
			   l.step[0].group_size, path, l.step[0].kernel);
		gemm_line(&line, co_kernel_find(&co, l.step[0].kernel),
			  l.step[0].args, &op, &n);
		run_line(m, names[0], line.data, n);
	}
	co_fini(&co);
	gemm_code_fini(&code);
	buf_fini(&line);
	return good;
}

/* -------------------------------------------------------------- tests ---- */

static void print_counts(const struct mutants *m)
{
	static const char *const names[] = { "wait removed", "wait weakened",
					     "barrier removed" };

	diag("%-16s %7s %7s %9s %7s %7s", "", "mutants", "matter", "verifier",
	     "run", "missed");
	for (int i = 0; i < MUTANT_KINDS; i++) {
		const struct mutant_counts *c = &m->count[i];

		diag("%-16s %7d %7d %9d %7d %7d", names[i], c->made, c->matter,
		     c->by_verifier, c->by_run, c->missed);
	}
}

static void check_share(struct mutants *m, const char *what)
{
	int matter = 0, missed = 0;

	print_counts(m);
	for (int i = 0; i < MUTANT_KINDS; i++) {
		ok(m->count[i].matter > 0, "%s: there are such mutants", what);
		matter += m->count[i].matter;
		missed += m->count[i].missed;
	}
	ok(missed * 20 <= matter,
	   "%s: 95 %% of the %d that matter in %d kernels are found: all but "
	   "%d", what, matter, m->kernels, missed);
	memset(m->count, 0, sizeof(m->count));
	m->kernels = 0;
}

static bool has_command(const char *name)
{
	char command[80];

	snprintf(command, sizeof(command), "command -v %s >/dev/null", name);
	return system(command) == 0;
}

static void test_library(struct mutants *m)
{
	for (size_t i = 0; i < ARRAY_SIZE(library); i++) {
		char command[300], path[80];

		snprintf(path, sizeof(path), "%s/library.co", dir);
		snprintf(command, sizeof(command),
			 "'%s/t0-cc' --kernel %s -o %s >/dev/null",
			 getenv("T0_BUILD"), library[i].object, path);
		if (ok(system(command) == 0, "%s", command))
			run_launch(m, &library[i], path, "library");
	}
	for (size_t i = 0; i < ARRAY_SIZE(products); i++) {
		struct err e = { 0 };

		if (!ok(run_gemm(m, products[i], &e), "%s %s", products[i][0],
			products[i][1]))
			diag("%s", e.msg);
	}
	check_share(m, "library");
}

static void test_opencl(struct mutants *m, const char *level)
{
	for (size_t i = 0; i < ARRAY_SIZE(opencl); i++) {
		char command[400], path[80];

		snprintf(path, sizeof(path), "tests/data/kernels/%s.co",
			 opencl[i].object);
		snprintf(command, sizeof(command),
			 "clang-19 -x cl -cl-std=CL2.0 -target "
			 "amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib "
			 "-cl-kernel-arg-info %s tests/data/kernels/%s.cl -o "
			 "%s/cl.co", level, opencl[i].object, dir);
		if (*level) {
			if (!ok(system(command) == 0, "%s compiles %s", level,
				opencl[i].object))
				continue;
			snprintf(path, sizeof(path), "%s/cl.co", dir);
		}
		run_launch(m, &opencl[i], path, *level ? level : "prebuilt");
	}
	check_share(m, *level ? level : "prebuilt");
}

static void run_jobs(struct mutants *m, const char *path)
{
	struct buf jobs = { 0 };
	struct err e = { 0 };
	char *save, *line;

	if (!file_read(path, 0, &jobs, &e)) {
		ok(false, "%s", e.msg);
		return;
	}
	buf_addc(&jobs, '\0');
	for (line = strtok_r(jobs.data, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		memset(&e, 0, sizeof(e));
		if (!ok(mutants_run(m, line, &e), "%.*s: every order, one "
			"result", (int)strcspn(line, "\t"), line))
			diag("%s", e.msg);
	}
	buf_fini(&jobs);
	check_share(m, path);
}

int main(int argc, char **argv)
{
	struct mutants m = { .per_kernel = getenv("T0_SLOW") ? 100 : 8,
			     .seed = 0x5eed0b5e, .save = ".late",
			     .say = say_missed };

	m.dir = mkdtemp(dir);
	if (!m.dir || !getenv("T0_BUILD"))
		skip_all("T0_BUILD does not say where the tools are");
	diag("seed 0x%llx", (unsigned long long)m.seed);
	if (argc > 2) {
		m.per_kernel = atoi(argv[2]);
		m.save = argc > 3 ? argv[3] : NULL;
		run_jobs(&m, argv[1]);
	} else {
		test_library(&m);
		test_opencl(&m, "");
		if (has_command("clang-19"))
			test_opencl(&m, "-O1");
		else
			skip("clang-19 is not installed: only its prebuilt "
			     "kernels were changed");
	}
	char command[80];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	if (system(command))
		diag("%s stays behind", dir);
	return plan_done();
}
