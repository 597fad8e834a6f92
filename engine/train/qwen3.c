/*
 * engine/train/qwen3.c - the list of a Qwen3 step.
 */
#include <string.h>

#include "base/vec.h"
#include "engine/train/train.h"

/* Of one layer: parameters, by their place in the list of a layer. */
enum { ATTN_NORM, FFN_NORM, Q_NORM, K_NORM, Q, K, V, O, GATE, UP, DOWN,
       LAYER_PARAMS };

const char *const train_target_name[TRAIN_TARGETS] = {
	"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj",
	"down_proj",
};

struct build {
	struct train_graph *g;
	const struct train_how *how;
	size_t tokens;
	size_t q, kv; /* heads * head_dim */
	bool round;
};

/* What the two halves of a layer leave for the way back. */
struct attention {
	uint32_t scale, n, q, k, v, q_scale, k_scale, q_turned, k_turned, a,
		lse;
};
struct ffn {
	uint32_t scale, n, gate, up, h;
};

static uint32_t passing_add(const struct build *b, size_t cols)
{
	return train_value_add(b->g, TRAIN_PASSING, b->tokens, cols, 4);
}

static const struct train_param *param_of(const struct build *b, uint32_t layer,
					  unsigned i)
{
	return &b->g->param[1 + layer * LAYER_PARAMS + i];
}

/* ---- parameters ---- */

static unsigned states_of(const struct train_param *p, enum train_method m)
{
	return m == TRAIN_NO_METHOD			       ? 0 :
	       m == TRAIN_SGD || (m == TRAIN_MUON && p->hidden) ? 1 :
								 2;
}

/* Memory for Newton-Schulz on the largest of the matrices. */
static void muon_add(struct train_graph *g, enum train_method m)
{
	size_t all = 0, square = 0;

	for (uint32_t i = 0; i < g->n_params; i++) {
		const struct train_param *p = &g->param[i];
		size_t n = (size_t)p->rows * p->cols;
		size_t side = p->rows < p->cols ? p->rows : p->cols;

		if (!p->hidden || p->gradient == TRAIN_NONE)
			continue;
		all = n > all ? n : all;
		square = side * side > square ? side * side : square;
	}
	for (unsigned i = 0; i < 4; i++)
		g->muon[i] = m != TRAIN_MUON ?
				     TRAIN_NONE :
				     train_value_add(g, TRAIN_INPUT,
						     i < 2 ? all : square, 1,
						     4);
}

/* What a parameter needs to learn. */
static void learning_add(const struct build *b, struct train_param *p)
{
	struct train_graph *g = b->g;

	p->gradient = train_value_add(g, TRAIN_GRADIENT, p->rows, p->cols, 4);
	for (unsigned i = 0; i < 2; i++)
		p->state[i] = i < states_of(p, b->how->method) ?
				      train_value_add(g, TRAIN_STATE, p->rows,
						      p->cols, 4) :
				      TRAIN_NONE;
	p->average = b->how->average ? train_value_add(g, TRAIN_STATE, p->rows,
						       p->cols, 4) :
				       TRAIN_NONE;
}

/* One of the two matrices of an adapter, in f32. */
static void adapter_add(const struct build *b, const char *of, char which,
			uint32_t rows, uint32_t cols)
{
	struct train_graph *g = b->g;
	struct train_param p = { .rows = rows, .cols = cols, .matrix = true,
				 .adapter = TRAIN_NONE };
	int stem = (int)(strlen(of) - strlen(".weight"));

	snprintf(p.name, sizeof(p.name), "base_model.model.%.*s.lora_%c.weight",
		 stem, of, which);
	p.weight = p.master = train_value_add(g, TRAIN_WEIGHT, rows, cols, 4);
	learning_add(b, &p);
	VEC_GROW(g->param, g->n_params, 1, g->cap_params);
	g->param[g->n_params++] = p;
}

static void adapters_add(const struct build *b)
{
	struct train_graph *g = b->g;

	for (uint32_t i = 0; b->how->rank && i < g->n_tensors; i++) {
		const struct train_param p = g->param[i];
		unsigned place = (i - 1) % LAYER_PARAMS;

		if (!p.hidden || !(b->how->targets >> (place - Q) & 1))
			continue;
		g->param[i].adapter = g->n_params;
		adapter_add(b, p.name, 'A', b->how->rank, p.cols);
		adapter_add(b, p.name, 'B', p.rows, b->how->rank);
	}
}

