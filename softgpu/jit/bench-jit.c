/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiled kernels beside the same in plain C: bench-jit
 *
 * Times are those of the CPU; the gain of a second worker is one of wall clocks. All are medians.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "softgpu/exec/test-kit.h"
#include "softgpu/exec/worker.h"
#include "softgpu/jit/bench-kernels.h"
#include "softgpu/jit/jit.h"
#include "softgpu/jit/say.h"

#define ROUNDS	   15
#define RATIO_GOAL 2   /* times what C takes */
#define GAIN_GOAL  1.8 /* by a second worker; or nine tenths of what the machine gives plain C */
#define N_PARTS	   16  /* of the plain one's work, where threads share it */
#define N_BINS	   256

static f64 now_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (f64)t.tv_sec + (f64)t.tv_nsec * 1e-9;
}

/* One kernel and what it is compared with. */
struct subject {
	const char *name, *text;
	u32 grid[3], block[3];
	u64 params[6];
	void (*plain)(const struct subject *s, u32 part, u32 n_parts);
	/* Largest difference between what the kernel has written and what C has. */
	f64 (*difference)(const struct subject *s);
	void *want; /* where C writes */
	u32 n;
};

static void *at(u64 param)
{
	return (void *)(uintptr_t)param;
}

static u64 floats(u32 n)
{
	f32 *p = kit_alloc(n * sizeof(*p));

	for (u32 i = 0; i < n; i++)
		p[i] = (f32)(i * 2654435761u % 1000) / 100 + 0.1f;
	return (u64)(uintptr_t)p;
}

static f64 differ(const f32 *got, const f32 *want, u32 n)
{
	f64 most = 0;

	for (u32 i = 0; i < n; i++)
		most = fmax(most, fabs((f64)got[i] - (f64)want[i]) / fmax(1, fabs((f64)want[i])));
	return most;
}

static f64 differ_second(const struct subject *s)
{
	return differ(at(s->params[1]), s->want, s->n);
}

static f64 differ_third(const struct subject *s)
{
	return differ(at(s->params[2]), s->want, s->n);
}

/* ---- the plain ones ------------------------------------------------------------------------------- */

static void run_saxpy(const struct subject *s, u32 part, u32 n_parts)
{
	u32 n = s->n / n_parts, first = part * n;

	plain_saxpy((f32 *)at(s->params[0]) + first, (f32 *)s->want + first, 2, n);
}

static void run_matmul(const struct subject *s, u32 part, u32 n_parts)
{
	u32 n = (u32)s->params[3], rows = n / n_parts;

	plain_matmul(at(s->params[0]), at(s->params[1]), s->want, n, part * rows,
		     (part + 1) * rows);
}

static void run_sum(const struct subject *s, u32 part, u32 n_parts)
{
	u32 n = s->n / n_parts;

	((f32 *)s->want)[part] = plain_sum((f32 *)at(s->params[0]) + part * n, n);
}

static f64 differ_sum(const struct subject *s)
{
	const f32 *part = at(s->params[1]);
	f64 sum = 0, want = 0;
	const f32 *x = at(s->params[0]);

	for (u32 i = 0; i < s->grid[0]; i++)
		sum += (f64)part[i];
	for (u32 i = 0; i < s->n; i++)
		want += (f64)x[i];
	return fabs(sum - want) / want;
}

/* Each part has bins of its own. */
static void run_histogram(const struct subject *s, u32 part, u32 n_parts)
{
	u32 n = s->n / n_parts;

	plain_histogram((u8 *)at(s->params[0]) + part * n, (u32 *)s->want + part * N_BINS, n);
}

static f64 differ_histogram(const struct subject *s)
{
	const u32 *got = at(s->params[1]), *want = s->want;
	u32 n_wrong = 0;

	for (u32 i = 0; i < N_BINS; i++)
		n_wrong += got[i] != want[i];
	return n_wrong;
}

static void run_bodies(const struct subject *s, u32 part, u32 n_parts)
{
	u32 n = s->n / n_parts;

	plain_bodies(at(s->params[0]), s->want, s->n, part * n, (part + 1) * n);
}

