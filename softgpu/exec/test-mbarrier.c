/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barriers that lie in shared memory.
 */
#include <string.h>

#include "softgpu/exec/test-kit.h"

#define N_WORDS 1024

/* %r0 is the thread, %r1 the barrier's address; %r9 is the result of each thread. */
#define KERNEL(body)                                                                               \
	".shared .align 16 .b8 room[1024];\n.visible .entry k(.param .u64 out)\n{\n"               \
	".reg .pred %p, %q; .reg .b32 %r<10>; .reg .b64 %x<10>;\n"                                 \
	"ld.param.u64 %x0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, room;\n" body                  \
	"\nEND: mad.wide.u32 %x1, %r0, 4, %x0; st.global.u32 [%x1], %r9; ret;\n}\n"

/* The first thread makes a barrier for @count arrivals. */
#define INIT(count)                                                                                \
	"setp.ne.u32 %p, %r0, 0; @%p bra MADE; mbarrier.init.shared.b64 [%r1], " count ";\n"       \
	"MADE: bar.sync 0;\n"

/* None of these kernels needs a million instructions. */
static struct exec_progress run(const char *text, u32 n_threads, u32 **ret)
{
	struct exec_image *image = kit_image(text);
	u32 *out = kit_alloc(N_WORDS * sizeof(*out));
	struct exec_progress p = kit_run(&(struct kit_run){
		.image = image,
		.block = n_threads,
		.params = { (u64)(uintptr_t)out },
		.limit = 1 << 20,
	});

	exec_image_free(image);
	*ret = out;
	return p;
}

static void check(const char *what, const char *text, u32 n_threads, u32 (*expected)(u32 thread))
{
	u32 n_wrong = 0, *out;
	struct exec_progress p = run(text, n_threads, &out);

	for (u32 i = 0; i < n_threads; i++)
		n_wrong += out[i] != expected(i);
	kit_check(p.done && !p.fault && !n_wrong, "%s: %u of %u wrong %s", what, n_wrong, n_threads,
		  p.message);
	kit_reset();
}

/* Three times round: each thread writes its word, arrives, waits, and reads the next one's. */
static const char rounds_text[] = KERNEL(INIT(
	"96") "mad.lo.u32 %r2, %r0, 4, %r1; add.u32 %r3, %r0, 1; rem.u32 %r3, %r3, 96;\n"
	      "mad.lo.u32 %r3, %r3, 4, %r1; mov.u32 %r9, 0; mov.u32 %r4, 0;\n"
	      "ROUND: mad.lo.u32 %r5, %r4, 1000, %r0; st.shared.u32 [%r2+16], %r5;\n"
	      "mbarrier.arrive.shared.b64 %x2, [%r1];\n"
	      "W1: mbarrier.test_wait.shared.b64 %p, [%r1], %x2; @!%p bra W1;\n"
	      "ld.shared.u32 %r5, [%r3+16]; add.u32 %r9, %r9, %r5;\n"
	      "mbarrier.arrive.release.cta.shared::cta.b64 %x2, [%r1], 1;\n"
	      "W2: mbarrier.try_wait.acquire.cta.shared::cta.b64 %p, [%r1], %x2, 1000; @!%p bra W2;\n"
	      "add.u32 %r4, %r4, 1; setp.lt.u32 %p, %r4, 3; @%p bra ROUND;\n");

static u32 three_rounds(u32 thread)
{
	return 3000 + 3 * ((thread + 1) % 96);
}

/* Half of a warp makes what the other half waits for, by the parity of the phase, four times. */
static const char parity_text[] = KERNEL("st.shared.u32 [%r1+16], 0;\n" INIT(
	"16") "mov.u32 %r4, 0; mov.u32 %r9, 0; setp.ge.u32 %q, %r0, 16;\n"
	      "LOOP: @%q bra CONSUME; atom.shared.add.u32 %r5, [%r1+16], 1;\n"
	      "mbarrier.arrive.shared.b64 _, [%r1];\n"
	      "CONSUME: and.b32 %r6, %r4, 1;\n"
	      "WAIT: mbarrier.try_wait.parity.shared.b64 %p, [%r1], %r6; @!%p bra WAIT;\n"
	      "ld.volatile.shared.u32 %r5, [%r1+16]; max.u32 %r9, %r9, %r5; bar.sync 1;\n"
	      "add.u32 %r4, %r4, 1; setp.lt.u32 %p, %r4, 4; @%p bra LOOP;\n");

