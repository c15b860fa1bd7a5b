/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tenant that does what it is told: one command a line on standard input, one
 * answer a line on standard output.
 *
 *	alloc SIZE	cuMemAlloc: the code, and the address where it is 0
 *	jump SIZE	cuMemAlloc past its entry and the probe on it: the code
 *	free ADDRESS	cuMemFree: the code
 *	pool-alloc SIZE STREAM		cuMemAllocAsync: the code, and the address where it is 0
 *	pool-free ADDRESS STREAM	cuMemFreeAsync: the code
 *	pool-trim SIZE	cuMemPoolTrimTo of the device's default pool: the code
 *	race N		N times cuArray3DCreate while another thread changes the descriptor: how many failed
 *	block STREAM	keep the stream busy until "unblock": the code
 *	unblock		let all streams go on, and wait for them: the code
 *	info		cuMemGetInfo: code, free, total
 *	total		cuDeviceTotalMem: code, bytes
 *	nvml VERSION	nvmlDeviceGetMemoryInfo of device 0, in its form 1 or 2: code, free, total
 *	check		write and read back all that is allocated: "right" or "wrong"
 *	loop N SIZE	N rounds of alloc and free: how many were refused, how many failed otherwise
 *	fork		go on in a child; the parent waits for it
 *	ask N		N times the ioctl that asks the kernel driver for device memory, which refuses it here: how many
 *	ask		the same for ever, from now on; nothing is answered
 *	user ID		become another user, with the same group: the code
 *	pid		its process id
 *	quit		end; so does the end of the input
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUT_OF_MEMORY 2
#define MAX_LIVE      4096
#define MAX_STREAMS   4

static int (*cu_init)(unsigned);
static int (*cu_device_get)(int *, int);
static int (*cu_device_total)(size_t *, int);
static int (*cu_ctx_create)(void **, unsigned, int);
static int (*cu_mem_alloc)(uint64_t *, size_t);
static int (*cu_mem_free)(uint64_t);
static int (*cu_mem_info)(size_t *, size_t *);
static int (*cu_memset)(uint64_t, unsigned char, size_t);
static int (*cu_copy_to_host)(void *, uint64_t, size_t);

/* What drivers of today have; looked up when it is asked for. */
static void *library;
static void *streams[MAX_STREAMS]; /* the first is the null stream */
static volatile int blocked;

static struct {
	uint64_t address;
	size_t size;
} live[MAX_LIVE];
static size_t n_live;

/* As runtimes do; the second forms of the calls that have one came with CUDA 3.2. */
static void *look_up(void *library, const char *name)
{
	int (*get)(const char *, void **, int, uint64_t, int *) =
		dlsym(library, "cuGetProcAddress_v2");
	void *address = NULL;
	char base[64];

	snprintf(base, sizeof(base), "%s", name);
	if (strlen(base) > 3 && strcmp(base + strlen(base) - 3, "_v2") == 0)
		base[strlen(base) - 3] = '\0';
	return get && get(base, &address, 3020, 0, NULL) == 0 ? address : NULL;
}

static void *find(void *library, const char *name)
{
	void *address = dlsym(library, name);

	if (!address)
		address = look_up(library, name);
	if (!address) {
		printf("no %s\n", name);
		exit(1);
	}
	return address;
}

static void load(void)
{
	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		printf("%s\n", dlerror());
		exit(1);
	}
	cu_init = find(library, "cuInit");
	cu_device_get = find(library, "cuDeviceGet");
	cu_device_total = find(library, "cuDeviceTotalMem_v2");
	cu_ctx_create = find(library, "cuCtxCreate_v2");
	cu_mem_alloc = find(library, "cuMemAlloc_v2");
	cu_mem_free = find(library, "cuMemFree_v2");
	cu_mem_info = find(library, "cuMemGetInfo_v2");
	cu_memset = find(library, "cuMemsetD8_v2");
	cu_copy_to_host = find(library, "cuMemcpyDtoH_v2");
}

static int start(int ordinal, int *ret_device)
{
	void *context;
	int r;

	r = cu_init(0);
	if (r == 0)
		r = cu_device_get(ret_device, ordinal);
	if (r == 0)
		r = cu_ctx_create(&context, 0, *ret_device);
	return r;
}

static void do_alloc(size_t size)
{
	uint64_t address = 0;
	int r = cu_mem_alloc(&address, size);

	if (r == 0 && n_live < MAX_LIVE) {
		live[n_live].address = address;
		live[n_live++].size = size;
	}
	printf("%d %" PRIu64 "\n", r, address);
}

