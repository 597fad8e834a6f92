/*
 * The library's kernels against twins in OpenCL C (tests/bench/clang-kernels/)
 * compiled by clang-19 -O3: the same workgroups, arguments, data and formulas,
 * and division and square root correctly rounded in both.
 *
 * Both objects run on the soft device.  The simulator decides when the waves of
 * one WGP run, with the addresses and branches that they really take, and the
 * results of the whole dispatch are compared with each other: a twin that
 * computes something else does not count.  Instructions are those of the
 * kernel's code (`insts`) and those that the simulated waves executed (`run`).
 *
 * tests/bench/clang [KERNEL...] [-v]: only these; -v also shows every
 * instruction with its issues and stalls.  With T0_TEST_CHIP=gfx1030 both are
 * for that chip and run in checked mode, and only their results are compared: of
 * all twins, but of those with matrix products where the chip has none; with
 * T0_TEST_LEVEL=-O2 by clang of that level.  At -O0 nothing is checked but
 * results: all that clang then keeps in memory takes an hour.
 */
#include <math.h>
#include <unistd.h>

#include "compiler/cmd/cmd_sim.h"
#include "isa/code/code.h"
#include "probes/common/common.h"
#include "tests/bench/clang-twins.h"
#include "tests/bench/rows.h"
#include "tests/ref/cache.h"
#include "tests/kernels/kernel-run.h"

#define TARGET_SHARE 0.80
#define TARGET_WORST 1.15
/* Other work may keep the machine busy; checked loops about atomics are slow. */
#define PATIENCE_NS 3600000000000u

/* ---------------------------------------------------------- simulation ---- */

/* The groups that one WGP gets, stepped by the simulator as they run. */
struct live {
	const struct cost_model *costs;
	struct co_kernel kernel;
	uint64_t footprint, entry_va;
	struct sim_result result;
	bool done;
	struct err why;
};

/* The WGP that has the last group, which is the partial one. */
static void live_dispatch(void *ctx, struct soft_timed *t,
			  const struct soft_timed_dispatch *d)
{
	struct live *l = ctx;
	const uint64_t n = (uint64_t)cost_value(l->costs, COST_N_WGP);
	const struct sim_config c = { .cost = l->costs, .warmth = SIM_WARM,
				      .footprint_bytes = l->footprint,
				      .warm_code = true };
	struct soft_waves w;

	/* The runtime copies with kernels of its own. */
	if (d->entry_va != l->entry_va)
		return;
	soft_waves_init(&w, t, d, (d->total - 1) % n, n);
	w.source.code = l->kernel.code;
	w.source.code_bytes = l->kernel.code_bytes;
	sim_fini(&l->result);
	memset(&l->result, 0, sizeof(l->result));
	l->done = sim_run(&w.source, &c, &l->result, &l->why);
	soft_waves_fini(&w);
}

/* Other chips have no costs of their own. */
static bool is_timed(void)
{
	return cc_chip() == isa_chip_find("gfx1100");
}

/* Times are those of -O3 always. */
static const char *clang_level(void)
{
	const char *l = getenv("T0_TEST_LEVEL");

	return l && !is_timed() ? l : "-O3";
}

/* ----------------------------------------------------------------- run ---- */

struct machine {
	struct bench_rows rows;
	struct live live;
	struct kfd_mem *mem[MAX_PARAMS]; /* of the arguments; NULL: a number */
	struct kfd_dev *dev;
	struct kfd_queue *queue;
};

static bool is_checked(void)
{
	return !is_timed() && strcmp(clang_level(), "-O0") != 0;
}

static bool machine_open(struct machine *m, const struct cost_model *costs,
			 struct err *e)
{
	const struct soft_timing client = { &m->live, live_dispatch };
	const struct soft_watch_options w = { .check = true };
	const struct soft_options o = { .deadline_ns = PATIENCE_NS,
					.chip = { cc_chip() } };
	struct kfd_driver *d = kfd_soft_new(&o, e);

	m->live.costs = costs;
	return d &&
	       (!is_timed() || soft_set_timing(d, &client, e)) &&
	       (!is_checked() || soft_watch_attach(d, &w, e)) &&
	       kfd_open_driver(&m->dev, d, -1, "bench", e) &&
	       kfd_queue_new(m->dev, NULL, &m->queue, e);
}

