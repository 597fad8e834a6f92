/*
 * kfd/soft/trap/filter.c - the seccomp filter: which system calls are trapped.
 *
 * Those that name a file by its path or a descriptor that may be a node's, and
 * those that change mappings, which the GPU may have in use, and those that
 * would touch what the loader keeps: the break, the handlers, and the program
 * that is executed.  Calls from our own code go through.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/base.h"
#include "kfd/soft/trap/trap.h"

#define FIELD(name) (uint32_t)offsetof(struct seccomp_data, name)
#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (at))
#define JUMP(op, k, yes, no) BPF_JUMP(BPF_JMP | (op) | BPF_K, (k), (yes), (no))
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, (what))

static const int trapped[] = {
	SYS_open, SYS_openat, SYS_openat2, SYS_stat, SYS_lstat, SYS_fstat,
	SYS_newfstatat, SYS_statx, SYS_access, SYS_faccessat, SYS_faccessat2,
	SYS_readlink, SYS_readlinkat, SYS_chdir, SYS_getcwd, SYS_close,
	SYS_close_range, SYS_dup2, SYS_dup3, SYS_brk, SYS_rt_sigaction,
	SYS_rt_sigprocmask, SYS_execve, SYS_execveat, SYS_mremap, SYS_mprotect, SYS_getxattr,
	SYS_lgetxattr, SYS_listxattr, SYS_llistxattr,
};

bool trap_filter(void)
{
	const struct sock_filter head[] = {
		LOAD(FIELD(arch)),
		JUMP(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0),
		ANSWER(SECCOMP_RET_ALLOW),
		/* Ours?  The upper half of the address, then the lower. */
		LOAD(FIELD(instruction_pointer) + 4),
		JUMP(BPF_JEQ, 0, 0, 4),
		LOAD(FIELD(instruction_pointer)),
		JUMP(BPF_JGE, TRAP_TEXT_FIRST, 0, 2),
		JUMP(BPF_JGT, TRAP_TEXT_LAST, 1, 0),
		ANSWER(SECCOMP_RET_ALLOW),
		LOAD(FIELD(nr)),
		/* ioctl: requests of KFD ('K') and DRM ('d'). */
		JUMP(BPF_JEQ, SYS_ioctl, 0, 6),
		LOAD(FIELD(args[1])),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xff00),
		JUMP(BPF_JEQ, 'K' << 8, 1, 0),
		JUMP(BPF_JEQ, 'd' << 8, 0, 1),
		ANSWER(SECCOMP_RET_TRAP),
		ANSWER(SECCOMP_RET_ALLOW),
		/* mmap: of a file, or in the place of others. */
		JUMP(BPF_JEQ, SYS_mmap, 0, 5),
		LOAD(FIELD(args[3])),
		JUMP(BPF_JSET, MAP_FIXED, 2, 0),
		JUMP(BPF_JSET, MAP_ANONYMOUS, 0, 1),
		ANSWER(SECCOMP_RET_ALLOW),
		ANSWER(SECCOMP_RET_TRAP),
		/* munmap: unless the handler had it made again. */
		JUMP(BPF_JEQ, SYS_munmap, 0, 6),
		LOAD(FIELD(args[5]) + 4),
		JUMP(BPF_JEQ, TRAP_AGAIN >> 32, 0, 3),
		LOAD(FIELD(args[5])),
		JUMP(BPF_JEQ, TRAP_AGAIN & 0xffffffff, 0, 1),
		ANSWER(SECCOMP_RET_ALLOW),
		ANSWER(SECCOMP_RET_TRAP),
	};
	struct sock_filter code[ARRAY_SIZE(head) + 2 * ARRAY_SIZE(trapped) + 1];
	struct sock_fprog program = { .filter = code };
	size_t n = 0;

	for (; n < ARRAY_SIZE(head); n++)
		code[n] = head[n];
	for (size_t i = 0; i < ARRAY_SIZE(trapped); i++) {
		code[n++] = (struct sock_filter)JUMP(
			BPF_JEQ, (uint32_t)trapped[i], 0, 1);
		code[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_TRAP);
	}
	code[n++] = (struct sock_filter)ANSWER(SECCOMP_RET_ALLOW);
	program.len = (unsigned short)n;
	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}
