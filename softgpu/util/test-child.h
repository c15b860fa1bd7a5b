/* SPDX-License-Identifier: Apache-2.0 */
/* A child of a test. */
#pragma once

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/**
 * child_new() - as fork(), but there is a child
 *
 * No test goes on without: it would kill process -1, which is all. Nor does the child without the test, which
 * may end at any check: whoever reads the output waits until nobody has it any more.
 */
static inline pid_t child_new(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		exit(1);
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}
