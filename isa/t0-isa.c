/*
 * t0-isa - disassemble gfx11 machine code and explain instructions.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "isa/cmd.h"
#include "isa/co.h"
#include "isa/isa.h"
#include "isa/verify.h"

#define TOOL "t0-isa"

struct options {
	const char *chip, *kernel, *output;
	int wave; /* 0: what the kernel's descriptor says, else 32 */
	int version; /* of code objects to write, 0: what the file says */
	bool hex, raw, lines, json, csv;
	struct cli_list allow; /* rules that verify does not report */
	struct isa_target target;
	FILE *out;
};

/* ---------------------------------------------------------------- dis ---- */

static int hex_digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = tolower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*
 * Hex text to bytes in memory order: pairs of digits, with optional "0x",
 * commas, brackets and white space between bytes.
 */
static bool parse_hex(const char *s, size_t len, struct buf *out,
		      struct err *e)
{
	for (size_t i = 0; i < len;) {
		int hi, lo;

		if (isspace((unsigned char)s[i]) || strchr(",[]", s[i])) {
			i++;
			continue;
		}
		if (s[i] == '0' && i + 1 < len && (s[i + 1] | 32) == 'x') {
			i += 2;
			continue;
		}
		hi = hex_digit((unsigned char)s[i]);
		lo = i + 1 < len ? hex_digit((unsigned char)s[i + 1]) : -1;
		if (hi < 0 || lo < 0)
			return err_set(e, ERR_INPUT,
				       "hex input, character %zu: got '%.*s', "
				       "wanted two hex digits per byte",
				       i + 1, len - i < 8 ? (int)(len - i) : 8,
				       s + i);
		buf_addc(out, hi << 4 | lo);
		i += 2;
	}
	return true;
}

static char *add_hex(char *p, uint64_t v, int digits)
{
	for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
		*p++ = "0123456789abcdef"[v >> shift & 15];
	return p;
}

static char *add_bytes(char *p, const uint8_t *code, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p = add_hex(p, code[i], 2);
	return p;
}

/* "<tab>text, padded // address: bytes". */
static void print_line(FILE *out, const char *text, size_t len, uint64_t addr,
		       const uint8_t *code, size_t n)
{
	enum { COLUMN = 58 };
	char line[ISA_TEXT_MAX + 2 * ISA_MAX_SIZE_BYTES + 40], *p = line;

	*p++ = '\t';
	memcpy(p, text, len);
	p += len;
	if (len < COLUMN) {
		memset(p, ' ', COLUMN - len);
		p += COLUMN - len;
	}
	memcpy(p, " // ", 4);
	p = add_hex(p + 4, addr, 12);
	*p++ = ':';
	*p++ = ' ';
	p = add_bytes(p, code, n);
	*p++ = '\n';
	fwrite_unlocked(line, 1, (size_t)(p - line), out);
}

static void add_row(struct table *table, const char *kernel, uint64_t addr,
		    const uint8_t *code, size_t n, const char *text)
{
	char hex[2 * ISA_MAX_SIZE_BYTES + 1];

	*add_bytes(hex, code, n) = 0;
	table_row(table);
	if (kernel)
		table_cell(table, 0, "%s", kernel);
	table_cell(table, 1, "%llu", (unsigned long long)addr);
	table_cell(table, 2, "%s", hex);
	table_cell(table, 3, "%s", text);
}

/* One instruction: its text, or ".long" and the reason; its size in bytes. */
static size_t one(const struct options *o, const struct isa_target *t,
		  const uint8_t *code, size_t size, uint64_t addr,
		  struct table *table, const char *kernel)
{
	char text[ISA_TEXT_MAX];
	struct isa_inst in;
	const char *why = isa_decode(t, code, size, &in);
	size_t n = why ? (size < 4 ? size : 4) : in.size_bytes;
	int len;

