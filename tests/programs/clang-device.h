/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clang needs to compile kernels.cu for --target=nvptx64 without a CUDA toolkit's
 * headers: the qualifiers, the special registers and the few functions that are used,
 * each over the compiler's builtin for the PTX instruction.
 */
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))

#define SPECIAL(name, reg)                                                                         \
	struct name##_type {                                                                       \
		struct {                                                                           \
			__device__ operator int() const                                            \
			{                                                                          \
				return __nvvm_read_ptx_sreg_##reg##_x();                           \
			}                                                                          \
		} x;                                                                               \
		struct {                                                                           \
			__device__ operator int() const                                            \
			{                                                                          \
				return __nvvm_read_ptx_sreg_##reg##_y();                           \
			}                                                                          \
		} y;                                                                               \
	}

SPECIAL(thread_idx, tid);
SPECIAL(block_idx, ctaid);
SPECIAL(block_dim, ntid);
SPECIAL(grid_dim, nctaid);

#define threadIdx (thread_idx_type())
#define blockIdx  (block_idx_type())
#define blockDim  (block_dim_type())
#define gridDim	  (grid_dim_type())

static __device__ inline int __shfl_down_sync(unsigned mask, int v, int by)
{
	return __nvvm_shfl_sync_down_i32(mask, v, by, 0x1f);
}

static __device__ inline int atomicAdd(int *at, int by)
{
	return __nvvm_atom_add_gen_i(at, by);
}

static __device__ inline unsigned atomicAdd(unsigned *at, unsigned by)
{
	return __nvvm_atom_add_gen_i((int *)at, (int)by);
}

static __device__ inline double sqrt(double x)
{
	return __nvvm_sqrt_rn_d(x);
}
