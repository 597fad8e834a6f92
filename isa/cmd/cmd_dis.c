/*
 * isa/cmd/cmd_dis.c - t0-isa dis.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "isa/asm/asm.h"
#include "isa/cmd/cmd.h"
#include "isa/object/object.h"
#include "isa/text/text.h"

static int hex_digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = tolower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool isa_parse_hex(const char *s, size_t len, struct buf *out, struct err *e)
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

static int print_inst(const struct isa_cmd *o, const struct isa_target *t,
		      const struct isa_inst *in, char text[ISA_TEXT_MAX])
{
	return o->true16 ? isa_print_true16(in, text, ISA_TEXT_MAX) :
			   isa_print(t, in, text, ISA_TEXT_MAX);
}

/* One instruction: its text, or ".long" and the reason; its size in bytes. */
static size_t dis_one(const struct isa_cmd *o, const struct isa_target *t,
		  const uint8_t *code, size_t size, uint64_t addr,
		  struct table *table, const char *kernel)
{
	char text[ISA_TEXT_MAX];
	struct isa_inst in;
	const char *why = isa_decode(t, code, size, &in);
	size_t n = why ? (size < 4 ? size : 4) : in.size_bytes;
	int len;

	if (!why) {
		len = print_inst(o, t, &in, text);
	} else if (n == 4) {
		uint32_t w;

		memcpy(&w, code, 4);
		len = snprintf(text, sizeof(text), ".long 0x%08x // %s", w,
			       why);
	} else {
		len = snprintf(text, sizeof(text), ".byte // %s", why);
	}
	if (o->cmd.format != TABLE_TEXT)
		add_row(table, kernel, addr, code, n, text);
	else
		print_line(o->cmd.out, text, (size_t)len, addr, code, n);
	return n;
}

static void dis_range(const struct isa_cmd *o, const uint8_t *code,
		      size_t size, uint64_t addr, int wave,
		      struct table *table, const char *kernel)
{
	struct isa_target t = o->target;

	t.wave = wave;
	for (size_t at = 0; at < size;)
		at += dis_one(o, &t, code + at, size - at, addr + at, table,
			  kernel);
}

static int wave_of(const struct isa_cmd *o, const struct co_kernel *k)
{
	return o->wave ? o->wave : co_descriptor_wave_size(&k->desc);
}

/* ------------------------------------------------------ whole objects ---- */

/* The wave of the code at `vaddr`: its kernel's, else the first kernel's. */
static int wave_at(const struct isa_cmd *o, const struct co *co, uint64_t vaddr)
{
	for (uint32_t i = 0; i < co->n_kernels; i++)
		if (co->kernels[i].entry_vaddr == vaddr)
			return wave_of(o, &co->kernels[i]);
	return co->n_kernels ? wave_of(o, &co->kernels[0]) : o->target.wave;
}

/*
 * Whether asm derives the visibility of *s: the code of a kernel whose
 * descriptor others may replace is itself protected.
 */
static bool is_of_descriptor(const struct co *co, const struct co_symbol *s)
{
	for (uint32_t i = 0; i < co->n_kernels; i++) {
		const struct co_kernel *k = &co->kernels[i];
		const struct co_symbol *kd;

		if (k->entry_vaddr != s->vaddr || strcmp(k->name, s->name))
			continue;
		for (uint32_t n = 0; n < co->n_symbols; n++) {
			kd = &co->symbols[n];
			if (kd->vaddr == k->desc_vaddr)
				return s->visibility == 3 && !kd->visibility;
		}
	}
	return false;
}

/*
 * What *s is called in the text.  Objects of several sources may have local
 * symbols of one name, texts may not: all but one get their address, too.
 */
static void symbol_name(const struct co *co, const struct co_symbol *s,
			struct buf *out)
{
	const struct co_symbol *a = s, *end = co->symbols + co->n_symbols;
	bool repeated;

	while (a > co->symbols && !strcmp(a[-1].name, s->name))
		a--;
	repeated = a != s;
	for (; !s->binding && a < end && !strcmp(a->name, s->name); a++)
		repeated |= a->binding;
	buf_adds(out, s->name);
	if (repeated && !s->binding)
		buf_printf(out, ".%llx", (unsigned long long)s->vaddr);
	buf_addc(out, 0);
}

