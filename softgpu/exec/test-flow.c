/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What threads do with each other: diverge, wait, count, call, end.
 */
#include <string.h>

#include "softgpu/exec/test-kit.h"

#define REGS                                                                                       \
	".reg .pred %p, %q; .reg .b32 %r<10>; .reg .b64 %x<10>; .reg .f32 %f<4>; "                 \
	"ld.param.u64 %x0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; "                    \
	"mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0; "
#define KERNEL(body) ".visible .entry k(.param .u64 out)\n{\n" REGS body "\nret;\n}\n"
/* %r9 is the result of each thread. */
#define STORE_R9 "mad.wide.u32 %x1, %r3, 4, %x0; st.global.u32 [%x1], %r9; "

struct outcome {
	struct exec_progress p;
	u32 *out;
};

static struct outcome run(const char *text, u32 grid, u32 block, struct kit_run more)
{
	struct outcome o;

	kit_reset();
	o.out = kit_alloc(1 << 16);
	more.image = kit_image(text);
	more.grid = grid;
	more.block = block;
	more.params[0] = (u64)(uintptr_t)o.out;
	if (!more.limit)
		more.limit = 200000000;
	o.p = kit_run(&more);
	exec_image_free(more.image);
	return o;
}

static bool is_done(const struct outcome *o)
{
	return o->p.done && !o->p.fault;
}

/* Every thread's word is what @expected says of its number. */
static void check_words(const char *what, const char *text, u32 grid, u32 block,
			u32 (*expected)(u32 thread, u32 n_block))
{
	struct outcome o = run(text, grid, block, (struct kit_run){ 0 });
	u32 n_wrong = 0;

	for (u32 i = 0; i < grid * block; i++)
		n_wrong += o.out[i] != expected(i, block);
	kit_check(is_done(&o) && !n_wrong, "%s%s", what, o.p.message);
}

/* Every thread's word is 7. */
static void check_sevens(const char *what, const char *text, u32 grid, struct kit_run more)
{
	struct outcome o = run(text, grid, 32, more);
	u32 n_wrong = 0;

	for (u32 i = 0; i < grid * 32; i++)
		n_wrong += o.out[i] != 7;
	kit_check(is_done(&o) && !n_wrong, "%s", what);
}

/* ---- divergence --------------------------------------------------------------------------------- */

static u32 collatz(u32 thread, _unused_ u32 n_block)
{
	u32 n = thread + 1, steps = 0;

	for (; n != 1; steps++)
		n = n % 2 ? 3 * n + 1 : n / 2;
	return steps;
}

static const char collatz_text[] =
	KERNEL("add.u32 %r4, %r3, 1; mov.u32 %r9, 0;\n"
	       "LOOP: setp.eq.u32 %p, %r4, 1; @%p bra OUT;\n"
	       "and.b32 %r5, %r4, 1; setp.eq.u32 %q, %r5, 0; @%q bra EVEN;\n"
	       "mad.lo.u32 %r4, %r4, 3, 1; bra NEXT;\n"
	       "EVEN: shr.u32 %r4, %r4, 1;\n"
	       "NEXT: add.u32 %r9, %r9, 1; bra LOOP;\n"
	       "OUT: " STORE_R9);

static u32 switched(u32 thread, _unused_ u32 n_block)
{
	return (u32[]){ 10, 21, 32, 43 }[thread % 4];
}

static const char brx_text[] = KERNEL("and.b32 %r4, %r3, 3; mov.u32 %r9, 0;\n"
				      "TABLE: .branchtargets L0, L1, L2, L3;\n"
				      "brx.idx %r4, TABLE;\n"
				      "L0: add.u32 %r9, %r9, 10; bra END;\n"
				      "L1: add.u32 %r9, %r9, 21; bra END;\n"
				      "L2: add.u32 %r9, %r9, 32; bra END;\n"
				      "L3: add.u32 %r9, %r9, 43;\n"
				      "END: " STORE_R9);

/* Two groups come back to the table again and again until the third has been where it leads to. */
static u32 all_sevens(_unused_ u32 thread, _unused_ u32 n_block)
{
	return 7;
}

static const char brx_wait_text[] =
	".global .u32 flag;\n" KERNEL("mov.u64 %x2, flag; min.u32 %r4, %r0, 2; bra AGAIN;\n"
				      "TABLE: .branchtargets L0, L1, L2;\n"
				      "L0: ld.volatile.global.u32 %r5, [%x2]; bra LOOK;\n"
				      "L1: ld.volatile.global.u32 %r5, [%x2]; bra LOOK;\n"
				      "L2: mov.u32 %r5, 1; st.volatile.global.u32 [%x2], %r5;\n"
				      "LOOK: setp.ne.u32 %p, %r5, 0; @%p bra END;\n"
				      "AGAIN: brx.idx %r4, TABLE;\n"
				      "END: mov.u32 %r9, 7; " STORE_R9);

