/*
 * Checked mode on right kernels (tests/data/check/seeds.s) of which one
 * instruction is replaced: each such fault is found, and the finding names
 * kernel, workgroup, wave and lane, the instruction with its address and source
 * line, and the earlier access that it conflicts with.  Texts and addresses
 * come from the object, lines from the marks in the source.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "isa/code/code.h"
#include "isa/object/object.h"
#include "isa/text/text.h"
#include "tests/soft/check-run.h"
#include "tests/tap.h"

static const struct isa_target target = { ISA_GFX11, 32, false };
static char dir[] = "/tmp/t0-seeds-XXXXXX";

struct seed {
	const char *kernel, *name;
	const char *rule;
	const char *where; /* behind the kernel's name */
	const char *text;  /* also in the finding */
};

/* How each kernel runs. */
static const struct shape {
	const char *kernel, *memory, *options;
} shapes[] = {
	{ "waits", "buf:128:u32=iota", "--block 32" },
	{ "stores", "buf:128:u32", "--block 64" },
	{ "groups", "buf:128:u32", "--block 32 --grid 64" },
	{ "stored", "buf:128:u32=none", "--block 32" },
	{ "addressed", "buf:128:u32=none", "--block 32" },
	{ "branched", "buf:128:u32=none", "--block 32" },
	{ "inside", "buf:100:u8=1", "--block 32" },
	{ "aligned", "buf:140:u8=1", "--block 32" },
	{ "together", "buf:100:u8=1", "--block 64" },
	{ "matrix", "buf:100:u8=1", "--block 32" },
};

#define W0  "workgroup 0,0,0, wave 0"
#define W1  "workgroup 0,0,0, wave 1"
#define ANY NULL /* workgroups run side by side */

static const struct seed seeds[] = {
	{ "waits", "vm_second", "hazard", W0, "vmcnt" },
	{ "waits", "vm_over", "hazard", W0, "writes v5" },
	{ "waits", "vm_atomic", "hazard", W0, "vmcnt" },
	{ "waits", "smem_wait", "hazard", W0, "lgkmcnt" },
	{ "waits", "smem_order", "hazard", W0, "reads s4" },
	{ "waits", "smem_branch", "hazard", W0, "reads s5" },
	{ "waits", "lds_count", "hazard", W0, "v9, which a load" },
	{ "waits", "lds_wait", "hazard", W0, "reads v10" },
	{ "waits", "permute_wait", "hazard", W0, "v11, which a load" },
	{ "waits", "flat_vm", "hazard", W0, "vmcnt" },
	{ "waits", "flat_lgkm", "hazard", W0, "lgkmcnt" },
	{ "waits", "flat_both", "hazard", W0, "reads v14" },
	{ "stores", "vs_global", "race", W0 ", lane 0", "not ordered" },
	{ "stores", "vs_buffer", "race", W0 ", lane 0", "not ordered" },
	{ "stores", "vs_atomic", "race", W0 ", lane 0", "not ordered" },
	{ "stores", "race_barrier", "race", W1 ", lane 0", "'argument 0'" },
	{ "stores", "lds_barrier", "race", W1 ", lane 0", "of LDS" },
	{ "stores", "lds_wait_store", "race", W0 ", lane 0", "of LDS" },
	{ "stores", "lds_same", "race", W1 ", lane 0", "write at 0x0 of LDS" },
	{ "groups", "group_index", "race", ANY, "by workgroup" },
	{ "groups", "group_plain", "race", ANY, "256 bytes into" },
	{ "stored", "store_vgpr", "uninitialised", W0 ", lane 0", "v2" },
	{ "stored", "store_sgpr", "uninitialised", W0 ", lane 0", "s4" },
	{ "stored", "store_lds", "uninitialised", W0 ", lane 0", "of LDS" },
	{ "stored", "store_memory", "uninitialised", W0 ", lane 0",
	  "which nobody wrote" },
	{ "addressed", "address_vgpr", "uninitialised", W0 ", lane 0", "v2" },
	{ "addressed", "address_sgpr", "uninitialised", W0, "s4" },
	{ "addressed", "address_lds", "uninitialised", W0 ", lane 0",
	  "of LDS" },
	{ "addressed", "address_memory", "uninitialised", W0 ", lane 0",
	  "which nobody wrote" },
	{ "branched", "branch_vgpr", "uninitialised", W0, "v2" },
	{ "branched", "branch_sgpr", "uninitialised", W0, "s4" },
	{ "branched", "branch_lds", "uninitialised", W0, "of LDS" },
	{ "branched", "branch_memory", "uninitialised", W0,
	  "which nobody wrote" },
	{ "inside", "past_load", "bounds", W0 ", lane 9", "100 bytes into" },
	{ "inside", "past_part", "bounds", W0 ", lane 15", "96 bytes into" },
	{ "inside", "past_scalar", "bounds", W0, "100 bytes into" },
	{ "inside", "past_lds", "bounds", W0 ", lane 8", "64" },
	{ "inside", "past_scratch", "bounds", W0 ", lane 0", "20 bytes per" },
	{ "inside", "past_store", "bounds", W0 ", lane 0", "100 bytes into" },
	{ "aligned", "odd_load", "alignment", W0 ", lane 0", "4" },
	{ "aligned", "odd_lds", "alignment", W0 ", lane 0", "0x2 of LDS" },
	{ "aligned", "odd_store", "alignment", W0 ", lane 0", "multiple of 2" },
	{ "together", "first_skips", "barrier", W1, "wave 0 ended" },
	{ "together", "second_skips", "barrier", W0, "wave 1 ended" },
	{ "together", "last_skips", "barrier", W1, "wave 0 ended" },
	{ "matrix", "one_lane", "wmma", W0, "EXEC is 0x1:" },
	{ "matrix", "one_off", "wmma", W0, "EXEC is 0x7fffffff:" },
	{ "matrix", "compared", "wmma", W0, "EXEC is 0x7f:" },
};

