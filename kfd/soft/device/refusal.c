/*
 * kfd/soft/device/refusal.c - what the device refuses, in words: one line for
 * each, for who runs it.
 *
 * The program gets the errno, event or error code that the kernel would give;
 * a person needs to know which field was it, and what would have been taken.
 */
#include <amdgpu_drm.h>
#include <drm.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <xxhash.h>

#include "kfd/soft/device/dev.h"

#define LINE_BYTES 800

/* Programs repeat what fails: the same line once is enough. */
static bool is_new(struct soft_dev *d, const char *line)
{
	const uint64_t h = XXH3_64bits(line, strlen(line));
	bool found = false;

	pthread_mutex_lock(&d->fault_lock);
	for (unsigned i = 0; i < SOFT_SAID; i++)
		found |= d->said[i] == h;
	if (!found)
		d->said[d->n_said++ % SOFT_SAID] = h;
	pthread_mutex_unlock(&d->fault_lock);
	return !found;
}

void soft_report(struct soft_dev *d, const char *fmt, ...)
{
	char line[LINE_BYTES];
	va_list ap;

	if (!d->o.report)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (is_new(d, line))
		d->o.report(line);
}

/* -------------------------------------------------------------- ioctls -- */

static const char *const ioctl_names[] = {
#define NAME(call) [KFD_NR_##call] = #call
	NAME(GET_VERSION), NAME(CREATE_QUEUE), NAME(DESTROY_QUEUE),
	NAME(SET_MEMORY_POLICY), NAME(GET_CLOCK_COUNTERS),
	NAME(GET_PROCESS_APERTURES), NAME(UPDATE_QUEUE), NAME(CREATE_EVENT),
	NAME(DESTROY_EVENT), NAME(SET_EVENT), NAME(RESET_EVENT),
	NAME(WAIT_EVENTS), NAME(SET_SCRATCH_BACKING_VA),
	NAME(GET_TILE_CONFIG), NAME(SET_TRAP_HANDLER),
	NAME(GET_PROCESS_APERTURES_NEW), NAME(ACQUIRE_VM),
	NAME(ALLOC_MEMORY_OF_GPU), NAME(FREE_MEMORY_OF_GPU),
	NAME(MAP_MEMORY_TO_GPU), NAME(UNMAP_MEMORY_FROM_GPU),
	NAME(SET_CU_MASK), NAME(GET_QUEUE_WAVE_STATE), NAME(GET_DMABUF_INFO),
	NAME(IMPORT_DMABUF), NAME(ALLOC_QUEUE_GWS), NAME(SMI_EVENTS),
	NAME(SVM), NAME(SET_XNACK_MODE), NAME(CRIU_OP),
	NAME(AVAILABLE_MEMORY), NAME(EXPORT_DMABUF), NAME(RUNTIME_ENABLE),
	NAME(DBG_TRAP),
#undef NAME
};

/* What a field must be; the checks themselves stand where the calls are. */
enum rule {
	IS_CARD,
	IS_QUEUE,
	IS_OBJECT,
	IS_RENDER_FD,
	WHOLE_PAGES,
	POWER_OF_2,
	PERCENT, /* its low byte */
	UP_TO,	 /* v */
	NOT_ZERO,
	NOT_ABOVE_0, /* with a sign */
	IN_SET,	     /* bits of v */
	ONE_BIT_OF,  /* v */
};

static const char *const rule_words[] = {
	[IS_CARD] = "the gpu_id of a card, as the topology says",
	[IS_QUEUE] = "a queue that CREATE_QUEUE made",
	[IS_OBJECT] = "a handle that ALLOC_MEMORY_OF_GPU returned",
	[IS_RENDER_FD] = "a descriptor of /dev/dri/renderD128, or of that of the card",
	[WHOLE_PAGES] = "whole pages",
	[POWER_OF_2] = "a power of two",
	[PERCENT] = "0..100",
};

