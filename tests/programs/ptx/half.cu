/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of 16 bits, one by one and in pairs. */
#include <cuda_fp16.h>
#include <cuda_bf16.h>

template <class One, class Pair> __device__ void operations(One *p, Pair *q, float *f, int *i)
{
	p[0] = p[1] + p[2] * p[3] - p[4] / p[5];
	p[1] = hexp(p[1]) + hlog(p[2]) + hsqrt(p[3]) + hsin(p[4]) + hrcp(p[5]);
	p[2] = __hmax(p[2], __hmin_nan(p[3], p[4]));
	p[3] = __hfma_sat(p[3], p[4], p[5]);
	p[4] = hfloor(p[4]) + hrint(p[5]) + __habs(p[6]);
	p[5] = One(f[1]) + One(i[3]);
	p[6] = __shfl_xor_sync(~0u, p[6], 1);
	p[7] = __ldg(p + 7);
	q[0] = __hfma2(q[1], q[2], q[3]);
	q[1] = __hadd2_sat(q[1], h2exp2(q[2]));
	q[2] = __hmax2(__hneg2(q[2]), __heq2(q[3], q[4]));
	i[0] = __hlt(p[1], p[2]) + __hisnan(p[3]) + __hbeq2(q[1], q[2]);
	i[1] = (int)p[8] + (unsigned char)(float)p[9];
	f[0] = p[0];
	atomicAdd(p + 10, p[11]);
	atomicAdd(q + 5, q[6]);
}

__global__ void halves(__half *p, __half2 *q, float *f, int *i)
{
	operations(p, q, f, i);
	p[12] = __double2half(3.5) + __ll2half_rn(i[0]) + __ushort2half_rn(i[3]);
	i[2] = __half2int_rd(p[13]) + __half2uint_rz(p[14]) + __half2short_rn(p[15]);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
__global__ void brains(__nv_bfloat16 *p, __nv_bfloat162 *q, float *f, int *i)
{
	operations(p, q, f, i);
	p[12] = __double2bfloat16(2.5) + __int2bfloat16_rn(i[3]);
	i[2] = __bfloat162int_rz(p[13]);
}
#endif
