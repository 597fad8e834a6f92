/*
 * Every instruction of host.def computes what its C says, as a chain and as a
 * stream, in loops of several lengths; and a loop that computes something else
 * is noticed.
 */
#include <stdlib.h>
#include <string.h>

#include "probes/host/host.h"
#include "tests/tap.h"

static uint8_t *data;

static bool run(struct host_code *c, const struct host_inst *i, bool stream,
		unsigned copies, uint64_t iterations, uint64_t steps)
{
	const uint8_t *from = stream ? i->stream : i->chain,
		      *to = stream ? i->stream_end : i->chain_end;
	struct host_state s;
	struct err e = { 0 };
	host_loop_fn *f = host_code_loop(c, i->need, from, (size_t)(to - from),
					 NULL, 0, copies);

	if (!f || !host_code_seal(c, &e))
		return false;
	host_state_init(&s, i, data);
	f(&s, iterations);
	return host_state_check(&s, i, NULL, stream, steps);
}

static bool once(const struct host_inst *i, bool stream, unsigned copies,
		 uint64_t iterations, uint64_t steps)
{
	struct err e = { 0 };
	struct host_code *c = host_code_new(&e);
	const bool good = run(c, i, stream, copies, iterations, steps);

	host_code_free(c);
	return good;
}

static void test_inst(const struct host_inst *i)
{
	if (!host_has(i->need)) {
		skip("%s: this processor lacks it", i->name);
		return;
	}
	if (i->chain != i->chain_end) {
		ok(once(i, false, 1, 1, 1), "%s: one step", i->name);
		ok(once(i, false, 7, 13, 91), "%s: a chain", i->name);
	}
	if (i->stream != i->stream_end)
		ok(once(i, true, 3, 11, 33), "%s: a stream", i->name);
}

/* Whose chain's value changes with every step. */
static void test_notices(void)
{
	static const char *const name[] = { "add_r64", "imul_r64", "mulps_x",
					    "vaddps_y", "vpaddd_y",
					    "vfmadd231pd_z" };

	for (size_t k = 0; k < ARRAY_SIZE(name); k++) {
		const struct host_inst *i = host_inst_find(name[k]);

		if (!host_has(i->need)) {
			skip("%s: this processor lacks it", i->name);
			continue;
		}
		ok(!once(i, false, 7, 13, 90), "%s: a step too many is seen",
		   i->name);
		ok(!once(i, true, 3, 11, 34),
		   "%s: one too few in a stream, too", i->name);
	}
	const struct host_inst *store = host_inst_find("mov_m_r64");
	struct host_state s;

	host_state_init(&s, store, data);
	s.out = s.x;
	ok(!host_state_check(&s, store, NULL, true, 1),
	   "a store that did not happen is seen");
}

/* What host_arch_of() makes of processors that are not here. */
static void test_arch(void)
{
	char why[160];
	struct host_facts f = { .vendor = "AuthenticAMD", .family = 0x19,
				.model = 1 };

	is_u64(host_arch_of(&f, why), HOST_ZEN3, "Zen 3");
	f.avx512f = true;
	is_u64(host_arch_of(&f, why), HOST_ZEN4, "Zen 4");
	f.family = 0x17;
	is_u64(host_arch_of(&f, why), HOST_OTHER, "Zen 2 is not known");
	f = (struct host_facts){ .vendor = "GenuineIntel", .family = 6,
				 .model = 0x55, .avx512f = true };
	is_u64(host_arch_of(&f, why), HOST_SKX, "Skylake-X");
	f.gfni = true;
	is_u64(host_arch_of(&f, why), HOST_ICX, "Ice Lake");
	f.avx512_fp16 = f.amx = true;
	f.l1i_bytes = 32768;
	is_u64(host_arch_of(&f, why), HOST_GLC, "Sapphire Rapids");
	f.l1i_bytes = 65536;
	f.model = 167;
	is_u64(host_arch_of(&f, why), HOST_RWC,
	       "Granite Rapids under a false model number");
	has_str(why, "AMX", "with the reason");
	f = (struct host_facts){ .vendor = "GenuineIntel", .family = 6,
				 .model = 0x97 };
	is_u64(host_arch_of(&f, why), HOST_GLC, "Alder Lake");
	f.model = 0x3c;
	is_u64(host_arch_of(&f, why), HOST_OTHER, "Haswell is not known");
}

static void test_plateaus(void)
{
	static const struct host_chase c[] = {
		{ 4096, 1.0 },	 { 8192, 1.01 },  { 16384, 1.0 },
		{ 32768, 1.3 },	 { 65536, 4.0 },  { 131072, 4.1 },
		{ 262144, 4.2 }, { 524288, 9.0 }, { 1048576, 20.0 },
		{ 2097152, 21 }, { 4194304, 20 },
	};
	uint64_t at[8];
	double ns[8];

	is_u64((uint64_t)host_plateaus(c, ARRAY_SIZE(c), at, ns, 8), 3,
	       "three plateaus of a curve");
	is_u64(at[0], 16384, "the first ends at 16 KiB");
	is_u64(at[1], 262144, "the second at 256 KiB");
	is_f64(ns[1], 4.0, "at 4 ns");
	is_u64(at[2], 4194304, "the third with the curve");
}

int main(void)
{
	size_t n;
	const struct host_inst *i = host_insts(&n);

	data = aligned_alloc(4096, HOST_DATA_BYTES);
	ok(n >= 120, "there are instructions: %zu", n);
	for (size_t k = 0; k < n; k++)
		test_inst(&i[k]);
	test_notices();
	test_arch();
	test_plateaus();
	free(data);
	return plan_done();
}