/*
 * The fields by which calls are refused, in the order in which they are
 * looked at: the first that is not as it must be is named.
 */
#define FIELD(call, type, field) \
	KFD_NR_##call, #field, offsetof(struct type, field), \
		sizeof(((struct type *)0)->field)
static const struct field {
	unsigned nr;
	const char *name;
	size_t offset, bytes;
	enum rule rule;
	uint64_t v;
	const char *accepted; /* NULL: the rule's words */
} fields[] = {
	{ FIELD(CREATE_QUEUE, kfd_ioc_create_queue, gpu_id), .rule = IS_CARD },
	{ FIELD(CREATE_QUEUE, kfd_ioc_create_queue, type), IN_SET,
	  1u << KFD_QUEUE_COMPUTE | 1u << KFD_QUEUE_SDMA |
		  1u << KFD_QUEUE_COMPUTE_AQL | 1u << KFD_QUEUE_SDMA_BY_ENG_ID,
	  "0 (PM4), 1 (SDMA), 2 (AQL), 4 (SDMA by engine, from KFD 1.17)" },
	{ FIELD(CREATE_QUEUE, kfd_ioc_create_queue, percentage), .rule = PERCENT },
	{ FIELD(CREATE_QUEUE, kfd_ioc_create_queue, priority), UP_TO,
	  KFD_QUEUE_PRIORITY_MAX, "0..15" },
	{ FIELD(CREATE_QUEUE, kfd_ioc_create_queue, ring_size), .rule = POWER_OF_2 },
	{ FIELD(CREATE_QUEUE, kfd_ioc_create_queue, ring_base), UP_TO,
	  SOFT_USER_LIMIT - 1, "an address of the program" },
	{ FIELD(UPDATE_QUEUE, kfd_ioc_update_queue, queue_id), .rule = IS_QUEUE },
	{ FIELD(UPDATE_QUEUE, kfd_ioc_update_queue, percentage), .rule = PERCENT },
	{ FIELD(UPDATE_QUEUE, kfd_ioc_update_queue, priority), UP_TO,
	  KFD_QUEUE_PRIORITY_MAX, "0..15" },
	{ FIELD(UPDATE_QUEUE, kfd_ioc_update_queue, ring_size), .rule = POWER_OF_2 },
	{ FIELD(DESTROY_QUEUE, kfd_ioc_destroy_queue, queue_id), .rule = IS_QUEUE },
	{ FIELD(SET_MEMORY_POLICY, kfd_ioc_set_memory_policy, default_policy),
	  UP_TO, 1, "0, 1" },
	{ FIELD(SET_MEMORY_POLICY, kfd_ioc_set_memory_policy,
		alternate_policy), UP_TO, 1, "0, 1" },
	{ FIELD(SET_MEMORY_POLICY, kfd_ioc_set_memory_policy, gpu_id),
	  .rule = IS_CARD },
	{ FIELD(ACQUIRE_VM, kfd_ioc_acquire_vm, gpu_id), .rule = IS_CARD },
	{ FIELD(ACQUIRE_VM, kfd_ioc_acquire_vm, drm_fd), .rule = IS_RENDER_FD },
	{ FIELD(ALLOC_MEMORY_OF_GPU, kfd_ioc_alloc_memory, gpu_id), .rule = IS_CARD },
	{ FIELD(ALLOC_MEMORY_OF_GPU, kfd_ioc_alloc_memory, size), NOT_ZERO, 0,
	  "1 byte or more" },
	{ FIELD(ALLOC_MEMORY_OF_GPU, kfd_ioc_alloc_memory, flags), ONE_BIT_OF,
	  KFD_MEM_PLACE_MASK,
	  "one of VRAM, GTT, USERPTR, DOORBELL, MMIO_REMAP (bits 0..4)" },
	{ FIELD(ALLOC_MEMORY_OF_GPU, kfd_ioc_alloc_memory, va_addr),
	  .rule = WHOLE_PAGES },
	{ FIELD(ALLOC_MEMORY_OF_GPU, kfd_ioc_alloc_memory, va_addr), UP_TO,
	  SOFT_GPUVM_LIMIT, "0x1000000..0x7fffffffffff" },
	{ FIELD(FREE_MEMORY_OF_GPU, kfd_ioc_free_memory, handle), .rule = IS_OBJECT },
	{ FIELD(MAP_MEMORY_TO_GPU, kfd_ioc_map_memory, handle), .rule = IS_OBJECT },
	{ FIELD(MAP_MEMORY_TO_GPU, kfd_ioc_map_memory, n_devices), NOT_ZERO, 0,
	  "1 or more, each the gpu_id of a card" },
	{ FIELD(UNMAP_MEMORY_FROM_GPU, kfd_ioc_map_memory, handle),
	  .rule = IS_OBJECT },
	{ FIELD(UNMAP_MEMORY_FROM_GPU, kfd_ioc_map_memory, n_devices),
	  NOT_ZERO, 0, "1 or more, each the gpu_id of a card" },
	{ FIELD(SVM, kfd_ioc_svm, start_addr), .rule = WHOLE_PAGES },
	{ FIELD(SVM, kfd_ioc_svm, size), .rule = WHOLE_PAGES },
	{ FIELD(SVM, kfd_ioc_svm, size), NOT_ZERO, 0, "1 page or more" },
	{ FIELD(SVM, kfd_ioc_svm, op), UP_TO, KFD_SVM_OP_GET,
	  "0 (set), 1 (get)" },
	{ FIELD(SET_XNACK_MODE, kfd_ioc_set_xnack_mode, xnack_enabled),
	  NOT_ABOVE_0, 0, "0, or -1 to ask: gfx11 cannot retry faults" },
};