/* How many are together again after a branch: all, whatever way they went. */
static u32 everybody(_unused_ u32 thread, _unused_ u32 n_block)
{
	return 32;
}

static const char meet_text[] =
	KERNEL("and.b32 %r4, %r3, 7;\n"
	       "LOOP: setp.eq.u32 %p, %r4, 0; @%p bra OUT; sub.u32 %r4, %r4, 1; bra LOOP;\n"
	       "OUT: activemask.b32 %r5; popc.b32 %r9, %r5; " STORE_R9);

/* A lock that the lanes of a warp want at once. */
static const char lane_lock_text[] = ".global .u32 lock; .global .u32 count;\n" KERNEL(
	"mov.u64 %x2, lock; mov.u64 %x3, count; mov.u32 %r9, 0;\n"
	"TRY: atom.global.cas.b32 %r4, [%x2], 0, 1; setp.ne.u32 %p, %r4, 0; @%p bra TRY;\n"
	"ld.volatile.global.u32 %r5, [%x3]; add.u32 %r5, %r5, 1; st.volatile.global.u32 [%x3], %r5;\n"
	"membar.gl; atom.global.exch.b32 %r6, [%x2], 0;\n"
	"bar.sync 0; ld.volatile.global.u32 %r9, [%x3]; " STORE_R9);

/* The classic that needs threads to make progress on their own: the holder is further on. */
static const char spin_text[] = KERNEL(
	"setp.eq.u32 %p, %r0, 5; @%p bra SETTER;\n"
	"WAIT: ld.volatile.global.u32 %r4, [%x0+4096]; setp.eq.u32 %q, %r4, 0; @%q bra WAIT;\n"
	"mov.u32 %r9, 7; bra END;\n"
	"SETTER: st.volatile.global.u32 [%x0+4096], 1; mov.u32 %r9, 7;\n"
	"END: " STORE_R9);

static u32 seven(_unused_ u32 thread, _unused_ u32 n_block)
{
	return 7;
}

static void test_divergence(void)
{
	struct outcome o;

	check_words("a loop that each thread leaves at its own time", collatz_text, 3, 80, collatz);
	check_words("brx.idx with all its targets at once", brx_text, 2, 64, switched);
	check_words("brx.idx: no group is left behind by others", brx_wait_text, 1, 32, all_sevens);
	check_words("lanes that left a loop early meet the others behind it", meet_text, 1, 64,
		    everybody);
	check_words("lanes wait for one that is further on", spin_text, 1, 32, seven);
	o = run(lane_lock_text, 1, 64, (struct kit_run){ 0 });
	kit_check(is_done(&o) && o.out[0] == 64, "a lock that 64 threads want at once");
}

/* ---- lanes that end before others ---------------------------------------------------------------- */

#define LANE	 "and.b32 %r4, %r0, 31; "
#define END_IF_P "@%p bra END; "

/* How many of a warp go on where five do not. */
static u32 without_five(u32 thread, u32 n_block)
{
	u32 lane = thread % n_block % 32, n_lanes = n_block - (thread % n_block - lane);

	return lane < 5 ? 0 : (n_lanes < 32 ? n_lanes : 32) - 5;
}

static const char few_text[] =
	KERNEL(LANE "setp.lt.u32 %p, %r4, 5; " END_IF_P
		    "activemask.b32 %r5; popc.b32 %r9, %r5; " STORE_R9 "\nEND:");

/* Those that are left wait for each other, and read what the next one but two has written. */
static u32 next_but_two(u32 thread, u32 n_block)
{
	u32 i = thread % n_block;

	return i % 4 ? (i + 4) % n_block * 3 + 1 : 0;
}

static const char few_wait_text[] = ".shared .b32 sh[256];\n" KERNEL(
	"and.b32 %r4, %r0, 3; setp.eq.u32 %p, %r4, 0; " END_IF_P
	"mov.u32 %r5, sh; mad.lo.u32 %r6, %r0, 4, %r5; mad.lo.u32 %r7, %r0, 3, 1;\n"
	"st.shared.u32 [%r6], %r7; bar.sync 0; add.u32 %r7, %r0, 4; rem.u32 %r7, %r7, %r2;\n"
	"mad.lo.u32 %r6, %r7, 4, %r5; ld.shared.u32 %r9, [%r6]; " STORE_R9 "\nEND:");

/* Twice, in a loop, and with what only the interpreter's handlers do. */
static u32 twice(u32 thread, u32 n_block)
{
	u32 lane = thread % n_block % 32, sum = 0;

	for (u32 i = 0; i < 5; i++)
		sum += thread + (0x76543210u >> (4 * (lane & 7)) & 15);
	return lane < 3 || lane > 28 ? 0 : sum;
}

