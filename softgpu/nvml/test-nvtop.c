// SPDX-License-Identifier: Apache-2.0
/*
 * nvtop's calls: what it asks once, and what it asks again and again.
 */
#include "softgpu/nvml/test-tools.h"

#include <string.h>

/* It ends at once where one of these is missing, or of several versions all. */
static const char *const nvtop_needs[] = {
	"nvmlInit",
	"nvmlDeviceGetCount",
	"nvmlDeviceGetHandleByIndex",
	"nvmlDeviceGetPciInfo",
	"nvmlDeviceGetPciInfo_v2",
	"nvmlDeviceGetMPSComputeRunningProcesses",
	"nvmlDeviceGetMPSComputeRunningProcesses_v2",
	"nvmlInit_v2",
	"nvmlShutdown",
	"nvmlDeviceGetCount_v2",
	"nvmlDeviceGetHandleByIndex_v2",
	"nvmlErrorString",
	"nvmlDeviceGetName",
	"nvmlDeviceGetPciInfo_v3",
	"nvmlDeviceGetMaxPcieLinkGeneration",
	"nvmlDeviceGetMaxPcieLinkWidth",
	"nvmlDeviceGetTemperatureThreshold",
	"nvmlDeviceGetClockInfo",
	"nvmlDeviceGetMaxClockInfo",
	"nvmlDeviceGetUtilizationRates",
	"nvmlDeviceGetMemoryInfo",
	"nvmlDeviceGetMemoryInfo_v2",
	"nvmlDeviceGetCurrPcieLinkGeneration",
	"nvmlDeviceGetCurrPcieLinkWidth",
	"nvmlDeviceGetPcieThroughput",
	"nvmlDeviceGetFanSpeed",
	"nvmlDeviceGetTemperature",
	"nvmlDeviceGetPowerUsage",
	"nvmlDeviceGetEnforcedPowerLimit",
	"nvmlDeviceGetEncoderUtilization",
	"nvmlDeviceGetDecoderUtilization",
	"nvmlDeviceGetGraphicsRunningProcesses",
	"nvmlDeviceGetGraphicsRunningProcesses_v2",
	"nvmlDeviceGetGraphicsRunningProcesses_v3",
	"nvmlDeviceGetComputeRunningProcesses",
	"nvmlDeviceGetComputeRunningProcesses_v2",
	"nvmlDeviceGetComputeRunningProcesses_v3",
	"nvmlDeviceGetMPSComputeRunningProcesses_v3",
	"nvmlDeviceGetProcessUtilization",
	"nvmlDeviceGetMigMode",
	"nvmlDeviceGetArchitecture",
	"nvmlDeviceGetBusType",
	"nvmlDeviceGetNvLinkState",
	"nvmlDeviceGetNvLinkVersion",
	"nvmlDeviceGetFieldValues",
};

static void nvtop_static(nvmlDevice_t device)
{
	nvmlPciInfo_t pci;
	unsigned value;
	char name[64];

	check(call_device(nvmlDeviceGetName, char *, unsigned)(device, name, sizeof(name)) == 0,
	      "nvtop: name");
	check(call_device(nvmlDeviceGetPciInfo_v3, nvmlPciInfo_t *)(device, &pci) == 0 &&
		      strlen(pci.busId) == strlen("00000000:00:00.0"),
	      "nvtop: PCI address");
	check(call_device(nvmlDeviceGetMaxPcieLinkGeneration, unsigned *)(device, &value) == 0 &&
		      call_device(nvmlDeviceGetMaxPcieLinkWidth, unsigned *)(device, &value) == 0,
	      "nvtop: link at most");
	check(is_answer(call_device(nvmlDeviceGetTemperatureThreshold, int, unsigned *)(device, 0,
											&value)) &&
		      is_answer(call_device(nvmlDeviceGetTemperatureThreshold, int,
					    unsigned *)(device, 1, &value)),
	      "nvtop: temperatures at most");
	check(is_answer(call_device(nvmlDeviceGetBusType, unsigned *)(device, &value)) &&
		      is_answer(call_device(nvmlDeviceGetArchitecture, unsigned *)(device, &value)),
	      "nvtop: bus and architecture");
}

