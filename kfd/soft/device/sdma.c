/*
 * kfd/soft/device/sdma.c - SDMA queues: copies, fills, fences and waits.
 *
 * Ring positions are in bytes.  Packets as SDMA 6.0 has them; those that this
 * engine does not know are refused by name.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kfd/soft/device/dev.h"

#define PACKET_MAX_DW 13u
/* Bytes moved before others may change the map. */
#define CHUNK_BYTES (1u << 20)

enum {
	SDMA_NOP = 0,
	SDMA_COPY = 1,
	SDMA_WRITE = 2,
	SDMA_FENCE = 5,
	SDMA_TRAP = 6,
	SDMA_POLL_REGMEM = 8,
	SDMA_ATOMIC = 10,
	SDMA_CONST_FILL = 11,
	SDMA_TIMESTAMP = 13,
	SDMA_GCR = 17,
};
#define SDMA_OP(h) ((h) & 0xff)
#define SDMA_SUB_OP(h) ((h) >> 8 & 0xff)
#define SDMA_COUNT(v) (((v) & 0x3fffffffu) + 1u)

/* A packet in work: its dwords, and how far a long one has come. */
struct packet {
	uint32_t dw[PACKET_MAX_DW];
	uint32_t data_dw; /* that follow in the ring */
};

static uint64_t read_address(const uint32_t *dw)
{
	return dw[0] | (uint64_t)dw[1] << 32;
}

static const char *op_name(uint32_t h);

