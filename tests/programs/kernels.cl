/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of kernels.cu in C, for clang --target=nvptx64-nvidia-cuda without a dialect of CUDA:
 * OpenCL C is the C of which clang makes kernels for that target. Its library is not used, only the
 * compiler's builtins for the PTX instructions.
 */
#define TILE 16
#define FULL 0xffffffffu

#define TID	 __nvvm_read_ptx_sreg_tid_x()
#define CTAID	 __nvvm_read_ptx_sreg_ctaid_x()
#define NTID	 __nvvm_read_ptx_sreg_ntid_x()
#define NCTAID	 __nvvm_read_ptx_sreg_nctaid_x()
#define AT	 (CTAID * NTID + TID)
#define ADD(at, by) __nvvm_atom_add_gen_i((int *)(at), by)

__kernel void vector_add(__global const float *a, __global const float *b, __global float *sum, int n)
{
	int i = AT;

	if (i < n)
		sum[i] = a[i] + b[i];
}

__kernel void scale(__global float *x, float by, int n)
{
	int i = AT;

	if (i < n)
		x[i] *= by;
}

__kernel void matmul(__global const float *a, __global const float *b, __global float *c, int n)
{
	__local float tile_a[TILE][TILE], tile_b[TILE][TILE];
	int tx = TID, ty = __nvvm_read_ptx_sreg_tid_y();
	int row = __nvvm_read_ptx_sreg_ctaid_y() * TILE + ty, col = CTAID * TILE + tx;
	float sum = 0;

	for (int t = 0; t < n / TILE; t++) {
		tile_a[ty][tx] = a[row * n + t * TILE + tx];
		tile_b[ty][tx] = b[(t * TILE + ty) * n + col];
		__syncthreads();
		for (int k = 0; k < TILE; k++)
			sum += tile_a[ty][k] * tile_b[k][tx];
		__syncthreads();
	}
	c[row * n + col] = sum;
}

__kernel void reduce(__global const int *x, __global int *total, int n)
{
	int i = AT, v = i < n ? x[i] : 0;

	for (int step = 16; step > 0; step /= 2)
		v += __nvvm_shfl_sync_down_i32(FULL, v, step, 0x1f);
	if (TID % 32 == 0)
		ADD(total, v);
}

__kernel void histogram(__global const unsigned char *x, __global unsigned int *bins, int n)
{
	__local unsigned int local_bins[256];
	int i;

	for (i = TID; i < 256; i += NTID)
		local_bins[i] = 0;
	__syncthreads();
	for (i = AT; i < n; i += NCTAID * NTID)
		ADD(&local_bins[x[i]], 1);
	__syncthreads();
	for (i = TID; i < 256; i += NTID)
		ADD(&bins[i], local_bins[i]);
}

/* OpenCL has no shared memory of the launch's size but as an argument, so this has its own. */
__kernel void scan(__global const int *x, __global int *sums, int n)
{
	__local int s[1024];
	int i = TID, v;

	s[i] = i < n ? x[i] : 0;
	__syncthreads();
	for (int d = 1; d < NTID; d *= 2) {
		v = i >= d ? s[i - d] : 0;
		__syncthreads();
		s[i] += v;
		__syncthreads();
	}
	if (i < n)
		sums[i] = s[i];
}

__kernel void nbody(__global const double *p, __global double *force, int n)
{
	int i = AT;
	double f[3] = { 0 };

	if (i >= n)
		return;
	for (int j = 0; j < n; j++) {
		double d[3], r2 = 1e-3, w;

		for (int k = 0; k < 3; k++) {
			d[k] = p[4 * j + k] - p[4 * i + k];
			r2 += d[k] * d[k];
		}
		w = p[4 * j + 3] / (r2 * __nvvm_sqrt_rn_d(r2));
		for (int k = 0; k < 3; k++)
			f[k] += w * d[k];
	}
	for (int k = 0; k < 3; k++)
		force[3 * i + k] = f[k];
}
