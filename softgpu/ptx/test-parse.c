/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parser takes, what it refuses, and what it says then.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/ptx.h"

static int n_failed;

static void result(bool ok, const char *what, const char *log)
{
	printf("%s '%s'%s%s\n", ok ? "ok" : "not ok", what, ok ? "" : ": ", ok ? "" : log);
	if (!ok)
		n_failed++;
}

/* Around one instruction: registers of every kind, a variable of every state space. */
static const char head[] = ".version 8.7\n.target sm_90\n.address_size 64\n"
			   ".global .b32 g;\n"
			   ".func (.param .b32 r) f(.param .b32 a) { ret; }\n"
			   ".visible .entry k(.param .u64 p0, .param .u32 p1) {\n"
			   ".reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>;\n"
			   ".reg .f32 %f<9>; .reg .f64 %e<9>; .reg .u16 %u<9>; .reg .b8 %b<9>;\n"
			   ".reg .b128 %q<9>; .reg .v4 .f32 v;\n"
			   ".shared .b32 sh; .local .b32 lo[4]; .param .b32 q0; .param .b32 q1;\n"
			   "L0:\n";
static const char tail[] = "\nret;\n}\n";

/* Whether one line in a kernel parses; the log is as long as it gets. */
static int parse_line(const char *line, char log_text[1024])
{
	char text[8192];
	struct ptx_log log = { log_text, 1024, 0 };
	struct ptx_module *module = NULL;
	int n, r;

	log_text[0] = '\0';
	n = snprintf(text, sizeof(text), "%s%s%s", head, line, tail);
	r = ptx_parse(text, (size_t)n, &log, &module);
	if (r == 0)
		ptx_module_free(module);
	return r;
}

