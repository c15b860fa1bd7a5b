/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The compiler's process: started when it is first needed, kept for more.
 *
 * It is nobody's child: a program that waits for its own children does not find it. softgpu-jitc
 * forks at once and its first half ends; the other one ends when the socket closes, or when nobody
 * has asked for a while.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softgpu/jit/code.h"
#include "softgpu/jit/limit.h"
#include "softgpu/util/whole.h"

#define COMPILER  "softgpu-jitc"
#define REPLY_MAX (256u << 20)

static int connection = -1;

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

static void forget_connection(void)
{
	if (connection >= 0)
		close(connection);
	connection = -1;
}

static int spawn(const char *path, int fd)
{
	char *argv[] = { (char *)path, NULL }, *envp[] = { NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	pid_t pid;
	int r;

	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_adddup2(&actions, fd, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, fd, STDOUT_FILENO);
	posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &none);
	r = posix_spawn(&pid, path, &actions, &attr, argv, envp);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	/* Whoever else has waited for it has done no harm. */
	if (!r) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	return r;
}

static bool start(void)
{
	struct timeval limit = { .tv_sec = LIMIT_WAIT_S };
	static bool watched;
	char path[4096];
	int fds[2];

	if (!find_compiler(path, sizeof(path)) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return false;
	if (!watched) {
		pthread_atfork(NULL, NULL, forget_connection);
		watched = true;
	}
	if (spawn(path, fds[1])) {
		close(fds[0]);
		close(fds[1]);
		return false;
	}
	close(fds[1]);
	setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fds[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	connection = fds[0];
	return true;
}

/* ---- asking -------------------------------------------------------------------------------------- */

static struct jit_reply *receive_reply(void)
{
	struct jit_reply head, *reply;

	if (!whole_read(connection, &head, sizeof(head)) || head.magic != JIT_MAGIC ||
	    head.size < sizeof(head) || head.size > REPLY_MAX)
		return NULL;
	reply = malloc(head.size);
	if (!reply)
		return NULL;
	memcpy(reply, &head, sizeof(head));
	if (whole_read(connection, reply + 1, head.size - sizeof(head)))
		return reply;
	free(reply);
	return NULL;
}

struct jit_reply *jit_ask(const struct jit_request *request, const char **ret_why)
{
	struct jit_reply *reply = NULL;

	/* It may have gone meanwhile: then it is started once more. */
	for (int i = 0; i < 2 && !reply; i++) {
		bool fresh = connection < 0;

		*ret_why = "the compiler cannot be started";
		if (fresh && !start())
			return NULL;
		*ret_why = "the compiler has failed";
		if (whole_send(connection, request, request->size))
			reply = receive_reply();
		if (!reply)
			forget_connection();
		if (fresh)
			break;
	}
	return reply;
}