static void nvtop_refresh(nvmlDevice_t device)
{
	nvmlMemory_v2_t memory = { .version = NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2) };
	nvmlUtilization_t utilization;
	unsigned long long n_errors;
	unsigned value, most, period;

	check(call_device(nvmlDeviceGetClockInfo, int, unsigned *)(device, 0, &value) == 0 &&
		      call_device(nvmlDeviceGetMaxClockInfo, int, unsigned *)(device, 0, &most) ==
			      0 &&
		      value <= most &&
		      call_device(nvmlDeviceGetClockInfo, int, unsigned *)(device, 2, &value) == 0,
	      "nvtop: clocks");
	check(call_device(nvmlDeviceGetUtilizationRates, nvmlUtilization_t *)(device,
									      &utilization) == 0,
	      "nvtop: utilization");
	check(call_device(nvmlDeviceGetMemoryInfo_v2, nvmlMemory_v2_t *)(device, &memory) == 0 &&
		      memory.used == HELD_BYTES,
	      "nvtop: memory");
	check(call_device(nvmlDeviceGetCurrPcieLinkGeneration, unsigned *)(device, &value) == 0 &&
		      call_device(nvmlDeviceGetCurrPcieLinkWidth, unsigned *)(device, &value) == 0,
	      "nvtop: link");
	check(is_answer(call_device(nvmlDeviceGetTotalEccErrors, int, int,
				    unsigned long long *)(device, 1, 0, &n_errors)),
	      "nvtop: errors of the memory");
	check(is_answer(call_device(nvmlDeviceGetPcieThroughput, int, unsigned *)(device, 0,
										  &value)) &&
		      is_answer(call_device(nvmlDeviceGetFanSpeed, unsigned *)(device, &value)),
	      "nvtop: throughput and fan");
	check(call_device(nvmlDeviceGetTemperature, int, unsigned *)(device, 0, &value) == 0 &&
		      call_device(nvmlDeviceGetPowerUsage, unsigned *)(device, &value) == 0 &&
		      call_device(nvmlDeviceGetEnforcedPowerLimit, unsigned *)(device, &most) ==
			      0 &&
		      value <= most,
	      "nvtop: temperature and power");
	check(is_answer(call_device(nvmlDeviceGetEncoderUtilization, unsigned *,
				    unsigned *)(device, &value, &period)) &&
		      is_answer(call_device(nvmlDeviceGetDecoderUtilization, unsigned *,
					    unsigned *)(device, &value, &period)),
	      "nvtop: encoder and decoder");
}

static void nvtop_processes(nvmlDevice_t device)
{
	nvmlProcessInfo_v2_t infos[32];
	unsigned n = 32, current, pending;

	check(call_device(nvmlDeviceGetGraphicsRunningProcesses_v3, unsigned *,
			  void *)(device, &n, infos) == 0 &&
		      n == 0,
	      "nvtop: no graphics");
	n = 32;
	check(call_device(nvmlDeviceGetComputeRunningProcesses_v3, unsigned *,
			  void *)(device, &n, infos) == 0 &&
		      n == 1 && infos[0].pid == (unsigned)holder &&
		      infos[0].usedGpuMemory == HELD_BYTES,
	      "nvtop: a compute process, and its memory");
	n = 32;
	check(is_answer(call_device(nvmlDeviceGetMPSComputeRunningProcesses_v3, unsigned *,
				    void *)(device, &n, infos)),
	      "nvtop: of MPS");
	n = 0;
	check(call_device(nvmlDeviceGetProcessUtilization, void *, unsigned *,
			  unsigned long long)(device, NULL, &n, 0) != NVML_ERROR_INVALID_ARGUMENT,
	      "nvtop: how many samples of processes");
	check(is_answer(call_device(nvmlDeviceGetMigMode, unsigned *, unsigned *)(device, &current,
										  &pending)),
	      "nvtop: MIG");
}

void test_nvtop(void)
{
	nvmlDevice_t device;

	for (size_t i = 0; i < sizeof(nvtop_needs) / sizeof(nvtop_needs[0]); i++)
		symbol(nvtop_needs[i]);
	check(call(nvmlInit_v2, void)() == 0, "nvtop: starts");
	device = first_device();
	nvtop_static(device);
	nvtop_refresh(device);
	nvtop_processes(device);
	check(call(nvmlShutdown, void)() == 0, "nvtop: ends");
}