/* What one of the two compilers made, and what came of it. */
struct side {
	struct buf object;
	int insts, vgprs, sgprs, waves;
	uint64_t cycles, run;
	struct arr out[MAX_PARAMS];
};

static void side_fini(struct side *s)
{
	buf_fini(&s->object);
	for (size_t i = 0; i < ARRAY_SIZE(s->out); i++)
		free(s->out[i].bits);
}

/* I8 is a cache of i8 beside elements of f32. */
static enum dsl_type elements_of(enum dsl_type type)
{
	return type == DSL_I8 ? DSL_F32 : type;
}

static enum ssa_kind kind_for(const struct param *p, enum dsl_type type)
{
	/* convert: f32 to bf16 and back */
	if (p->kind == OF_TO)
		return type == DSL_F32 ? SSA_BF16 : SSA_F32;
	if (p->kind == OF_CACHE)
		return kind_of(type);
	type = elements_of(type);
	return p->kind == OF_SHAPE ? kind_of(type) : p->kind;
}

/* Elements of memory, with the scales of a cache's vectors. */
static size_t length_for(const struct param *p, size_t n, enum dsl_type type)
{
	return p->kind == OF_CACHE ?
		       n / HEAD * cache_row_of(kind_for(p, type), HEAD) : n;
}

static struct arr vectors(size_t n, uint64_t *seed)
{
	struct arr a = arr_new(SSA_I8, n);
	const uint32_t row = cache_row_of(SSA_I8, HEAD);

	for (size_t at = 0; at < n; at += row)
		vector_random(&a, at, HEAD, seed);
	return a;
}

/* The same bits for both compilers: the seed is the argument's number. */
static struct arr contents(const struct param *p, enum dsl_type type,
			   uint64_t seed)
{
	enum ssa_kind kind = kind_for(p, type);
	size_t n = length_for(p, p->n, type);

	if (p->role == OUT && p->x == 0)
		return arr_new(kind, n);
	if (p->kind == OF_CACHE && kind == SSA_I8)
		return vectors(n, &seed);
	if (p->role != INTS && p->role != STEPS)
		return arr_random(kind, n, p->x, &seed);
	struct arr a = arr_new(kind, n);
	for (size_t i = 0; i < a.n; i++)
		arr_set(&a, i, p->role == STEPS ?
			p->within + (double)i * p->x :
			(double)(test_random(&seed) % (uint64_t)p->x));
	return a;
}

static size_t align_to(size_t at, size_t n)
{
	return (at + n - 1) / n * n;
}

/* Arguments as both compilers lay them out: each at a multiple of its size. */
static bool arguments(struct machine *m, const struct twin *t,
		      enum dsl_type type, struct kfd_launch *l, uint8_t *args,
		      struct err *e)
{
	struct kfd_mem **mem = m->mem;
	size_t at = 0;

	m->live.footprint = 0;
	for (int i = 0; t->p[i].role != END; i++) {
		const struct param *p = &t->p[i];
		const float f = (float)p->x;
		const int64_t n = p->role >= I32 ?
			(int64_t)length_for(p, (size_t)p->x, type) : 0;
		const size_t number = p->role == I64 ? 8 : 4;

		if (p->role >= F32) {
			at = align_to(at, number);
			memcpy(args + at, p->role == F32 ? (const void *)&f :
			       &n, number);
			at += number;
			continue;
		}
		struct arr a = contents(p, type, (uint64_t)i + 1);
		size_t bytes = a.n * arr_bytes(&a);
		bool good = kfd_mem_alloc(m->dev, KFD_VRAM, bytes, "bench",
					  &mem[i], e) &&
			    kfd_write(m->dev, mem[i], 0, a.bits, bytes, e);
		free(a.bits);
		if (!good)
			return false;
		m->live.footprint += bytes;
		at = align_to(at, 8);
		memcpy(args + at, &mem[i]->va, 8);
		at += 8;
	}
	l->args = args;
	l->args_bytes = at;
	return true;
}

