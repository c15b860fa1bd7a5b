// SPDX-License-Identifier: Apache-2.0
/*
 * What forwarding costs: bench-forward
 *
 *	bench-forward [PLACES]	prints a table of medians; `bench/run forward` runs it through `cotenant forward` and
 *				directly. PLACES: in how many pages' memory copies are measured
 *	bench-forward pinned	copies pinned memory alone, for whoever counts
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/peers.h"
#include "src/cuda/cuda_abi.h"

#define ROUNDS	   9
#define COPY_BYTES (64UL << 20)
#define COPIES	   5
#define PLACES_MAX 64
#define RESTS	   99
#define REST_US	   2000 /* far longer than a worker looks at its ring before it sleeps */

static const char ptx[] = ".version 6.0\n.target sm_50\n.address_size 64\n"
			  ".visible .entry nothing(.param .u64 a, .param .u32 b)\n{\n\tret;\n}\n";

static CUresult (*init)(unsigned);
static CUresult (*retain)(CUcontext *, CUdevice);
static CUresult (*set_current)(CUcontext);
static CUresult (*get_flags)(unsigned *);
static CUresult (*mem_alloc)(CUdeviceptr *, size_t);
static CUresult (*host_alloc)(void **, size_t, unsigned);
static CUresult (*mem_free)(CUdeviceptr);
static CUresult (*host_free)(void *);
static CUresult (*to_device)(CUdeviceptr, const void *, size_t);
static CUresult (*to_host)(void *, CUdeviceptr, size_t);
static CUresult (*load)(CUmodule *, const void *);
static CUresult (*get_function)(CUfunction *, CUmodule, const char *);
static CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
			  unsigned, CUstream, void **, void **);
static CUresult (*synchronize)(void);

static const struct {
	const char *name;
	void *slot;
} calls[] = {
	{ "cuInit", &init },
	{ "cuDevicePrimaryCtxRetain", &retain },
	{ "cuCtxSetCurrent", &set_current },
	{ "cuCtxGetFlags", &get_flags },
	{ "cuMemAlloc_v2", &mem_alloc },
	{ "cuMemHostAlloc", &host_alloc },
	{ "cuMemFree_v2", &mem_free },
	{ "cuMemFreeHost", &host_free },
	{ "cuMemcpyHtoD_v2", &to_device },
	{ "cuMemcpyDtoH_v2", &to_host },
	{ "cuModuleLoadData", &load },
	{ "cuModuleGetFunction", &get_function },
	{ "cuLaunchKernel", &launch },
	{ "cuCtxSynchronize", &synchronize },
};

static CUfunction nothing;
static CUdeviceptr device;
static char *pinned, *pageable, *other, *elsewhere[2];

static void must(int result, const char *what)
{
	if (result == 0)
		return;
	fprintf(stderr, "%s answered %d\n", what, result);
	exit(1);
}

static void driver_open(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		void *found = dlsym(library, calls[i].name);

		must(!found, calls[i].name);
		memcpy(calls[i].slot, &found, sizeof(found));
	}
}

static double clock_us(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of what a call takes over ROUNDS batches of @n; @after ends each batch, untimed. */
static double median_us(clockid_t clock, void (*call)(void), int n, void (*after)(void))
{
	double us[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		double start = clock_us(clock);

		for (int k = 0; k < n; k++)
			call();
		us[i] = (clock_us(clock) - start) / n;
		if (after)
			after();
	}
	qsort(us, ROUNDS, sizeof(us[0]), ascending);
	return us[ROUNDS / 2];
}

static double took_us(void (*call)(void))
{
	double start = clock_us(CLOCK_MONOTONIC);

	call();
	return clock_us(CLOCK_MONOTONIC) - start;
}

static void launch_nothing(void)
{
	uint64_t a = 1;
	unsigned b = 2;
	void *parameters[] = { &a, &b };

	must(launch(nothing, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL), "cuLaunchKernel");
}

static void wait_for_all(void)
{
	must(synchronize(), "cuCtxSynchronize");
}

static void round_trip(void)
{
	unsigned flags;

	must(get_flags(&flags), "cuCtxGetFlags");
}

static void copy_memory(void)
{
	memcpy(other, pageable, COPY_BYTES);
}

static void copy_memory_elsewhere(void)
{
	memcpy(elsewhere[1], elsewhere[0], COPY_BYTES);
}

static void copy_pinned_in(void)
{
	must(to_device(device, pinned, COPY_BYTES), "cuMemcpyHtoD");
}

static void copy_pageable_in(void)
{
	must(to_device(device, pageable, COPY_BYTES), "cuMemcpyHtoD");
}

static void copy_pageable_out(void)
{
	must(to_host(other, device, COPY_BYTES), "cuMemcpyDtoH");
}

static void row(const char *what, double value)
{
	printf("%-44s %9.3f\n", what, value);
}

/* After a rest: whoever answers has gone to sleep. */
static double took_rested_us(void (*call)(void))
{
	usleep(REST_US);
	return took_us(call);
}

static double median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), ascending);
	return values[n / 2];
}

static struct peer peers[] = {
	{ .name = "  a pipe, both on one CPU" },
	{ .name = "  a pipe, on two", .two_cpus = true },
	{ .name = "  a futex, both on one CPU", .futex = true },
	{ .name = "  a futex, on two", .futex = true, .two_cpus = true },
};

