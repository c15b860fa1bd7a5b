// SPDX-License-Identifier: Apache-2.0
#include "softgpu/smi/smi.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define SENSOR_GPU 0

static int percent_find(const nvmlProcessUtilizationSample_t *samples, unsigned n, unsigned pid)
{
	for (unsigned i = 0; i < n; i++) {
		if (samples[i].pid == pid)
			return (int)samples[i].smUtil;
	}
	return -1;
}

static void process_fill(struct smi_process *process, const nvmlProcessInfo_v2_t *info)
{
	process->pid = info->pid;
	process->used_bytes = info->usedGpuMemory;
	process->percent = -1;
	/* It may have ended, or be another user's. */
	if (nvmlSystemGetProcessName(info->pid, process->name, sizeof(process->name)) != 0)
		strcpy(process->name, "-");
}

static void percents_fill(nvmlDevice_t handle, struct smi_device *device)
{
	unsigned n = (unsigned)device->n_processes + 16;
	nvmlProcessUtilizationSample_t *samples = calloc(n, sizeof(*samples));

	if (!samples)
		return;
	if (nvmlDeviceGetProcessUtilization(handle, samples, &n, 0) == NVML_SUCCESS) {
		for (size_t i = 0; i < device->n_processes; i++)
			device->processes[i].percent =
				percent_find(samples, n, device->processes[i].pid);
	}
	free(samples);
}

static nvmlReturn_t processes_read(nvmlDevice_t handle, struct smi_device *device)
{
	nvmlProcessInfo_v2_t *infos = NULL, *more;
	unsigned n = 0;
	nvmlReturn_t r;

	/* Processes come and go between two calls: room for some more each time. */
	while ((r = nvmlDeviceGetComputeRunningProcesses_v3(handle, &n, infos)) ==
	       NVML_ERROR_INSUFFICIENT_SIZE) {
		n += 16;
		more = realloc(infos, n * sizeof(*infos));
		if (!more) {
			free(infos);
			return NVML_ERROR_MEMORY;
		}
		infos = more;
	}
	device->processes = calloc(n + 1, sizeof(*device->processes));
	if (r == NVML_SUCCESS && device->processes) {
		device->n_processes = n;
		for (unsigned i = 0; i < n; i++)
			process_fill(&device->processes[i], &infos[i]);
		percents_fill(handle, device);
	}
	free(infos);
	return device->processes ? r : NVML_ERROR_MEMORY;
}

/* What a call does not tell stays 0 or empty; what must be there is the handle. */
static nvmlReturn_t device_read(nvmlDevice_t handle, struct smi_device *device)
{
	memset(device, 0, sizeof(*device));
	device->memory.version = NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2);
	nvmlDeviceGetIndex(handle, &device->index);
	nvmlDeviceGetName(handle, device->name, sizeof(device->name));
	nvmlDeviceGetUUID(handle, device->uuid, sizeof(device->uuid));
	nvmlDeviceGetSerial(handle, device->serial, sizeof(device->serial));
	nvmlDeviceGetPciInfo_v3(handle, &device->pci);
	nvmlDeviceGetMemoryInfo_v2(handle, &device->memory);
	nvmlDeviceGetAttributes_v2(handle, &device->attributes);
	nvmlDeviceGetUtilizationRates(handle, &device->utilization);
	nvmlDeviceGetCudaComputeCapability(handle, &device->compute_major, &device->compute_minor);
	nvmlDeviceGetTemperature(handle, SENSOR_GPU, &device->celsius);
	nvmlDeviceGetPowerUsage(handle, &device->power_mw);
	nvmlDeviceGetEnforcedPowerLimit(handle, &device->power_limit_mw);
	nvmlDeviceGetTotalEnergyConsumption(handle, &device->energy_mj);
	nvmlDeviceGetPerformanceState(handle, &device->state);
	nvmlDeviceGetClockInfo(handle, NVML_CLOCK_SM, &device->sm_mhz);
	nvmlDeviceGetClockInfo(handle, NVML_CLOCK_MEM, &device->memory_mhz);
	nvmlDeviceGetMaxClockInfo(handle, NVML_CLOCK_SM, &device->sm_max_mhz);
	nvmlDeviceGetMaxClockInfo(handle, NVML_CLOCK_MEM, &device->memory_max_mhz);
	return processes_read(handle, device);
}

static nvmlReturn_t device_find(const char *which, nvmlDevice_t *ret)
{
	char *end;
	unsigned long index;

	if (!isdigit((unsigned char)*which))
		return nvmlDeviceGetHandleByUUID(which, ret);
	index = strtoul(which, &end, 10);
	if (*end || index > 0xffff)
		return nvmlDeviceGetHandleByUUID(which, ret);
	return nvmlDeviceGetHandleByIndex_v2((unsigned)index, ret);
}

static nvmlReturn_t devices_read(struct smi_machine *machine, const char *which, unsigned count)
{
	nvmlDevice_t handle;
	nvmlReturn_t r = NVML_SUCCESS;

	for (unsigned i = 0; i < count && r == NVML_SUCCESS; i++) {
		r = which ? device_find(which, &handle) : nvmlDeviceGetHandleByIndex_v2(i, &handle);
		if (r == NVML_SUCCESS)
			r = device_read(handle, &machine->devices[machine->n_devices++]);
	}
	return r;
}

nvmlReturn_t machine_read(struct smi_machine *ret, const char *which)
{
	struct smi_machine machine = { 0 };
	unsigned count = 1;
	nvmlReturn_t r;

	nvmlSystemGetDriverVersion(machine.driver, sizeof(machine.driver));
	nvmlSystemGetCudaDriverVersion_v2(&machine.cuda);
	r = which ? NVML_SUCCESS : nvmlDeviceGetCount_v2(&count);
	if (r != NVML_SUCCESS)
		return r;
	machine.devices = calloc(count, sizeof(*machine.devices));
	if (!machine.devices)
		return NVML_ERROR_MEMORY;
	r = devices_read(&machine, which, count);
	if (r == NVML_SUCCESS)
		*ret = machine;
	else
		machine_done(&machine);
	return r;
}

void machine_done(struct smi_machine *machine)
{
	for (size_t i = 0; i < machine->n_devices; i++)
		free(machine->devices[i].processes);
	free(machine->devices);
	*machine = (struct smi_machine){ 0 };
}
