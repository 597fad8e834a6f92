/*
 * Twins of compiler/kernels/decode.c, for heads of 128 elements of which two
 * share keys: 16 lanes hold a key, and four keys are read at a time.
 */
#include "lib.h"

enum { HEAD = 128, RATIO = 2, PART = 8, TEAM = HEAD / PART, TEAMS = 128 / TEAM,
       AHEAD = 4, WAVES = 4 };

typedef float f8 __attribute__((ext_vector_type(8)));
typedef ELEM elem8 __attribute__((ext_vector_type(8)));

#define exp2_of(x) __builtin_amdgcn_exp2f(x)
#define LOAD8(p, at) \
	__builtin_convertvector(*(global const elem8 *)((p) + (at)), f8)

/* A lane's part of a key or value; with i8 its scale is for all of it. */
struct part {
	f8 x;
	float scale;
};

INLINE struct part part_load(global const CACHED *p, uint at, uint first)
{
#ifdef CACHE_I8
	typedef char c8 __attribute__((ext_vector_type(8)));

	return (struct part){
		__builtin_convertvector(*(global const c8 *)(p + at + first),
					f8),
		SCALE_OF(p + at, HEAD, first),
	};
#else
	return (struct part){ LOAD8(p, at + first), 1 };
#endif
}

/* What a team knows of one query. */
struct seen {
	float max, sum;
	f8 acc;
};

INLINE float team_sum(float x)
{
	x += float_b(ROW_XOR(bits_f(x), 8));
	x += float_b(ROW_XOR(bits_f(x), 4));
	x += float_b(ROW_XOR(bits_f(x), 2));
	x += float_b(ROW_XOR(bits_f(x), 1));
	return x;
}

INLINE float score(f8 q, const struct part *key)
{
	float sum = q[0] * key->x[0];

	for (int j = 1; j < PART; j++)
		sum = FMA(q[j], key->x[j], sum);
	return team_sum(sum * key->scale);
}

/* `masked`: keys at `end` and behind are none. */
INLINE void keys(struct seen *s, const f8 *q, global const CACHED *kc,
		 global const CACHED *vc, int row_ld, int from, int end,
		 bool masked)
{
	const uint first = lane() % TEAM * PART;
	struct part x[AHEAD], v[AHEAD];
	bool in[AHEAD];

	for (int u = 0; u < AHEAD; u++) {
		const int key = from + lid() / TEAM + u * TEAMS;
		const uint at = (uint)(key * row_ld);

		in[u] = !masked || key < end;
		x[u] = v[u] = (struct part){ 0, 0 };
		if (in[u]) {
			x[u] = part_load(kc, at, first);
			v[u] = part_load(vc, at, first);
		}
	}
	for (int r = 0; r < RATIO; r++) {
		float p[AHEAD], m = s[r].max;

		for (int u = 0; u < AHEAD; u++) {
			p[u] = score(q[r], &x[u]);
			p[u] = in[u] ? p[u] : -FLOAT_MAX;
			m = max_of(m, p[u]);
		}
		const float back = exp2_of(s[r].max - m);

		s[r].sum *= back;
		s[r].acc *= back;
		s[r].max = m;
		for (int u = 0; u < AHEAD; u++) {
			p[u] = in[u] ? exp2_of(p[u] - m) : 0;
			s[r].sum += p[u];
			s[r].acc = __builtin_elementwise_fma(
				(f8)(p[u] * v[u].scale), v[u].x, s[r].acc);
		}
	}
}

INLINE float other(float x)
{
	x = float_b(OTHER_ROW(bits_f(x)));
	HERE(x);
	return x;
}

/* Both teams of a wave. */
INLINE void merge(struct seen *s)
{
	const float theirs = other(s->max), top = max_of(s->max, theirs);
	const float a = exp2_of(s->max - top), b = exp2_of(theirs - top);

	s->sum = FMA(s->sum, a, other(s->sum) * b);
	for (int j = 0; j < PART; j++)
		s->acc[j] = FMA(s->acc[j], a, other(s->acc[j]) * b);
	s->max = top;
}

/* Between waves, in LDS. */
struct meeting {
	float max[WAVES * RATIO], sum[WAVES * RATIO];
	float acc[WAVES * RATIO * HEAD] __attribute__((aligned(16)));
};

struct task {
	int heads, kv_heads, q_ld, row_ld, head_ld;
	long sequence;
	float scale;
	int token, h, kv, slot;
};

