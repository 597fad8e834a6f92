/*
 * kfd/abi.h - the binary interface of the AMD compute driver, in plain C.
 *
 * What crosses /dev/kfd and what the command processor (CP) of a gfx1100
 * reads and writes in memory: ioctl structures, flags, event payloads, the
 * AQL queue, its packets and signals, and the kernel descriptor.  Both sides
 * of `struct kfd_driver` use it: the runtime fills these structures, the
 * soft device answers them.  The system's own headers are not used: Debian's
 * are too old (KFD 1.11) and do not compile alone.
 *
 * All integers are little-endian, a page is 4096 bytes, pointers are u64.
 * Names of fields are the driver's.  `in` and `out` say who writes a field,
 * seen from the kernel: `in` comes from the program.
 *
 * Rule for every ioctl: the kernel dispatches on the number alone, copies
 * min(program's size, kernel's size) bytes and takes the rest as zero, so a
 * structure may be longer or shorter than the other side expects.
 */
#ifndef T0_KFD_ABI_H
#define T0_KFD_ABI_H

#include <stddef.h>
#include <stdint.h>

#define KFD_PAGE_BYTES 4096u

/* ---------------------------------------------------------- ioctls ---- */

/* Request = direction << 30 | size << 16 | 'K' << 8 | number. */
enum {
	KFD_DIR_W = 1u, /* the program passes data in */
	KFD_DIR_R = 2u, /* the kernel passes data out */
	KFD_DIR_WR = 3u,
};
#define KFD_REQUEST(dir, size, nr)                                   \
	((unsigned long)(dir) << 30 | (unsigned long)(size) << 16 | \
	 0x4bul << 8 | (unsigned long)(nr))
#define KFD_REQUEST_NR(request) ((unsigned)((request) & 0xff))
#define KFD_REQUEST_TYPE(request) ((unsigned)((request) >> 8 & 0xff))
#define KFD_REQUEST_SIZE(request) ((unsigned)((request) >> 16 & 0x3fff))

enum kfd_nr {
	KFD_NR_GET_VERSION = 0x01,
	KFD_NR_CREATE_QUEUE = 0x02,
	KFD_NR_DESTROY_QUEUE = 0x03,
	KFD_NR_SET_MEMORY_POLICY = 0x04,
	KFD_NR_GET_CLOCK_COUNTERS = 0x05,
	KFD_NR_GET_PROCESS_APERTURES = 0x06,
	KFD_NR_UPDATE_QUEUE = 0x07,
	KFD_NR_CREATE_EVENT = 0x08,
	KFD_NR_DESTROY_EVENT = 0x09,
	KFD_NR_SET_EVENT = 0x0a,
	KFD_NR_RESET_EVENT = 0x0b,
	KFD_NR_WAIT_EVENTS = 0x0c,
	KFD_NR_SET_SCRATCH_BACKING_VA = 0x11,
	KFD_NR_GET_TILE_CONFIG = 0x12,
	KFD_NR_SET_TRAP_HANDLER = 0x13,
	KFD_NR_GET_PROCESS_APERTURES_NEW = 0x14,
	KFD_NR_ACQUIRE_VM = 0x15,
	KFD_NR_ALLOC_MEMORY_OF_GPU = 0x16,
	KFD_NR_FREE_MEMORY_OF_GPU = 0x17,
	KFD_NR_MAP_MEMORY_TO_GPU = 0x18,
	KFD_NR_UNMAP_MEMORY_FROM_GPU = 0x19,
	KFD_NR_SET_CU_MASK = 0x1a,
	KFD_NR_GET_QUEUE_WAVE_STATE = 0x1b,
	KFD_NR_GET_DMABUF_INFO = 0x1c,
	KFD_NR_IMPORT_DMABUF = 0x1d,
	KFD_NR_ALLOC_QUEUE_GWS = 0x1e,
	KFD_NR_SMI_EVENTS = 0x1f,
	KFD_NR_SVM = 0x20,
	KFD_NR_SET_XNACK_MODE = 0x21,
	KFD_NR_CRIU_OP = 0x22,
	KFD_NR_AVAILABLE_MEMORY = 0x23,
	KFD_NR_EXPORT_DMABUF = 0x24,
	KFD_NR_RUNTIME_ENABLE = 0x25,
	KFD_NR_DBG_TRAP = 0x26,
};

#define KFD_VERSION_MAJOR 1u

struct kfd_ioc_get_version {
	uint32_t major; /* out */
	uint32_t minor; /* out: features are gated on it */
};
/* Minor versions from which something exists. */
enum {
	KFD_MINOR_SMI_EVENTS = 3,
	KFD_MINOR_SVM = 5,
	KFD_MINOR_CRIU = 8,
	KFD_MINOR_AVAILABLE_MEMORY = 9,
	KFD_MINOR_EXPORT_DMABUF = 12,
	KFD_MINOR_RUNTIME_ENABLE = 13,
	KFD_MINOR_DBG_TRAP = 13,
	KFD_MINOR_EVENT_AGE = 14,
	KFD_MINOR_SDMA_ENGINE_ID = 17, /* CREATE_QUEUE grows to 96 bytes */
};

struct kfd_ioc_create_queue {
	uint64_t ring_base;	  /* in */
	uint64_t wptr_addr;	  /* in: &amd_queue.write_dispatch_id */
	uint64_t rptr_addr;	  /* in: &amd_queue.read_dispatch_id */
	uint64_t doorbell_offset; /* out: mmap cookie | offset in the slice */
	uint32_t ring_size;	  /* in: bytes, a power of two */
	uint32_t gpu_id;	  /* in */
	uint32_t type;		  /* in: KFD_QUEUE_* */
	uint32_t percentage;	  /* in: 0..100 in the low byte */
	uint32_t priority;	  /* in: 0..15, 7 is normal */
	uint32_t queue_id;	  /* out */
	uint64_t eop_addr;	  /* in */
	uint64_t eop_size;	  /* in: KFD_EOP_BYTES */
	uint64_t cwsr_addr;	  /* in: context save area */
	uint32_t cwsr_size;	  /* in: kfd_cwsr_sizes().cwsr_bytes */
	uint32_t ctl_stack_size;  /* in: kfd_cwsr_sizes().ctl_stack_bytes */
	uint32_t sdma_engine_id;  /* in, from 1.17 */
	uint32_t pad;
};
#define KFD_CREATE_QUEUE_OLD_BYTES 88u /* before 1.17 */
#define KFD_EOP_BYTES 4096u
#define KFD_QUEUE_RING_MIN_BYTES 1024u
#define KFD_QUEUE_PRIORITY_MAX 15u
#define KFD_QUEUE_PRIORITY_NORMAL 7u
enum {
	KFD_QUEUE_COMPUTE = 0, /* PM4 packets */
	KFD_QUEUE_SDMA = 1,
	KFD_QUEUE_COMPUTE_AQL = 2,
	KFD_QUEUE_SDMA_XGMI = 3,
	KFD_QUEUE_SDMA_BY_ENG_ID = 4,
};

