/*
 * isa-llvm - our disassembly of random instructions beside llvm-mc 19's, and
 * which differences are meant, with their reasons.  Shared by the tests of
 * the generations.
 */
#ifndef T0_TESTS_ISA_LLVM_H
#define T0_TESTS_ISA_LLVM_H

#include <ctype.h>
#include <stdlib.h>
#include <unistd.h>

#include "isa/text/text.h"
#include "tests/isa/gen.h"
#include "tests/tap.h"

enum { TEXT = 320 };

struct sample {
	uint8_t code[ISA_MAX_SIZE_BYTES];
	const char *why;     /* our refusal */
	struct isa_inst in;
	int size;	     /* bytes that we took, all if we refuse */
	char ours[TEXT];
	char theirs[TEXT];   /* empty: refused */
	int n_theirs;	     /* instructions in `size` bytes */
};

/* ------------------------------------------------------------- oracle ---- */

/*
 * Every sample is one atomic line behind a line that holds a marker, an
 * instruction with the sample's number.
 */
static bool write_input(const char *path, enum isa_gen gen,
			const struct sample *s, int n)
{
	/* s_ttracedata_imm of either. */
	int top = gen < ISA_GFX11 ? 0xa8 : 0xbb;

	FILE *f = fopen(path, "w");

	if (!f)
		return false;
	for (int i = 0; i < n; i++) {
		fprintf(f, "0x%02x,0x%02x,0x%02x,0xbf\n[", i & 255,
			i >> 8 & 255, top);
		for (int k = 0; k < s[i].size; k++)
			fprintf(f, "%s0x%02x", k ? "," : "", s[i].code[k]);
		fputs("]\n", f);
	}
	return !fclose(f);
}

/* "s_ttracedata_imm 0x1f", the marker that is awaited next? */
static bool is_marker(const char *line, int next)
{
	static const char name[] = "s_ttracedata_imm 0x";

	return !strncmp(line, name, strlen(name)) &&
	       strtol(line + strlen(name), NULL, 16) == (next & 0xffff);
}

static bool read_answers(const char *path, struct sample *s, int n)
{
	FILE *f = fopen(path, "r");
	char line[1024];
	int at = -1;

	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		char *p = line + strspn(line, " \t");
		char *remark = strstr(p, "//");

		p[strcspn(p, "\n")] = 0;
		if (remark)
			*remark = 0;
		for (size_t k = strlen(p);
		     k && isspace((unsigned char)p[k - 1]);)
			p[--k] = 0;
		if (is_marker(p, at + 1)) {
			at++;
			continue;
		}
		if (at < 0 || at >= n || !*p)
			continue;
		if (!s[at].n_theirs++)
			snprintf(s[at].theirs, TEXT, "%.*s", TEXT - 1, p);
	}
	fclose(f);
	return at == n - 1;
}

/* "FILE:LINE:COLUMN: warning: invalid ..."; column 2 is the first byte. */
static bool read_refusals(const char *path, struct sample *s, int n)
{
	FILE *f = fopen(path, "r");
	char line[1024];

	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		const char *p = strstr(line, ": warning: invalid");
		int at, column;

		if (!p || sscanf(line, "%*[^:]:%d:%d", &at, &column) != 2)
			continue;
		at = (at - 2) / 2;
		if (at < 0 || at >= n)
			continue;
		if (column == 2)
			*s[at].theirs = 0;
		s[at].n_theirs++;
	}
	return !fclose(f);
}

static bool ask(const char *folder, const char *chip, int wave,
		struct sample *s, int n)
{
	char in[256], out[256], err[256];
	struct buf cmd = { 0 };
	enum isa_gen gen;
	bool good;

