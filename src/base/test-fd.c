/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd.h"
#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

static int pipe_out[2];

static void *thread(void *userdata)
{
	*(int *)userdata = fd_of_process(gettid());
	return NULL;
}

/* The leader of a group goes, and another of the group stays until the pipe is closed. Return: its number, and who it was. */
static pid_t group_without_leader(void)
{
	pid_t leader = fork();
	char byte;

	if (leader == 0) {
		setpgid(0, 0);
		if (fork() == 0) {
			close(pipe_out[1]);
			while (read(pipe_out[0], &byte, 1) > 0)
				continue;
		}
		_exit(0);
	}
	waitpid(leader, NULL, 0);
	return leader;
}

int main(void)
{
	pid_t child, leader;
	pthread_t other;
	int fd, of_thread = 0;

	if (pipe2(pipe_out, O_CLOEXEC) < 0)
		return 1;
	child = fork();
	if (child == 0)
		_exit(0);
	fd = fd_of_process(child);
	check(fd >= 0 && poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, -1) == 1,
	      "fd_of_process: tells the end of the process");
	close(fd);
	waitpid(child, NULL, 0);
	check(fd_of_process(child) == -ESRCH, "fd_of_process: nobody has the number");
	leader = group_without_leader();
	check(kill(-leader, 0) == 0 && fd_of_process(leader) == -ESRCH,
	      "fd_of_process: the number is that of a group whose leader has ended");
	pthread_create(&other, NULL, thread, &of_thread);
	pthread_join(other, NULL);
	check(of_thread == -ESRCH, "fd_of_process: the number is that of a thread");
	check(fd_of_process(0) == -EINVAL, "fd_of_process: no number of anybody's");
	return check_result();
}