static bool param_add(void *ctx, const struct qwen_part *part, struct err *e)
{
	const struct build *b = ctx;
	struct train_graph *g = b->g;
	bool narrow = part->matrix && b->how->type != QWEN_W_F32;
	bool learns = !b->how->rank;
	struct train_param p = { .rows = 1, .cols = part->n };

	(void)e;
	if (part->matrix) {
		p.matrix = true;
		p.rows = part->matrix->rows;
		p.cols = part->matrix->cols;
	}
	snprintf(p.name, sizeof(p.name), "%s", part->name);
	p.weight = train_value_add(g, TRAIN_WEIGHT, p.rows, p.cols,
				   narrow ? 2 : 4);
	p.master = !narrow ? p.weight :
		   b->how->masters && learns ?
			     train_value_add(g, TRAIN_MASTER, p.rows, p.cols,
					     4) :
			     TRAIN_NONE;
	p.looked_up = part->matrix && part->looked_up;
	p.hidden = p.matrix && strncmp(p.name, "model.layers.", 13) == 0;
	if (learns)
		learning_add(b, &p);
	else
		p.gradient = p.state[0] = p.state[1] = p.average = TRAIN_NONE;
	p.adapter = TRAIN_NONE;
	VEC_GROW(g->param, g->n_params, 1, g->cap_params);
	g->param[g->n_params++] = p;
	return true;
}

/* ---- pieces ---- */

#define BLOCK 32 /* rows whose gradients of a norm's weight are one sum */

static uint32_t partial_of(const struct build *b, size_t rows, size_t cols)
{
	return train_value_add(b->g, TRAIN_PASSING, (rows + BLOCK - 1) / BLOCK,
			       cols, 4);
}

static uint32_t norm_add(struct build *b, uint32_t x, const struct train_param *p,
		     uint32_t *scale)
{
	uint32_t y = passing_add(b, p->cols);

	*scale = passing_add(b, 1);
	TRAIN_OP(b->g, NORM, x, p->weight, y, *scale)->round = b->round;
	return y;
}

static void norm_back(struct build *b, uint32_t dy, uint32_t x,
		      const struct train_param *p, uint32_t scale, uint32_t dx,
		      bool add)
{
	TRAIN_OP(b->g, NORM_BACK, dy, x, p->weight, scale, dx, p->gradient,
		 partial_of(b, b->tokens, p->cols))->add = add;
}

/* What products take of a value that is not rounded yet. */
static uint32_t round_add(const struct build *b, uint32_t x)
{
	if (!b->round)
		return x;
	uint32_t y = passing_add(b, b->g->value[x].cols);
	TRAIN_OP(b->g, ROUND, x, y);
	return y;
}

static uint32_t product_add(const struct build *b, uint32_t x,
			    const struct train_param *p, uint32_t z)
{
	uint32_t y = passing_add(b, p->rows);

	TRAIN_OP(b->g, LINEAR, x, p->weight, z, y);
	return y;
}

/* The small matrices of an adapter. */
static const struct train_param *adapter_of(const struct build *b,
					    const struct train_param *p,
					    bool second)
{
	return &b->g->param[p->adapter + second];
}

static uint32_t linear_add(const struct build *b, uint32_t x,
			   const struct train_param *p, uint32_t z)
{
	uint32_t y = product_add(b, x, p, z);

	if (p->adapter == TRAIN_NONE)
		return y;
	uint32_t t = product_add(b, x, adapter_of(b, p, false), TRAIN_NONE);
	return product_add(b, round_add(b, t), adapter_of(b, p, true), y);
}

/* Rows one line longer than tokens: those of a power of two share their sets. */
static uint32_t turned_add(const struct build *b, size_t rows)
{
	return train_value_add(b->g, TRAIN_PASSING, rows, b->tokens + 16, 4);
}

static void product_dw(const struct build *b, uint32_t dy, uint32_t x,
		       const struct train_param *p)
{
	if (p->gradient != TRAIN_NONE)
		TRAIN_OP(b->g, LINEAR_DW, dy, x, p->gradient,
			 turned_add(b, p->rows));
}

static void product_dx(const struct build *b, uint32_t dy,
		       const struct train_param *p, uint32_t dx, bool add)
{
	TRAIN_OP(b->g, LINEAR_DX, dy, p->weight, dx)->add = add;
}

