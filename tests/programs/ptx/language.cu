/* SPDX-License-Identifier: Apache-2.0 */
/* C++ on a device: virtual functions, recursion, tables of pointers, printf, malloc. */
#include <assert.h>
#include <stdio.h>

struct base {
	__device__ virtual int value(int x)
	{
		return x;
	}
};

struct derived : base {
	int more;

	__device__ int value(int x) override
	{
		return x + more;
	}
};

struct large {
	int items[20];
};

typedef int function(int);

__device__ int variable = 5;
__device__ int *pointer = &variable + 1;
__device__ __managed__ int managed = 3;
__constant__ char text[] = "text";
__device__ const char *strings[] = { "one", "two" };

__device__ __noinline__ int fibonacci(int n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ __noinline__ large changed(large l, int at)
{
	l.items[at]++;
	return l;
}

__device__ function *functions[] = { fibonacci, fibonacci };

__global__ void objects(base *b, int *o, int which)
{
	derived d;
	base *chosen = which ? b : &d;
	int local[64];

	d.more = o[1];
	o[0] = chosen->value(3);
	printf("%s %d %f\n", strings[which], o[0], 2.5);
	assert(o[0] < 10);
	for (int i = 0; i < 64; i++)
		local[i] = i * which;
	o[1] = *pointer + managed + text[which] + local[o[2] & 63];
}

__global__ void __launch_bounds__(256, 2) calls(int *o, large l, int which)
{
	char *bytes = (char *)malloc(20);
	char *stack = (char *)alloca(o[3]);

	o[0] = fibonacci(o[1]) + functions[which](5);
	l = changed(l, o[2]);
	stack[o[4]] = (char)l.items[o[5]];
	bytes[0] = stack[o[6]];
	o[3] = bytes[o[7] & 1];
	free(bytes);
	switch (which) {
	case 0:
		o[8] = 1;
		break;
	case 1:
		o[9] = 5;
		break;
	case 2:
		o[10] = 9;
		break;
	case 3:
		o[11] = 2;
		break;
	case 4:
		o[12] = 4;
		break;
	case 5:
		o[13] = 8;
		break;
	}
}

template <class T> __global__ void sum(const T *in, T *out, int n)
{
	__shared__ T part[256];
	extern __shared__ char dynamic[];
	int at = blockIdx.x * blockDim.x + threadIdx.x;

	part[threadIdx.x] = at < n ? in[at] : T(0);
	__syncthreads();
	for (int half = 128; half > 0; half /= 2) {
		if (threadIdx.x < half)
			part[threadIdx.x] += part[threadIdx.x + half];
		__syncthreads();
	}
	if (threadIdx.x == 0)
		atomicAdd(out, part[0]);
	dynamic[threadIdx.x] = 1;
}

template __global__ void sum<int>(const int *, int *, int);
template __global__ void sum<float>(const float *, float *, int);
template __global__ void sum<double>(const double *, double *, int);
