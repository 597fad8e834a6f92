/*
 * What the inputs reach.  gcc calls __sanitizer_cov_trace_pc() in every basic
 * block: the address it returns to names the block.  How many there are is
 * counted in the program's own text, where each is a call (0xe8 and a distance)
 * of that function.
 */
#include <link.h>
#include <string.h>

#include "base/base.h"
#include "tests/attack/driver/driver.h"

enum { TOUCHED_MAX = 1 << 20, PAIRS_MAX = 512 };

static uintptr_t text;
static size_t text_bytes;
static uint8_t *hits;	   /* [text_bytes] of this input, by address */
static uint8_t *seen;	   /* [text_bytes] a bit per class of hits, ever */
static uint32_t *touched;  /* addresses with hits */
static uint32_t n_touched, n_blocks, n_reached;
static struct cover_pair pairs[PAIRS_MAX];
static size_t n_pairs;
static __thread bool recording, comparing;

void __sanitizer_cov_trace_pc(void);

void __sanitizer_cov_trace_pc(void)
{
	size_t at = (uintptr_t)__builtin_return_address(0) - text;

	if (!recording || at >= text_bytes)
		return;
	if (!hits[at]) {
		if (n_touched == TOUCHED_MAX)
			return;
		touched[n_touched++] = at;
	}
	hits[at] += hits[at] < 255;
}

/* ---- comparisons ---- */

static void keep_pair(const void *a, size_t size_a, const void *b,
		      size_t size_b)
{
	/* The last ones win: they are nearer to what stopped the input. */
	struct cover_pair *p = &pairs[n_pairs++ % PAIRS_MAX];

	p->size_a = size_a < sizeof(p->a) ? size_a : sizeof(p->a);
	p->size_b = size_b < sizeof(p->b) ? size_b : sizeof(p->b);
	memcpy(p->a, a, p->size_a);
	memcpy(p->b, b, p->size_b);
}

static void keep_numbers(uint64_t a, uint64_t b, size_t size)
{
	if (comparing && a != b)
		keep_pair(&a, size, &b, size);
}

#define COMPARED(bytes, type)                                        \
	void __sanitizer_cov_trace_cmp##bytes(type a, type b);       \
	void __sanitizer_cov_trace_const_cmp##bytes(type a, type b); \
	void __sanitizer_cov_trace_cmp##bytes(type a, type b)        \
	{                                                            \
		keep_numbers(a, b, bytes);                           \
	}                                                            \
	void __sanitizer_cov_trace_const_cmp##bytes(type a, type b)  \
	{                                                            \
		keep_numbers(a, b, bytes);                           \
	}
COMPARED(1, uint8_t)
COMPARED(2, uint16_t)
COMPARED(4, uint32_t)
COMPARED(8, uint64_t)

/* gcc refers to these, too; numbers as text are no bytes to find. */
void __sanitizer_cov_trace_cmpf(float a, float b);
void __sanitizer_cov_trace_cmpd(double a, double b);
void __sanitizer_cov_trace_switch(uint64_t value, const uint64_t *cases);

void __sanitizer_cov_trace_cmpf(float a, float b)
{
	(void)a, (void)b;
}

void __sanitizer_cov_trace_cmpd(double a, double b)
{
	(void)a, (void)b;
}

/* cases: how many, bits of the value, the values. */
void __sanitizer_cov_trace_switch(uint64_t value, const uint64_t *cases)
{
	if (comparing && cases[0])
		keep_numbers(value, cases[2 + n_pairs % cases[0]],
			     cases[1] / 8);
}

/* The address sanitizer's own strcmp() and the like call these. */
#define HOOK(name, ...)                                                   \
	VISIBLE void __sanitizer_weak_hook_##name(void *, __VA_ARGS__);   \
	void __sanitizer_weak_hook_##name(void *pc, __VA_ARGS__)

static void keep_texts(void *pc, const char *a, size_t size_a, const char *b,
		       size_t size_b, int result)
{
	(void)pc;
	if (comparing && result)
		keep_pair(a, size_a, b, size_b);
}

HOOK(strcmp, const char *a, const char *b, int result)
{
	keep_texts(pc, a, strnlen(a, 32), b, strnlen(b, 32), result);
}

HOOK(strcasecmp, const char *a, const char *b, int result)
{
	keep_texts(pc, a, strnlen(a, 32), b, strnlen(b, 32), result);
}

HOOK(strncmp, const char *a, const char *b, size_t n, int result)
{
	n = n < 32 ? n : 32;
	keep_texts(pc, a, strnlen(a, n), b, strnlen(b, n), result);
}

HOOK(strncasecmp, const char *a, const char *b, size_t n, int result)
{
	n = n < 32 ? n : 32;
	keep_texts(pc, a, strnlen(a, n), b, strnlen(b, n), result);
}

HOOK(memcmp, const void *a, const void *b, size_t n, int result)
{
	keep_texts(pc, a, n, b, n, result);
}

/* ---- from input to input ---- */

static int find_text(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size, (void)ctx;
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD &&
		    info->dlpi_phdr[i].p_flags & PF_X) {
			text = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			text_bytes = info->dlpi_phdr[i].p_memsz;
		}
	return 1; /* the program itself is the first */
}

void cover_init(void)
{
	dl_iterate_phdr(find_text, NULL);
	hits = xcalloc(text_bytes, 1);
	seen = xcalloc(text_bytes, 1);
	touched = xcalloc(TOUCHED_MAX, sizeof(*touched));
	for (size_t i = 0; i + 5 <= text_bytes; i++) {
		const uint8_t *p = (const uint8_t *)text + i;
		int32_t distance;

		memcpy(&distance, p + 1, sizeof(distance));
		n_blocks += *p == 0xe8 && (uintptr_t)p + 5 + distance ==
			(uintptr_t)__sanitizer_cov_trace_pc;
	}
}

uint32_t cover_blocks(void)
{
	return n_blocks;
}

uint32_t cover_reached(void)
{
	return n_reached;
}

void cover_start(bool with_pairs)
{
	if (with_pairs)
		n_pairs = 0;
	comparing = with_pairs;
	recording = true;
}

/* 1, 2, 3, 4..7, 8..15, 16..31, 32..127, more: a bit each. */
static uint8_t class_of(uint8_t n)
{
	if (n < 4)
		return 1 << (n - 1);
	return n < 8 ? 8 : n < 16 ? 16 : n < 32 ? 32 : n < 128 ? 64 : 128;
}

uint32_t cover_stop(uint32_t *more)
{
	uint32_t before = n_reached;

	recording = comparing = false;
	*more = 0;
	for (uint32_t i = 0; i < n_touched; i++) {
		uint32_t at = touched[i];
		uint8_t class = class_of(hits[at]);

		hits[at] = 0;
		n_reached += !seen[at];
		*more += !(seen[at] & class);
		seen[at] |= class;
	}
	n_touched = 0;
	return n_reached - before;
}

const struct cover_pair *cover_pairs(size_t *n)
{
	*n = n_pairs < PAIRS_MAX ? n_pairs : PAIRS_MAX;
	return pairs;
}
