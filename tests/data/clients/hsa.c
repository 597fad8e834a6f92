/*
 * A client of the HSA runtime: agents, pools, queues, signals, a kernel, a
 * barrier between two queues, copies, and, where the runtime knows gfx11, its
 * loader and its blit kernels.  Prints what it saw, one fact per line.
 * Usage: hsa FILE.co
 */
#include <elf.h>
#include <fcntl.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                       \
	do {                                                              \
		const hsa_status_t st = (call);                           \
		const char *text = "";                                    \
		if (st != HSA_STATUS_SUCCESS &&                           \
		    st != HSA_STATUS_INFO_BREAK) {                        \
			hsa_status_string(st, &text);                     \
			printf("%s: 0x%x %s\n", #call, (unsigned)st, text); \
			exit(1);                                          \
		}                                                         \
	} while (0)

#define N 4096u

struct machine {
	hsa_agent_t cpu, gpu;
	unsigned gpus;
	bool knows_gfx11;
	hsa_amd_memory_pool_t vram, host, kernarg;
};

static hsa_status_t on_agent(hsa_agent_t a, void *ctx)
{
	struct machine *m = ctx;
	hsa_device_type_t type;
	char name[64];
	uint32_t cus;

	CHECK(hsa_agent_get_info(a, HSA_AGENT_INFO_DEVICE, &type));
	if (type != HSA_DEVICE_TYPE_GPU) {
		m->cpu = a;
		return HSA_STATUS_SUCCESS;
	}
	m->gpu = a;
	m->gpus++;
	CHECK(hsa_agent_get_info(a, HSA_AGENT_INFO_NAME, name));
	printf("agent %s\n", name);
	m->knows_gfx11 = !strncmp(name, "gfx11", 5);
	CHECK(hsa_agent_get_info(
		a, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT,
		&cus));
	printf("cu %u\n", cus);
	return HSA_STATUS_SUCCESS;
}

static hsa_status_t on_pool(hsa_amd_memory_pool_t p, void *ctx)
{
	struct machine *m = ctx;
	hsa_amd_segment_t segment;
	uint32_t flags;
	bool alloc;

	CHECK(hsa_amd_memory_pool_get_info(
		p, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
	if (segment != HSA_AMD_SEGMENT_GLOBAL)
		return HSA_STATUS_SUCCESS;
	CHECK(hsa_amd_memory_pool_get_info(
		p, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &alloc));
	CHECK(hsa_amd_memory_pool_get_info(
		p, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags));
	if (!alloc)
		return HSA_STATUS_SUCCESS;
	if (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT)
		m->kernarg = p;
	else if (flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED)
		m->host = p;
	return HSA_STATUS_SUCCESS;
}

static hsa_status_t on_vram(hsa_amd_memory_pool_t p, void *ctx)
{
	struct machine *m = ctx;
	hsa_amd_segment_t segment;

	CHECK(hsa_amd_memory_pool_get_info(
		p, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
	if (segment == HSA_AMD_SEGMENT_GLOBAL)
		m->vram = p;
	return segment == HSA_AMD_SEGMENT_GLOBAL ? HSA_STATUS_INFO_BREAK :
						   HSA_STATUS_SUCCESS;
}

static void *alloc(hsa_amd_memory_pool_t pool, size_t bytes, hsa_agent_t who)
{
	void *p;

	CHECK(hsa_amd_memory_pool_allocate(pool, bytes, 0, &p));
	CHECK(hsa_amd_agents_allow_access(1, &who, NULL, p));
	return p;
}

static void *grid_packet(hsa_queue_t *q, uint64_t *at)
{
	*at = hsa_queue_add_write_index_screlease(q, 1);
	return (char *)q->base_address + *at % q->size * 64;
}

static void publish(hsa_queue_t *q, uint64_t at, void *packet, uint16_t type,
		    uint16_t setup)
{
	const uint32_t head = type << HSA_PACKET_HEADER_TYPE |
			      1u << HSA_PACKET_HEADER_BARRIER |
			      2u << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
			      2u << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE |
			      (uint32_t)setup << 16;

	__atomic_store_n((uint32_t *)packet, head, __ATOMIC_RELEASE);
	hsa_signal_store_screlease(q->doorbell_signal, (int64_t)at);
}

static hsa_signal_value_t wait0(hsa_signal_t s)
{
	return hsa_signal_wait_scacquire(s, HSA_SIGNAL_CONDITION_LT, 1,
					 20000000000ull,
					 HSA_WAIT_STATE_BLOCKED);
}

static void copy(void *dst, hsa_agent_t to, const void *src, hsa_agent_t from,
		 size_t bytes)
{
	hsa_signal_t s;

	CHECK(hsa_signal_create(1, 0, NULL, &s));
	CHECK(hsa_amd_memory_async_copy(dst, to, src, from, bytes, 0, NULL, s));
	printf("copy %ld\n", (long)wait0(s));
	CHECK(hsa_signal_destroy(s));
}

/* By the runtime, with its blit kernels: needs one that knows gfx11. */
static uint64_t load(const struct machine *m, const char *file)
{
	hsa_code_object_reader_t r;
	hsa_executable_symbol_t sym;
	hsa_executable_t x;
	uint64_t object;
	const int fd = open(file, O_RDONLY);

	CHECK(hsa_code_object_reader_create_from_file(fd, &r));
	CHECK(hsa_executable_create_alt(HSA_PROFILE_FULL,
					HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT,
					NULL, &x));
	CHECK(hsa_executable_load_agent_code_object(x, m->gpu, r, NULL, NULL));
	CHECK(hsa_executable_freeze(x, NULL));
	CHECK(hsa_executable_get_symbol_by_name(x, "fill.kd", &m->gpu, &sym));
	CHECK(hsa_executable_symbol_get_info(
		sym, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &object));
	puts("loaded");
	return object;
}

/* By ourselves: the segments, and the address of fill.kd.  No relocations. */
static uint64_t place(const struct machine *m, const char *file)
{
	static char bytes[65536];
	char *image = alloc(m->kernarg, sizeof(bytes), m->gpu);
	char *code = alloc(m->vram, sizeof(bytes), m->cpu);
	FILE *f = fopen(file, "rb");
	const Elf64_Ehdr *h = (void *)bytes;
	uint64_t object = 0;

	if (!f || fread(bytes, 1, sizeof(bytes), f) < sizeof(*h))
		exit(2);
	fclose(f);
	memset(image, 0, sizeof(bytes));
	for (int i = 0; i < h->e_phnum; i++) {
		const Elf64_Phdr *p = (void *)(bytes + h->e_phoff +
					       i * sizeof(*p));

		if (p->p_type == PT_LOAD)
			memcpy(image + p->p_vaddr, bytes + p->p_offset,
			       p->p_filesz);
	}
	for (int i = 0; i < h->e_shnum; i++) {
		const Elf64_Shdr *t = (void *)(bytes + h->e_shoff +
					       i * sizeof(*t));
		const Elf64_Shdr *names = (void *)(bytes + h->e_shoff +
						   t->sh_link * sizeof(*t));

		for (size_t k = 0; t->sh_type == SHT_DYNSYM &&
				   k < t->sh_size / sizeof(Elf64_Sym); k++) {
			const Elf64_Sym *s = (Elf64_Sym *)(bytes +
							   t->sh_offset) + k;

			if (!strcmp(bytes + names->sh_offset + s->st_name,
				    "fill.kd"))
				object = (uint64_t)code + s->st_value;
		}
	}
	copy(code, m->gpu, image, m->cpu, sizeof(bytes));
	return object;
}

static void dispatch(hsa_queue_t *q, uint64_t object, void *args,
		     hsa_signal_t done)
{
	uint64_t at;
	hsa_kernel_dispatch_packet_t *p = grid_packet(q, &at);

	p->workgroup_size_x = 64;
	p->workgroup_size_y = p->workgroup_size_z = 1;
	p->grid_size_x = N;
	p->grid_size_y = p->grid_size_z = 1;
	p->private_segment_size = p->group_segment_size = 0;
	p->kernel_object = object;
	p->kernarg_address = args;
	p->completion_signal = done;
	publish(q, at, p, HSA_PACKET_TYPE_KERNEL_DISPATCH, 1);
}

/* A barrier that waits for `dep`. */
static void barrier(hsa_queue_t *q, hsa_signal_t dep, hsa_signal_t done)
{
	uint64_t at;
	hsa_barrier_and_packet_t *p = grid_packet(q, &at);

	memset((char *)p + 4, 0, 60);
	p->dep_signal[0] = dep;
	p->completion_signal = done;
	publish(q, at, p, HSA_PACKET_TYPE_BARRIER_AND, 0);
}

int main(int argc, char **argv)
{
	struct machine m = { 0 };
	hsa_amd_profiling_dispatch_time_t t;
	hsa_signal_t done, second;
	hsa_queue_t *q, *q2;
	unsigned wrong = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 2)
		return 2;
	CHECK(hsa_init());
	CHECK(hsa_iterate_agents(on_agent, &m));
	printf("gpus %u\n", m.gpus);
	if (!m.gpus)
		return 77;
	CHECK(hsa_amd_agent_iterate_memory_pools(m.cpu, on_pool, &m));
	CHECK(hsa_amd_agent_iterate_memory_pools(m.gpu, on_vram, &m));
	CHECK(hsa_queue_create(m.gpu, 256, HSA_QUEUE_TYPE_MULTI, NULL, NULL,
			       UINT32_MAX, UINT32_MAX, &q));
	CHECK(hsa_amd_profiling_set_profiler_enabled(q, 1));
	CHECK(hsa_signal_create(1, 0, NULL, &done));
	CHECK(hsa_signal_create(1, 0, NULL, &second));

	uint32_t *vram = alloc(m.vram, 4 * N, m.cpu);
	uint32_t *host = alloc(m.host.handle ? m.host : m.kernarg, 4 * N,
			       m.gpu);
	struct {
		uint32_t *out;
		uint32_t value;
	} *args = alloc(m.kernarg, sizeof(*args), m.gpu);

	for (unsigned i = 0; i < N; i++)
		host[i] = 7;
	copy(vram, m.gpu, host, m.cpu, 4 * N);
	args->out = vram;
	args->value = 1000;
	barrier(q, done, second);
	const uint64_t object = (m.knows_gfx11 ? load : place)(&m, argv[1]);
	CHECK(hsa_queue_create(m.gpu, 256, HSA_QUEUE_TYPE_SINGLE, NULL, NULL,
			       UINT32_MAX, UINT32_MAX, &q2));
	dispatch(q2, object, args, done);
	printf("dispatch %ld\n", (long)wait0(done));
	printf("barrier %ld\n", (long)wait0(second));
	copy(host, m.cpu, vram, m.gpu, 4 * N);
	for (unsigned i = 0; i < N; i++)
		wrong += host[i] != 1000 + i;
	printf("wrong %u\n", wrong);
	CHECK(hsa_amd_profiling_get_dispatch_time(m.gpu, done, &t));
	if (m.knows_gfx11) {
		CHECK(hsa_amd_memory_fill(vram, 0x1234, N));
		copy(host, m.cpu, vram, m.gpu, 4 * N);
		printf("filled %x %x\n", host[0], host[N - 1]);
	}
	printf("time %s\n", t.end >= t.start && t.start ? "runs" : "stands");
	CHECK(hsa_signal_destroy(done));
	CHECK(hsa_signal_destroy(second));
	CHECK(hsa_queue_destroy(q));
	CHECK(hsa_queue_destroy(q2));
	CHECK(hsa_shut_down());
	puts("closed");
	return 0;
}