struct kfd_ioc_destroy_queue {
	uint32_t queue_id;
	uint32_t pad;
};
struct kfd_ioc_update_queue {
	uint64_t ring_base;
	uint32_t queue_id;
	uint32_t ring_size;
	uint32_t percentage; /* 0 suspends the queue */
	uint32_t priority;
};

struct kfd_ioc_set_cu_mask {
	uint32_t queue_id;
	uint32_t num_cu_mask; /* bits, a multiple of 32 */
	uint64_t cu_mask_ptr; /* in: u32[]; CUs come in pairs of a WGP */
};
struct kfd_ioc_get_queue_wave_state {
	uint64_t ctl_stack_address; /* in: the header's first 16 bytes */
	uint32_t ctl_stack_used_size; /* out */
	uint32_t save_area_used_size; /* out */
	uint32_t queue_id;	      /* in */
	uint32_t pad;
};
struct kfd_ioc_alloc_queue_gws {
	uint32_t queue_id;
	uint32_t num_gws; /* in: 0 gives it back */
	uint32_t first_gws; /* out */
	uint32_t pad;
};
struct kfd_ioc_get_dmabuf_info {
	uint64_t size;	       /* out */
	uint64_t metadata_ptr; /* in */
	uint32_t metadata_size; /* in: room; out */
	uint32_t gpu_id;	/* out */
	uint32_t flags;		/* out: KFD_MEM_* */
	uint32_t dmabuf_fd;	/* in */
};
struct kfd_ioc_import_dmabuf {
	uint64_t va_addr;
	uint64_t handle; /* out */
	uint32_t gpu_id;
	uint32_t dmabuf_fd;
};
struct kfd_ioc_export_dmabuf {
	uint64_t handle;
	uint32_t flags;	    /* in: O_CLOEXEC, O_RDWR */
	uint32_t dmabuf_fd; /* out */
};
struct kfd_ioc_criu {
	uint64_t devices, bos, priv_data, priv_data_size;
	uint32_t num_devices, num_bos, num_objects;
	uint32_t pid;
	uint32_t op; /* 0..4 */
	uint32_t pad;
};

struct kfd_ioc_set_memory_policy {
	uint64_t alternate_base;
	uint64_t alternate_size;
	uint32_t gpu_id;
	uint32_t default_policy;   /* 0 coherent, 1 not */
	uint32_t alternate_policy;
	uint32_t misc_process_flag;
};

struct kfd_ioc_get_clock_counters {
	uint64_t gpu_clock;    /* out: 100 MHz on gfx1100 */
	uint64_t cpu_clock;    /* out: CLOCK_MONOTONIC_RAW, ns */
	uint64_t system_clock; /* out: CLOCK_BOOTTIME, ns */
	uint64_t system_freq;  /* out: 1000000000 */
	uint32_t gpu_id;       /* in */
	uint32_t pad;
};
#define KFD_GPU_CLOCK_HZ 100000000u

struct kfd_aperture {
	uint64_t lds_base;
	uint64_t lds_limit;
	uint64_t scratch_base;
	uint64_t scratch_limit;
	uint64_t gpuvm_base;
	uint64_t gpuvm_limit;
	uint32_t gpu_id;
	uint32_t pad;
};
#define KFD_APERTURES_MAX 7
struct kfd_ioc_get_process_apertures {
	struct kfd_aperture node[KFD_APERTURES_MAX]; /* out */
	uint32_t num_of_nodes;			     /* out */
	uint32_t pad;
};
struct kfd_ioc_get_process_apertures_new {
	uint64_t apertures_ptr; /* in: struct kfd_aperture[] */
	uint32_t num_of_nodes;	/* in: capacity; out: count */
	uint32_t pad;
};

struct kfd_ioc_acquire_vm {
	uint32_t drm_fd;
	uint32_t gpu_id;
};

struct kfd_ioc_alloc_memory {
	uint64_t va_addr;     /* in */
	uint64_t size;	      /* in: bytes, whole pages */
	uint64_t handle;      /* out */
	uint64_t mmap_offset; /* in: user pointer; out: mmap cookie */
	uint32_t gpu_id;      /* in */
	uint32_t flags;	      /* in: KFD_MEM_* */
};
enum {
	/* Exactly one of these five. */
	KFD_MEM_VRAM = 1u << 0,
	KFD_MEM_GTT = 1u << 1,
	KFD_MEM_USERPTR = 1u << 2,
	KFD_MEM_DOORBELL = 1u << 3,
	KFD_MEM_MMIO_REMAP = 1u << 4,
	KFD_MEM_PLACE_MASK = 0x1fu,

	KFD_MEM_CONTIGUOUS = 1u << 23,
	KFD_MEM_EXT_COHERENT = 1u << 24,
	KFD_MEM_UNCACHED = 1u << 25,
	KFD_MEM_COHERENT = 1u << 26,
	KFD_MEM_AQL_QUEUE_MEM = 1u << 27,
	KFD_MEM_NO_SUBSTITUTE = 1u << 28,
	KFD_MEM_PUBLIC = 1u << 29, /* VRAM that the host can map */
	KFD_MEM_EXECUTABLE = 1u << 30,
};
#define KFD_MEM_WRITABLE (1u << 31)
#define KFD_DOORBELL_SLICE_BYTES 8192u /* 1024 doorbells of one process */
#define KFD_MMIO_REMAP_BYTES 4096u
/* Dwords of the MMIO remap page. */
#define KFD_MMIO_HDP_MEM_FLUSH 0
#define KFD_MMIO_HDP_REG_FLUSH 1

struct kfd_ioc_free_memory {
	uint64_t handle;
};
struct kfd_ioc_map_memory { /* MAP and UNMAP alike */
	uint64_t handle;
	uint64_t device_ids_array_ptr; /* in: u32 gpu_id[n_devices] */
	uint32_t n_devices;
	uint32_t n_success; /* in and out: start at 0, keep for a retry */
};


struct kfd_ioc_set_scratch_backing_va {
	uint64_t va_addr; /* VA >> 16 */
	uint32_t gpu_id;
	uint32_t pad;
};
struct kfd_ioc_get_tile_config {
	uint64_t tile_config_ptr;	/* out array */
	uint64_t macro_tile_config_ptr; /* out array */
	uint32_t num_tile_configs;	/* in and out */
	uint32_t num_macro_tile_configs;
	uint32_t gpu_id;
	uint32_t gb_addr_config; /* out */
	uint32_t num_banks;
	uint32_t num_ranks;
};
struct kfd_ioc_set_trap_handler {
	uint64_t tba_addr;
	uint64_t tma_addr;
	uint32_t gpu_id;
	uint32_t pad;
};

struct kfd_ioc_set_xnack_mode {
	int32_t xnack_enabled; /* in: -1 asks; out: 0 on gfx11 */
};
struct kfd_ioc_available_memory {
	uint64_t available; /* out: bytes of VRAM */
	uint32_t gpu_id;    /* in */
	uint32_t pad;
};
struct kfd_ioc_runtime_enable {
	uint64_t r_debug;
	uint32_t mode_mask; /* in: KFD_RUNTIME_* */
	uint32_t capabilities_mask;
};
enum {
	KFD_RUNTIME_ENABLE = 1u << 0,
	KFD_RUNTIME_TTMP_SAVE = 1u << 1,
};