/* What vectors of i8 mean is what can be compared. */
static void numbers_of(struct arr *out)
{
	struct arr bytes = *out;
	size_t padding = 0;

	if (bytes.kind != SSA_I8)
		return;
	*out = cache_numbers(&bytes, HEAD, 0, &padding);
	free(bytes.bits);
}

static bool dispatch(struct machine *m, const struct twin *t,
		     enum dsl_type type, struct side *s, struct err *e)
{
	const struct kernel_entry *entry = kernel_find(t->kernel);
	struct kfd_mem **mem = m->mem;
	struct kfd_code *code = NULL;
	struct kfd_launch l = { .wg = { entry->group, 1, 1 },
				.grid = { entry->group * t->gx, t->gy, 1 } };
	uint8_t args[256] = { 0 };
	bool good = kfd_code_load(m->dev, s->object.data, s->object.len, &code,
				  e) &&
		    kfd_code_kernel(code, t->kernel, &l.kernel, e) &&
		    arguments(m, t, type, &l, args, e);

	l.deadline_ns = time_mono_ns() + PATIENCE_NS;
	m->live.done = false;
	m->live.entry_va = good ? l.kernel->entry_va : 0;
	good = good && kfd_run(m->queue, &l, NULL, e);
	if (good && is_timed() && !m->live.done) {
		*e = m->live.why;
		good = false;
	}
	for (int i = 0; t->p[i].role != END; i++) {
		if (good && t->p[i].role == OUT) {
			s->out[i] = arr_new(kind_for(&t->p[i], type),
					    length_for(&t->p[i], t->p[i].n,
						       type));
			good = kfd_read(m->dev, s->out[i].bits, mem[i], 0,
					s->out[i].n * arr_bytes(&s->out[i]),
					e);
			numbers_of(&s->out[i]);
		}
		kfd_mem_free(m->dev, mem[i]);
		mem[i] = NULL;
	}
	kfd_code_unload(code);
	return good;
}

/* Up to the last s_endpgm: padding is behind it. */
static int count_insts(const struct co_kernel *k)
{
	const struct isa_target target = { cc_chip()->gen, 32, false };
	struct isa_inst in;
	int n = 0, end = 0;

	for (size_t at = 0; at < k->code_bytes; at += in.size_bytes) {
		if (isa_decode(&target, k->code + at, k->code_bytes - at, &in))
			break;
		n++;
		if (in.op == ISA_s_endpgm)
			end = n;
	}
	return end;
}

static bool measure(struct machine *m, const struct twin *t,
		    enum dsl_type type, struct side *s, struct err *e)
{
	struct isa_occupancy o = { 0 };
	struct co co;
	bool good;

	if (!co_parse(&co, s->object.data, s->object.len, e))
		return false;
	const struct co_kernel *k = co_kernel_find(&co, t->kernel);
	m->live.kernel = *k;
	const struct isa_resources r = {
		.wave = 32, .vgprs = co_descriptor_vgprs(&k->desc),
		.lds_bytes = k->desc.group_segment_bytes,
		.workgroup_size = (int)kernel_find(t->kernel)->group,
		.wgp_mode = k->desc.rsrc1 >> 29 & 1,
	};
	isa_occupancy(cc_chip()->name, &r, &o);
	s->insts = count_insts(k);
	s->vgprs = (int)k->vgpr_count;
	s->sgprs = (int)k->sgpr_count;
	s->waves = o.waves;
	good = dispatch(m, t, type, s, e);
	s->cycles = m->live.result.cycles;
	s->run = m->live.result.issues;
	co_fini(&co);
	return good;
}

/* ----------------------------------------------------------- compilers ---- */

static bool ours(const struct twin *t, enum dsl_type type, struct side *s,
		 struct err *e)
{
	const struct kernel_entry *k = kernel_find(t->kernel);
	struct kernel_shape shape = { .type = elements_of(type), .cache = type,
				      .ratio = HEADS / KV };
	struct cc_object obj = { 0 };
	struct cc_options o;
	struct ssa_func *f;