static f64 differ_bodies(const struct subject *s)
{
	const f64 *got = at(s->params[1]), *want = s->want;
	f64 most = 0;

	for (u32 i = 0; i < 4 * s->n; i++)
		most = fmax(most, fabs(got[i] - want[i]) / fmax(1, fabs(want[i])));
	return most;
}

static void run_options(const struct subject *s, u32 part, u32 n_parts)
{
	u32 n = s->n / n_parts, first = part * n;
	const f32 *in[3];

	for (u32 i = 0; i < 3; i++)
		in[i] = (f32 *)at(s->params[i]) + first;
	plain_options(in[0], in[1], in[2], (f32 *)s->want + first, (f32 *)s->want + s->n + first,
		      n);
}

static f64 differ_options(const struct subject *s)
{
	return fmax(differ(at(s->params[3]), s->want, s->n),
		    differ(at(s->params[4]), (f32 *)s->want + s->n, s->n));
}

static void run_stencil(const struct subject *s, u32 part, u32 n_parts)
{
	u32 n = (u32)s->params[2], rows = n / n_parts;

	plain_stencil(at(s->params[0]), s->want, n, part * rows, (part + 1) * rows);
}

/* ---- measuring ------------------------------------------------------------------------------------ */

static void launch(const struct subject *s, const struct exec_image *image)
{
	struct exec_launch_args args = {
		.kernel = exec_kernel_at(image, 0),
		.grid = { s->grid[0], s->grid[1], s->grid[2] },
		.block = { s->block[0], s->block[1], s->block[2] },
		.params = s->params,
	};
	struct exec_budget budget = { .instructions = UINT64_MAX };
	struct exec_launch *l;
	struct exec_progress p;

	if (exec_launch_new(&args, &l))
		abort();
	do
		exec_step(l, &budget, &p);
	while (!p.done);
	if (p.fault) {
		fprintf(stderr, "%s: %s\n", s->name, p.message);
		exit(1);
	}
	exec_launch_free(l);
}

/* Parts of the plain one, for whoever comes first. */
struct shared {
	const struct subject *s;
	_Atomic u32 next;
};

static void take_parts(void *arg)
{
	struct shared *shared = arg;

	for (u32 i; (i = shared->next++) < N_PARTS;)
		shared->s->plain(shared->s, i, N_PARTS);
}

static void run_plain(const struct subject *s, u32 workers)
{
	struct shared shared = { .s = s };

	if (workers == 1)
		s->plain(s, 0, 1);
	else
		worker_run(take_parts, &shared, workers);
}

/* What both take, on a CPU and by the clock on the wall. */
struct took {
	f64 plain_cpu, cpu, plain, kernel;
};

static struct took measure_once(const struct subject *s, const struct exec_image *image,
				u32 workers)
{
	struct took t;

	exec_set_workers(workers);
	t.plain = now_s(CLOCK_MONOTONIC);
	t.plain_cpu = now_s(CLOCK_PROCESS_CPUTIME_ID);
	run_plain(s, workers);
	t.plain_cpu = now_s(CLOCK_PROCESS_CPUTIME_ID) - t.plain_cpu;
	t.plain = now_s(CLOCK_MONOTONIC) - t.plain;
	t.kernel = now_s(CLOCK_MONOTONIC);
	t.cpu = now_s(CLOCK_PROCESS_CPUTIME_ID);
	launch(s, image);
	t.cpu = now_s(CLOCK_PROCESS_CPUTIME_ID) - t.cpu;
	t.kernel = now_s(CLOCK_MONOTONIC) - t.kernel;
	return t;
}

static int by_size(const void *a, const void *b)
{
	f64 x = *(const f64 *)a, y = *(const f64 *)b;

	return (x > y) - (x < y);
}

static f64 median(f64 *v)
{
	qsort(v, ROUNDS, sizeof(*v), by_size);
	return v[ROUNDS / 2];
}

/*
 * Both take turns, so that whatever else the machine does slows down both; the row has the medians of
 * what came out of each turn.
 */
