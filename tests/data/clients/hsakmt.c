/*
 * A client of the driver's own user-mode library: finds the GPU, allocates,
 * makes an AQL queue, and sends one barrier packet with a completion signal.
 * Prints what it saw, one fact per line.
 */
#include <hsakmt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(call)                                                       \
	do {                                                              \
		HSAKMT_STATUS st = (call);                                \
		if (st != HSAKMT_STATUS_SUCCESS) {                        \
			printf("%s: status %d\n", #call, (int)st);        \
			exit(1);                                          \
		}                                                         \
	} while (0)

static void *memory(HSAuint32 node, HSAuint64 size, int vram)
{
	HsaMemFlags f = { 0 };
	HSAuint64 va;
	void *p;

	f.ui32.HostAccess = 1;
	f.ui32.NonPaged = vram;
	f.ui32.ExecuteAccess = 1;
	f.ui32.NoSubstitute = 1;
	CHECK(hsaKmtAllocMemory(vram ? node : 0, size, f, &p));
	CHECK(hsaKmtMapMemoryToGPU(p, size, &va));
	return p;
}

static HSAuint32 find_gpu(void)
{
	HsaSystemProperties sys;
	HSAuint32 gpu = 0, gpus = 0;

	CHECK(hsaKmtAcquireSystemProperties(&sys));
	for (HSAuint32 i = 0; i < sys.NumNodes; i++) {
		HsaNodeProperties n;
		HsaMemoryProperties m;

		CHECK(hsaKmtGetNodeProperties(i, &n));
		if (!n.NumFComputeCores)
			continue;
		gpu = i;
		gpus++;
		printf("gfx %u.%u.%u\n", n.EngineId.ui32.Major,
		       n.EngineId.ui32.Minor, n.EngineId.ui32.Stepping);
		printf("cu %u\n", n.NumFComputeCores / n.NumSIMDPerCU);
		printf("caches %u\n", n.NumCaches);
		CHECK(hsaKmtGetNodeMemoryProperties(i, 1, &m));
		printf("vram %llu\n", (unsigned long long)m.SizeInBytes);
	}
	printf("gpus %u\n", gpus);
	return gpu;
}

int main(void)
{
	HsaVersionInfo v;
	HsaQueueResource r = { 0 };
	HsaEventDescriptor ed = { .EventType = HSA_EVENTTYPE_SIGNAL };
	HsaEvent *event;
	HsaClockCounters c0, c1;

	CHECK(hsaKmtOpenKFD());
	CHECK(hsaKmtGetVersion(&v));
	printf("version %u.%u\n", v.KernelInterfaceMajorVersion,
	       v.KernelInterfaceMinorVersion);
	const HSAuint32 gpu = find_gpu();

	unsigned *vram = memory(gpu, 1 << 20, 1);
	vram[5] = 42;
	printf("vram reads %u\n", vram[5]);

	unsigned char *ring = memory(gpu, 4096, 0);
	for (int i = 0; i < 4096; i += 64)
		ring[i] = 1; /* INVALID */
	unsigned char *aq = memory(gpu, 4096, 0);
	memset(aq, 0, 4096);
	*(unsigned *)(aq + 0x88) = 0x80;
	volatile long long *sig = memory(gpu, 4096, 0);
	ed.NodeId = gpu;
	CHECK(hsaKmtCreateEvent(&ed, false, false, &event));
	sig[0] = 1;
	sig[1] = 1;
	sig[2] = (long long)event->EventData.HWData2;
	*(unsigned *)&sig[3] = event->EventData.HWData3;

	r.Queue_write_ptr_aql = (HSAuint64 *)(aq + 0x38);
	r.Queue_read_ptr_aql = (HSAuint64 *)(aq + 0x80);
	CHECK(hsaKmtCreateQueue(gpu, HSA_QUEUE_COMPUTE_AQL, 100,
				HSA_QUEUE_PRIORITY_NORMAL, ring, 4096, NULL,
				&r));
	CHECK(hsaKmtGetClockCounters(gpu, &c0));
	*(HSAuint64 *)(ring + 56) = (HSAuint64)(unsigned long)sig;
	*r.Queue_write_ptr_aql = 1;
	__atomic_store_n((unsigned *)ring, 0x1503, __ATOMIC_RELEASE);
	*(volatile HSAuint64 *)r.Queue_DoorBell_aql = 0;
	CHECK(hsaKmtWaitOnEvent(event, 5000));
	printf("signal %lld\n", sig[1]);
	printf("read index %llu\n", (unsigned long long)*r.Queue_read_ptr_aql);
	CHECK(hsaKmtGetClockCounters(gpu, &c1));
	printf("clock %s\n", c1.GPUClockCounter > c0.GPUClockCounter ?
				     "runs" : "stands");
	CHECK(hsaKmtDestroyQueue(r.QueueId));
	CHECK(hsaKmtDestroyEvent(event));
	CHECK(hsaKmtUnmapMemoryToGPU(vram));
	CHECK(hsaKmtFreeMemory(vram, 1 << 20));
	CHECK(hsaKmtCloseKFD());
	printf("closed\n");
	return 0;
}