static const char few_twice_text[] = KERNEL(
	LANE "mov.u32 %r9, 0; mov.u32 %r5, 0; setp.lt.u32 %p, %r4, 3; " END_IF_P
	     "setp.gt.u32 %p, %r4, 28; " END_IF_P "and.b32 %r7, %r4, 7; shl.b32 %r7, %r7, 2;\n"
	     "MORE: add.u32 %r9, %r9, %r3; bfe.u32 %r6, 0x76543210, %r7, 4;\n"
	     "add.u32 %r9, %r9, %r6; add.u32 %r5, %r5, 1; setp.lt.u32 %q, %r5, 5;\n"
	     "@%q bra MORE; " STORE_R9 "\nEND:");

static void test_early_ends(void)
{
	struct outcome o = run(few_text, 1, 64, (struct kit_run){ 0 });

	/* Of each warp 32 lanes have 7 instructions, 5 of them 2 more, and the others 5. */
	kit_check(is_done(&o) && o.p.instructions == 2 * (32 * 7 + 5 * 2 + 27 * 5),
		  "%llu instructions where five lanes end before the others",
		  (unsigned long long)o.p.instructions);
	check_words("five lanes end before the others", few_text, 300, 48, without_five);
	check_words("a fourth ends, the others wait at a barrier", few_wait_text, 40, 96,
		    next_but_two);
	check_words("lanes end at two places before the others", few_twice_text, 100, 80, twice);
}

/* ---- blocks ------------------------------------------------------------------------------------- */

/* Block 0 waits for the last one. */
static const char later_text[] = KERNEL(
	"mov.u32 %r4, %nctaid.x; sub.u32 %r4, %r4, 1; mov.u32 %r9, 7;\n"
	"setp.ne.u32 %p, %r1, 0; @%p bra NOTFIRST;\n"
	"WAIT: ld.acquire.gpu.global.u32 %r5, [%x0+32768]; setp.eq.u32 %q, %r5, 0; @%q bra WAIT;\n"
	"bra END;\n"
	"NOTFIRST: setp.ne.u32 %p, %r1, %r4; @%p bra END;\n"
	"st.release.gpu.global.u32 [%x0+32768], 1;\n"
	"END: " STORE_R9);

/* Each block waits for the one before. */
static const char chain_text[] = KERNEL(
	"mul.wide.u32 %x2, %r1, 4; add.u64 %x2, %x0, %x2; setp.eq.u32 %p, %r1, 0; @%p bra LED;\n"
	"WAIT: ld.acquire.gpu.global.u32 %r5, [%x2+32764]; setp.eq.u32 %q, %r5, 0; @%q bra WAIT;\n"
	"LED: st.release.gpu.global.u32 [%x2+32768], 1; mov.u32 %r9, 7; " STORE_R9);

static const char once_text[] =
	KERNEL("mad.wide.u32 %x1, %r3, 4, %x0; red.global.add.u32 [%x1], 7; ");

/* All blocks count, then all see the whole count. */
static const char grid_text[] = KERNEL(
	"bar.sync 0; setp.ne.u32 %p, %r0, 0; @%p bra WAITED;\n"
	"mov.b32 %r4, %envreg1; mov.b32 %r5, %envreg2; mov.b64 %x2, {%r5, %r4}; add.u64 %x2, %x2, 4;\n"
	"mov.u32 %r6, %nctaid.x; sub.u32 %r6, 0x80000001, %r6;\n"
	"setp.eq.u32 %q, %r1, 0; selp.b32 %r6, %r6, 1, %q;\n"
	"membar.gl; atom.global.add.u32 %r7, [%x2], %r6;\n"
	"WAIT: ld.acquire.gpu.global.u32 %r8, [%x2]; xor.b32 %r8, %r8, %r7; setp.ge.s32 %q, %r8, 0;\n"
	"@%q bra WAIT;\n"
	"WAITED: bar.sync 0; mov.u32 %r9, 7; " STORE_R9);

static const char counters_text[] = KERNEL(
	"atom.global.add.u32 %r4, [%x0+32768], 1; red.global.max.u32 [%x0+32772], %r3;\n"
	"atom.global.inc.u32 %r5, [%x0+32776], 99; cvt.rn.f32.u32 %f0, %r0;\n"
	"red.global.add.f32 [%x0+32780], %f0; atom.global.min.s32 %r5, [%x0+32784], -5;\n"
	"cvt.u64.u32 %x3, %r3; red.global.add.u64 [%x0+32792], %x3; red.global.or.b32 [%x0+32800], %r3;\n");