/* Of a linear and its adapter, whose inner values are made again. */
static void linear_back(const struct build *b, uint32_t dy, uint32_t x,
			const struct train_param *p, uint32_t dx, bool add)
{
	product_dw(b, dy, x, p);
	product_dx(b, dy, p, dx, add);
	if (p->adapter == TRAIN_NONE)
		return;
	const struct train_param *in = adapter_of(b, p, false);
	const struct train_param *out = adapter_of(b, p, true);
	uint32_t dt = passing_add(b, in->rows);
	product_dw(b, dy, round_add(b, product_add(b, x, in, TRAIN_NONE)), out);
	product_dx(b, dy, out, dt, false);
	dt = round_add(b, dt);
	product_dw(b, dt, x, in);
	product_dx(b, dt, in, dx, true);
}

static uint32_t turn_add(struct build *b, uint32_t x, const struct train_param *p,
		     size_t heads, uint32_t *scale)
{
	struct train_graph *g = b->g;
	uint32_t y = passing_add(b, heads * p->cols);

	*scale = passing_add(b, heads);
	TRAIN_OP(g, TURN, x, p->weight, g->position, g->cosine, g->sine, y,
		 *scale);
	return y;
}

static uint32_t turn_back(struct build *b, uint32_t dy, uint32_t x,
			  const struct train_param *p, size_t heads,
			  uint32_t scale)
{
	struct train_graph *g = b->g;
	uint32_t dx = passing_add(b, heads * p->cols);

	TRAIN_OP(g, TURN_BACK, dy, x, p->weight, g->position, g->cosine,
		 g->sine, scale, dx, p->gradient,
		 partial_of(b, b->tokens * heads, p->cols))->round = b->round;
	return dx;
}

/* ---- halves of a layer, forward ---- */

static struct attention attention_add(struct build *b, uint32_t l, uint32_t x)
{
	struct train_graph *g = b->g;
	const struct qwen_config *c = &g->config;
	struct attention s;

	s.n = norm_add(b, x, param_of(b, l, ATTN_NORM), &s.scale);
	s.q = linear_add(b, s.n, param_of(b, l, Q), TRAIN_NONE);
	s.k = linear_add(b, s.n, param_of(b, l, K), TRAIN_NONE);
	s.v = linear_add(b, s.n, param_of(b, l, V), TRAIN_NONE);
	s.q_turned = turn_add(b, s.q, param_of(b, l, Q_NORM), c->heads,
			  &s.q_scale);
	s.k_turned = turn_add(b, s.k, param_of(b, l, K_NORM), c->kv_heads,
			  &s.k_scale);
	s.a = passing_add(b, b->q);
	s.lse = passing_add(b, c->heads);
	TRAIN_OP(g, ATTENTION, s.q_turned, s.k_turned, s.v, g->position, s.a,
		 s.lse)->round = b->round;
	return s;
}

static struct ffn ffn_add(struct build *b, uint32_t l, uint32_t x)
{
	struct ffn s;

	s.n = norm_add(b, x, param_of(b, l, FFN_NORM), &s.scale);
	s.gate = linear_add(b, s.n, param_of(b, l, GATE), TRAIN_NONE);
	s.up = linear_add(b, s.n, param_of(b, l, UP), TRAIN_NONE);
	s.h = passing_add(b, b->g->config.ffn);
	TRAIN_OP(b->g, SWIGLU, s.gate, s.up, s.h)->round = b->round;
	return s;
}

/* ---- and back: dx is the residual stream's gradient, in its place ---- */

static void ffn_back(struct build *b, uint32_t l, const struct ffn *s,
		     uint32_t x, uint32_t dx)
{
	const struct train_param *down = param_of(b, l, DOWN);
	const struct train_param *up = param_of(b, l, UP);
	const struct train_param *gate = param_of(b, l, GATE);
	size_t n = b->g->config.ffn;
	uint32_t dy = round_add(b, dx);
	uint32_t dh = passing_add(b, n), dgate = passing_add(b, n), dup = passing_add(b, n);
	uint32_t dn = passing_add(b, b->g->config.hidden);

	linear_back(b, dy, s->h, down, dh, false);
	TRAIN_OP(b->g, SWIGLU_BACK, dh, s->gate, s->up, dgate, dup)->round =
		b->round;
	linear_back(b, dgate, s->n, gate, dn, false);
	linear_back(b, dup, s->n, up, dn, true);
	norm_back(b, dn, x, param_of(b, l, FFN_NORM), s->scale, dx, true);
}

