// SPDX-License-Identifier: Apache-2.0
/*
 * An ordinary process that means ill, in a virtual machine: hostile-ioctl SECONDS SEED
 *
 * Processes of two threads call the device's ioctls with arguments that are right, nearly right and not at
 * all, scribble over what they share with the host, map and ring the doorbell, unmap and fork what is pinned,
 * and are killed at any moment. In the end nothing may be pinned any more, and a session begins as ever,
 * which the caller tries.
 */
#include "forward/virtio-abi.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEVICE	   "/dev/cotenant0"
#define COUNTERS   "/sys/class/misc/cotenant0/counters/"
#define N_CHILDREN 3
#define ARENA	   (32UL << 20)
#define PAGE	   4096UL

/* What all processes count together. */
struct counts {
	_Atomic unsigned long calls, accepted, sessions, killed;
};

static struct counts *counts;
/* The host's protocol: with another no session is opened. */
static uint8_t hash[WIRE_HASH_SIZE];
static uint8_t *arena;
static volatile int device = -1;

static uint64_t any(unsigned *seed)
{
	return (uint64_t)rand_r(seed) << 33 ^ (uint64_t)rand_r(seed) << 11 ^ (uint64_t)rand_r(seed);
}

static bool one_of(unsigned *seed, unsigned n)
{
	return (unsigned)rand_r(seed) % n == 0;
}

static uint64_t address_of(unsigned *seed)
{
	switch (rand_r(seed) % 8) {
	case 0:
		return any(seed);
	case 1:
		return any(seed) & ~(PAGE - 1);
	case 2:
		return -PAGE;
	default:
		return (uintptr_t)arena + any(seed) % ARENA / PAGE * PAGE;
	}
}

static uint64_t size_of(unsigned *seed)
{
	switch (rand_r(seed) % 8) {
	case 0:
		return any(seed);
	case 1:
		return 1ULL << rand_r(seed) % 64;
	default:
		return (1 + any(seed) % 512) * PAGE;
	}
}

static uint32_t number_of(unsigned *seed)
{
	return one_of(seed, 6) ? (uint32_t)any(seed) : (uint32_t)rand_r(seed) % 8;
}

static void try(unsigned long request, void *argument)
{
	int r = ioctl(device, request, argument);

	counts->calls++;
	if (r == 0)
		counts->accepted++;
	if (r == 0 && request == COTENANT_IOC_OPEN)
		counts->sessions++;
}

static void try_open(unsigned *seed)
{
	struct cotenant_ioc_open args = { .version = one_of(seed, 8) ? number_of(seed)
								     : COTENANT_ABI_VERSION,
					  .block = (uintptr_t)arena,
					  .heap = (uintptr_t)arena + SESSION_SIZE };

	if (one_of(seed, 4))
		args.heap = address_of(seed);
	if (!one_of(seed, 8))
		memcpy(args.hash, hash, sizeof(hash));
	try(COTENANT_IOC_OPEN, &args);
}

static void try_ioctl(unsigned *seed)
{
	struct cotenant_ioc_lane lane = { .address = address_of(seed) };
	struct cotenant_ioc_grant grant = { .address = address_of(seed), .size = size_of(seed) };
	struct cotenant_ioc_wait wait = { .lane = number_of(seed),
					  .timeout_ms = rand_r(seed) % 4 - 2 };
	uint32_t number = number_of(seed);

	switch (rand_r(seed) % 8) {
	case 0:
		try_open(seed);
		break;
	case 1:
		try(COTENANT_IOC_LANE_ADD, &lane);
		break;
	case 2:
		try(COTENANT_IOC_LANE_REMOVE, &number);
		break;
	case 3:
		try(COTENANT_IOC_GRANT, &grant);
		break;
	case 4:
		try(COTENANT_IOC_REVOKE, &number);
		break;
	case 5:
		try(COTENANT_IOC_RING, &number);
		break;
	case 6:
		/* -1 would be without end. */
		wait.timeout_ms = wait.timeout_ms == -1 ? 1 : wait.timeout_ms;
		try(COTENANT_IOC_WAIT, &wait);
		break;
	default:
		try((unsigned long)any(seed) & 0xffffffff,
		    one_of(seed, 2) ? &grant : (void *)address_of(seed));
		break;
	}
}

