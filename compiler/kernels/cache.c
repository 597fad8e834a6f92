/*
 * compiler/kernels/cache.c - vectors of keys and values in the cache
 * (kernels.h, "Caches").
 *
 * Those of i8 hold signed bytes, then the scales of their groups: a lane's load
 * of 8 bytes stays aligned, one pointer and one stride reach both, and a head's
 * vectors are one stream without gaps, of which every cache line is used whole.
 * So do those of u32, of which a lane loads a word.
 */
#include "compiler/kernels/kernels_int.h"

enum { GROUP = KERNEL_CACHE_GROUP, GROUP_BITS = KERNEL_CACHE_GROUP_BITS };

uint32_t kernel_cache_row(enum dsl_type cache, uint32_t head)
{
	const uint32_t scales = head / GROUP * (uint32_t)sizeof(float);

	return cache == DSL_I8	? (head + scales + 7) / 8 * 8 :
	       cache == DSL_U32 ? head / HEAD_PIECE + (head / GROUP + 1) / 2 :
				  head;
}

/* ----------------------------------------------------------- reading ---- */

/* So many elements of the array in scales. */
static struct val scales_in(const struct cached *c, struct val elements)
{
	return c->at.elem == DSL_I8 ? SHR(elements, 2) : SHL(elements, 1);
}

struct cached cached_head(const struct cache_at *c, struct val p,
			  struct val sequence, struct val head, uint32_t n)
{
	struct dsl *k = p.k;
	const struct cache_at dense = { c->row, c->head, c->sequence, { 0 } };
	struct val first = cache_row(&dense, p, c->table.k ?
						CONST(k, DSL_I32, 0) :
						sequence,
				     head, CONST(k, DSL_I32, 0));
	struct cached out = {
		.at = p.elem == DSL_U32 ? first : head_at(first, n),
		.row = c->row,
	};

	if (c->table.k) {
		out.table = ADVANCE(c->table, sequence);
		out.step = c->sequence;
	}

	if (cached_is_scaled(&out)) {
		out.scale = cache_scales(first, CONST(k, DSL_I32, n));
		out.scale_row = scales_in(&out, c->row);
	}
	return out;
}

struct val cached_offset(const struct cached *c, struct val block)
{
	return MUL(CAST(DSL_I64, block), c->step);
}

struct cached cached_block(const struct cached *c, struct val offset)
{
	struct cached out = *c;

	out.last = (struct val){ 0 };
	out.at = ADVANCE(c->at, offset);
	if (cached_is_scaled(c))
		out.scale = ADVANCE(c->scale, scales_in(c, offset));
	return out;
}

/* What a lane has of its own comes first: it is the same in all turns. */
static struct val vector_offset(const struct cached *c, struct val base,
				struct val number, struct val row,
				struct val first)
{
	struct val mine = CAST(DSL_U32, MUL(number, row));
	struct val all = CAST(DSL_U32, MUL(base, row));

	if (!c->last.k)
		return ADD(ADD(mine, first), all);
	return ADD(MIN(ADD(mine, all), CAST(DSL_U32, MUL(c->last, row))),
		   first);
}

/* What a piece has one of. */
static struct val one_load(const struct head_piece *piece, struct val p,
			   struct val at, const struct val *in)
{
	struct val there;

	if (piece->inside)
		return in ? LOAD_IF(*in, p, at) : LOAD(p, at);
	there = LT(piece->first, piece->head);
	return LOAD_IF(in ? AND(there, *in) : there, p, at);
}

struct val cached_load(const struct cached *c, struct val base,
		       struct val number, const struct head_piece *piece,
		       const struct val *in)
{
	if (c->at.elem == DSL_U32)
		return one_load(piece, c->at,
				vector_offset(c, base, number, c->row,
					      SHR(piece->first, 3)),
				in);
	return head_load(number.k, c->at,
			 vector_offset(c, base, number, c->row,
				       CONST(number.k, DSL_U32, 0)),
			 piece, in);
}

