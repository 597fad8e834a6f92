/*
 * compiler/gemm/lds.c - the layout of tiles in LDS, and its bank conflicts.
 */
#include "compiler/gemm/gemm_int.h"

#include <string.h>

enum { BANKS = 32, BANK_BYTES = 4, PAD_BYTES = 16, PADS = 8 };

/* Lanes that are served together fill the banks once. */
static uint32_t lanes_at_once(uint32_t bytes)
{
	return bytes < BANK_BYTES ? BANKS : BANKS * BANK_BYTES / bytes;
}

/* What is aligned meets in all of its banks or in none: they count as one. */
static uint32_t unit_bytes(const uint32_t *addr, uint32_t lanes, uint32_t bytes)
{
	uint32_t all = bytes;

	for (uint32_t l = 0; l < lanes; l++)
		all |= addr[l];
	const uint32_t aligned = all & -all;

	return aligned > BANK_BYTES ? aligned : BANK_BYTES;
}

uint32_t gemm_lds_cycles(const uint32_t *addr, uint32_t lanes, uint32_t bytes)
{
	const uint32_t phase = lanes_at_once(bytes);
	const uint32_t unit = unit_bytes(addr, lanes, bytes);
	const uint32_t units = bytes < unit ? 1 : bytes / unit;
	const uint32_t banks = BANKS * BANK_BYTES / unit;
	uint32_t cycles = 0;

	for (uint32_t from = 0; from < lanes; from += phase) {
		uint32_t met[BANKS][BANKS], n[BANKS] = { 0 }, most = 0;

		for (uint32_t k = 0; k < phase * units; k++) {
			const uint32_t lane = from + k / units;
			uint32_t u, b, seen = 0;

			if (lane >= lanes)
				break;
			u = addr[lane] / unit + k % units;
			b = u % banks;
			while (seen < n[b] && met[b][seen] != u)
				seen++;
			if (seen == n[b])
				met[b][n[b]++] = u;
			most = n[b] > most ? n[b] : most;
		}
		cycles += most;
	}
	return cycles;
}

/* Row of the tile, and element in it, that a lane reads for a fragment. */
static uint32_t read_row(uint32_t lane, bool of_n)
{
	const uint32_t r = lane % GEMM_FRAG;

	return of_n ? gemm_frag_row(r) : r;
}

struct gemm_block gemm_block_of(const struct gemm_side *s, uint32_t v)
{
	const uint32_t across = gemm_across(s);
	const uint32_t more = s->major / s->turn / across;
	const uint32_t rest = v / s->along / across;

	return (struct gemm_block){
		rest % more * across + v / s->along % across,
		rest / more * s->along + v % s->along,
	};
}

static uint32_t row_at(const struct gemm_side *s, uint32_t row)
{
	return row / s->group * s->pitch + row % s->group * s->plane;
}

/* Bytes of one store, and how many of them a wave makes for a tile. */
static uint32_t store_bytes(const struct gemm_plan *p,
			    const struct gemm_side *s)
{
	return p->elem_bytes * (s->stored ? (s->vec < 8 ? s->vec : 8)
				: s->turn ? s->turn : s->vec);
}

static uint32_t n_stores(const struct gemm_side *s)
{
	return (s->turn ? s->vec : 1) * s->steps;
}

/* Loads for fragments, of 16 bytes. */
static uint32_t n_loads(const struct gemm_plan *p, const struct gemm_side *s)
{
	return p->slices * GEMM_FRAG * p->elem_bytes / 16 *
	       (s == &p->b ? p->frags_n : p->frags_m);
}

