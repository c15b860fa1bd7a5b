// SPDX-License-Identifier: Apache-2.0
/*
 * Copies of libcuda: the watch finds those that are mapped already and those that come, whatever they are
 * called; a copy that was found counts, and what came before it is settled by the device's number.
 */
#include "harness.h"

#include <dlfcn.h>
#include <sys/sendfile.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *copy_path;

static void copy_file(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC),
	    out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	struct stat st;

	CHECK(in >= 0 && out >= 0 && fstat(in, &st) == 0);
	CHECK(sendfile(out, in, NULL, st.st_size) == st.st_size);
	close(in);
	close(out);
}

/* Loads the copy, and allocates when it has been found. */
static int use_copy(void *userdata)
{
	unsigned long address, damage = 0, arguments[6] = { (unsigned long)&address, 600 * MIB };
	void *library = dlopen(copy_path, RTLD_NOW);
	void *fn = library ? dlsym(library, "cuMemAlloc_v2") : NULL;

	if (!fn)
		return 3;
	for (volatile int *found = userdata; !*found;)
		usleep(1000);
	if (call_checked(fn, arguments, &damage) & 0xffffffff)
		return 4;
	return (call_checked(fn, arguments, &damage) & 0xffffffff) == OUT_OF_MEMORY && !damage ? 0
											       : 5;
}

static int is_copy(const struct engine_library *library, _unused_ void *userdata)
{
	return strcmp(library->path, copy_path) == 0 ? (int)library->n_calls : 0;
}

static int count(_unused_ const struct engine_library *library, void *userdata)
{
	(*(int *)userdata)++;
	return 0;
}

static void case_copy(struct bench *b, const char *what)
{
	volatile int *found = shared_memory(sizeof(int));
	pid_t pid = tenant_fork(b, use_copy, (void *)found);

	CHECK(WAIT_UNTIL(b, engine_each_library(b->engine, is_copy, NULL)));
	CHECK(engine_each_library(b->engine, is_copy, NULL) > 50, "the copy was not found");
	*found = 1;
	CHECK(tenant_wait(b, pid) == 0);
	printf("ok 'watch: %s'\n", what);
}

int main(_unused_ int argc, char **argv)
{
	char path[] = "/tmp/audit-watch-XXXXXX";
	struct bench b;
	int n = 0;

	bench_open(&b, ENGINE_RUNG_AUTO, 4096 * MIB);
	bench_limit(&b, 1000 * MIB, 0);
	close(mkstemp(path));
	copy_file(argv[1], path);
	copy_path = path;
	CHECK(engine_watch(b.engine, true) == 0);
	case_copy(&b, "trap 16 a copy under another name is probed when it is mapped");
	CHECK(b.n_events[AUDIT_EVENT_LIBRARY] >= 1);
	case_copy(&b, "trap 16 it is probed in the next process before its first call");
	CHECK(engine_watch(b.engine, false) == 0);
	engine_each_library(b.engine, count, &n);
	CHECK(n == 0, "%d libraries stay probed", n);
	printf("ok 'watch: nothing is probed when it is off'\n");
	unlink(path);
	bench_close(&b);
	return 0;
}
