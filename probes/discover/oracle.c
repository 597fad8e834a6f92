/*
 * probes/discover/oracle.c - what an outside disassembler says about the
 * slots.
 *
 * All words go through one process.  Each item stands on a line of its own,
 * which llvm-mc takes as one unit, behind a marker instruction that carries
 * its number; whether the first instruction of an item is refused shows in the
 * column of the warning, since what follows it may be refused, too.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/vec.h"
#include "probes/discover/discover.h"

#define MARKER	     0xbf800000u /* SOPP: s_ttracedata_imm N */
#define MARKER_TEXT  "s_ttracedata_imm "
#define MARKER_MAX   0x10000
#define LITERAL	     0xb0280001u /* where an instruction wants another dword */
#define FIRST_COLUMN 2
#define OUTPUT_MAX   (64u << 20)

struct item {
	int slot, n_words;
	uint32_t word[PROBE_WORDS_MAX];
};
struct items {
	struct item *v;
	int n, cap;
};

static void add_item(struct items *l, int slot, int n_words,
		     const uint32_t *word)
{
	struct item *it;

	vec_reserve(l, 1);
	it = &l->v[l->n++];
	it->slot = slot;
	it->n_words = n_words;
	memcpy(it->word, word, sizeof(it->word));
}

static void put_word(struct buf *b, uint32_t w, const char *end)
{
	buf_printf(b, "0x%02x,0x%02x,0x%02x,0x%02x%s", w & 0xff, w >> 8 & 0xff,
		   w >> 16 & 0xff, w >> 24, end);
}

/* Line 2k+1 is the marker of item k, line 2k+2 the item. */
static void write_items(enum isa_gen gen, const struct item *v, int n,
			struct buf *b)
{
	const int opcode = isa_opcode(gen, ISA_s_ttracedata_imm, false);
	const uint32_t marker = MARKER | (uint32_t)opcode << 16;

	for (int k = 0; k < n; k++) {
		buf_addc(b, '[');
		put_word(b, marker | (uint32_t)k, "]\n[");
		for (int i = 0; i < v[k].n_words; i++)
			put_word(b, v[k].word[i], ",");
		put_word(b, LITERAL, "]\n");
	}
}

/* --------------------------------------------------------- the process -- */

/*
 * 127 from the child: no such command.  Where a folder of PATH may not be
 * searched, the error is not ENOENT.
 */
static int run_tool(const char *tool, const char *chip, const char *in,
		    const char *out, const char *errors)
{
	char cpu[32];
	int status = -1;
	pid_t pid;

	snprintf(cpu, sizeof(cpu), "-mcpu=%s", chip);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		int o = open(out, O_WRONLY | O_TRUNC);
		int e = open(errors, O_WRONLY | O_TRUNC);

		dup2(o, 1);
		dup2(e, 2);
		execlp(tool, tool, "--disassemble", "-triple=amdgcn-amd-amdhsa",
		       cpu, in, (char *)NULL);
		_exit(errno == ENOENT ||
				      (errno == EACCES && !strchr(tool, '/')) ?
			      127 :
			      126);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid < 0 ? -1 : status;
}

/* --------------------------------------------------------- the answers -- */

/* "\tv_dual_a v0 :: v_dual_b v1": the first word, or the one after "::". */
static const char *parse_mnemonic(const char *line, bool second,
				  struct arena *mem)
{
	const char *at = second ? strstr(line, ":: ") : NULL;
	size_t n;

	at = at ? at + 3 : line;
	while (isspace((unsigned char)*at))
		at++;
	n = strcspn(at, " \t\n");
	return arena_printf(mem, "%.*s", (int)n, at);
}

static void read_errors(char *text, bool *refused, int n)
{
	char *save = NULL;

	for (char *l = strtok_r(text, "\n", &save); l;
	     l = strtok_r(NULL, "\n", &save)) {
		const char *w = strstr(l, ": warning: invalid instruction");
		const char *c = w;
		int line, column;

		if (!w)
			continue;
		for (int colons = 0; c > l && colons < 2;)
			colons += *--c == ':';
		if (sscanf(c, ":%d:%d", &line, &column) == 2 &&
		    column == FIRST_COLUMN && line % 2 == 0 && line / 2 <= n)
			refused[line / 2 - 1] = true;
	}
}

