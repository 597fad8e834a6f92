/*
 * Traces: what is written comes back, damaged files are refused, and the
 * trace of a kernel has the instructions and addresses that its source says.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "isa/trace/trace.h"
#include "tests/tap.h"

static char dir[] = "/tmp/t0-trace-XXXXXX";

static bool read_all(const char *path, struct buf *b)
{
	struct err e = { 0 };

	return file_read(path, 0, b, &e);
}

/* ---- round trip ---------------------------------------------------------- */

static struct trace_event example(uint32_t i)
{
	struct trace_event ev = { .group = { i / 40, 0, 7 },
				  .wave = i / 10 % 4 };

	ev.pc = 0x7f0000001000 + (i % 10 == 9 ? 0x40 : i % 10 * 4);
	ev.exec = i % 3 ? UINT64_MAX : 0x8000000000000001;
	ev.n_accesses = i % 5 == 4 ? i % 65 : 0;
	ev.kind = ev.n_accesses ? (i % 2 ? TRACE_LDS | TRACE_WRITE :
					   TRACE_MEMORY | TRACE_ATOMIC) : 0;
	ev.access_bytes = ev.n_accesses ? 1u << i % 5 : 0;
	for (uint32_t k = 0; k < ev.n_accesses; k++)
		ev.access[k] = (struct trace_access){
			(int16_t)((int)k - 1),
			k % 2 ? UINT64_MAX - k :
				UINT64_C(0x123456789abc) + 16 * k
		};
	return ev;
}

static bool same(const struct trace_event *got, const struct trace_event *want)
{
	for (uint32_t i = 0; i < want->n_accesses; i++)
		if (got->access[i].lane != want->access[i].lane ||
		    got->access[i].at != want->access[i].at)
			return false;
	return got->type == TRACE_INST &&
	       !memcmp(got->group, want->group, sizeof(got->group)) &&
	       got->wave == want->wave && got->pc == want->pc &&
	       got->exec == want->exec &&
	       got->n_accesses == want->n_accesses && got->kind == want->kind &&
	       (!want->n_accesses || got->access_bytes == want->access_bytes);
}

static void write_example(const char *path)
{
	static const uint8_t code[12] = "code bytes";
	const struct trace_dispatch d = {
		.number = 3, .kernel = "example", .entry_va = 0x7f0000001000,
		.code_va = 0x7f0000000f00, .code = code,
		.code_bytes = sizeof(code), .wave_size = 64,
		.n_groups = { 2, 1, 9 }, .group_size = { 256, 1, 1 },
		.lds_bytes = 1024, .scratch_bytes = 16, .vgprs = 96,
	};
	struct err e = { 0 };
	struct trace_writer *w = trace_create(path, &e);

	if (!ok(w, "a trace can be made"))
		return;
	trace_put_dispatch(w, &d);
	for (uint32_t i = 0; i < 100; i++) {
		const struct trace_event ev = example(i);

		trace_put_inst(w, &ev, i % 2 ? 4 : 8);
		if (i % 10 == 9)
			trace_put_end(w, ev.group, ev.wave);
		if (i == 50)
			trace_put_barrier(w, ev.group);
	}
	ok(trace_finish(w, &e), "and ended");
}

static void test_round_trip(const char *path)
{
	uint32_t insts = 0, ends = 0, barriers = 0, wrong = 0;
	struct trace_event ev;
	struct trace_reader r;
	struct err e = { 0 };
	struct buf b = { 0 };

	write_example(path);
	ok(read_all(path, &b) && trace_reader_init(&r, b.data, b.len, &e) &&
		   trace_next(&r, &ev, &e),
	   "it can be read");
	is_i64(ev.type, TRACE_DISPATCH, "it begins with the dispatch");
	is_str(ev.dispatch.kernel, "example", "with its name");
	is_u64(ev.dispatch.code_va + ev.dispatch.n_groups[2] +
		       ev.dispatch.lds_bytes + ev.dispatch.vgprs,
	       0x7f0000000f00 + 9 + 1024 + 96, "and its figures");
	is_mem(ev.dispatch.code, "code bytes", 11, "and its code");
	while (trace_next(&r, &ev, &e)) {
		if (ev.type == TRACE_INST) {
			const struct trace_event want = example(insts++);

			wrong += !same(&ev, &want);
		}
		ends += ev.type == TRACE_WAVE_END;
		barriers += ev.type == TRACE_BARRIER;
	}
	is_i64(e.code, ERR_NONE, "it is read to its end: %s", e.msg);
	is_u64(insts, 100, "all instructions came back");
	is_u64(wrong, 0, "as they were written");
	is_u64(ends, 10, "with the ends of waves");
	is_u64(barriers, 1, "and the barrier");
	buf_fini(&b);
}