struct kfd_debug_runtime {
	uint64_t r_debug;
	uint32_t runtime_state; /* KFD_RUNTIME_STATE_* */
	uint32_t ttmp_setup;
};
enum {
	KFD_RUNTIME_STATE_DISABLED = 0,
	KFD_RUNTIME_STATE_ENABLED = 1,
};
struct kfd_queue_snapshot {
	uint64_t exception_status;
	uint64_t ring_base;
	uint64_t wptr_addr;
	uint64_t rptr_addr;
	uint64_t cwsr_addr;
	uint32_t queue_id;
	uint32_t gpu_id;
	uint32_t ring_size;
	uint32_t type; /* KFD_QUEUE_* */
	uint32_t cwsr_size;
	uint32_t reserved;
};
struct kfd_device_snapshot {
	uint64_t exception_status;
	uint64_t lds_base, lds_limit;
	uint64_t scratch_base, scratch_limit;
	uint64_t gpuvm_base, gpuvm_limit;
	uint32_t gpu_id, location_id;
	uint32_t vendor_id, device_id, revision_id;
	uint32_t subsystem_vendor_id, subsystem_device_id;
	uint32_t fw_version, gfx_target_version;
	uint32_t simd_count, max_waves_per_simd;
	uint32_t array_count, simd_arrays_per_engine;
	uint32_t num_xcc, capability, debug_prop;
};
/* In the ids of SUSPEND and RESUME_QUEUES, afterwards. */
#define KFD_DBG_QUEUE_ERROR (1u << 30)
#define KFD_DBG_QUEUE_INVALID (1u << 31)
enum kfd_dbg_op {
	KFD_DBG_ENABLE = 0,
	KFD_DBG_DISABLE = 1,
	KFD_DBG_SEND_RUNTIME_EVENT = 2,
	KFD_DBG_SET_EXCEPTIONS_ENABLED = 3,
	KFD_DBG_SET_WAVE_LAUNCH_OVERRIDE = 4,
	KFD_DBG_SET_WAVE_LAUNCH_MODE = 5,
	KFD_DBG_SUSPEND_QUEUES = 6,
	KFD_DBG_RESUME_QUEUES = 7,
	KFD_DBG_SET_NODE_ADDRESS_WATCH = 8,
	KFD_DBG_CLEAR_NODE_ADDRESS_WATCH = 9,
	KFD_DBG_SET_FLAGS = 10,
	KFD_DBG_QUERY_DEBUG_EVENT = 11,
	KFD_DBG_QUERY_EXCEPTION_INFO = 12,
	KFD_DBG_GET_QUEUE_SNAPSHOT = 13,
	KFD_DBG_GET_DEVICE_SNAPSHOT = 14,
};
#define KFD_DBG_TRAP_ADDRESS_WATCH (1u << 7)
#define KFD_DBG_FLAG_SINGLE_MEM_OP 1u
#define KFD_DBG_FLAG_SINGLE_ALU_OP 2u
struct kfd_ioc_dbg_trap {
	uint32_t pid; /* of the process that is debugged */
	uint32_t op;  /* KFD_DBG_* */
	union {
		struct {
			uint64_t exception_mask; /* bits KFD_EC_MASK() */
			uint64_t rinfo_ptr; /* out: kfd_runtime_info */
			uint32_t rinfo_size; /* in and out */
			uint32_t dbg_fd; /* gets a byte per exception */
		} enable;
		struct {
			uint64_t exception_mask;
			uint32_t gpu_id, queue_id;
		} event; /* SEND_RUNTIME_EVENT, QUERY_DEBUG_EVENT */
		struct {
			uint64_t exception_mask;
		} enabled;
		struct {
			uint32_t override_mode; /* 0 or, 1 replace */
			/* KFD_DBG_TRAP_*; out: as it was, what there is */
			uint32_t enable_mask;
			uint32_t support_request_mask;
			uint32_t pad;
		} launch_override;
		struct {
			uint32_t launch_mode; /* 0 normal, 1 halt, 3 debug */
			uint32_t pad;
		} launch_mode;
		struct {
			uint64_t exception_mask;
			uint64_t queue_array_ptr; /* in and out: u32[] */
			uint32_t num_queues;
			uint32_t grace_period;
		} suspend;
		struct {
			uint64_t queue_array_ptr;
			uint32_t num_queues;
			uint32_t pad;
		} resume;
		struct {
			uint64_t address;
			uint32_t mode; /* 0 read, 1 nonread, 2 atomic, 3 all */
			uint32_t mask; /* of the address, bits 29:7 */
			uint32_t gpu_id;
			uint32_t id; /* out */
		} watch;
		struct {
			uint32_t gpu_id, id;
		} unwatch;
		struct {
			uint32_t flags; /* KFD_DBG_FLAG_*; out: as they were */
			uint32_t pad;
		} flags;
		struct {
			uint64_t info_ptr;
			uint32_t info_size, source_id;
			uint32_t exception_code, clear_exception;
		} info;
		struct {
			uint64_t exception_mask; /* in: to be cleared */
			uint64_t buf_ptr;
			uint32_t count; /* in: room; out */
			uint32_t entry_size; /* in and out */
		} snapshot; /* of queues, of devices */
	};
};

struct kfd_svm_attr {
	uint32_t type; /* KFD_SVM_ATTR_* */
	uint32_t value;
};
struct kfd_ioc_svm { /* followed by struct kfd_svm_attr[nattr] */
	uint64_t start_addr;
	uint64_t size;
	uint32_t op; /* 0 set, 1 get */
	uint32_t nattr;
};
enum {
	KFD_SVM_OP_SET = 0,
	KFD_SVM_OP_GET = 1,

	KFD_SVM_ATTR_PREFERRED_LOC = 0,
	KFD_SVM_ATTR_PREFETCH_LOC = 1,
	KFD_SVM_ATTR_ACCESS = 2,
	KFD_SVM_ATTR_ACCESS_IN_PLACE = 3,
	KFD_SVM_ATTR_NO_ACCESS = 4,
	KFD_SVM_ATTR_SET_FLAGS = 5,
	KFD_SVM_ATTR_CLR_FLAGS = 6,
	KFD_SVM_ATTR_GRANULARITY = 7,

	KFD_SVM_FLAG_HOST_ACCESS = 0x01,
	KFD_SVM_FLAG_COHERENT = 0x02,
	KFD_SVM_FLAG_HIVE_LOCAL = 0x04,
	KFD_SVM_FLAG_GPU_RO = 0x08,
	KFD_SVM_FLAG_GPU_EXEC = 0x10,
	KFD_SVM_FLAG_GPU_READ_MOSTLY = 0x20,
	KFD_SVM_FLAG_ALWAYS_MAPPED = 0x40,
	KFD_SVM_FLAG_EXT_COHERENT = 0x80,
};
#define KFD_SVM_LOCATION_SYSMEM 0u
#define KFD_SVM_LOCATION_UNDEFINED 0xffffffffu
#define KFD_SVM_GRANULARITY_DEFAULT 9u /* 2 MiB, as a power of two pages */
#define KFD_SVM_GRANULARITY_MAX 0x3fu