static const char *const taken[] = {
	"mov.b32 %f1,%r1;",
	"mov.b32 %r1,0f3F800000;",
	"mov.b64 %d1,0d3FF0000000000000;",
	"mov.b64 %d1,1.5;",
	"mov.pred %p1,5;",
	"mov.pred %p1,!%p2;",
	"mov.u32 %r1,sh;",
	"mov.u64 %d1,sh+4;",
	"mov.u32 %r1,lo+4;",
	"mov.u32 %r1,lo[3];",
	"mov.u64 %d1,sh[0]+4;",
	"ld.local.u32 %r1,lo[3];",
	"st.shared.u32 sh[0],%r1;",
	"mov.u64 %d1,p1;",
	"mov.u64 %d1,f;",
	"mov.u16 %h1,%tid.x;",
	"mov.u64 %d1,%clock64;",
	"mov.u32 %r1,%envreg3;",
	"mov.u32 %r1,WARP_SZ;",
	"mov.b64 {%r1,_},%d1;",
	"mov.b64 %d1,{%r1,5};",
	"mov.b32 %r1,{%b1,%b2,%b3,%b4};",
	"mov.b128 %q1,{%d1,%d2};",
	"mov.f32 v.x,0f3F800000; add.f32 %f1,v.x,v.y; st.global.v4.f32 [%d1],v;",
	"mov.u32 %r1,65536000000;",
	"add.f64 %e1,%e2,0f3F800000;",
	"add.s32 %r1,%r2,(3+4)*2;",
	"add.s32 %r1,%r2,~5;",
	"add.s32.sat %r1,%r2,%r3;",
	"add.rz.ftz.f32 %f1,%f2,%f3;",
	"add.cc.u32 %r1,%r2,%r3; addc.u32 %r1,%r2,%r3;",
	"sub.u64 %d1,%d2,4U;",
	"mul.wide.s32 %d1,%r2,%r3;",
	"mul.hi.u64 %d1,%d2,%d3;",
	"mad.wide.s32 %d1,%r2,%r3,%d4;",
	"madc.hi.cc.u32 %r1,%r2,%r3,%r4;",
	"fma.rn.f16 %h1,%h2,%h3,%h4;",
	"fma.rn.relu.bf16x2 %r1,%r2,%r3,%r4;",
	"div.full.ftz.f32 %f1,%f2,%f3;",
	"min.xorsign.abs.f32 %f1,%f2,%f3;",
	"ex2.approx.ftz.bf16x2 %r1,%r2;",
	"tanh.approx.f16x2 %r1,%r2;",
	"set.eq.f16.f16 %h1,%h2,%h3;",
	"setp.eq.ftz.f32 %p1,%f1,%f2;",
	"setp.ftz.eq.f32 %p1,%f1,%f2;",
	"setp.eq.and.u32 %p1|%p2,%r1,%r2,!%p3;",
	"setp.eq.u32 %p1|_,%r1,5;",
	"selp.b32 %r1,%r2,%r3,!%p1;",
	"slct.b32.f32 %r1,%r2,%r3,%f4;",
	"prmt.b32.f4e %r1,%r2,%r3,%r4;",
	"lop3.or.b32 %r1|%p1,%r2,%r3,%r4,0xE8,%p2;",
	"bfind.shiftamt.u64 %r1,%d1;",
	"bmsk.clamp.b32 %r1,%r2,%r3;",
	"dp4a.u32.s32 %r1,%r2,%r3,%r4;",
	"dp2a.lo.u32.s32 %r1,%r2,%r3,%r4;",
	"vabsdiff4.u32.u32.u32.add %r1,%r2,%r3,%r4;",
	"tex.2d.v4.f16.f32 {%h1,%h2,%h3,%h4},[%d1,{%f1,%f2}];",
	"tex.level.cube.v2.f16x2.f32 {%r1,%r2},[%d1,{%f1,%f2,%f3,%f4}],%f1;",
	"tld4.b.acube.v4.f32.f32 {%f1,%f2,%f3,%f4},[%d1,{%r1,%f1,%f2,%f3}];",
	"sust.p.2d.v4.b32.trap [%d1,{%r1,%r2}],{%r1,%r2,%r3,%f4}; sust.p.1d.b32.zero [%d1,{%r1}],%r2;",
	"vadd.s32.u32.s32.sat.min %r1,%r2.b0,%r3.h1,%r4;",
	"vsub.s32.u32.s32.sat %r1.b2,%r2,%r3,%r4; vabsdiff.u32.s32.s32 %r1,%r2,%r3;",
	"vshl.u32.u32.u32.clamp.add %r1,%r2,5,%r4; vshr.s32.s32.u32.wrap %r1.h0,%r2,%r3,%r4;",
	"vmad.s32.s32.u32.sat.shr15 %r1,%r2.h0,-%r3.h0,%r4; vmad.u32.u32.u32.po %r1,%r2,%r3,%r4;",
	"vset.u32.s32.ge %r1,%r2,%r3; vset.u32.u32.eq.max %r1,%r2,%r3,%r4;",
	"vset4.s32.s32.ne.add %r1.b20,%r2.b7654,%r3,%r4; vsub2.u32.u32.u32 %r1.h1,%r2.h00,%r3.h23,%r4;",
	"mbarrier.init.shared::cta.b64 [sh],%r1; mbarrier.inval.b64 [%d1];",
	"mbarrier.arrive.shared.b64 %d1,[sh]; mbarrier.arrive.release.cta.shared.b64 _,[sh],2;",
	"mbarrier.arrive.noComplete.shared.b64 %d1,[sh],3; mbarrier.arrive_drop.b64 %d1,[%d2];",
	"mbarrier.test_wait.acquire.cta.shared.b64 %p1,[sh],%d1; mbarrier.pending_count.b64 %r1,%d1;",
	"mbarrier.try_wait.parity.shared.b64 %p1,[sh],%r1,1000; fence.mbarrier_init.release.cluster;",
	"cp.async.mbarrier.arrive.noinc.shared.b64 [sh]; cp.async.mbarrier.arrive.b64 [%d1];",
	"cvt.u16.u32 %r1,%r2;",
	"cvt.s8.s32 %b1,%r2;",
	"cvt.f32.f16 %f1,%h1;",
	"cvt.rzi.f32.f32 %f1,%f2;",
	"cvt.sat.u32.s32 %r1,%r2;",
	"cvt.rn.bf16x2.f32 %r1,%f1,%f2;",
	"cvt.rna.tf32.f32 %r1,%f1;",
	"cvt.rn.satfinite.e4m3x2.f32 %h1,%f1,%f2;",
	"cvt.rn.satfinite.relu.e5m2x2.f16x2 %h1,%r1;",
	"cvt.rn.relu.f16x2.e4m3x2 %r1,%h1;",
	"cvt.u32.u32 %r1,%tid.x;",
	"cvta.shared.u64 %d1,sh;",
	"cvta.to.global.u64 %d1,%d2;",
	"ld.global.u8 %r1,[%d1];",
	"ld.global.volatile.u32 %r1,[%d1];",
	"ld.u32.global %r1,[%d1];",
	"ld.u32 %r1,[sh];",
	"ld.shared.u32 %r1,[%r2+-4];",
	"ld.param.u32 %r1,[p0+4];",
	"ld.global.v4.u32 {%r1,%r2,%r3,_},[%d1];",
	"ld.global.v8.b32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8},[%d1];",
	"ld.relaxed.gpu.global.u32 %r1,[%d1];",
	"ld.global.nc.L1::evict_last.L2::128B.u32 %r1,[%d1];",
	"ld.global.L2::cache_hint.u32 %r1,[%d1],%d2;",
	"ld.const[2].f32 %f1,[%d1];",
	"st.global.v2.f32 [%d1],{%f1,1.0};",
	"st.local.u32 [lo+12],%r1;",
	"atom.add.global.u32 _,[g],1;",
	"atom.global.cas.b16 %h1,[%d1],%h2,%h3;",
	"atom.global.v2.f32.add {%f1,%f2},[%d1],{%f3,%f4};",
	"red.shared::cta.min.s64 [%r1],%d2;",
	"vote.ballot.sync.b32 %r1,%p1,-1;",
	"vote.sync.uni.pred %p1,!%p2,-1;",
	"match.all.sync.b64 %r1|%p1,%d2,-1;",
	"match.any.sync.b32 %r1,%r2,-1;",
	"shfl.sync.idx.b32 %f1|%p1,%f2,%r3,31,-1;",
	"shfl.idx.b32 %r1,%r2,%r3,31;",
	"redux.sync.add.s32 %r1,%r2,-1;",
	"elect.sync %r1|%p1,-1;",
	"bar.red.popc.u32 %r1,0,64,!%p1;",
	"bar.red.and.pred %p1,0,%p2;",
	"bar.warp.sync -1;",
	"barrier.cta.sync.aligned 1,%r2;",
	"membar.gl; fence.acq_rel.gpu; fence.proxy.async; fence.gpu;",
	"cp.async.ca.shared.global [sh],[%d1],4,%r1;",
	"cp.async.ca.shared.global [sh],[%d1],8,!%p1;",
	"cp.async.commit_group; cp.async.wait_group 0; cp.async.wait_all;",
	"createpolicy.fractional.L2::evict_first.b64 %d1,1.0;",
	"griddepcontrol.wait; setmaxnreg.inc.sync.aligned.u32 40;",
	"{ call.uni (q0), f, (q1); }",
	"{ P: .callprototype (.param .b32 _) _ (.param .b32 _); call (q0), %d1, (q1), P; }",
	"T: .branchtargets L0, L1; brx.idx %r1, T; L1:",
	"{ L0: @%p1 bra L0; } @!%p2 bra L0;",
	"{ bra E; } { bra E; } E:",
	"{ .reg .b32 %r1; mov.u32 %r1,2; }",
	".reg .b32 %x1<20>; mov.u32 %x119, %x10;",
	".loc 1 2 3, function_name $L__info_string0, inlined_at 1 4 5 mov.u32 %r1,1;",
	".pragma \"nounroll\";",
};