#define N_PEERS (sizeof(peers) / sizeof(peers[0]))

static struct peer *asked;

static void ask_peer(void)
{
	peer_ask(asked);
}

/* In turns, so that whatever else the machine does strikes all alike. */
static void rows_of_rests(void)
{
	double ours[RESTS], theirs[N_PEERS][RESTS];
	size_t k;

	for (int i = 0; i < RESTS; i++) {
		ours[i] = took_rested_us(round_trip);
		peer_begin();
		for (k = 0; k < N_PEERS; k++) {
			asked = &peers[k];
			if (asked->is_there)
				theirs[k][i] = took_rested_us(ask_peer);
		}
		peer_end();
	}
	row("round trip from sleep, us", median(ours, RESTS));
	for (k = 0; k < N_PEERS; k++)
		if (peers[k].is_there)
			row(peers[k].name, median(theirs[k], RESTS));
}

static const struct {
	const char *name;
	void (*copy)(void);
} copies[] = {
	{ "  memcpy between other pages", copy_memory_elsewhere },
	{ "  pinned, to the device, of memcpy's rate", copy_pinned_in },
	{ "  pageable, to the device", copy_pageable_in },
	{ "  pageable, to the host", copy_pageable_out },
};

#define N_COPIES (sizeof(copies) / sizeof(copies[0]))

static char *filled(char *at, int with)
{
	must(!at, "malloc");
	return memset(at, with, COPY_BYTES);
}

static void memory_begin(void)
{
	must(mem_alloc(&device, COPY_BYTES), "cuMemAlloc");
	must(host_alloc((void **)&pinned, COPY_BYTES, 0), "cuMemHostAlloc");
	filled(pinned, 0);
	pageable = filled(malloc(COPY_BYTES), 1);
	other = filled(malloc(COPY_BYTES), 2);
	for (size_t i = 0; i < 2; i++)
		elsewhere[i] = filled(malloc(COPY_BYTES), 3);
	for (size_t k = 0; k < N_COPIES; k++)
		copies[k].copy();
}

static void memory_end(void)
{
	must(mem_free(device), "cuMemFree");
	must(host_free(pinned), "cuMemFreeHost");
	free(pageable);
	free(other);
	for (size_t i = 0; i < 2; i++)
		free(elsewhere[i]);
}

/*
 * Each copy beside a memcpy() of its own, because the machine is not as fast at any time; and in memory that is new
 * again and again, because a tenth hangs on which pages it happens to be, of memcpy()'s own rate as well.
 */
static void rows_of_copies(int n_places)
{
	double memory[PLACES_MAX * N_COPIES * COPIES], ratios[COPIES], places[N_COPIES][PLACES_MAX];
	size_t k, n = 0;

	for (int place = 0; place < n_places; place++) {
		memory_begin();
		for (k = 0; k < N_COPIES; k++) {
			for (int i = 0; i < COPIES; i++) {
				double us = took_us(copy_memory);

				memory[n++] = us;
				ratios[i] = us / took_us(copies[k].copy);
			}
			places[k][place] = median(ratios, COPIES);
		}
		memory_end();
	}
	row("64 MiB by memcpy, GB/s", COPY_BYTES / median(memory, (int)n) / 1e3);
	for (k = 0; k < N_COPIES; k++)
		row(copies[k].name, median(places[k], n_places));
}

static void context_begin(void)
{
	CUcontext context;

	must(init(0), "cuInit");
	must(retain(&context, 0), "cuDevicePrimaryCtxRetain");
	must(set_current(context), "cuCtxSetCurrent");
}

static int copies_of_pinned(void)
{
	driver_open();
	context_begin();
	must(mem_alloc(&device, COPY_BYTES), "cuMemAlloc");
	must(host_alloc((void **)&pinned, COPY_BYTES, 0), "cuMemHostAlloc");
	filled(pinned, 1);
	copy_pinned_in();
	must(to_host(pinned, device, COPY_BYTES), "cuMemcpyDtoH");
	return 0;
}

int main(int argc, char **argv)
{
	int places = argc > 1 ? atoi(argv[1]) : 12;
	CUmodule module;
	double start;

	if (argc > 1 && strcmp(argv[1], "pinned") == 0)
		return copies_of_pinned();
	must(places < 1 || places > PLACES_MAX, "places");
	for (size_t i = 0; i < N_PEERS; i++)
		peers[i].is_there = peer_start(&peers[i]);
	driver_open();
	start = clock_us(CLOCK_MONOTONIC);
	context_begin();
	row("cuInit + primary context, once, ms", (clock_us(CLOCK_MONOTONIC) - start) / 1e3);
	must(load(&module, ptx), "cuModuleLoadData");
	must(get_function(&nothing, module, "nothing"), "cuModuleGetFunction");
	row("launch of 1,000, the caller's CPU, us each",
	    median_us(CLOCK_THREAD_CPUTIME_ID, launch_nothing, 1000, wait_for_all));
	row("launch of 1,000, the caller's time, us each",
	    median_us(CLOCK_MONOTONIC, launch_nothing, 1000, wait_for_all));
	row("round trip (cuCtxGetFlags), us", median_us(CLOCK_MONOTONIC, round_trip, 1000, NULL));
	rows_of_rests();
	rows_of_copies(places);
	return 0;
}
