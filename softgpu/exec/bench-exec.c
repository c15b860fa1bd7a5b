/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many PTX instructions of threads are executed a second, by one worker
 * and by two: bench-exec
 *
 * "a CPU" is the same by the time that the process had a CPU: what the
 * machine could do if nothing else ran on it. Beside them stand the goals of
 * the software GPU; a figure that misses one is marked.
 *
 * Two CPUs are not always worth two: they may share a core, or its clock. So
 * the arithmetic is measured in plain C as well, by one thread and by two that
 * have nothing to do with each other, and what kernels gain by the second
 * worker is printed as a part of what C gains.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "softgpu/exec/test-kit.h"

#define GOAL_MILLION 100.0 /* instructions a second, one worker */
#define GOAL_GAIN    1.8   /* two workers against one */
#define REPEATS	     3	   /* of which the best counts */
#define BLOCKS	     64
#define BLOCK_BYTES  32768 /* of global memory */

/* Integer and float arithmetic in registers, a loop around it. */
static const char arithmetic[] =
	".visible .entry k(.param .u64 out, .param .u64 n)\n{\n"
	".reg .pred %p; .reg .b32 %r<8>; .reg .b64 %x<3>; .reg .f32 %f<4>;\n"
	"ld.param.u64 %x0, [out]; ld.param.u32 %r1, [n]; mov.u32 %r0, %tid.x;\n"
	"cvt.rn.f32.u32 %f0, %r0; mov.f32 %f1, 0f3F800001; mov.u32 %r2, %r0;\n"
	"L: fma.rn.f32 %f0, %f0, %f1, 0f3F000000; mul.f32 %f2, %f0, %f0; add.f32 %f1, %f1, 0f33800000;\n"
	"mad.lo.s32 %r2, %r2, 1664525, 1013904223; shr.u32 %r3, %r2, 9; xor.b32 %r4, %r3, %r0;\n"
	"add.s32 %r0, %r4, 1; sub.s32 %r1, %r1, 1; setp.ne.s32 %p, %r1, 0; @%p bra L;\n"
	"mov.u32 %r5, %tid.x; mad.wide.u32 %x1, %r5, 4, %x0; st.global.u32 [%x1], %r0; ret;\n}\n";

/* The inner loop of a tiled matrix product: two loads from shared memory for each fma. */
static const char tiles[] =
	".shared .align 4 .b8 a[4096]; .shared .align 4 .b8 b[4096];\n"
	".visible .entry k(.param .u64 out, .param .u64 n)\n{\n"
	".reg .pred %p; .reg .b32 %r<12>; .reg .b64 %x<3>; .reg .f32 %f<8>;\n"
	"ld.param.u64 %x0, [out]; ld.param.u32 %r1, [n]; mov.u32 %r0, %tid.x;\n"
	"mov.u32 %r2, a; mov.u32 %r3, b; and.b32 %r4, %r0, 31; shr.u32 %r5, %r0, 5;\n"
	"mad.lo.u32 %r6, %r0, 4, %r2; st.shared.u32 [%r6], %r0; mad.lo.u32 %r6, %r0, 4, %r3;\n"
	"st.shared.u32 [%r6], %r0; mov.f32 %f0, 0f00000000;\n"
	"L: bar.sync 0; mad.lo.u32 %r7, %r5, 128, %r2; mad.lo.u32 %r8, %r4, 4, %r3;\n"
	"ld.shared.f32 %f1, [%r7]; ld.shared.f32 %f2, [%r8]; fma.rn.f32 %f0, %f1, %f2, %f0;\n"
	"ld.shared.f32 %f1, [%r7+4]; ld.shared.f32 %f2, [%r8+128]; fma.rn.f32 %f0, %f1, %f2, %f0;\n"
	"ld.shared.f32 %f1, [%r7+8]; ld.shared.f32 %f2, [%r8+256]; fma.rn.f32 %f0, %f1, %f2, %f0;\n"
	"ld.shared.f32 %f1, [%r7+12]; ld.shared.f32 %f2, [%r8+384]; fma.rn.f32 %f0, %f1, %f2, %f0;\n"
	"sub.s32 %r1, %r1, 1; setp.ne.s32 %p, %r1, 0; @%p bra L;\n"
	"mad.wide.u32 %x1, %r0, 4, %x0; st.global.f32 [%x1], %f0; ret;\n}\n";