static void measure(const struct subject *s)
{
	f64 plain[ROUNDS], kernel[ROUNDS], ratio[ROUNDS], gain[ROUNDS], of_plain[ROUNDS];
	struct exec_image *image = kit_image(s->text);
	f64 first = now_s(CLOCK_MONOTONIC), difference;
	bool missed;

	launch(s, image);
	first = now_s(CLOCK_MONOTONIC) - first;
	run_plain(s, 1);
	difference = s->difference(s);
	for (u32 i = 0; i < ROUNDS; i++) {
		struct took one = measure_once(s, image, 1), two = measure_once(s, image, 2);

		plain[i] = one.plain_cpu * 1e3;
		kernel[i] = one.cpu * 1e3;
		ratio[i] = one.cpu / one.plain_cpu;
		gain[i] = one.kernel / two.kernel;
		of_plain[i] = gain[i] / (one.plain / two.plain);
	}
	missed = median(ratio) > RATIO_GOAL ||
		 (median(gain) < GAIN_GOAL && median(of_plain) < GAIN_GOAL / 2);
	printf("%-14s %8.2f %8.2f %7.2fx %7.2fx %6.0f %% %9.1f %9.1e%s\n", s->name, median(plain),
	       median(kernel), median(ratio), median(gain), 100 * median(of_plain),
	       first * 1e3 - median(kernel), difference, missed ? "  misses its goal" : "");
	exec_image_free(image);
	kit_reset();
}

/* ---- first launches ------------------------------------------------------------------------------- */

#define FIRST_LINES   200
#define FIRST_GOAL_MS 60
#define CACHE_GOAL_MS 5

/* The compiler's process, which is ours once its parent has ended; 0: there is none yet. */
static pid_t find_compiler(void)
{
	char path[64];
	int pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%d", &pid) != 1)
		pid = 0;
	fclose(f);
	return pid;
}

/* CPU time of this process and the compiler's. */
static f64 used_s(void)
{
	pid_t pid = find_compiler();
	clockid_t clock;
	f64 used = now_s(CLOCK_PROCESS_CPUTIME_ID);

	if (pid && !clock_getcpuclockid(pid, &clock))
		used += now_s(clock);
	return used;
}

/* Addresses, loads, arithmetic of some kinds, a branch, a store, over and over. */
static char *first_text(void)
{
	static const char *const lines[] = {
		"mad.lo.s32 %%r2, %%r1, 3, %%r0;\n",
		"mul.wide.u32 %%d1, %%r0, 4;\n",
		"add.s64 %%d2, %%d0, %%d1;\n",
		"ld.global.f32 %%f1, [%%d2];\n",
		"fma.rn.f32 %%f0, %%f1, %%f0, %%f1;\n",
		"xor.b32 %%r1, %%r2, %%r1;\n",
		"shl.b32 %%r3, %%r1, 2;\n",
		"and.b32 %%r3, %%r3, 127;\n",
		"cvt.u64.u32 %%d3, %%r3;\n",
		"add.s64 %%d3, %%d0, %%d3;\n",
		"ld.global.f32 %%f2, [%%d3];\n",
		"mul.f32 %%f2, %%f2, %%f1;\n",
		"add.f32 %%f0, %%f0, %%f2;\n",
		"sub.s32 %%r2, %%r3, %%r2;\n",
		"max.s32 %%r2, %%r2, %%r0;\n",
		"selp.b32 %%r1, %%r1, %%r2, %%p;\n",
		"setp.gt.s32 %%p, %%r1, 0;\n",
		"@%%p bra L%u;\n",
		"add.s32 %%r1, %%r1, 1;\n",
		"L%u: st.global.f32 [%%d2], %%f0;\n",
	};
	enum { N_LINES = sizeof(lines) / sizeof(lines[0]), ROOM = 64 };
	char *text = malloc(ROOM * (FIRST_LINES + 8)), *at = text;

	if (!text)
		abort();
	at += sprintf(
		at,
		".visible .entry k(.param .u64 x)\n{\n.reg .pred %%p; .reg .b32 %%r<4>; "
		".reg .b64 %%d<4>; .reg .f32 %%f<4>;\n"
		"mov.u32 %%r0, %%tid.x; mov.u32 %%r1, %%r0; setp.eq.s32 %%p, %%r0, 0; mov.f32 %%f0, 0f3F800000; "
		"ld.param.u64 %%d0, [x];\n");
	for (u32 i = 0; i < FIRST_LINES; i++)
		at += sprintf(at, lines[i % N_LINES], i / N_LINES);
	strcpy(at, "ret;\n}\n");
	return text;
}

