/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Code that is made beside the launches: who gets it and when, and what the program must not notice:
 * no child, no signal, no byte in a file of its own, no process that outlives it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softgpu/exec/block.h"
#include "softgpu/exec/test-kit.h"
#include "softgpu/jit/code.h"
#include "softgpu/jit/jit.h"

#define N_THREADS  64
#define N_ROUNDS   20000 /* 5 million instructions, and a function is worth compiling at 2 million */
#define LONG_LINES 300	 /* of a kernel that keeps the compiler busy */

static volatile sig_atomic_t n_signals;

static void count_signal(_unused_ int signal_number)
{
	n_signals++;
}

/* ---- kernels --------------------------------------------------------------------------------------- */

/* out[i] = @salt after so many rounds; each salt makes it another kernel. */
static struct exec_image *image_of(u32 salt, u32 n_lines)
{
	char *text = malloc(2048 + n_lines * 64), *at = text;
	struct exec_image *image;

	if (!text)
		abort();
	at += sprintf(
		at,
		".visible .entry k(.param .u64 out, .param .u64 rounds)\n{\n"
		".reg .pred %%p; .reg .b32 %%r<4>; .reg .b64 %%d<3>;\n"
		"mov.u32 %%r0, %%tid.x; ld.param.u64 %%d0, [out]; ld.param.u64 %%d2, [rounds];\n"
		"cvt.u32.u64 %%r2, %%d2; mul.wide.u32 %%d1, %%r0, 4; add.s64 %%d0, %%d0, %%d1;\n"
		"mov.u32 %%r1, %%r0;\n"
		"LOOP: mad.lo.u32 %%r1, %%r1, 5, %u;\n",
		salt);
	for (u32 i = 0; i < n_lines; i++)
		at += sprintf(at, "xor.b32 %%r3, %%r1, %u; min.u32 %%r1, %%r1, %%r3;\n",
			      i * 77 + 1);
	strcpy(at, "sub.u32 %r2, %r2, 1; setp.ne.u32 %p, %r2, 0; @%p bra LOOP;\n"
		   "st.global.u32 [%d0], %r1; ret;\n}\n");
	image = kit_image(text);
	free(text);
	return image;
}

static bool is_right(const u32 *out, u32 salt, u32 n_rounds)
{
	u32 n_right = 0;

	for (u32 i = 0; i < N_THREADS; i++) {
		u32 x = i;

		for (u32 k = 0; k < n_rounds; k++)
			x = x * 5 + salt;
		n_right += out[i] == x;
	}
	return n_right == N_THREADS;
}

static bool run(struct exec_image *image, u32 salt, u32 n_rounds)
{
	u32 *out = kit_alloc(N_THREADS * sizeof(*out));
	struct kit_run run = { .image = image,
			       .block = N_THREADS,
			       .params = { (u64)(uintptr_t)out, n_rounds } };
	struct exec_progress p = kit_run(&run);

	kit_reset();
	return p.done && !p.fault && is_right(out, salt, n_rounds);
}

static struct jit_counts counts_now(void)
{
	struct jit_counts counts;

	jit_counts(&counts);
	return counts;
}

/* Runs it until the compiler has it. */
static bool run_until_asked(struct exec_image *image, u32 salt)
{
	struct jit_counts before = counts_now(), now = before;
	bool ok = true;

	while (now.n_pending == before.n_pending && now.n_compiled == before.n_compiled && ok) {
		ok = run(image, salt, N_ROUNDS);
		now = counts_now();
	}
	return ok;
}

/* ---- the socket ------------------------------------------------------------------------------------ */

/* Nothing else in here has one. */
static int find_socket(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int found = -1;

	while (dir && (entry = readdir(dir))) {
		struct stat st;
		int fd = atoi(entry->d_name);

		if (*entry->d_name != '.' && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && fd > 2)
			found = fd;
	}
	closedir(dir);
	return found;
}

/* ---- tests ----------------------------------------------------------------------------------------- */

static void test_little(void)
{
	struct exec_image *image = image_of(1, 0);
	struct jit_counts counts;
	bool ok = run(image, 1, 3);

	counts = counts_now();
	kit_check(ok && !counts.n_pending && !counts.n_compiled && !counts.n_refused &&
			  find_socket() < 0,
		  "a kernel with little to do is interpreted, and no compiler started");
	exec_image_free(image);
}

static void test_often(void)
{
	struct exec_image *image = image_of(2, 0);
	bool ok = true;
	u32 n = 0;

	while (ok && counts_now().n_compiled == 0) {
		ok = run(image, 2, 500);
		n++;
	}
	kit_check(ok && n > 1, "one that is launched often is compiled, and right at all times");
	kit_check(run(image, 2, N_ROUNDS), "right, compiled");
	exec_image_free(image);
}

