/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels, as a compiler writes them: guarded by the size, addresses by mad.wide.
 */
#include "softgpu/jit/bench-kernels.h"

#define THREAD                                                                                     \
	"mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.s32 %r3, %r0, %r1, %r2;\n"

const char kernel_saxpy[] =
	".visible .entry k(.param .u64 x, .param .u64 y, .param .u64 a, .param .u64 n)\n{\n"
	".reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<6>; .reg .f32 %f<4>;\n" THREAD
	"ld.param.u32 %r4, [n]; setp.ge.s32 %p, %r3, %r4; @%p bra END;\n"
	"ld.param.u64 %d0, [x]; ld.param.u64 %d1, [y]; ld.param.f32 %f0, [a];\n"
	"mul.wide.s32 %d2, %r3, 4; add.s64 %d3, %d0, %d2; add.s64 %d4, %d1, %d2;\n"
	"ld.global.f32 %f1, [%d3]; ld.global.f32 %f2, [%d4]; fma.rn.f32 %f3, %f1, %f0, %f2;\n"
	"st.global.f32 [%d4], %f3;\n"
	"END: ret;\n}\n";

#define TERM(offset, row)                                                                          \
	"ld.shared.f32 %f1, [%r8+" offset "]; ld.shared.f32 %f2, [%r9+" row                        \
	"]; fma.rn.f32 %f0, %f1, %f2, %f0;\n"

/* Blocks of 32 x 32, a tile of each matrix in shared memory. */
const char kernel_matmul[] =
	".shared .align 4 .b8 ta[4096]; .shared .align 4 .b8 tb[4096];\n"
	".visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c, .param .u64 n)\n{\n"
	".reg .pred %p; .reg .b32 %r<24>; .reg .b64 %d<10>; .reg .f32 %f<4>;\n"
	"ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; ld.param.u64 %d2, [c]; ld.param.u32 %r0, [n];\n"
	"mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ctaid.y;\n"
	"shl.b32 %r5, %r3, 5; add.s32 %r5, %r5, %r1; shl.b32 %r6, %r4, 5; add.s32 %r6, %r6, %r2;\n"
	"mul.lo.s32 %r7, %r6, %r0; add.s32 %r10, %r7, %r1; mul.lo.s32 %r11, %r2, %r0; add.s32 %r11, %r11, %r5;\n"
	"mov.u32 %r12, ta; mov.u32 %r13, tb; shl.b32 %r14, %r2, 7; add.s32 %r8, %r12, %r14;\n"
	"shl.b32 %r15, %r1, 2; add.s32 %r9, %r13, %r15; add.s32 %r16, %r8, %r15; add.s32 %r17, %r9, %r14;\n"
	"mov.f32 %f0, 0f00000000; mov.u32 %r18, 0; shl.b32 %r19, %r0, 5;\n"
	"TILE: mul.wide.s32 %d3, %r10, 4; add.s64 %d3, %d0, %d3; ld.global.f32 %f1, [%d3]; st.shared.f32 [%r16], %f1;\n"
	"mul.wide.s32 %d4, %r11, 4; add.s64 %d4, %d1, %d4; ld.global.f32 %f2, [%d4]; st.shared.f32 [%r17], %f2;\n"
	"bar.sync 0;\n" TERM("0", "0") TERM("4", "128") TERM("8", "256") TERM("12", "384") TERM(
		"16", "512") TERM("20", "640") TERM("24",
						    "768") TERM("28",
								"896") TERM("32",
									    "1024") TERM("36",
											 "1152")
		TERM("40", "1280") TERM("44", "1408") TERM("48", "1536") TERM("52", "1664") TERM(
			"56",
			"1792") TERM("60",
				     "1920") TERM("64",
						  "2048") TERM("68",
							       "2176") TERM("72",
									    "2304") TERM("76",
											 "2432")
			TERM("80", "2560") TERM("84", "2688") TERM("88", "2816") TERM(
				"92", "2944") TERM("96",
						   "3072") TERM("100",
								"3200") TERM("104",
									     "3328") TERM("108",
											  "3456")
				TERM("112", "3584") TERM("116", "3712") TERM("120", "3840") TERM(
					"124",
					"3968") "bar.sync 0;\n"
						"add.s32 %r10, %r10, 32; add.s32 %r11, %r11, %r19; add.s32 %r18, %r18, 32; setp.lt.s32 %p, %r18, %r0;\n"
						"@%p bra TILE;\n"
						"add.s32 %r20, %r7, %r5; mul.wide.s32 %d5, %r20, 4; add.s64 %d5, %d2, %d5; st.global.f32 [%d5], %f0;\n"
						"ret;\n}\n";