struct first {
	const char *name;
	enum jit_mode mode;
	bool until_there;  /* launches go on until there is code */
	const char *cache; /* folder */
	f64 goal_ms;	   /* 0: none */
};

static bool is_compiled(u32 n_before)
{
	struct jit_counts counts;

	jit_counts(&counts);
	return counts.n_compiled > n_before;
}

static void measure_one_first(const struct first *how, const char *text)
{
	struct subject s = { .name = how->name, .grid = { 1, 1, 1 }, .block = { 32, 1, 1 } };
	struct exec_image *image;
	struct jit_counts before;
	f64 used, wall;

	setenv("XDG_CACHE_HOME", how->cache, 1);
	jit_init(how->mode, NULL);
	jit_counts(&before);
	image = kit_image(text);
	s.params[0] = floats(32);
	used = used_s();
	wall = now_s(CLOCK_MONOTONIC);
	do
		launch(&s, image);
	while (how->until_there && !is_compiled(before.n_compiled));
	wall = (now_s(CLOCK_MONOTONIC) - wall) * 1e3;
	used = (used_s() - used) * 1e3;
	printf("%-52s %9.2f %9.2f", how->name, wall, used);
	if (how->goal_ms)
		printf(" %9.0f%s", how->goal_ms, used > how->goal_ms ? "  misses its goal" : "");
	printf("\n");
	exec_image_free(image);
	kit_reset();
}

/*
 * First of all, so that the compiler has to be started. Its time counts, which runs beside this
 * process; what the machine does otherwise does not.
 */
