/*
 * kfd/soft/device/discovery.c - ip_discovery of the PCI function: which blocks
 * the chip is made of, their versions, and where their registers begin.
 *
 *	ip_discovery/die/0/HW_ID/INSTANCE/{hw_id,major,minor,...}
 *
 * with a link to each HW_ID under the block's name.  The versions of blocks
 *that compute depends on are the chip's (isa/tables/chips.def), those of the
 *others Navi 31's (linux/drivers/gpu/drm/amd/amdgpu/amdgpu_discovery.c); bases
 *are those of the family's register headers (sienna_cichlid_ip_offset.h).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kfd/soft/device/dev.h"

#define BASES_MAX 5

/* Whose version: the row's, or that of the chip. */
enum version { OWN, GC, SDMA, MP, VCN };

static const struct ip {
	uint16_t hw_id;
	const char *name; /* of the link */
	enum version whose;
	uint8_t own[3];	 /* major, minor, revision */
	uint8_t engines; /* of SDMA, that the chip must have */
	uint8_t n_bases;
	uint32_t base[BASES_MAX]; /* dwords */
} ips[] = {
	{ 1, "MP1", MP, { 0 }, 0, 5,
	  { 0x16000, 0xdc0000, 0xe00000, 0xe40000, 0x243fc00 } },
	{ 11, "GC", GC, { 0 }, 0, 4, { 0x1260, 0xa000, 0x1c000, 0x2402c00 } },
	{ 12, "UVD", VCN, { 0 }, 0, 3, { 0x7800, 0x7e00, 0x2403000 } },
	{ 34, "MMHUB", OWN, { 3, 0, 0 }, 0, 2, { 0x1a000, 0x2408800 } },
	{ 35, "ATHUB", OWN, { 3, 0, 0 }, 0, 2, { 0xc00, 0x2408c00 } },
	{ 40, "OSSSYS", OWN, { 6, 0, 0 }, 0, 2, { 0x10a0, 0x240a000 } },
	{ 41, "HDP", OWN, { 6, 0, 0 }, 0, 2, { 0xf20, 0x240a400 } },
	{ 42, "SDMA0", SDMA, { 0 }, 1, 4,
	  { 0x1260, 0xa000, 0x1c000, 0x2402c00 } },
	{ 43, "SDMA1", SDMA, { 0 }, 2, 4,
	  { 0x1260, 0xa000, 0x1c000, 0x2402c00 } },
	{ 46, "DF", OWN, { 4, 3, 0 }, 0, 2, { 0x7000, 0x240b800 } },
	{ 68, "SDMA2", SDMA, { 0 }, 3, 4,
	  { 0x1260, 0xa000, 0x1c000, 0x2402c00 } },
	{ 69, "SDMA3", SDMA, { 0 }, 4, 4,
	  { 0x1260, 0xa000, 0x1c000, 0x2402c00 } },
	{ 108, "NBIF", OWN, { 4, 3, 0 }, 0, 5,
	  { 0, 0x14, 0xd20, 0x10400, 0x241b000 } },
	{ 255, "MP0", MP, { 0 }, 0, 5,
	  { 0x16000, 0xdc0000, 0xe00000, 0xe40000, 0x243fc00 } },
};

static bool has_block(const struct isa_chip *chip, const struct ip *ip)
{
	return chip->sdma_engines >= ip->engines;
}

static unsigned count_instances(const struct isa_chip *chip,
				const struct ip *ip)
{
	return ip->whose == VCN ? chip->n_vcn : 1;
}

/* Major, minor, revision. */
static void block_version(const struct isa_chip *chip, const struct ip *ip,
			  unsigned out[3])
{
	const uint8_t *gfx = isa_gen_info(chip->gen)->gfx_ip;
	const uint8_t gc[3] = { gfx[0], gfx[1], chip->gc_rev };
	const uint8_t *const of[] = {
		[OWN] = ip->own,	[GC] = gc,
		[SDMA] = chip->sdma_ip, [MP] = chip->mp_ip,
		[VCN] = chip->vcn_ip,
	};

	for (int i = 0; i < 3; i++)
		out[i] = of[ip->whose][i];
}

enum attribute {
	HW_ID, NUM_INSTANCE, MAJOR, MINOR, REVISION, HARVEST, NUM_BASES,
	BASE_ADDR, ATTRIBUTES,
};
static const char *const attributes[ATTRIBUTES] = {
	[HW_ID] = "hw_id",
	[NUM_INSTANCE] = "num_instance",
	[MAJOR] = "major",
	[MINOR] = "minor",
	[REVISION] = "revision",
	[HARVEST] = "harvest",
	[NUM_BASES] = "num_base_addresses",
	[BASE_ADDR] = "base_addr",
};