	if (!why) {
		len = isa_print(t, &in, text, sizeof(text));
	} else if (n == 4) {
		uint32_t w;

		memcpy(&w, code, 4);
		len = snprintf(text, sizeof(text), ".long 0x%08x // %s", w,
			       why);
	} else {
		len = snprintf(text, sizeof(text), ".byte // %s", why);
	}
	if (o->json || o->csv)
		add_row(table, kernel, addr, code, n, text);
	else
		print_line(o->out, text, (size_t)len, addr, code, n);
	return n;
}

static void dis_range(const struct options *o, const uint8_t *code,
		      size_t size, uint64_t addr, int wave,
		      struct table *table, const char *kernel)
{
	struct isa_target t = o->target;

	t.wave = wave;
	for (size_t at = 0; at < size;)
		at += one(o, &t, code + at, size - at, addr + at, table,
			  kernel);
}

static int wave_of(const struct options *o, const struct co_kernel *k)
{
	return o->wave ? o->wave : co_descriptor_wave_size(&k->desc);
}

static bool dis_object(const struct options *o, const struct buf *file,
		       struct table *table, struct err *e)
{
	const struct co_kernel *only = NULL;
	struct options mine = *o;
	struct co co;
	const void *bytes;
	size_t len;
	bool ok = true;

	if (!co_unbundle(file->data, file->len, o->chip ? o->chip : "gfx1100",
			 &bytes, &len, e) ||
	    !co_parse(&co, bytes, len, e))
		return false;
	if (!o->chip && !isa_chip_parse(co.chip, &mine.target.gen))
		ok = err_set(e, ERR_UNSUPPORTED,
			     "the object is for %s, which T0 does not know; "
			     "--chip NAME reads it as another",
			     co.chip);
	if (ok && o->kernel) {
		only = co_kernel_require(&co, o->kernel, e);
		ok = only != NULL;
	}
	for (uint32_t i = 0; ok && i < co.n_kernels; i++) {
		const struct co_kernel *k = &co.kernels[i];

		if (only && only != k)
			continue;
		if (!o->json && !o->csv)
			fprintf(o->out, "%s%s: // %s, wave%d\n", i ? "\n" : "",
				k->name, co.chip, wave_of(o, k));
		dis_range(&mine, k->code, k->code_bytes, k->entry_vaddr,
			  wave_of(o, k), table, k->name);
	}
	co_fini(&co);
	return ok;
}

/* --lines: an answer for each line, errors included; always carries on. */
static void dis_lines(const struct options *o, const struct buf *file)
{
	const char *p = file->data, *end = p + file->len;
	struct buf bytes = { 0 };

	flockfile(o->out);
	while (p < end) {
		const char *nl = memchr(p, '\n', end - p);
		size_t len = (nl ? nl : end) - p;
		struct err e = { 0 };
		struct isa_inst in;
		char text[ISA_TEXT_MAX];
		const char *why;

		buf_reset(&bytes);
		if (!parse_hex(p, len, &bytes, &e)) {
			fprintf(o->out, "error: %s\n", e.msg);
		} else {
			why = isa_decode(&o->target, bytes.data, bytes.len,
					 &in);
			if (!why && in.size_bytes != bytes.len)
				why = "bytes left over";
			if (!why)
				isa_print(&o->target, &in, text, sizeof(text));
			if (why)
				fputs_unlocked("error: ", o->out);
			fputs_unlocked(why ? why : text, o->out);
			putc_unlocked('\n', o->out);
		}
		p += len + 1;
	}
	funlockfile(o->out);
	buf_fini(&bytes);
}

static bool dis_file(const struct options *o, const char *path,
		     struct table *table, struct err *e)
{
	struct buf file = { 0 }, bytes = { 0 };
	bool ok = file_read(path, 0, &file, e);