struct val cached_scale(const struct cached *c, struct val base,
			struct val number, const struct head_piece *piece,
			const struct val *in)
{
	struct val at = vector_offset(c, base, number, c->scale_row,
				      SHR(piece->first, GROUP_BITS));
	struct val x = one_load(piece, c->scale, at, in);

	return c->at.elem == DSL_U32 ? CAST(DSL_F32, x) : x;
}

static struct val byte_number(struct val word, uint32_t i)
{
	return CAST(DSL_F32, AND(SHR(word, i * 8), 255));
}

static struct val unsigned_nibbles(struct val word)
{
	struct val even = AND(word, 0x0f0f0f0f);
	struct val odd = AND(SHR(word, 4), 0x0f0f0f0f);
	struct val out[HEAD_PIECE];

	for (uint32_t j = 0; j < HEAD_PIECE; j++)
		out[j] = byte_number(j % 2 ? odd : even, j / 2);
	return dsl_join(DSL_AT, out, HEAD_PIECE);
}

static struct val unsigned_bytes(struct val x)
{
	struct val words = XOR(BITS(DSL_U32, x), 0x80808080);
	struct val out[HEAD_PIECE];

	for (uint32_t j = 0; j < HEAD_PIECE; j++)
		out[j] = byte_number(ELEM(words, j / 4), j % 4);
	return dsl_join(DSL_AT, out, HEAD_PIECE);
}

struct val cached_numbers(const struct cached *c, struct val x)
{
	return c->at.elem == DSL_I8 ? unsigned_bytes(x) : unsigned_nibbles(x);
}

/*
 * Two bytes of E4M3 in the upper halves of their 16 bits are f16 there, but for
 * 8 of the exponent, once the exponent has its fifth bit; that is set where the
 * byte is no number.
 */
static struct val f8_pair(struct val u, struct val none)
{
	struct val size = AND(SHR(u, 1), 0x3f803f80);

	return BITS(DSL_F16, OR(OR(size, none), AND(u, 0x80008000)));
}

struct val f8_halves(struct val x)
{
	struct val words = BITS(DSL_U32, x), out[HEAD_PIECE];

	for (uint32_t j = 0; j < HEAD_PIECE; j += 4) {
		struct val w = ELEM(words, j / 4);
		/* The highest bit of a byte that is 127 but for its sign. */
		struct val none = AND(ADD(AND(w, 0x7f7f7f7f), 0x01010101),
				      0x80808080);
		struct val even = f8_pair(SHL(AND(w, 0x00ff00ff), 8),
					  SHL(AND(none, 0x00800080), 7));
		struct val odd = f8_pair(AND(w, 0xff00ff00),
					 AND(SHR(none, 1), 0x40004000));
		for (uint32_t i = 0; i < 2; i++) {
			out[j + 2 * i] = ELEM(even, i);
			out[j + 2 * i + 1] = ELEM(odd, i);
		}
	}
	return dsl_join(DSL_AT, out, HEAD_PIECE);
}

/* ----------------------------------------------------------- writing ---- */

/* As engine/weights/kernels_cache_simd.c. */
struct val f8_code(struct val x)
{
	const double round = 12582912.0; /* 1.5 * 2^23: adding it rounds */
	struct val bits = BITS(DSL_I32, x), whole = AND(bits, 0x7fffffff);
	struct val size = MIN(BITS(DSL_F32, whole), 448.0);
	struct val u = BITS(DSL_I32, size);
	struct val code = SUB(SHR(ADD(ADD(u, 0x7ffff), AND(SHR(u, 20), 1)), 20),
			      120 << 3);
	struct val small = SUB(BITS(DSL_I32, FMA(size, 512.0, round)),
			       0x4b400000);

	code = SELECT(LT(u, 121 << 23), small, code);
	code = SELECT(GE(whole, 0x7f800000), 127, code);
	return OR(code, AND(SHR(bits, 24), 0x80));
}