/* Every shorter file ends with an error; every changed byte ends somehow. */
static void test_damage(const char *path)
{
	uint32_t taken = 0, endless = 0;
	static struct trace_event ev;
	struct buf b = { 0 };

	ok(read_all(path, &b), "the file can be damaged");
	for (size_t n = 0; n < b.len; n++) {
		struct trace_reader r;
		struct err e = { 0 };

		if (!trace_reader_init(&r, b.data, n, &e))
			continue;
		while (trace_next(&r, &ev, &e))
			;
		taken += e.code == ERR_NONE;
	}
	is_u64(taken, 0, "no beginning of it passes for the whole");
	for (size_t n = 8; n < b.len; n++) {
		struct trace_reader r;
		struct err e = { 0 };
		size_t events = 0;

		b.data[n] ^= 0xff;
		if (trace_reader_init(&r, b.data, b.len, &e))
			while (trace_next(&r, &ev, &e) && events <= b.len)
				events++;
		endless += events > b.len;
		b.data[n] ^= 0xff;
	}
	is_u64(endless, 0, "a changed byte makes no endless trace");
	buf_fini(&b);
}

/* ---- a kernel ------------------------------------------------------------ */

/*
 * saxpy over 64 work-items in two waves: every lane of both loads x and y and
 * stores y, 4 bytes each, one behind the other.
 */
static void test_kernel(const char *options, uint32_t waves, const char *what)
{
	uint32_t loads = 0, stores = 0, ends = 0, apart = 0, insts = 0;
	static struct trace_event ev;
	struct buf command = { 0 }, b = { 0 };
	struct trace_reader r = { 0 };
	struct err e = { 0 };
	char path[64];

	snprintf(path, sizeof(path), "%s/saxpy", dir);
	buf_printf(&command, "timeout 60 '%s/t0-run' -q --device soft --trace "
		   "%s %s tests/data/kernels/saxpy.co saxpy f32:2 "
		   "buf:128:f32=1 buf:128:f32=1 u32:128 >/dev/null",
		   getenv("T0_BUILD"), path, options);
	ok(!system(command.data) && read_all(path, &b) &&
		   trace_reader_init(&r, b.data, b.len, &e),
	   "%s: saxpy is traced", what);
	while (trace_next(&r, &ev, &e)) {
		const bool vector = ev.type == TRACE_INST &&
				    ev.n_accesses == 32;

		insts += ev.type == TRACE_INST;
		ends += ev.type == TRACE_WAVE_END;
		if (ev.type == TRACE_INST &&
		    (ev.pc < ev.dispatch.code_va ||
		     ev.pc >= ev.dispatch.code_va + ev.dispatch.code_bytes))
			apart++;
		if (!vector)
			continue;
		for (int i = 1; i < 32; i++)
			apart += ev.access[i].at != ev.access[0].at + 4u * i ||
				 ev.access[i].lane != i;
		stores += ev.kind == (TRACE_MEMORY | TRACE_WRITE);
		loads += ev.kind == TRACE_MEMORY;
	}
	is_i64(e.code, ERR_NONE, "%s: to its end: %s", what, e.msg);
	is_str(ev.dispatch.kernel, "saxpy", "%s: with the kernel's name", what);
	is_u64(loads, 2 * waves, "%s: two loads of a wave", what);
	is_u64(stores, waves, "%s: one store of a wave", what);
	is_u64(ends, waves, "%s: all waves end", what);
	is_u64(apart, 0, "%s: lanes are 4 bytes apart, code is inside", what);
	ok(insts > 10 * waves, "%s: with all instructions", what);
	buf_fini(&command);
	buf_fini(&b);
}

int main(void)
{
	char path[64];

	if (!getenv("T0_BUILD"))
		skip_all("T0_BUILD does not say where the tools are");
	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/example", dir);
	test_round_trip(path);
	test_damage(path);
	test_kernel("--block 64 --grid 128", 4, "all workgroups");
	test_kernel("--block 64 --grid 128 --trace-group 1,0,0", 2, "one");
	unlink(path);
	snprintf(path, sizeof(path), "%s/saxpy", dir);
	unlink(path);
	rmdir(dir);
	return plan_done();
}