	if (strcmp(t->kernel, "convert") == 0)
		shape.to = type == DSL_F32 ? DSL_BF16 : DSL_F32;
	if (strcmp(t->kernel, "rms_norm_rows") == 0 ||
	    strstr(t->kernel, "_narrow"))
		shape.to = type;
	shape.wide = strcmp(t->kernel, "kv_gather") == 0;
	cc_test_options(&o);
	f = kernel_build(k, &shape, e);
	bool good = f && cc_compile(f, &o, &obj, e);
	if (good)
		buf_add(&s->object, obj.bytes.data, obj.bytes.len);
	cc_object_fini(&obj);
	ssa_func_free(f);
	return good;
}

/* Chips before gfx11 multiply no matrices. */
static bool is_expressible(const struct twin *t)
{
	static const char *const matrices[] = { "expert_tiles", "flash",
						"flash_packed" };
	bool needs = false;

	for (size_t i = 0; i < ARRAY_SIZE(matrices); i++)
		needs |= strcmp(t->source, matrices[i]) == 0;
	return !needs || cc_chip()->gen >= ISA_GFX11;
}

static const char *opencl_type(enum dsl_type t)
{
	return t == DSL_BF16 ? "__bf16" : "float";
}

static const char *name_of(enum dsl_type t)
{
	return t == DSL_F32 ? "f32" : t == DSL_I8 ? "i8" : "bf16";
}

static bool clangs(const struct twin *t, enum dsl_type type, const char *dir,
		   struct side *s, struct err *e)
{
	bool converts = strcmp(t->kernel, "convert") == 0;
	const char *root = getenv("T0_SRC");
	struct buf path = { 0 }, command = { 0 };
	bool good;

	buf_printf(&path, "%s/%s-%s%s.co", dir, t->source, name_of(type),
		   converts ? "-to" : "");
	buf_printf(&command, "clang-19 -x cl -cl-std=CL2.0 -nogpulib %s "
		   "-target amdgcn-amd-amdhsa -mcpu=%s "
		   "-cl-fp32-correctly-rounded-divide-sqrt -DELEM=%s -DTO=%s%s "
		   "%s/tests/bench/clang-kernels/%s.cl -o %s",
		   clang_level(), cc_chip()->name, opencl_type(type),
		   opencl_type(converts ? (type == DSL_F32 ? DSL_BF16 :
					   DSL_F32) : type),
		   type == DSL_I8 ? " -DCACHE_I8" : "",
		   root ? root : ".", t->source, path.data);
	good = access(path.data, R_OK) == 0 || system(command.data) == 0;
	good = good ? file_read(path.data, 0, &s->object, e) :
		      err_set(e, ERR_INPUT, "clang-19 failed: %s",
			      command.data);
	buf_fini(&path);
	buf_fini(&command);
	return good;
}

/* -------------------------------------------------------------- report ---- */

/* Of i8: the last bit of a sum may decide to which side it is rounded. */
static double step_between(const struct param *p, const struct arr *out)
{
	double top = 0;

	if (p->kind != OF_CACHE)
		return 0;
	for (size_t i = 0; i < out->n; i++)
		top = fmax(top, fabs(arr_get(out, i)));
	return 1.01 * top / 127;
}

/* Elements in which they differ beyond the bound. */
static size_t differences(const struct twin *t, enum dsl_type type,
			  const struct side *a, const struct side *b)
{
	size_t wrong = 0;

	for (int i = 0; t->p[i].role != END; i++) {
		double step = type == DSL_I8 ?
			step_between(&t->p[i], &a->out[i]) : 0;

		for (size_t j = 0; j < a->out[i].n; j++) {
			double x = arr_get(&a->out[i], j);
			double y = arr_get(&b->out[i], j);
			double one = ulp_of(a->out[i].kind) * fabs(y);
			bool exact = t->p[i].within == 0;

			if (!close_enough(x, y, t->p[i].within + step +
					  (exact ? 0 : one)) && !wrong++)
				fprintf(stderr, "%s: result %d, element %zu: "
					"%.9g, clang's %.9g\n", t->kernel, i, j,
					x, y);
		}
	}
	return wrong;
}