/* ---------------------------------------------------------- the source ---- */

struct place {
	int line, index; /* of the source; the n-th instruction */
};

struct marks {
	struct place change, finding, partner;
	char replacement[120];
};

/* The marks of one line that belong to `name`: "@ name: text; ! name". */
static void read_marks(const char *comment, const char *name, struct place at,
		       struct marks *m)
{
	char copy[400], *save, *s;

	snprintf(copy, sizeof(copy), "%s", comment);
	for (s = strtok_r(copy, ";", &save); s;
	     s = strtok_r(NULL, ";", &save)) {
		char kind, found[40];
		int end = 0;

		if (sscanf(s, " %c %39[a-z_0-9]%n", &kind, found, &end) < 2 ||
		    strcmp(found, name) != 0)
			continue;
		if (kind == '!')
			m->finding = at;
		else if (kind == '?')
			m->partner = at;
		else if (kind == '@') {
			m->change = at;
			snprintf(m->replacement, sizeof(m->replacement), "%s",
				 s + end + 2);
		}
	}
}

/* Instructions are the lines that begin with a tab; `done` is s_endpgm. */
static void read_source(const char *source, const struct seed *seed,
			struct marks *m)
{
	char kernel[60], line[500];
	struct place at = { 0, -1 };
	bool inside = false;

	memset(m, 0, sizeof(*m));
	snprintf(kernel, sizeof(kernel), "kernel %s", seed->kernel);
	for (const char *s = source; *s;) {
		const char *end = strchrnul(s, '\n');
		const char *comment;

		snprintf(line, sizeof(line), "%.*s", (int)(end - s), s);
		s = *end ? end + 1 : end;
		at.line++;
		if (strcmp(line, kernel) == 0) {
			inside = true;
			continue;
		}
		if (!inside || (line[0] != '\t' && strncmp(line, "done ", 5)))
			continue;
		at.index++;
		comment = strstr(line, "// ");
		if (comment)
			read_marks(comment + 2, seed->name, at, m);
		if (line[0] != '\t')
			return;
	}
}

/* ---------------------------------------------------------- the object ---- */

/* Where the n-th instruction begins, from the kernel on; -1: not there. */
static int offset_of(const struct co_kernel *k, int index)
{
	struct isa_inst in;
	uint64_t at = 0;

	for (; index > 0; index--) {
		if (isa_decode(&target, k->code + at, k->code_bytes - at, &in))
			return -1;
		at += in.size_bytes;
	}
	return (int)at;
}

/* Put the replacement there, and s_nop where it is shorter. */
static bool patch(uint8_t *code, const char *text)
{
	const uint32_t nop = 0xbf800000;
	uint8_t bytes[ISA_MAX_SIZE_BYTES];
	struct isa_inst old, new;
	const char *why = isa_parse(&target, text, NULL, NULL, &new);
	int size;

	if (why || isa_decode(&target, code, ISA_MAX_SIZE_BYTES, &old)) {
		diag("'%s': %s", text, why ? why : "nothing to replace");
		return false;
	}
	size = isa_encode(&new, bytes);
	if (!size || size > old.size_bytes)
		return false;
	memcpy(code, bytes, (size_t)size);
	for (; size < old.size_bytes; size += 4)
		memcpy(code + size, &nop, 4);
	return true;
}

/* "TEXT at KERNEL+0xOFFSET (0x" of an instruction. */
static void name_place(const struct co_kernel *k, struct place at, char *out,
		       size_t size)
{
	int offset = offset_of(k, at.index);
	char text[ISA_TEXT_MAX];
	struct isa_inst in;

	if (offset < 0 || isa_decode(&target, k->code + offset,
				     k->code_bytes - (uint64_t)offset, &in)) {
		snprintf(out, size, "no instruction %d", at.index);
		return;
	}
	isa_print(&target, &in, text, sizeof(text));
	snprintf(out, size, "%s at %s+0x%x (0x", text, k->name, offset);
}

/* --------------------------------------------------------- the finding ---- */