/* The entry is endbr64; jmp rel32. */
static void do_jump(size_t size)
{
	const char *entry = (const char *)cu_mem_alloc;
	int (*behind)(uint64_t *, size_t);
	uint64_t address;
	int32_t way;

	memcpy(&way, entry + 5, sizeof(way));
	behind = (void *)(entry + 9 + way);
	printf("%d\n", behind(&address, size));
}

static void do_free(uint64_t address)
{
	size_t i;

	for (i = 0; i < n_live; i++) {
		if (live[i].address != address)
			continue;
		live[i] = live[--n_live];
		break;
	}
	printf("%d\n", cu_mem_free(address));
}

static void *stream(unsigned long number)
{
	int (*create)(void **, unsigned) = find(library, "cuStreamCreate");

	number %= MAX_STREAMS;
	if (number && !streams[number] && create(&streams[number], /* non-blocking */ 1))
		exit(1);
	return streams[number];
}

static void do_pool_alloc(size_t size, unsigned long number)
{
	int (*alloc)(uint64_t *, size_t, void *) = find(library, "cuMemAllocAsync");
	uint64_t address = 0;
	int r = alloc(&address, size, stream(number));

	printf("%d %" PRIu64 "\n", r, address);
}

static void do_pool_free(uint64_t address, unsigned long number)
{
	int (*release)(uint64_t, void *) = find(library, "cuMemFreeAsync");

	printf("%d\n", release(address, stream(number)));
}

static void do_pool_trim(size_t keep, int device)
{
	int (*get)(void **, int) = find(library, "cuDeviceGetDefaultMemPool");
	int (*trim)(void *, size_t) = find(library, "cuMemPoolTrimTo");
	void *pool = NULL;
	int r = get(&pool, device);

	printf("%d\n", r ? r : trim(pool, keep));
}

struct array {
	size_t width, height, depth;
	unsigned format, channels, flags;
};

static struct array contested = {
	.width = 1024, .height = 1, .format = /* float */ 0x20, .channels = 1
};
static volatile int racing;

static void *change_array(_unused_ void *arg)
{
	while (racing) {
		*(volatile size_t *)&contested.height = 1;
		*(volatile size_t *)&contested.height = 4096;
	}
	return NULL;
}

static void do_race(unsigned long rounds)
{
	int (*create)(void **, const struct array *) = find(library, "cuArray3DCreate_v2");
	unsigned long failed = 0;
	pthread_t thread;
	void *array;

	racing = 1;
	if (pthread_create(&thread, NULL, change_array, NULL))
		exit(1);
	while (rounds--)
		failed += create(&array, &contested) != 0;
	racing = 0;
	pthread_join(thread, NULL);
	printf("%lu\n", failed);
}

static void wait_while_blocked(_unused_ void *unused)
{
	while (blocked)
		usleep(1000);
}

static void do_block(unsigned long number)
{
	int (*launch)(void *, void (*)(void *), void *) = find(library, "cuLaunchHostFunc");

	blocked = 1;
	printf("%d\n", launch(stream(number), wait_while_blocked, NULL));
}

static void do_unblock(void)
{
	int (*wait)(void) = find(library, "cuCtxSynchronize");

	blocked = 0;
	printf("%d\n", wait());
}

static void do_info(void)
{
	size_t unused = 0, total = 0;
	int r = cu_mem_info(&unused, &total);

	printf("%d %zu %zu\n", r, unused, total);
}

static void do_total(int device)
{
	size_t total = 0;
	int r = cu_device_total(&total, device);

	printf("%d %zu\n", r, total);
}

/* The forms of the structure differ in what stands before and between the three numbers. */
static void do_nvml(unsigned version)
{
	struct {
		uint64_t total, unused, used;
	} first = {};
	struct {
		unsigned version;
		uint64_t total, reserved, unused, used;
	} second = { .version = sizeof(second) | 2 << 24 };
	void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW), *device = NULL;
	int (*nvml_init)(void) = dlsym(nvml, "nvmlInit_v2");
	int (*nvml_device)(unsigned, void **) = dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2");
	int (*nvml_memory)(void *, void *) = dlsym(
		nvml, version == 1 ? "nvmlDeviceGetMemoryInfo" : "nvmlDeviceGetMemoryInfo_v2");
	int r = nvml_init();

	if (r == 0)
		r = nvml_device(0, &device);
	if (r == 0)
		r = nvml_memory(device, version == 1 ? (void *)&first : (void *)&second);
	printf("%d %" PRIu64 " %" PRIu64 "\n", r, version == 1 ? first.unused : second.unused,
	       version == 1 ? first.total : second.total);
}