/*
 * Markers come back in order, each followed by its item unless that was
 * refused, then by whatever its remaining words are.  Returns how many came.
 */
static int read_output(char *text, const struct probe_slots *slots,
		       const struct item *v, int n, const bool *refused,
		       const char **names, struct arena *mem)
{
	char *save = NULL;
	bool item = false;
	int k = -1;

	for (char *l = strtok_r(text, "\n", &save); l;
	     l = strtok_r(NULL, "\n", &save)) {
		const char *m = strstr(l, MARKER_TEXT);

		if (item) {
			const int i = v[k].slot;
			const bool y = !strcmp(slots->v[i].encoding, "VOPDY");

			if (!*names[i])
				names[i] = parse_mnemonic(l, y, mem);
			item = false;
		} else if (m && k + 1 < n &&
			   strtol(m + strlen(MARKER_TEXT), NULL, 0) == k + 1) {
			k++;
			item = !refused[k];
		}
	}
	return k + 1;
}

/* An exit status of 1 says that some items were refused. */
static bool has_answered(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) <= 1;
}

static bool is_absent(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) == 127;
}

static bool ask_tool(const struct probe_slots *slots, const char *tool,
		     const char *chip, const struct item *v, int n,
		     const char **names, struct arena *mem, bool *asked,
		     struct err *e)
{
	struct buf path[3] = { 0 };
	struct buf in = { 0 }, out = { 0 }, errors = { 0 };
	bool *refused = xcalloc((size_t)n + 1, sizeof(*refused));
	bool good = false;
	int status;

	write_items(slots->v[0].gen, v, n, &in);
	for (int i = 0; i < 3; i++) {
		const int fd = scratch_file(&path[i], "oracle", e);

		if (fd < 0)
			goto out;
		close(fd);
	}
	if (!file_write_atomic(path[0].data, in.data, in.len, e))
		goto out;
	status = run_tool(tool, chip, path[0].data, path[1].data, path[2].data);
	*asked = !is_absent(status);
	good = !*asked || (file_read(path[1].data, OUTPUT_MAX, &out, e) &&
			   file_read(path[2].data, OUTPUT_MAX, &errors, e));
	if (!good || !*asked)
		goto out;
	if (errors.len)
		read_errors(errors.data, refused, n);
	good = has_answered(status) && out.len &&
	       read_output(out.data, slots, v, n, refused, names, mem) == n;
	if (!good)
		err_set(e, ERR_IO,
			"%s gave no answer to %d items (status "
			"0x%x); --oracle=none goes without",
			tool, n, (unsigned)status);
out:
	for (int i = 0; i < 3; i++) {
		if (path[i].len)
			unlink(path[i].data);
		buf_fini(&path[i]);
	}
	free(refused);
	buf_fini(&in);
	buf_fini(&out);
	buf_fini(&errors);
	return good;
}

static bool ask_all(const struct probe_slots *slots, const char *tool,
		    const char *chip, const struct items *l, const char **names,
		    struct arena *mem, bool *asked, struct err *e)
{
	*asked = true;
	for (int i = 0; i < l->n && *asked; i += MARKER_MAX) {
		const int n = l->n - i < MARKER_MAX ? l->n - i : MARKER_MAX;

		if (!ask_tool(slots, tool, chip, l->v + i, n, names, mem, asked,
			      e))
			return false;
	}
	return true;
}

bool probe_oracle(const struct probe_slots *slots, const char *tool,
		  const char *chip, const char **names, struct arena *mem,
		  bool *asked, struct err *e)
{
	struct items l = { 0 };
	uint32_t word[PROBE_WORDS_MAX];
	bool good;

	for (int i = 0; i < slots->n; i++) {
		names[i] = "";
		add_item(&l, i, probe_slot_variant(&slots->v[i], 0, word),
			 word);
	}
	good = ask_all(slots, tool, chip, &l, names, mem, asked, e);
	/* Where it refused, other operands. */
	l.n = 0;
	for (int i = 0; i < slots->n && good && *asked; i++)
		for (int k = 1, n;
		     !*names[i] &&
		     (n = probe_slot_variant(&slots->v[i], k, word));
		     k++)
			add_item(&l, i, n, word);
	if (good && *asked)
		good = ask_all(slots, tool, chip, &l, names, mem, asked, e);
	free(l.v);
	return good;
}
