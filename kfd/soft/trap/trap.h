/*
 * kfd/soft/trap/trap.h - inside soft-trap, through which programs that make
 * system calls of their own see the gfx1100 in software: statically linked
 * ones, those of Go, and all others.
 *
 * soft-trap is the program's loader: a static program at an address of its
 * own that already holds the soft device.  It maps the program into its own
 * process (load.c), has the kernel turn those system calls that may concern
 * the device into SIGSYS, unless they come from its own code (filter.c), and
 * jumps to the program's entry.  The handler (calls.c, signals.c) answers, or
 * makes the call itself.  A program that is executed goes the same way.
 *
 * The handler runs on the program's threads, with the program's thread
 * pointer or none: it and all that it calls use no thread-local variable, so
 * no errno and little of libc.  What needs more - the device - is done by
 * threads of our own (serve.c), which the filter does not concern, in the
 * same memory and with the same descriptors.
 *
 * A child of fork() has no device until it executes a program.
 */
#ifndef T0_KFD_TRAP_TRAP_H
#define T0_KFD_TRAP_TRAP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <ucontext.h>

/* Where the build puts our code; programs lie elsewhere. */
#define TRAP_TEXT_FIRST 0x70000000u
#define TRAP_TEXT_LAST 0x77ffffffu
/* In the sixth argument of munmap(), which has two: let it through. */
#define TRAP_AGAIN 0x7430616761696e21ull
/* More than any path of the device's has; signal stacks are small. */
#define TRAP_PATH 512

/* What our own command line says, handed on to what the program executes. */
enum trap_arg {
	TRAP_SELF,    /* the path of this loader */
	TRAP_ROOT,    /* T0_SOFT_ROOT, T0_SOFT_OPTIONS and T0_SOFT_LOG */
	TRAP_OPTIONS,
	TRAP_LOG,
	TRAP_PROGRAM, /* its path; its own arguments follow */
	TRAP_ARGS,
};
struct trap_state {
	char self[4096], program[4096];
	const char *arg[TRAP_ARGS];
	pid_t owner; /* the process that has our threads */
};
extern struct trap_state trap;

/* A system call of the program. */
struct trap_call {
	long nr;
	uint64_t arg[6];
	ucontext_t *context;
};

/* A system call of ours: the result, or -errno. */
static inline long trap_raw(long nr, uint64_t a, uint64_t b, uint64_t c,
			    uint64_t d, uint64_t e, uint64_t f)
{
	register uint64_t r10 __asm__("r10") = d;
	register uint64_t r8 __asm__("r8") = e;
	register uint64_t r9 __asm__("r9") = f;
	long ret = nr;

	__asm__ volatile("syscall"
			 : "+a"(ret)
			 : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

/* ---------------------------------------------------------- filter.c ---- */

/* From here on the calling thread's calls are trapped; false: errno. */
bool trap_filter(void);

/* ------------------------------------------------------------ load.c ---- */

/* Map the program and jump to it; returns only with a line in `why`. */
void trap_load(const char *path, char **argv, char **envp, char why[256]);

/* ----------------------------------------------------------- calls.c ---- */

/* The handler of SIGSYS. */
void trap_handle(int sig, siginfo_t *info, void *context);

/* --------------------------------------------------------- signals.c ---- */

long trap_sigaction(const struct trap_call *c);
long trap_sigprocmask(const struct trap_call *c);
/* Is the GPU given memory of the program?  Then mappings are its business. */
bool trap_guards(void);
/* Make a call that may wait, with the program's own signals let in. */
long trap_wait(const struct trap_call *c, long nr, uint64_t x, uint64_t y,
	       uint64_t z, uint64_t w);
/* Copies that fail with -EFAULT where the kernel's would. */
long trap_copy_in(void *to, uint64_t from, size_t n);
long trap_copy_out(uint64_t to, const void *from, size_t n);

/* ----------------------------------------------------------- serve.c ---- */

enum trap_ask {
	TRAP_OPENING,
	TRAP_OPENED,
	TRAP_IOCTL,
	TRAP_MMAP,
	TRAP_OWNS,
	TRAP_MUNMAP,
	TRAP_MPROTECT,
	TRAP_REPLACED, /* these pages have another mapping */
	TRAP_GONE,
};

/* Make the first of the threads; false: errno. */
bool trap_serve(void);
/* Have one of them do it: what it returns, errors as -errno. */
long trap_ask(const struct trap_call *c, enum trap_ask what, uint64_t x,
	      uint64_t y);
/* Is there a device whose descriptors must be kept? */
bool trap_has_device(void);

#endif
