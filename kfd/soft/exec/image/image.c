/*
 * kfd/soft/exec/image/image.c - images without samplers: loads, stores,
 * atomics, and what an image says of itself.
 *
 * RDNA3 ISA 10.1, 10.2, 10.4, 10.5; image.h says what is assumed.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "isa/text/text.h"
#include "kfd/soft/exec/image/image.h"

bool image_refuse(struct soft_wave *w, const struct soft_uop *u,
		  const char *fmt, ...)
{
	char why[100];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	soft_raise(w, SOFT_FAULT_UNSUPPORTED,
		   "%s is not executed by the emulator: %s",
		   isa_op_info((enum isa_op)u->in.op)->name, why);
	return false;
}

/* -------------------------------------------------------- descriptor ---- */

/* Bits high:low, at most 32, of a descriptor. */
static uint32_t bits_of(const uint32_t *d, int high, int low)
{
	uint64_t v = d[low / 32] | (uint64_t)d[low / 32 + (low < 224)] << 32;

	return (uint32_t)(v >> low % 32 & ((UINT64_C(2) << (high - low)) - 1));
}

int image_coordinates(enum image_type type)
{
	switch (type) {
	case IMAGE_1D:
		return 1;
	case IMAGE_2D:
	case IMAGE_1D_ARRAY:
		return 2;
	default:
		return 3;
	}
}

static bool is_array(enum image_type type)
{
	return type == IMAGE_1D_ARRAY || type == IMAGE_2D_ARRAY;
}

static bool has_rows(enum image_type type)
{
	return type != IMAGE_1D && type != IMAGE_1D_ARRAY;
}

/* n / 2^level, rounded up. */
static uint32_t shift_up(uint32_t n, uint32_t level)
{
	return (n + (1u << level) - 1) >> level;
}

static uint32_t shift_down(uint32_t n, uint32_t level)
{
	return n >> level ? n >> level : 1;
}

static uint32_t align_row(uint32_t bytes)
{
	return (bytes + 255) & ~255u;
}

/* The types that the instruction's DIM field means. */
static const uint8_t types[8] = { IMAGE_1D, IMAGE_2D, IMAGE_3D, 0,
				  IMAGE_1D_ARRAY, IMAGE_2D_ARRAY };

/* What of a descriptor is for graphics, or has no published meaning. */
static bool check_descriptor(struct soft_wave *w, const struct soft_uop *u,
			     const uint32_t *d, const struct image *t)
{
	const uint32_t mode = bits_of(d, 120, 116);

	if (t->type != types[u->in.f[ISA_F_DIM]])
		return image_refuse(w, u, "an image of type %u (bits 127:124), "
				    "wanted that of dim, %u", t->type,
				    types[u->in.f[ISA_F_DIM]]);
	if (mode)
		return image_refuse(w, u, "swizzle mode %u (bits 120:116), "
				    "wanted 0, linear", mode);
	if (!t->bytes || t->bytes == 12)
		return image_refuse(w, u, "image format %u (bits 59:52)",
				    t->format);
	if (bits_of(d, 213, 213))
		return image_refuse(w, u, "a compressed image (bit 213)");
	if (bits_of(d, 179, 168) || bits_of(d, 198, 187))
		return image_refuse(w, u, "a partially resident image (MIN_LOD "
				    "or MIN_LOD_WARN)");
	if (t->base_level > t->last_level ||
	    t->last_level > bits_of(d, 51, 48))
		return image_refuse(w, u, "levels %u to %u of %u",
				    t->base_level, t->last_level,
				    bits_of(d, 51, 48) + 1);
	return true;
}

/* Pitches of all levels, and where in a slice they begin. */
static bool init_levels(struct image *t, struct soft_wave *w,
			const struct soft_uop *u, const uint32_t *d)
{
	const int last = (int)bits_of(d, 51, 48);
	uint32_t pitch = 0;

	if (t->type == IMAGE_1D || t->type == IMAGE_2D)
		pitch = bits_of(d, 141, 128) + 1;
	t->slice_bytes = 0;
	for (int i = last; i >= 0; i--) {
		uint32_t h = shift_up(t->height, (uint32_t)i);

		t->offset[i] = t->slice_bytes;
		t->pitch_bytes[i] =
			align_row(shift_up(t->width, (uint32_t)i) * t->bytes);
		if (!last && pitch > t->width)
			t->pitch_bytes[i] = pitch * t->bytes;
		t->slice_bytes += (uint64_t)t->pitch_bytes[i] * h;
	}
	if (t->pitch_bytes[0] % 256)
		return image_refuse(w, u, "a pitch of %u bytes, wanted a "
				    "multiple of 256", t->pitch_bytes[0]);
	return true;
}

