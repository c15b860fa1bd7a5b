/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library with NVML's names for test-gpu: two devices, 100 processes on the
 * first of which two have both kinds of context and one tells no number. With
 * FAKE_MIG a third is there, partitioned: instances in its first and third place.
 */
#include "gpu/nvml_abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

#define DECLARE(member, symbol, needed, arguments)                                                 \
	EXPORT int fake_##member arguments __asm__(symbol);
NVML_CALLS(DECLARE)
#undef DECLARE

#define PARTITIONED 2

static int devices[6]; /* from the fourth on: instances */

int fake_init(void)
{
	return NVML_OK;
}

int fake_shutdown(void)
{
	return NVML_OK;
}

int fake_driver_version(char *text, unsigned size)
{
	snprintf(text, size, "550.163.01");
	return NVML_OK;
}

int fake_cuda_version(int *ret)
{
	*ret = 12040;
	return NVML_OK;
}

int fake_device_count(unsigned *ret)
{
	*ret = getenv("FAKE_MIG") ? 3 : 2;
	return NVML_OK;
}

int fake_device_by_index(unsigned i, nvml_device *ret)
{
	*ret = &devices[i];
	return NVML_OK;
}

static int index_of(nvml_device device)
{
	return (int *)device - devices;
}

int fake_device_uuid(nvml_device device, char *text, unsigned size)
{
	snprintf(text, size, "%s-0000000%d-aaaa-bbbb-cccc-000000000000",
		 index_of(device) > PARTITIONED ? "MIG" : "GPU", index_of(device));
	return NVML_OK;
}

int fake_device_name(nvml_device device, char *text, unsigned size)
{
	snprintf(text, size, "Fake %d", index_of(device));
	return NVML_OK;
}

int fake_device_pci(nvml_device device, struct nvml_pci *ret)
{
	memset(ret, 0, sizeof(*ret));
	snprintf(ret->bus_id, sizeof(ret->bus_id), "00000000:0%d:00.0", index_of(device) + 1);
	return NVML_OK;
}

int fake_device_serial(nvml_device device, char *text, unsigned size)
{
	if (index_of(device))
		return NVML_NOT_SUPPORTED;
	snprintf(text, size, "1234567890");
	return NVML_OK;
}

int fake_mig_mode(nvml_device device, unsigned *now, unsigned *pending)
{
	if (index_of(device) < PARTITIONED)
		return NVML_NOT_SUPPORTED;
	*now = *pending = NVML_MIG_ENABLED;
	return NVML_OK;
}

int fake_mig_count(_unused_ nvml_device device, unsigned *ret)
{
	if (strcmp(getenv("FAKE_MIG"), "silent") == 0)
		return NVML_NOT_SUPPORTED;
	*ret = 3;
	return NVML_OK;
}

int fake_mig_by_index(_unused_ nvml_device device, unsigned i, nvml_device *ret)
{
	*ret = &devices[PARTITIONED + 1 + i];
	return i == 1 ? NVML_NOT_FOUND : NVML_OK;
}

EXPORT unsigned long long fake_used = 10ULL << 30;

int fake_device_memory(_unused_ nvml_device device, struct nvml_memory *ret)
{
	*ret = (struct nvml_memory){ 80ULL << 30, (80ULL << 30) - fake_used, fake_used };
	return NVML_OK;
}

int fake_device_utilization(_unused_ nvml_device device, struct nvml_utilization *ret)
{
	*ret = (struct nvml_utilization){ 42, 7 };
	return NVML_OK;
}

EXPORT unsigned fake_n_listed; /* how often a device was asked for its processes */

int fake_compute_processes(nvml_device device, unsigned *n, struct nvml_process *ret)
{
	unsigned i, n_running = index_of(device) ? 0 : 100;

	fake_n_listed++;
	if (*n < n_running) {
		*n = n_running;
		return NVML_INSUFFICIENT_SIZE;
	}
	for (i = 0; i < n_running; i++)
		ret[i] = (struct nvml_process){ .pid = 1000 + i,
						.used_bytes =
							i == 99 ? NVML_NOT_AVAILABLE : 1 << 20 };
	*n = n_running;
	return NVML_OK;
}

int fake_compute_processes_v2(_unused_ nvml_device device, _unused_ unsigned *n,
			      _unused_ struct nvml_process *ret)
{
	return NVML_NOT_SUPPORTED;
}

int fake_graphics_processes(nvml_device device, unsigned *n, struct nvml_process *ret)
{
	if (*n < 2)
		return NVML_INSUFFICIENT_SIZE;
	*n = index_of(device) ? 0 : 2;
	ret[0] = (struct nvml_process){ .pid = 1000, .used_bytes = 1 << 20 };
	ret[1] = (struct nvml_process){ .pid = 1099, .used_bytes = 1 << 20 };
	return NVML_OK;
}

EXPORT unsigned fake_n_asked;	 /* for samples */
EXPORT unsigned fake_n_busy = 1; /* who was at work */

int fake_process_samples(_unused_ nvml_device device, struct nvml_process_sample *ret, unsigned *n,
			 unsigned long long since)
{
	fake_n_asked++;
	if (since >= 5000)
		return NVML_NOT_FOUND;
	if (!ret || *n < 1) {
		*n = fake_n_busy;
		return NVML_INSUFFICIENT_SIZE;
	}
	/* What there is room for, without a word about the rest. */
	*n = *n < fake_n_busy ? *n : fake_n_busy;
	for (unsigned i = 0; i < *n; i++)
		ret[i] = (struct nvml_process_sample){ .pid = 1001 + i,
						       .time_us = 5000,
						       .sm_percent = 33 };
	return NVML_OK;
}

int fake_set_memory_limits(_unused_ nvml_device device, struct nvml_memory_limits *limits)
{
	return strcmp(limits->cgroup_dir, "/sys/fs/cgroup/a") == 0 ? NVML_OK : NVML_NOT_FOUND;
}
