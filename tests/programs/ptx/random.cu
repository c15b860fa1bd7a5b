/* SPDX-License-Identifier: Apache-2.0 */
/* cuRAND's device functions: much integer arithmetic, large tables. */
#include <curand_kernel.h>

__global__ void draw(curandState *s, curandStatePhilox4_32_10_t *p, curandStateMRG32k3a *m,
		     float *f, double *d)
{
	curand_init(1234, threadIdx.x, 0, s);
	f[0] = curand_uniform(s) + curand_normal(s) + curand_log_normal(s, 1, 2);
	d[0] = curand_normal_double(s);
	curand_init(1, 2, 3, p);
	f[1] = curand_normal4(p).x + curand_poisson(p, 3.0);
	curand_init(1, 2, 3, m);
	d[1] = curand_uniform_double(m);
}