	if (!isa_chip_parse(chip, &gen))
		return false;
	snprintf(in, sizeof(in), "%s/in", folder);
	snprintf(out, sizeof(out), "%s/out", folder);
	snprintf(err, sizeof(err), "%s/err", folder);
	buf_printf(&cmd,
		   "timeout 60 llvm-mc-19 --disassemble "
		   "-triple=amdgcn-amd-amdhsa -mcpu=%s -mattr=%s %s "
		   ">%s 2>%s", chip,
		   wave == 64 ? "+wavefrontsize64,-wavefrontsize32" :
				"+wavefrontsize32,-wavefrontsize64",
		   in, out, err);
	good = write_input(in, gen, s, n) && system(cmd.data) >= 0 &&
	       read_answers(out, s, n) && read_refusals(err, s, n);
	buf_fini(&cmd);
	unlink(in);
	unlink(out);
	unlink(err);
	return good;
}

/* -------------------------------------------------------------- ours ---- */

static void fill(struct isa_gen_state *g, int wave, struct sample *s, int n)
{
	struct isa_target t = { .gen = g->gen, .wave = wave };

	memset(s, 0, sizeof(*s) * (size_t)n);
	for (int i = 0; i < n; i++) {
		gen_inst(g, s[i].code);
		s[i].why = isa_decode(&t, s[i].code, ISA_MAX_SIZE_BYTES,
				      &s[i].in);
		s[i].size = s[i].why ? ISA_MAX_SIZE_BYTES :
				       s[i].in.size_bytes;
		if (!s[i].why)
			isa_print(&t, &s[i].in, s[i].ours, TEXT);
	}
}

/* ------------------------------------------------------------- judge ---- */

/* Differences that are meant.  All must occur, or the list is out of date. */
enum reason {
	HALF, OPSEL, SEXT, EXEC, UNKNOWN, LDS_DIRECT, SPECIAL, SOFFSET,
	MESSAGE, IMAGE, UNUSED, N_REASONS
};

static const char *const reasons[N_REASONS] = {
	[UNUSED] = "the chip does not look at sources that a VOP3 row does not "
		   "have, and LLVM 21 writes 128 there; LLVM 19 refuses all "
		   "but 0",
	[HALF] = "bit 7 of a 16-bit operand's VGPR in VOP1, VOP2 and VOPC "
		 "selects the high half (RDNA3 ISA 4.7): v1.h.  LLVM 19 marks "
		 "it as an invalid register or refuses it",
	[OPSEL] = "op_sel selects halves in every 16-bit VOP3 instruction "
		  "(RDNA3 ISA 7.2.3); LLVM 19 drops it in most",
	[SEXT] = "neg on an integer source has no meaning; LLVM 19 prints it "
		 "as sext()",
	[EXEC] = "EXEC as carry-in or scratch address is a scalar register "
		 "like others; LLVM 19 marks it as invalid",
	[UNKNOWN] = "instructions of the RDNA3 ISA that LLVM 19 lacks (see "
		    "isa/tables/errata.def)",
	[LDS_DIRECT] = "source 254 is reserved on RDNA3 (its LDS-direct is an "
		       "instruction); LLVM 19 disassembles what it does not "
		       "assemble",
	[SPECIAL] = "literals, src_scc, src_shared_base and the like where "
		    "only a VGPR, a scalar register or a matrix can stand; "
		    "LLVM 19 "
		    "disassembles what it does not assemble",
	[SOFFSET] = "buffer instructions have no literal (RDNA3 ISA 9.1.2); "
		    "LLVM 19 disassembles what it does not assemble",
	[MESSAGE] = "LLVM 19 names a message although bits beyond its number "
		    "are set, which the name cannot say",
	[IMAGE] = "LLVM 19 prints the narrowest form of an image instruction "
		  "where its tables lack the width that the fields ask for",
};

/* Replace every "from...to" by nothing; says whether there was one. */
static bool drop(char *s, const char *from, const char *to)
{
	bool found = false;

	for (char *p = s; (p = strstr(p, from));) {
		char *end = strstr(p + strlen(from), to);

		if (!end)
			break;
		end += strlen(to);
		memmove(p, end, strlen(end) + 1);
		found = true;
	}
	return found;
}