static void test_blocks(void)
{
	struct outcome o;
	f32 sum;
	u64 total;

	check_words("a block waits for one that starts much later", later_text, 64, 32, seven);
	exec_set_workers(5);
	/* Whoever waits while the one before has no CPU carries out any number of instructions. */
	check_sevens("each block waits for the one before", chain_text, 250,
		     (struct kit_run){ .limit = UINT64_MAX });
	check_sevens("each block runs once", once_text, 500, (struct kit_run){ 0 });
	check_sevens("and in slices of a block or two", once_text, 500,
		     (struct kit_run){ .budget = 300 });
	exec_set_workers(0);
	o = run(grid_text, 24, 64, (struct kit_run){ .cooperative = true });
	kit_check(is_done(&o) && o.out[24 * 64 - 1] == 7, "a cooperative grid meets twice");
	o = run(counters_text, 40, 96, (struct kit_run){ 0 });
	memcpy(&sum, &o.out[8195], 4);
	memcpy(&total, &o.out[8198], 8);
	kit_check(is_done(&o) && o.out[8192] == 3840 && o.out[8193] == 3839 && o.out[8194] == 40 &&
			  sum == 40 * 95 * 48 && (s32)o.out[8196] == -5 && total == 3839 * 1920 &&
			  o.out[8200] == 4095,
		  "atomic operations of 3,840 threads in 40 blocks");
	o = run(collatz_text, 64, 128, (struct kit_run){ .budget = 5000 });
	kit_check(is_done(&o) && o.out[8191] == collatz(8191, 0),
		  "in slices of 5,000 instructions");
}

/* ---- barriers ----------------------------------------------------------------------------------- */

static u32 reversed(u32 thread, u32 n_block)
{
	return n_block - 1 - thread % n_block + 1000 * (thread / n_block);
}

static const char reverse_text[] = ".shared .align 4 .b8 buffer[4096];\n" KERNEL(
	"mov.u32 %r4, buffer; mad.lo.u32 %r5, %r0, 4, %r4; mad.lo.u32 %r6, %r1, 1000, %r0;\n"
	"st.shared.u32 [%r5], %r6; bar.sync 0;\n"
	"sub.u32 %r7, %r2, %r0; mad.lo.u32 %r5, %r7, 4, %r4; ld.shared.u32 %r9, [%r5+-4]; " STORE_R9);

static const char dynamic_text[] =
	".extern .shared .align 16 .b8 dynamic[]; .shared .b32 own[3];\n" KERNEL(
		"mov.u32 %r8, own; st.shared.u32 [%r8], 1;\n"
		"mov.u32 %r4, dynamic; mad.lo.u32 %r5, %r0, 4, %r4; mad.lo.u32 %r6, %r1, 1000, %r0;\n"
		"st.shared.u32 [%r5], %r6; bar.sync 0;\n"
		"sub.u32 %r7, %r2, %r0; sub.u32 %r7, %r7, 1; cvt.u64.u32 %x2, %r7; shl.b64 %x2, %x2, 2;\n"
		"cvt.u64.u32 %x3, %r4; cvta.shared.u64 %x4, %x3; add.u64 %x4, %x4, %x2;\n"
		"ld.u32 %r9, [%x4]; " STORE_R9);

static const char element_text[] = ".shared .b32 own[3];\n" KERNEL(
	"mov.u32 %r4, own; mov.u32 %r5, own[2]; st.shared.u32 own[1], 7; bar.sync 0;\n"
	"ld.shared.u32 %r9, [%r4+4]; sub.u32 %r5, %r5, %r4; add.u32 %r9, %r9, %r5; " STORE_R9);

static u32 seven_and_two_words(_unused_ u32 thread, _unused_ u32 n_block)
{
	return 7 + 8;
}

/* Producers (the first two warps) arrive, consumers wait for 128 threads. */
static const char named_text[] = ".shared .b32 box[64];\n" KERNEL(
	"mov.u32 %r4, box; setp.ge.u32 %p, %r0, 64; @%p bra CONSUME;\n"
	"mad.lo.u32 %r5, %r0, 4, %r4; add.u32 %r6, %r0, 100; st.shared.u32 [%r5], %r6;\n"
	"bar.arrive 1, 128; mov.u32 %r9, 0; bra END;\n"
	"CONSUME: bar.sync 1, 128; sub.u32 %r5, %r0, 64; mad.lo.u32 %r5, %r5, 4, %r4;\n"
	"ld.shared.u32 %r9, [%r5];\n"
	"END: " STORE_R9);

static u32 consumed(u32 thread, _unused_ u32 n_block)
{
	return thread < 64 ? 0 : thread - 64 + 100;
}

static const char reduce_text[] =
	KERNEL("setp.lt.u32 %p, %r0, 50; bar.red.popc.u32 %r9, 0, %p; bar.red.or.pred %q, 0, !%p;\n"
	       "selp.b32 %r4, 1000, 0, %q; add.u32 %r9, %r9, %r4; bar.red.and.pred %q, 0, %p;\n"
	       "selp.b32 %r4, 5000, 0, %q; add.u32 %r9, %r9, %r4; " STORE_R9);

static u32 reduced(_unused_ u32 thread, _unused_ u32 n_block)
{
	return 1050;
}

