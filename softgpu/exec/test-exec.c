/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole kernels: results, counts and faults.
 */
#include "softgpu/exec/test-kit.h"

static u64 address(const void *p)
{
	return (u64)(uintptr_t)p;
}

static void test_vector_add(void)
{
	struct exec_image *image = kit_image(
		".visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 n)\n{\n"
		".reg .pred %p<2>; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %rd<11>;\n"
		"ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c];\n"
		"ld.param.u32 %r2, [n]; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x;\n"
		"mov.u32 %r5, %tid.x; mad.lo.s32 %r1, %r3, %r4, %r5; setp.ge.s32 %p1, %r1, %r2;\n"
		"@%p1 bra DONE;\n"
		"cvta.to.global.u64 %rd4, %rd1; mul.wide.s32 %rd5, %r1, 4; add.s64 %rd6, %rd4, %rd5;\n"
		"cvta.to.global.u64 %rd7, %rd2; add.s64 %rd8, %rd7, %rd5;\n"
		"ld.global.f32 %f1, [%rd8]; ld.global.f32 %f2, [%rd6]; add.f32 %f3, %f2, %f1;\n"
		"cvta.to.global.u64 %rd9, %rd3; add.s64 %rd10, %rd9, %rd5;\n"
		"st.global.f32 [%rd10], %f3;\n"
		"DONE: ret;\n}\n");
	enum { N = 100000, BLOCKS = (N + 255) / 256 };
	f32 *a = kit_alloc(N * 4), *b = kit_alloc(N * 4), *c = kit_alloc(N * 4);
	struct exec_progress p;
	u32 n_wrong = 0;

	for (u32 i = 0; i < N; i++) {
		a[i] = (f32)i;
		b[i] = (f32)(2 * i);
	}
	p = kit_run(&(struct kit_run){
		.image = image,
		.grid = BLOCKS,
		.block = 256,
		.params = { address(a), address(b), address(c), N },
	});
	for (u32 i = 0; i < N; i++)
		n_wrong += c[i] != 3 * (f32)i;
	kit_check(p.done && !p.fault && !n_wrong, "vector add: 100,000 sums");
	/* An instruction whose guard is false for a thread is none of that thread's. */
	kit_check(p.instructions == N * 21 + (BLOCKS * 256 - N) * 11,
		  "vector add: 21 instructions for threads inside, 11 for others");
	exec_image_free(image);
}

int main(void)
{
	kit_init();
	test_vector_add();
	return kit_result();
}