static void attention_back(struct build *b, uint32_t l,
			   const struct attention *s, uint32_t x, uint32_t dx)
{
	struct train_graph *g = b->g;
	const struct qwen_config *c = &g->config;
	const struct train_param *o = param_of(b, l, O);
	uint32_t dy = round_add(b, dx);
	uint32_t da = passing_add(b, b->q), dn = passing_add(b, c->hidden);
	uint32_t dq = passing_add(b, b->q), dk = passing_add(b, b->kv),
		 dv = passing_add(b, b->kv);

	linear_back(b, dy, s->a, o, da, false);
	TRAIN_OP(g, ATTENTION_BACK, da, s->a, s->q_turned, s->k_turned, s->v,
		 g->position, s->lse, dq, dk, dv, passing_add(b, c->heads))->round =
		b->round;
	dq = turn_back(b, dq, s->q, param_of(b, l, Q_NORM), c->heads,
		       s->q_scale);
	dk = turn_back(b, dk, s->k, param_of(b, l, K_NORM), c->kv_heads,
		       s->k_scale);
	const uint32_t d[] = { dq, dk, dv };
	for (unsigned i = 0; i < 3; i++)
		linear_back(b, d[i], s->n, param_of(b, l, Q + i), dn, i > 0);
	norm_back(b, dn, x, param_of(b, l, ATTN_NORM), s->scale, dx, true);
}

/* ---- a table of runs of words, before a layer ---- */

struct engram {
	uint32_t x, scale, gate;
};

/* Behind all others: the table, then the gate's norm. */
static const struct train_param *engram_param(const struct build *b, bool gate)
{
	return &b->g->param[b->g->n_tensors - 2 + gate];
}

static uint32_t engram_add(const struct build *b, uint32_t x, struct engram *s)
{
	struct train_graph *g = b->g;
	const uint32_t y = passing_add(b, g->config.hidden);

	*s = (struct engram){ x, passing_add(b, 1), passing_add(b, 1) };
	TRAIN_OP(g, ENGRAM, g->ids, g->position, x,
		 engram_param(b, true)->weight, engram_param(b, false)->weight,
		 y, s->scale, s->gate);
	return y;
}

static void engram_back(const struct build *b, const struct engram *s,
			uint32_t dx)
{
	struct train_graph *g = b->g;

	TRAIN_OP(g, ENGRAM_BACK, g->ids, g->position, s->x,
		 engram_param(b, true)->weight, engram_param(b, false)->weight,
		 s->scale, s->gate, dx, engram_param(b, true)->gradient,
		 engram_param(b, false)->gradient, passing_add(b, 1));
}

/* ---- the model ---- */

#define CHUNK 4096

static void build_step(struct build *b)
{
	struct train_graph *g = b->g;
	const struct qwen_config *c = &g->config;
	const struct train_param *embed = &g->param[0];
	const struct train_param *last = &g->param[1 + c->layers * LAYER_PARAMS];
	const struct train_param *head = c->tied ? embed : last + 1;
	size_t chunk = b->how->vocab_chunk ? b->how->vocab_chunk : CHUNK;
	uint32_t *in = xcalloc(c->layers + 1, sizeof(*in));
	uint32_t *mid = xcalloc(c->layers, sizeof(*mid));
	struct attention *a = xcalloc(c->layers, sizeof(*a));
	struct ffn *f = xcalloc(c->layers, sizeof(*f));
	struct engram engram = { 0 };
	uint32_t scale;

	chunk = chunk < c->vocab ? chunk : c->vocab;
	in[0] = passing_add(b, c->hidden);
	TRAIN_OP(g, EMBED, g->ids, embed->weight, in[0]);
	for (uint32_t l = 0; l < c->layers; l++) {
		if (c->engram.rows && l == c->engram.layer)
			in[l] = engram_add(b, in[l], &engram);
		a[l] = attention_add(b, l, in[l]);
		mid[l] = linear_add(b, a[l].a, param_of(b, l, O), in[l]);
		f[l] = ffn_add(b, l, mid[l]);
		in[l + 1] = linear_add(b, f[l].h, param_of(b, l, DOWN), mid[l]);
	}
	uint32_t n = norm_add(b, in[c->layers], last, &scale);
	uint32_t lse = passing_add(b, 1), logits = passing_add(b, chunk);
	TRAIN_OP(g, LOSS, n, head->weight, g->target, g->loss, lse, logits);
	g->forward = g->n_ops;

	uint32_t dn = passing_add(b, c->hidden), dx = passing_add(b, c->hidden);
	uint32_t turned = turned_add(b, chunk);
	TRAIN_OP(g, LOSS_BACK, n, head->weight, g->target, lse, dn,
		 head->gradient, logits, turned)->round = b->round;
	norm_back(b, dn, in[c->layers], last, scale, dx, false);
	for (uint32_t l = c->layers; l--;) {
		bool again = l < b->how->again_layers;

		if (again && b->how->again & TRAIN_AGAIN_FFN)
			f[l] = ffn_add(b, l, mid[l]);
		ffn_back(b, l, &f[l], mid[l], dx);
		if (again && b->how->again & TRAIN_AGAIN_ATTENTION)
			a[l] = attention_add(b, l, in[l]);
		attention_back(b, l, &a[l], in[l], dx);
		if (c->engram.rows && l == c->engram.layer)
			engram_back(b, &engram, dx);
	}
	if (embed->gradient != TRAIN_NONE)
		TRAIN_OP(g, EMBED_BACK, g->ids, dx, embed->gradient);
	free(in);
	free(mid);
	free(a);
	free(f);
}