struct kfd_ioc_smi_events {
	uint32_t gpu_id;  /* in */
	uint32_t anon_fd; /* out: write a u64 mask to it, read lines */
};
/* Bit (event - 1) of the mask asks for the event. */
enum kfd_smi {
	KFD_SMI_VMFAULT = 1,
	KFD_SMI_THERMAL_THROTTLE = 2,
	KFD_SMI_GPU_PRE_RESET = 3,
	KFD_SMI_GPU_POST_RESET = 4,
	KFD_SMI_MIGRATE_START = 5,
	KFD_SMI_MIGRATE_END = 6,
	KFD_SMI_PAGE_FAULT_START = 7,
	KFD_SMI_PAGE_FAULT_END = 8,
	KFD_SMI_QUEUE_EVICTION = 9,
	KFD_SMI_QUEUE_RESTORE = 10,
	KFD_SMI_UNMAP_FROM_GPU = 11,
};
enum { /* why */
	KFD_SMI_MIGRATE_PREFETCH = 0,
	KFD_SMI_UNMAP_FROM_CPU = 2,
};

#define KFD_IOC_GET_VERSION \
	KFD_REQUEST(KFD_DIR_R, 8, KFD_NR_GET_VERSION)
#define KFD_IOC_CREATE_QUEUE \
	KFD_REQUEST(KFD_DIR_WR, 96, KFD_NR_CREATE_QUEUE)
#define KFD_IOC_DESTROY_QUEUE \
	KFD_REQUEST(KFD_DIR_WR, 8, KFD_NR_DESTROY_QUEUE)
#define KFD_IOC_SET_MEMORY_POLICY \
	KFD_REQUEST(KFD_DIR_W, 32, KFD_NR_SET_MEMORY_POLICY)
#define KFD_IOC_GET_CLOCK_COUNTERS \
	KFD_REQUEST(KFD_DIR_WR, 40, KFD_NR_GET_CLOCK_COUNTERS)
#define KFD_IOC_GET_PROCESS_APERTURES \
	KFD_REQUEST(KFD_DIR_R, 400, KFD_NR_GET_PROCESS_APERTURES)
#define KFD_IOC_UPDATE_QUEUE \
	KFD_REQUEST(KFD_DIR_W, 24, KFD_NR_UPDATE_QUEUE)
#define KFD_IOC_CREATE_EVENT \
	KFD_REQUEST(KFD_DIR_WR, 32, KFD_NR_CREATE_EVENT)
#define KFD_IOC_DESTROY_EVENT \
	KFD_REQUEST(KFD_DIR_W, 8, KFD_NR_DESTROY_EVENT)
#define KFD_IOC_SET_EVENT KFD_REQUEST(KFD_DIR_W, 8, KFD_NR_SET_EVENT)
#define KFD_IOC_RESET_EVENT KFD_REQUEST(KFD_DIR_W, 8, KFD_NR_RESET_EVENT)
#define KFD_IOC_WAIT_EVENTS KFD_REQUEST(KFD_DIR_WR, 24, KFD_NR_WAIT_EVENTS)
#define KFD_IOC_SET_SCRATCH_BACKING_VA \
	KFD_REQUEST(KFD_DIR_WR, 16, KFD_NR_SET_SCRATCH_BACKING_VA)
#define KFD_IOC_GET_TILE_CONFIG \
	KFD_REQUEST(KFD_DIR_WR, 40, KFD_NR_GET_TILE_CONFIG)
#define KFD_IOC_SET_TRAP_HANDLER \
	KFD_REQUEST(KFD_DIR_W, 24, KFD_NR_SET_TRAP_HANDLER)
#define KFD_IOC_GET_PROCESS_APERTURES_NEW \
	KFD_REQUEST(KFD_DIR_WR, 16, KFD_NR_GET_PROCESS_APERTURES_NEW)
#define KFD_IOC_ACQUIRE_VM KFD_REQUEST(KFD_DIR_W, 8, KFD_NR_ACQUIRE_VM)
#define KFD_IOC_ALLOC_MEMORY_OF_GPU \
	KFD_REQUEST(KFD_DIR_WR, 40, KFD_NR_ALLOC_MEMORY_OF_GPU)
#define KFD_IOC_FREE_MEMORY_OF_GPU \
	KFD_REQUEST(KFD_DIR_W, 8, KFD_NR_FREE_MEMORY_OF_GPU)
#define KFD_IOC_MAP_MEMORY_TO_GPU \
	KFD_REQUEST(KFD_DIR_WR, 24, KFD_NR_MAP_MEMORY_TO_GPU)
#define KFD_IOC_UNMAP_MEMORY_FROM_GPU \
	KFD_REQUEST(KFD_DIR_WR, 24, KFD_NR_UNMAP_MEMORY_FROM_GPU)
#define KFD_IOC_SET_CU_MASK KFD_REQUEST(KFD_DIR_W, 16, KFD_NR_SET_CU_MASK)
#define KFD_IOC_SVM(nattr) \
	KFD_REQUEST(KFD_DIR_WR, 24 + 8 * (nattr), KFD_NR_SVM)
#define KFD_IOC_GET_QUEUE_WAVE_STATE \
	KFD_REQUEST(KFD_DIR_WR, 24, KFD_NR_GET_QUEUE_WAVE_STATE)
#define KFD_IOC_GET_DMABUF_INFO \
	KFD_REQUEST(KFD_DIR_WR, 32, KFD_NR_GET_DMABUF_INFO)
#define KFD_IOC_IMPORT_DMABUF \
	KFD_REQUEST(KFD_DIR_WR, 24, KFD_NR_IMPORT_DMABUF)
#define KFD_IOC_EXPORT_DMABUF \
	KFD_REQUEST(KFD_DIR_WR, 16, KFD_NR_EXPORT_DMABUF)
#define KFD_IOC_ALLOC_QUEUE_GWS \
	KFD_REQUEST(KFD_DIR_WR, 16, KFD_NR_ALLOC_QUEUE_GWS)
#define KFD_IOC_CRIU_OP KFD_REQUEST(KFD_DIR_WR, 56, KFD_NR_CRIU_OP)
#define KFD_IOC_DBG_TRAP KFD_REQUEST(KFD_DIR_WR, 32, KFD_NR_DBG_TRAP)
/* Four calls of old debuggers, which the kernel answers with EPERM. */
#define KFD_IOC_DBG_DEPRECATED(i) KFD_REQUEST(KFD_DIR_W, 16, 0x0d + (i))
#define KFD_IOC_SMI_EVENTS KFD_REQUEST(KFD_DIR_WR, 8, KFD_NR_SMI_EVENTS)
#define KFD_IOC_SET_XNACK_MODE \
	KFD_REQUEST(KFD_DIR_WR, 4, KFD_NR_SET_XNACK_MODE)
#define KFD_IOC_AVAILABLE_MEMORY \
	KFD_REQUEST(KFD_DIR_WR, 16, KFD_NR_AVAILABLE_MEMORY)
#define KFD_IOC_RUNTIME_ENABLE \
	KFD_REQUEST(KFD_DIR_WR, 16, KFD_NR_RUNTIME_ENABLE)

