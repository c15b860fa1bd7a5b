// SPDX-License-Identifier: Apache-2.0
/*
 * The shared state, with real processes that are killed, stopped and forked.
 */
#include "softgpu/state/internal.h"
#include "softgpu/state/test-cgroup.h"
#include "softgpu/util/check.h"
#include "softgpu/util/test-child.h"
#include "softgpu/util/test-dir.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB	     (1ull << 20)
#define LIMIT_ROUNDS 10000

static struct softgpu_config config;

static void dir_new(void)
{
	config_default(&config);
	strcpy(config.dir, "/tmp/softgpu-state-XXXXXX");
	if (!mkdtemp(config.dir))
		exit(1);
	chmod(config.dir, 01777);
}

static struct state *state_new(void)
{
	struct state *state;

	if (state_open(&config, STATE_CONFIGURE, &state) != 0) {
		printf("NOT OK 'state_open'\n");
		exit(1);
	}
	return state;
}

static struct state *attached_new(void)
{
	struct state *state = state_new();

	if (state_attach(state) != 0) {
		printf("NOT OK 'state_attach'\n");
		exit(1);
	}
	return state;
}

static uint64_t used(struct state *state)
{
	struct state_memory memory;

	state_memory_device(state, 0, &memory);
	return memory.used_bytes;
}

