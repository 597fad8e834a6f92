/*
 * engine/cmd/serve/cmd_serve_page.c - the chat page of t0-qwen3 serve:
 * page.html, as it is.
 */
#include "engine/cmd/serve/cmd_serve.h"

__asm__(".section .rodata\n"
	"page:\n"
	"	.incbin \"engine/cmd/serve/page.html\"\n"
	"page_end:\n"
	"	.previous");
extern const char page[], page_end[];

/* It reaches this server and nobody else. */
static const char policy[] =
	"default-src 'none'; script-src 'unsafe-inline'; style-src "
	"'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; "
	"form-action 'none'; frame-ancestors 'none'";

enum MHD_Result serve_send_page(struct MHD_Connection *con)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(
		(size_t)(page_end - page), (void *)(uintptr_t)page,
		MHD_RESPMEM_PERSISTENT);
	enum MHD_Result done;

	MHD_add_response_header(r, "Content-Type", "text/html; charset=utf-8");
	MHD_add_response_header(r, "Content-Security-Policy", policy);
	MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(r, "Cache-Control", "no-cache");
	done = MHD_queue_response(con, MHD_HTTP_OK, r);
	MHD_destroy_response(r);
	return done;
}
