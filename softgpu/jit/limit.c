/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stddef.h>
#include <sys/time.h>

#include "softgpu/jit/limit.h"

_Static_assert(LIMIT_WALL_MS >= 30 * LIMIT_CPU_MS,
	       "a thirtieth of a CPU is enough for all of the work");
_Static_assert(LIMIT_WAIT_S * 1000 > LIMIT_WALL_MS, "whoever waits gives up last");

/* A program that ignores a signal, or has it blocked, hands that on to whatever it starts. */
static void let_end(int signal_number)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, signal_number);
	signal(signal_number, SIG_DFL);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void set_timer(int timer, unsigned int ms)
{
	struct itimerval after = {
		.it_value = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 },
	};

	setitimer(timer, &after, NULL);
}

void limit_begin(unsigned int cpu_ms, unsigned int wall_ms)
{
	let_end(SIGPROF);
	let_end(SIGALRM);
	set_timer(ITIMER_PROF, cpu_ms);
	set_timer(ITIMER_REAL, wall_ms);
}

void limit_end(void)
{
	set_timer(ITIMER_PROF, 0);
	set_timer(ITIMER_REAL, 0);
}
