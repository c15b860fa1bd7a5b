// SPDX-License-Identifier: Apache-2.0
/*
 * PyTorch's calls.
 *
 * Its Python part counts devices in a process that has no driver yet, by names it looks up itself.
 * Its C++ part asserts that its names are there, and asks who has the memory when there is none
 * left and which devices a link joins. What it tells users of a device goes through pynvml.
 */
#include "softgpu/nvml/test-tools.h"

#include <stdio.h>
#include <string.h>

#define MOST_LINKS     20
#define MOST_PROCESSES 1024

/* It asserts all but the last. */
static const char *const needs[] = {
	"nvmlInit_v2",
	"nvmlDeviceGetHandleByPciBusId_v2",
	"nvmlDeviceGetNvLinkRemoteDeviceType",
	"nvmlDeviceGetNvLinkRemotePciInfo_v2",
	"nvmlDeviceGetComputeRunningProcesses",
	"nvmlSystemGetCudaDriverVersion_v2",
	"nvmlDeviceGetGpuFabricInfoV",
};

static void devices_counted(void)
{
	nvmlDevice_t device;
	char uuid[96];
	int n = -1;

	check(call(nvmlInit, void)() == 0, "PyTorch: starts by the first name");
	check(call(nvmlDeviceGetCount_v2, int *)(&n) == 0 && n == 2, "PyTorch: counts devices");
	for (int i = 0; i < n; i++)
		check(call(nvmlDeviceGetHandleByIndex_v2, int, nvmlDevice_t *)(i, &device) == 0 &&
			      call_device(nvmlDeviceGetUUID, char *, unsigned)(device, uuid,
									       sizeof(uuid)) == 0 &&
			      strncmp(uuid, "GPU-", 4) == 0,
		      "PyTorch: the UUID of each");
}

/* The device that the driver tells the address of, as the C++ part writes it. */
static nvmlDevice_t device_by_address(nvmlDevice_t device)
{
	nvmlDevice_t same = NULL;
	nvmlPciInfo_t pci;
	char text[80];

	check(call_device(nvmlDeviceGetPciInfo_v3, nvmlPciInfo_t *)(device, &pci) == 0,
	      "PyTorch: the device's address");
	snprintf(text, sizeof(text), "%08X:%02X:%02X.0", pci.domain, pci.bus, pci.device);
	check(call(nvmlDeviceGetHandleByPciBusId_v2, const char *, nvmlDevice_t *)(text, &same) ==
			      0 &&
		      same == device,
	      "PyTorch: the device by its address");
	return same;
}

static void memory_is_out(nvmlDevice_t device)
{
	static nvmlProcessInfo_v1_t infos[MOST_PROCESSES];
	unsigned n = MOST_PROCESSES;

	check(call_device(nvmlDeviceGetComputeRunningProcesses, unsigned *,
			  nvmlProcessInfo_v1_t *)(device, &n, infos) == 0 &&
		      n == 1 && infos[0].pid == (unsigned)holder &&
		      infos[0].usedGpuMemory == HELD_BYTES,
	      "PyTorch: who has the memory, in entries of 16 bytes");
}

/* The first link that is an error is taken for the end of them. */
static void links_followed(nvmlDevice_t device)
{
	unsigned link = 0;
	nvmlReturn_t r = NVML_SUCCESS;
	nvmlPciInfo_t pci;
	int type;

	while (link < MOST_LINKS) {
		r = call_device(nvmlDeviceGetNvLinkRemoteDeviceType, unsigned, int *)(device, link,
										      &type);
		if (r != NVML_SUCCESS)
			break;
		link++;
	}
	check(link == 0 && r == NVML_ERROR_NOT_SUPPORTED, "PyTorch: there are no links");
	check(call_device(nvmlDeviceGetNvLinkRemotePciInfo_v2, unsigned,
			  nvmlPciInfo_t *)(device, 0, &pci) == NVML_ERROR_NOT_SUPPORTED,
	      "PyTorch: nor anything at their ends");
}

/* What torch.cuda tells of a device: utilization(), temperature(), list_gpu_processes() ... */
static void users_told(void)
{
	nvmlDevice_t device = NULL;
	nvmlUtilization_t utilization;
	nvmlProcessInfo_v2_t infos[8];
	nvmlMemory_t memory;
	unsigned value, n = 0;

	check(call(nvmlInitWithFlags, unsigned)(0) == 0, "PyTorch: starts as pynvml does");
	device = first_device();
	check(call_device(nvmlDeviceGetUtilizationRates, nvmlUtilization_t *)(device,
									      &utilization) == 0 &&
		      utilization.gpu <= 100 && utilization.memory <= 100,
	      "PyTorch: utilization");
	check(call_device(nvmlDeviceGetMemoryInfo, nvmlMemory_t *)(device, &memory) == 0 &&
		      memory.used == HELD_BYTES && memory.used + memory.free == memory.total,
	      "PyTorch: memory");
	check(call_device(nvmlDeviceGetTemperature, int, unsigned *)(device, 0, &value) == 0 &&
		      value > 0 && value < 100,
	      "PyTorch: temperature");
	check(call_device(nvmlDeviceGetPowerUsage, unsigned *)(device, &value) == 0 && value > 0,
	      "PyTorch: power");
	check(call_device(nvmlDeviceGetClockInfo, int, unsigned *)(device, NVML_CLOCK_SM, &value) ==
			      0 &&
		      value > 0,
	      "PyTorch: clock");
	check(call_device(nvmlDeviceGetComputeRunningProcesses_v3, unsigned *,
			  nvmlProcessInfo_v2_t *)(device, &n, NULL) ==
			      NVML_ERROR_INSUFFICIENT_SIZE &&
		      n == 1,
	      "PyTorch: how many processes");
	n = 8;
	check(call_device(nvmlDeviceGetComputeRunningProcesses_v3, unsigned *,
			  nvmlProcessInfo_v2_t *)(device, &n, infos) == 0 &&
		      n == 1 && infos[0].pid == (unsigned)holder &&
		      infos[0].usedGpuMemory == HELD_BYTES,
	      "PyTorch: which processes");
	check(call(nvmlShutdown, void)() == 0, "PyTorch: pynvml ends");
}

void test_pytorch(void)
{
	nvmlDevice_t device;
	int version;

	for (size_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
		symbol(needs[i]);
	devices_counted();
	check(call(nvmlInit_v2, void)() == 0 &&
		      call(nvmlSystemGetCudaDriverVersion_v2, int *)(&version) == 0 &&
		      version >= 12000,
	      "PyTorch: starts again, by the second name");
	device = device_by_address(first_device());
	memory_is_out(device);
	links_followed(device);
	users_told();
	check(call(nvmlShutdown, void)() == 0 && call(nvmlShutdown, void)() == 0, "PyTorch: ends");
}