static void measure_first(void)
{
	char folder[] = "/tmp/bench-jit.XXXXXX", command[64], *text = first_text();
	const char *given = getenv("XDG_CACHE_HOME"), *nowhere = "/dev/null";
	char *before = given ? strdup(given) : NULL;
	const struct first all[] = {
		{ "begun in the interpreter", JIT_AUTO, false, nowhere, FIRST_GOAL_MS },
		{ "  and launched until its code is there", JIT_AUTO, true, nowhere, 0 },
		{ "SOFTGPU_JIT=1, by the compiler that runs", JIT_ON, false, folder,
		  FIRST_GOAL_MS },
		{ "SOFTGPU_JIT=1, from the cache", JIT_ON, false, folder, CACHE_GOAL_MS },
	};

	if (!mkdtemp(folder))
		abort();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	printf("Milliseconds of a first launch, %u lines:\n%-52s %9s %9s %9s\n", FIRST_LINES, "",
	       "wall", "CPU", "goal");
	for (u32 i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		measure_one_first(&all[i], text);
	if (before)
		setenv("XDG_CACHE_HOME", before, 1);
	else
		unsetenv("XDG_CACHE_HOME");
	free(before);
	free(text);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	if (system(command))
		abort();
}

/* ---- the subjects --------------------------------------------------------------------------------- */

static void measure_saxpy(void)
{
	enum { N = 1 << 21 };
	struct subject s = { "saxpy", kernel_saxpy,	  { N / 256, 1, 1 },	      { 256, 1, 1 },
			     .n = N,  .plain = run_saxpy, .difference = differ_second };
	f32 two = 2;

	s.params[0] = floats(N);
	s.params[1] = floats(N);
	memcpy(&s.params[2], &two, sizeof(two));
	s.params[3] = N;
	s.want = at(floats(N));
	measure(&s);
}

static void measure_matmul(void)
{
	enum { N = 512 };
	struct subject s = {
		"matrix product", kernel_matmul,       { N / 32, N / 32, 1 },	  { 32, 32, 1 },
		.n = N * N,	  .plain = run_matmul, .difference = differ_third
	};

	for (int i = 0; i < 3; i++)
		s.params[i] = floats(N * N);
	s.params[3] = N;
	s.want = at(floats(N * N));
	measure(&s);
}

static void measure_sum(void)
{
	enum { N = 1 << 22 };
	struct subject s = { "sum",  kernel_sum,       { 256, 1, 1 },		{ 256, 1, 1 },
			     .n = N, .plain = run_sum, .difference = differ_sum };

	s.params[0] = floats(N);
	s.params[1] = floats(256);
	s.params[2] = N;
	s.want = at(floats(N_PARTS));
	measure(&s);
}

static void measure_histogram(void)
{
	enum { N = 1 << 24 };
	struct subject s = { "histogram",
			     kernel_histogram,
			     { 64, 1, 1 },
			     { 256, 1, 1 },
			     .n = N,
			     .plain = run_histogram,
			     .difference = differ_histogram };
	u8 *data = kit_alloc(N);

	for (u32 i = 0; i < N; i++)
		data[i] = (u8)(i * 2654435761u >> 24);
	s.params[0] = (u64)(uintptr_t)data;
	s.params[1] = (u64)(uintptr_t)kit_alloc(N_BINS * sizeof(u32));
	s.params[2] = N / 4;
	s.want = kit_alloc(N_PARTS * N_BINS * sizeof(u32));
	measure(&s);
}

static void measure_bodies(void)
{
	enum { N = 2048 };
	struct subject s = {
		"n bodies", kernel_bodies,	 { N / 128, 1, 1 },	     { 128, 1, 1 },
		.n = N,	    .plain = run_bodies, .difference = differ_bodies
	};
	f64 *place = kit_alloc(N * 32);

	for (u32 i = 0; i < 4 * N; i++)
		place[i] = (f64)(i * 2654435761u % 1000) / 100;
	s.params[0] = (u64)(uintptr_t)place;
	s.params[1] = (u64)(uintptr_t)kit_alloc(N * 32);
	s.params[2] = N;
	s.want = kit_alloc(N * 32);
	measure(&s);
}

static void measure_options(void)
{
	enum { N = 1 << 20 };
	struct subject s = {
		"Black-Scholes", kernel_options,       { N / 256, 1, 1 },	    { 256, 1, 1 },
		.n = N,		 .plain = run_options, .difference = differ_options
	};

	for (int i = 0; i < 5; i++)
		s.params[i] = floats(N);
	s.params[5] = N;
	s.want = at(floats(2 * N));
	measure(&s);
}

static void measure_stencil(void)
{
	enum { N = 2048 };
	struct subject s = {
		"stencil",  kernel_stencil,	  { N / 32, N / 8, 1 },	      { 32, 8, 1 },
		.n = N * N, .plain = run_stencil, .difference = differ_second
	};

	s.params[0] = floats(N * N);
	s.params[1] = floats(N * N);
	s.params[2] = N;
	s.want = at(floats(N * N));
	measure(&s);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*measure)(void);
	} all[] = {
		{ "saxpy", measure_saxpy },	{ "matmul", measure_matmul },
		{ "sum", measure_sum },		{ "histogram", measure_histogram },
		{ "bodies", measure_bodies },	{ "options", measure_options },
		{ "stencil", measure_stencil },
	};

	kit_init();
	if (argc < 2 || !strcmp(argv[1], "first"))
		measure_first();
	jit_init(JIT_ON, say);
	printf("Milliseconds of one CPU; how much the kernel takes longer; what a second worker gains,\n"
	       "which part that is of what plain C gains by a second thread:\n"
	       "%-14s %8s %8s %8s %8s %8s %9s %9s\n"
	       "%-14s %8s %8s %7.2fx %7.2fx or %3.0f %%\n",
	       "", "C", "kernel", "ratio", "two", "of C's", "first ms", "error", "goal", "", "",
	       (f64)RATIO_GOAL, GAIN_GOAL, 100 * GAIN_GOAL / 2);
	for (u32 i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (argc < 2 || !strcmp(argv[1], all[i].name))
			all[i].measure();
	}
	return 0;
}