	if (!ok)
		return false;
	if (o->lines) {
		dis_lines(o, &file);
	} else if (o->hex) {
		ok = parse_hex(file.data, file.len, &bytes, e);
		if (ok)
			dis_range(o, (uint8_t *)bytes.data, bytes.len, 0,
				  o->target.wave, table, NULL);
	} else if (o->raw) {
		dis_range(o, (uint8_t *)file.data, file.len, 0, o->target.wave,
			  table, NULL);
	} else {
		ok = dis_object(o, &file, table, e);
	}
	if (!ok)
		err_wrap(e, "%s", path);
	buf_fini(&file);
	buf_fini(&bytes);
	return ok;
}

static bool dis(const struct options *o, int n, char **path, struct err *e)
{
	struct table table;
	bool ok = true;

	if (!n)
		return err_set(e, ERR_USAGE,
			       "dis: no file given; wanted FILE or - (stdin)");
	table_init(&table, "kernel,#address,bytes,text");
	for (int i = 0; ok && i < n; i++)
		ok = dis_file(o, path[i], &table, e);
	if (ok && (o->json || o->csv))
		ok = table_print(&table, o->json ? TABLE_JSON : TABLE_CSV,
				 o->out, e);
	table_fini(&table);
	return ok;
}

/* --------------------------------------------------------------- info ---- */

static const char *const pipe_name[ISA_PIPE_COUNT] = {
	[ISA_PIPE_SALU] = "salu",	[ISA_PIPE_SMEM] = "smem",
	[ISA_PIPE_VALU] = "valu",	[ISA_PIPE_VALU64] = "valu64",
	[ISA_PIPE_QUARTER] = "quarter", [ISA_PIPE_TRANS] = "trans",
	[ISA_PIPE_TRANS64] = "trans64", [ISA_PIPE_DOUBLE] = "double",
	[ISA_PIPE_WMMA] = "wmma",	[ISA_PIPE_LDS] = "lds",
	[ISA_PIPE_LDSDIR] = "ldsdir",	[ISA_PIPE_FLAT] = "flat",
	[ISA_PIPE_VMEM] = "vmem",	[ISA_PIPE_EXPORT] = "export",
	[ISA_PIPE_BRANCH] = "branch",	[ISA_PIPE_MSG] = "message",
	[ISA_PIPE_SPECIAL] = "special",
};

static const char *const slot_name[ISA_SLOT_COUNT] = {
	[ISA_SLOT_D] = "destination",
	[ISA_SLOT_DS] = "scalar destination",
	[ISA_SLOT_CO] = "carry-out mask",
	[ISA_SLOT_CD] = "compare mask",
	[ISA_SLOT_CI] = "carry-in or select mask",
	[ISA_SLOT_S0] = "source 0",
	[ISA_SLOT_S1] = "source 1",
	[ISA_SLOT_S2] = "source 2",
	[ISA_SLOT_S0V] = "source 0, VGPR only",
	[ISA_SLOT_S1V] = "source 1, VGPR only",
	[ISA_SLOT_S2V] = "source 2, VGPR only",
	[ISA_SLOT_S0S] = "source 0, scalar only",
	[ISA_SLOT_S1S] = "source 1, scalar only",
	[ISA_SLOT_S2S] = "source 2, scalar only",
	[ISA_SLOT_S2I] = "source 2, VGPR or inline constant",
	[ISA_SLOT_K] = "mandatory literal",
	[ISA_SLOT_DIN] = "scalar source in SDST",
	[ISA_SLOT_IMM] = "16-bit immediate",
	[ISA_SLOT_REL] = "branch offset in dwords",
	[ISA_SLOT_MSG] = "message",
	[ISA_SLOT_HWREG] = "hardware register",
	[ISA_SLOT_WAITCNT] = "wait counts",
	[ISA_SLOT_DELAY] = "ALU delays",
	[ISA_SLOT_DEPCTR] = "dependency counters",
	[ISA_SLOT_SDATA] = "scalar data",
	[ISA_SLOT_SDIMM] = "immediate in SDATA",
	[ISA_SLOT_SBASE] = "scalar base",
	[ISA_SLOT_SOFF] = "scalar offset and 21-bit immediate",
	[ISA_SLOT_VADDR] = "vector address",
	[ISA_SLOT_DATA] = "data",
	[ISA_SLOT_DATA0] = "data 0",
	[ISA_SLOT_DATA1] = "data 1",
	[ISA_SLOT_DG] = "destination if glc",
	[ISA_SLOT_DATAG] = "data, destination if glc",
	[ISA_SLOT_SADDR] = "scalar address",
	[ISA_SLOT_SRSRC] = "buffer descriptor",
	[ISA_SLOT_SOFFSET] = "scalar offset",
	[ISA_SLOT_FORMAT] = "buffer format",
	[ISA_SLOT_OFF2] = "two 8-bit offsets",
	[ISA_SLOT_OFF12] = "12-bit offset",
	[ISA_SLOT_OFF13] = "13-bit signed offset",
	[ISA_SLOT_OFF16] = "16-bit offset",
	[ISA_SLOT_SWIZZLE] = "swizzle pattern",
	[ISA_SLOT_ATTR] = "attribute and channel",
	[ISA_SLOT_EXPORT] = "four export sources",
	[ISA_SLOT_IMAGE] = "data, addresses, descriptors",
	[ISA_SLOT_SOFFI] = "24-bit immediate offset",
	[ISA_SLOT_SOFFR] = "scalar offset",
};

