/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of a request: work ends by the CPU's time, and only what hangs by the wall's.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "softgpu/jit/limit.h"

#define SOON_MS	  50
#define NEVER_MS  3600000
#define LONG_S	  60
#define NAP_MS	  20
#define N_NAPS	  500
#define US_PER_MS 1000

static int n_failed;

static void check(bool ok, const char *what)
{
	printf("%s 'jit_limit: %s'\n", ok ? "ok" : "not ok", what);
	n_failed += !ok;
}

static void work(void)
{
	for (volatile unsigned int i = 0;;)
		i = i + 1;
}

static void hang(void)
{
	sleep(LONG_S);
}

/* Without limits, which is what the test is for, a child would never end. */
static void end_some_day(void)
{
	struct rlimit limit = { .rlim_cur = LONG_S, .rlim_max = LONG_S };

	setrlimit(RLIMIT_CPU, &limit);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* What a child dies of that does @what for long; 0 if it does not. */
static int ends_by(unsigned int cpu_ms, unsigned int wall_ms, void (*what)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		abort();
	if (!pid) {
		end_some_day();
		limit_begin(cpu_ms, wall_ms);
		what();
		_exit(0);
	}
	if (waitpid(pid, &status, 0) != pid)
		abort();
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void test_ends(void)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before[2];
	sigset_t both, none;

	check(ends_by(SOON_MS, NEVER_MS, work) == SIGPROF, "work ends when its time is over");
	check(ends_by(NEVER_MS, SOON_MS, hang) == SIGALRM, "so does what hangs, by the wall's");

	sigemptyset(&both);
	sigaddset(&both, SIGPROF);
	sigaddset(&both, SIGALRM);
	sigaction(SIGPROF, &ignore, &before[0]);
	sigaction(SIGALRM, &ignore, &before[1]);
	sigprocmask(SIG_BLOCK, &both, &none);
	check(ends_by(SOON_MS, NEVER_MS, work) == SIGPROF &&
		      ends_by(NEVER_MS, SOON_MS, hang) == SIGALRM,
	      "whoever has started it ignores the signals, and has them blocked");
	sigprocmask(SIG_SETMASK, &none, NULL);
	sigaction(SIGPROF, &before[0], NULL);
	sigaction(SIGALRM, &before[1], NULL);
}

static long left_us(int timer)
{
	struct itimerval left;

	if (getitimer(timer, &left) < 0)
		abort();
	return left.it_value.tv_sec * 1000000 + left.it_value.tv_usec;
}

/*
 * A process that sleeps is all that a machine that stands still is. That it is charged for something
 * else during a nap may happen, in every nap it cannot.
 */
static bool sleeps_for_free(void)
{
	struct timespec nap = { .tv_nsec = NAP_MS * 1000000L };
	bool is_free = false;

	limit_begin(NEVER_MS, NEVER_MS);
	for (int i = 0; i < N_NAPS && !is_free; i++) {
		long before = left_us(ITIMER_PROF);

		nanosleep(&nap, NULL);
		is_free = before - left_us(ITIMER_PROF) < NAP_MS * US_PER_MS / 2;
	}
	limit_end();
	return is_free;
}

int main(void)
{
	test_ends();
	check(sleeps_for_free(), "time in which nothing is done does not count");
	check(!left_us(ITIMER_PROF) && !left_us(ITIMER_REAL), "what is done in time has no end");
	return n_failed != 0;
}
