/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The approximate functions: their greatest error over many numbers stays within what the manual of PTX
 * states. References are the host's functions of doubles, whose own errors are a 2^29th of that.
 */
#include <math.h>
#include <stdio.h>

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
	{ "cos.approx.f32 %f1, %f0", cos, -M_PI, M_PI, ABSOLUTE, 0x1p-20 },
	{ "cos.approx.ftz.f32 %f1, %f0", cos, -M_PI, M_PI, ABSOLUTE, 0x1p-20 },
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
	{ "rcp.rn.f32 %f1, %f0", reciprocal, 0x1p-126, 0x1p125, ULPS, 0.5 },
	{ "sqrt.rn.f32 %f1, %f0", sqrt, 0x1p-126, 0x1p127, ULPS, 0.5 },
	{ "div.rn.f32 %f1, %f2, %f0", ten_by, 0x1p-100, 0x1p100, ULPS, 0.5 },
};

static const char format[] =
	".visible .entry k(.param .u64 out, .param .u64 in)\n{\n.reg .b64 %%x<4>; .reg .b32 %%r<4>; "
	".reg .f32 %%f<4>;\nld.param.u64 %%x0, [out]; ld.param.u64 %%x1, [in]; mov.u32 %%r0, %%tid.x;\n"
	"mov.u32 %%r1, %%ctaid.x; mad.lo.u32 %%r0, %%r1, 256, %%r0; mad.wide.u32 %%x0, %%r0, 4, %%x0;\n"
	"mad.wide.u32 %%x1, %%r0, 4, %%x1; ld.global.f32 %%f0, [%%x1]; mov.f32 %%f2, 0f41200000;\n"
	"%s; st.global.f32 [%%x0], %%f1; ret;\n}\n";

static f32 number(size_t f, u32 i)
{
	f64 low = functions[f].low, high = functions[f].high, part = i / (N_NUMBERS - 1.0);

	return (f32)(low > 0 ? low * pow(high / low, part) : low + (high - low) * part);
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