/* Neighbours from global memory, each a coalesced load, in double; a block has 32 KiB of its own. */
static const char stream[] =
	".visible .entry k(.param .u64 out, .param .u64 n)\n{\n"
	".reg .pred %p; .reg .b32 %r<4>; .reg .b64 %x<4>; .reg .f64 %d<8>;\n"
	"ld.param.u64 %x0, [out]; ld.param.u32 %r1, [n]; mov.u32 %r0, %tid.x; mov.u32 %r2, %ctaid.x;\n"
	"mad.wide.u32 %x0, %r2, 32768, %x0; mad.wide.u32 %x1, %r0, 8, %x0; mov.f64 %d0, 0d3FF0000000000000;\n"
	"L: ld.global.f64 %d1, [%x1]; ld.global.f64 %d2, [%x1+8]; add.f64 %d3, %d1, %d2;\n"
	"fma.rn.f64 %d0, %d3, 0d3FE0000000000000, %d0; add.s64 %x1, %x1, 8; st.global.f64 [%x1], %d0;\n"
	"sub.s32 %r1, %r1, 1; setp.ne.s32 %p, %r1, 0; @%p bra L; ret;\n}\n";

/* Threads that leave a loop each at its own time, and branch inside it. */
static const char divergent[] =
	".visible .entry k(.param .u64 out, .param .u64 n)\n{\n"
	".reg .pred %p, %q; .reg .b32 %r<8>; .reg .b64 %x<3>;\n"
	"ld.param.u64 %x0, [out]; ld.param.u32 %r1, [n]; mov.u32 %r0, %tid.x;\n"
	"R: add.u32 %r4, %r0, %r1; mov.u32 %r2, 0;\n"
	"L: and.b32 %r5, %r4, 1; setp.eq.u32 %q, %r5, 0; @%q bra EVEN;\n"
	"mad.lo.u32 %r4, %r4, 3, 1; bra NEXT;\n"
	"EVEN: shr.u32 %r4, %r4, 1;\n"
	"NEXT: add.u32 %r2, %r2, 1; setp.gt.u32 %p, %r4, 1; @%p bra L;\n"
	"sub.s32 %r1, %r1, 1; setp.ne.s32 %p, %r1, 0; @%p bra R;\n"
	"mad.wide.u32 %x1, %r0, 4, %x0; st.global.u32 [%x1], %r2; ret;\n}\n";

static f64 now_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (f64)t.tv_sec + (f64)t.tv_nsec * 1e-9;
}

/* Million instructions of threads, by the wall clock's second and the CPU's. */
struct speed {
	f64 wall, cpu;
};

struct stopwatch {
	f64 wall, cpu;
};

static struct stopwatch start(void)
{
	return (struct stopwatch){ now_s(CLOCK_MONOTONIC), now_s(CLOCK_PROCESS_CPUTIME_ID) };
}

static struct speed stop(const struct stopwatch *since, f64 instructions)
{
	f64 wall = now_s(CLOCK_MONOTONIC) - since->wall;
	f64 cpu = now_s(CLOCK_PROCESS_CPUTIME_ID) - since->cpu;

	return (struct speed){ instructions / wall * 1e-6, instructions / cpu * 1e-6 };
}

static struct speed better(struct speed a, struct speed b)
{
	return (struct speed){ a.wall > b.wall ? a.wall : b.wall, a.cpu > b.cpu ? a.cpu : b.cpu };
}

static struct speed measure(const char *text, u32 rounds, u32 workers)
{
	struct kit_run run = { .grid = BLOCKS, .block = 256, .params = { 0, rounds } };
	struct stopwatch watch;
	struct exec_progress p;
	struct speed speed;

	kit_reset();
	run.image = kit_image(text);
	run.params[0] = (u64)(uintptr_t)kit_alloc(BLOCKS * BLOCK_BYTES);
	exec_set_workers(workers);
	watch = start();
	p = kit_run(&run);
	speed = stop(&watch, (f64)p.instructions);
	exec_image_free(run.image);
	return speed;
}

/* ---- plain C ------------------------------------------------------------------------------------ */

#define PLAIN_ROUNDS 20000
#define PLAIN_PIECES 64
#define PLAIN_OPS    7 /* of a round and lane */

struct registers {
	f32 f0[LANES], f1[LANES], f2[LANES];
	u32 r0[LANES], r2[LANES], r3[LANES], r4[LANES];
};

/* The kernel's loop over the registers of a warp, which stay in memory as the interpreter's do. */
#define STEP(line)                                                                                 \
	LANE_LOOP line;                                                                            \
	__asm__ volatile("" ::: "memory")
