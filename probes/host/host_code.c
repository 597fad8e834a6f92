/*
 * probes/host/host_code.c - loops of machine code, made at run time.
 *
 * Their memory is first written and then executed, never both at once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <x86intrin.h>

#include "probes/host/host.h"

#define CODE_BYTES (8u << 20)

struct host_code {
	uint8_t *base;
	size_t used;
};

/* ------------------------------------------------ beginnings and ends --- */

#define BEGIN                                                                 \
	"push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\npush %r15\n"  \
	"mov %rdi, %rbx\nmov %rsi, %rbp\n"                                    \
	"mov 0(%rbx), %rdi\nmov 8(%rbx), %rsi\nmov 16(%rbx), %rdx\n"          \
	"mov 24(%rbx), %rcx\n"                                                \
	".irp r,8,9,10,11,12,13,14,15\nmov 32(%rbx), %r\\r\n.endr\n"
/* The registers 0 and from 4 on = x, 1 to 3 = a, b, k; then the zero flag
 * is made clear for conditional moves. */
#define VECTORS(mov, reg, more)                                       \
	mov " 128(%rbx), %" reg "1\n" mov " 192(%rbx), %" reg "2\n"   \
	mov " 256(%rbx), %" reg "3\n" mov " 64(%rbx), %" reg "0\n"    \
	".irp r,4,5,6,7,8,9,10,11,12,13,14,15" more "\n"              \
	mov " 64(%rbx), %" reg "\\r\n.endr\ntest %rsp, %rsp\n"
#define END(save, upper)                                               \
	"mov %r8, 40(%rbx)\n" save "\n" upper "\n"                     \
	"pop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\nret\n"
#define BYTES(label, text)                                                \
	__asm__(".pushsection .rodata\n.hidden " #label ", " #label "_end\n" \
		".globl " #label ", " #label "_end\n" #label ":\n" text   \
		#label "_end:\n.byte 0xcc\n.popsection\n");               \
	extern const uint8_t label[], label##_end[];

BYTES(host_begin_sse, BEGIN VECTORS("movups", "xmm", ""))
BYTES(host_begin_avx, BEGIN VECTORS("vmovups", "ymm", ""))
BYTES(host_begin_512,
      BEGIN VECTORS("vmovups", "zmm",
		    ",16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31"))
BYTES(host_end_sse, END("movups %xmm4, 320(%rbx)", ""))
BYTES(host_end_avx, END("vmovups %ymm4, 320(%rbx)", "vzeroupper"))
BYTES(host_end_512, END("vmovups %zmm4, 320(%rbx)", "vzeroupper"))

struct span {
	const uint8_t *from, *to;
};
static const struct level {
	struct span begin, end;
} levels[] = {
	{ { host_begin_sse, host_begin_sse_end },
	  { host_end_sse, host_end_sse_end } },
	{ { host_begin_avx, host_begin_avx_end },
	  { host_end_avx, host_end_avx_end } },
	{ { host_begin_512, host_begin_512_end },
	  { host_end_512, host_end_512_end } },
};

static const struct level *level_of(enum host_need need)
{
	return &levels[need >= HOST_AVX512F ? 2 : need >= HOST_AVX ? 1 : 0];
}

/* ---------------------------------------------------------------- loops -- */

struct host_code *host_code_new(struct err *e)
{
	void *p = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		err_sys(e, ERR_NOMEM, errno, "mapping %u bytes for code",
			CODE_BYTES);
		return NULL;
	}
	struct host_code *c = xcalloc(1, sizeof(*c));
	c->base = p;
	return c;
}

void host_code_free(struct host_code *c)
{
	if (c)
		munmap(c->base, CODE_BYTES);
	free(c);
}

static void append_bytes(struct host_code *c, const void *bytes, size_t n)
{
	if (n)
		memcpy(c->base + c->used, bytes, n);
	c->used += n;
}

static void put_span(struct host_code *c, const struct span *s)
{
	append_bytes(c, s->from, (size_t)(s->to - s->from));
}

static void align_code(struct host_code *c)
{
	while (c->used % 64)
		c->base[c->used++] = 0x90; /* nop */
}

host_loop_fn *host_code_loop(struct host_code *c, enum host_need need,
			     const uint8_t *piece, size_t piece_bytes,
			     const uint8_t *second, size_t second_bytes,
			     unsigned copies)
{
	static const uint8_t dec_rbp[] = { 0x48, 0xff, 0xcd };
	static const uint8_t jne[] = { 0x0f, 0x85 };
	const struct level *l = level_of(need);

	if (c->used + copies * (piece_bytes + second_bytes) + 1024 > CODE_BYTES)
		return NULL;
	align_code(c);
	uint8_t *entry = c->base + c->used;
	put_span(c, &l->begin);
	align_code(c);
	const size_t top = c->used;
	for (unsigned i = 0; i < copies; i++) {
		append_bytes(c, piece, piece_bytes);
		append_bytes(c, second, second_bytes);
	}
	append_bytes(c, dec_rbp, sizeof(dec_rbp));
	append_bytes(c, jne, sizeof(jne));
	const int32_t back = (int32_t)(top - (c->used + 4));
	append_bytes(c, &back, sizeof(back));
	put_span(c, &l->end);

	host_loop_fn *f;
	memcpy(&f, &entry, sizeof(f));
	return f;
}

bool host_code_seal(struct host_code *c, struct err *e)
{
	if (mprotect(c->base, CODE_BYTES, PROT_READ | PROT_EXEC))
		return err_sys(e, ERR_PERM, errno, "making %zu bytes of code "
			       "executable", c->used);
	return true;
}

uint64_t host_time(host_loop_fn *f, struct host_state *s, uint64_t iterations)
{
	unsigned cpu;

	_mm_lfence();
	const uint64_t start = __rdtsc();
	_mm_lfence();
	f(s, iterations);
	const uint64_t end = __rdtscp(&cpu);
	_mm_lfence();
	return end - start;
}
