/*
 * probes/host/host_step.c - the instructions of host.def, in plain C and as
 * machine code.
 */
#include <math.h>
#include <string.h>

#include "probes/host/host.h"

/* --------------------------------------------------- machine code pieces -- */

/*
 * Each text becomes bytes between two labels of .rodata: once for a chain, and
 * once for each register of the set for a stream.
 */
#define FIRST_G64 "8"
#define FIRST_X	  "4"
#define FIRST_Y	  "4"
#define FIRST_Z	  "4"
#define FIRST_ZF  "4"
#define ALL_G64	  "8,9,10,11,12,13,14,15"
#define ALL_X	  "4,5,6,7,8,9,10,11,12,13,14,15"
#define ALL_Y	  ALL_X
#define ALL_Z	  ALL_X ",16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31"
#define ALL_ZF	  ALL_Z

#define PIECE(label, regs, text)                                       \
	__asm__(".pushsection .rodata\n.hidden " label ", " label      \
		"_end\n.globl " label ", " label "_end\n" label ":\n"  \
		".irp x," regs "\n" text "\n.endr\n" label "_end:\n"   \
		".byte 0xcc\n.popsection\n");
#define HOST2(name, need, set, init, chain, stream, step, stream_step)   \
	PIECE("host_chain_" #name, FIRST_##set, chain)                   \
	PIECE("host_stream_" #name, ALL_##set, stream)                   \
	extern const uint8_t host_chain_##name[], host_chain_##name##_end[], \
		host_stream_##name[], host_stream_##name##_end[];
#define HOST(name, need, set, init, text, step) \
	HOST2(name, need, set, init, text, text, step, step)
#include "probes/host/host.def"
#undef HOST
#undef HOST2

/* ------------------------------------------------------------ the steps -- */

static uint64_t mul_high(uint64_t x, uint64_t y)
{
	return (uint64_t)((unsigned __int128)x * y >> 64);
}

static uint64_t deposit_bits(uint64_t x, uint64_t mask)
{
	uint64_t r = 0;

	for (; mask; mask &= mask - 1, x >>= 1)
		r |= x & 1 ? mask & (0 - mask) : 0;
	return r;
}

static uint64_t extract_bits(uint64_t x, uint64_t mask)
{
	uint64_t r = 0;

	for (uint64_t bit = 1; mask; mask &= mask - 1, bit <<= 1)
		r |= x & mask & (0 - mask) ? bit : 0;
	return r;
}

/* CRC-32C, reflected, of 8 bytes, without inversions. */
static uint64_t crc32c(uint64_t crc, uint64_t data)
{
	uint64_t r = (crc & 0xffffffff) ^ data;

	for (int i = 0; i < 64; i++)
		r = r >> 1 ^ (r & 1 ? 0x82f63b78u : 0);
	return r;
}

/* Word `part` of the product of polynomials over GF(2). */
static uint64_t multiply_carryless(uint64_t x, uint64_t y, int part)
{
	uint64_t lo = 0, hi = 0;

	for (int i = 0; i < 64; i++)
		if (y >> i & 1) {
			lo ^= x << i;
			hi ^= i ? x >> (64 - i) : 0;
		}
	return part ? hi : lo;
}

static uint64_t sum_differences(const uint8_t x[8], const uint8_t y[8])
{
	uint64_t sum = 0;

	for (int i = 0; i < 8; i++)
		sum += (uint64_t)(x[i] > y[i] ? x[i] - y[i] : y[i] - x[i]);
	return sum;
}

static uint32_t dot4(const uint8_t x[4], const int8_t y[4])
{
	int32_t sum = 0;

	for (int i = 0; i < 4; i++)
		sum += x[i] * y[i];
	return (uint32_t)sum;
}

typedef uint8_t T_u8;
typedef uint16_t T_u16;
typedef uint32_t T_u32;
typedef uint64_t T_u64;
typedef int32_t T_i32;
typedef int64_t T_i64;
typedef float T_f32;
typedef double T_f64;

#define EACH(t, ...)                                              \
	{                                                         \
		const union host_reg X = *reg, A = s->va,         \
				     B = s->vb;                   \
		(void)A, (void)B;                                 \
		for (int i = 0; i < 64 / (int)sizeof(T_##t); i++) \
			reg->t[i] = (T_##t)(__VA_ARGS__);         \
	}
#define R(t, ...) EACH(t, __VA_ARGS__)
#define PERM(t, j) EACH(t, X.t[j])
#define E(t, e)                                                           \
	{                                                                 \
		for (int i = 0; i < 64 / (int)sizeof(T_##t); i++) {       \
			const T_##t x = reg->t[i], a = s->va.t[i],        \
				    b = s->vb.t[i], k = s->vk.t[i];       \
			(void)a, (void)b, (void)k, (void)x;               \
			reg->t[i] = (T_##t)(e);                           \
		}                                                         \
	}
#define G(e)                                                        \
	{                                                           \
		const uint64_t x = reg->u64[0], a = s->a, b = s->b; \
		(void)a, (void)b, (void)x;                          \
		reg->u64[0] = (e);                                  \
	}
#define KEEP { (void)reg, (void)s; }
#define LOW64 { (void)s; memset(&reg->u64[1], 0, 8); }
#define LOAD(at, bytes)                                          \
	{                                                                \
		memset(reg, 0, sizeof(*reg));                    \
		memcpy(reg, (const uint8_t *)s->data + at, bytes); \
	}
/* The register stays; memory is compared in host_state_check(). */
#define STORE(bytes) { (void)s, (void)reg; }

#define STEP(fn, ...) \
	static void fn(union host_reg *reg, const struct host_state *s) \
	__VA_ARGS__
#define HOST2(name, need, set, init, chain, stream, step, stream_step) \
	STEP(chain_##name, step)                                       \
	STEP(stream_##name, stream_step)
#define HOST(name, need, set, init, text, step) \
	STEP(chain_##name, step)                \
	STEP(stream_##name, step)
#include "probes/host/host.def"
#undef HOST
#undef HOST2

#define ROW(id, need_, set_, init_)                                     \
	{ .name = #id, .need = HOST_##need_, .set = HOST_##set_,        \
	  .init = #init_[0], .step = chain_##id,                        \
	  .stream_step = stream_##id,                                   \
	  .chain = host_chain_##id, .chain_end = host_chain_##id##_end, \
	  .stream = host_stream_##id,                                   \
	  .stream_end = host_stream_##id##_end },
#define HOST2(name, need, set, init, chain, stream, step, stream_step) \
	ROW(name, need, set, init)
#define HOST(name, need, set, init, text, step) ROW(name, need, set, init)
static const struct host_inst insts[] = {
#include "probes/host/host.def"
};
#undef HOST
#undef HOST2

/* Bytes that a row's stream stores, 0 for the others. */
#undef STORE
#undef LOAD
#undef KEEP
#undef LOW64
#undef G
#undef E
#undef R
#undef PERM
#define STORE(bytes) (bytes)
#define LOAD(at, bytes) 0
#define KEEP 0
#define LOW64 0
#define G(e) 0
#define E(t, ...) 0
#define R(t, ...) 0
#define PERM(t, j) 0
#define HOST2(name, need, set, init, chain, stream, step, stream_step) \
	stream_step,
#define HOST(name, need, set, init, text, step) step,
static const uint8_t stored_bytes[] = {
#include "probes/host/host.def"
};

const struct host_inst *host_insts(size_t *n)
{
	*n = ARRAY_SIZE(insts);
	return insts;
}

const struct host_inst *host_inst_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(insts); i++)
		if (!strcmp(insts[i].name, name))
			return &insts[i];
	return NULL;
}

int host_set_size(enum host_set set)
{
	static const int size[] = { 8, 12, 12, 28, 28 };

	return size[set];
}

/* ---------------------------------------------------- start and result -- */

static void fill_floats(struct host_state *s)
{
	for (int i = 0; i < 16; i++) {
		s->vx.f32[i] = 1.0f + (float)i / 64;
		s->va.f32[i] = 1.0f + (float)(i + 1) * 0x1p-23f;
		s->vb.f32[i] = (float)(i + 1) * 0x1p-10f;
	}
}

static void fill_doubles(struct host_state *s)
{
	for (int i = 0; i < 8; i++) {
		s->vx.f64[i] = 1.0 + i / 64.0;
		s->va.f64[i] = 1.0 + (i + 1) * 0x1p-52;
		s->vb.f64[i] = (i + 1) * 0x1p-10;
	}
}

static void fill_bits(struct host_state *s)
{
	uint64_t r = 88172645463325252ull;

	for (int i = 0; i < 8; i++) {
		s->vx.u64[i] = random_next(&r);
		s->va.u64[i] = random_next(&r);
		s->vb.u64[i] = random_next(&r);
	}
}

#define SELF_AT 3072 /* the cell that points to itself */
#define PATTERN_AT 256

void host_state_init(struct host_state *s, const struct host_inst *i,
		     uint8_t *data)
{
	*s = (struct host_state){ .data = (uint64_t)data,
				  .a = 0x9e3779b97f4a7c15ull,
				  .b = 0x5851f42d4c957f2dull,
				  .c = 5,
				  .x = 0x0123456789abcdefull };
	memset(data, 0, HOST_DATA_BYTES);
	for (int k = PATTERN_AT; k < HOST_STORES_AT; k++)
		data[k] = (uint8_t)(k * 167 + 13);
	const uint64_t self = (uint64_t)data + SELF_AT;
	memcpy(data + SELF_AT, &self, sizeof(self));
	if (i->init == 'P')
		s->x = self;
	if (i->init == 'N')
		s->x = 0;
	if (i->init == 'F')
		fill_floats(s);
	else if (i->init == 'D')
		fill_doubles(s);
	else if (i->init == 'I')
		fill_bits(s);
	for (uint32_t k = 0; k < 16; k++)
		s->vk.u32[k] = (k + 3) % 16;
}

static bool is_stored(const struct host_state *s, const struct host_inst *i)
{
	const uint8_t bytes = stored_bytes[i - insts];
	const int first = i->set == HOST_G64 ? 8 : 4; /* register */
	const uint8_t *at = (const uint8_t *)s->data + HOST_STORES_AT +
			    64 * first;

	return !memcmp(at, i->set == HOST_G64 ? (const void *)&s->a : &s->va,
		       bytes);
}

bool host_state_check(const struct host_state *s, const struct host_inst *i,
		      const struct host_inst *with, bool stream,
		      uint64_t steps)
{
	static const uint8_t bytes[] = { 8, 16, 32, 64, 64 };
	union host_reg want = s->vx;
	const union host_reg got =
		i->set == HOST_G64 ? (union host_reg){ .u64[0] = s->out } :
				     s->vout;

	if (i->set == HOST_G64)
		want.u64[0] = s->x;
	for (uint64_t n = 0; n < steps; n++) {
		(stream ? i->stream_step : i->step)(&want, s);
		if (with)
			with->stream_step(&want, s);
	}
	return !memcmp(&got, &want, bytes[i->set]) &&
	       (!stream || is_stored(s, i));
}
