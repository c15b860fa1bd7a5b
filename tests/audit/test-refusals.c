// SPDX-License-Identifier: Apache-2.0
/*
 * Refusals while everything goes on at once: threads that are refused beside threads that are allowed, a
 * storm of signals with a handler, somebody who sends SIGCONT without end, and another program's probe
 * on the returns of the same function. None may be lost, wrong, or leave a mark.
 *
 *	test-refusals LIBRARY [LOAD]
 *
 * The loads of `bench/run refusals` are larger, or calm, for the time that a refusal takes.
 */
#include "base/base.h"
#include "harness.h"

#include <bpf/bpf.h>
#include <dlfcn.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define THREADS_MAX  16
#define REFUSALS_MAX 10000
#define ALLOWED_MAX  1000 /* whose time is kept */
#define ALARM_US     200

/* Refusals are those of all deniers together. A storm: signals, the attacker, the foreign probe. */
static const struct load {
	const char *name;
	int deniers;
	int allocators;
	int refusals;
	bool is_storm;
} loads[] = {
	{ "test", 4, 2, 2000, true },
	{ "storm", 8, 2, 10000, true },
	{ "one", 1, 0, 10000, false },
	{ "eight", 8, 0, 10000, false },
};

struct counts {
	unsigned long lost;  /* refused calls that returned something else */
	unsigned long wrong; /* allowed calls that were refused */
	unsigned long damaged;
	unsigned long allowed;
	unsigned long refused;
	unsigned long ran; /* real executions */
	unsigned long alarms;
	uint64_t refused_ns[REFUSALS_MAX];
	uint64_t allowed_ns[ALLOWED_MAX];
};

static const struct load *load;
static struct counts *counts;
static volatile int deniers_left;
static void *allocate, *release;

static void on_alarm(_unused_ int signal)
{
	__atomic_add_fetch(&counts->alarms, 1, __ATOMIC_RELAXED);
}

static void deny_one(void)
{
	unsigned long address = 0xabcd, arguments[6] = { (unsigned long)&address, 900 * MIB };
	uint64_t begin = clock_ns();
	long code = call_checked(allocate, arguments, &counts->damaged);
	unsigned long n = __atomic_fetch_add(&counts->refused, 1, __ATOMIC_RELAXED);

	counts->refused_ns[n] = clock_ns() - begin;
	if ((code & 0xffffffff) != OUT_OF_MEMORY || address != 0xabcd)
		__atomic_add_fetch(&counts->lost, 1, __ATOMIC_RELAXED);
}

/* All may be refused before the clock has ticked once: the last one waits for a signal. */
static void wait_for_storm(void)
{
	while (load->is_storm && !__atomic_load_n(&counts->alarms, __ATOMIC_RELAXED))
		usleep(ALARM_US);
}

static void *deny(void *arg)
{
	for (int i = load->refusals / load->deniers; i > 0; i--) {
		if (i == 1)
			wait_for_storm();
		deny_one();
	}
	__atomic_sub_fetch(&deniers_left, 1, __ATOMIC_RELAXED);
	return arg;
}

/* One allocation that is within the limit, and its end. */
static void allow_one(void)
{
	unsigned long address = 0, arguments[6] = { (unsigned long)&address, MIB };
	uint64_t begin = clock_ns();
	long code = call_checked(allocate, arguments, &counts->damaged);
	unsigned long n = __atomic_fetch_add(&counts->allowed, 1, __ATOMIC_RELAXED);

	if (n < ALLOWED_MAX)
		counts->allowed_ns[n] = clock_ns() - begin;
	if (code & 0xffffffff)
		__atomic_add_fetch(&counts->wrong, 1, __ATOMIC_RELAXED);
	arguments[0] = address;
	call_checked(release, arguments, &counts->damaged);
}

static void *allow(void *arg)
{
	do {
		allow_one();
		usleep(50);
	} while (deniers_left);
	return arg;
}

static void storm_begin(timer_t *ret)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerspec often = { { 0, ALARM_US * 1000 }, { 0, ALARM_US * 1000 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };

	sigaction(SIGALRM, &action, NULL);
	CHECK(timer_create(CLOCK_MONOTONIC, &event, ret) == 0);
	CHECK(timer_settime(*ret, 0, &often, NULL) == 0);
}

