// SPDX-License-Identifier: Apache-2.0
// Matrices in the registers of a warp: nvcuda::wmma with every type, mma and ldmatrix, and copies that do
// not pass through registers. The CPU computes the same products.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>
#include "check.h"

using namespace nvcuda;

// One warp multiplies one tile of M x K (row by row) with one of K x N (column by column).
template <typename T, typename Tile, typename Sum, int M, int N, int K>
__global__ void multiply(const T *a, const T *b, Sum *c)
{
	wmma::fragment<wmma::matrix_a, M, N, K, Tile, wmma::row_major> fa;
	wmma::fragment<wmma::matrix_b, M, N, K, Tile, wmma::col_major> fb;
	wmma::fragment<wmma::accumulator, M, N, K, Sum> sum;

	wmma::load_matrix_sync(fa, a, K);
	wmma::load_matrix_sync(fb, b, K);
	wmma::fill_fragment(sum, Sum(1.0f));
	wmma::mma_sync(sum, fa, fb, sum);
	for (int i = 0; i < sum.num_elements; i++)
		sum.x[i] = sum.x[i] + sum.x[i];
	wmma::store_matrix_sync(c, sum, N, wmma::mem_row_major);
}

template <typename T, typename Tile, typename Sum, int M, int N, int K> static void try_type(const char *name)
{
	std::vector<T> a(M * K), b(N * K);
	std::vector<Sum> c(M * N);

	for (int i = 0; i < M * K; i++)
		a[i] = T(float(i * 7 % 11));
	for (int i = 0; i < N * K; i++)
		b[i] = T(float(i * 5 % 13));
	T *da = to_device(a), *db = to_device(b);
	Sum *dc = to_device(c);
	multiply<T, Tile, Sum, M, N, K><<<1, 32>>>(da, db, dc);
	CHECK(cudaGetLastError());
	c = to_host(dc, c.size());
	for (int i = 0; i < M * N; i++) {
		double sum = 1;

		for (int k = 0; k < K; k++)
			sum += double(float(a[i / N * K + k])) * double(float(b[i % N * K + k]));
		if (double(float(c[i])) != 2 * sum) {
			fprintf(stderr, "%s: element %d is %f, not %f\n", name, i, float(c[i]), 2 * sum);
			exit(1);
		}
	}
}

// A tile of 16 x 8 by ldmatrix and mma, the halves copied into shared memory asynchronously.
__global__ void by_rows(const __half *a, const __half *b, float *c)
{
	__shared__ alignas(16) __half sa[16 * 16];
	__shared__ alignas(16) __half sb[8 * 16];
	int lane = threadIdx.x;
	unsigned ra[4], rb[2];
	float rc[4] = {};

	__pipeline_memcpy_async(sa + lane * 8, a + lane * 8, 16);
	if (lane < 16)
		__pipeline_memcpy_async(sb + lane * 8, b + lane * 8, 16);
	__pipeline_commit();
	__pipeline_wait_prior(0);
	__syncwarp();

	unsigned at = __cvta_generic_to_shared(sa + lane % 16 * 16 + lane / 16 * 8);
	unsigned bt = __cvta_generic_to_shared(sb + lane % 8 * 16 + lane / 8 % 2 * 8);

	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
		     : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3]) : "r"(at));
	asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
		     : "=r"(rb[0]), "=r"(rb[1]) : "r"(bt));
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
		     "{%8, %9}, {%0, %1, %2, %3};"
		     : "+f"(rc[0]), "+f"(rc[1]), "+f"(rc[2]), "+f"(rc[3])
		     : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
	for (int i = 0; i < 4; i++)
		c[(lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = rc[i];
}

static void try_rows()
{
	std::vector<__half> a(16 * 16), b(8 * 16);

	for (size_t i = 0; i < a.size(); i++)
		a[i] = __half(float(i % 17));
	for (size_t i = 0; i < b.size(); i++)
		b[i] = __half(float(i % 19));
	__half *da = to_device(a), *db = to_device(b);
	float *dc = to_device(std::vector<float>(16 * 8));
	by_rows<<<1, 32>>>(da, db, dc);
	CHECK(cudaGetLastError());
	std::vector<float> c = to_host(dc, 16 * 8);
	for (int i = 0; i < 16 * 8; i++) {
		float sum = 0;

		for (int k = 0; k < 16; k++)
			sum += float(a[i / 8 * 16 + k]) * float(b[i % 8 * 16 + k]);
		EXPECT(c[i] == sum);
	}
}

int main()
{
	try_type<__half, __half, float, 16, 16, 16>("halves");
	try_type<__half, __half, float, 32, 8, 16>("halves, tall");
	try_type<__half, __half, float, 8, 32, 16>("halves, wide");
	try_type<__nv_bfloat16, __nv_bfloat16, float, 16, 16, 16>("bfloat16");
	try_type<float, wmma::precision::tf32, float, 16, 16, 8>("tf32");
	try_type<double, double, double, 8, 8, 4>("doubles");
	try_type<signed char, signed char, int, 16, 16, 16>("signed bytes");
	try_type<unsigned char, unsigned char, int, 32, 8, 16>("bytes");
	try_rows();
	printf("matrices right\n");
	return 0;
}
