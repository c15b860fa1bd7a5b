/* SPDX-License-Identifier: Apache-2.0 */
/* Plain C for LLVM's own back end: calls, tables, vectors, atomics, address spaces. */
typedef float float4 __attribute__((ext_vector_type(4)));
#define GLOBAL	 __attribute__((address_space(1)))
#define SHARED	 __attribute__((address_space(3)))
#define CONSTANT __attribute__((address_space(4)))

struct record {
	int a;
	double b;
	char c[5];
};

static SHARED int tile[64];
CONSTANT const float coefficients[4] = { 1, 2, 3, 4 };
GLOBAL int counter = 5;
GLOBAL int *pointer = &counter;

__attribute__((noinline)) struct record changed(struct record r, int by)
{
	r.a += by;
	r.c[by & 3] = 1;
	return r;
}

__attribute__((noinline)) int fibonacci(int n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

int (*GLOBAL functions[])(int) = { fibonacci, fibonacci };

int choose(int n)
{
	switch (n) {
	case 0:
		return 10;
	case 1:
		return 21;
	case 2:
		return 32;
	case 3:
		return 48;
	case 4:
		return 57;
	}
	return functions[n & 1](n);
}

void work(GLOBAL int *o, GLOBAL float *f, int n)
{
	int at = __nvvm_read_ptx_sreg_tid_x() +
		 __nvvm_read_ptx_sreg_ctaid_x() * __nvvm_read_ptx_sreg_ntid_x();
	struct record r = { n, 2.0, { 1 } };
	double d = f[2];
	__int128 wide = n;
	int local[16];

	tile[at & 63] = o[at];
	__syncthreads();
	o[at] = tile[(at + 1) & 63] + choose(n) + counter + *pointer;
	f[at] = f[at] * 2 + coefficients[n & 3];
	o[1] = changed(r, n).a;
	((GLOBAL float4 *)f)[3] = ((GLOBAL float4 *)f)[4].wzyx;
	for (int i = 0; i < 16; i++)
		local[i] = o[i];
	o[2] = local[n & 15];
	__atomic_fetch_add(o, 1, __ATOMIC_SEQ_CST);
	o[3] = (int)(wide * wide >> 70) + (int)((long)d / (n + 3) % 7);
	o[4] = __builtin_popcount(n) + __builtin_clz(n | 1) + __builtin_bitreverse32(n);
	f[5] = __builtin_fmaxf(f[1], f[2]) + __builtin_floorf(f[3]) +
	       __builtin_copysignf(f[7], f[8]);
	o[5] = (int)f[9] + (int)(unsigned)f[10];
	f[6] = (float)(long)o[14] + (float)(unsigned)o[13];
	__nvvm_membar_gl();
}