static int tenant(_unused_ void *userdata)
{
	int n_threads = load->deniers + load->allocators;
	pthread_t threads[THREADS_MAX];
	timer_t timer = NULL;

	allocate = fake_fn("cuMemAlloc_v2");
	release = fake_fn("cuMemFree_v2");
	deniers_left = load->deniers;
	for (int i = 0; !load->is_storm && i < ALLOWED_MAX; i++)
		allow_one();
	if (load->is_storm)
		storm_begin(&timer);
	for (int i = 0; i < n_threads; i++)
		CHECK(pthread_create(&threads[i], NULL, i < load->deniers ? deny : allow, NULL) ==
		      0);
	for (int i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	if (load->is_storm)
		timer_delete(timer);
	counts->ran = fakes->executions[ROW_OF_cuMemAlloc_v2];
	return 0;
}

static pid_t attacker_start(pid_t victim)
{
	pid_t pid = bench_fork();

	if (pid)
		return pid;
	for (;;) {
		kill(victim, SIGCONT);
		usleep(100);
	}
}

/* A profiler's probe on the returns of the function: neither may disturb the other. */
static int foreign_probe(const char *path)
{
	struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	struct perf_event_attr attr = { .size = sizeof(attr), .config = 1 /* at return */ };
	int program = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "foreign", "GPL", insns, 2, NULL);
	Dl_info info;
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	int fd;

	CHECK(f && fscanf(f, "%u", &attr.type) == 1);
	fclose(f);
	CHECK(dladdr(fake_fn("cuMemAlloc_v2"), &info));
	attr.uprobe_path = (uintptr_t)path;
	attr.probe_offset = (char *)fake_fn("cuMemAlloc_v2") - (char *)info.dli_fbase;
	fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	CHECK(program >= 0 && fd >= 0, "%s", strerror(errno));
	CHECK(ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) == 0 &&
	      ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	close(program);
	return fd;
}

static int by_value(const void *a, const void *b)
{
	return *(const uint64_t *)a < *(const uint64_t *)b ? -1 : 1;
}

static const struct load *load_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(loads); i++)
		if (strcmp(loads[i].name, name) == 0)
			return &loads[i];
	fprintf(stderr, "there is no load '%s'\n", name);
	exit(2);
}

static void print_times(const char *what, uint64_t *ns, size_t n)
{
	if (n == 0)
		return;
	qsort(ns, n, sizeof(*ns), by_value);
	printf("%s: us least %.1f, median %.1f, p99 %.1f, most %.1f\n", what, ns[0] / 1e3,
	       ns[n / 2] / 1e3, ns[n * 99 / 100] / 1e3, ns[n - 1] / 1e3);
}

static void check_counts(struct bench *b)
{
	CHECK(counts->refused == (unsigned long)load->refusals && counts->allowed > 0);
	CHECK(counts->alarms > 0 || !load->is_storm);
	CHECK(counts->lost == 0, "%lu", counts->lost);
	CHECK(counts->wrong == 0, "%lu", counts->wrong);
	CHECK(counts->damaged == 0, "%lu", counts->damaged);
	CHECK(counts->ran == counts->allowed, "%lu ran, %lu were allowed", counts->ran,
	      counts->allowed);
	CHECK(b->n_events[AUDIT_EVENT_RAN] == 0 && bench_current(b) == 0);
}

/* Lets the tenant do its work, in a storm or not. Return: what it says */
static int tenant_run(struct bench *b, const char *library)
{
	int code, foreign = load->is_storm ? foreign_probe(library) : -1;
	pid_t pid = tenant_fork(b, tenant, NULL);
	pid_t attacker = load->is_storm ? attacker_start(pid) : 0;

	code = tenant_wait(b, pid);
	if (load->is_storm) {
		kill(attacker, SIGKILL);
		waitpid(attacker, NULL, 0);
		close(foreign);
	}
	return code;
}

int main(int argc, char **argv)
{
	struct bench b;
	int code;

	load = load_find(argc > 2 ? argv[2] : "test");
	bench_open(&b, ENGINE_RUNG_AUTO, 4096 * MIB);
	bench_limit(&b, 500 * MIB, 0);
	fake_open(&b, argv[1]);
	counts = shared_memory(sizeof(*counts));
	code = tenant_run(&b, argv[1]);
	CHECK(code == 0, "the tenant says %d", code);
	check_counts(&b);
	printf("ok 'refusals (%s): %lu refused by %d threads, %lu allowed beside, %lu signals; none lost, wrong, damaged'\n",
	       engine_rung_name(engine_rung_now(b.engine)), counts->refused, load->deniers,
	       counts->allowed, counts->alarms);
	print_times("refused", counts->refused_ns, load->refusals);
	print_times("allowed", counts->allowed_ns,
		    counts->allowed < ALLOWED_MAX ? counts->allowed : ALLOWED_MAX);
	bench_close(&b);
	return 0;
}