static bool check_how(const struct qwen_config *c, const struct train_how *h,
		      struct err *e)
{
	if (!h->rows || !h->length || (uint64_t)h->rows * h->length > 1 << 24)
		return err_set(e, ERR_USAGE, "a batch of %u rows of %u tokens; "
			       "wanted 1 to %d tokens in all", h->rows,
			       h->length, 1 << 24);
	if (h->length > c->max_positions)
		return err_set(e, ERR_USAGE, "rows of %u tokens; the model has "
			       "%u positions", h->length, c->max_positions);
	if (h->type != QWEN_W_F32 && h->type != QWEN_W_BF16 &&
	    h->type != QWEN_W_F16)
		return err_set(e, ERR_USAGE, "got weights in %s; wanted f32, "
			       "bf16 or f16", qwen_weights_name(h->type));
	if (h->type == QWEN_W_F16 && !h->masters && !h->rank)
		return err_set(e, ERR_USAGE, "got f16 without masters; wanted "
			       "them, or bf16, which is rounded by chance");
	if (h->rank > 4096 || (h->rank && !h->targets) ||
	    (h->rank && h->average))
		return err_set(e, ERR_USAGE, "adapters of rank %u; wanted 1 to "
			       "4096, with targets and without a moving "
			       "average", h->rank);
	return true;
}

bool train_qwen3(struct train_graph *g, const struct qwen_config *c,
		 const struct train_how *how, struct err *e)
{
	struct build b = { .g = g, .how = how,
			   .tokens = (size_t)how->rows * how->length,
			   .q = (size_t)c->heads * c->head_dim,
			   .kv = (size_t)c->kv_heads * c->head_dim,
			   .round = how->type != QWEN_W_F32 };
	struct qwen_model outline;

	*g = (struct train_graph){ .config = *c, .type = how->type,
				   .rows = how->rows, .length = how->length };
	if (c->experts.n)
		return err_set(e, ERR_UNSUPPORTED, "a mixture of %u experts: "
			       "only dense models are trained", c->experts.n);
	if (!check_how(c, how, e))
		return false;
	qwen_model_outline(&outline, c, how->type);
	bool ok = qwen_model_each(&outline, param_add, &b, e);
	qwen_model_close(&outline);
	if (!ok)
		return false;
	g->n_tensors = g->n_params;
	adapters_add(&b);
	muon_add(g, how->method);
	g->ids = train_value_add(g, TRAIN_INPUT, b.tokens, 1, 4);
	g->position = train_value_add(g, TRAIN_INPUT, b.tokens, 1, 4);
	g->target = train_value_add(g, TRAIN_INPUT, b.tokens, 1, 4);
	g->cosine = train_value_add(g, TRAIN_INPUT, how->length,
				    c->head_dim / 2, 4);
	g->sine = train_value_add(g, TRAIN_INPUT, how->length,
				  c->head_dim / 2, 4);
	g->loss = train_value_add(g, TRAIN_INPUT, b.tokens, 1, 4);
	build_step(&b);
	return train_memory_plan(g, e);
}

double train_flop(const struct train_graph *g)
{
	const struct qwen_config *c = &g->config;
	double tokens = (double)g->rows * g->length, flop = 0;

	for (uint32_t i = 0; i < g->n_params; i++)
		if (g->param[i].matrix && (i || c->tied) &&
		    !g->param[i].looked_up)
			flop += (g->param[i].gradient == TRAIN_NONE ? 4 : 6) *
				(double)g->param[i].rows * g->param[i].cols;
	/* Scores and sums of values of half of all pairs, and 5 for these 2. */
	double attention = 2.0 * 2 * c->layers * c->heads * c->head_dim *
			   tokens * (g->length + 1) / 2;
	return flop * tokens + 3.5 * attention;
}