static const struct {
	uint32_t flag;
	const char *text;
} flag_name[] = {
	{ ISA_E64, "VOP3 form" },
	{ ISA_DPP, "DPP" },
	{ ISA_DPP64, "DPP in VOP3 form" },
	{ ISA_CLAMP, "clamp" },
	{ ISA_OMOD, "output modifier" },
	{ ISA_MOD0, "neg/abs on source 0" },
	{ ISA_MOD1, "neg/abs on source 1" },
	{ ISA_MOD2, "neg/abs on source 2" },
	{ ISA_OPSEL, "op_sel" },
	{ ISA_NOLIT, "no literal" },
	{ ISA_RD, "reads its destination" },
	{ ISA_SWAP, "writes its source" },
	{ ISA_LOAD, "load" },
	{ ISA_STORE, "store" },
	{ ISA_ATOMIC, "atomic" },
	{ ISA_HI, "high half of the register" },
	{ ISA_LDSDMA, "loads to LDS" },
	{ ISA_GDSONLY, "GDS only" },
	{ ISA_SAMPLER, "sampler" },
	{ ISA_RSCC, "reads SCC" },
	{ ISA_WSCC, "writes SCC" },
	{ ISA_RVCC, "reads VCC" },
	{ ISA_WVCC, "writes VCC" },
	{ ISA_REXEC, "reads EXEC" },
	{ ISA_WEXEC, "writes EXEC" },
	{ ISA_RM0, "reads M0" },
	{ ISA_BARRIER, "barrier" },
	{ ISA_END, "ends the program" },
	{ ISA_GFX, "graphics only" },
};

static void info_opcodes(const struct isa_op_info *op, enum isa_op id,
			 enum isa_gen gen, struct buf *b)
{
	int opcode = isa_opcode(gen, id, false);
	int vop3 = isa_opcode(gen, id, true);

	if (opcode < 0) {
		buf_adds(b, id == ISA_v_dot2acc_f32_bf16 ?
				    "only as a half of VOPD" :
				    "not in this generation");
		return;
	}
	buf_printf(b, "%s %d (0x%x)", isa_fmt_info(op->fmt)->name, opcode,
		   opcode);
	if (op->flags & ISA_E64)
		buf_printf(b, ", VOP3 %d (0x%x)", vop3, vop3);
}

/* The generations that have the instruction, and with which opcodes. */
static void info_generations(enum isa_op id, struct buf *b)
{
	static const char *const name[ISA_GEN_COUNT] = {
		[ISA_GFX10_3] = "gfx10_3", [ISA_GFX11] = "gfx11",
		[ISA_GFX11_5] = "gfx11_5", [ISA_GFX12] = "gfx12",
	};

	for (int gen = 0; gen < ISA_GEN_COUNT; gen++)
		if (isa_gen_known(gen) && isa_opcode(gen, id, false) >= 0)
			buf_printf(b, "%s%s %d", b->len ? ", " : "", name[gen],
				   isa_opcode(gen, id, false));
}