#define PLAIN(name, attribute)                                                                     \
	attribute static void name(struct registers *v)                                            \
	{                                                                                          \
		for (u32 i = 0; i < PLAIN_ROUNDS; i++) {                                           \
			STEP(v->f0[l] = v->f0[l] * v->f1[l] + 0.5f);                               \
			STEP(v->f2[l] = v->f0[l] * v->f0[l]);                                      \
			STEP(v->f1[l] = v->f1[l] + 0x1p-24f);                                      \
			STEP(v->r2[l] = v->r2[l] * 1664525 + 1013904223);                          \
			STEP(v->r3[l] = v->r2[l] >> 9);                                            \
			STEP(v->r4[l] = v->r3[l] ^ v->r0[l]);                                      \
			STEP(v->r0[l] = v->r4[l] + 1);                                             \
		}                                                                                  \
	}
/* clang-format off */
PLAIN(plain_base, )
PLAIN(plain_avx2, __attribute__((target("avx2,fma"))))
/* clang-format on */

/* Takes pieces of the work until none is left. */
static void *run_plain(void *arg)
{
	struct registers v __attribute__((aligned(64))) = { .f0 = { 0 } };
	bool wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
	atomic_int *n_left = arg;

	while (atomic_fetch_sub(n_left, 1) > 0) {
		if (wide)
			plain_avx2(&v);
		else
			plain_base(&v);
	}
	return NULL;
}

static struct speed measure_plain(u32 workers)
{
	atomic_int n_left = PLAIN_PIECES;
	struct stopwatch watch = start();
	pthread_t other;
	bool has_other = workers > 1 && !pthread_create(&other, NULL, run_plain, &n_left);

	run_plain(&n_left);
	if (has_other)
		pthread_join(other, NULL);
	return stop(&watch, (f64)PLAIN_PIECES * PLAIN_ROUNDS * PLAIN_OPS * LANES);
}

/* ---- launches ----------------------------------------------------------------------------------- */

/* Microseconds from a kernel that does nothing to its end, one block of one warp. */
static f64 measure_launch(void)
{
	enum { N = 20000 };
	struct kit_run run = { .grid = 1, .block = 32 };
	f64 cpu;

	kit_reset();
	run.image = kit_image(".visible .entry k()\n{\nret;\n}\n");
	cpu = now_s(CLOCK_PROCESS_CPUTIME_ID);
	for (u32 i = 0; i < N; i++)
		kit_run(&run);
	cpu = now_s(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	exec_image_free(run.image);
	return cpu / N * 1e6;
}

/* @machine: what plain C gains by the second worker; 0 for its own row. */
static f64 print_row(const char *name, struct speed one, struct speed two, f64 machine)
{
	f64 gain = two.wall / one.wall;
	bool met = one.wall >= GOAL_MILLION && two.wall >= GOAL_MILLION * GOAL_GAIN &&
		   gain >= GOAL_GAIN;

	printf("%-16s %10.0f %8.0f %10.0f %8.0f %5.2fx", name, one.wall, one.cpu, two.wall, two.cpu,
	       gain);
	if (machine != 0)
		printf(" %8.0f %%%s", 100 * gain / machine, met ? "" : "  missed");
	printf("\n");
	return gain;
}

static f64 plain_row(void)
{
	struct speed one = { 0 }, two = { 0 };

	for (u32 i = 0; i < REPEATS; i++) {
		one = better(one, measure_plain(1));
		two = better(two, measure_plain(2));
	}
	return print_row("plain C", one, two, 0);
}

static void kernel_row(const char *name, const char *text, u32 rounds, f64 machine)
{
	struct speed one = { 0 }, two = { 0 };

	for (u32 i = 0; i < REPEATS; i++) {
		one = better(one, measure(text, rounds, 1));
		two = better(two, measure(text, rounds, 2));
	}
	print_row(name, one, two, machine);
}

int main(void)
{
	static const struct {
		const char *name, *text;
		u32 rounds;
	} kernels[] = {
		{ "arithmetic", arithmetic, 4000 },
		{ "shared memory", tiles, 2000 },
		{ "global memory", stream, 2000 },
		{ "divergence", divergent, 20 },
	};
	f64 machine;

	kit_init();
	printf("Million instructions a second:\n%-16s %10s %8s %10s %8s %6s %10s\n", "kernel",
	       "1 worker", "a CPU", "2 workers", "a CPU", "gain", "of C's");
	printf("%-16s %10.0f %8s %10.0f %8s %5.2fx\n", "goal, at least", GOAL_MILLION, "",
	       GOAL_MILLION * GOAL_GAIN, "", GOAL_GAIN);
	machine = plain_row();
	for (u32 i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
		kernel_row(kernels[i].name, kernels[i].text, kernels[i].rounds, machine);
	printf("A launch of nothing, made, run and freed: %.2f us of CPU\n", measure_launch());
	return 0;
}
