/*
 * Fuzz target: code objects.  Any bytes may be given to co_unbundle(),
 * co_parse() and co_image_build(); what they accept must keep the promises of
 * isa/object/object.h, which are checked here by reading everything they point
 * at.
 *
 * The input lies right before an unmapped page, because libelf is not built
 * with sanitizers: a read past the end must crash all the same.
 */
#include <stdlib.h>
#include <string.h>

#include "isa/object/object.h"
#include "tests/isa/guard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes);

#define ROOM_BYTES  (1u << 20)
#define IMAGE_BYTES (1u << 20)

static uint8_t *end_of_room(void)
{
	static uint8_t *end;

	if (!end)
		end = guard_end(ROOM_BYTES);
	return end;
}

static uint64_t sum_bytes(const uint8_t *p, uint64_t n)
{
	uint64_t sum = 0;

	while (n--)
		sum += *p++;
	return sum;
}

static uint64_t read_kernel(const struct co *co, const struct co_kernel *k)
{
	uint64_t sum = strlen(k->name) + strlen(k->symbol);

	sum += strlen(k->language) + sum_bytes(k->code, k->code_bytes);
	if (k->entry_off >= co->span_bytes || k->desc_off >= co->span_bytes)
		BUG("kernel %s leaves the image", k->name);
	if (co_kernel_find(co, k->symbol) != k)
		BUG("kernel %s is not found", k->name);
	for (uint32_t i = 0; i < k->n_args; i++) {
		const struct co_arg *a = &k->args[i];

		if (a->offset + a->size > k->kernarg_bytes)
			BUG("argument %u leaves the segment", i);
		sum += strlen(a->name) + strlen(a->type_name);
		sum += strlen(a->kind_name) + co_arg_is_hidden(a);
	}
	return sum;
}

/* Touches all that the struct points at; the sum keeps the compiler honest. */
static uint64_t read_all(const struct co *co)
{
	uint64_t sum = strlen(co->chip) + strlen(co->target);

	for (uint32_t i = 0; i < co->n_segments; i++)
		sum += sum_bytes(co->bytes + co->segments[i].offset,
				 co->segments[i].filesz);
	for (uint32_t i = 0; i < co->n_texts; i++)
		sum += strlen(co->texts[i].name) +
		       sum_bytes(co->texts[i].data, co->texts[i].size_bytes);
	for (uint32_t i = 0; i < co->n_symbols; i++)
		sum += strlen(co->symbols[i].name);
	for (uint32_t i = 0; i < co->n_relocs; i++)
		sum += strlen(co->relocs[i].symbol);
	for (uint32_t i = 0; i < co->n_kernels; i++)
		sum += read_kernel(co, &co->kernels[i]);
	return sum;
}

static void build(const struct co *co)
{
	struct err e = { 0 };
	void *image;

	if (co->span_bytes > IMAGE_BYTES)
		return;
	image = xmalloc(co->span_bytes);
	co_image_build(co, image, co->span_bytes, UINT64_C(0x7f0012340000), &e);
	if (co_image_build(co, image, co->span_bytes - 1, 0, &e))
		BUG("an image was built in too little memory");
	free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_bytes)
{
	static volatile uint64_t sink;
	struct err e = { 0 };
	const void *object = data;
	size_t len = size_bytes;
	struct co co;

	if (size_bytes && size_bytes <= ROOM_BYTES)
		object = memcpy(end_of_room() - size_bytes, data, size_bytes);
	if (!co_unbundle(object, len, "gfx1100", &object, &len, &e))
		return 0;
	if (co_parse(&co, object, len, &e)) {
		sink += read_all(&co);
		build(&co);
	} else if (e.code == ERR_NONE || !e.msg[0]) {
		BUG("refused without a reason");
	}
	co_fini(&co);
	return 0;
}