/* The view's slices; of a volume they are all unless it is one to write. */
static void init_slices(struct image *t, const uint32_t *d)
{
	const uint32_t first = bits_of(d, 156, 144), last = bits_of(d, 140, 128);

	t->depth = t->type == IMAGE_3D ? last + 1 : 1;
	t->first_slice = t->n_slices = 0;
	if (is_array(t->type) || (t->type == IMAGE_3D && bits_of(d, 160, 160))) {
		t->first_slice = first;
		t->n_slices = last >= first ? last - first + 1 : 1;
	}
}

bool image_init(struct image *t, struct soft_wave *w, const struct soft_uop *u)
{
	const uint32_t *d = &w->s[u->in.f[ISA_F_SRSRC] * 4];
	uint32_t any = 0;

	for (int i = 0; i < 8; i++)
		any |= d[i];
	t->unbound = !any;
	if (t->unbound)
		return true;
	t->base = soft_canonical((uint64_t)bits_of(d, 39, 32) << 40 |
				 (uint64_t)d[0] << 8);
	t->type = (enum image_type)bits_of(d, 127, 124);
	t->format = bits_of(d, 59, 52);
	t->bytes = t->format < 64 ? soft_format_bytes(t->format, 4) : 0;
	t->width = bits_of(d, 75, 62) + 1;
	t->height = has_rows(t->type) ? bits_of(d, 91, 78) + 1 : 1;
	t->base_level = bits_of(d, 111, 108);
	t->last_level = bits_of(d, 115, 112);
	for (int i = 0; i < 4; i++)
		t->sel[i] = (uint8_t)bits_of(d, 98 + 3 * i, 96 + 3 * i);
	t->border_order = (uint8_t)bits_of(d, 123, 121);
	if (!check_descriptor(w, u, d, t))
		return false;
	init_slices(t, d);
	return init_levels(t, w, u, d);
}

void image_extent(const struct image *t, uint32_t level, uint32_t extent[3])
{
	const uint32_t i = t->base_level + level;

	extent[0] = shift_down(t->width, i);
	extent[1] = shift_down(t->height, i);
	extent[2] = t->n_slices ? t->n_slices : shift_down(t->depth, i);
}

bool image_find(const struct image *t, const struct texel *at, uint64_t *va)
{
	const uint32_t i = t->base_level + at->level;
	uint32_t extent[3];

	if (t->unbound || at->level > t->last_level - t->base_level)
		return false;
	image_extent(t, at->level, extent);
	if (at->x >= extent[0] || at->y >= extent[1] || at->z >= extent[2])
		return false;
	*va = t->base + (t->first_slice + at->z) * t->slice_bytes +
	      t->offset[i] + (uint64_t)at->y * t->pitch_bytes[i] +
	      (uint64_t)at->x * t->bytes;
	return true;
}

/* --------------------------------------------------------- registers ---- */

void image_registers(const struct soft_wave *w, const struct soft_uop *u,
		     int half, uint32_t lane, uint32_t dword[IMAGE_ADDRESSES])
{
	int k = 0;

	memset(dword, 0, IMAGE_ADDRESSES * sizeof(*dword));
	for (int i = 0; i < u->in.n_opnd; i++) {
		const struct isa_operand *o = &u->in.opnd[i];

		if (o->slot == ISA_SLOT_VADDR)
			for (int j = 0; j < o->dwords && k < IMAGE_ADDRESSES;
			     j++)
				dword[k++] = w->v[half][o->reg + j][lane];
	}
}

void image_addresses(const struct soft_wave *w, const struct soft_uop *u,
		     int half, uint32_t lane, int n, uint32_t *value)
{
	uint32_t dword[IMAGE_ADDRESSES];

	image_registers(w, u, half, lane, dword);
	for (int i = 0; i < n; i++)
		value[i] = !u->in.f[ISA_F_A16] ? dword[i] :
			   dword[i / 2] >> (i & 1 ? 16 : 0) & 0xffff;
}

static bool has_mip(const struct soft_uop *u)
{
	switch (u->in.op) {
	case ISA_image_load_mip:
	case ISA_image_load_mip_pck:
	case ISA_image_store_mip:
	case ISA_image_store_mip_pck:
		return true;
	}
	return false;
}