static void do_check(void)
{
	unsigned char first, last;
	size_t i, wrong = 0;

	for (i = 0; i < n_live; i++) {
		unsigned char value = i * 7 + 1;

		if (cu_memset(live[i].address, value, live[i].size) ||
		    cu_copy_to_host(&first, live[i].address, 1) ||
		    cu_copy_to_host(&last, live[i].address + live[i].size - 1, 1) ||
		    first != value || last != value)
			wrong++;
	}
	printf("%s\n", wrong ? "wrong" : "right");
}

static void do_loop(unsigned long rounds, size_t size)
{
	unsigned long refused = 0, failed = 0;
	uint64_t address;
	int r;

	while (rounds--) {
		r = cu_mem_alloc(&address, size);
		if (r == OUT_OF_MEMORY)
			refused++;
		else if (r || cu_mem_free(address))
			failed++;
	}
	printf("%lu %lu\n", refused, failed);
}

static void do_fork(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		printf("0\n");
		return;
	}
	waitpid(child, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* NVIDIA's ioctl that allocates, of the class of device memory; how much cannot be read. */
static unsigned long do_ask(unsigned long rounds)
{
	struct {
		unsigned root, parent, object, class;
		uint64_t params;
		unsigned size, status;
	} alloc = { .class = 0x40 };
	const char *path = getenv("SOFTGPU_IOCTL");
	int file = open(path ? path : "/dev/null", O_RDWR);
	unsigned long n;

	for (n = 0; n < rounds; n++)
		ioctl(file, _IOWR('F', 0x2b, alloc), &alloc);
	return n;
}

static int obey(const char *line, int device)
{
	unsigned long n = 0, size = 0;

	if (sscanf(line, "alloc %lu", &size) == 1)
		do_alloc(size);
	else if (sscanf(line, "jump %lu", &size) == 1)
		do_jump(size);
	else if (sscanf(line, "free %lu", &n) == 1)
		do_free(n);
	else if (sscanf(line, "pool-alloc %lu %lu", &size, &n) == 2)
		do_pool_alloc(size, n);
	else if (sscanf(line, "pool-free %lu %lu", &n, &size) == 2)
		do_pool_free(n, size);
	else if (sscanf(line, "pool-trim %lu", &size) == 1)
		do_pool_trim(size, device);
	else if (sscanf(line, "race %lu", &n) == 1)
		do_race(n);
	else if (sscanf(line, "block %lu", &n) == 1)
		do_block(n);
	else if (strcmp(line, "unblock") == 0)
		do_unblock();
	else if (sscanf(line, "nvml %lu", &n) == 1)
		do_nvml(n);
	else if (sscanf(line, "loop %lu %lu", &n, &size) == 2)
		do_loop(n, size);
	else if (strcmp(line, "info") == 0)
		do_info();
	else if (strcmp(line, "total") == 0)
		do_total(device);
	else if (strcmp(line, "check") == 0)
		do_check();
	else if (strcmp(line, "fork") == 0)
		do_fork();
	else if (sscanf(line, "ask %lu", &n) == 1)
		printf("%lu\n", do_ask(n));
	else if (strcmp(line, "ask") == 0)
		do_ask(ULONG_MAX);
	else if (sscanf(line, "user %lu", &n) == 1)
		printf("%d\n", setuid(n));
	else if (strcmp(line, "pid") == 0)
		printf("%d\n", getpid());
	else
		return 1;
	return 0;
}

int main(int argc, char **argv)
{
	char line[256];
	int device = 0, r;

	setvbuf(stdout, NULL, _IOLBF, 0);
	/* As programs do that choose their devices themselves: nobody sees it from outside. */
	if (argc > 2 && strcmp(argv[1], "--visible") == 0) {
		setenv("CUDA_VISIBLE_DEVICES", argv[2], 1);
		argv += 2;
		argc -= 2;
	}
	load();
	/* Without a context the child of a fork can still make its own. */
	if (argc > 1 && strcmp(argv[1], "--later") == 0) {
		if (!fgets(line, sizeof(line), stdin) || strncmp(line, "fork", 4) != 0)
			return 1;
		do_fork();
		argc = 1;
	}
	r = start(argc > 1 ? atoi(argv[1]) : 0, &device);
	printf("%d\n", r);
	while (r == 0 && fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (obey(line, device))
			break;
	}
	return r;
}