/* Directives and label of a symbol. */
static void print_symbol(FILE *out, const struct co *co,
			 const struct co_symbol *s)
{
	static const char *const binding[] = { "local", "globl", "weak" };
	static const char *const visibility[] = { NULL, "internal", "hidden",
						  "protected" };
	struct buf name = { 0 };

	symbol_name(co, s, &name);
	if (s->binding && s->binding < ARRAY_SIZE(binding))
		fprintf(out, "\t.%s %s\n", binding[s->binding], name.data);
	if (visibility[s->visibility & 3] && !is_of_descriptor(co, s))
		fprintf(out, "\t.%s %s\n", visibility[s->visibility & 3],
			name.data);
	if (s->type == 1 || s->type == 2)
		fprintf(out, "\t.type %s,@%s\n", name.data,
			s->type == 2 ? "function" : "object");
	if (s->size_bytes)
		fprintf(out, "\t.size %s, %llu\n", name.data,
			(unsigned long long)s->size_bytes);
	fprintf(out, "%s:", name.data);
	buf_fini(&name);
}

/* The nearest symbol behind `vaddr`, or the end of the section. */
static uint64_t next_symbol(const struct co *co, const struct co_text *t,
			    uint64_t vaddr)
{
	uint64_t next = t->vaddr + t->size_bytes;

	for (uint32_t i = 0; i < co->n_symbols; i++)
		if (co->symbols[i].vaddr > vaddr && co->symbols[i].vaddr < next)
			next = co->symbols[i].vaddr;
	return next;
}

static const struct co_text *section_of(const struct co *co, uint64_t vaddr)
{
	for (uint32_t i = 0; i < co->n_texts; i++)
		if (vaddr - co->texts[i].vaddr < co->texts[i].size_bytes)
			return &co->texts[i];
	for (uint32_t i = 0; i < co->n_datas; i++)
		if (vaddr - co->datas[i].vaddr < co->datas[i].size_bytes)
			return &co->datas[i];
	return NULL;
}

/* The nearest symbol in the section of an address that none can replace. */
static const struct co_symbol *nearest_symbol(const struct co *co,
					      uint64_t vaddr)
{
	const struct co_text *t = section_of(co, vaddr);
	const struct co_symbol *best = NULL;
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; t && i < co->n_symbols; i++) {
		const struct co_symbol *s = &co->symbols[i];
		uint64_t far = s->vaddr < vaddr ? vaddr - s->vaddr :
						  s->vaddr - vaddr;

		if ((!s->binding || s->visibility) && far < least &&
		    section_of(co, s->vaddr) == t) {
			best = s;
			least = far;
		}
	}
	return best;
}

/* Whether an address in section *t is told by the section's label. */
static bool wants_label(const struct co *co, const struct co_text *t)
{
	for (uint32_t i = 0; i < co->n_relocs; i++) {
		uint64_t at = (uint64_t)co->relocs[i].addend;

		if (co->relocs[i].type == CO_RELOC_RELATIVE64 &&
		    section_of(co, at) == t && !nearest_symbol(co, at))
			return true;
	}
	return false;
}

static void print_section(FILE *out, const struct co *co,
			  const struct co_text *t, bool code)
{
	fprintf(out, "\t.section %s,\"a%s\",@%s\n\t.balign %llu\n", t->name,
		code	    ? "x" :
		t->writable ? "w" :
			      "",
		t->data ? "progbits" : "nobits",
		(unsigned long long)(t->align ? t->align : 1));
	if (wants_label(co, t))
		fprintf(out, ".Lsection_%llx:\n", (unsigned long long)t->vaddr);
}

/* A section of code with all that is in it: functions and what is between. */
static void dis_text(const struct isa_cmd *o, const struct co *co,
		     const struct co_text *t, struct table *table)
{
	bool text = o->cmd.format == TABLE_TEXT;
	uint64_t end = t->vaddr + t->size_bytes, next;
	int wave = wave_at(o, co, 0);

	if (text)
		print_section(o->cmd.out, co, t, true);
	for (uint64_t at = t->vaddr; at < end; at = next) {
		const char *name = "";

		for (uint32_t i = 0; i < co->n_symbols; i++) {
			const struct co_symbol *s = &co->symbols[i];

			if (s->vaddr != at)
				continue;
			wave = wave_at(o, co, at);
			name = s->name;
			if (!text)
				continue;
			print_symbol(o->cmd.out, co, s);
			fprintf(o->cmd.out, " // %s, wave%d\n", co->chip, wave);
		}
		next = next_symbol(co, t, at);
		dis_range(o, t->data + (at - t->vaddr), next - at, at, wave,
			  table, name);
	}
}

