/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiler's process: started when it is first needed, kept for more.
 *
 * It is nobody's child: a program that waits for its own children does not find it, nor is it told
 * that one has ended. A process in between, which ends at once, is of the kind that sends no signal
 * and that wait() passes over; it shares the program's memory like a child of vfork(), so that a
 * large program starts a compiler as fast as a small one. The compiler ends when the socket closes,
 * or when nobody has asked for a while.
 *
 * The program may close descriptors that are not its own, and the number may come to be another
 * file's: the socket is looked at before each use.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softgpu/exec/block.h"
#include "softgpu/jit/code.h"
#include "softgpu/jit/limit.h"

#define COMPILER    "softgpu-jitc"
#define REPLY_MAX   (256u << 20)
#define STACK_BYTES (128u << 10)

static int connection = -1;
static dev_t connection_dev;
static ino_t connection_ino;

/* The request under way, and what has come of its reply. */
static struct {
	const struct jit_request *request;
	size_t sent, received;
	struct jit_reply head;
	struct jit_reply *reply; /* once the head is there */
	bool fresh;		 /* the process was started for it */
} ask;

/* ---- where it is --------------------------------------------------------------------------------- */

/* Beside the library that this is part of, unless the environment names another. */
static bool find_compiler(char *ret, size_t size)
{
	const char *given = getenv("SOFTGPU_JITC"), *slash;
	Dl_info info;

	if (given) {
		snprintf(ret, size, "%s", given);
		return access(ret, X_OK) == 0;
	}
	if (!dladdr((const void *)&jit_services, &info) || !info.dli_fname)
		return false;
	slash = strrchr(info.dli_fname, '/');
	if (slash)
		snprintf(ret, size, "%.*s/" COMPILER, (int)(slash - info.dli_fname),
			 info.dli_fname);
	else
		snprintf(ret, size, "./" COMPILER);
	return access(ret, X_OK) == 0;
}

bool jit_found(void)
{
	char path[4096];

	return find_compiler(path, sizeof(path));
}

/* Its file is another one after every change. */
u64 jit_compiler(void)
{
	static u64 known;
	char path[4096];
	struct stat st;

	if (!known && find_compiler(path, sizeof(path)) && stat(path, &st) == 0) {
		u64 parts[] = { (u64)st.st_dev, (u64)st.st_ino, (u64)st.st_size,
				(u64)st.st_mtim.tv_sec, (u64)st.st_mtim.tv_nsec };

		known = jit_hash(JIT_HASH_START, parts, sizeof(parts));
	}
	return known;
}

/* ---- starting ------------------------------------------------------------------------------------ */

static bool is_connected(void)
{
	struct stat st;

	return connection >= 0 && fstat(connection, &st) == 0 && st.st_dev == connection_dev &&
	       st.st_ino == connection_ino;
}

void jit_forget_compiler(void)
{
	if (is_connected())
		close(connection);
	connection = -1;
}

struct spawning {
	const char *path;
	int fd;
	int result;
};

/* Whatever the program has set up for signals is not the compiler's. */
static int spawn_compiler(const char *path, int fd)
{
	char *argv[] = { (char *)path, NULL }, *envp[] = { NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t set;
	pid_t pid;
	int r;

	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, fd, STDOUT_FILENO);
	posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	sigemptyset(&set);
	posix_spawnattr_setsigmask(&attr, &set);
	sigfillset(&set);
	posix_spawnattr_setsigdefault(&attr, &set);
	r = posix_spawn(&pid, path, &actions, &attr, argv, envp);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return r;
}

static int between(void *arg)
{
	struct spawning *s = arg;

	s->result = spawn_compiler(s->path, s->fd);
	_exit(0);
}

