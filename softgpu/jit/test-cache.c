/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache on disk: what is kept comes back, and nothing of what somebody else may have written.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softgpu/jit/cache.h"

static char base[] = "/tmp/test-jit-cache.XXXXXX";
static int n_failed;

static void check(bool ok, const char *what)
{
	printf("%s 'jit_cache: %s'\n", ok ? "ok" : "not ok", what);
	n_failed += !ok;
}

/* A request and a reply that are told apart by a number. */
static struct {
	struct jit_request head;
	uint32_t rest[64];
} request;

static struct {
	struct jit_reply head;
	uint32_t rest[64];
} reply;

static void make(uint32_t number)
{
	memset(&request, 0, sizeof(request));
	memset(&reply, 0, sizeof(reply));
	request.head.size = sizeof(request);
	request.rest[7] = number;
	reply.head.size = sizeof(reply);
	reply.rest[9] = number;
}

static bool is_there(uint32_t number)
{
	struct jit_reply *got;
	bool same;

	make(number);
	got = jit_cache_get(&request.head, /* compiler= */ 1);
	same = got && !memcmp(got, &reply, sizeof(reply));
	free(got);
	return same;
}

static void put(uint32_t number)
{
	make(number);
	jit_cache_put(&request.head, /* compiler= */ 1, &reply.head);
}

static const char *path_of(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", base, name);
	return path;
}

/* The only file in the folder. */
static const char *only_file(void)
{
	static char path[512];
	char command[512];
	FILE *f;

	snprintf(command, sizeof(command), "echo %s/softgpu/*.jit", base);
	f = popen(command, "r");
	if (!f || !fgets(path, sizeof(path), f))
		abort();
	pclose(f);
	path[strcspn(path, " \n")] = '\0';
	return path;
}

static void empty(void)
{
	char command[256];

	snprintf(command, sizeof(command), "rm -rf %s/softgpu", base);
	if (system(command))
		abort();
}

static void test_kept(void)
{
	empty();
	check(!is_there(1), "nothing is in an empty one");
	put(1);
	check(is_there(1), "what is put is there");
	check(!is_there(2), "another request is not answered by it");
	make(1);
	check(!jit_cache_get(&request.head, /* compiler= */ 2), "another compiler's is not taken");
}

static void test_damaged(void)
{
	static const char junk[] = "SJIT and something else";
	int fd;

	empty();
	put(1);
	check(truncate(only_file(), 300) == 0 && !is_there(1), "a file that is cut off is none");
	put(1);
	check(is_there(1), "and is written again");
	fd = open(only_file(), O_WRONLY | O_TRUNC);
	check(fd >= 0 && write(fd, junk, sizeof(junk)) == (ssize_t)sizeof(junk) && !is_there(1),
	      "nor is junk");
	close(fd);
}

static void test_hostile(void)
{
	char file[512], elsewhere[512];

	empty();
	put(1);
	snprintf(file, sizeof(file), "%s", only_file());
	check(chmod(file, 0620) == 0 && !is_there(1), "a file that others may write is not read");
	chmod(file, 0600);
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", base);
	check(is_there(1) && rename(file, elsewhere) == 0 && symlink(elsewhere, file) == 0 &&
		      !is_there(1),
	      "a link is not followed");
	unlink(file);
	check(mkfifo(file, 0600) == 0 && !is_there(1), "a pipe is not waited for");
	put(1);
	check(is_there(1), "a file takes the place of a pipe");

	check(chmod(path_of("softgpu"), 0777) == 0 && !is_there(1),
	      "a folder that others may write is not used");
	put(2);
	chmod(path_of("softgpu"), 0700);
	check(!is_there(2), "nor written to");
	snprintf(elsewhere, sizeof(elsewhere), "%s/other", base);
	check(rename(path_of("softgpu"), elsewhere) == 0 &&
		      symlink(elsewhere, path_of("softgpu")) == 0 && !is_there(1),
	      "a folder that is a link is not used");
	unlink(path_of("softgpu"));
	check(chmod(base, 0777) == 0 && !is_there(1), "nor one that others may put there");
	chmod(base, 0700);
}

static bool is_empty(void)
{
	const char *name = strrchr(only_file(), '/');

	/* The pattern itself, where nothing matches. */
	return name && !strcmp(name, "/*.jit");
}

/* A disk that is full, which a limit on the size of files looks like. */
static void test_full(void)
{
	struct rlimit none = { 100, RLIM_INFINITY }, before;

	empty();
	put(1);
	unlink(only_file());
	if (getrlimit(RLIMIT_FSIZE, &before) < 0 || signal(SIGXFSZ, SIG_IGN) == SIG_ERR)
		abort();
	none.rlim_max = before.rlim_max;
	setrlimit(RLIMIT_FSIZE, &none);
	put(1);
	setrlimit(RLIMIT_FSIZE, &before);
	check(!is_there(1) && is_empty(), "where there is no room, no piece of a file is left");
	check(chmod(path_of("softgpu"), 0500) == 0, "a folder that cannot be written");
	put(1);
	chmod(path_of("softgpu"), 0700);
	put(2);
	check(is_there(2), "is used again when it can be");
}

/* Whose files they are can only be changed by root. */
static void test_foreign(void)
{
	enum { SOMEBODY = 65534 };

	if (geteuid() != 0)
		return;
	empty();
	put(1);
	check(chown(only_file(), SOMEBODY, SOMEBODY) == 0 && !is_there(1),
	      "another user's file is not read");
	put(1);
	check(is_there(1), "and one's own takes its place");
	check(chown(path_of("softgpu"), SOMEBODY, SOMEBODY) == 0 && !is_there(1),
	      "another user's folder is not used");
	put(2);
	check(chown(path_of("softgpu"), 0, 0) == 0 && !is_there(2), "nor written to");
}

/* Files that look large: room is made by their size. */
static void test_bound(void)
{
	char path[512];
	struct stat st;
	int fd, n = 0;

	empty();
	put(1);
	for (int i = 0; i < 6; i++) {
		struct timespec times[2] = { { .tv_sec = 1000 + i }, { .tv_sec = 1000 + i } };

		snprintf(path, sizeof(path), "%s/softgpu/old%d.jit", base, i);
		fd = open(path, O_WRONLY | O_CREAT, 0600);
		if (fd < 0 || ftruncate(fd, JIT_CACHE_MAX_BYTES / 4) < 0 || futimens(fd, times) < 0)
			abort();
		close(fd);
	}
	put(2);
	for (int i = 0; i < 6; i++) {
		snprintf(path, sizeof(path), "%s/softgpu/old%d.jit", base, i);
		n += stat(path, &st) == 0;
	}
	check(n == 2 && stat(path, &st) == 0, "the longest unused make room");
	check(is_there(1) && is_there(2), "the last used stay");
}

int main(void)
{
	if (!mkdtemp(base))
		return 1;
	setenv("XDG_CACHE_HOME", base, 1);
	test_kept();
	test_damaged();
	test_hostile();
	test_full();
	test_foreign();
	test_bound();
	empty();
	if (system(NULL)) {
		char command[256];

		snprintf(command, sizeof(command), "rm -rf %s", base);
		n_failed += system(command) != 0;
	}
	return n_failed != 0;
}