/* line of the text, and a part of what the log says */
static const struct {
	const char *line;
	int answer;
	const char *says;
} refused[] = {
	{ "add.u32 %r1,%f1,%r2;", PTX_E_INVALID, "add.u32: operand 2 is a .f32 register" },
	{ "add.u32 %f1,%r1,%r2;", PTX_E_INVALID, "the result is a .f32 register" },
	{ "add.f32 %f1,%f2,1;", PTX_E_INVALID, "not a literal of type .f32" },
	{ "add.u32 %r1,%r2,1.0;", PTX_E_INVALID, "not a literal of type .u32" },
	{ "add.u32 %r1,%r2;", PTX_E_INVALID, "add.u32: wrong number of operands (2)" },
	{ "mov.u32 %r1,%r2,%r3;", PTX_E_INVALID, "these are not its operands" },
	{ "add.u32 %r1,%r2,%tid.x;", PTX_E_INVALID, "must be a register or a literal" },
	{ "add.u64 %d1,%d2,g;", PTX_E_INVALID, "must be a register or a literal" },
	{ "add.u32 %r1,%r2,!%p1;", PTX_E_INVALID, "only a predicate can be negated" },
	{ "add.u8 %b1,%b2,%b3;", PTX_E_INVALID, "do not go together" },
	{ "and.u32 %r1,%r2,%r3;", PTX_E_INVALID, "do not go together" },
	{ "mul.s32 %r1,%r2,%r3;", PTX_E_INVALID, "do not go together" },
	{ "mul.lo.hi.s32 %r1,%r2,%r3;", PTX_E_INVALID, "one of the words is too much" },
	{ "mul.rn.rz.f32 %f1,%f2,%f3;", PTX_E_INVALID, "one of the words is too much" },
	{ "sub.sat.u32 %r1,%r2,%r3;", PTX_E_INVALID, "do not go together" },
	{ "div.f32 %f1,%f2,%f3;", PTX_E_INVALID, "do not go together" },
	{ "fma.f32 %f1,%f2,%f3,%f4;", PTX_E_INVALID, "do not go together" },
	{ "min.NaN.f64 %e1,%e2,%e3;", PTX_E_INVALID, "do not go together" },
	{ "mul.wide.s32 %r1,%r2,%r3;", PTX_E_INVALID, "the result is a .b32 register" },
	{ "shl.b64 %d1,%d2,%d3;", PTX_E_INVALID, "operand 3 is a .b64 register" },
	{ "setp.lo.s32 %p1,%r1,%r2;", PTX_E_INVALID, ".s32 is not compared so" },
	{ "setp.gt.b32 %p1,%r1,%r2;", PTX_E_INVALID, ".b32 is not compared so" },
	{ "setp.eq.and.u32 %p1,%r1,%r2;", PTX_E_INVALID, "the predicate is missing" },
	{ "setp.eq.u32 %p1,%r1,%r2,%p3;", PTX_E_INVALID, "the Boolean operation is missing" },
	{ "popc.b64 %d1,%d2;", PTX_E_INVALID, "the result is a .b64 register" },
	{ "cvt.f32.s32 %f1,%r1;", PTX_E_INVALID, "a rounding is missing" },
	{ "cvt.rzi.f32.s32 %f1,%r1;", PTX_E_INVALID, "not with this rounding" },
	{ "cvt.rn.f64.f32 %e1,%f1;", PTX_E_INVALID, "not with this rounding" },
	{ "cvt.rzi.f32.f64 %f1,%e2;", PTX_E_INVALID, "not with this rounding" },
	{ "cvt.ftz.u32.s32 %r1,%r2;", PTX_E_INVALID, ".ftz is for floats" },
	{ "mov.u64 {%r1,%r2},%d1;", PTX_E_INVALID, "2 parts do not make one" },
	{ "mov.b64 {%h1,%h2,%h3},%d1;", PTX_E_INVALID, "3 parts do not make one" },
	{ "mov.u32 %r1,%clock64;", PTX_E_INVALID, "the special register has 64 bits" },
	{ "mov.u32 %r1,%nosuch;", PTX_E_INVALID, "'%nosuch' is not declared" },
	{ "mov.u32 %r9,1;", PTX_E_INVALID, "'%r9' is not declared" },
	{ "ld.global.u8 %f1,[%d1];", PTX_E_INVALID, "the result is a .f32 register" },
	{ "ld.global.f32 %d1,[%h1];", PTX_E_INVALID, "an address is in a register of" },
	{ "ld.global.v2.u32 %d1,[%d1];", PTX_E_INVALID, "1 registers for 2 values" },
	{ "ld.global.v3.u32 {%r1,%r2,%r3},[%d1];", PTX_E_INVALID, "no such modifier" },
	{ "ld.nc.u32 %r1,[%d1];", PTX_E_INVALID, "do not go together" },
	{ "ld.relaxed.u32 %r1,[%d1];", PTX_E_INVALID, "do not go together" },
	{ "ld.shared.u32 %r1,[lo];", PTX_E_INVALID, "is in another state space" },
	{ "ld.param.u64 %d1,[p1];", PTX_E_INVALID, "reaches beyond the variable" },
	{ "ld.param.u32 %r1,[p1+8];", PTX_E_INVALID, "an offset outside of 'p1'" },
	{ "st.local.u32 [lo+13],%r1;", PTX_E_INVALID, "reaches beyond the variable" },
	{ "st.local.u32 lo[4],%r1;", PTX_E_INVALID, "reaches beyond the variable" },
	{ "mov.u32 %r1,lo[5];", PTX_E_INVALID, "an offset outside of 'lo'" },
	{ "st.local.u32 lo,%r1;", PTX_E_INVALID, "must be an address in brackets" },
	{ "ld.global.u32 %r1,[nosuch];", PTX_E_INVALID, "'nosuch' is not declared" },
	{ "ld.global.u32 %r1,[f];", PTX_E_INVALID, "is not one of data" },
	{ "atom.global.add.f16 %h1,[%d1],%h2;", PTX_E_INVALID, "do not go together" },
	{ "atom.global.and.u32 %r1,[%d1],%r2;", PTX_E_INVALID, "do not go together" },
	{ "atom.local.add.u32 %r1,[lo],5;", PTX_E_INVALID, "not in this state space" },
	{ "st.const.u32 [%d1],%r1;", PTX_E_INVALID, "not in this state space" },
	{ "atom.global.add.u64 %d1,[%d2],%d3,%d4;", PTX_E_INVALID, "wrong number of operands (4)" },
	{ "ld.global.L2::cache_hint.u32 %r1,[%d1];", PTX_E_INVALID,
	  "wrong number of operands (2)" },
	{ "bra L1;", PTX_E_INVALID, "there is no label 'L1'" },
	{ "bra %r1;", PTX_E_INVALID, "there is no label '%r1'" },
	{ "bra 5;", PTX_E_INVALID, "'5' where a name should be" },
	{ "{ In: } bra In;", PTX_E_INVALID, "there is no label 'In'" },
	{ "L0: ret;", PTX_E_INVALID, "'L0' is declared twice" },
	{ "@%r1 bra L0;", PTX_E_INVALID, "not a predicate register" },
	{ "@%p1 @%p2 bra L0;", PTX_E_INVALID, "'@' where an instruction should be" },
	{ "brx.idx %r1, L0;", PTX_E_INVALID, "'L0' is no .branchtargets" },
	{ "call f;", PTX_E_INVALID, "0 results and 0 arguments, not 1 and 1" },
	{ "call k;", PTX_E_INVALID, "'k' is no device function" },
	{ "call (q0), nosuch, (q1);", PTX_E_INVALID, "'nosuch' is no device function" },
	{ "call (q0), %d1, (q1);", PTX_E_INVALID, "needs a .callprototype" },
	{ ".reg .b32 w; .reg .f32 w;", PTX_E_INVALID, "'w' is declared twice" },
	{ ".shared .align 3 .b8 x[4];", PTX_E_INVALID, ".align 3: not a power of two" },
	{ ".local .b8 x[1000000];", PTX_E_INVALID, "larger than 524288 bytes" },
	{ ".shared .b8 x[4] = {1};", PTX_E_INVALID, "have initial values" },
	{ "add.s32 %r1,%r2,123456789012345678901;", PTX_E_INVALID, "where a constant" },
	{ "add.s32 %r1,%r2,5/0;", PTX_E_INVALID, "division by zero" },
	{ "frobnicate.b32 %r1,%r2;", PTX_E_INVALID, "'frobnicate' is no instruction" },
	{ "add.frob.b32 %r1,%r2;", PTX_E_INVALID, "add.frob: there is no such modifier" },
	{ "mov.u32 %r1,\"x\";", PTX_E_INVALID, "'x' where a constant should be" },
	{ "}", PTX_E_INVALID, "'ret' where a directive should be" },
	{ "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f32 {},{},{},{};", PTX_E_INVALID,
	  "do not go together" },
	{ "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {},{},{},{},%r1,0;",
	  PTX_E_UNSUPPORTED,
	  "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: this instruction is not run here" },
	{ "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%f1},{%r1},{%r1},{%f1};",
	  PTX_E_UNSUPPORTED, "e4m3.e4m3.f32: this instruction is not run here" },
	{ "mma.sync.aligned.m16n8k16.col.col.f32.f16.f16.f32 {},{},{},{};", PTX_E_INVALID,
	  "do not go together" },
	{ "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {},{},{},{};", PTX_E_INVALID,
	  "do not go together" },
	{ "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4},{%r1},{%r1},{%f1,%f2,%f3,%f4};",
	  PTX_E_INVALID, "1 registers for 2 values" },
	{ "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8},[p0];",
	  PTX_E_INVALID, "not in this state space" },
	{ "ldmatrix.sync.aligned.m8n8.x8.shared.b16 {%r1},[%r2];", PTX_E_INVALID,
	  "no such modifier" },
	{ "tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4},[g,{%f1,%f2}];", PTX_E_UNSUPPORTED,
	  "tex.2d.v4.f32.f32: references are not run here" },
	{ "tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4},[%d1,%d2,{%f1,%f2}];", PTX_E_UNSUPPORTED,
	  "sampler" },
	{ "tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4},[%d1,{%f1}];", PTX_E_INVALID, "not its operands" },
	{ "tex.2d.v4.f32.f32 {%f1,%f2},[%d1,{%f1,%f2}];", PTX_E_INVALID,
	  "2 registers for 4 values" },
	{ "tex.2d.v2.f32.f32 {%f1,%f2},[%d1,{%f1,%f2}];", PTX_E_INVALID, "do not go together" },
	{ "tex.level.2d.v4.f32.f32 {%f1,%f2,%f3,%f4},[%d1,{%f1,%f2}];", PTX_E_INVALID,
	  "not its operands" },
	{ "tex.2d.v4.f32.f32 {%f1,%f2,%f3,%f4},[%d1,{%f1,%f2}],{%r1,%r2};", PTX_E_UNSUPPORTED,
	  "tex.2d.v4.f32.f32: offsets and depths are not run here" },
	{ "tld4.r.2d.v4.f32.f32 {%f1,%f2,%f3,%f4},[%d1,{%f1,%f2}],{%r1,%r2},%f1;",
	  PTX_E_UNSUPPORTED, "tld4.r.2d.v4.f32.f32: offsets and depths are not run here" },
	{ "tex.2d.v4.f16x2.f32 {%r1,%r2,%r3,%r4},[%d1,{%f1,%f2}];", PTX_E_INVALID,
	  "do not go together" },
	{ "tex.2dms.v4.f32.s32 {%f1,%f2,%f3,%f4},[%d1,{%r1,%r2,%r3,%r4}];", PTX_E_UNSUPPORTED,
	  "tex.2dms.v4.f32.s32: this instruction is not run here" },
	{ "suld.p.2d.v4.b32.trap {%r1,%r2,%r3,%r4},[%d1,{%r1,%r2}];", PTX_E_UNSUPPORTED,
	  "suld.p.2d" },
	{ "sust.p.2d.b16.trap [%d1,{%r1,%r2}],%h1;", PTX_E_INVALID, "do not go together" },
	{ "sust.b.p.2d.b32.trap [%d1,{%r1,%r2}],%r1;", PTX_E_INVALID, "do not go together" },
	{ "txq.filter_mode.b32 %r1,[%d1];", PTX_E_UNSUPPORTED, "txq.filter_mode" },
	{ "sured.b.add.1d.u32.trap [%d1,{%r1}],%r2;", PTX_E_UNSUPPORTED, "sured.b.add.1d" },
	{ "istypep.samplerref %p1,%d1;", PTX_E_UNSUPPORTED, "istypep.samplerref" },
	{ "mbarrier.arrive.expect_tx.shared.b64 %d1,[sh],8;", PTX_E_UNSUPPORTED,
	  "mbarrier.arrive.expect_tx: this instruction is not run here" },
	{ "mbarrier.complete_tx.shared.b64 [sh],8;", PTX_E_UNSUPPORTED, "mbarrier.complete_tx" },
	{ "mbarrier.arrive.noComplete.shared.b64 %d1,[sh];", PTX_E_INVALID, "not its operands" },
	{ "mbarrier.init.release.cta.shared.b64 [sh],1;", PTX_E_INVALID, "do not go together" },
	{ "mbarrier.init.global.b64 [g],1;", PTX_E_INVALID, "not in this state space" },
	{ "mbarrier.arrive.parity.shared.b64 %d1,[sh];", PTX_E_INVALID, "do not go together" },
	{ "mbarrier.test_wait.shared.b64 %p1,[sh],%r1;", PTX_E_INVALID, "operand 3 is a .b32" },
	{ "cp.async.arrive;", PTX_E_INVALID, "not its operands" },
	{ "cp.async.mbarrier.wait_all.b64 [sh];", PTX_E_INVALID, "not its operands" },
	{ "vadd.u32.u32.u32 %r1.b0,%r2,%r3;", PTX_E_INVALID, "not its operands" },
	{ "vadd.u32.u32.u32.add %r1.b0,%r2,%r3,%r4;", PTX_E_INVALID, "not its operands" },
	{ "vadd.u32.u32.u32 %r1,%r2.b4,%r3;", PTX_E_INVALID, "not its operands" },
	{ "vadd.u32.u32.u32 %r1,%r2.h10,%r3;", PTX_E_INVALID, "not its operands" },
	{ "vadd.u32.u32.u32 %r1,%r2.x0,%r3;", PTX_E_INVALID, "'.x0' names no parts" },
	{ "vadd.u32.u32.u32 %r1,-%r2,%r3;", PTX_E_INVALID, "where a constant should be" },
	{ "vmad.u32.u32.u32.po %r1,-%r2,%r3,%r4;", PTX_E_INVALID, "not its operands" },
	{ "vadd2.u32.u32.u32 %r1,%r2.h04,%r3,%r4;", PTX_E_INVALID, "not its operands" },
	{ "vadd2.u32.u32.u32 %r1,%r2.b1010,%r3,%r4;", PTX_E_INVALID, "not its operands" },
	{ "vset.u32.u32.hi %r1,%r2,%r3;", PTX_E_INVALID, "integers are not compared so" },
	{ "cp.async.bulk.wait_all;", PTX_E_UNSUPPORTED, "cp.async.bulk" },
	{ "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d1],[%r1],16;",
	  PTX_E_UNSUPPORTED, "cp.reduce: this instruction is not run here" },
	{ "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1],%r2,[%r3];",
	  PTX_E_UNSUPPORTED, "st.async: this instruction is not run here" },
	{ "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1],%r2,[%r3];",
	  PTX_E_UNSUPPORTED, "red.async: this instruction is not run here" },
	{ "prefetch.tensormap [%d1];", PTX_E_UNSUPPORTED, "prefetch.tensormap" },
	{ "mapa.shared::cluster.u32 %r1,%r2,%r3;", PTX_E_UNSUPPORTED, "mapa.shared::cluster.u32" },
	{ "wgmma.fence.sync.aligned;", PTX_E_UNSUPPORTED, "wgmma.fence.sync.aligned" },
	{ "tcgen05.wait::ld.sync.aligned;", PTX_E_UNSUPPORTED, "tcgen05.wait::ld.sync.aligned" },
	{ "multimem.ld_reduce.global.add.u32 %r1,[%d1];", PTX_E_UNSUPPORTED, "multimem.ld_reduce" },
	{ "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1,%r2},[%r3];", PTX_E_UNSUPPORTED,
	  "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8: this instruction is not run here" },
	{ "cvt.rn.satfinite.e4m3x4.f32 %r1,{%f1,%f2,%f3,%f4},%r2;", PTX_E_UNSUPPORTED, "e4m3x4" },
	{ "cvt.rn.e4m3x2.f32 %h1,%f1,%f2;", PTX_E_INVALID, "do not go together" },
	{ "cvt.satfinite.e5m2x2.f16x2 %h1,%r1;", PTX_E_INVALID, "do not go together" },
	{ "cvt.rn.satfinite.e4m3x2.f32 %r1,%f1,%f2;", PTX_E_INVALID, "the result is a .b32" },
	{ "cvt.rn.satfinite.e4m3x2.f32 %h1,%f1;", PTX_E_INVALID, "not its operands" },
	{ "cvt.rn.f16x2.e5m2x2 %r1,%r2;", PTX_E_INVALID, "operand 2 is a .b32" },
	{ "cvt.rn.f16x2.e5m2x2 %r1,%h1,%h2;", PTX_E_INVALID, "not its operands" },
	{ ".reg .e4m3x2 %x;", PTX_E_INVALID, "" },
};