/* When all fields are as they must be: what else there is, by errno. */
static const struct {
	unsigned nr; /* 0: any other call */
	int err_no;
	const char *accepted;
} states[] = {
	{ KFD_NR_CREATE_QUEUE, EINVAL,
	  "the write pointer, and from KFD 1.17 on ring, read pointer, EOP and "
	  "save area, each mapped on that card at exactly its size" },
	{ KFD_NR_CREATE_QUEUE, ENOSPC, "1024 queues" },
	{ KFD_NR_UPDATE_QUEUE, EINVAL,
	  "a ring that MAP_MEMORY_TO_GPU mapped at exactly its size" },
	{ KFD_NR_ALLOC_MEMORY_OF_GPU, EINVAL,
	  "2 pages for DOORBELL, 1 for MMIO_REMAP, whole pages for USERPTR, no "
	  "PUBLIC VRAM with a small BAR" },
	{ KFD_NR_ALLOC_MEMORY_OF_GPU, ENOMEM,
	  "what AVAILABLE_MEMORY says, or system memory below KFD's limit" },
	{ KFD_NR_ALLOC_MEMORY_OF_GPU, EFAULT, "memory of the program" },
	{ KFD_NR_ALLOC_MEMORY_OF_GPU, EADDRINUSE,
	  "addresses that no SVM range has" },
	{ KFD_NR_FREE_MEMORY_OF_GPU, EBUSY,
	  "objects that are unmapped and that no queue uses" },
	{ KFD_NR_FREE_MEMORY_OF_GPU, EPERM,
	  "any object but the event page, which stays until the end" },
	{ KFD_NR_UNMAP_MEMORY_FROM_GPU, EBUSY, "objects that no queue uses" },
	{ KFD_NR_MAP_MEMORY_TO_GPU, EINVAL,
	  "addresses where that card has nothing mapped, the gpu_id of a card, "
	  "with a small BAR VRAM of that card alone" },
	{ KFD_NR_UNMAP_MEMORY_FROM_GPU, EINVAL,
	  "the gpu_id of cards that have it mapped" },
	{ KFD_NR_ACQUIRE_VM, EINVAL,
	  "the gpu_id and a descriptor of the render node of one card" },
	{ KFD_NR_MAP_MEMORY_TO_GPU, EFAULT,
	  "user pages that are still there, an array of gpu_id" },
	{ KFD_NR_ACQUIRE_VM, EBUSY, "the descriptor of the first call" },
	{ KFD_NR_RUNTIME_ENABLE, EEXIST, "calls before the first queue" },
	{ KFD_NR_RUNTIME_ENABLE, EBUSY, "one call" },
	{ KFD_NR_WAIT_EVENTS, EIO, "calls before the last /dev/kfd closes" },
	{ 0, ESRCH, "calls after ACQUIRE_VM" },
	{ 0, ENODEV, "calls after ACQUIRE_VM" },
	{ 0, EFAULT, "addresses of the program" },
	{ 0, EIO, "calls before the reset: open /dev/kfd anew" },
};