/* Cycles of what a wave stores of a tile: of the pitch. */
static uint32_t store_cycles(const struct gemm_plan *p,
			     const struct gemm_side *s)
{
	const uint32_t eb = p->elem_bytes;
	const uint32_t units = s->minor / s->vec;
	const uint32_t wide = store_bytes(p, s);
	uint32_t at[GEMM_WAVE];

	for (uint32_t l = 0; l < GEMM_WAVE; l++) {
		const struct gemm_block b = s->turn ? gemm_block_of(s, l)
			: (struct gemm_block){ l % units, l / units };

		at[l] = row_at(s, b.minor * (s->turn ? s->vec : 1)) * eb +
			(s->stored ? gemm_side_element(s, b.major * s->vec) *
					     eb :
				     b.major * wide);
	}
	return gemm_lds_cycles(at, GEMM_WAVE, wide) * n_stores(s);
}

/*
 * Cycles of what it loads for fragments.  Loads of f32 run along rows, where it
 * does not matter how far these are apart.
 */
static uint32_t load_cycles(const struct gemm_plan *p,
			    const struct gemm_side *s)
{
	const uint32_t eb = p->elem_bytes;
	uint32_t at[GEMM_WAVE];

	if (!p->wmma)
		return 0;
	for (uint32_t l = 0; l < GEMM_WAVE; l++)
		at[l] = row_at(s, read_row(l, s == &p->b)) * eb;
	return gemm_lds_cycles(at, GEMM_WAVE, 16) * n_loads(p, s);
}

/* No layout takes fewer cycles than one without a conflict. */
static uint32_t least_cycles(const struct gemm_plan *p,
			     const struct gemm_side *s)
{
	const uint32_t store = GEMM_WAVE / lanes_at_once(store_bytes(p, s));
	const uint32_t load = GEMM_WAVE / lanes_at_once(16);

	return store * n_stores(s) + (p->wmma ? load * n_loads(p, s) : 0);
}

void gemm_lds_pad(const struct gemm_plan *p, struct gemm_side *s, uint32_t row)
{
	const uint32_t unit = PAD_BYTES / p->elem_bytes;
	const uint32_t gaps = s->group > 1 ? PADS : 1;
	const uint32_t bound = least_cycles(p, s);
	struct gemm_side best = *s;
	uint32_t least = UINT32_MAX;

	for (uint32_t pad = 0; least > bound && pad < PADS; pad++) {
		s->pitch = row + pad * unit;
		const uint32_t stores = store_cycles(p, s);

		for (uint32_t gap = 0; stores < least && gap < gaps; gap++) {
			s->plane = s->pitch * (s->rows / s->group) + gap * unit;
			const uint32_t c = stores + load_cycles(p, s);

			if (c < least) {
				least = c;
				best = *s;
			}
		}
	}
	*s = best;
}

struct gemm_place gemm_lds_place_block(const struct gemm_side *s,
				       struct val row, uint32_t more,
				       struct val e, uint32_t elem_bytes)
{
	if (s->group == 1)
		return gemm_lds_place(s, row, more, e, elem_bytes);
	return (struct gemm_place){
		.add = s->first + row_at(s, more),
		.at = ADD(MUL(SHR(row, __builtin_ctz(s->group)), s->pitch), e),
	};
}

/*
 * With a swizzle the 16-byte chunks of a row change places by an exclusive or
 * with bits of the row's number: the sum first, then the exclusive or, for
 * readers and writers alike.
 */
struct gemm_place gemm_lds_place(const struct gemm_side *s, struct val row,
				 uint32_t more, struct val e,
				 uint32_t elem_bytes)
{
	const uint32_t period = (s->chunk_mask + 1) << s->chunk_shift;
	const uint32_t far = s->chunk_mask ? more / period * period : more;
	const uint32_t chunk = 16 / elem_bytes;
	struct gemm_place p = { .add = s->first + far * s->pitch };

	if (s->group > 1) {
		p = gemm_lds_place_block(s, row, more, e, elem_bytes);
		p.at = ADD(p.at, MUL(AND(row, s->group - 1), s->plane));
		return p;
	}

	row = ADD(row, more - far);
	if (s->chunk_mask) {
		const struct val x = AND(SHR(row, s->chunk_shift),
					 s->chunk_mask);

		e = XOR(e, MUL(x, chunk));
	}
	p.at = ADD(MUL(row, s->pitch), e);
	return p;
}
