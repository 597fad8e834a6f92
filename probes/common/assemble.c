/*
 * probes/common/assemble.c - kernels of probes, written for gfx11, as code of
 * any chip.
 *
 * What a generation has other instructions for stands in a table here, what it
 * only calls by another name comes from isa/tables.
 */
#include <string.h>

#include "isa/asm/asm.h"
#include "probes/common/common.h"

/* Lines, or their beginnings and ends; NULL: as on gfx11. */
static const struct other {
	const char *gfx11, *gfx10, *gfx12;
} lines[] = {
	{ "s_waitcnt lgkmcnt(0)", NULL, "s_wait_dscnt 0x0\ns_wait_kmcnt 0x0" },
	{ "s_waitcnt vmcnt(0)", NULL, "s_wait_loadcnt 0x0" },
	{ "s_waitcnt vmcnt(0) lgkmcnt(0) expcnt(0)", NULL,
	  "s_wait_loadcnt 0x0\ns_wait_dscnt 0x0\ns_wait_kmcnt 0x0\n"
	  "s_wait_expcnt 0x0" },
	{ "s_waitcnt_vscnt null, 0x0", NULL, "s_wait_storecnt 0x0" },
	{ "s_waitcnt_depctr 0xfff", NULL, "s_wait_alu 0xfff" },
	{ "s_barrier", NULL, "s_barrier_signal -1\ns_barrier_wait -1" },
}, parts[] = {
	{ "hwreg(HW_REG_SHADER_CYCLES,", NULL,
	  "hwreg(HW_REG_SHADER_CYCLES_LO," },
	{ " glc", NULL, " th:TH_ATOMIC_RETURN" },
	{ "s_sendmsg_rtn_b64 ", "s_memrealtime ", NULL },
	{ ", sendmsg(MSG_RTN_GET_REALTIME)", "", NULL },
};

static const char *in_gen(const struct other *o, enum isa_gen gen)
{
	return gen < ISA_GFX11 ? o->gfx10 : gen >= ISA_GFX12 ? o->gfx12 : NULL;
}

/* Every part that the generation writes otherwise. */
static void replace_parts(enum isa_gen gen, const char *line, struct buf *out)
{
	while (*line) {
		size_t i = 0;

		while (i < ARRAY_SIZE(parts) &&
		       (!in_gen(&parts[i], gen) ||
			strncmp(line, parts[i].gfx11, strlen(parts[i].gfx11))))
			i++;
		if (i < ARRAY_SIZE(parts)) {
			buf_adds(out, in_gen(&parts[i], gen));
			line += strlen(parts[i].gfx11);
		} else {
			buf_addc(out, *line++);
		}
	}
}

static void add_line(enum isa_gen gen, const char *line, struct buf *out)
{
	const size_t n = strcspn(line, " ");
	char word[64];

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		if (!strcmp(line, lines[i].gfx11) && in_gen(&lines[i], gen)) {
			buf_adds(out, in_gen(&lines[i], gen));
			return;
		}
	snprintf(word, sizeof(word), "%.*s", (int)n, line);
	const enum isa_op op = isa_op_find(word);

	if (op && isa_opcode(gen, op, false) >= 0) {
		buf_adds(out, isa_op_name(gen, op));
		line += n;
	}
	replace_parts(gen, line, out);
}

void probe_text(enum isa_gen gen, const char *text, struct buf *out)
{
	struct buf line = { 0 };

	while (*text) {
		const size_t n = strcspn(text, "\n");

		buf_reset(&line);
		buf_add(&line, text, n);
		buf_addc(&line, '\0');
		if (gen == ISA_GFX11 || gen == ISA_GFX11_5)
			buf_adds(out, line.data);
		else
			add_line(gen, line.data, out);
		buf_addc(out, '\n');
		text += n + (text[n] == '\n');
	}
	buf_fini(&line);
}

bool probe_assemble(const char *chip, const char *text, struct buf *code,
		    struct err *e)
{
	const struct isa_asm_options options = { .chip = chip, .wave = 32 };
	enum isa_gen gen = ISA_GFX11;
	struct isa_object o;
	struct buf own = { 0 };

	if (!isa_chip_parse(chip, &gen))
		return err_set(e, ERR_UNSUPPORTED, "%s: its code is not known",
			       chip);
	probe_text(gen, text, &own);
	isa_object_init(&o);
	const bool good =
		isa_assemble(&o, "probe", own.data, own.len, &options, e);
	const int at = good ? isa_object_section(&o, ".text", 5, 0, 0) : 0;
	if (good) {
		const struct buf *d = &isa_section_at(&o, at)->data;

		buf_add(code, d->data, d->len);
	}
	isa_object_fini(&o);
	buf_fini(&own);
	return good;
}

enum isa_gen probe_gen(struct kfd_dev *dev)
{
	enum isa_gen gen = ISA_GFX11;

	(void)isa_chip_parse(kfd_info(dev)->gfx, &gen);
	return gen;
}

bool probe_load(struct kfd_dev *dev, const char *text,
		const struct kfd_raw_desc *d, const struct kfd_kernel **k,
		struct err *e)
{
	struct buf code = { 0 };
	const bool good = probe_assemble(kfd_info(dev)->gfx, text, &code, e) &&
			  kfd_code_raw(dev, code.data, code.len, d, k, e);

	buf_fini(&code);
	return good;
}

uint32_t probe_rsrc1(enum isa_gen gen, uint32_t vgprs)
{
	/* Clamp NaN and IEEE mode, which gfx12 has other bits for. */
	const uint32_t modes = gen < ISA_GFX12 ? 1u << 21 | 1u << 23 : 0;

	return (vgprs / 8 - 1) | 0xfu << 16 | modes | 1u << 29 | 1u << 30;
}
