// SPDX-License-Identifier: Apache-2.0
/* What a worker cannot ask of the kernel, and what its driver must be able to. Each case is a process with the filter. */
#include "forward/host/sandbox.c"

#include "base/check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define PAGE 4096

static uint8_t *page;
static int ends[2];

static long keep_in_pipe(void)
{
	struct iovec part = { page, PAGE };

	return syscall(SYS_vmsplice, ends[1], &part, 1, 0);
}

static long grow(void)
{
	return syscall(SYS_mremap, page, PAGE, 2 * PAGE, MREMAP_MAYMOVE);
}

static long remap(void)
{
	return syscall(SYS_remap_file_pages, page, PAGE, 0, 1, 0);
}

static long become(void)
{
	char *words[] = { "true", NULL };

	return execve("/bin/true", words, words + 1);
}

static long split(void)
{
	return syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static long share(void)
{
	return syscall(SYS_clone, CLONE_VM | CLONE_FILES | SIGCHLD, page + PAGE, NULL, NULL, NULL);
}

static long kill_other(void)
{
	return kill(getppid(), 0);
}

static long connect_out(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0);
}

static void *nothing(void *arg)
{
	return arg;
}

static long start_thread(void)
{
	pthread_t thread;
	int r = pthread_create(&thread, NULL, nothing, NULL);

	if (r == 0)
		r = pthread_join(thread, NULL);
	errno = r;
	return r ? -1 : 0;
}

static long map(void)
{
	void *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? -1 : munmap(at, PAGE);
}

static long signal_itself(void)
{
	return syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), 0);
}

/* Return: 0 or the errno of a call in a process that has the filter. */
static int tried(long (*call)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || leave_calls() < 0)
			_exit(255);
		_exit(call() < 0 ? errno : 0);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

int main(void)
{
	static const struct {
		const char *name;
		long (*call)(void);
		int error;
	} cases[] = {
		{ "a page of the guest's cannot be kept in a pipe", keep_in_pipe, EPERM },
		{ "a mapping cannot grow", grow, EPERM },
		{ "a mapping cannot show another part", remap, EPERM },
		{ "no other program", become, EPERM },
		{ "no other process", split, EPERM },
		{ "none that shares its memory", share, EPERM },
		{ "no signal to others", kill_other, EPERM },
		{ "no socket", connect_out, EPERM },
		{ "threads", start_thread, 0 },
		{ "memory", map, 0 },
		{ "a signal to itself", signal_itself, 0 },
	};
	size_t i;

	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED || pipe(ends) < 0)
		return 1;
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		check(tried(cases[i].call) == cases[i].error, "sandbox: %s", cases[i].name);
	return check_result();
}
