/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of bench-jit and their counterparts in plain C (bench-plain.c), which are compiled as
 * any program is. All parameters are .u64. What is not made by giving a part of the data is told which
 * rows or bodies it is to do, from @first up to @end.
 */
#ifndef SOFTGPU_JIT_BENCH_KERNELS_H
#define SOFTGPU_JIT_BENCH_KERNELS_H

#include <stdint.h>

void plain_saxpy(const float *x, float *y, float a, uint32_t n);
void plain_matmul(const float *a, const float *b, float *c, uint32_t n, uint32_t first,
		  uint32_t end);
float plain_sum(const float *x, uint32_t n);
void plain_histogram(const uint8_t *data, uint32_t *bins, uint32_t n);
void plain_bodies(const double *place, double *force, uint32_t n, uint32_t first, uint32_t end);
void plain_options(const float *price, const float *strike, const float *years, float *call,
		   float *put, uint32_t n);
void plain_stencil(const float *in, float *out, uint32_t n, uint32_t first, uint32_t end);

extern const char kernel_saxpy[], kernel_matmul[], kernel_sum[], kernel_histogram[],
	kernel_bodies[], kernel_options[], kernel_stencil[];

#endif