/* Threads that have ended are not waited for. */
static const char ended_text[] =
	KERNEL("setp.lt.u32 %p, %r0, 40; @%p exit; bar.sync 0; mov.u32 %r9, 7; " STORE_R9);

static void test_barriers(void)
{
	struct outcome o;

	check_words("shared memory turned around, blocks of 96", reverse_text, 4, 96, reversed);
	check_words("an array's element by its number", element_text, 1, 32, seven_and_two_words);
	check_words("named barriers: producers arrive, consumers wait", named_text, 1, 128,
		    consumed);
	check_words("bar.red: popc, or, and", reduce_text, 1, 96, reduced);
	o = run(ended_text, 1, 96, (struct kit_run){ 0 });
	kit_check(is_done(&o) && o.out[95] == 7 && o.out[0] == 0,
		  "a barrier without those that ended");
	o = run(dynamic_text, 3, 64, (struct kit_run){ .shared = 256 });
	kit_check(is_done(&o) && o.out[64] == 1063, "dynamic shared memory, by a generic address");
	o = run(KERNEL("setp.lt.u32 %p, %r0, 16; @%p bar.sync 1, 64;"), 1, 32,
		(struct kit_run){ .limit = 1000000 });
	kit_check(!o.p.done && o.p.stalled, "a barrier that nobody completes hangs, and says so");
	o = run(ended_text, 1, 96, (struct kit_run){ .wall_ns = 1 });
	kit_check(is_done(&o), "a slice whose time is over when it begins does not look hung");
}

/* ---- warps -------------------------------------------------------------------------------------- */

static u32 warp_sum(u32 thread, _unused_ u32 n_block)
{
	return 496 + thread / 32 * 1024;
}

static const char shfl_text[] =
	KERNEL("mov.u32 %r9, %r3;\n"
	       "shfl.sync.bfly.b32 %r4|%p, %r9, 16, 31, -1; add.u32 %r9, %r9, %r4;\n"
	       "shfl.sync.bfly.b32 %r4, %r9, 8, 31, -1; add.u32 %r9, %r9, %r4;\n"
	       "shfl.sync.bfly.b32 %r4, %r9, 4, 31, -1; add.u32 %r9, %r9, %r4;\n"
	       "shfl.sync.bfly.b32 %r4, %r9, 2, 31, -1; add.u32 %r9, %r9, %r4;\n"
	       "shfl.sync.bfly.b32 %r4, %r9, 1, 31, -1; add.u32 %r9, %r9, %r4; " STORE_R9);

static u32 up_down(u32 thread, _unused_ u32 n_block)
{
	u32 lane = thread % 32;

	return (lane < 3 ? lane : lane - 3) + 100 * (lane + 4 > 31 ? lane : lane + 4) +
	       (lane >= 3 ? 10000 : 0) + 100000 * (lane / 8 * 8 + 5);
}

static const char up_down_text[] = KERNEL(
	"mov.u32 %r4, %laneid; shfl.sync.up.b32 %r5|%p, %r4, 3, 0, -1;\n"
	"shfl.sync.down.b32 %r6|%q, %r4, 4, 31, -1; mad.lo.u32 %r9, %r6, 100, %r5;\n"
	"selp.b32 %r7, 10000, 0, %p; add.u32 %r9, %r9, %r7;\n"
	"shfl.sync.idx.b32 %r8, %r4, 5, 0x181f, -1; mad.lo.u32 %r9, %r8, 100000, %r9; " STORE_R9);

/* Both halves of the warp come to the same exchange on different ways. */
static const char apart_text[] =
	KERNEL("mov.u32 %r4, %laneid; setp.lt.u32 %p, %r4, 16; @%p bra LOW;\n"
	       "add.u32 %r5, %r4, 100; shfl.sync.bfly.b32 %r9, %r5, 16, 31, -1; bra END;\n"
	       "LOW: mul.lo.u32 %r5, %r4, 2; shfl.sync.bfly.b32 %r9, %r5, 16, 31, -1;\n"
	       "END: bar.warp.sync -1; " STORE_R9);

static u32 apart(u32 thread, _unused_ u32 n_block)
{
	u32 lane = thread % 32;

	return lane < 16 ? lane + 16 + 100 : (lane - 16) * 2;
}

static u32 voted(u32 thread, _unused_ u32 n_block)
{
	return (thread % 32 < 20 ? 0x000fffff : 0xfff00000) ^ 1;
}

/* Halves name only themselves. */
static const char vote_text[] = KERNEL(
	"mov.u32 %r4, %laneid; setp.lt.u32 %p, %r4, 20; @%p bra LOW;\n"
	"vote.sync.ballot.b32 %r9, !%p, 0xfff00000; vote.sync.all.pred %q, !%p, 0xfff00000; bra END;\n"
	"LOW: vote.sync.ballot.b32 %r9, %p, 0x000fffff; vote.sync.any.pred %q, %p, 0x000fffff;\n"
	"END: selp.b32 %r5, 1, 0, %q; xor.b32 %r9, %r9, %r5; " STORE_R9);

