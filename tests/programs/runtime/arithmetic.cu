// SPDX-License-Identifier: Apache-2.0
// Arithmetic whose result is exact by definition (rounding, saturation, conversions, bits) equals the CPU's
// bit for bit; fast functions are as near as the programming guide promises.
#include <cfenv>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include "check.h"

enum { N_RESULTS = 32 };

struct results {
	float f[N_RESULTS];
	double d[N_RESULTS];
	int64_t i[N_RESULTS];
};

__global__ void rounded(const float *x, const double *y, int n, results *to)
{
	int k = threadIdx.x;
	float a = x[k], b = x[(k + 7) % n];
	double c = y[k], d = y[(k + 7) % n];
	float f[] = { __fadd_rn(a, b), __fadd_rz(a, b), __fadd_ru(a, b), __fadd_rd(a, b),
		      __fmul_rn(a, b), __fmul_rz(a, b), __fmul_ru(a, b), __fmul_rd(a, b),
		      __fdiv_rn(a, b), __fdiv_rz(a, b), __fdiv_ru(a, b), __fdiv_rd(a, b),
		      __fmaf_rn(a, b, a), __fmaf_rz(a, b, a), __fmaf_ru(a, b, a), __fmaf_rd(a, b, a) };
	double g[] = { __dadd_rn(c, d), __dadd_rz(c, d), __dadd_ru(c, d), __dadd_rd(c, d),
		       __dmul_rn(c, d), __dmul_rz(c, d), __dmul_ru(c, d), __dmul_rd(c, d),
		       __ddiv_rn(c, d), __ddiv_rz(c, d), __ddiv_ru(c, d), __ddiv_rd(c, d),
		       __fma_rn(c, d, c), __fma_rz(c, d, c), __fma_ru(c, d, c), __fma_rd(c, d, c) };

	for (int i = 0; i < 16; i++) {
		to[k].f[i] = f[i];
		to[k].d[i] = g[i];
	}
}

template <typename T> static void on_cpu(T a, T b, T *to)
{
	static const int modes[] = { FE_TONEAREST, FE_TOWARDZERO, FE_UPWARD, FE_DOWNWARD };

	for (int i = 0; i < 4; i++) {
		volatile T x = a, y = b;

		fesetround(modes[i]);
		to[i] = x + y;
		to[4 + i] = x * y;
		to[8 + i] = x / y;
		to[12 + i] = std::fma(x, y, x);
	}
	fesetround(FE_TONEAREST);
}

// NaNs need not have the same bits.
template <typename T> static bool same(T a, T b)
{
	return memcmp(&a, &b, sizeof(a)) == 0 || (std::isnan(a) && std::isnan(b));
}

static void roundings()
{
	std::vector<float> x = { 1.0f, -1.0f, 0.1f, 3e38f, -3e38f, 1e-38f, -1e-45f, 0.0f, -0.0f, 16777217.0f,
				 0.333333343f, 7.7e-20f, INFINITY, 1.5f, -2.75e10f, NAN };
	std::vector<double> y;
	std::vector<results> got;
	results *to;
	int n = (int)x.size();

	for (float v : x)
		y.push_back(v / 3.0);
	CHECK(cudaMalloc(&to, n * sizeof(*to)));
	rounded<<<1, n>>>(to_device(x), to_device(y), n, to);
	got = to_host(to, n);
	for (int k = 0; k < n; k++) {
		results expected;

		on_cpu(x[k], x[(k + 7) % n], expected.f);
		on_cpu(y[k], y[(k + 7) % n], expected.d);
		for (int i = 0; i < 16; i++) {
			EXPECT(same(got[k].f[i], expected.f[i]));
			EXPECT(same(got[k].d[i], expected.d[i]));
		}
	}
	CHECK(cudaFree(to));
}

__global__ void exact(const float *x, const uint32_t *b, results *to)
{
	int k = threadIdx.x;
	float a = x[k];
	uint32_t u = b[k];
	int64_t i[] = { __float2int_rz(a), __float2int_rn(a), (int64_t)__float2uint_rz(a), __float2ll_rd(a),
			__popc(u), __clz(u), __ffs(u), __brev(u), __byte_perm(u, 0x01020304, 0x6420),
			__funnelshift_l(u, ~u, 13), (int64_t)__umulhi(u, u), __mulhi((int)u, (int)u),
			__dp4a((int)u, 0x01ff7f80, 5), (int64_t)__sad((int)u, 77, 1u), __hadd((int)u, -3),
			(int64_t)__vadd4(u, 0x80017fff), (int64_t)__vmaxs2(u, 0x00018000) };

	for (int j = 0; j < (int)(sizeof(i) / sizeof(i[0])); j++)
		to[k].i[j] = i[j];
	to[k].f[0] = __saturatef(a);
}

// Converts as the device does: out of range is the nearest value, NaN is 0 or, with 64 bits, the highest bit.
template <typename T> static T converted(double v)
{
	if (std::isnan(v))
		return sizeof(T) < 8 ? 0 : (T)1 << 63;
	if (v <= (double)std::numeric_limits<T>::min())
		return std::numeric_limits<T>::min();
	if (v >= (double)std::numeric_limits<T>::max())
		return std::numeric_limits<T>::max();
	return (T)v;
}

static uint32_t reversed(uint32_t u)
{
	uint32_t r = 0;

	for (int i = 0; i < 32; i++)
		r |= (u >> i & 1) << (31 - i);
	return r;
}