/* ---------------------------------------------------------- events ---- */

struct kfd_ioc_create_event {
	uint64_t event_page_offset; /* in: BO handle, first call; out: cookie */
	uint32_t event_trigger_data; /* out: what the GPU writes to the slot */
	uint32_t event_type;	     /* in: KFD_EVENT_* */
	uint32_t auto_reset;	     /* in */
	uint32_t node_id;	     /* in */
	uint32_t event_id;	     /* out */
	uint32_t event_slot_index;   /* out: u64 index into the event page */
};
enum {
	KFD_EVENT_SIGNAL = 0,
	KFD_EVENT_HW_EXCEPTION = 3,
	KFD_EVENT_DEBUG = 5,
	KFD_EVENT_MEMORY = 8,
};
#define KFD_EVENT_PAGE_SLOTS 4096u
#define KFD_EVENT_PAGE_BYTES (KFD_EVENT_PAGE_SLOTS * 8u)
#define KFD_EVENT_UNSIGNALLED UINT64_MAX /* content of an idle slot */
#define KFD_EVENT_NONSIGNAL_FIRST_ID 0x40000000u

struct kfd_ioc_event { /* DESTROY, SET and RESET_EVENT */
	uint32_t event_id;
	uint32_t pad;
};

struct kfd_memory_exception {
	uint32_t not_present;
	uint32_t read_only;
	uint32_t no_execute;
	uint32_t imprecise; /* 1: no address is known */
	uint64_t va;	    /* page-aligned */
	uint32_t gpu_id;    /* 0: this payload is not valid */
	uint32_t error_type;
};
enum {
	KFD_MEM_ERROR_NONE = 0,
	KFD_MEM_ERROR_SRAM_ECC = 1,
	KFD_MEM_ERROR_POISON = 2,
	KFD_MEM_ERROR_HANG = 3,
};
struct kfd_hw_exception {
	uint32_t reset_type;  /* 0 whole GPU, 1 one engine */
	uint32_t reset_cause; /* 0 hang, 1 ECC */
	uint32_t memory_lost;
	uint32_t gpu_id; /* 0: this payload is not valid */
};
struct kfd_event_data {
	union {
		struct kfd_memory_exception memory;
		struct kfd_hw_exception hw;
		/*
		 * Signal events, from 1.14: in, the age that the program has
		 * seen (0 = do not compare); out, the present age.  Ages
		 * start at 1 and grow by one per set.
		 */
		uint64_t last_event_age;
		uint8_t bytes[32];
	};
	uint64_t ext_ptr; /* 0 */
	uint32_t event_id;
	uint32_t pad;
};
struct kfd_ioc_wait_events {
	uint64_t events_ptr; /* in: struct kfd_event_data[num_events] */
	uint32_t num_events;
	uint32_t wait_for_all;
	uint32_t timeout;     /* ms; in and out: what is left of it */
	uint32_t wait_result; /* out: KFD_WAIT_* */
};
#define KFD_WAIT_FOREVER UINT32_MAX
enum {
	KFD_WAIT_COMPLETE = 0,
	KFD_WAIT_TIMEOUT = 1,
	KFD_WAIT_FAIL = 2, /* an event was destroyed: errno is EIO */
};

/* ------------------------------------------------- mmap of /dev/kfd ---- */

/* Bits 63:62 of the offset are the type, 61:46 the gpu_id. */
#define KFD_MMAP_TYPE_SHIFT 62
#define KFD_MMAP_TYPE_MMIO 0u
#define KFD_MMAP_TYPE_RESERVED 1u
#define KFD_MMAP_TYPE_EVENTS 2u
#define KFD_MMAP_TYPE_DOORBELL 3u
#define KFD_MMAP_GPU_ID_SHIFT 46
#define KFD_MMAP_OFFSET(type, gpu_id)                   \
	((uint64_t)(type) << KFD_MMAP_TYPE_SHIFT |      \
	 (uint64_t)((gpu_id) & 0xffffu) << KFD_MMAP_GPU_ID_SHIFT)

/* -------------------------------------------- context save and restore - */

/* The kernel compares CREATE_QUEUE's sizes with exactly these. */
struct kfd_cwsr {
	uint32_t ctl_stack_bytes;
	uint32_t cwsr_bytes;  /* control stack and workgroup data */
	uint32_t debug_bytes;
	uint64_t area_bytes;  /* what to allocate for all XCCs */
};
/*
 * `cu` = simd_count / simd_per_cu / num_xcc, `gfx_target_version` as in the
 * topology (110000 for gfx1100).  gfx11 and later only.
 */
static inline struct kfd_cwsr kfd_cwsr_sizes(uint32_t cu,
					     uint32_t gfx_target_version,
					     uint32_t num_xcc)
{
	const uint32_t t = gfx_target_version, page = KFD_PAGE_BYTES;
	const uint32_t waves = 32 * cu;
	const int big = t == 110000 || t == 110001 || t == 110501 ||
			t / 100 == 1200;
	const uint32_t vgpr = big ? 0x60000 : 0x40000; /* bytes per CU */
	const uint32_t per_cu = vgpr + 0x4000 /* SGPRs */ +
				0x10000 /* LDS */ + 0x1000 /* state */;
	struct kfd_cwsr s;

	s.ctl_stack_bytes = (40 + 12 * waves + 8 + page - 1) & ~(page - 1);
	s.cwsr_bytes = s.ctl_stack_bytes +
		       ((cu * per_cu + page - 1) & ~(page - 1));
	s.debug_bytes = (32 * waves + 63) & ~63u;
	s.area_bytes = ((uint64_t)s.cwsr_bytes + s.debug_bytes) * num_xcc;
	s.area_bytes = (s.area_bytes + page - 1) & ~(uint64_t)(page - 1);
	return s;
}

/* At the start of the context save area, one per XCC. */
struct kfd_cwsr_header {
	uint32_t control_stack_offset; /* these four: the kernel writes */
	uint32_t control_stack_size;
	uint32_t wave_state_offset;
	uint32_t wave_state_size;
	uint32_t debug_offset; /* (num_xcc - i) * cwsr_bytes */
	uint32_t debug_size;
	uint64_t err_payload_addr; /* u64 that receives KFD_EC_MASK() bits */
	uint32_t err_event_id;	   /* set when it does */
	uint32_t reserved;
};

/* Exception codes; the payload at err_payload_addr has bit (code - 1). */
enum kfd_ec {
	KFD_EC_WAVE_ABORT = 1,
	KFD_EC_WAVE_TRAP = 2,
	KFD_EC_WAVE_MATH = 3,
	KFD_EC_WAVE_ILLEGAL_INSTRUCTION = 4,
	KFD_EC_WAVE_MEMORY_VIOLATION = 5,
	KFD_EC_WAVE_APERTURE_VIOLATION = 6,
	KFD_EC_PACKET_DISPATCH_DIM = 16,
	KFD_EC_PACKET_GROUP_SEGMENT = 17,
	KFD_EC_PACKET_DISPATCH_CODE = 18,
	KFD_EC_PACKET_UNSUPPORTED = 20,
	KFD_EC_PACKET_WORK_GROUP_SIZE = 21,
	KFD_EC_PACKET_REGISTER = 22,
	KFD_EC_PACKET_VENDOR = 23,
	KFD_EC_PREEMPTION = 30,
	KFD_EC_QUEUE_NEW = 31,
	KFD_EC_DEVICE_QUEUE_DELETE = 32,
	KFD_EC_DEVICE_MEMORY_VIOLATION = 33,
	KFD_EC_DEVICE_RAS = 34,
	KFD_EC_DEVICE_FATAL_HALT = 35,
	KFD_EC_DEVICE_NEW = 36,
	KFD_EC_PROCESS_RUNTIME = 48,
	KFD_EC_PROCESS_DEVICE_REMOVE = 49,
};
#define KFD_EC_MASK(code) (1ull << ((code) - 1))