static bool is_kept(struct soft_dev *d, const struct field *f, uint64_t v)
{
	const struct soft_file *file;

	switch (f->rule) {
	case IS_CARD:
		return soft_card_by_id(d, (uint32_t)v);
	case IS_QUEUE:
		return v < SOFT_QUEUES_MAX && d->queue[v];
	case IS_OBJECT:
		return soft_bo_by_handle(d, v);
	case IS_RENDER_FD:
		file = soft_file_by_fd(d, (int)v);
		return file && file->node != SOFT_NODE_KFD;
	case WHOLE_PAGES:
		return v % KFD_PAGE_BYTES == 0;
	case POWER_OF_2:
		return !(v & (v - 1));
	case PERCENT:
		return (v & 0xff) <= 100;
	case UP_TO:
		return v <= f->v;
	case NOT_ZERO:
		return v;
	case NOT_ABOVE_0:
		return (int32_t)v <= 0;
	case IN_SET:
		return v < 64 && f->v >> v & 1;
	case ONE_BIT_OF:
		v &= f->v;
		return v && !(v & (v - 1));
	}
	return true;
}

/* The field that is at fault, and its value; NULL: none of them. */
static const struct field *find_field(struct soft_dev *d, unsigned nr,
				      const void *arg, size_t size,
				      uint64_t *value)
{
	const struct field *found = NULL;

	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < ARRAY_SIZE(fields) && !found; i++) {
		const struct field *f = &fields[i];

		*value = 0;
		if (f->nr != nr || f->offset + f->bytes > size)
			continue;
		if (soft_copy_in(value, (uintptr_t)arg + f->offset, f->bytes))
			break; /* the pointer is what is wrong */
		if (!is_kept(d, f, *value))
			found = f;
	}
	pthread_mutex_unlock(&d->lock);
	return found;
}

static const char *find_state(unsigned nr, int err_no)
{
	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		if (states[i].err_no == err_no &&
		    (states[i].nr == nr || !states[i].nr))
			return states[i].accepted;
	return NULL;
}

void soft_explain_ioctl(struct soft_dev *d, unsigned long request,
			const void *arg, int err_no)
{
	const unsigned nr = KFD_REQUEST_NR(request);
	const char *name = nr < ARRAY_SIZE(ioctl_names) ? ioctl_names[nr] :
							  NULL;
	const struct field *f = NULL;
	const char *accepted;
	uint64_t value;

	if (!d->o.report)
		return;
	if (err_no == ENOTTY || !name) {
		soft_report(d, "refused: ioctl %s (request 0x%08lx): not there "
			       "in KFD 1.%u; accepted: the calls of that "
			       "version (%s)", name ? name : "of unknown number",
			    request, d->o.kfd_minor, strerror(err_no));
		return;
	}
	if (arg)
		f = find_field(d, nr, arg, KFD_REQUEST_SIZE(request), &value);
	accepted = find_state(nr, err_no);
	if (f)
		soft_report(d, "refused: ioctl %s: %s is %" PRIu64 " (0x%"
			       PRIx64 "); accepted: %s (%s)", name, f->name,
			    value, value, f->accepted ? f->accepted :
						   rule_words[f->rule],
			    strerror(err_no));
	else if (accepted)
		soft_report(d, "refused: ioctl %s: %s; accepted: %s", name,
			    strerror(err_no), accepted);
	else
		soft_report(d, "refused: ioctl %s: %s", name,
			    strerror(err_no));
}

