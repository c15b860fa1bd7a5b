/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host has to do with a device: pinned, mapped, registered and managed memory, functions that
 * streams and graphs call, copies in two and three dimensions, what an address is: hosts PTX-FILE
 */
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>
#include "program.h"

enum { N = 5000 };

static CUfunction scale;

static void launch_scale(CUdeviceptr x, float by, int n, CUstream stream)
{
	CHECK(cuLaunchKernel(scale, (n + 127) / 128, 1, 1, 128, 1, 1, 0, stream,
			     (void *[]){ &x, &by, &n }, NULL));
}

/* A kernel writes memory that the program reads without a copy. */
static void mapped(void)
{
	CUdeviceptr device;
	unsigned flags;
	float *x;

	CHECK(cuMemHostAlloc((void **)&x, N * sizeof(*x), CU_MEMHOSTALLOC_DEVICEMAP));
	for (int i = 0; i < N; i++)
		x[i] = (float)i;
	CHECK(cuMemHostGetDevicePointer(&device, x, 0));
	launch_scale(device, 2, N, NULL);
	CHECK(cuCtxSynchronize());
	for (int i = 0; i < N; i++)
		EXPECT(x[i] == 2 * (float)i);
	CHECK(cuMemHostGetFlags(&flags, x));
	EXPECT(flags & CU_MEMHOSTALLOC_DEVICEMAP);
	CHECK(cuMemFreeHost(x));
}

/* Two ranges that have a page in common, registered at once; copies from and to them. */
static void registered(void)
{
	static float both[2 * N];
	float *x = both, *y = both + N;
	CUdeviceptr dx, dy;

	for (int i = 0; i < 2 * N; i++)
		both[i] = (float)(noise(i) % 1000);
	CHECK(cuMemHostRegister(x, N * sizeof(*x), CU_MEMHOSTREGISTER_DEVICEMAP));
	CHECK(cuMemHostRegister(y, N * sizeof(*y), CU_MEMHOSTREGISTER_DEVICEMAP));
	EXPECT(cuMemHostRegister(x, 16, 0) == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	CHECK(cuMemHostGetDevicePointer(&dx, x, 0));
	CHECK(cuMemHostGetDevicePointer(&dy, y, 0));
	launch_scale(dx, 3, N, NULL);
	launch_scale(dy, 5, N, NULL);
	CHECK(cuCtxSynchronize());
	for (int i = 0; i < N; i++) {
		EXPECT(x[i] == 3 * (float)(noise(i) % 1000));
		EXPECT(y[i] == 5 * (float)(noise(i + N) % 1000));
	}
	CHECK(cuMemHostUnregister(x));
	EXPECT(cuMemHostUnregister(x) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	y[0] = 1;
	launch_scale(dy, 7, 1, NULL);
	CHECK(cuCtxSynchronize());
	EXPECT(y[0] == 7);
	CHECK(cuMemHostUnregister(y));
}

static void managed(void)
{
	CUdeviceptr ptr;
	float *x;

	CHECK(cuMemAllocManaged(&ptr, N * sizeof(*x), CU_MEM_ATTACH_GLOBAL));
	x = (float *)ptr;
	for (int i = 0; i < N; i++)
		x[i] = (float)i;
	CHECK(cuStreamAttachMemAsync(NULL, ptr, 0, CU_MEM_ATTACH_GLOBAL));
	launch_scale(ptr, 4, N, NULL);
	CHECK(cuCtxSynchronize());
	for (int i = 0; i < N; i++)
		EXPECT(x[i] == 4 * (float)i);
	CHECK(cuMemFree(ptr));
}

/* Order of what two streams call, and that a stream stands still meanwhile. */
static char calls[64];
static int n_calls;

static void called(void *arg)
{
	usleep(2000);
	calls[n_calls++] = *(const char *)arg;
}

static void called_back(CUstream stream, CUresult status, void *arg)
{
	calls[n_calls++] = status == CUDA_SUCCESS ? *(const char *)arg : '!';
}

static void functions(void)
{
	CUdeviceptr ptr = device_zeros(N * sizeof(float));
	static float x[N];
	CUstream stream;

	for (int i = 0; i < N; i++)
		x[i] = 1;
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemcpyHtoDAsync(ptr, x, sizeof(x), stream));
	for (int i = 0; i < 4; i++) {
		launch_scale(ptr, 2, N, stream);
		CHECK(cuLaunchHostFunc(stream, called, (void *)&"abcd"[i]));
	}
	CHECK(cuStreamAddCallback(stream, called_back, (void *)"e", 0));
	CHECK(cuStreamSynchronize(stream));
	calls[n_calls] = '\0';
	EXPECT(strcmp(calls, "abcde") == 0);
	CHECK(cuMemcpyDtoH(x, ptr, sizeof(x)));
	EXPECT(x[0] == 16 && x[N - 1] == 16);
	CHECK(cuStreamDestroy(stream));
	CHECK(cuMemFree(ptr));
}

/* A graph that calls a function and copies memory of the stack's and of the program's. */
static void count(void *arg)
{
	++*(int *)arg;
}

static void graph(void)
{
	static float out[N];
	int n = 0, width = N;
	CUdeviceptr ptr = device_zeros(sizeof(out));
	CUgraphExec exec;
	CUstream stream;
	CUgraph recorded;
	float by = 2;

	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemsetD32(ptr, 0x3f800000, N)); /* 1.0f */
	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK(cuLaunchKernel(scale, (N + 127) / 128, 1, 1, 128, 1, 1, 0, stream,
			     (void *[]){ &ptr, &by, &width }, NULL));
	CHECK(cuLaunchHostFunc(stream, count, &n));
	CHECK(cuMemcpyDtoHAsync(out, ptr, sizeof(out), stream));
	CHECK(cuStreamEndCapture(stream, &recorded));
	CHECK(cuGraphInstantiate(&exec, recorded, 0));
	for (int i = 0; i < 3; i++)
		CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuStreamSynchronize(stream));
	EXPECT(n == 3);
	EXPECT(out[0] == 8 && out[N - 1] == 8);
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(recorded));
	CHECK(cuStreamDestroy(stream));
	CHECK(cuMemFree(ptr));
}