struct val cache_scales(struct val p, struct val head)
{
	return p.elem == DSL_I8 ? AS(DSL_F32, ADVANCE(p, head)) :
				  AS(DSL_F16, ADVANCE(p, SHR(head, 3)));
}

struct val quant_top(struct val top, struct val x)
{
	struct val size = AND(BITS(DSL_I32, x), 0x7fffffff);

	for (uint32_t j = 0; j < x.n; j++)
		top = MAX(top, ELEM(size, j));
	return top;
}

/*
 * As engine/weights/kernels_int_simd.c: a group of zeros has the scale 0.  With
 * what is infinite or NaN the scale is, too, and all of the group is NaN.
 */
struct quant quant_of(struct val top)
{
	struct val d = DIV(BITS(DSL_F32, top), 127.0);

	return (struct quant){ d, SELECT(GT(d, 0.0), DIV(1.0, d), 0.0) };
}

struct val quantize(const struct quant *q, struct val x)
{
	return CAST(DSL_I8, CAST(DSL_I32, ROUND(MUL(x, q->inverse))));
}

/* The sign behind the size: of equal sizes the negative is on top. */
struct val quant4_top(struct val top, struct val x)
{
	struct val bits = BITS(DSL_U32, x);
	struct val size = OR(SHL(bits, 1), SHR(bits, 31));

	for (uint32_t j = 0; j < x.n; j++)
		top = MAX(top, ELEM(size, j));
	return top;
}

/* As engine/weights/kernels_cache_simd.c; times 0 is NaN of what is infinite. */
struct quant quant4_of(struct val top)
{
	struct val most = BITS(DSL_F32, OR(SHR(top, 1), SHL(top, 31)));
	struct val d = CAST(DSL_F16, FMA(most, 0.0, MUL(most, -0.125)));
	struct val by = CAST(DSL_F32, d);

	return (struct quant){ d, SELECT(EQ(by, 0.0), 0.0, DIV(1.0, by)) };
}

struct val quant4(const struct quant *q, struct val x)
{
	struct val v = ROUND(MUL(x, q->inverse));

	return CAST(DSL_U32, ADD(MIN(MAX(v, -8.0), 7.0), 8.0));
}

/* Of a code in each lane words of those side by side. */
static void words_put(struct dsl *k, struct val p, struct val head,
		      struct val i, struct val x)
{
	struct val top = quant4_top(CONST(k, DSL_U32, 0), x);
	struct quant q = quant4_of(WAVE_MAX(top));
	struct val at = CAST(DSL_U32, MUL(AND(i, 7), 4));
	struct val word = SHL(quant4(&q, x), at);

	for (uint32_t m = 1; m < HEAD_PIECE; m *= 2)
		word = OR(word, SHUFFLE_XOR(word, m));
	STORE_IF(EQ(AND(i, 7), 0), p, SHR(i, 3), word);
	STORE_IF(EQ(AND(i, GROUP - 1), 0), cache_scales(p, head),
		 SHR(i, GROUP_BITS), q.scale);
}

void cache_put(struct dsl *k, struct val p, struct val head, struct val i,
	       struct val x)
{
	if (p.elem == DSL_U8) {
		STORE(p, i, CAST(DSL_U8, f8_code(x)));
		return;
	}
	if (p.elem == DSL_U32) {
		words_put(k, p, head, i, x);
		return;
	}
	if (p.elem != DSL_I8) {
		store_f32(p, i, x);
		return;
	}
	struct val top = quant_top(CONST(k, DSL_I32, 0), x);
	struct quant q = quant_of(WAVE_MAX(top));

	STORE(p, i, quantize(&q, x));
	STORE_IF(EQ(AND(i, GROUP - 1), 0), cache_scales(p, head),
		 SHR(i, GROUP_BITS), q.scale);
}
