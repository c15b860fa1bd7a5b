/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Floats of 8 bits: every f16 to them, floats around every place where rounding changes, and each of
 * them to f16. What is right is found by looking for the nearest of all numbers that there are.
 */
#include <math.h>
#include <stdio.h>

#include "softgpu/exec/block.h"
#include "softgpu/exec/half.h"
#include "softgpu/exec/isa.h"
#include "softgpu/exec/test-kit.h"

#define N_HALVES  65536u
#define N_OCTETS  256u
#define NAN_OCTET 0x7f
#define NAN_HALF  0x7fff
#define SIGN	  0x80

struct format {
	const char *name;
	u32 mantissa; /* bits */
	s32 bias;
	u32 largest;	 /* the bits of the largest number */
	f64 values[128]; /* by the bits, without a sign */
};

static struct format formats[] = {
	{ .name = "e4m3x2", .mantissa = 3, .bias = 7, .largest = 0x7e },
	{ .name = "e5m2x2", .mantissa = 2, .bias = 15, .largest = 0x7b },
};

/* ---- what is right ------------------------------------------------------------------------------- */

static f64 value_of(const struct format *f, u32 bits)
{
	u32 fraction = bits & ((1u << f->mantissa) - 1), exponent = bits >> f->mantissa;
	s32 lowest = 1 - f->bias - (s32)f->mantissa;

	if (!exponent)
		return ldexp(fraction, lowest);
	return ldexp(fraction | 1u << f->mantissa, lowest + (s32)exponent - 1);
}

static void make_values(struct format *f)
{
	for (u32 i = 0; i <= f->largest; i++)
		f->values[i] = value_of(f, i);
}

/* Of two that are as near the even one; beyond the largest it is the largest. */
static u8 nearest(const struct format *f, f64 v, bool relu)
{
	u32 best = 0, sign = signbit(v) ? SIGN : 0;

	if (isnan(v))
		return NAN_OCTET;
	if (relu && sign)
		return 0;
	v = fabs(v);
	for (u32 i = 1; i <= f->largest; i++) {
		f64 before = fabs(f->values[best] - v), now = fabs(f->values[i] - v);

		if (now < before || (now == before && i % 2 == 0))
			best = i;
	}
	/* So far away all are as near. */
	if (v > f->values[f->largest])
		best = f->largest;
	return (u8)(sign | best);
}

static f64 half_value(u16 bits)
{
	u32 fraction = bits & 0x3ff, exponent = bits >> 10 & 31;
	f64 v = exponent ? ldexp(fraction | 0x400, (s32)exponent - 25) : ldexp(fraction, -24);

	if (exponent == 31)
		v = fraction ? NAN : INFINITY;
	return bits & 0x8000 ? -v : v;
}

/* Is @got, an f16, what an octet is? */
static bool is_half_of(const struct format *f, u8 octet, u16 got, bool relu)
{
	u32 bits = octet & ~(u32)SIGN;
	bool negative = octet & SIGN;
	f64 want = f->values[bits];

	if (bits > f->largest && !(bits == 0x7c && f->mantissa == 2))
		return got == NAN_HALF;
	if (bits > f->largest)
		want = INFINITY;
	if (relu && negative)
		return got == 0;
	return half_value(got) == (negative ? -want : want) && !!(got & 0x8000) == negative;
}

/* ---- running ------------------------------------------------------------------------------------- */

/* Each thread reads two words and writes what @insn makes of them, %r2 or %h0. */
static const char format[] =
	".visible .entry k(.param .u64 in, .param .u64 out)\n{\n.reg .b64 %%x<4>; .reg .b32 %%r<5>; "
	".reg .f32 %%f<2>; .reg .b16 %%h<2>;\n"
	"mov.u32 %%r0, %%tid.x; mov.u32 %%r1, %%ctaid.x; mad.lo.u32 %%r0, %%r1, 256, %%r0;\n"
	"ld.param.u64 %%x0, [in]; mad.wide.u32 %%x0, %%r0, 8, %%x0;\n"
	"ld.param.u64 %%x1, [out]; mad.wide.u32 %%x1, %%r0, 4, %%x1;\n"
	"ld.global.b32 %%r3, [%%x0]; ld.global.f32 %%f0, [%%x0]; ld.global.f32 %%f1, [%%x0+4];\n"
	"cvt.u16.u32 %%h1, %%r3; mov.u16 %%h0, 0; mov.u32 %%r2, 0;\n%s;\n"
	"cvt.u32.u16 %%r4, %%h0; or.b32 %%r2, %%r2, %%r4; st.global.u32 [%%x1], %%r2; ret;\n}\n";

struct words {
	u32 (*in)[2];
	u32 *out;
	u32 n;
};

static struct words words_new(u32 n)
{
	struct words w = { .n = (n + 255) & ~255u };

