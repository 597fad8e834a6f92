/*
 * A HIP program as others write it; every result is compared with the host's.
 *
 *	hip		  kernels in HIP source, compiled when it runs
 *	hip triton FOLDER code objects of triton-kernels.py
 *	hip fault	  a kernel that writes where nothing is
 *
 * TAP on standard output.  The libraries are opened by name, so that it needs
 * no header of theirs.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 4096

static int count;

static int say(int good, const char *what)
{
	printf("%sok %d - %s\n", good ? "" : "not ", ++count, what);
	fflush(stdout);
	return good;
}

/* The functions used, all of which return 0 for success. */
#define HIP(X)                                                               \
	X(hipInit, unsigned)                                                 \
	X(hipGetDeviceCount, int *)                                          \
	X(hipDeviceGetName, char *, int, int)                                \
	X(hipMalloc, void **, size_t)                                        \
	X(hipMallocManaged, void **, size_t, unsigned)                       \
	X(hipHostMalloc, void **, size_t, unsigned)                          \
	X(hipFree, void *)                                                   \
	X(hipHostFree, void *)                                               \
	X(hipMemcpy, void *, const void *, size_t, int)                      \
	X(hipMemcpyAsync, void *, const void *, size_t, int, void *)         \
	X(hipMemset, void *, int, size_t)                                    \
	X(hipMemcpy2DAsync, void *, size_t, const void *, size_t, size_t,    \
	  size_t, int, void *)                                               \
	X(hipModuleLoadData, void **, const void *)                          \
	X(hipModuleGetFunction, void **, void *, const char *)               \
	X(hipModuleLaunchKernel, void *, unsigned, unsigned, unsigned,       \
	  unsigned, unsigned, unsigned, unsigned, void *, void **, void **)  \
	X(hipStreamCreate, void **)                                          \
	X(hipStreamSynchronize, void *)                                      \
	X(hipStreamDestroy, void *)                                          \
	X(hipEventCreate, void **)                                           \
	X(hipEventRecord, void *, void *)                                    \
	X(hipEventSynchronize, void *)                                       \
	X(hipEventElapsedTime, float *, void *, void *)                      \
	X(hipStreamWaitEvent, void *, void *, unsigned)                      \
	X(hipMemGetInfo, size_t *, size_t *)                                 \
	X(hipDeviceSynchronize, void)
#define RTC(X)                                                               \
	X(hiprtcCreateProgram, void **, const char *, const char *, int,     \
	  const char **, const char **)                                      \
	X(hiprtcCompileProgram, void *, int, const char **)                  \
	X(hiprtcGetProgramLogSize, void *, size_t *)                         \
	X(hiprtcGetProgramLog, void *, char *)                               \
	X(hiprtcGetCodeSize, void *, size_t *)                               \
	X(hiprtcGetCode, void *, char *)

#define DECLARE(name, ...) static int (*name)(__VA_ARGS__);
HIP(DECLARE)
RTC(DECLARE)

enum { TO_DEVICE = 1, TO_HOST = 2, DEVICE_TO_DEVICE = 3 };