/* A page of the doorbell, or what is none. It is rung with any value, and stays mapped now and then. */
static void try_doorbell(unsigned *seed)
{
	size_t size = one_of(seed, 4) ? PAGE * (rand_r(seed) % 4) : PAGE;
	off_t offset = one_of(seed, 4) ? (off_t)(any(seed) & 0xfffff000) : 0;
	volatile uint16_t *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
				     one_of(seed, 4) ? MAP_PRIVATE : MAP_SHARED, device, offset);

	if (at == MAP_FAILED)
		return;
	at[rand_r(seed) % (PAGE / 2)] = (uint16_t)any(seed);
	at[0] = COTENANT_DOORBELL_VALUE;
	if (!one_of(seed, 8))
		munmap((void *)at, size);
}

/* What is pinned is unmapped, made anew, made read-only, written over. */
static void disturb(unsigned *seed)
{
	uint8_t *at = arena + any(seed) % ARENA / PAGE * PAGE;
	size_t size = (size_t)(arena + ARENA - at);

	size = size > 64 * PAGE ? 64 * PAGE : size;
	switch (rand_r(seed) % 4) {
	case 0:
		mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		     0);
		break;
	case 1:
		madvise(at, size, MADV_DONTNEED);
		break;
	case 2:
		mprotect(at, size, one_of(seed, 2) ? PROT_READ : PROT_READ | PROT_WRITE);
		break;
	default:
		break;
	}
}

/* Through a pipe, for the arena may be read-only there. */
static void scribble(unsigned *seed)
{
	uint64_t words[64];
	int fds[2];
	size_t i;

	if (pipe(fds) < 0)
		return;
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		words[i] = one_of(seed, 2) ? any(seed) : (uint64_t)rand_r(seed) % 4096;
	if (write(fds[1], words, sizeof(words)) < 0 ||
	    read(fds[0], arena + any(seed) % (ARENA - sizeof(words)) / 64 * 64, sizeof(words)) < 0)
		counts->calls++;
	close(fds[0]);
	close(fds[1]);
}

