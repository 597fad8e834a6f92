/*
 * t0-isa - disassemble gfx11 machine code and explain instructions.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "isa/co.h"
#include "isa/isa.h"

#define TOOL "t0-isa"

struct options {
	const char *chip, *kernel, *output;
	int wave; /* 0: what the kernel's descriptor says, else 32 */
	bool hex, raw, lines, json, csv;
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
				       "hex input, character %zu: got '%.8s', "
				       "wanted two hex digits per byte",
				       i + 1, s + i);
		buf_addc(out, hi << 4 | lo);
		i += 2;
	}
	return true;
}

static void bytes_text(const uint8_t *p, size_t n, struct buf *out)
{
	buf_reset(out);
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%02x", p[i]);
}

/* One instruction: its text, or ".long" and the reason; its size in bytes. */
static size_t one(const struct options *o, const struct isa_target *t,
		  const uint8_t *code, size_t size, uint64_t addr,
		  struct table *table, const char *kernel)
{
	struct buf hex = { 0 };
	char text[ISA_TEXT_MAX];
	struct isa_inst in;
	const char *why = isa_decode(t, code, size, &in);
	size_t n = why ? (size < 4 ? size : 4) : in.size_bytes;

	if (!why) {
		isa_print(t, &in, text, sizeof(text));
	} else if (n == 4) {
		uint32_t w;

		memcpy(&w, code, 4);
		snprintf(text, sizeof(text), ".long 0x%08x // %s", w, why);
	} else {
		snprintf(text, sizeof(text), ".byte // %s", why);
	}
	bytes_text(code, n, &hex);
	if (o->json || o->csv) {
		table_row(table);
		if (kernel)
			table_cell(table, 0, "%s", kernel);
		table_cell(table, 1, "%llu", (unsigned long long)addr);
		table_cell(table, 2, "%s", hex.data);
		table_cell(table, 3, "%s", text);
	} else {
		fprintf(o->out, "\t%-58s // %012llx: %s\n", text,
			(unsigned long long)addr, hex.data);
	}
	buf_fini(&hex);
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
			fprintf(o->out, "%s%s\n", why ? "error: " : "",
				why ? why : text);
		}
		p += len + 1;
	}
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
		buf_adds(b, "only as a half of VOPD");
		return;
	}
	buf_printf(b, "%s %d (0x%x)", isa_fmt_info(op->fmt)->name, opcode,
		   opcode);
	if (op->flags & ISA_E64)
		buf_printf(b, ", VOP3 %d (0x%x)", vop3, vop3);
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
	struct buf b = { 0 };

	for (int y = 0; !id && y < 2; y++)
		for (int i = 0; !id && i < 32; i++) {
			const char *dual = "";
			enum isa_op at = isa_vopd_op(i, y, &dual);

			if (at && !strcmp(dual, name))
				id = at;
		}
	if (!id)
		return err_set(e, ERR_USAGE,
			       "no instruction is named '%s'; t0-isa list "
			       "prints all of them",
			       name);
	op = isa_op_info(id);
#define ROW(key, ...)                       \
	do {                                \
		table_row(t);               \
		table_cell(t, 0, "%s", op->name); \
		table_cell(t, 1, "%s", key); \
		table_cell(t, 2, __VA_ARGS__); \
	} while (0)
	info_opcodes(op, id, o->target.gen, &b);
	ROW("encoding", "%s", b.data);
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
		table_cell(&t, 0, "%s", i->name);
		table_cell(&t, 1, "%s", isa_fmt_info(i->fmt)->name);
		table_cell(&t, 2, "%d", i->opcode[o->target.gen]);
		table_cell(&t, 3, "%s", pipe_name[i->pipe]);
	}
	ok = print_table(o, &t, e);
	table_fini(&t);
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
			       "--chip: '%s' is not known; wanted gfx1100, "
			       "gfx1101, gfx1102 or gfx1103",
			       chip);
	if (!isa_gen_known(o->target.gen))
		return err_set(e, ERR_UNSUPPORTED,
			       "--chip: the encodings of %s are not in the "
			       "table; gfx1100 to gfx1103 are",
			       chip);
	o->target.wave = o->wave ? o->wave : 32;
	return true;
}

static bool run(struct options *o, int n, char **arg, struct err *e)
{
	if (!check_target(o, e))
		return false;
	if (!n)
		return err_set(e, ERR_USAGE,
			       "no command given; wanted dis, info or list "
			       "(see --help)");
	if (!strcmp(arg[0], "dis"))
		return dis(o, n - 1, arg + 1, e);
	if (!strcmp(arg[0], "info"))
		return info_all(o, n - 1, arg + 1, e);
	if (!strcmp(arg[0], "list"))
		return list(o, e);
	return err_set(e, ERR_USAGE,
		       "unknown command '%s'; wanted dis, info or list",
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
		  "one hex instruction per line, one answer per line" },
		{ "json", 0, CLI_FLAG, &o.json, NULL, "print JSON" },
		{ "csv", 0, CLI_FLAG, &o.csv, NULL, "print CSV" },
		{ "output", 'o', CLI_STR, &o.output, "FILE",
		  "write there instead of stdout" },
		{ 0 },
	};
	const struct cli_tool tool = {
		.name = TOOL,
		.summary = "disassemble and explain gfx11 machine code",
		.usage = "dis [options] FILE...\ninfo [options] NAME...\n"
			 "list [options]",
		.opt = opts,
		.notes = "FILE is a code object or offload bundle, - is stdin."
			 "\n",
	};
	struct err e = { 0 };
	bool done = false;
	int first;

	if (!cli_parse(&tool, argc, argv, &first, &done, &e))
		return err_report(TOOL, &e);
	if (done)
		return EXIT_YES;
	if (o.output) {
		o.out = fopen(o.output, "w");
		if (!o.out) {
			err_sys(&e, ERR_IO, errno, "%s", o.output);
			return err_report(TOOL, &e);
		}
	}
	if (!run(&o, argc - first, argv + first, &e))
		return err_report(TOOL, &e);
	if (o.out != stdout && fclose(o.out)) {
		err_sys(&e, ERR_IO, errno, "%s", o.output);
		return err_report(TOOL, &e);
	}
	return stdout_check(&e) ? EXIT_YES : err_report(TOOL, &e);
}