static void info_vopd(enum isa_op id, struct buf *b)
{
	for (int y = 0; y < 2; y++)
		for (int i = 0; i < 32; i++) {
			const char *name;

			if (isa_vopd_op(i, y, &name) == id)
				buf_printf(b, "%s%s as VOPD %c %d",
					   b->len ? ", " : "", name, "XY"[y],
					   i);
		}
}

static bool info(const struct options *o, const char *name, struct table *t,
		 struct err *e)
{
	enum isa_op id = isa_op_find(name);
	const struct isa_op_info *op = isa_op_info(id);
	const char *shown;
	struct buf b = { 0 };

	for (int y = 0; !id && y < 2; y++)
		for (int i = 0; !id && i < 32; i++) {
			const char *dual = "";
			enum isa_op at = isa_vopd_op(i, y, &dual);

			if (at && !strcmp(dual, name))
				id = at;
		}
	/* Another row may have this name in the generation that is asked. */
	for (int i = 1; id && isa_opcode(o->target.gen, id, false) < 0 &&
			i < ISA_OP_COUNT; i++)
		if (!strcmp(isa_op_info(i)->name, isa_op_info(id)->name) &&
		    isa_opcode(o->target.gen, i, false) >= 0)
			id = i;
	if (!id)
		return err_set(e, ERR_USAGE,
			       "no instruction is named '%s'; t0-isa list "
			       "prints all of them",
			       name);
	op = isa_op_info(id);
	shown = isa_op_name(o->target.gen, id);
#define ROW(key, ...)                       \
	do {                                \
		table_row(t);               \
		table_cell(t, 0, "%s", shown);    \
		table_cell(t, 1, "%s", key); \
		table_cell(t, 2, __VA_ARGS__); \
	} while (0)
	info_opcodes(op, id, o->target.gen, &b);
	ROW("encoding", "%s", b.data);
	buf_reset(&b);
	info_generations(id, &b);
	if (b.len)
		ROW("generations", "%s", b.data);
	buf_reset(&b);
	info_vopd(id, &b);
	if (b.len)
		ROW("dual issue", "%s", b.data);
	ROW("pipe", "%s", pipe_name[op->pipe]);
	for (int i = 0; i < op->n_opnd; i++) {
		const struct isa_type_info *ty =
			isa_type_info(op->opnd[i].type);

		ROW("operand", "%s%s%s", slot_name[op->opnd[i].slot],
		    ty->name ? ": " : "", ty->name ? ty->name : "");
	}
	for (size_t i = 0; i < ARRAY_SIZE(flag_name); i++)
		if (op->flags & flag_name[i].flag)
			ROW("property", "%s", flag_name[i].text);
#undef ROW
	buf_fini(&b);
	return true;
}

static bool print_table(const struct options *o, struct table *t,
			struct err *e)
{
	return table_print(t,
			   o->json ? TABLE_JSON :
			   o->csv  ? TABLE_CSV :
				     TABLE_TEXT,
			   o->out, e);
}

static bool info_all(const struct options *o, int n, char **name,
		     struct err *e)
{
	struct table t;
	bool ok = true;

	if (!n)
		return err_set(e, ERR_USAGE, "info: wanted an instruction name");
	table_init(&t, "instruction,fact,value");
	for (int i = 0; ok && i < n; i++)
		ok = info(o, name[i], &t, e);
	ok = ok && print_table(o, &t, e);
	table_fini(&t);
	return ok;
}