	kit_reset();
	w.in = kit_alloc(w.n * sizeof(*w.in));
	w.out = kit_alloc(w.n * sizeof(*w.out));
	return w;
}

static void run(const struct words *w, const char *insn)
{
	struct kit_run run = { .grid = w->n / 256, .block = 256 };
	struct exec_progress p;
	char text[2048];

	snprintf(text, sizeof(text), format, insn);
	run.image = kit_image(text);
	run.params[0] = (u64)(uintptr_t)w->in;
	run.params[1] = (u64)(uintptr_t)w->out;
	p = kit_run(&run);
	exec_image_free(run.image);
	if (!p.done || p.fault)
		kit_check(false, "%s: %s", insn, p.message);
}

static const char *relu_word(bool relu)
{
	return relu ? ".relu" : "";
}

/* ---- to octets ----------------------------------------------------------------------------------- */

/* In a register another f16 lies above each. */
static void test_halves(const struct format *f, bool relu)
{
	struct words w = words_new(N_HALVES);
	static u8 want[N_HALVES];
	u32 n_right = 0;
	char insn[128];

	for (u32 i = 0; i < N_HALVES; i++) {
		w.in[i][0] = i | (N_HALVES - 1 - i) << 16;
		want[i] = nearest(f, half_value((u16)i), relu);
	}
	snprintf(insn, sizeof(insn), "cvt.rn.satfinite%s.%s.f16x2 %%h0, %%r3", relu_word(relu),
		 f->name);
	run(&w, insn);
	for (u32 i = 0; i < N_HALVES; i++)
		n_right += w.out[i] == ((u32)want[N_HALVES - 1 - i] << 8 | want[i]);
	kit_check(n_right == N_HALVES, "%s: %u of %u", insn, n_right, N_HALVES);
}

/* Half way between two neighbours, the floats beside that, and what has no neighbour. */
static u32 list_floats(const struct format *f, f32 *ret)
{
	static const f32 others[] = { 0,     0x1p-149f, 0x1p-126f, 449,	     480, 57345,
				      61440, 65536,	0x1p127f,  INFINITY, NAN };
	u32 n = 0;

	for (u32 i = 0; i < f->largest; i++) {
		f32 middle = (f32)((f->values[i] + f->values[i + 1]) / 2);

		ret[n++] = middle;
		ret[n++] = nextafterf(middle, 0);
		ret[n++] = nextafterf(middle, INFINITY);
	}
	for (u32 i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		ret[n++] = others[i];
	return n;
}

static void test_floats(const struct format *f, bool relu)
{
	f32 floats[512];
	u32 n = list_floats(f, floats), n_right = 0;
	struct words w = words_new(n);
	char insn[128];

	for (u32 i = 0; i < n; i++) {
		w.in[i][0] = float_bits(floats[i]);
		w.in[i][1] = float_bits(-floats[i]);
	}
	snprintf(insn, sizeof(insn), "cvt.rn.satfinite%s.%s.f32 %%h0, %%f0, %%f1", relu_word(relu),
		 f->name);
	run(&w, insn);
	for (u32 i = 0; i < n; i++) {
		u32 high = nearest(f, (f64)floats[i], relu),
		    low = nearest(f, -(f64)floats[i], relu);

		n_right += w.out[i] == (high << 8 | low);
	}
	kit_check(n_right == n, "%s: %u of %u", insn, n_right, n);
}

/* ---- from octets --------------------------------------------------------------------------------- */

static void test_octets(const struct format *f, bool relu)
{
	struct words w = words_new(N_OCTETS);
	u32 n_right = 0;
	char insn[128];

	for (u32 i = 0; i < N_OCTETS; i++)
		w.in[i][0] = i | (N_OCTETS - 1 - i) << 8;
	snprintf(insn, sizeof(insn), "cvt.rn%s.f16x2.%s %%r2, %%h1", relu_word(relu), f->name);
	run(&w, insn);
	for (u32 i = 0; i < N_OCTETS; i++)
		n_right += is_half_of(f, (u8)i, (u16)w.out[i], relu) &&
			   is_half_of(f, (u8)(N_OCTETS - 1 - i), (u16)(w.out[i] >> 16), relu);
	kit_check(n_right == N_OCTETS, "%s: %u of %u", insn, n_right, N_OCTETS);
}

static void test_all(void)
{
	for (u32 i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		for (int relu = 0; relu < 2; relu++) {
			test_halves(&formats[i], relu);
			test_floats(&formats[i], relu);
			test_octets(&formats[i], relu);
		}
	}
}

int main(void)
{
	kit_init();
	for (u32 i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		make_values(&formats[i]);
	test_all();
	/* Compiled code does not choose between handlers. */
	if (exec_compiler)
		return kit_result();
	exec_use_base_isa();
	test_all();
	return kit_result();
}