static u32 matched(u32 thread, _unused_ u32 n_block)
{
	return (0x11111111u << thread % 4) + 112;
}

static const char match_text[] = KERNEL(
	"and.b32 %r4, %r3, 3; match.any.sync.b32 %r9, %r4, -1; cvt.u64.u32 %x2, %r4;\n"
	"match.all.sync.b64 %r5|%p, %x2, -1; selp.b32 %r6, 1, 0, %p; add.u32 %r9, %r9, %r5;\n"
	"add.u32 %r9, %r9, %r6; redux.sync.add.s32 %r7, %r4, -1; redux.sync.max.s32 %r8, %r7, -1;\n"
	"add.u32 %r9, %r9, %r8; redux.sync.add.u32 %r7, 2, -1; add.u32 %r9, %r9, %r7; " STORE_R9);

/* Groups of one instruction that name different members. */
static const char groups_text[] = KERNEL(
	"and.b32 %r4, %r3, 3; shl.b32 %r5, 0x11111111, %r4; redux.sync.add.u32 %r9, %r3, %r5; " STORE_R9);

static u32 grouped(u32 thread, _unused_ u32 n_block)
{
	return 8 * (thread % 4) + 4 * 28 + thread / 32 * 256;
}

static void test_warps(void)
{
	check_words("shfl.bfly sums a warp", shfl_text, 1, 64, warp_sum);
	check_words("shfl up, down, and idx in segments", up_down_text, 1, 64, up_down);
	check_words("shfl between lanes that come on different ways", apart_text, 1, 64, apart);
	check_words("votes of a part of the warp", vote_text, 1, 64, voted);
	check_words("match and redux", match_text, 1, 64, matched);
	check_words("groups that name different members", groups_text, 1, 64, grouped);
}

/* ---- asynchronous copies ------------------------------------------------------------------------- */

/* Of 16 bytes each thread reads its number modulo 17; the rest is zeros. All bits are set before. */
static const char copy_text[] = ".shared .align 16 .b8 room[1024];\n" KERNEL(
	"mov.u32 %r4, room; mad.lo.u32 %r4, %r0, 16, %r4; mov.u64 %x2, -1;\n"
	"st.shared.u64 [%r4], %x2; st.shared.u64 [%r4+8], %x2; st.global.u64 [%x0+32768], %x2;\n"
	"st.global.u64 [%x0+32776], %x2; rem.u32 %r5, %r0, 17;\n"
	"cp.async.cg.shared.global [%r4], [%x0+32768], 16, %r5; cp.async.commit_group;\n"
	"cp.async.wait_group 0; bar.sync 0; ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r4];\n"
	"popc.b32 %r9, %r5; popc.b32 %r6, %r6; popc.b32 %r7, %r7; popc.b32 %r8, %r8;\n"
	"add.u32 %r9, %r9, %r6; add.u32 %r9, %r9, %r7; add.u32 %r9, %r9, %r8; " STORE_R9);

static u32 copied(u32 thread, _unused_ u32 n_block)
{
	return 8 * (thread % 17);
}

/* Threads of even number ignore their source, which is nowhere. */
static const char ignore_text[] = ".shared .align 16 .b8 room[1024];\n" KERNEL(
	"mov.u32 %r4, room; mad.lo.u32 %r4, %r0, 4, %r4; st.shared.u32 [%r4], 5;\n"
	"and.b32 %r5, %r0, 1; setp.eq.u32 %p, %r5, 0; st.global.u32 [%x0+32768], 7;\n"
	"add.u64 %x2, %x0, 32768; selp.b64 %x2, 4, %x2, %p;\n"
	"cp.async.ca.shared.global [%r4], [%x2], 4, %p; cp.async.wait_all;\n"
	"ld.shared.u32 %r9, [%r4]; " STORE_R9);

static u32 odd_ones(u32 thread, _unused_ u32 n_block)
{
	return thread % 2 ? 7 : 0;
}

static void test_copies(void)
{
	check_words("cp.async fills up with zeros", copy_text, 1, 64, copied);
	check_words("cp.async ignores its source", ignore_text, 1, 64, odd_ones);
}

/* ---- calls -------------------------------------------------------------------------------------- */

static u32 fibonacci(u32 thread, _unused_ u32 n_block)
{
	u32 a = 0, b = 1;

	for (u32 i = 0; i < thread % 12; i++) {
		u32 next = a + b;

		a = b;
		b = next;
	}
	return a;
}