/* Words as they are, but for the distance of the code. */
static void print_raw_descriptor(FILE *out, const struct co *co,
				 const struct co_kernel *k, const uint8_t *data)
{
	const struct co_symbol *code = co_symbol_find(co, k->name);
	uint32_t w[CO_DESCRIPTOR_BYTES / 4];

	memcpy(w, data, sizeof(w));
	if (code && is_of_descriptor(co, code))
		fprintf(out, "\t.protected %s\n", k->name);
	/* asm finds the wave by this line. */
	if (co_descriptor_wave_size(&k->desc) == 64)
		fputs("\t// .amdhsa_wavefront_size32 0\n", out);
	for (size_t i = 0; i < ARRAY_SIZE(w); i++)
		if (i == 4)
			fprintf(out, "\t.quad %s-%s.kd\n", k->name, k->name);
		else if (i != 5)
			fprintf(out, "\t.long 0x%08x\n", w[i]);
}

/* An address that the loader moves with the image. */
static void print_address(FILE *out, const struct co *co, uint64_t vaddr)
{
	const struct co_text *t = section_of(co, vaddr);
	const struct co_symbol *s = nearest_symbol(co, vaddr);
	struct buf name = { 0 };

	if (s) {
		symbol_name(co, s, &name);
		fprintf(out, "\t.quad %s%+lld\n", name.data,
			(long long)(vaddr - s->vaddr));
		buf_fini(&name);
	} else if (t) {
		fprintf(out, "\t.quad .Lsection_%llx+%llu\n",
			(unsigned long long)t->vaddr,
			(unsigned long long)(vaddr - t->vaddr));
	} else {
		fprintf(out, "\t.quad 0x%llx\n", (unsigned long long)vaddr);
	}
}

/* The bytes that a relocation of [at, end) patches; NULL if there is none. */
static const struct co_reloc *next_reloc(const struct co *co, uint64_t at,
					 uint64_t end)
{
	const struct co_reloc *first = NULL;

	for (uint32_t i = 0; i < co->n_relocs; i++) {
		const struct co_reloc *r = &co->relocs[i];

		if (r->vaddr >= at && r->vaddr + 8 <= end &&
		    (r->type == CO_RELOC_RELATIVE64 ||
		     r->type == CO_RELOC_ABS64) &&
		    (!first || r->vaddr < first->vaddr))
			first = r;
	}
	return first;
}

static void print_bytes(FILE *out, const uint8_t *data, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%s0x%02x%s", i % 8 ? ", " : "\t.byte ", data[i],
			i % 8 == 7 || i + 1 == n ? "\n" : "");
}

/* Bytes, and the addresses among them. */
static void print_values(FILE *out, const struct co *co, const uint8_t *data,
			 uint64_t at, uint64_t end)
{
	const struct co_reloc *r;

	while ((r = next_reloc(co, at, end))) {
		print_bytes(out, data, r->vaddr - at);
		if (r->type == CO_RELOC_RELATIVE64)
			print_address(out, co, (uint64_t)r->addend);
		else
			fprintf(out, "\t.quad %s%+lld\n", r->symbol,
				(long long)r->addend);
		data += r->vaddr + 8 - at;
		at = r->vaddr + 8;
	}
	print_bytes(out, data, end - at);
}

static const struct co_kernel *kernel_of(const struct co *co, uint64_t desc)
{
	for (uint32_t i = 0; i < co->n_kernels; i++)
		if (co->kernels[i].desc_vaddr == desc)
			return &co->kernels[i];
	return NULL;
}

/* A section of data: descriptors, and other bytes as they are. */
static void print_data(const struct isa_cmd *o, const struct co *co,
		       const struct co_text *t)
{
	FILE *out = o->cmd.out;
	uint64_t end = t->vaddr + t->size_bytes, next;

	print_section(out, co, t, false);
	for (uint64_t at = t->vaddr; at < end; at = next) {
		const struct co_kernel *k = kernel_of(co, at);
		const uint8_t *data = t->data ? t->data + (at - t->vaddr) :
						NULL;

		next = next_symbol(co, t, at);
		if (k && next > at + CO_DESCRIPTOR_BYTES)
			next = at + CO_DESCRIPTOR_BYTES;
		if (k && isa_print_descriptor(out, o->target.gen, k->name,
					      &k->desc))
			continue;
		for (uint32_t i = 0; i < co->n_symbols; i++)
			if (co->symbols[i].vaddr == at) {
				print_symbol(out, co, &co->symbols[i]);
				putc('\n', out);
			}
		if (!data)
			fprintf(out, "\t.zero %llu\n",
				(unsigned long long)(next - at));
		else if (k)
			print_raw_descriptor(out, co, k, data);
		else
			print_values(out, co, data, at, next);
	}
}

/* All code, and as text its data and metadata, too. */
static void dis_all(const struct isa_cmd *o, const struct co *co,
		    struct table *table)
{
	FILE *out = o->cmd.out;
	bool text = o->cmd.format == TABLE_TEXT;

