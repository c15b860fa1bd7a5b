/* SPDX-License-Identifier: Apache-2.0 */
/* Integers of every width: bits, products, packed bytes, division. */
__global__ void words(int *a, unsigned *u, int x, int y, unsigned v, unsigned w)
{
	*a++ = __clz(x) + __ffs(y) + __popc(x) + __brev(y);
	*a++ = __mulhi(x, y) + __mul24(x, y) + __sad(x, y, v);
	*a++ = __funnelshift_l(x, y, v) + __funnelshift_rc(x, y, v);
	*a++ = __dp4a(x, y, 5) + __rhadd(x, y) + __hadd(x, y);
	*a++ = x / y % 7;
	*a++ = min(x, max(y, 9));
	*a++ = __vabsdiffs4(x, y);
	*a++ = __viaddmax_s32(x, y, 3) + __vimax_s32_relu(x, y);
	*u++ = __umulhi(v, w) + __umul24(v, w) + __usad(v, w, 8);
	*u++ = __byte_perm(v, w, 0x3210 + x);
	*u++ = __dp2a_lo(v, w, 5u);
	*u++ = __vaddus4(v, w) + __vsads4(v, w) + __vcmpgtu4(v, w) + __vabsdiffu2(v, w);
	*u++ = __vavgu4(v, w) + __vmaxs2(v, w) + __vsadu2(v, w) + __viaddmin_s16x2(v, w, v);
	*u++ = __fns(v, w, x) + __vimin3_u32(v, w, 9);
}

__global__ void others(long long *l, unsigned long long *u, short *s, signed char *c, __int128 *q)
{
	l[0] = __clzll(l[1]) + __popcll(l[2]) + __brevll(l[3]) + __ffsll(l[4]);
	l[1] = __mul64hi(l[2], l[3]) + llabs(l[4]) + l[5] / l[6] % l[7];
	u[0] = __umul64hi(u[1], u[2]) + u[3] / u[4];
	s[0] = s[1] * s[2] + (s[3] >> l[0]);
	c[0] = c[1] / c[2] + (c[3] << 2);
	q[0] = q[1] * q[2] + q[3] / q[4];
	q[1] = q[2] >> l[1];
}