static const char fibonacci_text[] =
	".func (.param .b32 result) fib(.param .b32 n)\n{\n"
	".reg .b32 %r<6>; .reg .pred %p; ld.param.u32 %r1, [n]; setp.lt.u32 %p, %r1, 2; @%p bra SMALL;\n"
	"sub.u32 %r2, %r1, 1;\n"
	"{ .param .b32 arg; .param .b32 ret; st.param.b32 [arg], %r2; call.uni (ret), fib, (arg); "
	"ld.param.b32 %r3, [ret]; }\n"
	"sub.u32 %r2, %r1, 2;\n"
	"{ .param .b32 arg; .param .b32 ret; st.param.b32 [arg], %r2; call.uni (ret), fib, (arg); "
	"ld.param.b32 %r4, [ret]; }\n"
	"add.u32 %r1, %r3, %r4;\n"
	"SMALL: st.param.b32 [result], %r1; ret;\n}\n" KERNEL(
		"rem.u32 %r4, %r3, 12;\n"
		"{ .param .b32 arg; .param .b32 ret; st.param.b32 [arg], %r4; call.uni (ret), fib, (arg); "
		"ld.param.b32 %r9, [ret]; } " STORE_R9);

static u32 indirect(u32 thread, _unused_ u32 n_block)
{
	return thread % 2 ? thread * 3 : thread + 1000;
}

static const char indirect_text[] =
	".func (.reg .b32 %o) triple(.reg .b32 %i)\n{\nmul.lo.u32 %o, %i, 3; ret;\n}\n"
	".func (.reg .b32 %o) more(.reg .b32 %i)\n{\nadd.u32 %o, %i, 1000; ret;\n}\n"
	".global .u64 functions[2] = { more, triple };\n" KERNEL(
		"and.b32 %r4, %r3, 1; mov.u64 %x2, functions; mad.wide.u32 %x2, %r4, 8, %x2;\n"
		"ld.global.u64 %x3, [%x2];\n"
		"PROTO: .callprototype (.reg .b32 _) _ (.reg .b32 _);\n"
		"call (%r9), %x3, (%r3), PROTO; " STORE_R9);

static const char deep_text[] =
	".func deep()\n{\n.local .b8 room[1024]; .reg .b64 %x;\n"
	"mov.u64 %x, room; st.local.u32 [%x], 1; call deep, (); ret;\n}\n" KERNEL("call deep, ();");

static const char local_text[] = KERNEL(
	".local .align 8 .b8 depot[64]; mov.u64 %x2, depot; cvta.local.u64 %x3, %x2; and.b32 %r4, %r3, 15;\n"
	"mad.wide.u32 %x4, %r4, 4, %x3; st.u32 [%x4], %r3; mad.wide.u32 %x4, %r4, 4, %x2;\n"
	"ld.local.u32 %r9, [%x4]; isspacep.local %p, %x3; @!%p mov.u32 %r9, 77; " STORE_R9);

static u32 itself(u32 thread, _unused_ u32 n_block)
{
	return thread;
}

static const char const_text[] = ".const .align 4 .u32 numbers[4] = { 5, 6, 7, 8 };\n" KERNEL(
	"mov.u64 %x2, numbers; and.b32 %r4, %r3, 3; mad.wide.u32 %x2, %r4, 4, %x2;\n"
	"ld.const.u32 %r9, [%x2]; sub.u32 %r9, %r9, 5; sub.u32 %r5, %r3, %r4; add.u32 %r9, %r9, %r5; " STORE_R9);

/* %p ends before the first carry and shares its place; %q has to live through the second. */
static const char carry_text[] = KERNEL(
	"setp.eq.u32 %p, %r3, 5; selp.u32 %r9, 2, 1, %p; add.cc.u32 %r4, %r3, -1; addc.u32 %r5, 0, 0;\n"
	"setp.ne.u32 %q, %r3, 0; sub.cc.u32 %r4, %r3, 0; subc.u32 %r6, 0, 0;\n"
	"selp.u32 %r7, 10, 20, %q; add.u32 %r9, %r9, %r5; add.u32 %r9, %r9, %r6; add.u32 %r9, %r9, %r7;" STORE_R9);

static u32 carry(u32 thread, u32 n_block)
{
	(void)n_block;
	return (thread == 5 ? 2 : 1) + (thread ? 1 + 10 : 20);
}

static void test_calls(void)
{
	struct outcome o;

	check_words("recursion: Fibonacci numbers, each thread its own", fibonacci_text, 1, 48,
		    fibonacci);
	check_words("calls by address, from a table, diverging", indirect_text, 1, 64, indirect);
	check_words("local memory, by both its addresses", local_text, 2, 64, itself);
	check_words("predicates beside the carry flag", carry_text, 1, 64, carry);
	check_words("constants by index", const_text, 1, 64, itself);
	o = run(deep_text, 2, 64, (struct kit_run){ 0 });
	kit_check(o.p.fault == EXEC_FAULT_STACK, "runaway recursion is a fault (%s)", o.p.message);
	kit_check(*kit_refusal(KERNEL(".local .b8 huge[600000]; mov.u64 %x2, huge;")),
		  "more local memory than there is is refused");
	kit_check(strstr(kit_refusal(".extern .func nobody();\n" KERNEL("call nobody, ();")),
			 "nobody is declared and nowhere defined"),
		  "a function that is nowhere is refused by its name");
}

