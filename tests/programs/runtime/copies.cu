// SPDX-License-Identifier: Apache-2.0
// Pitched and three-dimensional memory, arrays, sets, copies of every shape and direction.
#include <cstring>
#include "check.h"

enum { W = 37, H = 11, D = 5 };

static void pitched()
{
	std::vector<char> in(W * H), out(W * H);
	size_t pitch;
	char *ptr;

	for (int i = 0; i < W * H; i++)
		in[i] = (char)(i * 7);
	CHECK(cudaMallocPitch(&ptr, &pitch, W, H));
	EXPECT(pitch >= W);
	CHECK(cudaMemcpy2D(ptr, pitch, in.data(), W, W, H, cudaMemcpyHostToDevice));
	CHECK(cudaMemset2D(ptr, pitch, 9, 4, 2));
	CHECK(cudaMemcpy2D(out.data(), W, ptr, pitch, W, H, cudaMemcpyDeviceToHost));
	for (int i = 0; i < W * H; i++)
		EXPECT(out[i] == (i / W < 2 && i % W < 4 ? 9 : in[i]));
	EXPECT_ERROR(cudaErrorInvalidPitchValue,
		     cudaMemcpy2D(ptr, 2, in.data(), W, W, H, cudaMemcpyHostToDevice));
	CHECK(cudaFree(ptr));
}

static void volume()
{
	std::vector<float> in(W * H * D), out(W * H * D);
	cudaExtent extent = make_cudaExtent(W * sizeof(float), H, D);
	cudaMemcpy3DParms parms = {};
	cudaPitchedPtr ptr;

	for (size_t i = 0; i < in.size(); i++)
		in[i] = (float)i;
	CHECK(cudaMalloc3D(&ptr, extent));
	parms.srcPtr = make_cudaPitchedPtr(in.data(), W * sizeof(float), W, H);
	parms.dstPtr = ptr;
	parms.extent = extent;
	parms.kind = cudaMemcpyHostToDevice;
	CHECK(cudaMemcpy3D(&parms));
	parms.srcPtr = ptr;
	parms.dstPtr = make_cudaPitchedPtr(out.data(), W * sizeof(float), W, H);
	parms.kind = cudaMemcpyDeviceToHost;
	CHECK(cudaMemcpy3D(&parms));
	EXPECT(in == out);
	CHECK(cudaFree(ptr.ptr));
}

static void arrays()
{
	cudaChannelFormatDesc channel = cudaCreateChannelDesc<float2>(), found;
	std::vector<float2> in(W * H), out(W * H);
	cudaExtent extent;
	cudaArray_t array;
	unsigned flags;

	for (int i = 0; i < W * H; i++)
		in[i] = make_float2((float)i, -(float)i);
	CHECK(cudaMallocArray(&array, &channel, W, H));
	CHECK(cudaArrayGetInfo(&found, &extent, &flags, array));
	EXPECT(found.x == 32 && found.y == 32 && found.z == 0 && extent.width == W && extent.height == H);
	CHECK(cudaMemcpy2DToArray(array, 0, 0, in.data(), W * sizeof(float2), W * sizeof(float2), H,
				  cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy2DFromArray(out.data(), W * sizeof(float2), array, 0, 0, W * sizeof(float2), H,
				    cudaMemcpyDeviceToHost));
	EXPECT(memcmp(in.data(), out.data(), in.size() * sizeof(float2)) == 0);
	CHECK(cudaFreeArray(array));
	channel.z = 16;
	EXPECT_ERROR(cudaErrorInvalidChannelDescriptor, cudaMallocArray(&array, &channel, W, H));
}

static void linear()
{
	int *a = to_device(std::vector<int>(100, 1)), *b = to_device(std::vector<int>(100, 2));
	int value = 0;

	CHECK(cudaMemcpy(b, a, 200, cudaMemcpyDeviceToDevice));
	CHECK(cudaMemcpy(&value, b + 49, 4, cudaMemcpyDefault));
	EXPECT(value == 1);
	CHECK(cudaMemcpy(&value, b + 50, 4, cudaMemcpyDefault));
	EXPECT(value == 2);
	CHECK(cudaMemset(a, 0x11, 4));
	EXPECT(to_host(a, 2)[0] == 0x11111111 && to_host(a, 2)[1] == 1);
	EXPECT_ERROR(cudaErrorInvalidMemcpyDirection, cudaMemcpy(a, b, 4, (cudaMemcpyKind)9));
	EXPECT_ERROR(cudaErrorInvalidValue, cudaMemcpy(&value, (void *)0x10, 4, cudaMemcpyDeviceToHost));
}

int main()
{
	linear();
	pitched();
	volume();
	arrays();
	printf("copies right\n");
	return 0;
}