/*
 * What the CP stores as the value of amd_queue.queue_inactive_signal when
 * RUNTIME_ENABLE is off.  The queue then stands at read_dispatch_id.
 */
enum kfd_inactive {
	KFD_INACTIVE_SCRATCH_WAVE64 = 0x1, /* more scratch, then store 0 */
	KFD_INACTIVE_DIM = 0x2,
	KFD_INACTIVE_GROUP_SEGMENT = 0x4,
	KFD_INACTIVE_CODE = 0x8,
	KFD_INACTIVE_PACKET_FORMAT = 0x20,
	KFD_INACTIVE_WORK_GROUP_SIZE = 0x40,
	KFD_INACTIVE_REGISTERS = 0x80,
	KFD_INACTIVE_VENDOR = 0x100,
	KFD_INACTIVE_SCRATCH_RECLAIM = 0x200,
	KFD_INACTIVE_SCRATCH_WAVE32 = 0x400,
	KFD_INACTIVE_APERTURE = 0x20000000,
	KFD_INACTIVE_ILLEGAL = 0x40000000,
};
#define KFD_INACTIVE_TRAP 0x80000000u

/* ------------------------------------------------------- AQL queue ---- */

/*
 * amd_queue_t: 64-byte aligned, filled completely before CREATE_QUEUE.  The
 * CP finds it at rptr_addr - read_dispatch_id_field_base_byte_offset.  Both
 * ids count packets and never wrap.
 */
struct amd_queue {
	uint32_t type;	   /* 0 multi-producer, 1 single, 2 cooperative */
	uint32_t features; /* 1: kernel dispatch */
	uint64_t base_address;
	uint64_t doorbell_signal; /* VA of a struct amd_signal */
	uint32_t size;		  /* packets, a power of two */
	uint32_t reserved0;
	uint64_t id;
	uint32_t caps; /* bit 0 async reclaim; the CP writes it */
	uint32_t reserved1[3];
	uint64_t write_dispatch_id;
	uint32_t group_segment_aperture_base_hi;
	uint32_t private_segment_aperture_base_hi;
	uint32_t max_cu_id;   /* CUs - 1 */
	uint32_t max_wave_id; /* waves per CU - 1 */
	uint64_t max_legacy_doorbell_dispatch_id_plus_1;
	uint32_t legacy_doorbell_lock;
	uint32_t reserved2[9];
	uint64_t read_dispatch_id;
	uint32_t read_dispatch_id_field_base_byte_offset; /* 0x80 */
	uint32_t compute_tmpring_size; /* AMD_TMPRING_* */
	uint32_t scratch_resource_descriptor[4];
	uint64_t scratch_backing_memory_location;
	uint64_t scratch_backing_memory_byte_size;
	uint32_t scratch_wave64_lane_byte_size; /* bytes of a wave / 64 */
	uint32_t queue_properties;		/* AMD_QUEUE_PROP_* */
	uint64_t scratch_last_used_index;
	uint64_t queue_inactive_signal; /* VA of a struct amd_signal */
	uint64_t reserved3;
	uint64_t alt_scratch_last_used_index;
	uint64_t alt_scratch_backing_memory_location;
	uint64_t alt_scratch_backing_memory_byte_size;
	uint32_t alt_scratch_dispatch_limit_x;
	uint32_t alt_scratch_dispatch_limit_y;
	uint32_t alt_scratch_dispatch_limit_z;
	uint32_t alt_scratch_wave64_lane_byte_size;
	uint32_t alt_compute_tmpring_size;
	uint32_t reserved4;
};
enum {
	AMD_QUEUE_PROP_TRAP_HANDLER = 1u << 0,
	AMD_QUEUE_PROP_PTR64 = 1u << 1,
	AMD_QUEUE_PROP_TRAP_DEBUG_SGPRS = 1u << 2,
	AMD_QUEUE_PROP_PROFILING = 1u << 3, /* write start_ts and end_ts */
	AMD_QUEUE_PROP_SCRATCH_ONCE = 1u << 4,
};
/*
 * compute_tmpring_size: waves per shader engine, 256-byte units per wave; before
 * gfx11 waves of the card, and units of 1 KiB.
 */
#define AMD_TMPRING_WAVES(v) ((v) & 0xfffu)
#define AMD_TMPRING_WAVESIZE(v) ((v) >> 12 & 0x7fffu)
#define AMD_TMPRING(waves, wavesize) ((uint32_t)(waves) | (wavesize) << 12)
#define AMD_SCRATCH_WAVE_MAX_BYTES 8387584u

struct amd_signal { /* amd_signal_t, 64-byte aligned */
	int64_t kind;	/* AMD_SIGNAL_* */
	int64_t value;	/* or the doorbell's address */
	uint64_t event_mailbox_ptr; /* slot of the event page, 0 = none */
	uint32_t event_id;
	uint32_t reserved1;
	uint64_t start_ts; /* GPU ticks */
	uint64_t end_ts;
	uint64_t queue_ptr;
	uint32_t reserved3[2];
};
enum {
	AMD_SIGNAL_USER = 1,
	AMD_SIGNAL_DOORBELL = -1,
	AMD_SIGNAL_LEGACY_DOORBELL = -2,
};

/* ----------------------------------------------------- AQL packets ---- */

#define AQL_PACKET_BYTES 64u
enum aql_type {
	AQL_VENDOR = 0,
	AQL_INVALID = 1, /* what a free slot must hold */
	AQL_KERNEL_DISPATCH = 2,
	AQL_BARRIER_AND = 3,
	AQL_AGENT_DISPATCH = 4,
	AQL_BARRIER_OR = 5,
};
enum { AQL_SCOPE_NONE = 0, AQL_SCOPE_AGENT = 1, AQL_SCOPE_SYSTEM = 2 };
#define AQL_HEADER(type, barrier, acquire, release)              \
	((uint16_t)((type) | (barrier) << 8 | (acquire) << 9 | \
		    (release) << 11))
#define AQL_HEADER_TYPE(h) ((h) & 0xffu)
#define AQL_HEADER_BARRIER(h) ((h) >> 8 & 1u)
#define AQL_HEADER_ACQUIRE(h) ((h) >> 9 & 3u)
#define AQL_HEADER_RELEASE(h) ((h) >> 11 & 3u)

