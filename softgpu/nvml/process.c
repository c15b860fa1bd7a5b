// SPDX-License-Identifier: Apache-2.0
/*
 * Processes that compute on a device. There are no others: the lists of graphics and MPS
 * processes are empty.
 */
#include "softgpu/nvml/nvml.h"

#include "softgpu/engine/engine.h"

#include <stdlib.h>

struct process_list {
	struct state_process *entries;
	unsigned n;
};

/* Who only opened the driver is none of them. */
static nvmlReturn_t list_read(unsigned dev, struct process_list *ret)
{
	struct state_process *all = malloc(STATE_SLOTS_MAX * sizeof(*all));
	size_t n;

	if (!all)
		return NVML_ERROR_MEMORY;
	state_look(nvml.state, dev);
	engine_update(nvml.state, dev);
	n = state_computing(nvml.state, dev, all, STATE_SLOTS_MAX);
	*ret = (struct process_list){
		.entries = all,
		.n = n < STATE_SLOTS_MAX ? (unsigned)n : STATE_SLOTS_MAX,
	};
	return NVML_SUCCESS;
}

/*
 * What all calls with an array have in common: tells how many there are, and whether the
 * caller's array has room for them.
 */
static nvmlReturn_t room_check(const struct process_list *list, const void *array, unsigned *count)
{
	unsigned room = array ? *count : 0;

	*count = list->n;
	return list->n <= room ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

/* The processes of a device if @infos has room for all; their number is told in any case. */
static nvmlReturn_t running(nvmlDevice_t device, unsigned *count, const void *infos,
			    struct process_list *ret)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, count, &dev);

	*ret = (struct process_list){};
	if (r == NVML_SUCCESS)
		r = list_read(dev, ret);
	return r != NVML_SUCCESS ? r : room_check(ret, infos, count);
}

static nvmlReturn_t running_v1(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v1_t *infos)
{
	struct process_list list;
	nvmlReturn_t r = running(device, count, infos, &list);

	for (unsigned i = 0; r == NVML_SUCCESS && i < list.n; i++) {
		infos[i].pid = (unsigned)list.entries[i].pid;
		infos[i].usedGpuMemory = list.entries[i].used_bytes;
	}
	free(list.entries);
	return r;
}

static nvmlReturn_t running_v2(nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *infos)
{
	struct process_list list;
	nvmlReturn_t r = running(device, count, infos, &list);

	for (unsigned i = 0; r == NVML_SUCCESS && i < list.n; i++)
		infos[i] = (nvmlProcessInfo_v2_t){
			.pid = (unsigned)list.entries[i].pid,
			.usedGpuMemory = list.entries[i].used_bytes,
			.gpuInstanceId = NVML_NO_INSTANCE,
			.computeInstanceId = NVML_NO_INSTANCE,
		};
	free(list.entries);
	return r;
}

CALL(nvmlDeviceGetComputeRunningProcesses, nvmlDevice_t device, unsigned *count,
     nvmlProcessInfo_v1_t *infos)
{
	return running_v1(device, count, infos);
}

CALL(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDevice_t device, unsigned *count,
     nvmlProcessInfo_v2_t *infos)
{
	return running_v2(device, count, infos);
}

CALL(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDevice_t device, unsigned *count,
     nvmlProcessInfo_v2_t *infos)
{
	return running_v2(device, count, infos);
}

/* Every version of the lists that are empty. */
#define EMPTY_LIST(name) GETTER(name, unsigned, 0)

EMPTY_LIST(nvmlDeviceGetGraphicsRunningProcesses)
EMPTY_LIST(nvmlDeviceGetGraphicsRunningProcesses_v2)
EMPTY_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3)
EMPTY_LIST(nvmlDeviceGetMPSComputeRunningProcesses)
EMPTY_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2)
EMPTY_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3)

CALL(nvmlDeviceGetRunningProcessDetailList, nvmlDevice_t device, nvmlProcessDetailList_t *details)
{
	struct process_list list;
	unsigned dev;
	nvmlReturn_t r = device_check(device, details, &dev);

	if (r != NVML_SUCCESS)
		return r;
	if (details->version != NVML_STRUCT_VERSION(nvmlProcessDetailList_t, 1))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	r = list_read(dev, &list);
	if (r != NVML_SUCCESS)
		return r;
	if (details->mode != 0)
		list.n = 0;
	r = room_check(&list, details->procArray, &details->numProcArrayEntries);
	for (unsigned i = 0; r == NVML_SUCCESS && i < list.n; i++)
		details->procArray[i] = (nvmlProcessDetail_v1_t){
			.pid = (unsigned)list.entries[i].pid,
			.usedGpuMemory = list.entries[i].used_bytes,
			.gpuInstanceId = NVML_NO_INSTANCE,
			.computeInstanceId = NVML_NO_INSTANCE,
		};
	free(list.entries);
	return r;
}

/* Drops the samples that the caller has seen; there is at most one per process. */
static void list_keep_new(struct process_list *list, uint64_t last_seen_us)
{
	unsigned n = 0;

	for (unsigned i = 0; i < list->n; i++) {
		if (list->entries[i].sample_us > last_seen_us)
			list->entries[n++] = list->entries[i];
	}
	list->n = n;
}

static nvmlReturn_t samples_read(unsigned dev, uint64_t last_seen_us, struct process_list *ret)
{
	nvmlReturn_t r = list_read(dev, ret);

	if (r != NVML_SUCCESS)
		return r;
	list_keep_new(ret, last_seen_us);
	if (ret->n > 0)
		return NVML_SUCCESS;
	free(ret->entries);
	return NVML_ERROR_NOT_FOUND;
}

CALL(nvmlDeviceGetProcessUtilization, nvmlDevice_t device, nvmlProcessUtilizationSample_t *samples,
     unsigned *count, unsigned long long last_seen_us)
{
	struct process_list list;
	unsigned dev;
	nvmlReturn_t r = device_check(device, count, &dev);

	if (r == NVML_SUCCESS)
		r = samples_read(dev, last_seen_us, &list);
	if (r == NVML_ERROR_NOT_FOUND)
		*count = 0;
	if (r != NVML_SUCCESS)
		return r;
	r = room_check(&list, samples, count);
	for (unsigned i = 0; r == NVML_SUCCESS && i < list.n; i++)
		samples[i] = (nvmlProcessUtilizationSample_t){
			.pid = (unsigned)list.entries[i].pid,
			.timeStamp = list.entries[i].sample_us,
			.smUtil = list.entries[i].percent,
			.memUtil = list.entries[i].percent,
		};
	free(list.entries);
	return r;
}

CALL(nvmlDeviceGetProcessesUtilizationInfo, nvmlDevice_t device,
     nvmlProcessesUtilizationInfo_t *info)
{
	struct process_list list;
	unsigned dev;
	nvmlReturn_t r = device_check(device, info, &dev);

	if (r != NVML_SUCCESS)
		return r;
	if (info->version != NVML_STRUCT_VERSION(nvmlProcessesUtilizationInfo_t, 1))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	r = samples_read(dev, info->lastSeenTimeStamp, &list);
	if (r != NVML_SUCCESS)
		return r;
	r = room_check(&list, info->procUtilArray, &info->processSamplesCount);
	for (unsigned i = 0; r == NVML_SUCCESS && i < list.n; i++)
		info->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){
			.pid = (unsigned)list.entries[i].pid,
			.timeStamp = list.entries[i].sample_us,
			.smUtil = list.entries[i].percent,
			.memUtil = list.entries[i].percent,
		};
	free(list.entries);
	return r;
}