static struct texel find_texel(const struct soft_wave *w,
			       const struct soft_uop *u, int half,
			       uint32_t lane)
{
	const enum image_type type = types[u->in.f[ISA_F_DIM]];
	const int n = image_coordinates(type);
	uint32_t c[5] = { 0 };
	struct texel at;

	image_addresses(w, u, half, lane, n + has_mip(u), c);
	at.x = c[0];
	at.y = has_rows(type) ? c[1] : 0;
	at.z = type == IMAGE_1D_ARRAY ? c[1] : n == 3 ? c[2] : 0;
	at.level = has_mip(u) ? c[n] : 0;
	return at;
}

void image_select(const struct image *t, bool d16, const uint32_t in[4],
		  uint32_t out[4])
{
	for (int i = 0; i < 4; i++)
		out[i] = t->sel[i] >= 4 ? in[t->sel[i] - 4] :
			 t->sel[i] == 1 ? soft_format_one(t->format, d16) : 0;
}

/* A mask of no component is one of a component that is 0. */
void image_put(struct soft_wave *w, const struct soft_uop *u, int half,
	       uint32_t lane, const uint32_t value[4])
{
	const uint32_t mask = u->in.f[ISA_F_DMASK], reg = u->in.f[ISA_F_VDATA];
	const bool d16 = u->in.f[ISA_F_D16];
	int n = 0;

	for (int i = 0; i < 4; i++) {
		struct soft_access part = { .bytes = 4, .part = SOFT_WHOLE };
		uint32_t v = mask ? value[i] : 0;

		if (!((mask ? mask : 1) >> i & 1))
			continue;
		if (d16)
			part.part = n & 1 ? SOFT_HIGH : SOFT_LOW;
		soft_put_lane(w, &part, half, lane,
			      reg + (uint32_t)(d16 ? n / 2 : n), &v);
		n++;
	}
}

/* Components without a register are 0. */
static void get_components(const struct soft_wave *w, const struct soft_uop *u,
			   int half, uint32_t lane, uint32_t value[4])
{
	const uint32_t mask = u->in.f[ISA_F_DMASK], reg = u->in.f[ISA_F_VDATA];
	const bool d16 = u->in.f[ISA_F_D16];

	for (uint32_t i = 0, n = 0; i < 4; i++) {
		value[i] = 0;
		if (!(mask >> i & 1))
			continue;
		value[i] = w->v[half][reg + (d16 ? n / 2 : n)][lane];
		if (d16)
			value[i] = value[i] >> (n & 1 ? 16 : 0) & 0xffff;
		n++;
	}
}

/* ---------------------------------------------------- loads, stores ---- */

/* How a handler treats one lane; false after a fault. */
typedef bool lane_fn(struct soft_wave *w, const struct soft_uop *u,
		     const struct image *t, int half, uint32_t lane);

static void run_lanes(struct soft_wave *w, const struct soft_uop *u,
		      lane_fn *fn)
{
	struct image t;

	if (!image_init(&t, w, u))
		return;
	for (int h = 0; h < soft_halves(w); h++)
		FOR_LANES(lane, soft_exec(w, h))
	if (!fn(w, u, &t, h, lane))
		return;
}

static int lane_number(int half, uint32_t lane)
{
	return half * SOFT_LANES + (int)lane;
}

static bool load_lane(struct soft_wave *w, const struct soft_uop *u,
		      const struct image *t, int half, uint32_t lane)
{
	const bool d16 = u->in.f[ISA_F_D16];
	const struct texel at = find_texel(w, u, half, lane);
	uint32_t all[4], value[4] = { 0 };
	uint8_t mem[16] = { 0 };
	uint64_t va;

	if (image_find(t, &at, &va)) {
		if (!soft_load(w, va, mem, t->bytes, lane_number(half, lane)))
			return false;
		soft_format_load(t->format, d16, mem, all);
		image_select(t, d16, all, value);
	}
	image_put(w, u, half, lane, value);
	return true;
}

/* Which component of memory gets what a register holds for place i. */
static void undo_select(const struct image *t, const uint32_t in[4],
		     uint32_t out[4])
{
	memset(out, 0, 16);
	for (int i = 3; i >= 0; i--)
		if (t->sel[i] >= 4)
			out[t->sel[i] - 4] = in[i];
}