struct aql_dispatch {
	uint16_t header;
	uint16_t setup; /* bits 1:0 dimensions, 1..3 */
	uint16_t workgroup_size[3];
	uint16_t reserved0;
	uint32_t grid_size[3]; /* work-items, need not be multiples */
	uint32_t private_segment_size; /* bytes per lane */
	uint32_t group_segment_size;   /* bytes, static and dynamic LDS */
	uint64_t kernel_object;	     /* VA of an amd_kernel_descriptor */
	uint64_t kernarg_address;
	uint64_t reserved2;
	uint64_t completion_signal; /* VA of a struct amd_signal, 0 = none */
};
struct aql_barrier { /* AND and OR */
	uint16_t header;
	uint16_t reserved0;
	uint32_t reserved1;
	uint64_t dep_signal[5]; /* 0 = ignored; satisfied at value 0 */
	uint64_t reserved2;
	uint64_t completion_signal;
};
struct aql_agent_dispatch {
	uint16_t header;
	uint16_t type;
	uint32_t reserved0;
	uint64_t return_address;
	uint64_t arg[4];
	uint64_t reserved2;
	uint64_t completion_signal;
};
enum { AQL_VENDOR_PM4_IB = 1, AQL_VENDOR_BARRIER_VALUE = 2 };
struct aql_pm4_ib {
	uint16_t header;
	uint8_t amd_format; /* AQL_VENDOR_PM4_IB */
	uint8_t reserved0;
	uint32_t ib_jump_cmd[4]; /* a PM4 INDIRECT_BUFFER packet */
	uint32_t dw_cnt_remain;	 /* 10 */
	uint32_t reserved1[8];
	uint64_t completion_signal;
};
struct aql_barrier_value {
	uint16_t header;
	uint8_t amd_format; /* AQL_VENDOR_BARRIER_VALUE */
	uint8_t reserved0;
	uint32_t reserved1;
	uint64_t signal;
	int64_t value;
	int64_t mask;
	uint32_t cond; /* AQL_COND_*: (signal & mask) against value */
	uint32_t reserved2;
	uint64_t reserved3;
	uint64_t reserved4;
	uint64_t completion_signal;
};
enum { AQL_COND_EQ = 0, AQL_COND_NE = 1, AQL_COND_LT = 2, AQL_COND_GTE = 3 };

/* PM4 type 3 packets: bits 31:30 = 3, 29:16 dwords after it - 1, 15:8 op. */
#define PM4_TYPE3(op, n_dw) (3u << 30 | ((n_dw) - 1u) << 16 | (op) << 8)
#define PM4_OP(h) ((h) >> 8 & 0xffu)
#define PM4_BODY_DW(h) (((h) >> 16 & 0x3fffu) + 1u)
enum {
	PM4_NOP = 0x10,
	PM4_CLEAR_STATE = 0x12,
	PM4_DISPATCH_DIRECT = 0x15, /* x, y, z, initiator */
	PM4_DISPATCH_INDIRECT = 0x16, /* lo, hi of the sizes, initiator */
	PM4_ATOMIC_MEM = 0x1e, /* atomic, lo, hi, value (2), compare (2) */
	PM4_COND_EXEC = 0x22, /* lo, hi, cache, dwords to skip if it is 0 */
	PM4_PRED_EXEC = 0x23, /* parts of the card, dwords that are theirs */
	PM4_WRITE_DATA = 0x37,	    /* control, lo, hi, data... */
	PM4_WAIT_REG_MEM = 0x3c, /* control, lo, hi, value, mask, interval */
	PM4_INDIRECT_BUFFER = 0x3f, /* lo, hi, control: bits 19:0 dwords */
	PM4_COPY_DATA = 0x40, /* control, source (2), destination (2) */
	PM4_PFP_SYNC_ME = 0x42,
	PM4_EVENT_WRITE = 0x46,
	PM4_RELEASE_MEM = 0x49, /* event, select, lo, hi, data lo, hi, id */
	PM4_DMA_DATA = 0x50, /* control, source (2), destination (2), count */
	PM4_ACQUIRE_MEM = 0x58,
	PM4_SET_SH_REG = 0x76, /* register - 0x2c00, values... */
	PM4_SET_UCONFIG_REG = 0x79, /* register - 0xc000, values... */
	PM4_WAIT_REG_MEM64 = 0x93, /* control, lo, hi, value (2), mask (2) ... */
	PM4_SET_SH_REG_INDEX = 0x9b, /* as SET_SH_REG */
};

/* ------------------------------------------------ kernel descriptor ---- */

struct amd_kernel_descriptor { /* 64-byte aligned, symbol "<name>.kd" */
	uint32_t group_segment_fixed_size;
	uint32_t private_segment_fixed_size;
	uint32_t kernarg_size;
	uint32_t reserved0;
	int64_t kernel_code_entry_byte_offset; /* from the descriptor */
	uint8_t reserved1[20];
	uint32_t compute_pgm_rsrc3;
	uint32_t compute_pgm_rsrc1;
	uint32_t compute_pgm_rsrc2;
	uint16_t kernel_code_properties;
	uint16_t kernarg_preload; /* 0 on gfx11 */
	uint32_t reserved3;
};
/* rsrc1 */
#define AMD_RSRC1_VGPRS(v) ((v) & 0x3fu) /* count / granule - 1 */
#define AMD_RSRC1_ROUND32(v) ((v) >> 12 & 3u)
#define AMD_RSRC1_ROUND16_64(v) ((v) >> 14 & 3u)
#define AMD_RSRC1_DENORM32(v) ((v) >> 16 & 3u)
#define AMD_RSRC1_DENORM16_64(v) ((v) >> 18 & 3u)
/*
 * The wave may do what trap handlers may.  Counts where a PM4 packet sets the
 * register; that of a descriptor is the packet processor's to fill in.
 */
#define AMD_RSRC1_PRIV (1u << 20)
#define AMD_RSRC1_DX10_CLAMP (1u << 21)
#define AMD_RSRC1_IEEE_MODE (1u << 23)
#define AMD_RSRC1_FP16_OVFL (1u << 26)
#define AMD_RSRC1_WGP_MODE (1u << 29)
#define AMD_RSRC1_MEM_ORDERED (1u << 30)
#define AMD_RSRC1_FWD_PROGRESS (1u << 31)
/* rsrc2 */
#define AMD_RSRC2_PRIVATE_SEGMENT (1u << 0)
#define AMD_RSRC2_USER_SGPRS(v) ((v) >> 1 & 0x1fu)
#define AMD_RSRC2_WORKGROUP_ID_X (1u << 7)
#define AMD_RSRC2_WORKGROUP_ID_Y (1u << 8)
#define AMD_RSRC2_WORKGROUP_ID_Z (1u << 9)
#define AMD_RSRC2_WORKGROUP_INFO (1u << 10)
#define AMD_RSRC2_WORKITEM_ID(v) ((v) >> 11 & 3u) /* 0 X, 1 XY, 2 XYZ */
#define AMD_RSRC2_LDS_BYTES(v) (((v) >> 15 & 0x1ffu) * 512u)
#define AMD_RSRC2_FP_EXCEPTIONS(v) ((v) >> 24 & 0x7fu)
/* Address watch, memory violation. */
#define AMD_RSRC2_MEM_EXCEPTIONS(v) ((v) >> 13 & 3u)
/* rsrc3 */
#define AMD_RSRC3_SHARED_VGPRS(v) ((v) & 0xfu)
#define AMD_RSRC3_INST_PREF_SIZE(v) ((v) >> 4 & 0x3fu) /* 128-byte units */
/* properties; in the order in which the SGPRs are filled, with their count */
enum {
	AMD_PROP_PRIVATE_SEGMENT_BUFFER = 1u << 0, /* 4 */
	AMD_PROP_DISPATCH_PTR = 1u << 1,	   /* 2 */
	AMD_PROP_QUEUE_PTR = 1u << 2,		   /* 2 */
	AMD_PROP_KERNARG_PTR = 1u << 3,		   /* 2 */
	AMD_PROP_DISPATCH_ID = 1u << 4,		   /* 2 */
	AMD_PROP_FLAT_SCRATCH_INIT = 1u << 5,	   /* 2 */
	AMD_PROP_PRIVATE_SEGMENT_SIZE = 1u << 6,   /* 1 */
	AMD_PROP_WAVE32 = 1u << 10,
	AMD_PROP_DYNAMIC_STACK = 1u << 11,
};