/* ----------------------------------------------------------------- DRM -- */

/* What there is of the calls; NULL: the call is not there. */
static const struct {
	const char *name, *accepted;
} drm_calls[] = {
	[DRM_AMDGPU_GEM_CREATE] = { "GEM_CREATE",
				    "1 byte or more of CPU, GTT or VRAM, as "
				    "far as there is room" },
	[DRM_AMDGPU_GEM_MMAP] = { "GEM_MMAP", "buffers of this file with CPU "
					      "access" },
	[DRM_AMDGPU_CTX] = { "CTX", "ALLOC, and FREE and QUERY_STATE of this "
				    "file's contexts" },
	[DRM_AMDGPU_BO_LIST] = { "BO_LIST", "lists of this file's buffers" },
	[DRM_AMDGPU_CS] = { "CS",
			    "IB chunks for one ring of GFX (0), COMPUTE (0..3) "
			    "or DMA (0, 1), FENCE, DEPENDENCIES, BO_HANDLES and "
			    "those of this file's synchronisation objects; "
			    "contexts made after the last reset" },
	[DRM_AMDGPU_GEM_METADATA] = { "GEM_METADATA", "buffers of this file, "
						      "256 bytes" },
	[DRM_AMDGPU_GEM_WAIT_IDLE] = { "GEM_WAIT_IDLE",
				       "buffers of this file" },
	[DRM_AMDGPU_GEM_VA] = { "GEM_VA",
				"MAP of whole pages of this file's buffers at "
				"free addresses from 0x200000 on, and UNMAP "
				"and CLEAR of whole mappings" },
	[DRM_AMDGPU_WAIT_CS] = { "WAIT_CS", "what was submitted" },
	[DRM_AMDGPU_GEM_OP] = { "GEM_OP", "buffers of this file" },
	[DRM_AMDGPU_GEM_USERPTR] = { "GEM_USERPTR", NULL },
	[DRM_AMDGPU_WAIT_FENCES] = { "WAIT_FENCES", "what was submitted" },
	[DRM_AMDGPU_VM] = { "VM", NULL },
	[DRM_AMDGPU_FENCE_TO_HANDLE] = { "FENCE_TO_HANDLE", NULL },
	[DRM_AMDGPU_SCHED] = { "SCHED", NULL },
};

void soft_explain_drm(struct soft_dev *d, unsigned long request,
		      const void *arg, int err_no)
{
	const unsigned nr = (unsigned)(_IOC_NR(request) - DRM_COMMAND_BASE);
	struct drm_amdgpu_info info;

	if (nr == DRM_AMDGPU_INFO) {
		/* What the card has not got is no refusal of ours. */
		if (!soft_copy_in(&info, (uintptr_t)arg, sizeof(info)) &&
		    err_no == EINVAL && !info.return_size)
			soft_report(d, "refused: ioctl AMDGPU_INFO: "
				       "return_size is 0; accepted: room for "
				       "the answer");
		return;
	}
	if (nr < ARRAY_SIZE(drm_calls) && drm_calls[nr].name)
		soft_report(d, "refused: ioctl AMDGPU_%s: %s; accepted: %s",
			    drm_calls[nr].name, strerror(err_no),
			    drm_calls[nr].accepted ?
				    drm_calls[nr].accepted :
				    "the other calls, as this one is not there");
	else
		soft_report(d, "refused: ioctl of DRM 0x%08lx: not of a card "
			       "without a display; accepted: VERSION, GET_CAP, "
			       "GEM_CLOSE, PRIME, SYNCOBJ and AMDGPU_* (%s)", request,
			    strerror(err_no));
}
