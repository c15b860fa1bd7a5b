/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every kernel of kernels.cu once, each compared with the CPU: kernels PTX-FILE [LIVE_MB]
 * With LIVE_MB it holds that much device memory, says "ready" and waits for its input to
 * end, so that a monitoring tool can be asked about it.
 */
#include <unistd.h>
#include "program.h"

static CUmodule module;

static void vector_add(void)
{
	enum { N = 100003 };
	static float a[N], b[N], sum[N];
	CUdeviceptr da, db, dsum;
	int n = N;

	for (int i = 0; i < N; i++) {
		a[i] = (float)(noise(i) % 1000);
		b[i] = (float)i / 7;
	}
	da = device_copy(a, sizeof(a));
	db = device_copy(b, sizeof(b));
	dsum = device_zeros(sizeof(sum));
	CHECK(cuLaunchKernel(function_of(module, "vector_add"), (N + 255) / 256, 1, 1, 256, 1, 1, 0,
			     NULL, (void *[]){ &da, &db, &dsum, &n }, NULL));
	CHECK(cuMemcpyDtoH(sum, dsum, sizeof(sum)));
	for (int i = 0; i < N; i++)
		EXPECT(sum[i] == a[i] + b[i]);
	CHECK(cuMemFree(da));
	CHECK(cuMemFree(db));
	CHECK(cuMemFree(dsum));
}

static void matmul(void)
{
	enum { N = 64 };
	static float a[N][N], b[N][N], c[N][N];
	CUdeviceptr da, db, dc;
	int n = N;

	for (int i = 0; i < N * N; i++) {
		a[i / N][i % N] = (float)(noise(i) % 17) - 8;
		b[i / N][i % N] = (float)(noise(i + 7777) % 13) - 6;
	}
	da = device_copy(a, sizeof(a));
	db = device_copy(b, sizeof(b));
	dc = device_zeros(sizeof(c));
	CHECK(cuLaunchKernel(function_of(module, "matmul"), N / 16, N / 16, 1, 16, 16, 1, 0, NULL,
			     (void *[]){ &da, &db, &dc, &n }, NULL));
	CHECK(cuMemcpyDtoH(c, dc, sizeof(c)));
	/* Small whole numbers: every order of adding gives the same float. */
	for (int i = 0; i < N; i++) {
		for (int j = 0; j < N; j++) {
			float sum = 0;

			for (int k = 0; k < N; k++)
				sum += a[i][k] * b[k][j];
			EXPECT(c[i][j] == sum);
		}
	}
	CHECK(cuMemFree(da));
	CHECK(cuMemFree(db));
	CHECK(cuMemFree(dc));
}

static void reduce(void)
{
	enum { N = 70001 };
	static int x[N];
	int sum = 0, total, n = N;
	CUdeviceptr dx, dtotal;

	for (int i = 0; i < N; i++)
		sum += x[i] = (int)(noise(i) % 2001) - 1000;
	dx = device_copy(x, sizeof(x));
	dtotal = device_zeros(sizeof(total));
	CHECK(cuLaunchKernel(function_of(module, "reduce"), (N + 127) / 128, 1, 1, 128, 1, 1, 0,
			     NULL, (void *[]){ &dx, &dtotal, &n }, NULL));
	CHECK(cuMemcpyDtoH(&total, dtotal, sizeof(total)));
	EXPECT(total == sum);
	CHECK(cuMemFree(dx));
	CHECK(cuMemFree(dtotal));
}

static void histogram(void)
{
	enum { N = 90001 };
	static unsigned char x[N];
	unsigned int bins[256], expected[256] = { 0 };
	CUdeviceptr dx, dbins;
	int n = N;

	for (int i = 0; i < N; i++)
		expected[x[i] = noise(i) * noise(i + 1) >> 11]++;
	dx = device_copy(x, sizeof(x));
	dbins = device_zeros(sizeof(bins));
	CHECK(cuLaunchKernel(function_of(module, "histogram"), 12, 1, 1, 192, 1, 1, 0, NULL,
			     (void *[]){ &dx, &dbins, &n }, NULL));
	CHECK(cuMemcpyDtoH(bins, dbins, sizeof(bins)));
	EXPECT(memcmp(bins, expected, sizeof(bins)) == 0);
	CHECK(cuMemFree(dx));
	CHECK(cuMemFree(dbins));
}

static void scan(void)
{
	enum { N = 500, BLOCK = 512 };
	int x[N], sums[N], sum = 0, n = N;
	CUdeviceptr dx, dsums;

	for (int i = 0; i < N; i++)
		x[i] = (int)(noise(i) % 100);
	dx = device_copy(x, sizeof(x));
	dsums = device_zeros(sizeof(sums));
	CHECK(cuLaunchKernel(function_of(module, "scan"), 1, 1, 1, BLOCK, 1, 1, BLOCK * sizeof(int),
			     NULL, (void *[]){ &dx, &dsums, &n }, NULL));
	CHECK(cuMemcpyDtoH(sums, dsums, sizeof(sums)));
	for (int i = 0; i < N; i++)
		EXPECT(sums[i] == (sum += x[i]));
	CHECK(cuMemFree(dx));
	CHECK(cuMemFree(dsums));
}

static void nbody(void)
{
	enum { N = 200 };
	double p[N][4], force[N][3];
	CUdeviceptr dp, dforce;
	int n = N;

	for (int i = 0; i < 4 * N; i++)
		p[i / 4][i % 4] = (double)(noise(i) % 10000) / 1000 + 1;
	dp = device_copy(p, sizeof(p));
	dforce = device_zeros(sizeof(force));
	CHECK(cuLaunchKernel(function_of(module, "nbody"), (N + 63) / 64, 1, 1, 64, 1, 1, 0, NULL,
			     (void *[]){ &dp, &dforce, &n }, NULL));
	CHECK(cuMemcpyDtoH(force, dforce, sizeof(force)));
	for (int i = 0; i < N; i++) {
		double f[3] = { 0 };

		for (int j = 0; j < N; j++) {
			double d[3], r2 = 1e-3, w;

			for (int k = 0; k < 3; k++) {
				d[k] = p[j][k] - p[i][k];
				r2 += d[k] * d[k];
			}
			w = p[j][3] / (r2 * sqrt(r2));
			for (int k = 0; k < 3; k++)
				f[k] += w * d[k];
		}
		/* The device fuses multiplications and additions, the CPU may not. */
		for (int k = 0; k < 3; k++)
			EXPECT(fabs(force[i][k] - f[k]) <= 1e-9 * (fabs(f[k]) + 1));
	}
	CHECK(cuMemFree(dp));
	CHECK(cuMemFree(dforce));
}

static void hold(size_t size_mb)
{
	CUdeviceptr ptr = device_zeros(size_mb << 20);
	char byte;

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	CHECK(cuMemFree(ptr));
}

int main(int argc, char **argv)
{
	CHECK(cuInit(0));
	context_on(0);
	module = module_of(argv[1]);
	vector_add();
	matmul();
	reduce();
	histogram();
	scan();
	nbody();
	if (argc > 2)
		hold(strtoul(argv[2], NULL, 0));
	CHECK(cuModuleUnload(module));
	printf("six kernels right\n");
	return 0;
}