static bool store_lane(struct soft_wave *w, const struct soft_uop *u,
		       const struct image *t, int half, uint32_t lane)
{
	const struct texel at = find_texel(w, u, half, lane);
	uint32_t value[4], all[4];
	uint8_t mem[16] = { 0 };
	uint64_t va;

	if (!image_find(t, &at, &va))
		return true;
	get_components(w, u, half, lane, value);
	undo_select(t, value, all);
	soft_format_store(t->format, u->in.f[ISA_F_D16], all, mem);
	return soft_store(w, va, mem, t->bytes, lane_number(half, lane));
}

/* Texels as they are, in whole registers; the mask has one bit for each. */
static bool check_packed(struct soft_wave *w, const struct soft_uop *u,
			 const struct image *t)
{
	const uint32_t mask = u->in.f[ISA_F_DMASK];

	if (t->unbound || (t->bytes >= 4 && mask == (1u << t->bytes / 4) - 1))
		return true;
	return image_refuse(w, u, "dmask 0x%x with texels of %u bytes", mask,
			    t->bytes);
}

static bool load_packed(struct soft_wave *w, const struct soft_uop *u,
			const struct image *t, int half, uint32_t lane)
{
	const struct texel at = find_texel(w, u, half, lane);
	uint32_t value[4] = { 0 };
	uint64_t va;

	if (!check_packed(w, u, t) ||
	    (image_find(t, &at, &va) &&
	     !soft_load(w, va, value, t->bytes, lane_number(half, lane))))
		return false;
	image_put(w, u, half, lane, value);
	return true;
}

static bool store_packed(struct soft_wave *w, const struct soft_uop *u,
			 const struct image *t, int half, uint32_t lane)
{
	const struct texel at = find_texel(w, u, half, lane);
	uint32_t value[4];
	uint64_t va;

	if (!check_packed(w, u, t))
		return false;
	get_components(w, u, half, lane, value);
	return !image_find(t, &at, &va) ||
	       soft_store(w, va, value, t->bytes, lane_number(half, lane));
}

/* ----------------------------------------------------------- atomics ---- */