static int load_libraries(void)
{
	void *hip = dlopen("libamdhip64.so.6", RTLD_NOW | RTLD_GLOBAL);
	void *rtc = dlopen("libhiprtc.so.6", RTLD_NOW | RTLD_GLOBAL);
	int good = hip && rtc;

#define RESOLVE_HIP(name, ...) \
	good = good && (*(void **)&name = dlsym(hip, #name)) != NULL;
#define RESOLVE_RTC(name, ...) \
	good = good && (*(void **)&name = dlsym(rtc, #name)) != NULL;
	HIP(RESOLVE_HIP)
	RTC(RESOLVE_RTC)
	if (!good)
		printf("# %s\n", dlerror());
	return good;
}

static const char source[] =
	"extern \"C\" __global__ void saxpy(float *y, const float *x, float a,"
	"  int n) {\n"
	"  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
	"  if (i < n) y[i] = a * x[i] + y[i];\n"
	"}\n"
	"extern \"C\" __global__ void sums(unsigned *total, const unsigned *x)"
	"{\n"
	"  __shared__ unsigned s[256];\n"
	"  s[threadIdx.x] = x[blockIdx.x * 256 + threadIdx.x];\n"
	"  __syncthreads();\n"
	"  for (int d = 128; d; d >>= 1) {\n"
	"    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];\n"
	"    __syncthreads();\n"
	"  }\n"
	"  if (!threadIdx.x) atomicAdd(total, s[0]);\n"
	"}\n"
	"extern \"C\" __global__ void maths(double *out, const float *x) {\n"
	"  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
	"  float v = x[i];\n"
	"  out[i] = sinf(v) + expf(-v) * sqrt((double)v) + log1p((double)v);\n"
	"}\n"
	"typedef _Float16 h16 __attribute__((ext_vector_type(16)));\n"
	"typedef float f8 __attribute__((ext_vector_type(8)));\n"
	"extern \"C\" __global__ void matrix(float *c, const _Float16 *a,\n"
	"  const _Float16 *b) {\n"
	"  int l = threadIdx.x & 15;\n"
	"  h16 x, y; f8 r = {};\n"
	"  for (int k = 0; k < 16; k++) { x[k] = a[l * 16 + k];\n"
	"    y[k] = b[k * 16 + l]; }\n"
	"  r = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(x, y, r);\n"
	"  for (int j = 0; j < 8; j++)\n"
	"    c[(2 * j + (threadIdx.x >> 4)) * 16 + l] = r[j];\n"
	"}\n"
	"__device__ int deep(int *v, int n) {\n"
	"  int t[64]; for (int i = 0; i < 64; i++) t[i] = v[i] ^ n;\n"
	"  int s = 0; for (int i = 0; i < n; i++) s += t[(i * 7) & 63];\n"
	"  return s;\n"
	"}\n"
	"extern \"C\" __global__ void stack(int *out, int *v) {\n"
	"  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
	"  out[i] = deep(v, i & 127);\n"
	"}\n"
	"extern \"C\" __global__ void stray(int *p) { *p = 1; }\n";

static void *compile_source(void)
{
	const char *options[] = { "--offload-arch=gfx1100" };
	void *program = NULL, *module = NULL;
	size_t n = 0;
	char *code;

	if (hiprtcCreateProgram(&program, source, "client.hip", 0, NULL, NULL))
		return NULL;
	if (hiprtcCompileProgram(program, 1, options)) {
		hiprtcGetProgramLogSize(program, &n);
		code = calloc(1, n + 1);
		hiprtcGetProgramLog(program, code);
		printf("# %s\n", code);
		return NULL;
	}
	hiprtcGetCodeSize(program, &n);
	code = malloc(n);
	hiprtcGetCode(program, code);
	return hipModuleLoadData(&module, code) ? NULL : module;
}

static int launch(void *module, const char *name, unsigned groups,
		  unsigned size, void **args, void *stream)
{
	void *f = NULL;

	return !hipModuleGetFunction(&f, module, name) &&
	       !hipModuleLaunchKernel(f, groups, 1, 1, size, 1, 1, 0, stream,
				      args, NULL);
}

static float x[N], y[N], z[N];

static void test_saxpy(void *module, void *stream)
{
	void *dx = NULL, *dy = NULL;
	float a = 0.5f;
	int n = N - 3, bad = 0;
	void *args[] = { &dy, &dx, &a, &n };

	say(!hipMalloc(&dx, sizeof(x)) && !hipMalloc(&dy, sizeof(y)),
	    "memory of the card is allocated");
	say(!hipMemcpy(dx, x, sizeof(x), TO_DEVICE) &&
		    !hipMemcpyAsync(dy, y, sizeof(y), TO_DEVICE, stream),
	    "and written");
	say(launch(module, "saxpy", N / 256, 256, args, stream),
	    "a kernel is launched");
	say(!hipMemcpyAsync(z, dy, sizeof(z), TO_HOST, stream) &&
		    !hipStreamSynchronize(stream), "its result is read");
	for (int i = 0; i < N; i++)
		bad += z[i] != (i < n ? fmaf(a, x[i], y[i]) : y[i]);
	say(!bad, "and is that of the host, bit for bit");
	say(!hipMemcpy(dx, dy, sizeof(x), DEVICE_TO_DEVICE) &&
		    !hipMemset(dy, 0x5a, sizeof(y)) &&
		    !hipMemcpy(x, dx, sizeof(x), TO_HOST) &&
		    !memcmp(x, z, sizeof(x)) &&
		    !hipMemcpy(z, dy, sizeof(z), TO_HOST) &&
		    ((unsigned char *)z)[sizeof(z) - 1] == 0x5a,
	    "copies on the card, and memset");
	hipFree(dx);
	hipFree(dy);
}

/* 20 rows of 36 bytes out of rows of 128, into rows of 64 and back. */
static void test_rectangle(void *stream)
{
	unsigned char from[32 * 128], to[20 * 100];
	void *d = NULL;
	int bad = 0;

	for (size_t i = 0; i < sizeof(from); i++)
		from[i] = (unsigned char)(i * 31 + i / 128);
	hipMalloc(&d, 20 * 64);
	memset(to, 0xee, sizeof(to));
	say(!hipMemcpy2DAsync(d, 64, from + 8, 128, 36, 20, TO_DEVICE,
			      stream) &&
		    !hipMemcpy2DAsync(to, 100, d, 64, 36, 20, TO_HOST,
				      stream) &&
		    !hipStreamSynchronize(stream),
	    "rectangles are copied");
	for (int r = 0; r < 20; r++)
		for (int i = 0; i < 100; i++)
			bad += to[r * 100 + i] !=
			       (i < 36 ? from[r * 128 + 8 + i] : 0xee);
	say(!bad, "and nothing beside them");
	hipFree(d);
}

/* Two streams, the second of which waits for the first. */
static void test_events(void *module, void *stream)
{
	unsigned *host = NULL, want = 0, zero = 0, got = 0;
	void *total = NULL, *d = NULL, *other = NULL, *e[2] = { 0 };
	void *args[] = { &total, &d };
	float ms = -1;

	hipStreamCreate(&other);
	hipEventCreate(&e[0]);
	hipEventCreate(&e[1]);
	say(!hipHostMalloc((void **)&host, N * 4, 0), "pinned memory");
	for (unsigned i = 0; i < N; i++)
		want += host[i] = i * 2654435761u;
	hipMalloc(&total, 4);
	hipMalloc(&d, N * 4);
	say(!hipMemcpyAsync(total, &zero, 4, TO_DEVICE, stream) &&
		    !hipEventRecord(e[0], stream) &&
		    !hipMemcpyAsync(d, host, N * 4, TO_DEVICE, stream) &&
		    !hipEventRecord(e[1], stream) &&
		    !hipStreamWaitEvent(other, e[1], 0) &&
		    launch(module, "sums", N / 256, 256, args, other) &&
		    !hipMemcpyAsync(&got, total, 4, TO_HOST, other) &&
		    !hipStreamSynchronize(other),
	    "a stream waits for an event of another");
	if (!say(got == want, "a sum with LDS, barriers and atomics"))
		printf("# got %u, wanted %u\n", got, want);
	say(!hipEventSynchronize(e[1]) &&
		    !hipEventElapsedTime(&ms, e[0], e[1]) && ms >= 0 &&
		    ms < 60000, "events have times");
	hipStreamDestroy(other);
	hipFree(d);
	hipFree(total);
	hipHostFree(host);
}

static void test_maths(void *module, void *stream)
{
	static double out[N];
	void *d = NULL, *in = NULL;
	void *args[] = { &d, &in };
	double worst = 0;

	for (int i = 0; i < N; i++)
		x[i] = (float)i / 97;
	hipMalloc(&d, sizeof(out));
	hipMalloc(&in, sizeof(x));
	hipMemcpy(in, x, sizeof(x), TO_DEVICE);
	say(launch(module, "maths", N / 128, 128, args, stream) &&
		    !hipStreamSynchronize(stream) &&
		    !hipMemcpy(out, d, sizeof(out), TO_HOST),
	    "functions of the device library");
	for (int i = 0; i < N; i++) {
		const double v = x[i], want = sin(v) + exp(-v) * sqrt(v) +
					      log1p(v);

		if (!(fabs(out[i] - want) <= worst))
			worst = fabs(out[i] - want);
	}
	if (!say(worst < 1e-6, "are within 1e-6 of the host's"))
		printf("# worst %g\n", worst);
	hipFree(d);
	hipFree(in);
}

static void test_matrix(void *module, void *stream)
{
	_Float16 a[256], b[256];
	float c[256];
	void *da = NULL, *db = NULL, *dc = NULL;
	void *args[] = { &dc, &da, &db };
	int bad = 0;

	for (int i = 0; i < 256; i++) {
		a[i] = (_Float16)((i * 7) % 13 - 6);
		b[i] = (_Float16)((i * 5) % 11 - 5);
	}
	hipMalloc(&da, sizeof(a));
	hipMalloc(&db, sizeof(b));
	hipMalloc(&dc, sizeof(c));
	hipMemcpy(da, a, sizeof(a), TO_DEVICE);
	hipMemcpy(db, b, sizeof(b), TO_DEVICE);
	say(launch(module, "matrix", 1, 32, args, stream) &&
		    !hipStreamSynchronize(stream) &&
		    !hipMemcpy(c, dc, sizeof(c), TO_HOST), "WMMA");
	for (int i = 0; i < 16; i++)
		for (int j = 0; j < 16; j++) {
			float want = 0;

			for (int k = 0; k < 16; k++)
				want += (float)a[i * 16 + k] *
					(float)b[k * 16 + j];
			bad += c[i * 16 + j] != want;
		}
	say(!bad, "is the product of small integers, exactly");
	hipFree(da);
	hipFree(db);
	hipFree(dc);
}

static int deep(const int *v, int n)
{
	int s = 0;

	for (int i = 0; i < n; i++)
		s += v[(i * 7) & 63] ^ n;
	return s;
}

/* Scratch memory, and memory that both sides see. */
static void test_stack(void *module, void *stream)
{
	int *out = NULL, *v = NULL, bad = 0;
	void *args[] = { &out, &v };
	size_t before = 0, after = 0, total = 0;

	hipMemGetInfo(&before, &total);
	say(!hipMallocManaged((void **)&out, N * sizeof(int), 1) &&
		    !hipHostMalloc((void **)&v, 64 * sizeof(int), 0),
	    "managed memory");
	for (int i = 0; i < 64; i++)
		v[i] = i * 1000003;
	say(launch(module, "stack", N / 64, 64, args, stream) &&
		    !hipDeviceSynchronize(), "a kernel with a stack");
	for (int i = 0; out && i < N; i++)
		bad += out[i] != deep(v, i & 127);
	say(out && !bad, "writes to it what the host computes");
	hipFree(out);
	hipHostFree(v);
	hipMemGetInfo(&after, &total);
	say(before <= total && after <= total && total > 1u << 30,
	    "the card tells its memory");
}

/* ---- kernels that Triton compiled: four waves a workgroup ---- */

#define ROWS 8
#define COLUMNS 500
#define SIDE 64

static void *load_kernel(const char *folder, const char *name)
{
	static char code[1 << 16];
	char path[4096];
	void *module = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.hsaco", folder, name);
	f = fopen(path, "rb");
	if (!f || !fread(code, 1, sizeof(code), f) ||
	    hipModuleLoadData(&module, code))
		module = NULL;
	if (f)
		fclose(f);
	say(module != NULL, path);
	return module;
}

/* It has two arguments more than the source says, for scratch memory. */
static int launch_triton(void *module, const char *name, unsigned nx,
			 unsigned ny, unsigned shared, void **args)
{
	void *f = NULL;

	return !hipModuleGetFunction(&f, module, name) &&
	       !hipModuleLaunchKernel(f, nx, ny, 1, 128, 1, 1, shared, NULL,
				      args, NULL) &&
	       !hipDeviceSynchronize();
}

static void test_triton(const char *folder)
{
	static float out[N], want[SIDE][SIDE];
	static _Float16 a[SIDE][SIDE], b[SIDE][SIDE];
	void *d[3] = { 0 }, *none = NULL;
	int n = N - 5, columns = COLUMNS, side = SIDE, bad = 0;
	void *add[] = { &d[0], &d[1], &d[2], &n, &none, &none };
	void *softmax[] = { &d[0], &d[2], &columns, &none, &none };
	void *matmul[] = { &d[0], &d[1], &d[2], &side, &none, &none };
	double worst = 0;

	for (int i = 0; i < 3; i++)
		hipMalloc(&d[i], N * sizeof(float));
	hipMemcpy(d[0], x, sizeof(x), TO_DEVICE);
	hipMemcpy(d[1], y, sizeof(y), TO_DEVICE);
	hipMemset(d[2], 0, sizeof(out));
	say(launch_triton(load_kernel(folder, "add"), "add", N / 256, 1, 0,
			  add), "an addition");
	hipMemcpy(out, d[2], sizeof(out), TO_HOST);
	for (int i = 0; i < N; i++)
		bad += out[i] != (i < n ? x[i] + y[i] : 0);
	say(!bad, "is the host's, bit for bit, up to its mask");
	say(launch_triton(load_kernel(folder, "softmax"), "softmax", ROWS, 1,
			  16, softmax), "a softmax");
	hipMemcpy(out, d[2], sizeof(out), TO_HOST);
	for (int r = 0; r < ROWS; r++) {
		const float *v = x + r * COLUMNS;
		double sum = 0;

		for (int i = 0; i < COLUMNS; i++)
			sum += exp(v[i]);
		for (int i = 0; i < COLUMNS; i++)
			worst = fmax(worst, fabs(out[r * COLUMNS + i] -
						 exp(v[i]) / sum));
	}
	if (!say(worst < 1e-7, "is within 1e-7 of the host's"))
		printf("# worst %g\n", worst);
	for (int i = 0; i < SIDE * SIDE; i++) {
		(&a[0][0])[i] = (_Float16)((i * 7) % 13 - 6);
		(&b[0][0])[i] = (_Float16)((i * 5) % 11 - 5);
	}
	hipMemcpy(d[0], a, sizeof(a), TO_DEVICE);
	hipMemcpy(d[1], b, sizeof(b), TO_DEVICE);
	say(launch_triton(load_kernel(folder, "matmul"), "matmul", SIDE / 32,
			  SIDE / 32, 4096, matmul), "a product by tl.dot");
	hipMemcpy(out, d[2], sizeof(out), TO_HOST);
	for (int i = 0; i < SIDE; i++)
		for (int j = 0; j < SIDE; j++) {
			for (int k = 0; k < SIDE; k++)
				want[i][j] += (float)a[i][k] * (float)b[k][j];
			bad += out[i * SIDE + j] != want[i][j];
		}
	say(!bad, "is that of small integers, exactly");
	for (int i = 0; i < 3; i++)
		hipFree(d[i]);
}

int main(int argc, char **argv)
{
	void *module, *stream = NULL;
	char name[256] = "";
	int n = 0;

	if (!say(load_libraries(), "libraries of HIP are loaded"))
		return 1;
	say(!hipInit(0) && !hipGetDeviceCount(&n) && n == 1, "one device");
	if (hipDeviceGetName(name, sizeof(name), 0))
		strcpy(name, "?");
	printf("# %s\n", name);
	for (int i = 0; i < N; i++) {
		x[i] = (float)sin(i);
		y[i] = (float)cos(i * 3);
	}
	if (argc > 2 && !strcmp(argv[1], "triton")) {
		test_triton(argv[2]);
		printf("1..%d\n", count);
		return 0;
	}
	module = compile_source();
	if (!say(module != NULL, "HIP source is compiled and loaded"))
		return 1;
	say(!hipStreamCreate(&stream), "a stream");
	if (argc > 1 && !strcmp(argv[1], "fault")) {
		int *p = (int *)(uintptr_t)0x123456789000;
		void *args[] = { &p };

		launch(module, "stray", 1, 1, args, stream);
		hipStreamSynchronize(stream);
		return 0;
	}
	test_saxpy(module, stream);
	test_rectangle(stream);
	test_events(module, stream);
	test_maths(module, stream);
	test_matrix(module, stream);
	test_stack(module, stream);
	say(!hipStreamDestroy(stream), "the stream ends");
	printf("1..%d\n", count);
	return 0;
}