/* 0, or an errno. No handler of the program's may run in the process in between. */
static int spawn(const char *path, int fd)
{
	struct spawning s = { .path = path, .fd = fd, .result = EAGAIN };
	sigset_t all, old;
	u8 *stack;
	pid_t pid;

	stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		return ENOMEM;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	/* No signal at its end. Returns when it has ended. */
	pid = clone(between, stack + STACK_BYTES, CLONE_VM | CLONE_VFORK, &s);
	while (pid > 0 && waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	munmap(stack, STACK_BYTES);
	return s.result;
}

static bool start(void)
{
	char path[4096];
	struct stat st;
	int fds[2];
	bool ok;

	if (!find_compiler(path, sizeof(path)) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return false;
	ok = fstat(fds[0], &st) == 0 && spawn(path, fds[1]) == 0;
	close(fds[1]);
	if (!ok) {
		close(fds[0]);
		return false;
	}
	connection_dev = st.st_dev;
	connection_ino = st.st_ino;
	connection = fds[0];
	return true;
}

/* ---- asking -------------------------------------------------------------------------------------- */

enum moved { MOVED_ALL, MOVED_SOME, MOVED_NOTHING, MOVED_FAILED };

/* After a send() or recv() of @n bytes. */
static enum moved moved(ssize_t n, size_t *done, size_t size)
{
	if (n < 0)
		return errno == EINTR				 ? MOVED_SOME
		       : errno == EAGAIN || errno == EWOULDBLOCK ? MOVED_NOTHING
								 : MOVED_FAILED;
	if (n == 0)
		return MOVED_FAILED;
	*done += (size_t)n;
	return *done == size ? MOVED_ALL : MOVED_SOME;
}

static enum moved send_some(void)
{
	const u8 *bytes = (const u8 *)ask.request;
	size_t size = ask.request->size;

	return moved(
		send(connection, bytes + ask.sent, size - ask.sent, MSG_DONTWAIT | MSG_NOSIGNAL),
		&ask.sent, size);
}

static enum moved receive_head(void)
{
	size_t size = sizeof(ask.head);
	enum moved r = moved(
		recv(connection, (u8 *)&ask.head + ask.received, size - ask.received, MSG_DONTWAIT),
		&ask.received, size);

	if (r != MOVED_ALL)
		return r;
	if (ask.head.magic != JIT_MAGIC || ask.head.size < size || ask.head.size > REPLY_MAX)
		return MOVED_FAILED;
	ask.reply = malloc(ask.head.size);
	if (!ask.reply)
		return MOVED_FAILED;
	memcpy(ask.reply, &ask.head, size);
	return ask.head.size == size ? MOVED_ALL : MOVED_SOME;
}

static enum moved receive_some(void)
{
	if (!ask.reply)
		return receive_head();
	return moved(recv(connection, (u8 *)ask.reply + ask.received, ask.head.size - ask.received,
			  MSG_DONTWAIT),
		     &ask.received, ask.head.size);
}

static enum moved move_some(void)
{
	enum moved r;

	if (!is_connected())
		return MOVED_FAILED;
	if (ask.sent == ask.request->size)
		return receive_some();
	r = send_some();
	return r == MOVED_ALL ? MOVED_SOME : r;
}

/* Until the compiler takes or gives something; false: it hangs. */
static bool wait_for_compiler(void)
{
	struct pollfd fd = { .fd = connection,
			     .events = ask.sent < ask.request->size ? POLLOUT : POLLIN };
	u64 now = exec_now_ns(), until = now + LIMIT_WAIT_S * 1000000000ULL;
	int n;

	/* A program with a timer interrupts this all the time. */
	do {
		n = poll(&fd, 1, now < until ? (int)((until - now) / 1000000) : 0);
		now = exec_now_ns();
	} while (n < 0 && errno == EINTR);
	return n > 0;
}

static bool begin(const struct jit_request *request)
{
	free(ask.reply);
	ask = (typeof(ask)){ .request = request, .fresh = !is_connected() };
	return !ask.fresh || start();
}

bool jit_ask(const struct jit_request *request, const char **ret_why)
{
	*ret_why = "the compiler cannot be started";
	return begin(request);
}

bool jit_answer(bool wait, struct jit_reply **ret, const char **ret_why)
{
	enum moved r;

	*ret = NULL;
	for (;;) {
		r = move_some();
		if (r == MOVED_NOTHING && !wait)
			return false;
		if (r == MOVED_NOTHING && !wait_for_compiler())
			r = MOVED_FAILED;
		if (r == MOVED_ALL) {
			*ret = ask.reply;
			ask.reply = NULL;
			return true;
		}
		if (r != MOVED_FAILED)
			continue;
		jit_forget_compiler();
		*ret_why = ask.fresh ? "the compiler has failed" : "the compiler cannot be started";
		/* It may have gone before it was asked: then it is started once more. */
		if (ask.fresh || !begin(ask.request))
			return true;
	}
}
