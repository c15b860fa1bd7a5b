/* SPDX-License-Identifier: Apache-2.0 */
#include "base/check.h"
#include "base/file.h"
#include "base/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

/* One more namespace around this process, in which its ids are root's: else it could make none inside. */
static int go_in(void)
{
	char users[32], groups[32];
	int r;

	snprintf(users, sizeof(users), "0 %u 1", geteuid());
	snprintf(groups, sizeof(groups), "0 %u 1", getegid());
	if (unshare(CLONE_NEWUSER) < 0)
		return -errno;
	r = file_write_at(AT_FDCWD, "/proc/self/uid_map", users);
	if (r == 0)
		r = file_write_at(AT_FDCWD, "/proc/self/setgroups", "deny");
	if (r == 0)
		r = file_write_at(AT_FDCWD, "/proc/self/gid_map", groups);
	return r;
}

/* A child in so many namespaces, one in the other; 0 where there may be none. */
static pid_t child_in(int depth)
{
	int ready[2];
	char word;
	pid_t child;

	if (pipe(ready) < 0)
		return 0;
	child = fork();
	if (child == 0) {
		while (depth-- > 0) {
			if (go_in() < 0)
				_exit(0);
		}
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &word, 1) != 1) {
		waitpid(child, NULL, 0);
		child = 0;
	}
	close(ready[0]);
	return child;
}

int main(void)
{
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC), depth;
	uid_t maker;
	pid_t child;

	check(userns_maker(proc, getpid(), &maker) == USERNS_E_OWN &&
		      userns_user(proc, getpid(), 77) == 77,
	      "userns: in one's own, the user id says it");
	for (depth = 1; depth <= 2; depth++) {
		child = child_in(depth);
		if (child == 0) {
			printf("skip 'makers of namespaces': may not make one\n");
			continue;
		}
		maker = -1;
		check(userns_maker(proc, child, &maker) == 0 && maker == getuid(),
		      "userns: the maker of %d is told", depth);
		check(userns_user(proc, child, 77) == (getuid() ? getuid() : 77),
		      "userns: what runs in it is his, unless he is root");
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		check(userns_maker(proc, child, &maker) == -ESRCH, "userns: of one that is gone");
	}
	return check_result();
}