/* A place below ip_discovery. */
struct place {
	unsigned depth; /* 0 itself, 1 die, 2 die/0, 3 a block ... 5 a file */
	const struct ip *ip;
	unsigned instance;
	enum attribute attribute;
};

static bool read_part(const struct isa_chip *chip, struct place *p,
		      const char *part)
{
	unsigned n = 0;
	char text[16];

	switch (p->depth) {
	case 0:
		return !strcmp(part, "die");
	case 1:
		return !strcmp(part, "0");
	case 2:
		for (; n < ARRAY_SIZE(ips); n++) {
			snprintf(text, sizeof(text), "%u", ips[n].hw_id);
			if (has_block(chip, &ips[n]) &&
			    (!strcmp(part, text) || !strcmp(part, ips[n].name)))
				break;
		}
		p->ip = &ips[n];
		return n < ARRAY_SIZE(ips);
	case 3:
		for (; n < count_instances(chip, p->ip); n++) {
			snprintf(text, sizeof(text), "%u", n);
			if (!strcmp(part, text))
				break;
		}
		p->instance = n;
		return n < count_instances(chip, p->ip);
	case 4:
		while (n < ATTRIBUTES && strcmp(part, attributes[n]))
			n++;
		p->attribute = (enum attribute)n;
		return n < ATTRIBUTES;
	default:
		return false;
	}
}

/* `path` is "" or begins with a slash; false: there is no such place. */
static bool find_place(const struct isa_chip *chip, const char *path,
		       struct place *p)
{
	char part[32];

	*p = (struct place){ 0 };
	while (*path) {
		const size_t n = strcspn(++path, "/");

		if (n >= sizeof(part))
			return false;
		memcpy(part, path, n);
		part[n] = '\0';
		if (!read_part(chip, p, part))
			return false;
		p->depth++;
		path += n;
	}
	return true;
}

int soft_discovery_read(const struct isa_chip *chip, const char *path,
			struct buf *out)
{
	struct place p;
	const struct ip *ip;
	unsigned version[3];

	if (!find_place(chip, path, &p))
		return -ENOENT;
	if (p.depth < 5)
		return -EISDIR;
	ip = p.ip;
	if (p.attribute == HARVEST) {
		buf_adds(out, "0x0\n");
		return 0;
	}
	if (p.attribute == BASE_ADDR) {
		for (unsigned i = 0; i < ip->n_bases; i++)
			buf_printf(out, "0x%08X\n", ip->base[i]);
		return 0;
	}
	block_version(chip, ip, version);
	const unsigned value[] = {
		[HW_ID] = ip->hw_id,
		[NUM_INSTANCE] = p.instance,
		[MAJOR] = version[0],
		[MINOR] = version[1],
		[REVISION] = version[2],
		[HARVEST] = 0,
		[NUM_BASES] = ip->n_bases,
	};
	buf_printf(out, "%u\n", value[p.attribute]);
	return 0;
}

int soft_discovery_list(const struct isa_chip *chip, const char *path,
			struct buf *out)
{
	struct place p;

	if (!find_place(chip, path, &p))
		return -ENOENT;
	switch (p.depth) {
	case 0:
		buf_adds(out, "die\n");
		break;
	case 1:
		buf_adds(out, "0\n");
		break;
	case 2:
		for (size_t i = 0; i < ARRAY_SIZE(ips); i++)
			if (has_block(chip, &ips[i]))
				buf_printf(out, "%u\n%s\n", ips[i].hw_id,
					   ips[i].name);
		break;
	case 3:
		for (unsigned i = 0; i < count_instances(chip, p.ip); i++)
			buf_printf(out, "%u\n", i);
		break;
	case 4:
		for (size_t i = 0; i < ATTRIBUTES; i++)
			buf_printf(out, "%s\n", attributes[i]);
		break;
	default:
		return -ENOTDIR;
	}
	return 0;
}

bool soft_discovery_link(const struct isa_chip *chip, const char *path,
			 unsigned *hw_id)
{
	const char *name = strrchr(path, '/');
	struct place p;

	if (!find_place(chip, path, &p) || p.depth != 3 ||
	    strcmp(name + 1, p.ip->name))
		return false;
	*hw_id = p.ip->hw_id;
	return true;
}