/* Each thread adds up every so many-th number, then the block's sums meet in shared memory. */
const char kernel_sum[] =
	".shared .align 4 .b8 part[1024];\n"
	".visible .entry k(.param .u64 x, .param .u64 out, .param .u64 n)\n{\n"
	".reg .pred %p; .reg .b32 %r<16>; .reg .b64 %d<6>; .reg .f32 %f<4>;\n" THREAD
	"ld.param.u64 %d0, [x]; ld.param.u64 %d1, [out]; ld.param.u32 %r4, [n];\n"
	"mov.u32 %r5, %nctaid.x; mul.lo.s32 %r5, %r5, %r1; mov.f32 %f0, 0f00000000;\n"
	"setp.ge.s32 %p, %r3, %r4; @%p bra ADDED;\n"
	"MORE: mul.wide.s32 %d2, %r3, 4; add.s64 %d2, %d0, %d2; ld.global.f32 %f1, [%d2]; add.f32 %f0, %f0, %f1;\n"
	"add.s32 %r3, %r3, %r5; setp.lt.s32 %p, %r3, %r4; @%p bra MORE;\n"
	"ADDED: mov.u32 %r6, part; shl.b32 %r7, %r2, 2; add.s32 %r7, %r6, %r7; st.shared.f32 [%r7], %f0;\n"
	"shr.u32 %r8, %r1, 1;\n"
	"HALF: bar.sync 0; setp.ge.u32 %p, %r2, %r8; @%p bra SKIP;\n"
	"shl.b32 %r9, %r8, 2; add.s32 %r9, %r7, %r9; ld.shared.f32 %f1, [%r9]; ld.shared.f32 %f2, [%r7];\n"
	"add.f32 %f2, %f2, %f1; st.shared.f32 [%r7], %f2;\n"
	"SKIP: shr.u32 %r8, %r8, 1; setp.ne.u32 %p, %r8, 0; @%p bra HALF;\n"
	"setp.ne.u32 %p, %r2, 0; @%p bra END; ld.shared.f32 %f2, [part]; mul.wide.s32 %d3, %r0, 4;\n"
	"add.s64 %d3, %d1, %d3; st.global.f32 [%d3], %f2;\n"
	"END: ret;\n}\n";

#define COUNT(shift)                                                                               \
	"bfe.u32 %r8, %r7, " shift                                                                 \
	", 8; shl.b32 %r8, %r8, 2; add.s32 %r8, %r6, %r8; red.shared.add.u32 [%r8], 1;\n"

/* Bins of the block in shared memory, four bytes at a time. */
const char kernel_histogram[] =
	".shared .align 4 .b8 bins[1024];\n"
	".visible .entry k(.param .u64 data, .param .u64 out, .param .u64 words)\n{\n"
	".reg .pred %p; .reg .b32 %r<16>; .reg .b64 %d<6>;\n" THREAD
	"ld.param.u64 %d0, [data]; ld.param.u64 %d1, [out]; ld.param.u32 %r4, [words];\n"
	"mov.u32 %r5, %nctaid.x; mul.lo.s32 %r5, %r5, %r1; mov.u32 %r6, bins; shl.b32 %r9, %r2, 2;\n"
	"add.s32 %r10, %r6, %r9; st.shared.u32 [%r10], 0; bar.sync 0;\n"
	"setp.ge.s32 %p, %r3, %r4; @%p bra DONE;\n"
	"MORE: mul.wide.s32 %d2, %r3, 4; add.s64 %d2, %d0, %d2; ld.global.u32 %r7, [%d2];\n" COUNT(
		"0") COUNT("8") COUNT("16")
		COUNT("24") "add.s32 %r3, %r3, %r5; setp.lt.s32 %p, %r3, %r4; @%p bra MORE;\n"
			    "DONE: bar.sync 0; ld.shared.u32 %r11, [%r10]; mul.wide.u32 %d3, %r2, 4; add.s64 %d3, %d1, %d3;\n"
			    "red.global.add.u32 [%d3], %r11; ret;\n}\n";