static int byte_of(uint32_t u, int i)
{
	return (int8_t)(u >> 8 * i);
}

static void expect_exact(float a, uint32_t u, const results &got)
{
	int64_t wide = (int64_t)(int)u * (int)u;
	uint32_t sums = 0, half = 0;
	int dot = 5;

	for (int i = 0; i < 4; i++) {
		dot += byte_of(u, i) * byte_of(0x01ff7f80, i);
		sums |= (uint32_t)(uint8_t)(byte_of(u, i) + byte_of(0x80017fff, i)) << 8 * i;
	}
	half = (uint32_t)(uint16_t)std::max((int16_t)u, (int16_t)0x8000) |
	       (uint32_t)(uint16_t)std::max((int16_t)(u >> 16), (int16_t)1) << 16;
	EXPECT(got.i[0] == converted<int>(std::trunc(a)) && got.i[1] == converted<int>(std::nearbyint(a)));
	EXPECT(got.i[2] == converted<uint32_t>(std::trunc(a)) && got.i[3] == converted<int64_t>(std::floor(a)));
	EXPECT(got.i[4] == __builtin_popcount(u) && got.i[5] == (u ? __builtin_clz(u) : 32));
	EXPECT(got.i[6] == __builtin_ffs((int)u) && (uint32_t)got.i[7] == reversed(u));
	EXPECT((uint32_t)got.i[8] == ((u & 0xff) | (u >> 8 & 0xff00) | 0x00040000 | 0x02000000));
	EXPECT((uint32_t)got.i[9] == (~u << 13 | u >> 19));
	EXPECT(got.i[10] == (int64_t)((uint64_t)u * u >> 32) && got.i[11] == wide >> 32 && got.i[12] == dot);
	EXPECT(got.i[13] == (uint32_t)std::llabs((int64_t)(int)u - 77) + 1);
	EXPECT(got.i[14] == ((int64_t)(int)u - 3) >> 1);
	EXPECT((uint32_t)got.i[15] == sums && (uint32_t)got.i[16] == half);
	EXPECT(same(got.f[0], std::isnan(a) ? 0.0f : std::min(std::max(a, 0.0f), 1.0f)));
}

static void conversions_and_bits()
{
	std::vector<float> x = { 0.5f, 1.5f, -2.5f, 0.25f, 1e10f, -1e10f, 3e20f, NAN, -INFINITY, 4294967040.0f };
	std::vector<uint32_t> b = { 0, 1, 0x80000000, 0xffffffff, 0x7fffffff, 0x12345678, 0x80ff017f, 77, 0xdeadbeef,
				    0x00010000 };
	std::vector<results> got;
	results *to;
	int n = (int)x.size();

	CHECK(cudaMalloc(&to, n * sizeof(*to)));
	exact<<<1, n>>>(to_device(x), to_device(b), to);
	got = to_host(to, n);
	for (int k = 0; k < n; k++)
		expect_exact(x[k], b[k], got[k]);
	CHECK(cudaFree(to));
}

__global__ void fast(const float *x, int n, results *to)
{
	int k = threadIdx.x;
	float a = x[k];
	float f[] = { __sinf(a), __cosf(a), __expf(a), __logf(a), __log2f(a), __fdividef(1.0f, a), rsqrtf(a),
		      __powf(a, 1.5f), sinf(a), expf(a), logf(a), sqrtf(a) };

	for (int i = 0; i < (int)(sizeof(f) / sizeof(f[0])); i++)
		to[k].f[i] = f[i];
}

static bool near(float got, double exact, double units)
{
	return std::fabs(got - exact) <= units * std::fabs(exact) * std::exp2(-23);
}

static void expect_fast(double a, const results &got)
{
	EXPECT(std::fabs(got.f[0] - std::sin(a)) <= std::exp2(-21.4));
	EXPECT(std::fabs(got.f[1] - std::cos(a)) <= std::exp2(-21.1));
	EXPECT(near(got.f[2], std::exp(a), 2 + std::floor(std::fabs(1.173 * a))));
	EXPECT(std::fabs(got.f[3] - std::log(a)) <= std::exp2(-21.4) + 3 * std::fabs(std::log(a)) * std::exp2(-23));
	EXPECT(std::fabs(got.f[4] - std::log2(a)) <= std::exp2(-22) + 2 * std::fabs(std::log2(a)) * std::exp2(-23));
	EXPECT(near(got.f[5], 1 / a, 2) && near(got.f[6], 1 / std::sqrt(a), 2));
	EXPECT(near(got.f[7], std::pow(a, 1.5), 16));
	EXPECT(near(got.f[8], std::sin(a), 2) && near(got.f[9], std::exp(a), 2) && near(got.f[10], std::log(a), 1));
	EXPECT(got.f[11] == std::sqrt((float)a));
}

static void fast_functions()
{
	std::vector<float> x;
	std::vector<results> got;
	results *to;

	// Within the interval for which the guide bounds __sinf and __cosf.
	for (int i = 1; i <= 30; i++)
		x.push_back(0.1f * (float)i);
	CHECK(cudaMalloc(&to, x.size() * sizeof(*to)));
	fast<<<1, (int)x.size()>>>(to_device(x), (int)x.size(), to);
	got = to_host(to, x.size());
	for (size_t k = 0; k < x.size(); k++)
		expect_fast(x[k], got[k]);
	CHECK(cudaFree(to));
}

int main()
{
	roundings();
	conversions_and_bits();
	fast_functions();
	printf("arithmetic right\n");
	return 0;
}
