/* SPDX-License-Identifier: Apache-2.0 */
/* Every function of the maths library, and the intrinsics with a rounding of their own. */
#include <math.h>

/* clang-format off */
#define FLOATS(X)                                                                                  \
	X(sinf) X(cosf) X(tanf) X(asinf) X(acosf) X(atanf) X(sinhf) X(coshf) X(tanhf) X(expf)      \
	X(exp2f) X(exp10f) X(expm1f) X(logf) X(log2f) X(log10f) X(log1pf) X(sqrtf) X(rsqrtf)       \
	X(cbrtf) X(erff) X(erfcf) X(erfinvf) X(tgammaf) X(lgammaf) X(ceilf) X(floorf) X(truncf)    \
	X(rintf) X(roundf) X(fabsf) X(j0f) X(y1f) X(normcdff) X(__sinf) X(__expf) X(__log2f)       \
	X(__frcp_rz) X(__fsqrt_ru) X(sinpif) X(__saturatef)

#define DOUBLES(X)                                                                                 \
	X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(exp) X(exp2)        \
	X(exp10) X(expm1) X(log) X(log2) X(log10) X(log1p) X(sqrt) X(rsqrt) X(cbrt) X(erf)         \
	X(erfc) X(erfinv) X(tgamma) X(lgamma) X(ceil) X(floor) X(trunc) X(rint) X(round) X(fabs)   \
	X(j0) X(y1) X(normcdf) X(__drcp_rn) X(__dsqrt_rd)
/* clang-format on */

#define ONE(f) *p++ = f(x);

__global__ void floats(float *p, float x, float y, int *i)
{
	FLOATS(ONE)
	*p++ = powf(x, y);
	*p++ = fmodf(x, y);
	*p++ = remainderf(x, y);
	*p++ = atan2f(x, y);
	*p++ = ldexpf(x, *i);
	*p++ = frexpf(x, i);
	*p++ = modff(x, p + 1);
	*p++ = nextafterf(x, y);
	*p++ = copysignf(x, y);
	*p++ = fmaxf(x, fminf(y, p[3]));
	*p++ = __fdividef(x, y);
	*p++ = __fadd_rd(x, y);
	*p++ = __fmaf_rz(x, y, p[3]);
	sincosf(x, p, p + 1);
	i[1] = isnan(x) + isinf(y) + signbit(x) + isfinite(y);
	i[2] = __float2int_rn(x) + __float2uint_ru(y);
	i[3] = (int)__float2ll_rd(x);
}

__global__ void doubles(double *p, double x, double y, int *i, long long *l)
{
	DOUBLES(ONE)
	*p++ = pow(x, y);
	*p++ = fmod(x, y);
	*p++ = atan2(x, y);
	*p++ = hypot(x, y);
	*p++ = ldexp(x, *i);
	*p++ = __fma_rz(x, y, p[3]);
	*p++ = __ddiv_ru(x, y);
	*p++ = __hiloint2double(i[1], i[2]);
	*p++ = __ll2double_rd(*l);
	i[0] = __double2hiint(x) + __double2int_rn(y);
	l[1] = __double_as_longlong(x) + __double2ll_rz(y) + (long long)__double2ull_ru(x);
}
