/*
 * The chips in software: what each shows of itself, against figures that others
 * print of such boards (rocminfo, the kernel's tables), and what its registers
 * let it hold.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/code/code.h"
#include "kfd/abi.h"
#include "kfd/kfd.h"
#include "kfd/soft/soft.h"
#include "tests/tap.h"

/* From rocminfo of such boards, and LLVM's registers of a SIMD. */
static const struct row {
	const char *spec, *name;
	unsigned device_id, cus, engines, arrays, l2_kib, mall_kib, vgprs;
} rows[] = {
	{ "soft", "Radeon RX 7900 XTX", 0x744c, 96, 6, 2, 6144, 98304, 1536 },
	{ "soft:gfx1010", "Radeon RX 5700 XT", 0x731f, 40, 2, 2, 4096, 0, 1024 },
	{ "soft:gfx1030", "Radeon RX 6900 XT", 0x73bf, 80, 4, 2, 4096, 131072,
	  1024 },
	{ "soft:gfx1101", "Radeon RX 7800 XT", 0x747e, 60, 3, 2, 4096, 65536,
	  1536 },
	{ "soft:gfx1102", "Radeon RX 7600", 0x7480, 32, 2, 2, 2048, 32768,
	  1024 },
	{ "soft:gfx1103", "Radeon 780M", 0x15bf, 12, 1, 2, 2048, 0, 1024 },
	{ "soft:gfx1150", "Radeon 890M", 0x150e, 16, 1, 2, 2048, 0, 1024 },
	{ "soft:gfx1151", "Radeon 8060S", 0x1586, 40, 2, 2, 2048, 32768, 1536 },
	{ "soft:gfx1200", "Radeon RX 9060 XT", 0x7590, 32, 2, 2, 4096, 32768,
	  1536 },
	{ "soft:gfx1201", "Radeon RX 9070 XT", 0x7550, 64, 4, 2, 8192, 65536,
	  1536 },
};

static uint64_t find_number(const char *text, const char *name)
{
	const char *at = text;
	const size_t n = strlen(name);

	while (at && (strncmp(at, name, n) || at[n] != ' '))
		at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL;
	return at ? strtoull(at + n, NULL, 10) : UINT64_MAX;
}

/* KiB of the caches of a level that all CUs share. */
static unsigned cache_kib(struct kfd_driver *d, unsigned count, unsigned level)
{
	unsigned kib = 0;

	for (unsigned i = 0; i < count; i++) {
		struct buf b = { 0 };
		char path[128];

		snprintf(path, sizeof(path),
			 "/sys/class/kfd/kfd/topology/"
			 "nodes/1/caches/%u/properties",
			 i);
		if (!d->read_file(d, path, &b) &&
		    find_number(b.data, "level") == level)
			kib = (unsigned)find_number(b.data, "size");
		buf_fini(&b);
	}
	return kib;
}

static void test_tree(const struct row *r)
{
	const char *path = "/sys/class/kfd/kfd/topology/nodes/1/properties";
	struct soft_options o = { .threads = 1 };
	struct kfd_topology t = { 0 };
	struct buf b = { 0 };
	struct err e = { 0 };
	const char *rest;
	unsigned caches;

	if (!ok(soft_spec_parse(r->spec, &o, &rest, &e), "%s is understood",
		r->spec))
		return;
	struct kfd_driver *d = kfd_soft_new(&o, &e);
	is_i64(d->read_file(d, path, &b), 0, "%s shows properties", r->spec);
	is_u64(find_number(b.data, "simd_count"), 2 * r->cus, "SIMDs");
	is_u64(find_number(b.data, "device_id"), r->device_id, "device id");
	is_u64(find_number(b.data, "array_count"), r->engines * r->arrays,
	       "arrays");
	is_u64(find_number(b.data, "cu_per_simd_array"),
	       r->cus / r->engines / r->arrays, "CUs of an array");
	ok(kfd_topology_read(d, &t, &e) && t.n_nodes == 2,
	   "its topology is read (%s)", e.msg);
	is_u64(t.node[1].l0_kib,
	       isa_chip_of_target(t.node[1].gfx_target)->gen < ISA_GFX11 ? 16 :
									   32,
	       "a CU's cache of vectors");
	is_u64(t.node[1].l1s_kib, 16, "of scalars");
	is_u64(t.node[1].l1i_kib, 32, "of instructions");
	kfd_topology_fini(&t);
	caches = (unsigned)find_number(b.data, "caches_count");
	is_u64(cache_kib(d, caches, 2), r->l2_kib, "L2");
	is_u64(cache_kib(d, caches, 3), r->mall_kib, "L3");
	buf_fini(&b);
	d->free(d);
}

static void test_opened(const struct row *r)
{
	struct err e = { 0 };
	struct kfd_dev *dev;

	if (!ok(kfd_open(&dev, r->spec, &e), "%s is opened (%s)", r->spec,
		e.msg))
		return;
	const struct kfd_info *i = kfd_info(dev);
	is_str(i->name, r->name, "its board");
	is_str(i->spec, r->spec, "its spec");
	is_u64(i->vgprs_per_simd, r->vgprs, "registers of a SIMD");
	is_u64(i->vgpr_granule,
	       strcmp(r->spec, "soft:gfx1010") ? r->vgprs / 64 : 8,
	       "and their granule");
	kfd_close(dev);
}

/* The kernel's sizes of save areas depend on registers, too. */
static void test_table(void)
{
	for (size_t i = 0; isa_chip_at(i); i++) {
		const struct isa_chip *c = isa_chip_at(i);
		const struct kfd_cwsr s = kfd_cwsr_sizes(64, c->gfx_target, 1);
		const uint32_t waves = s.cwsr_bytes - s.ctl_stack_bytes;
		char name[16];

		kfd_gfx_name(c->gfx_target, name);
		is_str(c->name, name, "%s is what the kernel's number says",
		       c->name);
		if (c->device_id)
			is_u64(waves,
			       64 * (c->vgprs * 256 + 0x4000 + 0x10000 +
				     0x1000),
			       "%s: its save area holds its registers",
			       c->name);
	}
	is_u64(isa_chip_of_target(110002)->vgprs, 1024, "found by number");
	ok(!isa_chip_of_target(90010), "a number that nobody knows");
}

static void test_list(void)
{
	struct kfd_found *found;
	struct err e = { 0 };
	int n, chips = 0;

	ok(kfd_list(NULL, &found, &n, &e) && kfd_list_chips(&found, &n, &e),
	   "devices and chips are listed (%s)", e.msg);
	for (int i = 0; i < n; i++)
		for (size_t k = 0; k < ARRAY_SIZE(rows); k++)
			chips += found[i].usable &&
				 !strcmp(found[i].spec, rows[k].spec);
	is_i64(chips, ARRAY_SIZE(rows), "each chip once, and usable");
	free(found);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		test_tree(&rows[i]);
		test_opened(&rows[i]);
	}
	test_table();
	test_list();
	return plan_done();
}
