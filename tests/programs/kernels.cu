// SPDX-License-Identifier: Apache-2.0
// The kernels of the programs in this folder. Compiled to PTX by nvcc (with and without
// -G), by NVRTC and by clang; only clang needs the declarations of clang-device.h.
#if defined(__clang__)
#include "clang-device.h"
#endif

#define TILE 16
#define FULL 0xffffffffu

extern "C" __global__ void vector_add(const float *a, const float *b, float *sum, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		sum[i] = a[i] + b[i];
}

extern "C" __global__ void scale(float *x, float by, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		x[i] *= by;
}

// One thread an element, one tile of each operand in shared memory; n is a multiple of TILE.
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int n)
{
	__shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
	int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
	float sum = 0;

	for (int t = 0; t < n / TILE; t++) {
		tile_a[threadIdx.y][threadIdx.x] = a[row * n + t * TILE + threadIdx.x];
		tile_b[threadIdx.y][threadIdx.x] = b[(t * TILE + threadIdx.y) * n + col];
		__syncthreads();
		for (int k = 0; k < TILE; k++)
			sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
		__syncthreads();
	}
	c[row * n + col] = sum;
}

// Every warp adds its 32 values by shuffles, its first lane adds the sum to the total.
extern "C" __global__ void reduce(const int *x, int *total, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	int v = i < n ? x[i] : 0;

	for (int step = 16; step > 0; step /= 2)
		v += __shfl_down_sync(FULL, v, step);
	if (threadIdx.x % 32 == 0)
		atomicAdd(total, v);
}

extern "C" __global__ void histogram(const unsigned char *x, unsigned int *bins, int n)
{
	__shared__ unsigned int local[256];
	int i;

	for (i = threadIdx.x; i < 256; i += blockDim.x)
		local[i] = 0;
	__syncthreads();
	for (i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		atomicAdd(&local[x[i]], 1u);
	__syncthreads();
	for (i = threadIdx.x; i < 256; i += blockDim.x)
		atomicAdd(&bins[i], local[i]);
}

// The inclusive prefix sum of one block's values in dynamic shared memory (Hillis, Steele).
extern "C" __global__ void scan(const int *x, int *sums, int n)
{
	extern __shared__ int s[];
	int i = threadIdx.x, v;

	s[i] = i < n ? x[i] : 0;
	__syncthreads();
	for (int d = 1; d < (int)blockDim.x; d *= 2) {
		v = i >= d ? s[i - d] : 0;
		__syncthreads();
		s[i] += v;
		__syncthreads();
	}
	if (i < n)
		sums[i] = s[i];
}

// One step of n bodies in double; p holds x, y, z and mass of each.
extern "C" __global__ void nbody(const double *p, double *force, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	double fx = 0, fy = 0, fz = 0;

	if (i >= n)
		return;
	for (int j = 0; j < n; j++) {
		double dx = p[4 * j] - p[4 * i], dy = p[4 * j + 1] - p[4 * i + 1];
		double dz = p[4 * j + 2] - p[4 * i + 2];
		double r2 = dx * dx + dy * dy + dz * dz + 1e-3;
		double w = p[4 * j + 3] / (r2 * sqrt(r2));

		fx += w * dx;
		fy += w * dy;
		fz += w * dz;
	}
	force[3 * i] = fx;
	force[3 * i + 1] = fy;
	force[3 * i + 2] = fz;
}
