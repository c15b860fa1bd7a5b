// SPDX-License-Identifier: Apache-2.0
/* The first process of the namespace does nothing; with it all workers would end. */
#include "forward/host/sandbox.h"

#include "base/base.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static _Noreturn void keeper_main(void)
{
	sigset_t all;
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "cotenant-keeper");
	for (fd = 0; fd < 64; fd++)
		close(fd);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	for (;;) {
		sigwaitinfo(&all, NULL);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

int sandbox_pids(void)
{
	pid_t pid;

	if (unshare(CLONE_NEWPID) < 0 &&
	    (errno != EPERM || unshare(CLONE_NEWUSER | CLONE_NEWPID) < 0))
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		keeper_main();
	return 0;
}