static void test_lines(void)
{
	char log[1024], what[1200];
	int r;

	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		r = parse_line(taken[i], log);
		snprintf(what, sizeof(what), "takes: %s", taken[i]);
		result(r == 0, what, log);
	}
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		r = parse_line(refused[i].line, log);
		snprintf(what, sizeof(what), "refuses: %s", refused[i].line);
		result(r == refused[i].answer && strstr(log, refused[i].says) &&
			       strncmp(log, "line 1", 6) == 0,
		       what, log);
	}
}

/* Whole modules, and a part of what the log says. */
#define HEAD ".version 8.0\n.target sm_80\n"
static const struct {
	const char *text;
	int answer;
	const char *says;
} modules[] = {
	{ "", PTX_E_INVALID, "line 1: the text ends where '.version' should be" },
	{ "\x7f"
	  "ELF",
	  PTX_E_INVALID, "line 1: '\x7f' where '.version' should be" },
	{ ".target sm_80", PTX_E_INVALID, "'.target' where '.version' should be" },
	{ ".version 8", PTX_E_INVALID, ".version: not a version" },
	{ ".version 0.9", PTX_E_INVALID, "there is no such PTX" },
	{ ".version 8.0", PTX_E_INVALID, "there is no .target" },
	{ ".version 8.0\n.target foo", PTX_E_INVALID, "what is 'foo'?" },
	{ ".version 9.0\n.target sm_90a, debug", 0, NULL },
	{ HEAD ".address_size 32", PTX_E_UNSUPPORTED, "addresses have 64 bits here" },
	{ HEAD ".entry k() { ret;", PTX_E_INVALID, "the text ends where an instruction" },
	{ HEAD ".entry k() { ret; } .entry k() { ret; }", PTX_E_INVALID, "has a body already" },
	{ HEAD ".entry k(); .entry k() { ret; }", 0, NULL },
	{ HEAD ".func f(.param .b32 x); .func f() { ret; }", PTX_E_INVALID, "other parameters" },
	{ HEAD ".extern .func f() { ret; }", PTX_E_INVALID, "'f' is .extern, yet has a body" },
	{ HEAD ".func f() { ret; } .global .u32 f;", PTX_E_INVALID,
	  "line 3: 'f' is declared twice" },
	{ HEAD ".entry k(.param .b8 x[40000]) { ret; }", PTX_E_INVALID, "more than 32764 bytes" },
	{ HEAD ".entry k(.param .b8 x, .param .b8 x) { ret; }", PTX_E_INVALID,
	  "two parameters are called 'x'" },
	{ HEAD ".entry k(.reg .b32 x) { ret; }", PTX_E_INVALID, "kernels are .param" },
	{ HEAD ".entry k() .reqnctapercluster 2 { ret; }", PTX_E_UNSUPPORTED,
	  "clusters of blocks" },
	{ HEAD ".entry k() .maxntid 128, 2 .minnctapersm 1 .maxnreg 32 { ret; }", 0, NULL },
	{ HEAD ".alias a, b;", PTX_E_INVALID, "'a' and 'b' are not both functions" },
	{ HEAD ".func f() { ret; } .visible .func a(); .alias a, f;", 0, NULL },
	{ HEAD ".global .texref t;", PTX_E_UNSUPPORTED, "textures and surfaces" },
	{ HEAD ".global .samplerref s;", PTX_E_UNSUPPORTED, "textures and surfaces" },
	{ ".version 8.0\n.target sm_80, texmode_independent\n.global .samplerref s;",
	  PTX_E_UNSUPPORTED, "textures and surfaces" },
	{ HEAD ".entry k(.param .samplerref s) { ret; }", PTX_E_UNSUPPORTED, "" },
	{ HEAD ".global .b8 x[1099511627777];", PTX_E_INVALID, "larger than 1099511627776 bytes" },
	{ HEAD ".global .b8 x[4294967296][4294967296];", PTX_E_INVALID, "is larger than" },
	{ HEAD ".const .b8 a[65536]; .const .b8 b;", PTX_E_INVALID,
	  "bank 0: more than 65536 bytes" },
	{ HEAD ".global .b8 x[2][67108863] = {{},{1}};", 0, NULL },
	{ HEAD ".global .b8 x[2][67108863] = {{},{1}}; .global .b8 y = 1;", PTX_E_INVALID,
	  "initial values of more than 67108864 bytes" },
	{ HEAD ".entry k() { .reg .b32 %a1<65536>, %b1<65536>, %c1<65536>, %d1<65536>; ret; }", 0,
	  NULL },
	{ HEAD ".entry k() { .reg .b32 %a1<65536>, %b1<65536>, %c1<65536>, %d1<65536>, %e1<1>; }",
	  PTX_E_INVALID, "%e1<1>: too many" },
	{ HEAD ".global .u32 x[2] = {1,2,3};", PTX_E_INVALID, "more values than elements" },
	{ HEAD ".global .u32 x[2] = {{1}};", PTX_E_INVALID, "more braces than dimensions" },
	{ HEAD ".global .u32 x = 1.5;", PTX_E_INVALID, "not a value of type .u32" },
	{ HEAD ".global .f32 x = y;", PTX_E_INVALID, "'y' is neither a variable nor a function" },
	{ HEAD ".extern .global .u32 x = 1;", PTX_E_INVALID, "yet has an initial value" },
	{ HEAD ".extern .global .u32 x; .visible .global .u32 x = 1;", 0, NULL },
	{ HEAD ".local .u32 x;", PTX_E_INVALID, ".local and .param belong into functions" },
	{ HEAD ".global .u32 x[((((1))))+2*3 > 6 ? 4 : 2];", 0, NULL },
	{ HEAD ".section .debug_str { $x: .b8 1, 2", PTX_E_INVALID, "the section has no end" },
};

static void test_modules(void)
{
	char log_text[1024];

	for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++) {
		struct ptx_log log = { log_text, sizeof(log_text), 0 };
		struct ptx_module *module = NULL;
		const char *text = modules[i].text, *says = modules[i].says;
		int r;

		log_text[0] = '\0';
		r = ptx_parse(text, strlen(text), &log, &module);
		result(r == modules[i].answer && (!says || strstr(log_text, says)),
		       says ? says : text + strlen(HEAD), log_text);
		if (r == 0)
			ptx_module_free(module);
	}
}

int main(void)
{
	test_lines();
	test_modules();
	return n_failed ? 1 : 0;
}