static bool list(const struct options *o, struct err *e)
{
	struct table t;
	bool ok;

	table_init(&t, "instruction,encoding,#opcode,pipe");
	for (int op = 1; op < ISA_OP_COUNT; op++) {
		const struct isa_op_info *i = isa_op_info(op);

		if (i->opcode[o->target.gen] < 0)
			continue;
		table_row(&t);
		table_cell(&t, 0, "%s", isa_op_name(o->target.gen, op));
		table_cell(&t, 1, "%s", isa_fmt_info(i->fmt)->name);
		table_cell(&t, 2, "%d", i->opcode[o->target.gen]);
		table_cell(&t, 3, "%s", pipe_name[i->pipe]);
	}
	ok = print_table(o, &t, e);
	table_fini(&t);
	return ok;
}

/* ------------------------------------------------------------- verify ---- */

static bool verify_file(const struct options *o, const char *path,
			struct verify_show *show, struct err *e)
{
	struct buf file = { 0 }, bytes = { 0 };
	bool ok = file_read(path, 0, &file, e);

	if (ok && o->hex)
		ok = parse_hex(file.data, file.len, &bytes, e) &&
		     verify_show_code(show, o->target, bytes.data, bytes.len,
				      e);
	else if (ok && o->raw)
		ok = verify_show_code(show, o->target, file.data, file.len, e);
	else if (ok)
		ok = verify_show_object(show, file.data, file.len, e);
	if (!ok)
		err_wrap(e, "%s", path);
	buf_fini(&file);
	buf_fini(&bytes);
	return ok;
}

/* *found: were there findings?  Then the answer is "no". */
static bool verify(const struct options *o, int n, char **path, bool *found,
		   struct err *e)
{
	struct table table;
	struct verify_show show = {
		.out = o->out, .kernel = o->kernel, .allow = &o->allow,
		.chip = o->chip, .wave = o->wave,
		.table = o->json || o->csv ? &table : NULL,
	};
	bool ok = true;

	if (!n)
		return err_set(e, ERR_USAGE,
			       "verify: no file given; wanted FILE or - "
			       "(stdin)");
	table_init(&table, VERIFY_COLUMNS);
	for (int i = 0; ok && i < n; i++)
		ok = verify_file(o, path[i], &show, e);
	if (ok && show.table)
		ok = table_print(&table, o->json ? TABLE_JSON : TABLE_CSV,
				 o->out, e);
	*found = show.found > 0;
	table_fini(&table);
	return ok;
}

/* --------------------------------------------------------------- main ---- */

static bool check_target(struct options *o, struct err *e)
{
	const char *chip = o->chip ? o->chip : "gfx1100";

	if (o->wave && o->wave != 32 && o->wave != 64)
		return err_set(e, ERR_USAGE, "--wave: got %d, wanted 32 or 64",
			       o->wave);
	if (!isa_chip_parse(chip, &o->target.gen))
		return err_set(e, ERR_USAGE,
			       "--chip: '%s' is not known; wanted a name such as "
			       "gfx1100",
			       chip);
	if (!isa_gen_known(o->target.gen))
		return err_set(e, ERR_UNSUPPORTED,
			       "--chip: the encodings of %s are not in the "
			       "table; those of gfx1100 are",
			       chip);
	o->target.wave = o->wave ? o->wave : 32;
	return true;
}

static struct isa_cmd cmd_of(const struct options *o)
{
	return (struct isa_cmd){
		.chip = o->chip, .kernel = o->kernel, .output = o->output,
		.wave = o->wave, .version = o->version, .lines = o->lines,
		.json = o->json, .csv = o->csv, .target = o->target,
		.out = o->out,
	};
}