/* "v5.h" as LLVM 19 says it: "v133". */
static bool merge_halves(char *s)
{
	char out[TEXT + 64];
	size_t n = 0;
	bool found = false;

	for (const char *p = s; *p && n < sizeof(out) - 8;) {
		char *end;
		long reg = p[0] == 'v' ? strtol(p + 1, &end, 10) : -1;

		if (p[0] == 'v' && end > p + 1 && !strncmp(end, ".h", 2)) {
			n += (size_t)snprintf(out + n, 8, "v%ld", reg + 128);
			p = end + 2;
			found = true;
		} else {
			out[n++] = *p++;
		}
	}
	out[n] = 0;
	snprintf(s, TEXT, "%.*s", TEXT - 1, out);
	return found;
}

/* Vector registers become "V"; an address list of any length becomes one. */
static void blank_vgprs(char *s)
{
	char *out = s;
	int depth = 0;

	for (const char *p = s; *p;) {
		depth += *p == '[' && (depth || p[1] == 'v');
		if (depth) {
			depth -= *p++ == ']';
			continue;
		}
		if (p[0] != 'v' ||
		    !(p[1] == '[' || isdigit((unsigned char)p[1]))) {
			*out++ = *p++;
			continue;
		}
		*out++ = 'V';
		p += p[1] == '[' ? strcspn(p, "]") + 1 : strcspn(p, " ,");
	}
	*out = 0;
}

static bool is_unknown_to_llvm(const struct sample *s)
{
	switch (s->in.op) {
	case ISA_s_endpgm_ordered_ps_done:
	case ISA_v_swap_b16:
		return true;
	case ISA_v_mov_b16:
		return s->in.fmt == ISA_FMT_VOP3;
	}
	return s->in.op == ISA_v_dot2acc_f32_bf16 ||
	       s->in.op_y == ISA_v_dot2acc_f32_bf16;
}

static bool is_e32(const struct sample *s)
{
	return s->in.fmt == ISA_FMT_VOP1 || s->in.fmt == ISA_FMT_VOP2 ||
	       s->in.fmt == ISA_FMT_VOPC;
}

/* We refuse, LLVM 19 does not: is it meant? */
static bool refusal_meant(const struct sample *s, bool *seen)
{
	if (strstr(s->theirs, "/*Invalid"))
		return true; /* it does not mean that it is valid */
	if (strstr(s->theirs, "src_lds_direct"))
		return seen[LDS_DIRECT] = true;
	if ((s->in.fmt == ISA_FMT_MUBUF || s->in.fmt == ISA_FMT_MTBUF) &&
	    s->in.f[ISA_F_SOFFSET] == ISA_R_LITERAL)
		return seen[SOFFSET] = true;
	if (strstr(s->theirs, "src_") || strstr(s->theirs, "null") ||
	    s->in.f[ISA_F_SRC0] == ISA_R_LITERAL ||
	    s->in.f[ISA_F_SRC1] == ISA_R_LITERAL ||
	    s->in.f[ISA_F_SRC2] == ISA_R_LITERAL)
		return seen[SPECIAL] = true;
	if (s->in.fmt == ISA_FMT_MIMG && strstr(s->why, "beyond v255"))
		return seen[IMAGE] = true;
	return false;
}

/*
 * LLVM 19 does not mark literals that it would assemble as something else, as
 * later ones do: lit(1) is 1, and of lit(0x12340001) it shows 16 bits.  Moves
 * both past the operand.
 */
static bool same_literal(const char **ours, const char **theirs)
{
	const char *end = strchr(*ours, ')');
	size_t n = strspn(*theirs, "-.0123456789abcdefx");
	bool hex = !strncmp(*ours, "0x", 2);
	bool same = (size_t)(end - *ours) == n && !strncmp(*ours, *theirs, n);

	same |= hex && memchr(*theirs, '.', n);
	same |= hex && (uint16_t)strtoull(*ours, NULL, 0) ==
			       (uint16_t)strtoll(*theirs, NULL, 0);
	*ours = end + 1;
	*theirs += n;
	return same;
}

