/*
 * How fast text is assembled, on one processor: nanoseconds per line in the
 * library, and whole processes on the same file in turns, t0-isa asm beside
 * llvm-mc-19 where that is installed, by the clock and by processor time.  Two
 * files: random instructions of all kinds, and the text of a kernel over and
 * over.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"
#include "isa/code/code.h"
#include "isa/text/text.h"
#include "results/stats/stats.h"
#include "tests/bench/rows.h"
#include "tests/isa/gen.h"

enum { TEXTS = 20000, PASSES = 11, FILE_LINES = 100000, PAIRS = 5 };

static const struct isa_target target = { ISA_GFX11, 32, false };

struct texts {
	char text[TEXTS][256];
	int n;
	size_t sink;
};

/* Texts that both assemblers take; see isa/text/parse_int.h for the others. */
static bool is_common(const char *text)
{
	static const char *const part[] = {
		"op_sel:",   "lit(",	   ".l",     ".h",
		"/*",	     "v_illegal",  "neg(0x", "|0x",
		"f32_bf16 v", "ordered_ps", "b16_e64",	 "v_swap_b16"
	};

	for (size_t i = 0; i < ARRAY_SIZE(part); i++)
		if (strstr(text, part[i]))
			return false;
	return strlen(text) < 256;
}

static void random_texts(struct texts *t)
{
	struct isa_gen_state g = { .seed = 5, .gen = ISA_GFX11 };

	for (t->n = 0; t->n < TEXTS;) {
		uint8_t code[ISA_MAX_SIZE_BYTES];
		char text[ISA_TEXT_MAX];
		struct isa_inst in;

		gen_inst(&g, code);
		if (isa_decode(&target, code, sizeof(code), &in))
			continue;
		isa_print(&target, &in, text, sizeof(text));
		if (!is_common(text) ||
		    isa_parse(&target, text, NULL, NULL, &in))
			continue;
		strcpy(t->text[t->n++], text);
	}
}

/* The inner loop of a matrix multiplication, by hand. */
static void kernel_texts(struct texts *t)
{
	static const char *const loop[] = {
		"s_waitcnt vmcnt(2)",
		"ds_store_b128 v40, v[32:35]",
		"global_load_b128 v[32:35], v[50:51], off offset:16",
		"v_add_co_u32 v50, vcc_lo, v50, s8",
		"v_add_co_ci_u32_e32 v51, vcc_lo, 0, v51, vcc_lo",
		"s_waitcnt lgkmcnt(0)",
		"s_barrier",
		"ds_load_b128 v[16:19], v41",
		"ds_load_b128 v[20:23], v41 offset:16",
		"v_wmma_f32_16x16x16_f16 v[0:7], v[16:23], v[24:31], v[0:7]",
		"v_dual_fmac_f32 v8, v60, v64 :: v_dual_fmac_f32 v9, v61, v65",
		"v_fma_f32 v10, v62, v66, -v10",
		"v_lshlrev_b32_e32 v42, 2, v42",
		"s_add_i32 s4, s4, 1",
		"s_cmp_lt_i32 s4, s5",
		"s_delay_alu instid0(VALU_DEP_1) | instskip(NEXT) | "
		"instid1(VALU_DEP_1)",
	};

	for (t->n = 0; t->n < TEXTS; t->n++)
		strcpy(t->text[t->n], loop[t->n % ARRAY_SIZE(loop)]);
}

static void library(struct bench_rows *r, struct table *table,
		    const char *what, struct texts *t)
{
	const unsigned passes = bench_rounds(PASSES);
	double ns[PASSES];

	for (unsigned pass = 0; pass < passes; pass++) {
		uint64_t start = time_mono_ns();

		for (int i = 0; i < t->n; i++) {
			uint8_t code[ISA_MAX_SIZE_BYTES];
			struct isa_inst in;

			if (isa_assemble_line(&target, t->text[i], NULL, NULL,
					      &in, code))
				BUG("'%s' is refused", t->text[i]);
			t->sink += in.size_bytes;
		}
		ns[pass] = (double)(time_mono_ns() - start) / t->n;
	}
	char params[64];
	res_params(params, sizeof(params), "text:s", what);
	bench_case(r, "isa_assemble_line", params);
	double *sorted = res_sorted(ns, passes);
	table_row(table);
	table_cell(table, 0, "%s", what);
	table_cell(table, 1, "%.0f", bench_time(r, ns, passes, 1e-9));
	table_cell(table, 2, "%.0f", sorted[0]);
	table_cell(table, 3, "%.0f", sorted[passes - 1]);
	free(sorted);
}

/* ---- whole processes ---------------------------------------------------- */

static char dir[] = "/tmp/t0-bench-XXXXXX";

enum { LINES, FILES, LLVM, PROGRAMS };

static const char *const what_runs[PROGRAMS] = {
	[LINES] = "t0-isa asm --lines",
	[FILES] = "t0-isa asm",
	[LLVM] = "llvm-mc-19 -filetype=obj",
};

static const char *tools(void)
{
	const char *build = getenv("T0_BUILD");

	return build ? build : "build/rel";
}

