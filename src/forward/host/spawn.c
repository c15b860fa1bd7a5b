// SPDX-License-Identifier: Apache-2.0
/*
 * The old layout of the address space puts what the kernel places for the worker, device memory included,
 * far below where it does for the guest's process. So an address of the guest's is hardly ever taken
 * in the worker, and memory that both share can have one address.
 */
#include "forward/host/spawn.h"

#include "base/base.h"
#include "forward/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* Above those that the worker finds, so that none is overwritten before it was copied. */
static int move_up(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, WORKER_MAPPER + 1);
}

static _Noreturn void become_worker(const struct worker_program *program, int socket, int mapper,
				    pid_t broker)
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
	socket = move_up(socket);
	if (mapper >= 0)
		mapper = move_up(mapper);
	if (socket < 0 || dup2(socket, WORKER_SOCKET) < 0 ||
	    (mapper >= 0 && dup2(mapper, WORKER_MAPPER) < 0))
		_exit(1);
	execl(program->worker, "cotenant-worker", program->driver, mapper >= 0 ? "mapped" : NULL,
	      NULL);
	_exit(127);
}

int worker_start(const struct worker_program *program, bool mapped, struct worker *ret)
{
	_cleanup_close_ int socket = -1, socket_end = -1, mapper = -1, mapper_end = -1;
	pid_t pid, broker = getpid();
	int pidfd, r;

	r = socket_pair_new(SOCK_SEQPACKET, &socket, &socket_end);
	if (r == 0 && mapped)
		r = socket_pair_new(SOCK_SEQPACKET, &mapper, &mapper_end);
	if (r < 0)
		return r;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		become_worker(program, socket_end, mapper_end, broker);
	pidfd = syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0) {
		pidfd = -errno;
		kill(pid, SIGKILL);
		return pidfd;
	}
	*ret = (struct worker){ pid, TAKE_FD(socket), pidfd, TAKE_FD(mapper) };
	return 0;
}