static bool same_but_marks(const char *ours, const char *theirs)
{
	while (*ours) {
		if (!strncmp(ours, "lit(", 4)) {
			ours += 4;
			if (!same_literal(&ours, &theirs))
				return false;
		} else if (*ours++ != *theirs++) {
			return false;
		}
	}
	return !*theirs;
}

/* Texts differ: do they without what is meant? */
static bool text_meant(const struct sample *s, bool *seen)
{
	const struct isa_op_info *op = isa_op_info((enum isa_op)s->in.op);
	bool mine[N_REASONS] = { false };
	char ours[TEXT], theirs[TEXT];

	memcpy(ours, s->ours, TEXT);
	memcpy(theirs, s->theirs, TEXT);
	mine[EXEC] = drop(theirs, "/*Invalid register, operand has 'SReg_1_X",
			  "*/") ||
		     drop(theirs, "/*Invalid register, operand has 'SReg_32_X",
			  "*/");
	if (is_e32(s)) {
		drop(theirs, "/*Invalid register, operand has 'V", "*/");
		mine[HALF] = merge_halves(ours);
		merge_halves(theirs);
	}
	if (s->in.fmt == ISA_FMT_VOP3 && !(op->flags & ISA_OPSEL))
		mine[OPSEL] = drop(ours, " op_sel:", "]");
	for (char *p; (p = strstr(theirs, "sext("));) {
		mine[SEXT] = true;
		drop(p, ")", "");
		memmove(p, p + 5, strlen(p + 5) + 1);
	}
	if (s->in.op == ISA_s_sendmsg || s->in.op == ISA_s_sendmsghalt) {
		mine[MESSAGE] = s->in.f[ISA_F_SIMM16] &
				(s->in.gen < ISA_GFX11 ? ~0x37fu : ~0xffu);
		return seen[MESSAGE] = mine[MESSAGE];
	}
	if (s->in.fmt == ISA_FMT_MIMG) {
		mine[IMAGE] = true;
		blank_vgprs(ours);
		blank_vgprs(theirs);
	}
	if (!same_but_marks(ours, theirs))
		return false;
	for (int i = 0; i < N_REASONS; i++)
		seen[i] |= mine[i];
	return true;
}

static bool agrees(const struct sample *s)
{
	return s->why ? !*s->theirs :
			s->n_theirs == 1 && same_but_marks(s->ours, s->theirs);
}

static bool is_meant(const struct sample *s, bool *seen)
{
	if (!s->why && s->in.has_unused && !*s->theirs)
		return seen[UNUSED] = true;
	if (s->why)
		return refusal_meant(s, seen);
	if (*s->theirs)
		return s->n_theirs == 1 && text_meant(s, seen);
	if (is_unknown_to_llvm(s))
		return seen[UNKNOWN] = true;
	if (is_e32(s) && strstr(s->ours, ".h"))
		return seen[HALF] = true;
	/* The wide form is refused before the narrow one is thought of. */
	if (s->in.fmt == ISA_FMT_MIMG && s->in.f[ISA_F_VDATA] > 250)
		return seen[IMAGE] = true;
	return false;
}

static inline bool is_promoted(const struct isa_inst *in)
{
	return in->fmt != isa_op_info((enum isa_op)in->op)->fmt;
}

static void show(const struct sample *s)
{
	struct buf hex = { 0 };

	for (int i = 0; i < (s->why ? 12 : s->size); i++)
		buf_printf(&hex, "%02x", s->code[i]);
	diag("%s: %s%s; llvm-mc-19: %s%s", hex.data, s->why ? "refused, " : "",
	     s->why ? s->why : s->ours, *s->theirs ? s->theirs : "refused",
	     s->n_theirs > 1 && !s->why ? " (and more)" : "");
	buf_fini(&hex);
}

#endif
