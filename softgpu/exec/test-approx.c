/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The approximate functions: their greatest error over many numbers stays within what the manual of PTX
 * states. References are the host's functions of doubles, whose own errors are a 2^29th of that.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "softgpu/exec/half.h"
#include "softgpu/exec/test-kit.h"

#define N_THREADS 256
#define N_BLOCKS  64
#define N_NUMBERS (N_THREADS * N_BLOCKS)

enum measure {
	ABSOLUTE,
	RELATIVE,
	ULPS, /* of the result as a float */
};

static f64 reciprocal(f64 x)
{
	return 1 / x;
}

static f64 reciprocal_root(f64 x)
{
	return 1 / sqrt(x);
}

static f64 ten_by(f64 x)
{
	return 10 / x;
}

#define OF_HALVES(insn) "cvt.rz.f16.f32 %h0, %f0; " insn " %h1, %h0; cvt.f32.f16 %f1, %h1"
#define OF_PAIRS(insn)                                                                             \
	"cvt.rz.f16.f32 %h0, %f0; mov.b32 %r2, {%h0, %h0}; " insn " %r2, %r2; "                    \
	"mov.b32 {%h0, %h1}, %r2; cvt.f32.f16 %f1, %h1"
#define OF_BFLOATS(insn) "cvt.rz.bf16.f32 %h0, %f0; " insn " %h1, %h0; cvt.f32.bf16 %f1, %h1"
#define OF_DOUBLES(insn) "cvt.f64.f32 %d0, %f0; " insn " %d0, %d0; cvt.rn.f32.f64 %f1, %d0"

/* From @low to @high; positive ones step by a factor, so that every magnitude has its share. */
static const struct {
	const char *insn;
	f64 (*exact)(f64 x);
	f64 low, high;
	enum measure measure;
	f64 most;
} functions[] = {
	{ "sin.approx.f32 %f1, %f0", sin, -M_PI, M_PI, ABSOLUTE, 0x1p-20 },
	{ "sin.approx.ftz.f32 %f1, %f0", sin, -M_PI, M_PI, ABSOLUTE, 0x1p-20 },
	{ "sin.approx.f32 %f1, %f0", sin, -2 * M_PI, 2 * M_PI, ABSOLUTE, 0x1.6ap-21 },
	{ "sin.approx.f32 %f1, %f0", sin, -100 * M_PI, 100 * M_PI, ABSOLUTE, 0x1.3ap-15 },
	{ "cos.approx.f32 %f1, %f0", cos, -M_PI, M_PI, ABSOLUTE, 0x1p-20 },
	{ "cos.approx.ftz.f32 %f1, %f0", cos, -M_PI, M_PI, ABSOLUTE, 0x1p-20 },
	{ "cos.approx.f32 %f1, %f0", cos, -2 * M_PI, 2 * M_PI, ABSOLUTE, 0x1.6ap-21 },
	{ "cos.approx.f32 %f1, %f0", cos, -100 * M_PI, 100 * M_PI, ABSOLUTE, 0x1.3ap-15 },
	{ "ex2.approx.f32 %f1, %f0", exp2, -125, 127, RELATIVE, 0x1p-22 },
	{ "ex2.approx.ftz.f32 %f1, %f0", exp2, -125, 127, RELATIVE, 0x1p-22 },
	{ "lg2.approx.f32 %f1, %f0", log2, 0.5, 2, ABSOLUTE, 0x1p-22 },
	{ "lg2.approx.f32 %f1, %f0", log2, 0x1p-126, 0x1p127, RELATIVE, 0x1p-22 },
	{ "lg2.approx.ftz.f32 %f1, %f0", log2, 2, 0x1p127, RELATIVE, 0x1p-22 },
	{ "rcp.approx.f32 %f1, %f0", reciprocal, 0x1p-126, 0x1p125, ULPS, 1 },
	{ "rcp.approx.ftz.f32 %f1, %f0", reciprocal, 0x1p-126, 0x1p125, ULPS, 1 },
	{ "rsqrt.approx.f32 %f1, %f0", reciprocal_root, 0x1p-126, 0x1p127, RELATIVE, 0x1p-22 },
	{ "rsqrt.approx.ftz.f32 %f1, %f0", reciprocal_root, 0x1p-126, 0x1p127, RELATIVE, 0x1p-22 },
	{ "sqrt.approx.f32 %f1, %f0", sqrt, 0x1p-126, 0x1p127, RELATIVE, 0x1p-23 },
	{ "sqrt.approx.ftz.f32 %f1, %f0", sqrt, 0x1p-126, 0x1p127, RELATIVE, 0x1p-23 },
	{ "tanh.approx.f32 %f1, %f0", tanh, -9, 9, RELATIVE, 0x1p-11 },
	{ "div.approx.f32 %f1, %f2, %f0", ten_by, 0x1p-100, 0x1p100, ULPS, 2 },
	{ "div.approx.ftz.f32 %f1, %f2, %f0", ten_by, 0x1p-100, 0x1p100, ULPS, 2 },
	{ "div.full.f32 %f1, %f2, %f0", ten_by, 0x1p-100, 0x1p100, ULPS, 2 },
	{ "div.full.ftz.f32 %f1, %f2, %f0", ten_by, 0x1p-100, 0x1p100, ULPS, 2 },
	{ "rcp.rn.f32 %f1, %f0", reciprocal, 0x1p-126, 0x1p125, ULPS, 0.5 },
	{ "sqrt.rn.f32 %f1, %f0", sqrt, 0x1p-126, 0x1p127, ULPS, 0.5 },
	{ "div.rn.f32 %f1, %f2, %f0", ten_by, 0x1p-100, 0x1p100, ULPS, 0.5 },
	{ OF_HALVES("ex2.approx.f16"), exp2, -14, 15, RELATIVE, 0x1.13p-10 },
	{ OF_PAIRS("ex2.approx.f16x2"), exp2, -14, 15, RELATIVE, 0x1.13p-10 },
	{ OF_BFLOATS("ex2.approx.ftz.bf16"), exp2, -125, 127, RELATIVE, 0x1p-7 },
	{ OF_HALVES("tanh.approx.f16"), tanh, -9, 9, ABSOLUTE, 0x1.02p-11 },
	{ OF_PAIRS("tanh.approx.f16x2"), tanh, -9, 9, ABSOLUTE, 0x1.02p-11 },
	{ OF_BFLOATS("tanh.approx.bf16"), tanh, -9, 9, ABSOLUTE, 0x1p-8 },
	{ OF_DOUBLES("rcp.approx.ftz.f64"), reciprocal, 0x1p-100, 0x1p100, RELATIVE, 0x1p-20 },
	{ OF_DOUBLES("rsqrt.approx.ftz.f64"), reciprocal_root, 0x1p-100, 0x1p100, RELATIVE,
	  0x1p-20 },
};