static u32 four_times_sixteen(_unused_ u32 thread)
{
	return 64;
}

/* What is pending before each arrival, and whether a phase has ended, of one thread: a digit each. */
#define PENDING "mbarrier.pending_count.b64 %r2, %x2; mad.lo.u32 %r9, %r9, 10, %r2;\n"
#define ENDED                                                                                      \
	"mbarrier.test_wait.shared.b64 %p, [%r1], %x2; selp.u32 %r2, 1, 0, %p; "                   \
	"mad.lo.u32 %r9, %r9, 10, %r2;\n"
static const char counts_text[] =
	KERNEL("mov.u32 %r9, 0; mbarrier.init.shared.b64 [%r1], 5;\n"
	       "mbarrier.arrive.noComplete.shared.b64 %x2, [%r1], 3;\n" PENDING ENDED
	       "mbarrier.arrive_drop.shared.b64 %x2, [%r1];\n" PENDING ENDED
	       "mbarrier.arrive.shared.b64 %x2, [%r1];\n" PENDING ENDED
	       /* One less is expected now. */
	       "mbarrier.arrive.release.cta.shared.b64 %x2, [%r1], 4;\n" PENDING ENDED
	       "mbarrier.inval.shared.b64 [%r1];\n");

static u32 counted(_unused_ u32 thread)
{
	return 50201141;
}

/* A generic address; copies that arrive by themselves, counted before and not. */
static const char copies_text[] = KERNEL(
	"mov.u32 %r9, 0; cvt.u64.u32 %x3, %r1; cvta.shared.u64 %x3, %x3;\n"
	"mbarrier.init.b64 [%x3], 2; cp.async.mbarrier.arrive.shared.b64 [%r1];\n"
	"mbarrier.arrive.b64 %x2, [%x3];\n" PENDING
	"cp.async.mbarrier.arrive.noinc.b64 [%x3]; fence.mbarrier_init.release.cluster;\n" ENDED);

static u32 copied(_unused_ u32 thread)
{
	return 21;
}

static void check_fault(const char *what, const char *text, int fault)
{
	u32 *out;
	struct exec_progress p = run(text, 1, &out);

	kit_check(p.done && p.fault == fault, "%s: %d (%s)", what, p.fault, p.message);
	kit_reset();
}

int main(void)
{
	u32 *out;

	kit_init();
	check("three rounds of 96 threads", rounds_text, 96, three_rounds);
	check("phases by their parity, in a warp that diverges", parity_text, 32,
	      four_times_sixteen);
	check("counts of pending and dropped arrivals", counts_text, 1, counted);
	check("copies that arrive", copies_text, 1, copied);
	check_fault("a barrier in global memory", KERNEL("mbarrier.init.b64 [%x0], 1;"),
		    EXEC_FAULT_ADDRESS);
	check_fault("a misaligned one", KERNEL("mbarrier.init.shared.b64 [%r1+4], 1;"),
		    EXEC_FAULT_MISALIGNED);
	check_fault("one past the end", KERNEL("mbarrier.inval.shared.b64 [%r1+1024];"),
		    EXEC_FAULT_ADDRESS);
	kit_check(
		!run(KERNEL(INIT(
			     "2") "mbarrier.arrive.shared.b64 %x2, [%r1];\n"
				  "W: mbarrier.try_wait.shared.b64 %p, [%r1], %x2; @!%p bra W;\n"),
		     1, &out)
			 .done,
		"an arrival that does not come is waited for");
	return kit_result();
}
