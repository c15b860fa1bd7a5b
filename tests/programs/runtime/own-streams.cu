// SPDX-License-Identifier: Apache-2.0
// Compiled with -default-stream per-thread: calls without a stream wait for the thread's own
// and for no other; copies between devices and arrays in every form.
#include "check.h"

__device__ int variable[4];
__device__ volatile int go;

__global__ void wait_for_go()
{
	while (!go)
		;
}

__global__ void set_go()
{
	go = 1;
}

static void calls_do_not_wait_for_others(int *x)
{
	int four[4] = { 1, 2, 3, 4 }, back[4] = {};
	cudaStream_t other;

	// The legacy stream would wait for this kernel, which waits for what comes after.
	CHECK(cudaStreamCreate(&other));
	wait_for_go<<<1, 1, 0, other>>>();
	CHECK(cudaMemset(x, 1, 64));
	CHECK(cudaMemcpy(back, x, sizeof(back), cudaMemcpyDeviceToHost));
	EXPECT(back[3] == 0x01010101);
	CHECK(cudaMemset2D(x, 32, 2, 4, 2));
	CHECK(cudaMemcpy2D(back, 4, x, 32, 4, 2, cudaMemcpyDeviceToHost));
	EXPECT(back[0] == 0x02020202 && back[1] == 0x02020202);
	CHECK(cudaMemset3D(make_cudaPitchedPtr(x, 8, 8, 2), 3, make_cudaExtent(4, 1, 2)));
	CHECK(cudaMemcpy(back, x, sizeof(back), cudaMemcpyDeviceToHost));
	EXPECT(back[0] == 0x03030303 && back[1] == 0x01010101);
	CHECK(cudaMemcpyToSymbol(variable, four, sizeof(four)));
	CHECK(cudaMemcpyFromSymbol(back, variable, 8, 8));
	EXPECT(back[0] == 3 && back[1] == 4);
	EXPECT(cudaStreamQuery(other) == cudaErrorNotReady);
	set_go<<<1, 1>>>();
	CHECK(cudaStreamSynchronize(other));
}

// From one with rows of 8 into one with rows of 12.
static void between_arrays(cudaArray_t array, const std::vector<int> &from)
{
	cudaChannelFormatDesc ints = cudaCreateChannelDesc<int>();
	std::vector<int> back(12 * 4), zeros(12 * 4);
	cudaArray_t wide;

	CHECK(cudaMallocArray(&wide, &ints, 12, 4));
	CHECK(cudaMemcpy2DToArray(wide, 0, 0, zeros.data(), 48, 48, 4, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy2DArrayToArray(wide, 16, 1, array, 8, 2, 12, 2));
	CHECK(cudaMemcpy2DFromArray(back.data(), 48, wide, 0, 0, 48, 4, cudaMemcpyDeviceToHost));
	for (int y = 0; y < 4; y++)
		for (int x = 0; x < 12; x++)
			EXPECT(back[y * 12 + x] ==
			       (y >= 1 && y < 3 && x >= 4 && x < 7 ? from[(y + 1) * 8 + x - 2] : 0));
	// 20 elements from the third of the second row on.
	CHECK(cudaMemcpyArrayToArray(wide, 40, 0, array, 8, 1, 80));
	CHECK(cudaMemcpy2DFromArray(back.data(), 48, wide, 0, 0, 48, 4, cudaMemcpyDeviceToHost));
	for (int i = 0; i < 20; i++)
		EXPECT(back[10 + i] == from[10 + i]);
	EXPECT(back[9] == 0);
	EXPECT_ERROR(cudaErrorInvalidValue, cudaMemcpyArrayToArray(wide, 48, 0, array, 0, 0, 4));
	EXPECT_ERROR(cudaErrorInvalidValue, cudaMemcpyArrayToArray(wide, 0, 0, array, 0, 3, 36));
	CHECK(cudaFreeArray(wide));
}

static void arrays()
{
	cudaChannelFormatDesc ints = cudaCreateChannelDesc<int>();
	std::vector<int> from(8 * 4), back(8 * 4);
	cudaArray_t array;

	for (int i = 0; i < 32; i++)
		from[i] = i * i;
	CHECK(cudaMallocArray(&array, &ints, 8, 4));
	CHECK(cudaMemcpy2DToArray(array, 0, 0, from.data(), 32, 32, 4, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy2DFromArray(back.data(), 32, array, 0, 0, 32, 4, cudaMemcpyDeviceToHost));
	EXPECT(back == from);
	// The linear forms go on in the next row.
	CHECK(cudaMemcpyToArray(array, 16, 1, from.data(), 40, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpyFromArray(back.data(), array, 16, 1, 40, cudaMemcpyDeviceToHost));
	for (int i = 0; i < 10; i++)
		EXPECT(back[i] == from[i]);
	CHECK(cudaMemcpy2DToArray(array, 0, 0, from.data(), 32, 32, 4, cudaMemcpyHostToDevice));
	between_arrays(array, from);
	CHECK(cudaFreeArray(array));
}

static void between_devices(int *x)
{
	cudaMemcpy3DPeerParms parms = {};
	int *y, n_devices;

	CHECK(cudaGetDeviceCount(&n_devices));
	EXPECT(n_devices == 2);
	CHECK(cudaMemset(x, 5, 64));
	CHECK(cudaSetDevice(1));
	CHECK(cudaMalloc(&y, 64));
	CHECK(cudaMemset(y, 0, 64));
	parms.srcPtr = make_cudaPitchedPtr(x, 16, 16, 2);
	parms.dstPtr = make_cudaPitchedPtr(y, 32, 32, 2);
	parms.dstDevice = 1;
	parms.extent = make_cudaExtent(16, 2, 1);
	CHECK(cudaMemcpy3DPeer(&parms));
	EXPECT(to_host(y, 16)[3] == 0x05050505 && to_host(y, 16)[4] == 0);
	EXPECT(to_host(y, 16)[8] == 0x05050505);
	parms.dstDevice = 2;
	EXPECT_ERROR(cudaErrorInvalidDevice, cudaMemcpy3DPeer(&parms));
}

int main()
{
	int *x = to_device(std::vector<int>(16, 0));

	calls_do_not_wait_for_others(x);
	arrays();
	between_devices(x);
	printf("own streams right\n");
	return 0;
}
