/*
 * Checked mode: every fault that was put into a kernel of tests/data/check is
 * found, at the right instruction, with the right partner.
 *
 * The sources mark what has to be named: a comment "! KERNEL" stands at the
 * instruction of the finding, "? KERNEL" at the one that it conflicts with.
 * The objects have line tables, so a finding names the marked line.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/soft/check-run.h"
#include "tests/tap.h"

struct fault {
	const char *file, *kernel;
	const char *rule; /* NULL: nothing may be found */
	const char *text; /* also in the finding */
	const char *memory, *shape;
};

#define WAVE "--block 32"
#define TWO "--block 64"			/* waves */
#define GROUPS "--block 32 --grid 64"
#define TURNS "--block 32 --grid 256 --deadline 50"
#define SOME "buf:128:u32=iota"
#define ZERO "buf:128:u32"
#define SMALL "buf:100:u8=1"

static const struct fault faults[] = {
	{ "hazard", "vmem_read", "hazard", "reads v1", SOME, WAVE },
	{ "hazard", "vmem_count", "hazard", "reads v2", SOME, WAVE },
	{ "hazard", "vmem_overwrite", "hazard", "writes v3", SOME, WAVE },
	{ "hazard", "smem_address", "hazard", "reads s2", SOME, WAVE },
	{ "hazard", "smem_order", "hazard", "lgkmcnt", SOME, WAVE },
	{ "hazard", "lds_read", "hazard", "lgkmcnt", SOME, WAVE },
	{ "hazard", "permute_read", "hazard", "reads v1", SOME, WAVE },
	{ "hazard", "atomic_read", "hazard", "vmcnt", SOME, WAVE },
	{ "hazard", "clean", NULL, NULL, SOME, WAVE },
	{ "hazard", "half_clean", NULL, NULL, SOME, WAVE },
	{ "hazard", "half_read", "hazard", "reads v1", SOME, WAVE },
	{ "hazard", "half_written", "hazard", "writes v1", SOME, WAVE },
	{ "race", "lds_no_barrier", "race", "of LDS", ZERO, TWO },
	{ "race", "lds_no_wait", "race", "of LDS", ZERO, TWO },
	{ "race", "lds_write_write", "race", "write at 0x0", ZERO, TWO },
	{ "race", "memory_no_wait", "race", "'argument 0'", ZERO, TWO },
	{ "race", "groups", "race", "by workgroup 0,0,0", ZERO, GROUPS },
	{ "race", "groups_read", "race", "by workgroup 0,0,0", ZERO, GROUPS },
	{ "race", "atomic_plain", "race", "atomic access", ZERO, GROUPS },
	{ "race", "no_invalidate", "race", "128 bytes into", ZERO, GROUPS },
	{ "race", "same_bytes", NULL, NULL, ZERO, TWO },
	{ "race", "other_bytes", "race", "of LDS", ZERO, TWO },
	{ "race", "block_then_part", "race", "of LDS", ZERO, TWO },
	{ "race", "part_then_block", "race", "of LDS", ZERO, TWO },
	{ "race", "parts_apart", NULL, NULL, ZERO, TWO },
	{ "race", "read_again", "race", "of LDS", ZERO, TWO },
	{ "race", "exchange_loop", NULL, NULL, ZERO, GROUPS },
	{ "race", "exchange_elsewhere", "race", "atomic access", ZERO, GROUPS },
	{ "race", "clean", NULL, NULL, ZERO, "--block 64 --grid 128" },
	{ "race", "chain", NULL, NULL, ZERO, TURNS },
	{ "race", "chain_no_wait", "race", "not ordered", ZERO, TURNS },
	{ "init", "vgpr_stored", "uninitialised", "v2", SOME, WAVE },
	{ "init", "lanes_stored", "uninitialised", "lane 16", SOME, WAVE },
	{ "init", "vgpr_address", "uninitialised", "v4", SOME, WAVE },
	{ "init", "sgpr_branch", "uninitialised", "the branch", SOME, WAVE },
	{ "init", "exec_mask", "uninitialised", "EXEC", SOME, WAVE },
	{ "init", "lds_stored", "uninitialised", "0x0 of LDS", SOME, WAVE },
	{ "init", "scratch_stored", "uninitialised", "0x8 of scratch", SOME,
	  WAVE },
	{ "init", "memory_address", "uninitialised", "the address",
	  "buf:128:u32=none", WAVE },
	{ "init", "clean", NULL, NULL, SOME, WAVE },
	{ "bounds", "past_end", "bounds", "lane 25", SMALL, WAVE },
	{ "bounds", "across_end", "bounds", "96 bytes into", SMALL, WAVE },
	{ "bounds", "scalar_past_end", "bounds", "128 bytes into", SMALL,
	  WAVE },
	{ "bounds", "lds_past_end", "bounds", "lane 16", SMALL, WAVE },
	{ "bounds", "scratch_past_end", "bounds", "20 bytes per lane", SMALL,
	  WAVE },
	{ "bounds", "odd_load", "alignment", "lane 1", SMALL, WAVE },
	{ "bounds", "odd_store", "alignment", "multiple of 2", SMALL, WAVE },
	{ "bounds", "odd_lds", "alignment", "0x2 of LDS", SMALL, WAVE },
	{ "bounds", "early_end", "barrier", "wave 1 ended", SMALL, TWO },
	{ "bounds", "second_barrier", "barrier", "wave 0 ended", SMALL, TWO },
	{ "bounds", "loop_barrier", "barrier", "wave 0 ended", SMALL, TWO },
	{ "bounds", "wmma_half", "wmma", "EXEC is 0xffff:", SMALL, WAVE },
	{ "bounds", "wmma_branch", "wmma", "EXEC is 0xfffffff8", SMALL, WAVE },
	{ "bounds", "wmma_one", "wmma", "EXEC is 0x7fffffff", SMALL, WAVE },
	{ "bounds", "clean", NULL, NULL, SMALL, TWO },
};