/* Every instruction with its issues and stalls per execution. */
static void show_lines(const char *who, const struct twin *t,
		       const struct live *l)
{
	const struct sim_source src = { .wave_size = 32,
					.code_va = l->entry_va };
	const struct show_sim s = { .r = &l->result, .src = &src };
	struct err e = { 0 };

	printf("%s: %s, %llu cycles, limit %s %.2f\n", t->kernel, who,
	       (unsigned long long)l->result.cycles,
	       sim_pipe_name(l->result.limit),
	       l->result.share[l->result.limit]);
	if (!show_annotated(&s, stdout, &e))
		fprintf(stderr, "bench-clang: %s\n", e.msg);
}

struct tally {
	int n, good, failed;
	double worst;
	char worst_name[64];
};

/* Both sides' cycles, and ours to clang's. */
static double report_cycles(struct bench_rows *r, const char *kernel,
			    const char *type, uint64_t ours, uint64_t clangs)
{
	char params[96];

	for (int i = 1; i >= 0; i--) {
		res_params(params, sizeof(params), "type:s by:s", type,
			   i ? "clang-19 -O3" : "T0");
		bench_case(r, kernel, params);
		bench_cycles(r, (double)(i ? clangs : ours));
	}
	bench_checked(r, true, "as of clang-19's kernel");
	return bench_ratio_one(r, "clang-19 -O3", RES_LOWER,
			       (double)ours / (double)clangs);
}

static void show(struct bench_rows *r, const struct twin *t, enum dsl_type type,
		 const struct side *a, const struct side *b, struct tally *sum)
{
	const double ratio = report_cycles(r, t->kernel, name_of(type),
					   a->cycles, b->cycles);

	printf("%-18s %-4s %5d %5d %8llu %8llu %4d %4d %4d %4d %3d %3d %8llu "
	       "%8llu %6.3f\n", t->kernel, name_of(type), a->insts, b->insts,
	       (unsigned long long)a->run, (unsigned long long)b->run,
	       a->vgprs, b->vgprs, a->sgprs, b->sgprs, a->waves, b->waves,
	       (unsigned long long)a->cycles,
	       (unsigned long long)b->cycles, ratio);
	fflush(stdout);
	sum->n++;
	sum->good += ratio <= 1;
	if (ratio > sum->worst) {
		sum->worst = ratio;
		snprintf(sum->worst_name, sizeof(sum->worst_name), "%s of %s",
			 t->kernel, name_of(type));
	}
}

static void compare(struct machine *m, const struct twin *t,
		    enum dsl_type type, const char *dir, bool verbose,
		    struct tally *sum)
{
	struct side a = { 0 }, b = { 0 };
	struct err e = { 0 };
	bool good;

	if (!is_expressible(t)) {
		printf("%-18s %-4s no twin: a %s has no matrix products\n",
		       t->kernel, name_of(type), cc_chip()->name);
		return;
	}
	good = ours(t, type, &a, &e) && measure(m, t, type, &a, &e);
	if (good && verbose)
		show_lines("ours", t, &m->live);
	good = good && clangs(t, type, dir, &b, &e) &&
	       measure(m, t, type, &b, &e);
	if (good && verbose)
		show_lines("clang", t, &m->live);
	size_t wrong = good ? differences(t, type, &a, &b) : 0;
	if (good && !wrong && !is_timed()) {
		printf("%-18s %-4s alike on a %s\n", t->kernel, name_of(type),
		       cc_chip()->name);
		fflush(stdout);
		sum->n++;
	} else if (good && !wrong) {
		show(&m->rows, t, type, &a, &b, sum);
	} else if (good) {
		printf("%-18s does not count: %zu elements differ\n",
		       t->kernel, wrong);
	} else {
		printf("%-18s does not count: %s\n", t->kernel, e.msg);
	}
	sum->failed += !good || wrong;
	side_fini(&a);
	side_fini(&b);
}

static bool wanted(const char *kernel, int argc, char **argv)
{
	int named = 0;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], kernel) == 0)
			return true;
		named += argv[i][0] != '-';
	}
	return !named;
}