/* Runs @body in a child that then waits to be killed; returns when the body is through. */
static pid_t child_start(void (*body)(void *arg), void *arg)
{
	int pipe_fd[2];
	char byte;
	pid_t pid;

	if (pipe(pipe_fd) < 0)
		exit(1);
	pid = child_new();
	if (pid == 0) {
		body(arg);
		if (write(pipe_fd[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(pipe_fd[1]);
	if (read(pipe_fd[0], &byte, 1) != 1)
		printf("# a child ended early\n");
	close(pipe_fd[0]);
	return pid;
}

static void child_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static int child_wait(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void test_charge(void)
{
	struct state *a, *b, *monitor;
	struct state_process p[4];
	uint64_t total;

	config.devices[0].memory_bytes = total = 1000 * MIB;
	a = attached_new();
	b = attached_new();
	monitor = state_new();
	check(state_charge(a, 0, 600 * MIB) == 0, "state_charge: fits");
	check(state_charge(b, 0, 401 * MIB) == STATE_E_FULL, "state_charge: one too many");
	check(state_charge(b, 0, 400 * MIB) == 0 && used(a) == total,
	      "state_charge: the last byte");
	check(state_charge(a, 0, 1) == STATE_E_FULL, "state_charge: full");
	check(state_charge(a, 1, 80ull << 30) == 0, "state_charge: another device is another one");
	check(state_charge(a, 1, UINT64_MAX) == STATE_E_FULL, "state_charge: huge");
	state_uncharge(a, 0, 100 * MIB);
	check(used(b) == total - 100 * MIB, "state_uncharge");
	check(state_processes(monitor, 0, p, 4) == 2,
	      "state_processes: monitors are not on the books");
	check(p[0].pid == getpid() && p[0].used_bytes + p[1].used_bytes == used(monitor),
	      "state_processes: pid and memory that adds up");
	check(state_computing(monitor, 1, p, 4) == 1 && p[0].used_bytes == 80ull << 30,
	      "state_computing: not who only opened the driver");
	state_context_add(b, 1, 1);
	check(state_computing(monitor, 1, p, 4) == 2, "state_computing: who has a context");
	state_context_add(b, 1, -1);
	check(state_computing(monitor, 1, NULL, 0) == 1, "state_computing: and has it no more");
	state_close(a);
	check(used(b) == 400 * MIB, "state_close: gives its memory back");
	state_close(b);
	check(used(monitor) == 0 && state_processes(monitor, 0, p, 4) == 0, "state_close: all");
	state_close(monitor);
}

/* Outlives the stacks of threads, for the leak checker's sake. */
static struct state *volatile kept;

static void charge_half(_unused_ void *arg)
{
	kept = attached_new();
	state_charge(kept, 0, 500 * MIB);
}

static void test_kill(void)
{
	struct state *monitor = state_new();
	pid_t child = child_start(charge_half, NULL);

	check(used(monitor) == 500 * MIB, "another process's memory shows");
	child_kill(child);
	check(used(monitor) == 0, "SIGKILL: free when the parent has reaped it");
	state_close(monitor);
}

static void test_stop(void)
{
	pid_t child = child_start(charge_half, NULL);
	struct state *a;

	kill(child, SIGSTOP);
	waitpid(child, NULL, WUNTRACED);
	a = attached_new();
	check(state_charge(a, 0, 500 * MIB) == 0, "SIGSTOP: another process allocates");
	check(state_charge(a, 0, 1) == STATE_E_FULL, "SIGSTOP: its memory stays its own");
	child_kill(child);
	check(state_charge(a, 0, 500 * MIB) == 0, "SIGKILL of a stopped process");
	state_close(a);
}

/* What children tell the test. */
struct tally {
	_Atomic uint64_t held;
	_Atomic uint64_t n_refused;
	_Atomic bool exceeded;
};

static struct tally *tally;

/* After how many charges a process leaves the books and comes back. */
static unsigned churn_stay = 4096;

/* Charges and gives back for ever. */
static void churn(uint64_t size)
{
	struct state *state = attached_new();
	uint64_t held;

	for (unsigned n = 1;; n++) {
		if (n % churn_stay == 0) {
			state_close(state);
			state = attached_new();
		}
		if (state_charge(state, 0, size) != 0) {
			atomic_fetch_add(&tally->n_refused, 1);
			continue;
		}
		held = atomic_fetch_add(&tally->held, size) + size;
		if (held > config.devices[0].memory_bytes)
			atomic_store(&tally->exceeded, true);
		atomic_fetch_sub(&tally->held, size);
		state_uncharge(state, 0, size);
	}
}

static pid_t churn_start(uint64_t size)
{
	pid_t pid = child_new();

	if (pid == 0)
		churn(size);
	return pid;
}

/* Before the first dies: its memory is free then, but what it has tallied stays. */
static void children_stop(const pid_t pids[3])
{
	for (int i = 0; i < 3; i++)
		kill(pids[i], SIGSTOP);
	for (int i = 0; i < 3; i++)
		waitpid(pids[i], NULL, WUNTRACED);
}

static void churn_all(const uint64_t sizes[3], useconds_t usec, bool stand_still)
{
	pid_t pids[3];

	memset(tally, 0, sizeof(*tally));
	for (int i = 0; i < 3; i++)
		pids[i] = churn_start(sizes[i]);
	usleep(usec);
	if (stand_still)
		children_stop(pids);
	for (int i = 0; i < 3; i++)
		child_kill(pids[i]);
}

static void test_race(void)
{
	static const uint64_t too_many[] = { 400 * MIB, 500 * MIB, 300 * MIB };
	static const uint64_t fitting[] = { 700 * MIB, 300 * MIB, 1 };

	churn_all(too_many, 100000, true);
	check(!tally->exceeded, "state_charge: three at once never hold more than there is");
	config.devices[0].memory_bytes = 1000 * MIB + 1;
	churn_all(fitting, 100000, true);
	check(tally->n_refused == 0, "state_charge: three that fit together are never refused");
}

static void test_kill_anywhere(void)
{
	struct state *monitor = state_new();
	uint64_t left = 0;

	churn_stay = 2;
	for (useconds_t round = 0; round < 60; round++) {
		churn_all((uint64_t[]){ 100 * MIB, 200 * MIB, 300 * MIB }, 2000 + round * 37,
			  false);
		left += used(monitor);
	}
	check(left == 0, "SIGKILL at any instruction: nothing is left");
	state_close(monitor);
}

static void test_fork(void)
{
	struct state *state = attached_new();
	pid_t pid;

	state_charge(state, 0, MIB);
	pid = child_new();
	if (pid == 0) {
		struct state *own;
		bool good = state_is_forked(state) && state_attach(state) == STATE_E_FORKED &&
			    state_charge(state, 0, 1) == STATE_E_FORKED;

		state_uncharge(state, 0, MIB);
		state_close(state);
		own = attached_new();
		good = good && used(own) == MIB && state_charge(own, 0, MIB) == 0;
		_exit(good ? 0 : 1);
	}
	check(child_wait(pid) == 0, "fork: the child has nothing and opens it anew");
	check(used(state) == MIB, "fork: the parent keeps what it had");
	state_close(state);
}

static void *thread_stays(void *arg)
{
	int *fds = arg;
	char byte;

	if (write(fds[1], "x", 1) != 1 || read(fds[2], &byte, 1) != 1)
		_exit(1);
	return NULL;
}

static void test_main_thread_ends(void)
{
	static struct state *volatile monitor;
	static int fds[3]; /* the thread reads them when this frame is gone */
	int up[2], down[2];
	pthread_t thread;
	char byte;
	pid_t pid;

	monitor = state_new();
	if (pipe(up) < 0 || pipe(down) < 0)
		exit(1);
	fds[1] = up[1];
	fds[2] = down[0];
	pid = child_new();
	if (pid == 0) {
		charge_half(NULL);
		pthread_create(&thread, NULL, thread_stays, fds);
		pthread_exit(NULL);
	}
	close(up[1]);
	if (read(up[0], &byte, 1) != 1)
		exit(1);
	check(used(monitor) == 500 * MIB, "pthread_exit of main: the process lives");
	if (write(down[1], "x", 1) != 1)
		exit(1);
	check(child_wait(pid) == 0, "pthread_exit of the last thread ends the process");
	check(used(monitor) == 0, "pthread_exit of the last thread: its memory is free");
	state_close(monitor);
}

static void nothing(_unused_ void *arg)
{
	struct state *state = attached_new();

	state_context_add(state, 0, 1);
}

static void test_many(void)
{
	struct state *monitor = state_new();
	int go[2], ready[2], n_ready = 0;
	pid_t pids[200];
	char byte;

	if (pipe(go) < 0 || pipe(ready) < 0)
		exit(1);
	for (int i = 0; i < 200; i++) {
		pids[i] = child_new();
		if (pids[i] != 0)
			continue;
		close(go[1]);
		if (read(go[0], &byte, 1) < 0)
			_exit(1);
		nothing(NULL);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		close(ready[1]);
		for (;;)
			pause();
	}
	close(ready[1]);
	close(go[1]);
	while (n_ready < 200 && read(ready[0], &byte, 1) == 1)
		n_ready++;
	check(state_processes(monitor, 0, NULL, 0) == 200, "200 processes that start at once");
	for (int i = 0; i < 200; i++)
		child_kill(pids[i]);
	check(state_processes(monitor, 0, NULL, 0) == 0, "200 processes killed");
	state_close(monitor);
}

static void file_damage(const char *name, off_t at, const char *bytes, size_t n)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", config.dir, name);
	fd = open(path, O_WRONLY);
	if (fd < 0 || pwrite(fd, bytes, n, at) != (ssize_t)n)
		exit(1);
	close(fd);
}

/* What opening answers with one byte changed. */
static int open_changed(int fd, size_t at, uint8_t mask)
{
	struct state *state = NULL;
	uint8_t byte;
	int r;

	if (pread(fd, &byte, 1, (off_t)at) != 1)
		exit(1);
	byte ^= mask;
	if (pwrite(fd, &byte, 1, (off_t)at) != 1)
		exit(1);
	r = state_open(&config, 0, &state);
	if (r == 0)
		state_close(state);
	byte ^= mask;
	if (pwrite(fd, &byte, 1, (off_t)at) != 1)
		exit(1);
	return r;
}

static bool is_refused(int fd, size_t at, uint8_t mask)
{
	return open_changed(fd, at, mask) == STATE_E_FOREIGN;
}

static bool every_byte_counts(int fd, size_t begin, size_t end)
{
	for (size_t at = begin; at < end; at++)
		if (!is_refused(fd, at, 0xff) || !is_refused(fd, at, (uint8_t)(1 << at % 8)))
			return false;
	return true;
}

static int file_open_again(const char *name)
{
	char path[300];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", config.dir, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		exit(1);
	return fd;
}

static void test_damaged(void)
{
	const size_t header_end = offsetof(struct state_file, pid_namespace);
	const size_t n_properties = offsetof(struct state_file, n_properties);
	const size_t holds = offsetof(struct state_file, properties[0]);
	const size_t holds_not = offsetof(struct state_file, properties[1]);
	int fd;

	state_close(state_new());
	fd = file_open_again("device-0");
	check(every_byte_counts(fd, 0, header_end), "every byte of the header counts");
	check(every_byte_counts(fd, holds, holds_not), "every one of the configuration that holds");
	check(every_byte_counts(fd, n_properties, n_properties + 4), "and of which one does");
	check(is_refused(fd, offsetof(struct state_file, slots[7].birth), 1) &&
		      is_refused(fd, offsetof(struct state_file, slots[7].used.a), 1) &&
		      is_refused(fd, offsetof(struct state_file, slots[7].used.b) + 7, 1) &&
		      is_refused(fd, offsetof(struct state_file, slots[7].n_contexts) + 3, 0x80),
	      "a slot that nobody had is not another's, and has nothing");
	check(is_refused(fd, offsetof(struct state_file, charge.b) + 7, 0x40) &&
		      is_refused(fd, offsetof(struct state_file, turn.a) + 7, 0x40) &&
		      is_refused(fd, offsetof(struct state_file, turn.b) + 2, 1) &&
		      is_refused(fd, offsetof(struct state_file, busy_ns) + 7, 0x40) &&
		      is_refused(fd, offsetof(struct state_file, clients[7].served.a) + 1, 1) &&
		      is_refused(fd, offsetof(struct state_file, clients[7].keeps_turn) + 3, 1),
	      "nothing is of nobody's or ahead of what it follows");
	check(is_refused(fd, offsetof(struct state_file, limits[2].path) + STATE_PATH_MAX - 1, 1),
	      "a path has an end");
	check(open_changed(fd, 0, 0) == 0, "unchanged it is good");
	close(fd);
}

static void test_foreign(void)
{
	struct state *state = NULL;
	char path[300];

	file_damage("device-0", 0, "X", 1);
	check(state_open(&config, 0, &state) == STATE_E_FOREIGN, "a file of something else");
	file_damage("device-0", 0, "S", 1);
	file_damage("device-0", offsetof(struct state_file, version), "\x63", 1);
	check(state_open(&config, 0, &state) == STATE_E_FOREIGN, "a file of another version");
	file_damage("device-0", offsetof(struct state_file, version), "\x02", 1);
	file_damage("device-0", offsetof(struct state_file, slots[9].used.b), "scribble", 8);
	check(state_open(&config, 0, &state) == STATE_E_FOREIGN,
	      "a file with a use that cannot be");
	file_damage("device-0", offsetof(struct state_file, slots[9].used.b), "\0\0\0\0\0\0\0", 8);
	file_damage("device-0", offsetof(struct state_file, n_clients), "\xff\xff", 2);
	check(state_open(&config, 0, &state) == STATE_E_FOREIGN, "a file with too many clients");
	file_damage("device-0", offsetof(struct state_file, n_clients), "\0\0", 2);
	check(state_open(&config, 0, &state) == 0, "the file is good again");
	state_close(state);
	snprintf(path, sizeof(path), "%s/device-1", config.dir);
	if (truncate(path, 4096) < 0)
		exit(1);
	check(state_open(&config, 0, &state) == STATE_E_FOREIGN, "a file cut short");
	unlink(path);
	if (symlink("/etc/passwd", path) < 0)
		exit(1);
	check(state_open(&config, 0, &state) == -ELOOP, "a link");
	unlink(path);
}

static void test_stale(void)
{
	struct state *state;
	uint64_t sum;

	state = attached_new();
	state_charge(state, 0, MIB);
	file_damage("device-0", offsetof(struct state_file, boot_id), "before the boot!", 16);
	sum = header_sum(state->files[0]);
	file_damage("device-0", offsetof(struct state_file, sum), (const char *)&sum, sizeof(sum));
	/* Its clock was another one: what it tells may lie in the future of this one. */
	file_damage("device-0", offsetof(struct state_file, turn.a), "\xff\xff\xff\xff\xff\xff", 6);
	state_close(state);
	check(state_open(&config, 0, &state) == 0 && state->files[0]->charge.a == 0,
	      "a file of an earlier boot is replaced");
	state_close(state);
}

static void test_configure(void)
{
	struct softgpu_device_config device;
	struct state *user, *other;

	config.devices[0].memory_bytes = 2000 * MIB;
	config.n_devices = 3;
	user = attached_new();
	check(state_n_devices(user) == 3, "STATE_CONFIGURE: an idle machine takes it on");
	config.devices[0].memory_bytes = 3000 * MIB;
	other = state_new();
	state_device(other, 0, &device);
	check(device.memory_bytes == 2000 * MIB, "STATE_CONFIGURE: a device in use stays");
	state_close(user);
	state_close(other);
	check(state_open(&config, 0, &other) == 0, "state_open: of a monitor");
	state_device(other, 0, &device);
	check(device.memory_bytes == 2000 * MIB, "state_open: a monitor changes nothing");
	state_close(other);
}

static void test_full_folder(void)
{
	struct state *state;
	pid_t pid = child_new();

	if (pid == 0) {
		if (unshare(CLONE_NEWNS) < 0 ||
		    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("tmpfs", config.dir, "tmpfs", 0, "size=64k") < 0)
			_exit(77);
		_exit(state_open(&config, 0, &state) == -ENOSPC ? 0 : 1);
	}
	switch (child_wait(pid)) {
	case 77:
		printf("skip 'a folder that is full': may not mount\n");
		break;
	case 0:
		check(true, "a folder that is full");
		break;
	default:
		check(false, "a folder that is full");
	}
}

static void test_other_user(void)
{
	struct state *state = attached_new();
	pid_t pid;

	if (getuid() != 0) {
		printf("skip 'another user': not root\n");
		state_close(state);
		return;
	}
	pid = child_new();
	if (pid == 0) {
		struct state *own;

		umask(077);
		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(1);
		own = attached_new();
		_exit(state_charge(own, 0, MIB));
	}
	check(child_wait(pid) == 0, "another user's process allocates");
	state_close(state);
}

/* Starts pid 1 of a new namespace and tells its number out here. */
static void namespace_body(void *arg)
{
	int *ready = arg;
	pid_t pid;

	if (unshare(CLONE_NEWPID) < 0) {
		*ready = -1;
		return;
	}
	pid = child_start(charge_half, NULL);
	*ready = pid;
}

static void test_namespace(void)
{
	int *inner = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct state *monitor = state_new();
	struct state_process p;
	pid_t outer = child_start(namespace_body, inner);

	if (*inner < 0) {
		printf("skip 'a pid namespace': may not unshare\n");
	} else {
		check(state_processes(monitor, 0, &p, 1) == 1 && p.pid == *inner,
		      "pid 1 of a namespace shows with the host's number");
		kill(*inner, SIGKILL);
	}
	child_kill(outer);
	state_close(monitor);
	munmap(inner, 4096);
}

static void test_inherit(void)
{
	struct state *state = attached_new();
	struct state_memory memory;

	check(state_charge(state, 0, 900 * MIB) == 0 && state_inherit(state, 0, 200 * MIB) == 0,
	      "memory that is there is not refused");
	state_memory(state, 0, &memory);
	check(memory.used_bytes == 1000 * MIB && memory.free_bytes == 0 &&
		      state_charge(state, 0, 1) == STATE_E_FULL,
	      "then the device is full");
	state_uncharge(state, 0, 200 * MIB);
	check(state_charge(state, 0, 100 * MIB) == 0, "until enough is given back");
	state_close(state);
}

/* A new cgroup v2 directory, if this is root on a host that has them. */
/* In a cgroup with a hard limit of 150 MiB, of which it uses 100. */
static void limited(void *arg)
{
	struct state *state;
	struct state_memory memory;
	bool good;

	cgroup_enter(arg);
	state = attached_new();
	good = state_charge(state, 0, 100 * MIB) == 0 &&
	       state_charge(state, 0, 51 * MIB) == STATE_E_FULL;
	state_memory(state, 0, &memory);
	if (!good || memory.total_bytes != 150 * MIB || memory.free_bytes != 50 * MIB)
		_exit(1);
	/* What was another's and is its own now is there, whatever the limit. */
	good = state_inherit(state, 0, 100 * MIB) == 0 &&
	       state_charge(state, 0, MIB) == STATE_E_FULL;
	state_memory(state, 0, &memory);
	state_uncharge(state, 0, 100 * MIB);
	if (!good || memory.free_bytes != 0)
		_exit(1);
}

static bool is_unlimited(struct state *state, const char *path)
{
	struct state_limit limit;

	return state_limit_get(state, 0, path, &limit) == 0 && limit.soft_bytes == 0 &&
	       limit.hard_bytes == UINT64_MAX;
}

static void test_limit(void)
{
	struct state *state = attached_new();
	struct state_memory memory;
	struct state_limit limit = { 0 };
	char path[STATE_PATH_MAX];
	pid_t child;

	check(state_limit_set(state, 0, "/tmp", 0, 1) == -EINVAL, "a limit of what is no cgroup");
	check(state_limit_set(state, 0, "/no/such/folder", 0, 1) == -ENOENT, "a limit of nothing");
	if (!cgroup_new(path)) {
		printf("skip 'limits of a cgroup': may not make one\n");
		state_close(state);
		return;
	}
	check(is_unlimited(state, path), "no limit yet");
	check(state_limit_set(state, 0, path, 10 * MIB, 150 * MIB) == 0, "state_limit_set");
	child = child_start(limited, path);
	check(kill(child, 0) == 0 && waitpid(child, NULL, WNOHANG) == 0,
	      "a hard limit holds, and is what the process sees of the device");
	check(state_limit_get(state, 0, path, &limit) == 0 && limit.soft_bytes == 10 * MIB &&
		      limit.hard_bytes == 150 * MIB && limit.used_bytes == 100 * MIB,
	      "state_limit_get: what was set, and what is used");
	state_memory(state, 0, &memory);
	check(memory.total_bytes == 1000 * MIB && memory.free_bytes == 900 * MIB &&
		      state_charge(state, 0, 500 * MIB) == 0,
	      "others are not limited");
	child_kill(child);
	check(state_limit_set(state, 0, path, 0, UINT64_MAX) == 0 && is_unlimited(state, path),
	      "a limit is taken away");
	rmdir(path);
	state_close(state);
}

static void test_limit_removed(void)
{
	struct state *state = state_new();
	char path[STATE_PATH_MAX];
	unsigned n_good = 0;

	while (n_good <= STATE_LIMITS_MAX && cgroup_new(path)) {
		n_good += is_unlimited(state, path) &&
			  state_limit_set(state, 0, path, 0, n_good + 1) == 0;
		if (rmdir(path) < 0)
			break;
	}
	if (n_good == 0)
		printf("skip 'limits of removed cgroups': may not make one\n");
	else
		check(n_good == STATE_LIMITS_MAX + 1,
		      "a limit goes with its cgroup, and makes room for another's");
	state_close(state);
}

static void limit_set(struct state *state, const char *path, uint64_t hard_bytes)
{
	/* On a busy host the other may keep the lock longer than is waited for. */
	while (state_limit_set(state, 0, path, 0, hard_bytes) == STATE_E_BUSY)
		;
}

/* Sets limits of a cgroup and takes them away; ends with 1 if one did not stay as it was set. */
static _Noreturn void limit_again_and_again(const char *path)
{
	struct state *state = state_new();
	struct state_limit limit;

	for (uint64_t hard = 1; hard <= LIMIT_ROUNDS; hard++) {
		limit_set(state, path, hard);
		if (state_limit_get(state, 0, path, &limit) != 0 || limit.hard_bytes != hard)
			_exit(1);
		limit_set(state, path, UINT64_MAX);
	}
	_exit(0);
}

static void test_limit_race(void)
{
	char first[STATE_PATH_MAX], second[STATE_PATH_MAX + 4];
	bool good = true;
	pid_t pids[2];
	int status;

	if (!cgroup_new(first)) {
		printf("skip 'limits set at once': may not make a cgroup\n");
		return;
	}
	snprintf(second, sizeof(second), "%s/in", first);
	mkdir(second, 0755);
	for (unsigned i = 0; i < 2; i++) {
		pids[i] = child_new();
		if (pids[i] == 0)
			limit_again_and_again(i ? second : first);
	}
	for (unsigned i = 0; i < 2; i++)
		good = waitpid(pids[i], &status, 0) == pids[i] && status == 0 && good;
	check(good, "who sets a limit changes nobody else's");
	rmdir(second);
	rmdir(first);
}

/* As another user: keeps locks of all that it can open, and puts a folder where root's is to be. */
static void occupy(void *arg)
{
	int *good = arg, fd;
	char path[sizeof(config.dir) + 16];

	if (setgid(65534) < 0 || setuid(65534) < 0)
		return;
	snprintf(path, sizeof(path), "%s/device-0", config.dir);
	fd = open(path, O_RDONLY);
	if (fd < 0 || flock(fd, LOCK_EX) < 0)
		return;
	snprintf(path, sizeof(path), "%s/limits-0-0", config.dir);
	if (mkdir(path, 0777) < 0)
		return;
	snprintf(path, sizeof(path), "%s/limits-0-0/in", config.dir);
	*good = mkdir(path, 0777) == 0;
}

static void test_limit_occupied(void)
{
	int *good = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct state *state = state_new();
	char path[STATE_PATH_MAX], lock[sizeof(config.dir) + 16];
	pid_t child;

	if (geteuid() != 0 || !cgroup_new(path)) {
		printf("skip 'limits while others lock': may not make a cgroup\n");
		state_close(state);
		return;
	}
	snprintf(lock, sizeof(lock), "%s/limits-0-0", config.dir);
	unlink(lock);
	child = child_start(occupy, good);
	check(*good && state_limit_set(state, 0, path, 0, MIB) == 0,
	      "a limit is set whatever another user locks");
	child_kill(child);
	rmdir(path);
	state_close(state);
}

static void test_samples(void)
{
	state_bucket ring[4] = { 0 };

	samples_add(ring, 4, 100, 950, 1250);
	check(ring[9 % 4] == (9ull << 32 | 50) && ring[10 % 4] == (10ull << 32 | 100) &&
		      ring[11 % 4] == (11ull << 32 | 100) && ring[12 % 4] == (12ull << 32 | 50),
	      "samples_add: split at the ends of periods");
	samples_add(ring, 4, 100, 1300, 1350);
	check(ring[13 % 4] == (13ull << 32 | 50), "samples_add: a period replaces an old one");
	samples_add(ring, 4, 100, 910, 920);
	check(ring[13 % 4] == (13ull << 32 | 50), "samples_add: too late to count");
	samples_add(ring, 4, 100, 0, 100000);
	check(ring[999 % 4] == (999ull << 32 | 100), "samples_add: longer than the ring");
}

int main(void)
{
	static void (*const tests[])(void) = {
		test_charge,
		test_kill,
		test_stop,
		test_race,
		test_kill_anywhere,
		test_fork,
		test_main_thread_ends,
		test_many,
		test_damaged,
		test_foreign,
		test_stale,
		test_configure,
		test_full_folder,
		test_other_user,
		test_inherit,
		test_limit,
		test_limit_removed,
		test_limit_race,
		test_limit_occupied,
		test_namespace,
	};

	tally = mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		dir_new();
		config.devices[0].memory_bytes = 1000 * MIB;
		if (tests[i] == test_foreign)
			state_close(state_new());
		tests[i]();
		test_dir_remove(config.dir);
	}
	test_samples();
	return n_failed != 0;
}
