/*
 * Fuzz target: what kernels print.  Formats come from a code object and records
 * from device memory: both are anybody's.  Lines of the first part are entries
 * of the metadata, an empty line ends it, and the rest are arguments.
 */
#include <stdlib.h>
#include <string.h>

#include "kfd/runtime/printf.h"
#include "tests/attack/driver/driver.h"

enum { ENTRIES = 16, PRINTED = 4 << 20 };

static void check_text(const struct buf *out)
{
	if (out->len > PRINTED)
		BUG("%zu bytes of text", out->len);
}

/* Exactly as long as declared, so that sanitizers see the end. */
static void print_records(const struct kfd_formats *f, const uint8_t *args,
			  size_t len)
{
	for (uint32_t id = 0; id < 8; id++) {
		struct buf out = { 0 };
		uint32_t wanted = kfd_formats_bytes(f, id);

		if (wanted > kfd_formats_record_bytes(f))
			BUG("a record of %u bytes is larger than the largest",
			    wanted);
		if (kfd_format_record(f, id, args, len, &out) != (wanted > 0))
			BUG("format %u is known and not known", id);
		check_text(&out);
		buf_fini(&out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *entry[ENTRIES];
	struct buf out = { 0 };
	uint32_t n = 0;

	if (size > 4096)
		return 0;
	char *text = xmalloc(size + 1), *at = text;
	memcpy(text, data, size);
	text[size] = '\0';
	while (n < ENTRIES && *at && *at != '\n') {
		entry[n++] = at;
		at += strcspn(at, "\n");
		if (*at)
			*at++ = '\0';
	}
	at += *at == '\n';
	size_t len = text + size - at;
	uint8_t *args = xmalloc(len);
	memcpy(args, at, len);
	struct kfd_formats *f = kfd_formats_new(entry, n);
	print_records(f, args, len);
	kfd_formats_free(f);
	if (n)
		kfd_format_words(entry[0], args, len, &out);
	check_text(&out);
	buf_fini(&out);
	free(args);
	free(text);
	return 0;
}