	if (text)
		fprintf(out,
			"\t.amdgcn_target \"amdgcn-amd-amdhsa--%s\"\n"
			"\t.amdhsa_code_object_version %d\n",
			co->chip, co->version);
	/* asm refuses undefined symbols that are not weak. */
	for (uint32_t i = 0; text && i < co->n_undefined; i++)
		fprintf(out, "\t.weak %s\n", co->undefined[i]);
	for (uint32_t i = 0; i < co->n_texts; i++)
		dis_text(o, co, &co->texts[i], table);
	for (uint32_t i = 0; text && i < co->n_datas; i++)
		print_data(o, co, &co->datas[i]);
	if (text && co->metadata)
		isa_print_metadata(out, co);
	if (text && co->notes) {
		fputs("\t.section .note,\"a\",@note\n\t.balign 4\n", out);
		print_bytes(out, co->notes, co->notes_bytes);
	}
}

static void dis_kernel(const struct isa_cmd *o, const struct co *co,
		       const struct co_kernel *k, struct table *table)
{
	if (o->cmd.format == TABLE_TEXT)
		fprintf(o->cmd.out, "%s: // %s, wave%d\n", k->name, co->chip,
			wave_of(o, k));
	dis_range(o, k->code, k->code_bytes, k->entry_vaddr, wave_of(o, k),
		  table, k->name);
}

static bool dis_object(const struct isa_cmd *o, const struct buf *file,
		       struct table *table, struct err *e)
{
	const struct co_kernel *only = NULL;
	struct isa_cmd mine = *o;
	struct co co;
	const void *bytes;
	size_t len;
	bool ok = true;

	if (!co_unbundle(file->data, file->len, o->chip, &bytes, &len, e) ||
	    !co_parse(&co, bytes, len, e))
		return false;
	const struct isa_chip *chip = isa_chip_of_code(co.chip);
	if (!o->chip && chip)
		mine.target.gen = chip->gen;
	else if (!o->chip)
		ok = err_set(e, ERR_UNSUPPORTED,
			     "the object is for %s, which T0 does not know; "
			     "--chip NAME reads it as another",
			     co.chip);
	if (ok && o->kernel) {
		only = co_kernel_require(&co, o->kernel, e);
		ok = only != NULL;
	}
	/* Without a table of sections the kernels are what is known. */
	for (uint32_t i = 0; ok && i < co.n_kernels; i++)
		if (only ? only == &co.kernels[i] : !co.n_texts)
			dis_kernel(&mine, &co, &co.kernels[i], table);
	if (ok && !only && co.n_texts)
		dis_all(&mine, &co, table);
	co_fini(&co);
	return ok;
}

/* --lines: an answer for each line, errors included; always carries on. */
static void dis_lines(const struct isa_cmd *o, const struct buf *file)
{
	const char *p = file->data, *end = p + file->len;
	struct buf bytes = { 0 };

	flockfile(o->cmd.out);
	while (p < end) {
		const char *nl = memchr(p, '\n', end - p);
		size_t len = (nl ? nl : end) - p;
		struct err e = { 0 };
		struct isa_inst in;
		char text[ISA_TEXT_MAX];
		const char *why;

		buf_reset(&bytes);
		if (!isa_parse_hex(p, len, &bytes, &e)) {
			err_make_visible(e.msg);
			fprintf(o->cmd.out, "error: %s\n", e.msg);
		} else {
			why = isa_decode(&o->target, bytes.data, bytes.len,
					 &in);
			if (!why && in.size_bytes != bytes.len)
				why = "bytes left over";
			if (!why)
				print_inst(o, &o->target, &in, text);
			if (why)
				fputs_unlocked("error: ", o->cmd.out);
			fputs_unlocked(why ? why : text, o->cmd.out);
			putc_unlocked('\n', o->cmd.out);
		}
		p += len + 1;
	}
	funlockfile(o->cmd.out);
	buf_fini(&bytes);
}

static bool dis_file(const struct isa_cmd *o, const char *path,
		     struct table *table, struct err *e)
{
	struct buf file = { 0 }, bytes = { 0 };
	bool ok = file_read(path, 0, &file, e);

	if (!ok)
		return false;
	if (o->lines) {
		dis_lines(o, &file);
	} else if (o->hex) {
		ok = isa_parse_hex(file.data, file.len, &bytes, e);
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

bool isa_cmd_dis(struct cmd *c, struct err *e)
{
	struct table table;
	bool ok = true;

	table_init(&table, "kernel,#address,bytes,text");
	for (int i = 0; ok && i < c->argc; i++)
		ok = dis_file((struct isa_cmd *)c, c->argv[i], &table, e);
	if (ok && c->format != TABLE_TEXT)
		ok = cmd_table(c, &table, e);
	table_fini(&table);
	return ok;
}