/* ---- the marks ----------------------------------------------------------- */

/* The line with "MARK KERNEL" behind "//", 0 if there is none. */
static int marked_line(const char *source, char mark, const char *kernel)
{
	char wanted[80];
	size_t len;
	int line = 1;

	len = (size_t)snprintf(wanted, sizeof(wanted), "// %c %s", mark,
			       kernel);
	for (const char *s = source; *s; s++) {
		line += *s == '\n';
		if (!strncmp(s, wanted, len) && (s[len] == '\n' || !s[len]))
			return line;
	}
	return 0;
}

static bool names_line(const char *text, const char *file, int line)
{
	char place[80];

	snprintf(place, sizeof(place), ", %s.s:%d)", file, line);
	return strstr(text, place);
}

/* ---- the findings -------------------------------------------------------- */

/*
 * The paragraph of a finding: from the line that begins with "RULE: kernel K,"
 * to the next that is not indented.  NULL: no more.
 */
static char *finding(const char **at, const char *rule, const char *kernel)
{
	char head[80];
	const char *begin, *end;

	snprintf(head, sizeof(head), "%s: kernel %s,", rule, kernel);
	begin = strstr(*at, head);
	if (!begin)
		return NULL;
	end = strchr(begin, '\n');
	while (end && end[1] == ' ')
		end = strchr(end + 1, '\n');
	if (!end)
		end = begin + strlen(begin);
	*at = end;
	return strndup(begin, (size_t)(end - begin));
}

/* Is there a finding whose second line names the line, and the partner's? */
static bool is_found(const char *err, const struct fault *f, int line,
		     int partner)
{
	bool found = false;
	char *text;

	while (!found && (text = finding(&err, f->rule, f->kernel))) {
		char *first = strchr(text, '\n');
		char *rest = first ? strchr(first + 1, '\n') : NULL;

		if (rest) {
			found = (!partner || names_line(rest, f->file,
							partner)) &&
				strstr(text, f->text);
			*rest = '\0';
			found = found && names_line(first, f->file, line);
		}
		free(text);
	}
	return found;
}

static void test(const struct fault *f, const char *source)
{
	const int line = marked_line(source, '!', f->kernel);
	const int partner = marked_line(source, '?', f->kernel);
	struct buf err = { 0 };
	char object[128];
	bool good;

	snprintf(object, sizeof(object), FOLDER "/%s.co", f->file);
	const int status =
		check_run(object, f->kernel, f->shape, f->memory, &err);

	if (!f->rule) {
		good = ok(status == 0, "%s: nothing is found in %s", f->file,
			  f->kernel);
	} else {
		good = ok(line > 0, "%s marks its fault", f->kernel);
		good &= is_i64(status, 1, "%s ends with exit status 1",
			       f->kernel);
		good &= ok(is_found(err.data, f, line, partner),
			   "%s: %s at line %d%s", f->kernel, f->rule, line,
			   partner ? " with its partner" : "");
	}
	if (!good)
		diag("stderr: %s", err.data);
	buf_fini(&err);
}

int main(void)
{
	if (!getenv("T0_BUILD"))
		skip_all("T0_BUILD does not say where the tools are");
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++) {
		struct buf source = { 0 };
		struct err e = { 0 };
		char path[80];

		snprintf(path, sizeof(path), FOLDER "/%s.s", faults[i].file);
		if (!file_read(path, 0, &source, &e)) {
			diag("%s", e.msg);
			return 1;
		}
		test(&faults[i], source.data);
		buf_fini(&source);
	}
	return plan_done();
}