/* ----------------------------------------------------- compile proofs -- */

#define ABI_SIZE(type, bytes) \
	_Static_assert(sizeof(struct type) == (bytes), #type " size")
#define ABI_AT(type, field, off) \
	_Static_assert(offsetof(struct type, field) == (off), #type "." #field)

ABI_SIZE(kfd_ioc_get_version, 8);
ABI_SIZE(kfd_ioc_create_queue, 96);
ABI_AT(kfd_ioc_create_queue, doorbell_offset, 24);
ABI_AT(kfd_ioc_create_queue, queue_id, 52);
ABI_AT(kfd_ioc_create_queue, eop_addr, 56);
ABI_AT(kfd_ioc_create_queue, cwsr_addr, 72);
ABI_AT(kfd_ioc_create_queue, sdma_engine_id, KFD_CREATE_QUEUE_OLD_BYTES);
ABI_SIZE(kfd_ioc_destroy_queue, 8);
ABI_SIZE(kfd_ioc_update_queue, 24);
ABI_SIZE(kfd_ioc_set_memory_policy, 32);
ABI_SIZE(kfd_ioc_get_clock_counters, 40);
ABI_SIZE(kfd_aperture, 56);
ABI_SIZE(kfd_ioc_get_process_apertures, 400);
ABI_SIZE(kfd_ioc_get_process_apertures_new, 16);
ABI_SIZE(kfd_ioc_acquire_vm, 8);
ABI_SIZE(kfd_ioc_alloc_memory, 40);
ABI_AT(kfd_ioc_alloc_memory, flags, 36);
ABI_SIZE(kfd_ioc_free_memory, 8);
ABI_SIZE(kfd_ioc_map_memory, 24);
ABI_SIZE(kfd_ioc_set_cu_mask, 16);
ABI_SIZE(kfd_ioc_set_scratch_backing_va, 16);
ABI_SIZE(kfd_ioc_get_tile_config, 40);
ABI_SIZE(kfd_ioc_set_trap_handler, 24);
ABI_SIZE(kfd_ioc_set_xnack_mode, 4);
ABI_SIZE(kfd_ioc_available_memory, 16);
ABI_SIZE(kfd_ioc_runtime_enable, 16);
ABI_SIZE(kfd_svm_attr, 8);
ABI_SIZE(kfd_ioc_svm, 24);
ABI_SIZE(kfd_ioc_create_event, 32);
ABI_AT(kfd_ioc_create_event, event_slot_index, 28);
ABI_SIZE(kfd_ioc_event, 8);
ABI_SIZE(kfd_memory_exception, 32);
ABI_AT(kfd_memory_exception, va, 16);
ABI_SIZE(kfd_hw_exception, 16);
ABI_SIZE(kfd_event_data, 48);
ABI_AT(kfd_event_data, event_id, 40);
ABI_SIZE(kfd_ioc_wait_events, 24);
ABI_SIZE(kfd_cwsr_header, 40);
ABI_AT(kfd_cwsr_header, err_payload_addr, 24);

ABI_SIZE(amd_queue, 256);
ABI_AT(amd_queue, caps, 0x28);
ABI_AT(amd_queue, write_dispatch_id, 0x38);
ABI_AT(amd_queue, max_legacy_doorbell_dispatch_id_plus_1, 0x50);
ABI_AT(amd_queue, read_dispatch_id, 0x80);
ABI_AT(amd_queue, compute_tmpring_size, 0x8c);
ABI_AT(amd_queue, scratch_backing_memory_location, 0xa0);
ABI_AT(amd_queue, queue_properties, 0xb4);
ABI_AT(amd_queue, queue_inactive_signal, 0xc0);
ABI_AT(amd_queue, alt_scratch_last_used_index, 0xd0);
ABI_AT(amd_queue, alt_compute_tmpring_size, 0xf8);
ABI_SIZE(amd_signal, 64);
ABI_AT(amd_signal, event_mailbox_ptr, 16);
ABI_AT(amd_signal, start_ts, 32);
ABI_AT(amd_signal, queue_ptr, 48);
ABI_SIZE(aql_dispatch, AQL_PACKET_BYTES);
ABI_AT(aql_dispatch, grid_size, 12);
ABI_AT(aql_dispatch, kernel_object, 32);
ABI_SIZE(aql_barrier, AQL_PACKET_BYTES);
ABI_AT(aql_barrier, dep_signal, 8);
ABI_SIZE(aql_agent_dispatch, AQL_PACKET_BYTES);
ABI_SIZE(aql_pm4_ib, AQL_PACKET_BYTES);
ABI_AT(aql_pm4_ib, dw_cnt_remain, 20);
ABI_SIZE(aql_barrier_value, AQL_PACKET_BYTES);
ABI_AT(aql_barrier_value, cond, 32);
ABI_AT(aql_barrier_value, completion_signal, 56);
ABI_SIZE(amd_kernel_descriptor, 64);
ABI_AT(amd_kernel_descriptor, kernel_code_entry_byte_offset, 16);
ABI_AT(amd_kernel_descriptor, compute_pgm_rsrc3, 44);
ABI_AT(amd_kernel_descriptor, kernel_code_properties, 56);

_Static_assert(KFD_IOC_CREATE_QUEUE == 0xc0604b02, "CREATE_QUEUE request");
_Static_assert(KFD_IOC_GET_VERSION == 0x80084b01, "GET_VERSION request");
_Static_assert(KFD_IOC_GET_PROCESS_APERTURES == 0x81904b06, "APERTURES");
_Static_assert(KFD_IOC_ACQUIRE_VM == 0x40084b15, "ACQUIRE_VM request");
_Static_assert(KFD_IOC_SVM(0) == 0xc0184b20, "SVM request");
_Static_assert(KFD_IOC_RUNTIME_ENABLE == 0xc0104b25, "RUNTIME_ENABLE request");
_Static_assert(sizeof(void *) == 8, "x86-64 hosts only");

#undef ABI_SIZE
#undef ABI_AT

#endif
