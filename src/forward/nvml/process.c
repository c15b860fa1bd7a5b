// SPDX-License-Identifier: Apache-2.0
/*
 * The guest's processes that compute on a device. Of graphics and MPS nothing is forwarded: those lists are
 * empty.
 */
#include "forward/nvml/nvml.h"

#include "base/base.h"

#include <string.h>

struct process_list {
	struct wire_process entries[WIRE_MAX_SESSIONS];
	unsigned n;
};

static nvmlReturn_t list_read(nvmlDevice_t device, struct process_list *list)
{
	struct wire_process process = { 0 };
	nvmlReturn_t r;

	list->n = 0;
	do {
		r = device_ask(device, QUESTION_nvmlDeviceGetComputeRunningProcesses_v3,
			       process.next, &process, sizeof(process));
		if (r == NVML_SUCCESS)
			list->entries[list->n++] = process;
	} while (r == NVML_SUCCESS && list->n < ARRAY_SIZE(list->entries));
	return r == NVML_ERROR_NOT_FOUND ? NVML_SUCCESS : r;
}

/* Tells how many there are, and whether the caller's array has room for them. */
static nvmlReturn_t room_check(const struct process_list *list, const void *array, unsigned *count)
{
	unsigned room = array ? *count : 0;

	*count = list->n;
	return list->n <= room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

static nvmlReturn_t running(nvmlDevice_t device, unsigned *count, const void *infos,
			    struct process_list *ret)
{
	nvmlReturn_t r;

	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	r = list_read(device, ret);
	return r == NVML_SUCCESS ? room_check(ret, infos, count) : r;
}

ENTRY(nvmlDeviceGetComputeRunningProcesses, nvmlDevice_t device, unsigned *count,
      nvmlProcessInfo_v1_t *infos)
{
	struct process_list list;
	nvmlReturn_t r = running(device, count, infos, &list);
	unsigned i;

	for (i = 0; r == NVML_SUCCESS && i < list.n; i++) {
		infos[i].pid = list.entries[i].pid;
		infos[i].usedGpuMemory = list.entries[i].used_bytes;
	}
	return r;
}

static nvmlReturn_t running_v2(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *infos)
{
	struct process_list list;
	nvmlReturn_t r = running(device, count, infos, &list);
	unsigned i;

	for (i = 0; r == NVML_SUCCESS && i < list.n; i++)
		infos[i] = (nvmlProcessInfo_v2_t){ .pid = list.entries[i].pid,
						   .usedGpuMemory = list.entries[i].used_bytes,
						   .gpuInstanceId = NVML_NO_INSTANCE,
						   .computeInstanceId = NVML_NO_INSTANCE };
	return r;
}

ENTRY(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDevice_t device, unsigned *count,
      nvmlProcessInfo_v2_t *infos)
{
	return running_v2(device, count, infos);
}

ENTRY(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDevice_t device, unsigned *count,
      nvmlProcessInfo_v2_t *infos)
{
	return running_v2(device, count, infos);
}

#define EMPTY_LIST(name)                                                                           \
	ENTRY(name, nvmlDevice_t device, unsigned *count, _unused_ void *infos)                    \
	{                                                                                          \
		unsigned number;                                                                   \
		nvmlReturn_t r = device_check(device, count, &number);                             \
                                                                                                   \
		if (r == NVML_SUCCESS)                                                             \
			*count = 0;                                                                \
		return r;                                                                          \
	}

EMPTY_LIST(nvmlDeviceGetGraphicsRunningProcesses)
EMPTY_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2)
EMPTY_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3)
EMPTY_LIST(nvmlDeviceGetMPSComputeRunningProcesses)
EMPTY_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2)
EMPTY_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3)

/* Those whose shares of time were measured since the caller last looked. */
static void list_keep_new(struct process_list *list, uint64_t last_seen_us)
{
	unsigned i, n = 0;

	for (i = 0; i < list->n; i++)
		if (list->entries[i].sampled_us > last_seen_us)
			list->entries[n++] = list->entries[i];
	list->n = n;
}

ENTRY(nvmlDeviceGetProcessUtilization, nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
      unsigned *count, unsigned long long last_seen_us)
{
	struct process_list list;
	nvmlReturn_t r;
	unsigned i;

	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	r = list_read(device, &list);
	if (r != NVML_SUCCESS)
		return r;
	list_keep_new(&list, last_seen_us);
	r = room_check(&list, samples, count);
	if (list.n == 0)
		return NVML_ERROR_NOT_FOUND;
	for (i = 0; r == NVML_SUCCESS && i < list.n; i++)
		samples[i] = (nvmlProcessUtilizationSample_t){
			.pid = list.entries[i].pid,
			.timeStamp = list.entries[i].sampled_us,
			.smUtil = list.entries[i].sm_percent,
			.memUtil = list.entries[i].memory_percent,
			.encUtil = list.entries[i].encoder_percent,
			.decUtil = list.entries[i].decoder_percent,
		};
	return r;
}