/* One launch, begun in the interpreter. */
static void test_long(void)
{
	struct exec_image *image = image_of(3, 0);
	u32 *out = kit_alloc(N_THREADS * sizeof(*out)), n_rounds = 50 * N_ROUNDS, n_compiled;
	u64 params[2] = { (u64)(uintptr_t)out, n_rounds };
	struct exec_launch_args args = {
		.kernel = exec_kernel_at(image, 0),
		.grid = { 1, 1, 1 },
		.block = { N_THREADS, 1, 1 },
		.params = params,
	};
	struct exec_budget budget = { .instructions = 100000 };
	struct exec_launch *launch;
	struct exec_progress p;

	n_compiled = counts_now().n_compiled;
	if (exec_launch_new(&args, &launch))
		abort();
	exec_step(launch, &budget, &p);
	/* It gets no further until the code is there. */
	while (counts_now().n_compiled == n_compiled) {
		if (counts_now().n_pending)
			jit_settle();
		else
			exec_step(launch, &budget, &p);
	}
	kit_check(!p.done, "the code is there in the middle of a launch");
	do
		exec_step(launch, &budget, &p);
	while (!p.done);
	kit_check(!p.fault && is_right(out, 3, n_rounds), "which ends in it, and right");
	exec_launch_free(launch);
	exec_image_free(image);
	kit_reset();
}

static void test_children(void)
{
	int r = waitpid(-1, NULL, WNOHANG);

	kit_check(r < 0 && errno == ECHILD, "the compiler is no child");
	kit_check(!n_signals, "no SIGCHLD has come");
}

static void test_freed(void)
{
	struct exec_image *image = image_of(4, LONG_LINES), *other = image_of(5, 0);
	u32 *out = kit_alloc(N_THREADS * sizeof(*out));
	struct kit_run more = { .image = image,
				.block = N_THREADS,
				.params = { (u64)(uintptr_t)out, N_ROUNDS / 100 } };
	u32 n_compiled;

	while (!counts_now().n_pending)
		kit_run(&more);
	kit_reset();
	exec_image_free(image);
	kit_check(run_until_asked(other, 5), "an image goes while it is compiled, others go on");
	n_compiled = counts_now().n_compiled;
	jit_settle();
	kit_check(counts_now().n_compiled > n_compiled && run(other, 5, N_ROUNDS),
		  "they are compiled next");
	exec_image_free(other);
}

/* As a daemon does that closes whatever is open. */
static void test_closed(void)
{
	struct exec_image *image = image_of(6, 0);
	FILE *own = tmpfile();
	struct stat st;
	bool ok;
	int fd;

	ok = run_until_asked(image, 6);
	fd = find_socket();
	if (!own || fd < 0 || dup2(fileno(own), fd) < 0)
		abort();
	jit_settle();
	kit_check(ok && run(image, 6, N_ROUNDS) && counts_now().n_pending == 0,
		  "the socket was closed: right all the same");
	kit_check(fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0,
		  "the file that has its number now is as it was");
	close(fd);
	fclose(own);
	exec_image_free(image);
}

static void test_failing(void)
{
	struct exec_image *image = image_of(7, 0);
	u32 n_refused = counts_now().n_refused;
	bool ok = true;

	jit_forget_compiler();
	setenv("SOFTGPU_JITC", "/bin/true", 1);
	while (ok && counts_now().n_refused == n_refused)
		ok = run(image, 7, N_ROUNDS);
	kit_check(ok && run(image, 7, N_ROUNDS), "a compiler that fails: interpreted");
	unsetenv("SOFTGPU_JITC");
	exec_image_free(image);
}

/* ---- a program that ends meanwhile ------------------------------------------------------------------ */

/* Ends when the compiler has read all of a request that takes it long. */
static _Noreturn void end_early(void)
{
	struct exec_image *image = image_of(8, LONG_LINES);
	u32 *out = kit_alloc(N_THREADS * sizeof(*out));
	struct kit_run run = { .image = image,
			       .block = N_THREADS,
			       .params = { (u64)(uintptr_t)out, N_ROUNDS / 100 } };
	int unread = 1;

	while (!counts_now().n_pending)
		kit_run(&run);
	while (unread && ioctl(find_socket(), SIOCOUTQ, &unread) == 0)
		usleep(1000);
	_exit(counts_now().n_pending == 1 && !unread ? 0 : 1);
}

/* Its compiler comes to us; without code to write it has nothing to die of but the end of the program. */
static void test_end(void)
{
	int status;
	pid_t pid;

	fflush(stdout);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	pid = fork();
	if (pid == 0)
		end_early();
	kit_check(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0,
		  "a program ends while the compiler works for it");
	while (waitpid(-1, &status, 0) < 0 && errno == EINTR)
		;
	kit_check((WIFSIGNALED(status) && WTERMSIG(status) == SIGIO) ||
			  (WIFEXITED(status) && WEXITSTATUS(status)),
		  "and so does the compiler, at once (%#x)", (unsigned int)status);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
}

int main(void)
{
	setenv("XDG_CACHE_HOME", /* no folder: */ "/dev/null", 1);
	signal(SIGCHLD, count_signal);
	jit_init(JIT_AUTO, NULL);
	if (!exec_compiler) {
		printf("kernels are interpreted: this CPU has no AVX2\n");
		return 77;
	}
	kit_init();
	exec_set_workers(1);
	test_little();
	test_often();
	test_long();
	test_children();
	test_freed();
	test_closed();
	test_children();
	test_failing();
	test_end();
	return kit_result();
}