/* A rectangle out of a picture and back into the middle of another. */
static void rectangles(void)
{
	enum { WIDTH = 1000, HEIGHT = 700, W = 333, H = 222 };
	static unsigned char from[HEIGHT][WIDTH], to[HEIGHT][WIDTH];
	size_t pitch;
	CUdeviceptr ptr;
	CUDA_MEMCPY2D copy = { .srcXInBytes = 10,
			       .srcY = 20,
			       .srcMemoryType = CU_MEMORYTYPE_HOST,
			       .srcHost = from,
			       .srcPitch = WIDTH,
			       .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			       .WidthInBytes = W,
			       .Height = H };

	for (int i = 0; i < WIDTH * HEIGHT; i++)
		from[i / WIDTH][i % WIDTH] = (unsigned char)noise(i);
	CHECK(cuMemAllocPitch(&ptr, &pitch, W, H, 4));
	copy.dstDevice = ptr;
	copy.dstPitch = pitch;
	CHECK(cuMemcpy2D(&copy));
	copy = (CUDA_MEMCPY2D){ .srcMemoryType = CU_MEMORYTYPE_DEVICE,
				.srcDevice = ptr,
				.srcPitch = pitch,
				.dstXInBytes = 300,
				.dstY = 400,
				.dstMemoryType = CU_MEMORYTYPE_HOST,
				.dstHost = to,
				.dstPitch = WIDTH,
				.WidthInBytes = W,
				.Height = H };
	CHECK(cuMemcpy2D(&copy));
	for (int y = 0; y < HEIGHT; y++)
		for (int x = 0; x < WIDTH; x++) {
			int inside = y >= 400 && y < 400 + H && x >= 300 && x < 300 + W;

			EXPECT(to[y][x] == (inside ? from[y - 400 + 20][x - 300 + 10] : 0));
		}
	CHECK(cuMemFree(ptr));
}

