/*
 * kfd/abi.h beside the kernel's own header: numbers, sizes, offsets, values.
 * Prints a line for each: "good" or "bad GOT WANTED", and what was compared.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>

#define kfd_event_data linux_event_data
#include <linux/kfd_ioctl.h>
#undef kfd_event_data
#include "kfd/abi.h"

static void is(unsigned long long got, unsigned long long wanted,
	       const char *what)
{
	if (got == wanted)
		printf("good %s\n", what);
	else
		printf("bad %llu %llu %s\n", got, wanted, what);
}

/* Direction and number; the size is the structure's. */
#define IOC(name) is(KFD_IOC_##name, AMDKFD_IOC_##name, #name)
#define SIZE(ours, theirs) \
	is(sizeof(struct ours), sizeof(struct theirs), "size of " #ours)
#define AT(ours, a, theirs, b) \
	is(offsetof(struct ours, a), offsetof(struct theirs, b), #ours "." #a)
#define VALUE(ours, theirs) \
	is((uint32_t)(ours), (uint32_t)(theirs), #ours)

/* Of headers that know KFD 1.13. */
static void debugger(void)
{
#ifdef AMDKFD_IOC_DBG_TRAP
	IOC(DBG_TRAP);
#define T(ours, theirs) AT(kfd_ioc_dbg_trap, ours, kfd_ioctl_dbg_trap_args, theirs)
	T(enable.dbg_fd, enable.dbg_fd);
	T(event.queue_id, query_debug_event.queue_id);
	T(launch_override.support_request_mask,
	  launch_override.support_request_mask);
	T(suspend.num_queues, suspend_queues.num_queues);
	T(resume.num_queues, resume_queues.num_queues);
	T(watch.id, set_node_address_watch.id);
	T(unwatch.id, clear_node_address_watch.id);
	T(info.exception_code, query_exception_info.exception_code);
	T(snapshot.count, queue_snapshot.num_queues);
	T(snapshot.entry_size, device_snapshot.entry_size);
	SIZE(kfd_debug_runtime, kfd_runtime_info);
	SIZE(kfd_queue_snapshot, kfd_queue_snapshot_entry);
	SIZE(kfd_device_snapshot, kfd_dbg_device_info_entry);
	AT(kfd_device_snapshot, debug_prop, kfd_dbg_device_info_entry,
	   debug_prop);
	VALUE(KFD_EC_QUEUE_NEW, EC_QUEUE_NEW);
	VALUE(KFD_EC_PROCESS_RUNTIME, EC_PROCESS_RUNTIME);
	VALUE(KFD_DBG_GET_DEVICE_SNAPSHOT,
	      KFD_IOC_DBG_TRAP_GET_DEVICE_SNAPSHOT);
#endif
}

static void queues(void)
{
	const unsigned theirs = sizeof(struct kfd_ioctl_create_queue_args);

	/* It grew with 1.17. */
	is(KFD_REQUEST(KFD_DIR_WR, theirs, KFD_NR_CREATE_QUEUE),
	   AMDKFD_IOC_CREATE_QUEUE, "CREATE_QUEUE");
	is(theirs, KFD_IOCTL_MINOR_VERSION < KFD_MINOR_SDMA_ENGINE_ID ?
			   KFD_CREATE_QUEUE_OLD_BYTES :
			   sizeof(struct kfd_ioc_create_queue),
	   "size of kfd_ioc_create_queue");
#define Q(a, b) AT(kfd_ioc_create_queue, a, kfd_ioctl_create_queue_args, b)
	Q(ring_base, ring_base_address);
	Q(wptr_addr, write_pointer_address);
	Q(rptr_addr, read_pointer_address);
	Q(doorbell_offset, doorbell_offset);
	Q(ring_size, ring_size);
	Q(gpu_id, gpu_id);
	Q(type, queue_type);
	Q(percentage, queue_percentage);
	Q(priority, queue_priority);
	Q(queue_id, queue_id);
	Q(eop_addr, eop_buffer_address);
	Q(eop_size, eop_buffer_size);
	Q(cwsr_addr, ctx_save_restore_address);
	Q(cwsr_size, ctx_save_restore_size);
	Q(ctl_stack_size, ctl_stack_size);
	IOC(DESTROY_QUEUE);
	SIZE(kfd_ioc_destroy_queue, kfd_ioctl_destroy_queue_args);
	IOC(UPDATE_QUEUE);
#define U(a, b) AT(kfd_ioc_update_queue, a, kfd_ioctl_update_queue_args, b)
	U(ring_base, ring_base_address);
	U(queue_id, queue_id);
	U(ring_size, ring_size);
	U(percentage, queue_percentage);
	U(priority, queue_priority);
	IOC(SET_CU_MASK);
	IOC(GET_QUEUE_WAVE_STATE);
	AT(kfd_ioc_get_queue_wave_state, queue_id,
	   kfd_ioctl_get_queue_wave_state_args, queue_id);
	IOC(ALLOC_QUEUE_GWS);
	AT(kfd_ioc_alloc_queue_gws, first_gws, kfd_ioctl_alloc_queue_gws_args,
	   first_gws);
	AT(kfd_ioc_set_cu_mask, cu_mask_ptr, kfd_ioctl_set_cu_mask_args,
	   cu_mask_ptr);
	VALUE(KFD_QUEUE_COMPUTE, KFD_IOC_QUEUE_TYPE_COMPUTE);
	VALUE(KFD_QUEUE_SDMA, KFD_IOC_QUEUE_TYPE_SDMA);
	VALUE(KFD_QUEUE_COMPUTE_AQL, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL);
	VALUE(KFD_QUEUE_SDMA_XGMI, KFD_IOC_QUEUE_TYPE_SDMA_XGMI);
	VALUE(KFD_QUEUE_PRIORITY_MAX, KFD_MAX_QUEUE_PRIORITY);
}

static void memory(void)
{
	IOC(ACQUIRE_VM);
	AT(kfd_ioc_acquire_vm, drm_fd, kfd_ioctl_acquire_vm_args, drm_fd);
	AT(kfd_ioc_acquire_vm, gpu_id, kfd_ioctl_acquire_vm_args, gpu_id);
	IOC(ALLOC_MEMORY_OF_GPU);
#define A(f) AT(kfd_ioc_alloc_memory, f, kfd_ioctl_alloc_memory_of_gpu_args, f)
	A(va_addr);
	A(size);
	A(handle);
	A(mmap_offset);
	A(gpu_id);
	A(flags);
	IOC(FREE_MEMORY_OF_GPU);
	IOC(MAP_MEMORY_TO_GPU);
	IOC(UNMAP_MEMORY_FROM_GPU);
#define M(f) AT(kfd_ioc_map_memory, f, kfd_ioctl_map_memory_to_gpu_args, f)
	M(handle);
	M(device_ids_array_ptr);
	M(n_devices);
	M(n_success);
	IOC(AVAILABLE_MEMORY);
	AT(kfd_ioc_available_memory, gpu_id, kfd_ioctl_get_available_memory_args,
	   gpu_id);
	is(KFD_IOC_SVM(0), AMDKFD_IOC_SVM, "SVM");
	AT(kfd_ioc_svm, op, kfd_ioctl_svm_args, op);
	AT(kfd_ioc_svm, nattr, kfd_ioctl_svm_args, nattr);
	SIZE(kfd_svm_attr, kfd_ioctl_svm_attribute);
	IOC(SMI_EVENTS);
	AT(kfd_ioc_smi_events, anon_fd, kfd_ioctl_smi_events_args, anon_fd);
	IOC(GET_DMABUF_INFO);
#define D(f) AT(kfd_ioc_get_dmabuf_info, f, kfd_ioctl_get_dmabuf_info_args, f)
	D(size);
	D(metadata_ptr);
	D(metadata_size);
	D(gpu_id);
	D(flags);
	D(dmabuf_fd);
	IOC(IMPORT_DMABUF);
	AT(kfd_ioc_import_dmabuf, handle, kfd_ioctl_import_dmabuf_args, handle);
	AT(kfd_ioc_import_dmabuf, dmabuf_fd, kfd_ioctl_import_dmabuf_args,
	   dmabuf_fd);
	IOC(CRIU_OP);
#ifdef AMDKFD_IOC_EXPORT_DMABUF
	IOC(EXPORT_DMABUF);
	AT(kfd_ioc_export_dmabuf, dmabuf_fd, kfd_ioctl_export_dmabuf_args,
	   dmabuf_fd);
#endif
	IOC(SET_XNACK_MODE);
#define F(f) VALUE(KFD_MEM_##f, KFD_IOC_ALLOC_MEM_FLAGS_##f)
	F(VRAM);
	F(GTT);
	F(USERPTR);
	F(DOORBELL);
	F(MMIO_REMAP);
	F(WRITABLE);
	F(EXECUTABLE);
	F(PUBLIC);
	F(NO_SUBSTITUTE);
	F(AQL_QUEUE_MEM);
	F(COHERENT);
	F(UNCACHED);
#define S(f) VALUE(KFD_SVM_FLAG_##f, KFD_IOCTL_SVM_FLAG_##f)
	S(HOST_ACCESS);
	S(COHERENT);
	S(GPU_RO);
	S(GPU_EXEC);
	VALUE(KFD_SVM_ATTR_ACCESS, KFD_IOCTL_SVM_ATTR_ACCESS);
	VALUE(KFD_SVM_ATTR_SET_FLAGS, KFD_IOCTL_SVM_ATTR_SET_FLAGS);
	VALUE(KFD_SVM_ATTR_GRANULARITY, KFD_IOCTL_SVM_ATTR_GRANULARITY);
	is(KFD_MMAP_OFFSET(KFD_MMAP_TYPE_DOORBELL, 0) >> 62, 3,
	   "type of doorbells in mmap");
}

static void events(void)
{
	IOC(CREATE_EVENT);
#define E(f) AT(kfd_ioc_create_event, f, kfd_ioctl_create_event_args, f)
	E(event_page_offset);
	E(event_trigger_data);
	E(event_type);
	E(auto_reset);
	E(node_id);
	E(event_id);
	E(event_slot_index);
	IOC(DESTROY_EVENT);
	IOC(SET_EVENT);
	IOC(RESET_EVENT);
	SIZE(kfd_ioc_event, kfd_ioctl_destroy_event_args);
	IOC(WAIT_EVENTS);
#define W(f) AT(kfd_ioc_wait_events, f, kfd_ioctl_wait_events_args, f)
	W(events_ptr);
	W(num_events);
	W(wait_for_all);
	W(timeout);
	W(wait_result);
	SIZE(kfd_event_data, linux_event_data);
	AT(kfd_event_data, event_id, linux_event_data, event_id);
	AT(kfd_event_data, ext_ptr, linux_event_data, kfd_event_data_ext);
#define X(a, b) \
	AT(kfd_memory_exception, a, kfd_hsa_memory_exception_data, b)
	X(not_present, failure.NotPresent);
	X(read_only, failure.ReadOnly);
	X(no_execute, failure.NoExecute);
	X(imprecise, failure.imprecise);
	X(va, va);
	X(gpu_id, gpu_id);
	X(error_type, ErrorType);
#define H(f) AT(kfd_hw_exception, f, kfd_hsa_hw_exception_data, f)
	H(reset_type);
	H(reset_cause);
	H(memory_lost);
	H(gpu_id);
	VALUE(KFD_EVENT_SIGNAL, KFD_IOC_EVENT_SIGNAL);
	VALUE(KFD_EVENT_HW_EXCEPTION, KFD_IOC_EVENT_HW_EXCEPTION);
	VALUE(KFD_EVENT_MEMORY, KFD_IOC_EVENT_MEMORY);
	VALUE(KFD_EVENT_PAGE_SLOTS, KFD_SIGNAL_EVENT_LIMIT);
	VALUE(KFD_WAIT_COMPLETE, KFD_IOC_WAIT_RESULT_COMPLETE);
	VALUE(KFD_WAIT_TIMEOUT, KFD_IOC_WAIT_RESULT_TIMEOUT);
	VALUE(KFD_WAIT_FAIL, KFD_IOC_WAIT_RESULT_FAIL);
}

static void others(void)
{
	VALUE(KFD_VERSION_MAJOR, KFD_IOCTL_MAJOR_VERSION);
	IOC(GET_VERSION);
	IOC(SET_MEMORY_POLICY);
	IOC(GET_CLOCK_COUNTERS);
#define C(a, b) \
	AT(kfd_ioc_get_clock_counters, a, kfd_ioctl_get_clock_counters_args, b)
	C(gpu_clock, gpu_clock_counter);
	C(cpu_clock, cpu_clock_counter);
	C(system_clock, system_clock_counter);
	C(system_freq, system_clock_freq);
	C(gpu_id, gpu_id);
	IOC(GET_PROCESS_APERTURES);
	IOC(GET_PROCESS_APERTURES_NEW);
	SIZE(kfd_aperture, kfd_process_device_apertures);
	AT(kfd_aperture, gpuvm_limit, kfd_process_device_apertures,
	   gpuvm_limit);
	AT(kfd_aperture, gpu_id, kfd_process_device_apertures, gpu_id);
	IOC(SET_SCRATCH_BACKING_VA);
	IOC(GET_TILE_CONFIG);
	AT(kfd_ioc_get_tile_config, gb_addr_config,
	   kfd_ioctl_get_tile_config_args, gb_addr_config);
	IOC(SET_TRAP_HANDLER);
#ifdef AMDKFD_IOC_RUNTIME_ENABLE
	IOC(RUNTIME_ENABLE);
#endif
}

int main(void)
{
	others();
	queues();
	debugger();
	memory();
	events();
	printf("version 1.%d\n", KFD_IOCTL_MINOR_VERSION);
	return 0;
}
