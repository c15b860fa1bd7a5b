// SPDX-License-Identifier: Apache-2.0
/*
 * What tenants may do to their copies of libcuda: write over them, replace or remove them, damage them,
 * make many, map them and go. Whoever maps one that can be probed is counted, others are not concerned,
 * and the engine comes up.
 */
#include "harness.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "audit/priv.h"
#include "audit/room.h"

#define GRACE_NS (300 * MILLISECOND)
#define BEYOND	 6 /* so many copies more than a tenant has room for */

static const char *original;
static char folder[] = "/tmp/audit-copies-XXXXXX";
static volatile int *go;

static const char *name_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

/* Written in place, so that a file that is there stays the same file. */
static void write_copy(const char *name, const char *from)
{
	static char bytes[1 << 20];
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(name_of(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	ssize_t n = read(in, bytes, sizeof(bytes));

	CHECK(in >= 0 && out >= 0 && n > 0 && n < (ssize_t)sizeof(bytes));
	CHECK(write(out, bytes, n) == n);
	close(in);
	close(out);
}

static int is_named(const struct engine_library *library, void *userdata)
{
	return strcmp(library->path, name_of(userdata)) == 0;
}

static bool is_probed(struct bench *b, const char *name)
{
	return engine_each_library(b->engine, is_named, (void *)name);
}

static void wait_until_probed(struct bench *b, const char *name, bool probed)
{
	CHECK(WAIT_UNTIL(b, is_probed(b, name) == probed), "%s", name);
}

static int is_one_of_many(const struct engine_library *library, void *userdata)
{
	*(int *)userdata += strstr(library->path, "/many-") != NULL;
	return 0;
}

static int n_of_many(struct bench *b)
{
	int n = 0;

	engine_each_library(b->engine, is_one_of_many, &n);
	return n;
}

/* --- tenants ----------------------------------------------------------------------------------------- */

/* Maps a copy; when told to, uses it: 600 MiB fit, 600 more do not. */
static int use(void *userdata)
{
	unsigned long address, damage = 0, arguments[6] = { (unsigned long)&address, 600 * MIB };
	void *library = dlopen(name_of(userdata), RTLD_NOW);
	void *fn = library ? dlsym(library, "cuMemAlloc_v2") : NULL;

	if (!fn)
		return 3;
	while (!*go)
		usleep(1000);
	if (call_checked(fn, arguments, &damage) & 0xffffffff)
		return 4;
	return (call_checked(fn, arguments, &damage) & 0xffffffff) == OUT_OF_MEMORY && !damage ? 0
											       : 5;
}

static int map_many(_unused_ void *userdata)
{
	char name[32];

	for (int i = 0; i < AUDIT_TENANT_LIBRARIES + BEYOND; i++) {
		snprintf(name, sizeof(name), "many-%d", i);
		if (!dlopen(name_of(name), RTLD_NOW))
			return 1;
	}
	return pause();
}

static void use_and_end(struct bench *b, const char *name)
{
	pid_t pid;
	int code;

	*go = 0;
	pid = tenant_fork(b, use, (void *)name);
	wait_until_probed(b, name, true);
	*go = 1;
	code = tenant_wait(b, pid);
	CHECK(code == 0, "%d", code);
}

static void restart(struct bench *b)
{
	bench_leave(b);
	bench_return(b);
}

/* --- cases ------------------------------------------------------------------------------------------- */

/* A file that was looked at, and was nothing, becomes a copy. */
static void case_written_over(struct bench *b)
{
	int fd;
	void *at;

	write_copy("over", "/proc/self/status");
	fd = open(name_of("over"), O_RDONLY | O_CLOEXEC);
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	CHECK(at != MAP_FAILED);
	bench_pump(b, 50);
	CHECK(!is_probed(b, "over"));
	munmap(at, 4096);
	close(fd);
	write_copy("over", original);
	use_and_end(b, "over");
	printf("ok 'copies: a file that was looked at is written over'\n");
}

/* The tenant has it mapped; under its name is something else, or nothing, when the engine comes up. */
static void case_replaced(struct bench *b)
{
	pid_t pid;
	int code;

	write_copy("replaced", original);
	*go = 0;
	pid = tenant_fork(b, use, "replaced");
	wait_until_probed(b, "replaced", true);
	CHECK(unlink(name_of("replaced")) == 0);
	write_copy("replaced", "/proc/self/status");
	restart(b);
	CHECK(is_probed(b, "replaced"), "it is not probed when the programs begin");
	unlink(name_of("replaced"));
	restart(b);
	CHECK(is_probed(b, "replaced"));
	*go = 1;
	code = tenant_wait(b, pid);
	CHECK(code == 0, "%d", code);
	printf("ok 'copies: one that is mapped is replaced, and removed, between two engines'\n");
}

/* What tells of its calls is there, some of their code is not. */
static void cut_code(const char *name)
{
	void *library = dlopen(original, RTLD_NOW);
	void *fn = library ? dlsym(library, "cuMemAlloc_v2") : NULL;
	Dl_info info;

	CHECK(fn && dladdr(fn, &info));
	/* The linker puts code where it is in memory. */
	CHECK(truncate(name_of(name), (char *)fn - (char *)info.dli_fbase) == 0);
	/* Tenants that are forked from here must not have it, or it is one of their copies. */
	dlclose(library);
}

/* One copy after the other, each when told to. */
static int map_later(_unused_ void *userdata)
{
	for (int step = 1; step <= 2; step++) {
		while (*go < step)
			usleep(1000);
		if (!dlopen(name_of(step == 1 ? "libcuda-1" : "libcuda-2"), RTLD_NOW))
			return step;
	}
	return pause();
}

/* The first call of a process, when told to. */
static int call_later(void *userdata)
{
	unsigned long address, damage = 0, arguments[6] = { (unsigned long)&address, MIB };
	void *library = dlopen(name_of("libcuda-0"), RTLD_NOW);
	void *fn = library ? dlsym(library, "cuMemAlloc_v2") : NULL;

	if (!fn)
		return 3;
	while (go[1] < (int)(intptr_t)userdata)
		usleep(1000);
	return call_checked(fn, arguments, &damage) & 0xffffffff || damage;
}

/* A tenant maps a copy, and another makes his first call, while none can be opened here. */
static void map_without_descriptors(struct bench *b, int step)
{
	uint64_t unprobed = b->n_events[AUDIT_EVENT_UNPROBED];
	uint64_t processes = b->n_events[AUDIT_EVENT_NEW_PROCESS];
	struct rlimit most, none;
	pid_t pid;
	int fd;

	pid = tenant_fork(b, call_later, (void *)(intptr_t)step);
	wait_until_probed(b, "libcuda-0", true);
	CHECK(WAIT_UNTIL(b, !b->engine->events));
	CHECK(getrlimit(RLIMIT_NOFILE, &most) == 0);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0 && close(fd) == 0);
	none = (struct rlimit){ fd, most.rlim_max };
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	*go = step;
	CHECK(WAIT_UNTIL(b, b->n_events[AUDIT_EVENT_UNPROBED] > unprobed));
	go[1] = step;
	CHECK(WAIT_UNTIL(b, b->n_events[AUDIT_EVENT_NEW_PROCESS] > processes));
	CHECK(setrlimit(RLIMIT_NOFILE, &most) == 0);
	CHECK(tenant_wait(b, pid) == 0);
}

/* The second time all else that the process maps is known. */
static void case_no_descriptors(struct bench *b)
{
	pid_t pid, other;

	write_copy("libcuda-0", original);
	write_copy("libcuda-1", original);
	write_copy("libcuda-2", original);
	*go = 0;
	pid = tenant_fork(b, map_later, NULL);
	for (int step = 1; step <= 2; step++) {
		map_without_descriptors(b, step);
		/* Whenever a binding has changed, tenants are looked at again. */
		other = tenant_fork(b, call_later, (void *)(intptr_t)INT_MAX);
		wait_until_probed(b, step == 1 ? "libcuda-1" : "libcuda-2", true);
		kill(other, SIGKILL);
		CHECK(tenant_wait(b, other) == 128 + SIGKILL);
	}
	kill(pid, SIGKILL);
	CHECK(tenant_wait(b, pid) == 128 + SIGKILL);
	printf("ok 'copies: one that could not be opened is looked at again, and events come meanwhile'\n");
}

static void case_damaged(struct bench *b)
{
	uint64_t told = b->n_events[AUDIT_EVENT_UNPROBED];

	write_copy("garbage", original);
	write_copy("cut", original);
	write_copy("whole", original);
	use_and_end(b, "garbage");
	use_and_end(b, "cut");
	use_and_end(b, "whole");
	write_copy("garbage", "/proc/self/status");
	cut_code("cut");
	restart(b);
	CHECK(!is_probed(b, "garbage"));
	CHECK(!is_probed(b, "cut"));
	CHECK(is_probed(b, "whole"));
	CHECK(b->n_events[AUDIT_EVENT_UNPROBED] == told + 2, "%lu",
	      b->n_events[AUDIT_EVENT_UNPROBED] - told);
	printf("ok 'copies: damaged ones are told of, and the engine comes up'\n");
}

static void case_unused(struct bench *b)
{
	pid_t pid;

	b->copies_grace_ns = GRACE_NS;
	restart(b);
	CHECK(engine_watch(b->engine, true) == 0);
	write_copy("used", original);
	*go = 0;
	pid = tenant_fork(b, use, "used");
	wait_until_probed(b, "used", true);
	wait_until_probed(b, "whole", false);
	bench_pump(b, 3 * GRACE_NS / MILLISECOND);
	CHECK(is_probed(b, "used"));
	CHECK(engine_unbind(b->engine, ENGINE_BIND_TREE, pid) == 0);
	wait_until_probed(b, "used", false);
	printf("ok 'copies: what no tenant maps any more is let go'\n");
	CHECK(engine_bind(b->engine, b->tenant, ENGINE_BIND_TREE, pid) == 0);
	wait_until_probed(b, "used", true);
	*go = 1;
	CHECK(tenant_wait(b, pid) == 0);
	printf("ok 'copies: and is probed again when who maps it becomes a tenant'\n");
}

/* Long before all processes are looked at again. */
static void case_arrival(struct bench *b)
{
	static char arrived[128];
	pid_t pid;
	int status;

	write_copy("arrived", original);
	b->n_of_text = 0;
	b->text = strcpy(arrived, name_of("arrived"));
	*go = 0;
	pid = bench_fork();
	if (pid == 0)
		_exit(use("arrived"));
	bench_child = pid;
	/* It is let go so soon that nobody may find it probed; the event stays. */
	CHECK(WAIT_UNTIL(b, b->n_of_text));
	wait_until_probed(b, "arrived", false);
	cgroup_set("cgroup.procs", pid);
	wait_until_probed(b, "arrived", true);
	*go = 1;
	CHECK(waitpid(pid, &status, 0) == pid && status == 0, "%x", status);
	bench_child = 0;
	printf("ok 'copies: and when who maps it is put into the cgroup of a tenant'\n");
}

static void case_many(struct bench *b)
{
	uint64_t told = b->n_events[AUDIT_EVENT_UNPROBED];
	uint32_t first = b->tenant;
	char name[32];
	pid_t pid;

	for (int i = 0; i < AUDIT_TENANT_LIBRARIES + BEYOND; i++) {
		snprintf(name, sizeof(name), "many-%d", i);
		write_copy(name, original);
	}
	write_copy("quiet", original);
	/* What the cases before have left takes room of the tenant's until it is let go. */
	wait_until_probed(b, "used", false);
	wait_until_probed(b, "arrived", false);
	pid = tenant_fork(b, map_many, NULL);
	CHECK(WAIT_UNTIL(b, b->n_events[AUDIT_EVENT_UNPROBED] >= told + BEYOND &&
				    n_of_many(b) >= AUDIT_TENANT_LIBRARIES));
	CHECK(n_of_many(b) == AUDIT_TENANT_LIBRARIES, "%d", n_of_many(b));
	CHECK(engine_tenant_new(b->engine, "quiet", &b->tenant) == 0);
	bench_limit(b, 1000 * MIB, 0);
	use_and_end(b, "quiet");
	kill(pid, SIGKILL);
	b->tenant = first;
	tenant_wait(b, pid);
	printf("ok 'copies: %d of one tenant, and room for those of another'\n",
	       AUDIT_TENANT_LIBRARIES);
}

static void folder_remove(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	if (system(command))
		fprintf(stderr, "%s stays\n", folder);
}

int main(_unused_ int argc, char **argv)
{
	struct bench b;

	bench_open(&b, ENGINE_RUNG_AUTO, 4096 * MIB);
	bench_limit(&b, 1000 * MIB, 0);
	CHECK(mkdtemp(folder));
	atexit(folder_remove);
	original = argv[1];
	go = shared_memory(2 * sizeof(int));
	CHECK(engine_watch(b.engine, true) == 0);
	case_written_over(&b);
	/* However long the next two take: what is damaged when it is taken over is still probed by then. */
	b.copies_grace_ns = 10 * PATIENCE_NS;
	case_replaced(&b);
	CHECK(engine_watch(b.engine, true) == 0);
	case_no_descriptors(&b);
	case_damaged(&b);
	/* Who is in it from the beginning is looked at when that is bound, so it is made in time. */
	CHECK(engine_bind(b.engine, b.tenant, ENGINE_BIND_CGROUP, cgroup_make()) == 0);
	case_unused(&b);
	case_arrival(&b);
	case_many(&b);
	bench_close(&b);
	return 0;
}