/* Copies of which the addresses tell the direction, some of them of many pieces. */
static void anywhere(void)
{
	const size_t size = 5000003;
	unsigned char *a = malloc(size), *b = calloc(1, size);
	CUdeviceptr p, q;

	EXPECT(a && b);
	for (size_t i = 0; i < size; i++)
		a[i] = (unsigned char)noise((unsigned)i);
	CHECK(cuMemAlloc(&p, size));
	CHECK(cuMemAlloc(&q, size));
	CHECK(cuMemcpy(p, (CUdeviceptr)a, size));
	CHECK(cuMemcpy(q, p, size));
	CHECK(cuMemcpy((CUdeviceptr)b, q, size));
	EXPECT(memcmp(a, b, size) == 0);
	CHECK(cuMemFree(p));
	CHECK(cuMemFree(q));
	free(a);
	free(b);
}

/* A copy that waits for its stream, which waits for what another thread does later. */
static CUcontext context;
static CUdeviceptr flag;

static void *release(void *arg)
{
	CUstream stream;

	usleep(20000);
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamWriteValue32(stream, flag, 1, 0));
	CHECK(cuStreamSynchronize(stream));
	CHECK(cuStreamDestroy(stream));
	return NULL;
}

static void waits(void)
{
	static float x[N], y[N];
	CUdeviceptr ptr = device_zeros(sizeof(x));
	pthread_t thread;
	CUstream stream;

	for (int i = 0; i < N; i++)
		x[i] = (float)i;
	flag = device_zeros(sizeof(unsigned));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	EXPECT(pthread_create(&thread, NULL, release, NULL) == 0);
	CHECK(cuStreamWaitValue32(stream, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
	CHECK(cuMemcpyHtoDAsync(ptr, x, 4 * 1000, stream));
	CHECK(cuMemcpyHtoDAsync(ptr, x, sizeof(x), stream));
	CHECK(cuStreamSynchronize(stream));
	pthread_join(thread, NULL);
	CHECK(cuMemcpyDtoH(y, ptr, sizeof(y)));
	EXPECT(memcmp(x, y, sizeof(x)) == 0);
	CHECK(cuStreamDestroy(stream));
	CHECK(cuMemFree(ptr));
	CHECK(cuMemFree(flag));
}

static void addresses(void)
{
	CUpointer_attribute names[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
					CU_POINTER_ATTRIBUTE_RANGE_SIZE,
					CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL };
	CUdeviceptr ptr = device_zeros(4096);
	size_t range = 1;
	unsigned type = 1;
	int ordinal = 1;
	void *pinned;

	CHECK(cuPointerGetAttributes(3, names, (void *[]){ &type, &range, &ordinal }, ptr + 100));
	EXPECT(type == CU_MEMORYTYPE_DEVICE && range == 4096 && ordinal == 0);
	CHECK(cuPointerGetAttributes(3, names, (void *[]){ &type, &range, &ordinal },
				     (CUdeviceptr)&type));
	EXPECT(type == 0 && range == 0 && ordinal == -2);
	EXPECT(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)&type) ==
	       CUDA_ERROR_INVALID_VALUE);
	CHECK(cuMemAllocHost(&pinned, 4096));
	CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)pinned));
	EXPECT(type == CU_MEMORYTYPE_HOST);
	CHECK(cuMemFreeHost(pinned));
	CHECK(cuMemFree(ptr));
}

int main(int argc, char **argv)
{
	CUmodule module;

	CHECK(cuInit(0));
	context = context_on(0);
	module = module_of(argv[1]);
	scale = function_of(module, "scale");
	mapped();
	registered();
	managed();
	functions();
	graph();
	rectangles();
	anywhere();
	addresses();
	waits();
	printf("host memory and functions right\n");
	return 0;
}