static const char format[] =
	".visible .entry k(.param .u64 out, .param .u64 in)\n{\n.reg .b64 %%x<4>; .reg .b32 %%r<4>; "
	".reg .f32 %%f<4>; .reg .f64 %%d<2>; .reg .b16 %%h<2>;\nld.param.u64 %%x0, [out]; ld.param.u64 %%x1, [in]; mov.u32 %%r0, %%tid.x;\n"
	"mov.u32 %%r1, %%ctaid.x; mad.lo.u32 %%r0, %%r1, 256, %%r0; mad.wide.u32 %%x0, %%r0, 4, %%x0;\n"
	"mad.wide.u32 %%x1, %%r0, 4, %%x1; ld.global.f32 %%f0, [%%x1]; mov.f32 %%f2, 0f41200000;\n"
	"%s; st.global.f32 [%%x0], %%f1; ret;\n}\n";

/* So many bits of a mantissa the instruction looks at. */
static u32 mantissa_bits(const char *insn)
{
	return strstr(insn, "bf16") ? 7 : strstr(insn, "f16") ? 10 : strstr(insn, ".f64") ? 20 : 23;
}

static f32 number(size_t f, u32 i)
{
	f64 low = functions[f].low, high = functions[f].high, part = i / (N_NUMBERS - 1.0);

	f32 x = (f32)(low > 0 ? low * pow(high / low, part) : low + (high - low) * part);
	u32 dropped = 23 - mantissa_bits(functions[f].insn);

	return float_of_bits(float_bits(x) & ~((1u << dropped) - 1));
}

static f64 error_of(size_t f, f32 x, f32 got)
{
	f64 exact = functions[f].exact((f64)x), error = fabs((f64)got - exact);
	f32 rounded = (f32)fabs(exact);

	switch (functions[f].measure) {
	case ABSOLUTE:
		return error;
	case RELATIVE:
		return exact == 0 ? error : error / fabs(exact);
	default:
		return error / ((f64)nextafterf(rounded, INFINITY) - (f64)rounded);
	}
}

static void test_function(size_t f)
{
	f64 worst = 0;
	char text[1024];
	struct kit_run run = { .grid = N_BLOCKS, .block = N_THREADS };
	struct exec_progress p;
	f32 *in, *out;

	kit_reset();
	in = kit_alloc(N_NUMBERS * sizeof(*in));
	out = kit_alloc(N_NUMBERS * sizeof(*out));
	for (u32 i = 0; i < N_NUMBERS; i++)
		in[i] = number(f, i);
	snprintf(text, sizeof(text), format, functions[f].insn);
	run.image = kit_image(text);
	run.params[0] = (u64)(uintptr_t)out;
	run.params[1] = (u64)(uintptr_t)in;
	p = kit_run(&run);
	exec_image_free(run.image);
	for (u32 i = 0; i < N_NUMBERS; i++) {
		f64 error = error_of(f, in[i], out[i]);

		/* What is no number is no good result either. */
		if (!(error <= worst))
			worst = error;
	}
	kit_check(p.done && !p.fault && worst <= functions[f].most, "%s: error %.3g of %.3g",
		  functions[f].insn, worst, functions[f].most);
}

int main(void)
{
	kit_init();
	for (size_t f = 0; f < sizeof(functions) / sizeof(functions[0]); f++)
		test_function(f);
	return kit_result();
}