/* ---- ends --------------------------------------------------------------------------------------- */

static const char print_text[] =
	/* "%d %s %5.2f %lld %c%% %*d|\n" and "word" */
	".global .align 1 .b8 format[] = { 37, 100, 32, 37, 115, 32, "
	"37, 53, 46, 50, 102, 32, 37, 108, 108, 100, 32, 37, 99, 37, 37, "
	"32, 37, 42, 100, 124, 10, 0 };\n"
	".global .align 1 .b8 word[] = { 119, 111, 114, 100, 0 };\n"
	".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n" KERNEL(
		".local .align 8 .b8 args[48]; mov.u64 %x2, args; st.local.u32 [%x2], -5; mov.u64 %x3, word;\n"
		"st.local.u64 [%x2+8], %x3; mov.f64 %x4, 0d400921FB54442D18; st.local.u64 [%x2+16], %x4;\n"
		"st.local.u64 [%x2+24], -1234567890123; st.local.u32 [%x2+32], 65; st.local.u32 [%x2+36], -4;\n"
		"st.local.u32 [%x2+40], 7; cvta.local.u64 %x2, %x2; mov.u64 %x5, format;\n"
		"{ .param .b64 f; .param .b64 a; .param .b32 r; st.param.b64 [f], %x5; st.param.b64 [a], %x2;\n"
		"call.uni (r), vprintf, (f, a); ld.param.b32 %r9, [r]; } " STORE_R9);

static const char nested_text[] =
	".extern .func (.param .b32 r) cnpGetLastError();\n"
	".func nested()\n{\n{ .param .b32 r; call.uni (r), cnpGetLastError, (); }\nret;\n}\n" KERNEL(
		"setp.ne.u32 %p, %r0, 0; @%p call nested, (); mov.u32 %r9, 7; " STORE_R9);

/* Only who comes there is refused. */
static void test_nested(void)
{
	struct outcome o = run(nested_text, 1, 1, (struct kit_run){ 0 });

	kit_check(is_done(&o) && o.out[0] == 7, "a kernel runs that could launch others");
	o = run(nested_text, 1, 2, (struct kit_run){ 0 });
	kit_check(o.p.done && o.p.fault == EXEC_FAULT_TRAP &&
			  strstr(o.p.message, "cnpGetLastError"),
		  "one that does is refused by name: %s", o.p.message);
}

static void check_fault(const char *what, const char *body, int fault)
{
	struct outcome o = run(body, 2, 64, (struct kit_run){ 0 });

	kit_check(o.p.done && o.p.fault == fault, "%s: %d (%s)", what, o.p.fault, o.p.message);
}

static void test_ends(void)
{
	struct outcome o;

	check_fault("a store to address 0", KERNEL("mov.u64 %x2, 0; st.global.u32 [%x2], 1;"),
		    EXEC_FAULT_ADDRESS);
	check_fault("a load far away", KERNEL("mov.u64 %x2, 0x7fff12345678; ld.u32 %r4, [%x2];"),
		    EXEC_FAULT_ADDRESS);
	check_fault("a generic address with all bits",
		    KERNEL("mov.u64 %x2, -8; ld.u64 %x3, [%x2];"), EXEC_FAULT_ADDRESS);
	check_fault("past the end of shared memory",
		    KERNEL("mov.u32 %r4, 60000; ld.shared.u32 %r5, [%r4];"), EXEC_FAULT_ADDRESS);
	check_fault("a misaligned load", KERNEL("ld.global.u32 %r4, [%x0+2];"),
		    EXEC_FAULT_MISALIGNED);
	check_fault("trap", KERNEL("trap;"), EXEC_FAULT_TRAP);
	check_fault("a call to a number",
		    KERNEL("mov.u64 %x2, 12345;\nP: .callprototype _ ();\n"
			   "call %x2, (), P;"),
		    EXEC_FAULT_PC);
	test_nested();
	o = run(print_text, 1, 1, (struct kit_run){ 0 });
	kit_check(!strcmp(kit_printed(), "-5 word  3.14 -1234567890123 A% 7   |\n") &&
			  o.out[0] == 6,
		  "vprintf");
	o = run(KERNEL("nanosleep.u32 200000; mov.u32 %r9, 7; " STORE_R9), 1, 32,
		(struct kit_run){ 0 });
	kit_check(is_done(&o) && o.out[31] == 7, "nanosleep ends");
}

int main(void)
{
	kit_init();
	test_divergence();
	test_early_ends();
	test_blocks();
	test_barriers();
	test_warps();
	test_copies();
	test_calls();
	test_ends();
	return kit_result();
}
