/* SPDX-License-Identifier: Apache-2.0 */
/* What threads do with each other: warp functions, atomics, fences, special registers. */
__global__ void exchange(int *p, unsigned *u, float *f, double *d, long long *l)
{
	int all_equal;

	p[0] = __shfl_sync(~0u, p[0], 3);
	f[0] = __shfl_up_sync(~0u, f[0], 1);
	d[0] = __shfl_down_sync(~0u, d[0], 2, 8);
	l[0] = __shfl_xor_sync(0xff, l[0], 4);
	p[1] = __all_sync(~0u, p[1]) + __any_sync(~0u, p[2]);
	u[0] = __ballot_sync(~0u, p[3]) + __match_any_sync(~0u, p[4]);
	u[1] = __match_all_sync(~0u, l[1], &all_equal) + all_equal + __activemask();
	__syncwarp();
	p[2] = __syncthreads_count(p[2]) + __syncthreads_and(p[3]) + __syncthreads_or(p[4]);
#if __CUDA_ARCH__ >= 800
	p[3] = __reduce_add_sync(~0u, p[3]);
	u[2] = __reduce_or_sync(~0u, u[2]);
#endif
}

__global__ void atomics(int *p, unsigned *u, float *f, double *d, unsigned long long *l)
{
	atomicAdd(p, 1);
	atomicAdd(f, 1.f);
	atomicAdd(d, 1.);
	atomicAdd(l, 1ull);
	atomicSub(p + 1, 2);
	f[1] = atomicExch(f + 1, 3.f);
	atomicMin(p + 2, 4);
	atomicMax(u + 2, 4);
	atomicInc(u + 3, 5);
	atomicDec(u + 3, 5);
	p[3] = atomicCAS(p + 3, 6, 7);
	p[4] = atomicCAS((unsigned short *)p + 20, 3, 4);
	atomicAnd(p + 4, 7);
	atomicOr(u + 4, 8);
	atomicXor(l + 4, 9);
	atomicAdd_system(p + 5, 1);
	atomicCAS_block(p + 6, 1, 2);
	__threadfence();
	__threadfence_block();
	__threadfence_system();
}

__global__ void machine(int *p, unsigned long long *l)
{
	unsigned sm;

	l[0] = clock64() + clock();
	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(l[1]));
	asm("mov.u32 %0, %%smid;" : "=r"(sm));
	asm volatile("{ .reg .pred p; setp.ne.b32 p, %1, 0; @p mov.b32 %0, 7; @!p mov.b32 %0, 9; }"
		     : "=r"(p[0])
		     : "r"(p[1]));
	p[1] = sm + __isGlobal(p) + __isShared(l) * 2 + __isConstant(p) + __isLocal(l);
	p[2] = __ldg(p + 3) + __ldcg(p + 4) + __ldca(p + 5) + __ldcs(p + 6) + __ldcv(p + 7);
	__stwb(p + 3, 1);
	__stcg(p + 4, 1);
	__stcs(p + 5, 1);
	__stwt(p + 6, 1);
	__nanosleep(100);
	__prof_trigger(2);
	if (p[8])
		__trap();
	if (p[9])
		__brkpt();
}
