// SPDX-License-Identifier: Apache-2.0
/*
 * Starting a worker.
 *
 * The old layout of the address space puts what the kernel places for the worker, device memory included,
 * far below where it does for the guest's process. So an address of the guest's is hardly ever taken
 * in the worker, and memory that both share can have one address.
 */
#include "forward/host/session.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define WORKER_SOCKET 3

static _Noreturn void become_worker(const struct session_limits *limits, int socket, pid_t broker)
{
	static const struct rlimit no_core = { 0, 0 };
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* From within a pid namespace a parent outside of it is 0; it is another where the broker is gone. */
	if (getppid() != broker && getppid() != 0)
		_exit(1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setrlimit(RLIMIT_CORE, &no_core);
	personality(ADDR_COMPAT_LAYOUT);
	if (socket == WORKER_SOCKET ? fcntl(socket, F_SETFD, 0) < 0
				    : dup2(socket, WORKER_SOCKET) < 0)
		_exit(1);
	execl(limits->worker, "cotenant-worker", limits->driver, NULL);
	_exit(127);
}

pid_t worker_start(const struct session_limits *limits, int *ret_socket, int *ret_pidfd)
{
	_cleanup_close_ int ours = -1, theirs = -1;
	pid_t pid, broker = getpid();
	int pair[2], pidfd;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		become_worker(limits, theirs, broker);
	pidfd = syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0) {
		pidfd = -errno;
		kill(pid, SIGKILL);
		return pidfd;
	}
	*ret_socket = TAKE_FD(ours);
	*ret_pidfd = pidfd;
	return pid;
}