/* A child has the file, and no right to it. */
static void try_child(unsigned *seed)
{
	pid_t pid = fork();

	if (pid == 0) {
		try_ioctl(seed);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}

static void reopen(void)
{
	int old = device;

	device = open(DEVICE, O_RDWR | O_CLOEXEC);
	close(old);
}

static void *attack(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;

	for (;;) {
		try_ioctl(&seed);
		if (one_of(&seed, 4))
			scribble(&seed);
		if (one_of(&seed, 16))
			disturb(&seed);
		if (one_of(&seed, 16))
			try_doorbell(&seed);
		if (one_of(&seed, 256))
			try_child(&seed);
		if (one_of(&seed, 512))
			reopen();
	}
	return NULL;
}

static pid_t attacker(unsigned seed)
{
	pid_t pid = fork();
	pthread_t thread;

	if (pid != 0)
		return pid;
	device = open(DEVICE, O_RDWR | O_CLOEXEC);
	arena = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (device < 0 || arena == MAP_FAILED)
		_exit(1);
	/* Most begin with a session, without which little else is reached. */
	try_open(&seed);
	pthread_create(&thread, NULL, attack, (void *)(uintptr_t)(seed + 1));
	attack((void *)(uintptr_t)seed);
	_exit(0);
}

static unsigned long counter(const char *name)
{
	char path[128];
	unsigned long value = ~0UL;
	FILE *f;

	snprintf(path, sizeof(path), COUNTERS "%s", name);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%lu", &value) != 1)
		value = ~0UL;
	if (f)
		fclose(f);
	return value;
}

/* The host says its protocol when it refuses another. */
static int learn_protocol(void)
{
	struct cotenant_ioc_open args = { .version = COTENANT_ABI_VERSION };
	int fd = open(DEVICE, O_RDWR | O_CLOEXEC), r;

	args.block = (uintptr_t)mmap(NULL, SESSION_SIZE + WIRE_HEAP_SIZE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	args.heap = args.block + SESSION_SIZE;
	r = ioctl(fd, COTENANT_IOC_OPEN, &args) < 0 && errno == EPROTO ? 0 : -1;
	memcpy(hash, args.hash, sizeof(hash));
	munmap((void *)(uintptr_t)args.block, SESSION_SIZE + WIRE_HEAP_SIZE);
	close(fd);
	return r;
}

static long available_kb(void)
{
	char line[128];
	long kb = 0;
	FILE *f = fopen("/proc/meminfo", "r");

	while (f && fgets(line, sizeof(line), f) && sscanf(line, "MemAvailable: %ld", &kb) != 1)
		;
	if (f)
		fclose(f);
	return kb;
}

/* Memory whose pages lie nowhere near each other, as they came in another order; the last is not there. */
static uint8_t *scattered(size_t size)
{
	uint8_t *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t i, n = size / PAGE;

	madvise(at, size, MADV_NOHUGEPAGE);
	for (i = 0; i < n; i++)
		at[i * 7 % n * PAGE] = 1;
	mprotect(at + size - PAGE, PAGE, PROT_NONE);
	return at;
}

/* Grants that are refused when 4,095 of their pages were pinned take no memory of the kernel's along. */
static bool refusals_leave_nothing(void)
{
	const size_t size = 4096 * PAGE;
	struct cotenant_ioc_open open_args = { .version = COTENANT_ABI_VERSION };
	struct cotenant_ioc_grant grant = { .size = size };
	long before;
	int i;

	memcpy(open_args.hash, hash, sizeof(hash));
	open_args.block =
		(uintptr_t)mmap(NULL, SESSION_SIZE + WIRE_HEAP_SIZE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	open_args.heap = open_args.block + SESSION_SIZE;
	grant.address = (uintptr_t)scattered(size);
	device = open(DEVICE, O_RDWR | O_CLOEXEC);
	if (ioctl(device, COTENANT_IOC_OPEN, &open_args) < 0)
		return false;
	before = available_kb();
	for (i = 0; i < 400; i++)
		if (ioctl(device, COTENANT_IOC_GRANT, &grant) == 0 || errno != EFAULT)
			return false;
	printf("%ld kB were available, then %ld\n", before, available_kb());
	/* A list of 64 KiB each would be 25 MiB. */
	return before - available_kb() < 12 << 10;
}

int main(int argc, char **argv)
{
	unsigned seed = argc > 2 ? (unsigned)atoi(argv[2]) : 1, i;
	time_t end;
	pid_t children[N_CHILDREN] = { 0 };

	counts = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counts == MAP_FAILED || learn_protocol() < 0)
		return 2;
	if (!refusals_leave_nothing())
		return 3;
	close(device);
	end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 10);
	while (time(NULL) < end) {
		i = (unsigned)rand_r(&seed) % N_CHILDREN;
		if (children[i] > 0) {
			kill(children[i], SIGKILL);
			waitpid(children[i], NULL, 0);
			counts->killed++;
		}
		children[i] = attacker(seed + 2);
		usleep(1000 * (20 + (unsigned)rand_r(&seed) % 1000));
	}
	for (i = 0; i < N_CHILDREN; i++) {
		if (children[i] > 0)
			kill(children[i], SIGKILL);
	}
	while (wait(NULL) > 0)
		;
	for (i = 0; i < 100 && counter("pinned_pages"); i++)
		usleep(100000);
	printf("%lu calls, %lu accepted, %lu sessions, %lu killed\n", counts->calls,
	       counts->accepted, counts->sessions, counts->killed);
	printf("%lu pages pinned, %lu leaked\n", counter("pinned_pages"), counter("leaked_pages"));
	return counts->sessions && !counter("pinned_pages") && !counter("leaked_pages") ? 0 : 1;
}
