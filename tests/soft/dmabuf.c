/*
 * Buffers as files on the bare ABI: export, information, import.
 *
 * The oracle is Linux 6.12: EINVAL for handles and files of other kinds, EBADF
 * for no file, EADDRINUSE, what flags an importer is told, and that all who
 * hold a buffer, the GPU, the exporter and a child process, see one memory.
 */
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/soft/softdev.h"

static struct sd s;

static int export_fd(uint64_t handle, uint32_t flags, int *fd)
{
	struct kfd_ioc_export_dmabuf a = { handle, flags, 0 };
	const int ret = sd_ioctl(&s, KFD_IOC_EXPORT_DMABUF, &a);

	*fd = ret ? -1 : (int)a.dmabuf_fd;
	return ret;
}

static int import_fd(struct sd *to, int fd, void *va, uint64_t *handle)
{
	struct kfd_ioc_import_dmabuf a = { sd_ptr(va), 0, SOFT_GPU_ID,
					   (uint32_t)fd };
	const int ret = sd_ioctl(to, KFD_IOC_IMPORT_DMABUF, &a);

	*handle = a.handle;
	return ret;
}

static void test_refusals(const struct sd_mem *gtt)
{
	struct kfd_ioc_get_dmabuf_info info = { .dmabuf_fd = 9999 };
	struct kfd_ioc_import_dmabuf other = { .gpu_id = 1 };
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kfd_ioc_alloc_memory user = { .va_addr = sd_ptr(p),
		.size = 4096, .mmap_offset = sd_ptr(p),
		.gpu_id = SOFT_GPU_ID, .flags = KFD_MEM_USERPTR };
	uint64_t handle;
	int fd;

	is_i64(export_fd(gtt->handle + 1000, 0, &fd), -EINVAL,
	       "there is no such buffer");
	sd_ioctl(&s, KFD_IOC_ALLOC_MEMORY_OF_GPU, &user);
	is_i64(export_fd(user.handle, 0, &fd), -EPERM,
	       "the program's own memory is not exported");
	is_i64(sd_ioctl(&s, KFD_IOC_GET_DMABUF_INFO, &info), -EBADF,
	       "information about a file that is not open");
	info.dmabuf_fd = (uint32_t)open("/dev/null", O_RDWR);
	is_i64(sd_ioctl(&s, KFD_IOC_GET_DMABUF_INFO, &info), -EINVAL,
	       "information about another kind of file");
	is_i64(import_fd(&s, (int)info.dmabuf_fd, sd_reserve(4096), &handle),
	       -EINVAL, "importing it");
	close((int)info.dmabuf_fd);
	is_i64(sd_ioctl(&s, KFD_IOC_IMPORT_DMABUF, &other), -EINVAL,
	       "importing into a GPU that is not there");
}

static void test_share(uint32_t flags, const char *name)
{
	struct sd_mem m = sd_alloc(&s, 3 << 20, flags);
	uint32_t *p = m.p, *q = sd_reserve(m.size);
	struct kfd_ioc_get_dmabuf_info info = { .metadata_size = 7 };
	uint64_t handle = 0;
	struct stat st;
	uint32_t *cpu;
	int fd, again;

	p[0] = 1, p[600000] = 2;
	is_i64(export_fd(m.handle, O_CLOEXEC, &fd), 0, "%s is exported", name);
	is_i64(export_fd(m.handle, 0, &again), 0, "%s: and again", name);
	is_i64(fcntl(fd, F_GETFD), FD_CLOEXEC, "%s: closed by exec", name);
	is_i64(fcntl(again, F_GETFD), 0, "%s: or not, as asked", name);
	fstat(fd, &st);
	is_u64((uint64_t)st.st_size, m.size, "%s: its size", name);
	is_u64(p[0] + p[600000], 3, "%s: its contents remain", name);
	info.dmabuf_fd = (uint32_t)fd;
	is_i64(sd_ioctl(&s, KFD_IOC_GET_DMABUF_INFO, &info), 0,
	       "%s: what it is", name);
	is_u64(info.size, m.size, "%s: so large", name);
	is_u64(info.gpu_id, SOFT_GPU_ID, "%s: of this GPU", name);
	is_u64(info.metadata_size, 0, "%s: without metadata", name);
	is_u64(info.flags, flags & (KFD_MEM_VRAM | KFD_MEM_GTT |
				    KFD_MEM_PUBLIC), "%s: of its kind", name);
	cpu = mmap(NULL, m.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	p[1] = 11;
	is_u64(cpu[1], 11, "%s: the file maps to the same memory", name);
	is_i64(import_fd(&s, fd, m.p, &handle), 0, "%s: imported", name);
	is_i64(sd_map(&s, handle, true), -EINVAL,
	       "%s: two objects cannot be mapped at one address", name);
	is_i64(sd_free_handle(&s, handle), 0, "%s: given up", name);
	is_i64(import_fd(&s, fd, q, &handle), 0,
	       "%s: imported somewhere else", name);
	is_i64(sd_map(&s, handle, true), 0, "%s: and mapped", name);
	is_i64(sd_free(&s, &m), 0, "%s: the first object goes", name);
	is_u64(cpu[1], 11, "%s: the memory stays with the file", name);
	is_i64(sd_map(&s, handle, false), 0, "%s: unmapped", name);
	is_i64(sd_free_handle(&s, handle), 0, "%s: and given up", name);
	munmap(cpu, 3 << 20);
	close(fd), close(again);
}

/* A child has a device of its own, and imports by the same descriptor. */
static void test_processes(void)
{
	struct sd_mem m = sd_alloc(&s, 4096, GTT_FLAGS);
	volatile uint32_t *p = m.p;
	int fd, status = -1;
	pid_t pid;

	p[0] = 5;
	is_i64(export_fd(m.handle, 0, &fd), 0, "a buffer for a child");
	pid = fork();
	if (!pid) {
		struct sd own = sd_open(NULL);
		uint32_t *at = sd_reserve(4096);
		uint64_t handle;
		int bad = import_fd(&own, fd, at, &handle);

		at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			  0);
		bad |= sd_map(&own, handle, true);
		bad |= at[0] != 5;
		at[0] = 6;
		_exit(bad ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	is_i64(status, 0, "a child imports it into its own device");
	is_u64(p[0], 6, "and both share the memory");
	close(fd);
	sd_free(&s, &m);
}

int main(void)
{
	struct kfd_ioc_available_memory before = { .gpu_id = SOFT_GPU_ID },
					after = before;
	struct sd_mem m;

	s = sd_open(NULL);
	m = sd_alloc(&s, 4096, GTT_FLAGS);
	sd_ioctl(&s, KFD_IOC_AVAILABLE_MEMORY, &before);
	test_refusals(&m);
	test_share(VRAM_FLAGS, "VRAM");
	test_share(GTT_FLAGS, "host memory");
	test_processes();
	sd_ioctl(&s, KFD_IOC_AVAILABLE_MEMORY, &after);
	is_u64(after.available, before.available, "no VRAM is lost");
	sd_close(&s);
	return plan_done();
}