static const struct atomic {
	soft_atomic_fn *fn[2]; /* of 32 and 64 bits */
	bool two;
} atomics[ISA_OP_COUNT] = {
#define A(name, f, pair)                                                 \
	[ISA_image_atomic_##name] = { { soft_atomic_##f##_32,            \
					soft_atomic_##f##_64 }, pair },
	A(swap, swap, false)
	A(cmpswap, cmpswap, true)
	A(add, add, false)
	A(sub, sub, false)
	A(smin, min_i, false)
	A(umin, min_u, false)
	A(smax, max_i, false)
	A(umax, max_u, false)
	A(and, and, false)
	A(or, or, false)
	A(xor, xor, false)
	A(inc, inc, false)
	A(dec, dec, false)
#undef A
};

/* DMASK counts the dwords of all operands; texels are one operand. */
static bool check_atomic(struct soft_wave *w, const struct soft_uop *u,
			 const struct image *t, uint32_t bytes)
{
	const bool two = atomics[u->in.op].two;
	const uint32_t mask = u->in.f[ISA_F_DMASK];

	if ((mask == (1u << (bytes / 4 << two)) - 1) &&
	    (t->unbound || t->bytes == bytes))
		return true;
	return image_refuse(w, u, "dmask 0x%x with texels of %u bytes", mask,
			    t->unbound ? bytes : t->bytes);
}

static bool atomic_lane(struct soft_wave *w, const struct soft_uop *u,
			const struct image *t, int half, uint32_t lane)
{
	const struct atomic *a = &atomics[u->in.op];
	const bool wide = u->in.f[ISA_F_DMASK] == (a->two ? 15u : 3u);
	const struct soft_access access = { .bytes = wide ? 8 : 4,
					    .fn = a->fn[wide],
					    .two = a->two };
	const struct texel at = find_texel(w, u, half, lane);
	const uint32_t reg = u->in.f[ISA_F_VDATA];
	uint64_t va, x, y, old = 0;

	if (!check_atomic(w, u, t, access.bytes))
		return false;
	soft_get_operands(w, &access, half, lane, reg, &x, &y);
	if (image_find(t, &at, &va)) {
		void *host = soft_host_address(w, va, access.bytes,
					       SOFT_MEM_READ | SOFT_MEM_WRITE,
					       lane_number(half, lane));

		if (!host)
			return false;
		old = soft_atomic_apply(host, access.bytes, access.fn, x, y,
					w->mode);
	}
	if (u->in.f[ISA_F_GLC])
		soft_put_old(w, &access, half, lane, reg, old);
	return true;
}

/* ------------------------------------------------------ what it is ------ */

/* Width, height, depth or slices, and the levels of the view. */
static bool info_lane(struct soft_wave *w, const struct soft_uop *u,
		      const struct image *t, int half, uint32_t lane)
{
	uint32_t level, value[4] = { 0 };

	image_addresses(w, u, half, lane, 1, &level);
	if (t->unbound) {
		image_put(w, u, half, lane, value);
		return true;
	}
	if (t->type == IMAGE_1D_ARRAY)
		return image_refuse(w, u, "where the slices of a 1D array are "
				    "returned is not published");
	if (level > t->last_level - t->base_level)
		return image_refuse(w, u, "level %u of a view that has %u",
				    level, t->last_level - t->base_level + 1);
	image_extent(t, level, value);
	value[3] = t->last_level - t->base_level + 1;
	image_put(w, u, half, lane, value);
	return true;
}

/* ------------------------------------------------------------- table ---- */

static void run_load(struct soft_wave *w, const struct soft_uop *u)
{
	run_lanes(w, u, load_lane);
}

static void run_load_packed(struct soft_wave *w, const struct soft_uop *u)
{
	run_lanes(w, u, load_packed);
}

static void run_store(struct soft_wave *w, const struct soft_uop *u)
{
	run_lanes(w, u, store_lane);
}

static void run_store_packed(struct soft_wave *w, const struct soft_uop *u)
{
	run_lanes(w, u, store_packed);
}

static void run_atomic(struct soft_wave *w, const struct soft_uop *u)
{
	run_lanes(w, u, atomic_lane);
}

static void run_info(struct soft_wave *w, const struct soft_uop *u)
{
	run_lanes(w, u, info_lane);
}

static soft_handler *handler_of(const struct isa_inst *in)
{
	if (atomics[in->op].fn[0])
		return run_atomic;
	switch (in->op) {
	case ISA_image_load:
	case ISA_image_load_mip:
		return run_load;
	case ISA_image_load_pck:
	case ISA_image_load_mip_pck:
		return run_load_packed;
	case ISA_image_store:
	case ISA_image_store_mip:
		return run_store;
	case ISA_image_store_pck:
	case ISA_image_store_mip_pck:
		return run_store_packed;
	case ISA_image_get_resinfo:
		return run_info;
	case ISA_image_sample:
	case ISA_image_sample_l:
	case ISA_image_sample_lz:
		return image_sample_run;
	case ISA_image_bvh_intersect_ray:
	case ISA_image_bvh64_intersect_ray:
		return image_ray_run;
	}
	return NULL;
}

/* Components of halves are by number or by place: the manual says both. */
static bool is_ambiguous(const struct isa_inst *in)
{
	const uint32_t mask = in->f[ISA_F_DMASK];

	return isa_op_info((enum isa_op)in->op)->flags & ISA_STORE &&
	       (!mask || (in->f[ISA_F_D16] && mask & (mask + 1)));
}

const char *soft_image_refusal(const struct isa_inst *in)
{
	switch (in->op) {
	case ISA_image_msaa_load:
		return ": multisampled images belong to graphics";
	case ISA_image_load_pck_sgn:
	case ISA_image_load_mip_pck_sgn:
		return ": what it sign-extends is not published";
	case ISA_image_bvh_intersect_ray:
	case ISA_image_bvh64_intersect_ray:
		return image_ray_refusal(in);
	}
	if (isa_op_info((enum isa_op)in->op)->flags & ISA_SAMPLER &&
	    image_sample_refusal(in))
		return image_sample_refusal(in);
	if (in->f[ISA_F_TFE] || in->f[ISA_F_LWE])
		return ": no status of partially resident images (tfe, lwe)";
	if (in->f[ISA_F_R128])
		return ": gfx11 has no images of 128-bit descriptors (r128)";
	if (!types[in->f[ISA_F_DIM]])
		return ": cubes and multisampled images belong to graphics";
	return is_ambiguous(in) ? ": which components dmask means is not "
				  "certain" :
				  NULL;
}

soft_handler *soft_image_handler(const struct isa_inst *in)
{
	return soft_image_refusal(in) ? NULL : handler_of(in);
}
