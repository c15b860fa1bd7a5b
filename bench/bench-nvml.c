/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-nvml SECONDS: what it costs to ask the library itself, each second, what the daemon asks it: of every
 * device its memory, its processes and their device time, and nothing else. Prints the CPU's time in
 * milliseconds a second, user and system, and what this program has in memory, in KiB.
 */
#include "gpu/nvml_abi.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define DEVICES	  64
#define PROCESSES 1024

static struct nvml_calls call;
static nvml_device devices[DEVICES];
static struct nvml_process processes[PROCESSES];
static struct nvml_process_sample samples[PROCESSES];

static const struct {
	const char *symbol;
	size_t offset;
} symbols[] = {
#define NVML_CALL(member, symbol, needed, arguments)                                               \
	{ symbol, offsetof(struct nvml_calls, member) },
	NVML_CALLS(NVML_CALL)
#undef NVML_CALL
};

static int load(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW), *address;

	for (size_t i = 0; library && i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		address = dlsym(library, symbols[i].symbol);
		memcpy((char *)&call + symbols[i].offset, &address, sizeof(address));
	}
	return library && call.init && call.device_count && call.device_by_index &&
	       call.device_memory && call.compute_processes && call.process_samples;
}

/* Return: how many processes there are. */
static unsigned ask_all(unsigned n_devices)
{
	struct nvml_memory memory;
	unsigned all = 0, n;

	for (unsigned i = 0; i < n_devices; i++) {
		call.device_memory(devices[i], &memory);
		n = PROCESSES;
		if (call.compute_processes(devices[i], &n, processes) == NVML_OK)
			all += n;
		n = PROCESSES;
		call.process_samples(devices[i], samples, &n, 0);
	}
	return all;
}

static double cpu_ms(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1e3 +
	       (use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e3;
}

static unsigned long resident_kib(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	unsigned long n = 0;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "VmRSS: %lu", &n) == 1)
			break;
	}
	if (f)
		fclose(f);
	return n;
}

int main(int argc, char **argv)
{
	int seconds = argc > 1 ? atoi(argv[1]) : 30;
	unsigned n_devices = 0, n = 0;
	double before;

	if (!load() || call.init() || call.device_count(&n_devices) || seconds < 1)
		return 1;
	n_devices = n_devices < DEVICES ? n_devices : DEVICES;
	for (unsigned i = 0; i < n_devices; i++) {
		if (call.device_by_index(i, &devices[i]))
			return 1;
	}
	before = cpu_ms();
	for (int i = 0; i < seconds; i++) {
		n = ask_all(n_devices);
		sleep(1);
	}
	printf("%u %.3f %lu\n", n, (cpu_ms() - before) / seconds, resident_kib());
	return 0;
}