/* The others' places, a block's worth at a time, in shared memory. */
const char kernel_bodies[] =
	".shared .align 8 .b8 others[4096];\n"
	".visible .entry k(.param .u64 place, .param .u64 force, .param .u64 n)\n{\n"
	".reg .pred %p; .reg .b32 %r<16>; .reg .b64 %d<6>; .reg .f64 %f<24>;\n" THREAD
	"ld.param.u64 %d0, [place]; ld.param.u64 %d1, [force]; ld.param.u32 %r4, [n];\n"
	"mul.wide.u32 %d2, %r3, 32; add.s64 %d3, %d0, %d2; ld.global.v2.f64 {%f0, %f1}, [%d3]; ld.global.f64 %f2, [%d3+16];\n"
	"mov.f64 %f3, 0d0000000000000000; mov.f64 %f4, %f3; mov.f64 %f5, %f3; mov.u32 %r5, 0;\n"
	"mov.u32 %r6, others; shl.b32 %r7, %r2, 5; add.s32 %r7, %r6, %r7;\n"
	"TILE: add.s32 %r8, %r5, %r2; mul.wide.u32 %d4, %r8, 32; add.s64 %d4, %d0, %d4;\n"
	"ld.global.v2.f64 {%f6, %f7}, [%d4]; ld.global.v2.f64 {%f8, %f9}, [%d4+16];\n"
	"st.shared.v2.f64 [%r7], {%f6, %f7}; st.shared.v2.f64 [%r7+16], {%f8, %f9}; bar.sync 0;\n"
	"mov.u32 %r9, 0; mov.u32 %r10, %r6;\n"
	"EACH: ld.shared.v2.f64 {%f6, %f7}, [%r10]; ld.shared.v2.f64 {%f8, %f9}, [%r10+16];\n"
	"sub.f64 %f10, %f6, %f0; sub.f64 %f11, %f7, %f1; sub.f64 %f12, %f8, %f2;\n"
	"mul.f64 %f13, %f10, %f10; fma.rn.f64 %f13, %f11, %f11, %f13; fma.rn.f64 %f13, %f12, %f12, %f13;\n"
	"add.f64 %f13, %f13, 0d3F50624DD2F1A9FC; sqrt.rn.f64 %f14, %f13; mul.f64 %f15, %f13, %f14; div.rn.f64 %f16, %f9, %f15;\n"
	"fma.rn.f64 %f3, %f10, %f16, %f3; fma.rn.f64 %f4, %f11, %f16, %f4; fma.rn.f64 %f5, %f12, %f16, %f5;\n"
	"add.s32 %r10, %r10, 32; add.s32 %r9, %r9, 1; setp.lt.u32 %p, %r9, %r1; @%p bra EACH;\n"
	"bar.sync 0; add.s32 %r5, %r5, %r1; setp.lt.u32 %p, %r5, %r4; @%p bra TILE;\n"
	"add.s64 %d5, %d1, %d2; st.global.v2.f64 [%d5], {%f3, %f4}; st.global.f64 [%d5+16], %f5; ret;\n}\n";

/* %f<d> to its place in the normal distribution, as plain_options() has it. */
#define NORMAL(d, n)                                                                                                      \
	"abs.f32 %f20, " d                                                                                                \
	"; fma.rn.f32 %f20, %f20, 0f3E6D3389, 0f3F800000; rcp.rn.f32 %f20, %f20;\n"                                       \
	"fma.rn.f32 %f21, %f20, 0f3FAA466F, 0fBFE91EEA; fma.rn.f32 %f21, %f20, %f21, 0f3FE40778;\n"                       \
	"fma.rn.f32 %f21, %f20, %f21, 0fBEB68F87; fma.rn.f32 %f21, %f20, %f21, 0f3EA385FA; mul.f32 %f21, %f20, %f21;\n"   \
	"mul.f32 %f22, " d ", " d "; mul.f32 %f22, %f22, 0fBF38AA3B; ex2.approx.f32 %f22, %f22;\n"                        \
	"mul.f32 %f22, %f22, 0f3ECC422A; mul.f32 %f22, %f22, %f21; mov.f32 %f23, 0f3F800000; sub.f32 %f23, %f23, %f22;\n" \
	"setp.gt.f32 %q, " d ", 0f00000000; selp.f32 " n ", %f23, %f22, %q;\n"