static void command_for(int program, const char *path, struct buf *b)
{
	buf_reset(b);
	if (program == LINES)
		buf_printf(b, "%s/t0-isa asm --lines %s >%s/out", tools(), path,
			   dir);
	else if (program == FILES)
		buf_printf(b, "%s/t0-isa asm %s -o %s/out", tools(), path, dir);
	else
		buf_printf(b,
			   "llvm-mc-19 -triple=amdgcn-amd-amdhsa "
			   "-mcpu=gfx1100 -filetype=obj %s -o %s/out 2>%s/err",
			   path, dir, dir);
}

static bool write_file(const struct texts *t, const char *path, struct err *e)
{
	struct buf b = { 0 };
	bool good;

	for (int i = 0; i < FILE_LINES; i++)
		buf_printf(&b, "\t%s\n", t->text[i % t->n]);
	good = file_write_atomic(path, b.data, b.len, e);
	buf_fini(&b);
	return good;
}

/* Milliseconds of a program's processes: of the clock, and of the processor. */
struct times {
	double wall[PAIRS], cpu[PAIRS];
};

static uint64_t ns_of(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_usec * 1000;
}

/* What all programs that have ended took of the processor. */
static uint64_t children_cpu_ns(void)
{
	struct rusage r;

	getrusage(RUSAGE_CHILDREN, &r);
	return ns_of(&r.ru_utime) + ns_of(&r.ru_stime);
}

/* The programs that are here, each in turns. */
static bool measure(const char *path, unsigned programs, unsigned pairs,
		    struct times ms[PROGRAMS], struct err *e)
{
	struct buf command = { 0 };
	bool good = true;

	for (unsigned i = 0; good && i < pairs * programs; i++) {
		const unsigned p = i % programs, pair = i / programs;
		uint64_t start, used = children_cpu_ns();

		command_for((int)p, path, &command);
		start = time_mono_ns();
		if (system(command.data))
			good = err_set(e, ERR_INPUT, "this command failed: %s",
				       command.data);
		ms[p].wall[pair] = (double)(time_mono_ns() - start) * 1e-6;
		ms[p].cpu[pair] = (double)(children_cpu_ns() - used) * 1e-6;
	}
	buf_fini(&command);
	return good;
}

static void report_program(struct bench_rows *r, struct table *table,
			   const struct times *ms, const struct times *llvm,
			   unsigned pairs)
{
	const double wall = bench_time(r, ms->wall, pairs, 1e-3);
	const double cpu = bench_cpu_time(r, ms->cpu, pairs, 1e-3);

	table_cell(table, 2, "%.1f", wall);
	table_cell(table, 3, "%.2f", FILE_LINES / wall / 1e3);
	table_cell(table, 5, "%.1f", cpu);
	if (!llvm)
		return;
	table_cell(table, 4, "%.1f",
		   bench_ratio_one(r, "llvm-mc-19", RES_HIGHER,
				   res_median(llvm->wall, pairs).value / wall));
	table_cell(table, 6, "%.1f",
		   bench_ratio_one(r, "llvm-mc-19's CPU time", RES_HIGHER,
				   res_median(llvm->cpu, pairs).value / cpu));
}

static bool processes(struct bench_rows *r, struct table *table,
		      const char *what, const struct texts *t, struct err *e)
{
	const bool llvm = !system("llvm-mc-19 --version >/dev/null 2>&1");
	const unsigned pairs = bench_rounds(PAIRS);
	const unsigned programs = llvm ? PROGRAMS : LLVM;
	struct times ms[PROGRAMS];
	char path[64], params[96];

	snprintf(path, sizeof(path), "%s/in.s", dir);
	bool good = write_file(t, path, e) &&
		    measure(path, programs, pairs, ms, e);
	res_params(params, sizeof(params), "text:s lines:u", what, FILE_LINES);
	for (unsigned p = 0; good && p < programs; p++) {
		table_row(table);
		table_cell(table, 0, "%s", what);
		table_cell(table, 1, "%s", what_runs[p]);
		bench_case(r, what_runs[p], params);
		report_program(r, table, &ms[p],
			       llvm && p != LLVM ? &ms[LLVM] : NULL, pairs);
	}
	unlink(path);
	return good;
}

static void remove_folder(void)
{
	static const char *const name[] = { "out", "err" };
	char path[64];

	for (size_t i = 0; i < ARRAY_SIZE(name); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, name[i]);
		unlink(path);
	}
	rmdir(dir);
}

int main(int argc, char **argv)
{
	struct texts *t = xcalloc(1, sizeof(*t));
	struct table lines, files;
	struct bench_rows r;
	struct err e = { 0 };

	if (!mkdtemp(dir))
		return EXIT_TROUBLE;
	bench_open(&r, "asm", argc, argv);
	table_init(&lines, "isa_assemble_line,#median ns,#min ns,"
			   "#max ns");
	table_init(&files, "100000 lines of,program,#ms,#M lines/s,"
			   "#times llvm-mc,#CPU ms,#times llvm-mc's CPU");
	random_texts(t);
	library(&r, &lines, "random instructions", t);
	bool good = processes(&r, &files, "random instructions", t, &e);
	kernel_texts(t);
	library(&r, &lines, "a kernel's loop", t);
	good = good && processes(&r, &files, "a kernel's loop", t, &e) &&
	       table_print(&lines, TABLE_TEXT, stdout, &e) && puts("") >= 0 &&
	       table_print(&files, TABLE_TEXT, stdout, &e);
	table_fini(&lines);
	table_fini(&files);
	remove_folder();
	free(t);
	return bench_close(&r, good, &e);
}
