/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tenant that keeps a device busy: launcher HOW NANOSECONDS BLOCKS SYNC SECONDS
 *
 *	HOW	kernel, kernel_ptsz, cooperative, ex or graph; mixed: kernels of that time and of a
 *		250th of it in turns, and for a second in three the short ones alone
 *	SYNC	how many launches until it waits for the device, 0 for never but at the end
 *
 * Prints its process id when it begins, and when it ends how often it has launched and for how many
 * milliseconds it could have run and got no CPU.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS	      64
#define MIXED_SHORTER 250

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry softgpu_timed(.param .u64 ns) { ret; }\n";

struct launch_config {
	unsigned grid[3], block[3], shared_bytes;
	void *stream, *attributes;
	unsigned n_attributes;
};

static void *library, *function, *stream, *graph_exec;
static uint64_t duration_ns;
static void *params[] = { &duration_ns };
static unsigned n_blocks;

static void *find(const char *name)
{
	void *address = dlsym(library, name);

	if (!address) {
		fprintf(stderr, "no %s\n", name);
		exit(1);
	}
	return address;
}

static void must(int code, const char *what)
{
	if (code == 0)
		return;
	fprintf(stderr, "%s: %d\n", what, code);
	exit(1);
}

/* Numbers and addresses alike travel in registers; none of these calls has more than four. */
typedef int (*any_call)(uintptr_t, uintptr_t, uintptr_t, uintptr_t);
#define A(value)	     ((uintptr_t)(value))
#define CU(name, a, b, c, d) must(((any_call)find(#name))(A(a), A(b), A(c), A(d)), #name)

static int (*launch_kernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			    unsigned, void *, void **, void **);

static int launch_plain(void)
{
	return launch_kernel(function, n_blocks, 1, 1, THREADS, 1, 1, 0, stream, params, NULL);
}

static int launch_cooperative(void)
{
	static int (*call)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			   unsigned, void *, void **);

	if (!call)
		call = find("cuLaunchCooperativeKernel");
	return call(function, n_blocks, 1, 1, THREADS, 1, 1, 0, stream, params);
}

static int launch_ex(void)
{
	struct launch_config config = { { n_blocks, 1, 1 }, { THREADS, 1, 1 }, 0, stream, NULL, 0 };
	static int (*call)(void *, void *, void **, void **);

	if (!call)
		call = find("cuLaunchKernelEx");
	return call(&config, function, params, NULL);
}

static int launch_graph(void)
{
	static int (*call)(void *, void *);

	if (!call)
		call = find("cuGraphLaunch");
	return call(graph_exec, stream);
}

static void make_graph(void)
{
	void *graph;

	CU(cuStreamBeginCapture_v2, stream, 0, 0, 0);
	must(launch_plain(), "cuLaunchKernel in a capture");
	CU(cuStreamEndCapture, stream, &graph, 0, 0);
	CU(cuGraphInstantiateWithFlags, &graph_exec, graph, 0, 0);
}

/* Short and long kernels alike are launches of one function; their numbers of blocks differ. */
static int launch_mixed(void)
{
	static uint64_t short_ns;
	static void *short_params[] = { &short_ns };
	static bool is_long;

	short_ns = duration_ns / MIXED_SHORTER;
	is_long = !is_long && time(NULL) % 3;
	if (is_long)
		return launch_plain();
	return launch_kernel(function, 1, 1, 1, THREADS, 1, 1, 0, stream, short_params, NULL);
}

static int (*choose(const char *how))(void)
{
	launch_kernel =
		find(strcmp(how, "kernel_ptsz") == 0 ? "cuLaunchKernel_ptsz" : "cuLaunchKernel");
	if (strcmp(how, "cooperative") == 0)
		return launch_cooperative;
	if (strcmp(how, "ex") == 0)
		return launch_ex;
	if (strcmp(how, "mixed") == 0)
		return launch_mixed;
	if (strcmp(how, "graph") != 0)
		return launch_plain;
	make_graph();
	return launch_graph;
}

static void start(void)
{
	void *context, *module;
	int device;

	library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	CU(cuInit, 0, 0, 0, 0);
	CU(cuDeviceGet, &device, 0, 0, 0);
	CU(cuCtxCreate_v2, &context, 0, device, 0);
	CU(cuModuleLoadData, &module, ptx, 0, 0);
	CU(cuModuleGetFunction, &function, module, "softgpu_timed", 0);
	CU(cuStreamCreate, &stream, 1, 0, 0);
}

static unsigned long waited_for_cpu_ms(void)
{
	FILE *f = fopen("/proc/self/schedstat", "re");
	unsigned long ns = 0;

	if (f && fscanf(f, "%*u %lu", &ns) != 1)
		ns = 0;
	if (f)
		fclose(f);
	return ns / 1000000;
}

int main(int argc, char **argv)
{
	unsigned long n = 0, every;
	int (*launch)(void);
	time_t end;

	if (argc != 6)
		return 2;
	duration_ns = strtoull(argv[2], NULL, 10);
	n_blocks = strtoul(argv[3], NULL, 10);
	every = strtoul(argv[4], NULL, 10);
	end = time(NULL) + atoi(argv[5]);
	start();
	launch = choose(argv[1]);
	printf("%d\n", getpid());
	fflush(stdout);
	while (time(NULL) < end) {
		must(launch(), argv[1]);
		if (every && ++n % every == 0)
			CU(cuStreamSynchronize, stream, 0, 0, 0);
		n += !every;
	}
	CU(cuStreamSynchronize, stream, 0, 0, 0);
	printf("%lu %lu\n", n, waited_for_cpu_ms());
	fflush(stdout);
	_exit(0);
}