const char kernel_options[] =
	".visible .entry k(.param .u64 s, .param .u64 x, .param .u64 t, .param .u64 c, .param .u64 v, .param .u64 n)\n{\n"
	".reg .pred %p, %q; .reg .b32 %r<6>; .reg .b64 %d<12>; .reg .f32 %f<32>;\n" THREAD
	"ld.param.u32 %r4, [n]; setp.ge.s32 %p, %r3, %r4; @%p bra END; mul.wide.s32 %d0, %r3, 4;\n"
	"ld.param.u64 %d1, [s]; add.s64 %d1, %d1, %d0; ld.param.u64 %d2, [x]; add.s64 %d2, %d2, %d0;\n"
	"ld.param.u64 %d3, [t]; add.s64 %d3, %d3, %d0; ld.param.u64 %d4, [c]; add.s64 %d4, %d4, %d0;\n"
	"ld.param.u64 %d5, [v]; add.s64 %d5, %d5, %d0;\n"
	"ld.global.f32 %f0, [%d1]; ld.global.f32 %f1, [%d2]; ld.global.f32 %f2, [%d3];\n"
	"sqrt.rn.f32 %f3, %f2; div.rn.f32 %f4, %f0, %f1; lg2.approx.f32 %f4, %f4; mul.f32 %f4, %f4, 0f3F317218;\n"
	"fma.rn.f32 %f4, %f2, 0f3D851EB8, %f4; mul.f32 %f5, %f3, 0f3E99999A; div.rn.f32 %f6, %f4, %f5; sub.f32 %f7, %f6, %f5;\n"
	"mul.f32 %f8, %f2, 0fBCEC5F05; ex2.approx.f32 %f8, %f8; mul.f32 %f8, %f1, %f8;\n" NORMAL(
		"%f6", "%f9")
		NORMAL("%f7",
		       "%f10") "mul.f32 %f11, %f8, %f10; neg.f32 %f11, %f11; fma.rn.f32 %f11, %f0, %f9, %f11; st.global.f32 [%d4], %f11;\n"
			       "mov.f32 %f12, 0f3F800000; sub.f32 %f13, %f12, %f10; sub.f32 %f14, %f12, %f9; mul.f32 %f14, %f0, %f14;\n"
			       "neg.f32 %f14, %f14; fma.rn.f32 %f14, %f8, %f13, %f14; st.global.f32 [%d5], %f14;\n"
			       "END: ret;\n}\n";

/* Blocks of 32 x 8; the edge stays as it is. */
const char kernel_stencil[] =
	".visible .entry k(.param .u64 in, .param .u64 out, .param .u64 n)\n{\n"
	".reg .pred %p, %q; .reg .b32 %r<16>; .reg .b64 %d<8>; .reg .f32 %f<8>;\n"
	"ld.param.u32 %r4, [n]; mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; shl.b32 %r2, %r0, 5; add.s32 %r2, %r2, %r1;\n"
	"mov.u32 %r5, %ctaid.y; mov.u32 %r6, %tid.y; shl.b32 %r7, %r5, 3; add.s32 %r7, %r7, %r6; sub.s32 %r8, %r4, 1;\n"
	"setp.lt.s32 %p, %r2, 1; setp.ge.or.s32 %p, %r2, %r8, %p; setp.lt.or.s32 %p, %r7, 1, %p; setp.ge.or.s32 %p, %r7, %r8, %p;\n"
	"@%p bra END; ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; mad.lo.s32 %r9, %r7, %r4, %r2;\n"
	"mul.wide.s32 %d2, %r9, 4; add.s64 %d3, %d0, %d2; mul.wide.s32 %d4, %r4, 4; add.s64 %d5, %d3, %d4; sub.s64 %d6, %d3, %d4;\n"
	"ld.global.f32 %f0, [%d3]; ld.global.f32 %f1, [%d3+-4]; ld.global.f32 %f2, [%d3+4]; ld.global.f32 %f3, [%d6];\n"
	"ld.global.f32 %f4, [%d5]; add.f32 %f1, %f1, %f2; add.f32 %f1, %f1, %f3; add.f32 %f1, %f1, %f4;\n"
	"mul.f32 %f1, %f1, 0f3E000000; fma.rn.f32 %f1, %f0, 0f3F000000, %f1; add.s64 %d7, %d1, %d2; st.global.f32 [%d7], %f1;\n"
	"END: ret;\n}\n";