INLINE void attend(local struct meeting *t, const struct task *a,
		   global const ELEM *q, global const CACHED *kc,
		   global const CACHED *vc, int begin, int end)
{
	const long at = a->slot * a->sequence + (long)a->kv * a->head_ld;
	const int whole = begin + ((end - begin) & -(TEAMS * AHEAD));
	struct seen s[RATIO];
	f8 scaled[RATIO];

	q += (long)a->token * a->q_ld + a->h * HEAD;
	for (int r = 0; r < RATIO; r++) {
		scaled[r] = LOAD8(q, r * HEAD + lane() % TEAM * PART) *
			    a->scale;
		s[r] = (struct seen){ -FLOAT_MAX, 0, 0 };
	}
	for (int j = begin; j < whole; j += TEAMS * AHEAD)
		keys(s, scaled, kc + at, vc + at, a->row_ld, j, end, false);
	if (whole < end)
		keys(s, scaled, kc + at, vc + at, a->row_ld, whole, end, true);
	for (int r = 0; r < RATIO; r++)
		merge(&s[r]);
	if (lane() < TEAM) {
		for (int r = 0; r < RATIO; r++) {
			const int w = wave() * RATIO + r;

			t->max[w] = s[r].max;
			t->sum[w] = s[r].sum;
			*(local f8 *)(t->acc + w * HEAD + lane() * PART) =
				s[r].acc;
		}
	}
	barrier_lds();
}

/* Element i of head r, of all waves. */
INLINE float gather(const local struct meeting *t, int r, int i, float *max,
		    float *sum)
{
	float top = -FLOAT_MAX, value = 0;

	for (int w = 0; w < WAVES; w++)
		top = max_of(top, t->max[w * RATIO + r]);
	*sum = 0;
	for (int w = 0; w < WAVES; w++) {
		const float a = exp2_of(t->max[w * RATIO + r] - top);

		*sum = FMA(t->sum[w * RATIO + r], a, *sum);
		value = FMA(t->acc[(w * RATIO + r) * HEAD + i], a, value);
	}
	*max = top;
	return value;
}

INLINE struct task task_of(global const int *slot, int heads, int kv_heads,
			   int q_ld, int row_ld, int head_ld, long sequence,
			   float scale)
{
	struct task a = { heads, kv_heads, q_ld, row_ld, head_ld, sequence,
			  scale * 0x1.715476p0f };
	const int each = heads / RATIO, row = group_y();

	a.token = row / each;
	a.h = (row - a.token * each) * RATIO;
	a.kv = a.h / (heads / kv_heads);
	a.slot = slot[a.token];
	return a;
}

KERNEL(128) attn_decode(global ELEM *restrict out,
			global const ELEM *restrict q,
			global const CACHED *restrict kc,
			global const CACHED *restrict vc,
			global const int *restrict length,
			global const int *restrict slot, int heads,
			int kv_heads, int q_ld, int row_ld, int head_ld,
			long sequence, int chunk, float scale)
{
	local struct meeting t;
	const struct task a = task_of(slot, heads, kv_heads, q_ld, row_ld,
				      head_ld, sequence, scale);

	attend(&t, &a, q, kc, vc, 0, length[a.token]);
	for (int x = lid(); x < RATIO * HEAD; x += 128) {
		const int r = x / HEAD, i = x % HEAD;
		float max, sum, v = gather(&t, r, i, &max, &sum);

		out[((long)a.token * heads + a.h + r) * HEAD + i] =
			(ELEM)(sum == 0 ? 0 : v / sum);
	}
}

KERNEL(128) attn_split(global float *restrict part, global float *restrict top,
		       global const ELEM *restrict q,
		       global const CACHED *restrict kc,
		       global const CACHED *restrict vc,
		       global const int *restrict length,
		       global const int *restrict slot, int heads,
		       int kv_heads, int q_ld, int row_ld, int head_ld,
		       long sequence, int chunk, float scale)
{
	local struct meeting t;
	const struct task a = task_of(slot, heads, kv_heads, q_ld, row_ld,
				      head_ld, sequence, scale);
	const int n = length[a.token], splits = groups_x();
	const int at = (int)group_x() * chunk, from = at < n ? at : n;

	attend(&t, &a, q, kc, vc, from, from + chunk < n ? from + chunk : n);
	for (int x = lid(); x < RATIO * HEAD; x += 128) {
		const int r = x / HEAD, i = x % HEAD;
		const int to = (a.token * heads + a.h + r) * splits +
			       group_x();
		float max, sum, v = gather(&t, r, i, &max, &sum);

		part[(long)to * HEAD + i] = v;
		if (i == 0) {
			top[2 * to] = max;
			top[2 * to + 1] = sum;
		}
	}
}

KERNEL(128) attn_join(global ELEM *restrict out,
		      global const float *restrict part,
		      global const float *restrict tops, int splits, int n,
		      int rows)
{
	const int row = wave_row();
	global const float *p = part + (long)(row * splits) * n;
	global const float *t = tops + 2 * row * splits;
	float m = -FLOAT_MAX, l = 0;

	if (row >= rows)
		return;
	for (int i = lane(); i < splits; i += 32)
		m = max_of(m, t[2 * i]);
	m = wave_max(m);
	for (int i = lane(); i < splits; i += 32)
		l = FMA(exp2_of(t[2 * i] - m), t[2 * i + 1], l);
	l = wave_sum(l);
	for (int c = lane(); c < n; c += 32) {
		float v = 0;

		for (int g = 0; g < splits; g++)
			v = FMA(exp2_of(t[2 * g] - m), p[g * n + c], v);
		out[(long)row * n + c] = (ELEM)(l == 0 ? 0 : v / l);
	}
}