static bool names_place(const char *line, const char *place, int number)
{
	const char *end = strchrnul(line, '\n');
	const char *found = strstr(line, place);
	char source[40];
	const char *in_source;

	snprintf(source, sizeof(source), ", seeds.s:%d)", number);
	in_source = strstr(line, source);
	return found && found < end && in_source && in_source < end;
}

/* One paragraph: everything that the seed says of it. */
static bool is_right(const char *text, const struct seed *seed,
		     const struct co_kernel *k, const struct marks *m)
{
	char head[120], place[ISA_TEXT_MAX + 80];
	const char *second = strchr(text, '\n'), *rest;

	snprintf(head, sizeof(head), "%s: kernel %s, %s%s", seed->rule,
		 seed->kernel, seed->where ? seed->where : "workgroup ",
		 seed->where ? "\n" : "");
	if (!second || strncmp(text, head, strlen(head)) != 0)
		return false;
	name_place(k, m->finding, place, sizeof(place));
	if (!names_place(second + 1, place, m->finding.line))
		return false;
	rest = strchr(second + 1, '\n');
	if (!rest || !strstr(rest, seed->text))
		return false;
	if (!m->partner.line)
		return true;
	name_place(k, m->partner, place, sizeof(place));
	for (; rest; rest = strchr(rest + 1, '\n'))
		if (names_place(rest + 1, place, m->partner.line))
			return true;
	return false;
}

static bool is_found(const char *err, const struct seed *seed,
		     const struct co_kernel *k, const struct marks *m)
{
	bool found = false;

	for (const char *s = err; *s && !found;) {
		const char *end = strchrnul(s, '\n');
		char *paragraph;

		while (*end && end[1] == ' ')
			end = strchrnul(end + 1, '\n');
		paragraph = strndup(s, (size_t)(end - s));
		found = is_right(paragraph, seed, k, m);
		free(paragraph);
		s = *end ? end + 1 : end;
	}
	return found;
}

/* ------------------------------------------------------------ the runs ---- */

static const struct shape *shape_of(const char *kernel)
{
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		if (strcmp(shapes[i].kernel, kernel) == 0)
			return &shapes[i];
	return NULL;
}

/* Exit status of t0-run, its stderr in *err. */
static int run(const char *object, const struct shape *s, struct buf *err)
{
	return check_run(object, s->kernel, s->options, s->memory, err);
}

static void test_right(const struct shape *s)
{
	struct buf err = { 0 };

	if (!is_i64(run(FOLDER "/seeds.co", s, &err), 0,
		    "%s is right: nothing is found", s->kernel))
		diag("%s", err.data);
	buf_fini(&err);
}

static void test_seed(const struct seed *seed, const char *source,
		      const struct buf *object)
{
	uint8_t *bytes = xmalloc(object->len);
	struct buf err = { 0 };
	struct err e = { 0 };
	const struct co_kernel *k;
	struct marks m;
	struct co co;
	char path[80];
	int offset;
	bool good;

	memcpy(bytes, object->data, object->len);
	read_source(source, seed, &m);
	if (!co_parse(&co, bytes, object->len, &e)) {
		ok(false, "%s: %s", seed->name, e.msg);
		free(bytes);
		return;
	}
	k = co_kernel_find(&co, seed->kernel);
	offset = k && m.change.line ? offset_of(k, m.change.index) : -1;
	snprintf(path, sizeof(path), "%s/seed.co", dir);
	good = ok(offset >= 0 && m.finding.line &&
			  patch(bytes + (k->code - bytes) + offset,
				m.replacement) &&
			  file_write_atomic(path, bytes, object->len, &e),
		  "%s: '%s'", seed->name, m.replacement);
	if (good) {
		good = is_i64(run(path, shape_of(seed->kernel), &err), 1,
			      "%s: exit status 1", seed->name);
		good &= ok(is_found(err.data, seed, k, &m),
			   "%s: %s at line %d%s", seed->name, seed->rule,
			   m.finding.line,
			   m.partner.line ? " with its partner" : "");
	}
	if (!good)
		diag("stderr: %s", err.data ? err.data : e.msg);
	buf_fini(&err);
	co_fini(&co);
	free(bytes);
}

int main(void)
{
	struct buf source = { 0 }, object = { 0 };
	struct err e = { 0 };
	char path[80];

	if (!getenv("T0_BUILD"))
		skip_all("T0_BUILD does not say where the tools are");
	if (!mkdtemp(dir) || !file_read(FOLDER "/seeds.s", 0, &source, &e) ||
	    !file_read(FOLDER "/seeds.co", 0, &object, &e)) {
		diag("%s", e.msg);
		return 1;
	}
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++)
		test_right(&shapes[i]);
	for (size_t i = 0; i < ARRAY_SIZE(seeds); i++)
		test_seed(&seeds[i], source.data, &object);
	snprintf(path, sizeof(path), "%s/seed.co", dir);
	unlink(path);
	rmdir(dir);
	buf_fini(&source);
	buf_fini(&object);
	return plan_done();
}