static bool run(struct options *o, int n, char **arg, bool *no, struct err *e)
{
	struct isa_cmd cmd;

	if (!check_target(o, e))
		return false;
	if (!n)
		return err_set(e, ERR_USAGE,
			       "no command given; wanted asm, diff, dis, info, "
			       "list, meta or verify (see --help)");
	cmd = cmd_of(o);
	if (!strcmp(arg[0], "asm"))
		return isa_cmd_asm(&cmd, n - 1, arg + 1, e);
	if (!strcmp(arg[0], "meta"))
		return isa_cmd_meta(&cmd, n - 1, arg + 1, e);
	if (!strcmp(arg[0], "diff"))
		return isa_cmd_diff(&cmd, n - 1, arg + 1, e);
	if (!strcmp(arg[0], "dis"))
		return dis(o, n - 1, arg + 1, e);
	if (!strcmp(arg[0], "info"))
		return info_all(o, n - 1, arg + 1, e);
	if (!strcmp(arg[0], "list"))
		return list(o, e);
	if (!strcmp(arg[0], "verify"))
		return verify(o, n - 1, arg + 1, no, e);
	return err_set(e, ERR_USAGE,
		       "unknown command '%s'; wanted asm, diff, dis, info, "
		       "list, meta or verify",
		       arg[0]);
}

int main(int argc, char **argv)
{
	struct options o = { .out = stdout };
	const struct cli_opt opts[] = {
		{ "chip", 0, CLI_STR, &o.chip, "NAME",
		  "read the code as NAME's (default: the object's, gfx1100)" },
		{ "wave", 0, CLI_INT, &o.wave, "N",
		  "wave size 32 or 64 (default: the kernel's, else 32)" },
		{ "kernel", 'k', CLI_STR, &o.kernel, "NAME",
		  "disassemble only this kernel" },
		{ "hex", 0, CLI_FLAG, &o.hex, NULL,
		  "the input is hex text, bytes in memory order" },
		{ "raw", 0, CLI_FLAG, &o.raw, NULL,
		  "the input is bare machine code" },
		{ "lines", 0, CLI_FLAG, &o.lines, NULL,
		  "one instruction per line, text (asm) or hex (dis); one "
		  "answer per line" },
		{ "code-object-version", 0, CLI_INT, &o.version, "N",
		  "asm: write version 4, 5 or 6 (default: the file's, 5)" },
		{ "allow", 0, CLI_LIST, &o.allow, "RULE",
		  "verify: do not report this rule (repeatable)" },
		{ "json", 0, CLI_FLAG, &o.json, NULL, "print JSON" },
		{ "csv", 0, CLI_FLAG, &o.csv, NULL, "print CSV" },
		{ "output", 'o', CLI_STR, &o.output, "FILE",
		  "write there instead of stdout" },
		{ 0 },
	};
	const struct cli_tool tool = {
		.name = TOOL,
		.summary = "assemble, disassemble and explain RDNA "
			   "machine code",
		.usage = "asm [options] FILE...\n"
			 "diff [options] CHIP CHIP\n"
			 "dis [options] FILE...\n"
			 "info [options] NAME...\n"
			 "list [options]\n"
			 "meta [options] FILE...\n"
			 "verify [options] FILE...",
		.opt = opts,
		.notes = "FILE is a code object or offload bundle, - is stdin."
			 "\n",
	};
	struct err e = { 0 };
	bool done = false, no = false, ok;
	int first;

	if (!cli_parse(&tool, argc, argv, &first, &done, &e))
		return err_report(TOOL, &e);
	if (done)
		return EXIT_YES;
	/* Assembling writes a whole file or none. */
	if (o.output && (o.lines || first == argc ||
			 strcmp(argv[first], "asm"))) {
		o.out = fopen(o.output, "w");
		if (!o.out) {
			err_sys(&e, ERR_IO, errno, "%s", o.output);
			return err_report(TOOL, &e);
		}
	}
	ok = run(&o, argc - first, argv + first, &no, &e);
	cli_list_fini(&o.allow);
	if (!ok)
		return err_report(TOOL, &e);
	if (o.out != stdout && fclose(o.out)) {
		err_sys(&e, ERR_IO, errno, "%s", o.output);
		return err_report(TOOL, &e);
	}
	if (!stdout_check(&e))
		return err_report(TOOL, &e);
	return no ? EXIT_NO : EXIT_YES;
}