static enum soft_done T0_PRINTF(3, 4)
	refuse_sdma(struct soft_queue *q, const struct packet *p,
		    const char *fmt, ...)
{
	char why[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	return soft_packet_refuse(q, KFD_EC_PACKET_UNSUPPORTED,
				  KFD_INACTIVE_PACKET_FORMAT, 0,
				  "SDMA packet %s (0x%08x) at byte %" PRIu64
				  ": %s", op_name(p->dw[0]), p->dw[0],
				  q->read_index, why);
}

/* ---------------------------------------------------------- moving data -- */

uint8_t *soft_cp_reach(struct soft_queue *q, uint64_t va, uint64_t *n,
		       uint32_t need, const char *what)
{
	struct soft_range r;

	if (!soft_map_find(q->card, va, &r) || (r.flags & need) != need) {
		soft_cp_fault(q, va, need, what);
		return NULL;
	}
	if (*n > r.size_bytes - (va - r.va))
		*n = r.size_bytes - (va - r.va);
	return r.host + (va - r.va);
}

/* Let MAP and DESTROY_QUEUE in; false: the queue is going away. */
static bool yield_map(struct soft_queue *q)
{
	soft_map_release(q->dev);
	soft_map_hold(q->dev);
	return soft_queue_go(q) != SOFT_STOP;
}

/* False: a page fault, or the queue is going away. */
static bool copy_bytes(struct soft_queue *q, uint64_t from, uint64_t to,
		       uint64_t bytes)
{
	for (uint64_t left = bytes, n; left; left -= n) {
		const uint8_t *s;
		uint8_t *d;

		n = left < CHUNK_BYTES ? left : CHUNK_BYTES;
		s = soft_cp_reach(q, from, &n, SOFT_MEM_READ,
				  "source of a copy");
		d = s ? soft_cp_reach(q, to, &n, SOFT_MEM_WRITE,
				      "destination of a copy") :
			NULL;
		if (!d)
			return false;
		memmove(d, s, n);
		from += n;
		to += n;
		if (left > n && !yield_map(q))
			return false;
	}
	return true;
}

/* Dword i of the packet in work; false: a page fault.  Slice held. */
static bool fetch_sdma_dword(struct soft_queue *q, uint32_t i, uint32_t *out)
{
	const uint64_t at = (q->read_index + i * 4ull) % q->ring_bytes;
	const uint32_t *p = soft_cp_at(q, q->ring_base + at, 4, SOFT_MEM_READ,
				       "ring");

	if (p)
		*out = __atomic_load_n(p, __ATOMIC_RELAXED);
	return p;
}

/* A second destination's address follows the packet. */
static bool is_broadcast(const struct packet *p)
{
	return SDMA_OP(p->dw[0]) == SDMA_COPY && !SDMA_SUB_OP(p->dw[0]) &&
	       p->dw[0] >> 27 & 1;
}

static enum soft_done copy_linear(struct soft_queue *q, const struct packet *p)
{
	const uint64_t from = read_address(&p->dw[3]);
	const uint64_t bytes = SDMA_COUNT(p->dw[1]);
	uint32_t second[2];

	if (!copy_bytes(q, from, read_address(&p->dw[5]), bytes))
		return SOFT_REFUSED;
	if (!is_broadcast(p))
		return SOFT_DONE;
	for (uint32_t i = 0; i < 2; i++)
		if (!fetch_sdma_dword(q, 7 + i, &second[i]))
			return SOFT_REFUSED;
	return copy_bytes(q, from, read_address(second), bytes) ? SOFT_DONE :
								  SOFT_REFUSED;
}

/* One side of a copy of a window; everything in elements, pitches less 1. */
struct window {
	uint64_t va, pitch, slice;
	uint32_t x, y, z;
};

static struct window read_window(const uint32_t *dw)
{
	return (struct window){
		.va = read_address(dw),
		.x = dw[2] & 0x3fff,
		.y = dw[2] >> 16 & 0x3fff,
		.z = dw[3] & 0x1fff,
		.pitch = (dw[3] >> 13) + 1ull,
		.slice = (dw[4] & 0xfffffff) + 1ull,
	};
}

static uint64_t row_address(const struct window *w, uint32_t y, uint32_t z,
			    unsigned log2_bytes)
{
	return w->va + (((w->z + z) * w->slice + (w->y + y) * w->pitch + w->x)
			<< log2_bytes);
}

/* A box out of a box, row by row. */
static enum soft_done copy_window(struct soft_queue *q, const struct packet *p)
{
	const struct window from = read_window(&p->dw[1]),
			    to = read_window(&p->dw[6]);
	const unsigned size = p->dw[0] >> 29;
	const uint64_t row = (uint64_t)((p->dw[11] & 0x3fff) + 1) << size;
	const uint32_t rows = (p->dw[11] >> 16 & 0x3fff) + 1,
		       slices = (p->dw[12] & 0x1fff) + 1;

	if (size > 4)
		return refuse_sdma(q, p, "elements of 2^%u bytes; accepted: "
					 "1..16 bytes", size);
	for (uint32_t z = 0; z < slices; z++)
		for (uint32_t y = 0; y < rows; y++)
			if (!copy_bytes(q, row_address(&from, y, z, size),
					row_address(&to, y, z, size), row) ||
			    (y % 64 == 63 && !yield_map(q)))
				return SOFT_REFUSED;
	return SOFT_DONE;
}

/*
 * Whole dwords: with fill size 2 programs give the count with and without the
 * last dword's bytes, and the engine ignores its low bits.
 */
static enum soft_done const_fill(struct soft_queue *q, const struct packet *p)
{
	const bool dwords = p->dw[0] >> 30 == 2;
	uint64_t to = read_address(&p->dw[1]), left = SDMA_COUNT(p->dw[4]);
	uint32_t value = p->dw[3];

	if (dwords)
		left = (left + 3) & ~3ull;
	for (uint64_t n; left; left -= n) {
		uint8_t *d;

		n = left < CHUNK_BYTES ? left : CHUNK_BYTES;
		d = soft_cp_reach(q, to, &n, SOFT_MEM_WRITE,
				"destination of a fill");
		if (!d)
			return SOFT_REFUSED;
		for (uint64_t i = 0; i < n; i++)
			d[i] = (uint8_t)(value >> (to + i) % 4 * 8);
		to += n;
		if (left > n && !yield_map(q))
			return SOFT_REFUSED;
	}
	return SOFT_DONE;
}

static enum soft_done write_linear(struct soft_queue *q, const struct packet *p)
{
	const uint64_t to = read_address(&p->dw[1]);

	for (uint32_t i = 0; i < p->data_dw; i++) {
		uint32_t *d, v;

		if (!fetch_sdma_dword(q, 4 + i, &v))
			return SOFT_REFUSED;
		d = soft_cp_at(q, to + i * 4ull, 4, SOFT_MEM_WRITE,
			       "destination of a write");
		if (!d)
			return SOFT_REFUSED;
		__atomic_store_n(d, v, __ATOMIC_RELEASE);
	}
	return SOFT_DONE;
}

/* ------------------------------------------------ fences, waits, atomics -- */

static enum soft_done write_fence(struct soft_queue *q, const struct packet *p)
{
	uint32_t *d = soft_cp_at(q, read_address(&p->dw[1]), 4, SOFT_MEM_WRITE,
				 "fence");

	if (!d)
		return SOFT_REFUSED;
	order_release();
	__atomic_store_n(d, p->dw[3], __ATOMIC_SEQ_CST);
	soft_wake_all(q->dev);
	return SOFT_DONE;
}

static enum soft_done raise_trap(struct soft_queue *q, const struct packet *p)
{
	soft_event_interrupt(q->dev, p->dw[1] & 0xfffffff);
	return SOFT_DONE;
}

static enum soft_done poll_regmem(struct soft_queue *q, const struct packet *p)
{
	const unsigned function = p->dw[0] >> 28 & 7;
	const uint32_t *s;

	/* Without bit 31 it polls a register: the flush of HDP, done here. */
	if (!function || !(p->dw[0] >> 31))
		return SOFT_DONE;
	s = soft_cp_at(q, read_address(&p->dw[1]), 4, SOFT_MEM_READ,
		       "polled word");
	if (!s)
		return SOFT_REFUSED;
	return soft_compare(function,
			    __atomic_load_n(s, __ATOMIC_SEQ_CST) & p->dw[4],
			    p->dw[3]) ? SOFT_DONE : SOFT_LATER;
}

/* Codes of the 32-bit forms; the 64-bit ones are 32 higher. */
enum {
	ATOMIC_SWAP = 7,
	ATOMIC_CMPSWAP = 8,
	ATOMIC_ADD = 15,
	ATOMIC_SUB = 16,
	ATOMIC_SMIN = 17,
	ATOMIC_UMIN = 18,
	ATOMIC_SMAX = 19,
	ATOMIC_UMAX = 20,
	ATOMIC_AND = 21,
	ATOMIC_OR = 22,
	ATOMIC_XOR = 23,
	ATOMIC_INC = 24,
	ATOMIC_DEC = 25,
	ATOMIC_64 = 32,
};

/* The new value; `s` are the signed values of both. */
static uint64_t combine_values(unsigned op, uint64_t old, uint64_t src,
			       uint64_t cmp, const int64_t s[2])
{
	switch (op) {
	case ATOMIC_SWAP:
		return src;
	case ATOMIC_CMPSWAP:
		return old == cmp ? src : old;
	case ATOMIC_ADD:
		return old + src;
	case ATOMIC_SUB:
		return old - src;
	case ATOMIC_SMIN:
		return s[0] < s[1] ? old : src;
	case ATOMIC_UMIN:
		return old < src ? old : src;
	case ATOMIC_SMAX:
		return s[0] > s[1] ? old : src;
	case ATOMIC_UMAX:
		return old > src ? old : src;
	case ATOMIC_AND:
		return old & src;
	case ATOMIC_OR:
		return old | src;
	case ATOMIC_XOR:
		return old ^ src;
	case ATOMIC_INC:
		return old >= src ? 0 : old + 1;
	default: /* DEC */
		return !old || old > src ? src : old - 1;
	}
}

static uint64_t apply_atomic32(uint32_t *at, unsigned op, uint32_t src,
			       uint32_t cmp)
{
	uint32_t old = __atomic_load_n(at, __ATOMIC_RELAXED), new;

	do {
		const int64_t s[2] = { (int32_t)old, (int32_t)src };

		new = (uint32_t)combine_values(op, old, src, cmp, s);
	} while (!__atomic_compare_exchange_n(at, &old, new, true,
					      __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
	return old;
}

static uint64_t apply_atomic64(uint64_t *at, unsigned op, uint64_t src,
			       uint64_t cmp)
{
	uint64_t old = __atomic_load_n(at, __ATOMIC_RELAXED), new;

	do {
		const int64_t s[2] = { (int64_t)old, (int64_t)src };

		new = combine_values(op, old, src, cmp, s);
	} while (!__atomic_compare_exchange_n(at, &old, new, true,
					      __ATOMIC_SEQ_CST,
					      __ATOMIC_RELAXED));
	return old;
}

uint32_t soft_cp_atomic_bytes(unsigned code)
{
	return code >= ATOMIC_64 + ATOMIC_SWAP ? 8 : 4;
}

static unsigned atomic_op(unsigned code)
{
	return soft_cp_atomic_bytes(code) == 8 ? code - ATOMIC_64 : code;
}

bool soft_cp_atomic_known(unsigned code)
{
	const unsigned op = atomic_op(code);

	return op == ATOMIC_SWAP || op == ATOMIC_CMPSWAP ||
	       (op >= ATOMIC_ADD && op <= ATOMIC_DEC);
}

uint64_t soft_cp_atomic(void *at, unsigned code, uint64_t src, uint64_t cmp)
{
	const unsigned op = atomic_op(code);

	if (soft_cp_atomic_bytes(code) == 8)
		return apply_atomic64(at, op, src, cmp);
	return apply_atomic32(at, op, (uint32_t)src, (uint32_t)cmp);
}

static enum soft_done run_atomic(struct soft_queue *q, const struct packet *p)
{
	const unsigned code = p->dw[0] >> 25;
	void *at;

	if (!soft_cp_atomic_known(code))
		return refuse_sdma(q, p,
				   "atomic %u; accepted: 7, 8 and 15..25, 32 "
				   "more for 64 bits", code);
	at = soft_cp_at(q, read_address(&p->dw[1]), soft_cp_atomic_bytes(code),
			SOFT_MEM_READ | SOFT_MEM_WRITE,
			"operand of an atomic");
	if (!at)
		return SOFT_REFUSED;
	soft_cp_atomic(at, code, read_address(&p->dw[3]),
			  read_address(&p->dw[5]));
	soft_wake_all(q->dev); /* it may have been a signal */
	return SOFT_DONE;
}

static enum soft_done write_timestamp(struct soft_queue *q,
				      const struct packet *p)
{
	uint64_t *d;

	if (!SDMA_SUB_OP(p->dw[0]))
		return refuse_sdma(q, p, "sub-opcode 0 sets the clock; "
					 "accepted: 1, 2");
	d = soft_cp_at(q, read_address(&p->dw[1]), 8, SOFT_MEM_WRITE,
		       "timestamp");
	if (!d)
		return SOFT_REFUSED;
	__atomic_store_n(d, soft_gpu_clock(q->card), __ATOMIC_RELEASE);
	return SOFT_DONE;
}

static enum soft_done ignore_sdma(struct soft_queue *q, const struct packet *p)
{
	(void)q, (void)p;
	return SOFT_DONE;
}

/* ------------------------------------------------------------ the engine -- */

static const struct op {
	unsigned op, sub_ops; /* a bit per sub-op that is known */
	const char *name;
	uint32_t n_dw;
	enum soft_done (*fn)(struct soft_queue *q, const struct packet *p);
} ops[] = {
	{ SDMA_NOP, 1, "NOP", 1, ignore_sdma },
	{ SDMA_COPY, 1u << 0, "COPY", 7, copy_linear },
	{ SDMA_COPY, 1u << 4, "COPY of a window", 13, copy_window },
	{ SDMA_WRITE, 1, "WRITE", 4, write_linear },
	{ SDMA_FENCE, 1, "FENCE", 4, write_fence },
	{ SDMA_TRAP, 1, "TRAP", 2, raise_trap },
	{ SDMA_POLL_REGMEM, 1, "POLL_REGMEM", 6, poll_regmem },
	{ SDMA_ATOMIC, 1, "ATOMIC", 8, run_atomic },
	{ SDMA_CONST_FILL, 1, "CONST_FILL", 5, const_fill },
	{ SDMA_TIMESTAMP, 7, "TIMESTAMP", 3, write_timestamp },
	{ SDMA_GCR, 3, "GCR", 5, ignore_sdma },
};

static const char *op_name(uint32_t h)
{
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		if (ops[i].op == SDMA_OP(h) &&
		    (SDMA_SUB_OP(h) > 7 ||
		     ops[i].sub_ops >> SDMA_SUB_OP(h) & 1))
			return ops[i].name;
	return "of unknown opcode";
}

/* Those that are executed, for who sent another. */
static enum soft_done refuse_op(struct soft_queue *q, const struct packet *p)
{
	char names[200] = "";
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(ops) && n < sizeof(names); i++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s",
				      i ? ", " : "", ops[i].name);
	return refuse_sdma(q, p, "opcode %u, sub-opcode %u; accepted: %s",
			   SDMA_OP(p->dw[0]), SDMA_SUB_OP(p->dw[0]), names);
}

static const struct op *find_op(uint32_t h)
{
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		if (ops[i].op == SDMA_OP(h) && SDMA_SUB_OP(h) < 8 &&
		    ops[i].sub_ops >> SDMA_SUB_OP(h) & 1)
			return &ops[i];
	return NULL;
}

static enum soft_done run_sdma_packet(struct soft_queue *q, void *arg)
{
	const uint64_t there = (q->stream_end - q->read_index) / 4;
	struct packet p = { 0 };
	const struct op *op;
	enum soft_done done;
	uint64_t *rptr;

	(void)arg;
	if (!fetch_sdma_dword(q, 0, &p.dw[0]))
		return SOFT_REFUSED;
	op = find_op(p.dw[0]);
	if (!op)
		return refuse_op(q, &p);
	for (uint32_t i = 1; i < op->n_dw && i < there; i++)
		if (!fetch_sdma_dword(q, i, &p.dw[i]))
			return SOFT_REFUSED;
	if (op->op == SDMA_NOP)
		p.data_dw = p.dw[0] >> 16 & 0x3fff;
	else if (is_broadcast(&p))
		p.data_dw = 2;
	else if (op->op == SDMA_WRITE)
		p.data_dw = (p.dw[3] & 0xfffff) + 1;
	if (op->n_dw + p.data_dw > there)
		return refuse_sdma(q, &p, "%u dwords, but only %" PRIu64
					  " were submitted",
				   op->n_dw + p.data_dw, there);
	done = op->fn(q, &p);
	if (done != SOFT_DONE)
		return done;
	q->read_index += (op->n_dw + p.data_dw) * 4ull;
	if (!q->rptr_va)
		return SOFT_DONE; /* a ring of the kernel */
	rptr = soft_cp_at(q, q->rptr_va, 8, SOFT_MEM_WRITE, "read index");
	if (!rptr)
		return SOFT_REFUSED;
	__atomic_store_n(rptr, q->read_index, __ATOMIC_RELEASE);
	return SOFT_DONE;
}

enum soft_done soft_sdma_run(struct soft_queue *q)
{
	enum soft_done done;

	q->began_index = q->read_index;
	soft_load_begin(q->card);
	done = soft_cp_step(q, run_sdma_packet, NULL);
	soft_load_end(q->card);
	return done;
}
