/*
 * isa/verify/verify_co.c - what a code object says about a kernel, for the
 * verifier.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/verify/verify.h"

enum { STT_FUNC_ = 2 };

void verify_input_raw(struct verify_input *in, struct isa_target target,
		      const void *code, size_t size_bytes)
{
	memset(in, 0, sizeof(*in));
	in->target = target;
	in->code = code;
	in->size_bytes = size_bytes & ~(size_t)3;
	in->vgprs = in->sgprs = -1;
	in->lds_bytes = in->scratch_bytes = -1;
	in->user_sgprs = in->system_sgprs = -1;
	in->sgpr_set[0] = in->sgpr_set[1] = ~UINT64_C(0);
}

static int by_start(const void *a, const void *b)
{
	const struct verify_func *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void push_func(struct verify_input *in, uint64_t start, uint64_t size)
{
	uint64_t end = in->vaddr + in->size_bytes;

	if (start < in->vaddr || start >= end)
		return;
	in->func[in->n_funcs].start = start;
	in->func[in->n_funcs++].end = size < end - start ? start + size : end;
}

/* Functions from symbols; kernels of stripped objects end at the next one. */
static void find_funcs(struct verify_input *in, const struct co *co)
{
	int n = 0;

	in->func = xcalloc((size_t)co->n_symbols + co->n_kernels + 1,
			   sizeof(*in->func));
	for (uint32_t i = 0; i < co->n_symbols; i++)
		if (co->symbols[i].type == STT_FUNC_ &&
		    co->symbols[i].size_bytes)
			push_func(in, co->symbols[i].vaddr,
				  co->symbols[i].size_bytes);
	for (uint32_t i = 0; i < co->n_kernels; i++)
		push_func(in, co->kernels[i].entry_vaddr,
			  co->kernels[i].code_bytes);
	qsort(in->func, in->n_funcs, sizeof(*in->func), by_start);
	for (int i = 0; i < in->n_funcs; i++) {
		if (n && in->func[n - 1].start == in->func[i].start) {
			if (in->func[i].end < in->func[n - 1].end)
				in->func[n - 1].end = in->func[i].end;
			continue;
		}
		if (n && in->func[n - 1].end > in->func[i].start)
			in->func[n - 1].end = in->func[i].start;
		in->func[n++] = in->func[i];
	}
	in->n_funcs = n;
}

static void set_sgprs(struct verify_input *in, int first, int n)
{
	for (int r = first; r < first + n && r < 128; r++)
		in->sgpr_set[r / 64] |= UINT64_C(1) << (r & 63);
}

/* In the order in which the packet processor loads them. */
static void initial_sgprs(struct verify_input *in,
			  const struct co_descriptor *d)
{
	static const struct {
		uint16_t property;
		uint8_t count;
	} user[] = {
		{ CO_PROP_PRIVATE_SEGMENT_BUFFER, 4 },
		{ CO_PROP_DISPATCH_PTR, 2 },
		{ CO_PROP_QUEUE_PTR, 2 },
		{ CO_PROP_KERNARG_SEGMENT_PTR, 2 },
		{ CO_PROP_DISPATCH_ID, 2 },
		{ CO_PROP_FLAT_SCRATCH_INIT, 2 },
		{ CO_PROP_PRIVATE_SEGMENT_SIZE, 1 },
	};
	enum { RSRC2_PRIVATE_SEGMENT = 1, RSRC2_ID_X = 7, RSRC2_INFO = 10 };
	int at = 0;

	in->user_sgprs = co_descriptor_user_sgprs(d);
	in->system_sgprs = 0;
	in->sgpr_set[0] = in->sgpr_set[1] = 0;
	for (size_t i = 0; i < ARRAY_SIZE(user); i++) {
		if (!(d->properties & user[i].property))
			continue;
		set_sgprs(in, at, user[i].count);
		at += user[i].count;
	}
	for (int bit = RSRC2_ID_X; bit <= RSRC2_INFO; bit++)
		in->system_sgprs += d->rsrc2 >> bit & 1;
	if (!isa_gen_info(in->target.gen)->own_scratch)
		in->system_sgprs += d->rsrc2 & RSRC2_PRIVATE_SEGMENT;
	set_sgprs(in, in->user_sgprs, in->system_sgprs);
}

static bool dynamic_lds(const struct co_kernel *k)
{
	for (uint32_t i = 0; i < k->n_args; i++)
		if (k->args[i].kind == CO_ARG_DYNAMIC_SHARED_POINTER ||
		    k->args[i].kind == CO_ARG_HIDDEN_DYNAMIC_LDS_SIZE)
			return true;
	/* Without metadata nothing says that there is none. */
	return !k->has_metadata;
}

static void read_descriptor(struct verify_input *in, const struct co_kernel *k)
{
	enum { RSRC1_WGP_MODE = 29 };

	in->vgprs = co_descriptor_vgprs(&k->desc);
	in->sgprs = k->has_metadata && k->sgpr_count ? (int)k->sgpr_count : -1;
	in->lds_bytes = dynamic_lds(k) ? -1 :
					 (int64_t)k->desc.group_segment_bytes;
	in->scratch_bytes = k->uses_dynamic_stack ||
					    k->desc.properties &
						    CO_PROP_DYNAMIC_STACK ?
				    -1 :
				    (int64_t)k->desc.private_segment_bytes;
	in->wgp_mode = k->desc.rsrc1 >> RSRC1_WGP_MODE & 1;
	in->max_workgroup = k->max_flat_workgroup_size;
	for (int d = 0; d < 3; d++)
		in->workgroup_dim[d] = k->reqd_workgroup_size[d];
	if (in->workgroup_dim[0])
		in->max_workgroup = in->workgroup_dim[0] *
				    in->workgroup_dim[1] * in->workgroup_dim[2];
	initial_sgprs(in, &k->desc);
}

bool verify_input_kernel(struct verify_input *in, const struct co *co,
			 const struct co_kernel *k, struct err *e)
{
	const struct isa_chip *chip = isa_chip_of_code(co->chip);
	struct isa_target t = { .gen = chip ? chip->gen : ISA_GFX11,
				.wave = co_descriptor_wave_size(&k->desc) };
	const struct co_text *text = NULL;

	if (!chip)
		return err_set(e, ERR_UNSUPPORTED,
			       "the object is for %s, which T0 does not know",
			       co->chip);
	for (uint32_t i = 0; i < co->n_texts; i++)
		if (co->texts[i].vaddr <= k->entry_vaddr &&
		    k->entry_vaddr - co->texts[i].vaddr <
			    co->texts[i].size_bytes)
			text = &co->texts[i];
	verify_input_raw(in, t, text ? text->data : k->code,
			 text ? text->size_bytes : k->code_bytes);
	in->vaddr = text ? text->vaddr : k->entry_vaddr;
	in->entry = k->entry_vaddr;
	find_funcs(in, co);
	read_descriptor(in, k);
	return true;
}

void verify_input_fini(struct verify_input *in)
{
	free(in->func);
	in->func = NULL;
	in->n_funcs = 0;
}