/* Every kernel of the library has to have a twin. */
static int without_twin(void)
{
	int n = 0;

	for (size_t k = 0; k < kernel_count; k++) {
		bool has = false;

		for (size_t i = 0; i < ARRAY_SIZE(twins); i++)
			has |= strcmp(twins[i].kernel,
				      kernel_table[k].name) == 0;
		if (!has)
			printf("%-18s has no twin\n", kernel_table[k].name);
		n += !has;
	}
	return n;
}

static void show_head(void)
{
	printf("clang: ours and clang-19 -O3, simulated on one WGP of gfx1100\n"
	       "%-18s %-4s %11s %17s %9s %9s %7s %17s\n"
	       "%-18s %-4s %5s %5s %8s %8s %4s %4s %4s %4s %3s %3s %8s %8s "
	       "%6s\n", "", "", "insts", "run", "vgprs", "sgprs", "waves",
	       "cycles", "kernel", "type", "ours", "clang", "ours", "clang",
	       "ours", "clng", "ours", "clng", "our", "clg", "ours", "clang",
	       "ratio");
}

/* Does every kernel count, and has every one a twin? */
static bool run_all(struct machine *m, const char *dir, int argc, char **argv,
		    struct err *e)
{
	bool verbose = argc > 1 && strcmp(argv[argc - 1], "-v") == 0;
	struct tally sum = { 0 };

	if (is_timed())
		show_head();
	for (size_t i = 0; i < ARRAY_SIZE(twins); i++) {
		if (!wanted(twins[i].kernel, argc, argv))
			continue;
		if (twins[i].types != BF16_ONLY &&
		    twins[i].types != BF16_CACHED)
			compare(m, &twins[i], DSL_F32, dir, verbose, &sum);
		if (twins[i].types != F32_ONLY)
			compare(m, &twins[i], DSL_BF16, dir, verbose, &sum);
		if (twins[i].types >= BOTH_CACHED)
			compare(m, &twins[i], DSL_I8, dir, verbose, &sum);
	}
	int missing = without_twin();
	if (!is_timed()) {
		printf("clang: %d alike on a %s, %d do not count\n", sum.n,
		       cc_chip()->name, sum.failed);
		return !sum.failed || err_set(e, ERR_INPUT,
					      "%d kernels do not count",
					      sum.failed);
	}
	bench_case(&m->rows, "at or below clang's time", NULL);
	const double share = sum.n ? bench_ratio_one(&m->rows, "all kernels",
		RES_HIGHER, (double)sum.good / sum.n) : 0;
	printf("clang: %d of %d at or below clang's time: %.0f %% (wanted %.0f "
	       "%%); the worst is %.3f (wanted %.2f), %s; %d do not count, %d "
	       "have no twin\n", sum.good, sum.n,
	       100 * share, 100 * TARGET_SHARE, sum.worst, TARGET_WORST,
	       sum.worst_name, sum.failed, missing);
	if (!sum.n && !sum.failed)
		return err_set(e, ERR_USAGE, "no kernel is called so");
	return (!sum.failed && !missing) ||
	       err_set(e, ERR_INPUT, "%d kernels do not count, %d have no twin",
		       sum.failed, missing);
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/t0-clang-XXXXXX";
	struct machine m = { 0 };
	struct cost_model costs;
	struct err e = { 0 };
	struct buf remove = { 0 };

	if (system("command -v clang-19 >/dev/null 2>&1") != 0) {
		printf("clang: SKIPPED: clang-19 is not installed, so there is "
		       "nothing to compare the kernels with\n");
		return 0;
	}
	bench_open(&m.rows, "clang", argc, argv);
	m.rows.origin = RES_SIMULATED;
	cost_init(&costs, "gfx1100");
	bool good = mkdtemp(dir) ? machine_open(&m, &costs, &e) &&
				   run_all(&m, dir, argc, argv, &e) :
				   err_set(&e, ERR_IO, "no temporary folder");
	kfd_close(m.dev);
	sim_fini(&m.live.result);
	cost_fini(&costs);
	buf_printf(&remove, "rm -rf '%s'", dir);
	if (system(remove.data))
		fprintf(stderr, "bench-clang: %s is left\n", dir);
	buf_fini(&remove);
	return bench_close(&m.rows, good, &e);
}
