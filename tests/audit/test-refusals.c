// SPDX-License-Identifier: Apache-2.0
/*
 * Refusals while everything goes on at once: threads that are refused beside threads that are allowed, a
 * storm of signals with a handler, somebody who sends SIGCONT without end, and another program's probe
 * on the returns of the same function. None may be lost, wrong, or leave a mark.
 */
#include "harness.h"

#include <bpf/bpf.h>
#include <dlfcn.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define DENIERS	   4
#define ALLOCATORS 2
#define REFUSALS   2000	/* of all deniers together */
#define ALARM_US   200

struct counts {
	unsigned long lost;	/* refused calls that returned something else */
	unsigned long wrong;	/* allowed calls that were refused */
	unsigned long damaged;
	unsigned long allowed;
	unsigned long refused;
	unsigned long ran;	/* real executions */
	unsigned long alarms;
	uint64_t latency_ns[REFUSALS];
};

static struct counts *counts;
static volatile int deniers_left = DENIERS;
static void *allocate, *release;

static void on_alarm(int signal)
{
	__atomic_add_fetch(&counts->alarms, 1, __ATOMIC_RELAXED);
}

static void *deny(void *arg)
{
	for (int i = 0; i < REFUSALS / DENIERS; i++) {
		unsigned long address = 0xabcd, arguments[6] = { (unsigned long)&address, 900 * MIB };
		uint64_t begin = clock_ns();
		long code = call_checked(allocate, arguments, &counts->damaged);
		unsigned long n = __atomic_fetch_add(&counts->refused, 1, __ATOMIC_RELAXED);

		counts->latency_ns[n] = clock_ns() - begin;
		if ((code & 0xffffffff) != OUT_OF_MEMORY || address != 0xabcd)
			__atomic_add_fetch(&counts->lost, 1, __ATOMIC_RELAXED);
	}
	__atomic_sub_fetch(&deniers_left, 1, __ATOMIC_RELAXED);
	return arg;
}

static void *allow(void *arg)
{
	while (deniers_left) {
		unsigned long address = 0, arguments[6] = { (unsigned long)&address, MIB };

		if (call_checked(allocate, arguments, &counts->damaged) & 0xffffffff)
			__atomic_add_fetch(&counts->wrong, 1, __ATOMIC_RELAXED);
		arguments[0] = address;
		call_checked(release, arguments, &counts->damaged);
		__atomic_add_fetch(&counts->allowed, 1, __ATOMIC_RELAXED);
		usleep(50);
	}
	return arg;
}

static int tenant(void *userdata)
{
	pthread_t threads[DENIERS + ALLOCATORS];
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerspec often = { { 0, ALARM_US * 1000 }, { 0, ALARM_US * 1000 } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };
	timer_t timer;

	allocate = fake_fn("cuMemAlloc_v2");
	release = fake_fn("cuMemFree_v2");
	sigaction(SIGALRM, &action, NULL);
	assert(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	assert(timer_settime(timer, 0, &often, NULL) == 0);
	for (int i = 0; i < DENIERS + ALLOCATORS; i++)
		assert(pthread_create(&threads[i], NULL, i < DENIERS ? deny : allow, NULL) == 0);
	for (int i = 0; i < DENIERS + ALLOCATORS; i++)
		pthread_join(threads[i], NULL);
	timer_delete(timer);
	counts->ran = fakes->executions[ROW_OF_cuMemAlloc_v2];
	return 0;
}

static pid_t attacker_start(pid_t victim)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;) {
			kill(victim, SIGCONT);
			usleep(100);
		}
	return pid;
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

	assert(f && fscanf(f, "%u", &attr.type) == 1);
	fclose(f);
	assert(dladdr(fake_fn("cuMemAlloc_v2"), &info));
	attr.uprobe_path = (uintptr_t)path;
	attr.probe_offset = (char *)fake_fn("cuMemAlloc_v2") - (char *)info.dli_fbase;
	fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	CHECK(program >= 0 && fd >= 0, "%s", strerror(errno));
	CHECK(ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) == 0 && ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0);
	close(program);
	return fd;
}

static int by_value(const void *a, const void *b)
{
	return *(const uint64_t *)a < *(const uint64_t *)b ? -1 : 1;
}

int main(int argc, char **argv)
{
	struct bench b;
	pid_t pid, attacker;
	int code, foreign;

	bench_open(&b, ENGINE_RUNG_AUTO, 4096 * MIB);
	bench_limit(&b, 500 * MIB, 0);
	fake_open(&b, argv[1]);
	foreign = foreign_probe(argv[1]);
	counts = shared_memory(sizeof(*counts));
	pid = tenant_fork(&b, tenant, NULL);
	attacker = attacker_start(pid);
	code = tenant_wait(&b, pid);
	kill(attacker, SIGKILL);
	waitpid(attacker, NULL, 0);
	CHECK(code == 0, "the tenant says %d", code);
	CHECK(counts->refused == REFUSALS && counts->allowed > 0 && counts->alarms > 0);
	CHECK(counts->lost == 0, "%lu", counts->lost);
	CHECK(counts->wrong == 0, "%lu", counts->wrong);
	CHECK(counts->damaged == 0, "%lu", counts->damaged);
	CHECK(counts->ran == counts->allowed, "%lu ran, %lu were allowed", counts->ran, counts->allowed);
	CHECK(b.n_events[AUDIT_EVENT_RAN] == 0 && bench_current(&b) == 0);
	qsort(counts->latency_ns, REFUSALS, sizeof(uint64_t), by_value);
	printf("ok 'refusals (%s): %d refused, %lu allowed beside, %lu signals; median %lu us, p99 %lu us'\n",
	       engine_rung_name(engine_rung_now(b.engine)), REFUSALS, counts->allowed, counts->alarms,
	       counts->latency_ns[REFUSALS / 2] / 1000, counts->latency_ns[REFUSALS * 99 / 100] / 1000);
	close(foreign);
	bench_close(&b);
	return 0;
}
