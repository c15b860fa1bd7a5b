// SPDX-License-Identifier: Apache-2.0
/*
 * What monitoring tools and frameworks ask NVML for when they start, call by call, on the library
 * named by the argument, while a process holds memory.
 *
 * nvtop, DCGM and PyTorch look names up by themselves and give up where one is missing or a call
 * that they need fails. What they take "not supported" from may answer so.
 */
#include "src/nvml/nvml_abi.h"
#include "softgpu/state/state.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELD_BYTES (500ull << 20)

static int n_failed;
static void *lib;
static pid_t holder;

static void check(bool good, const char *what)
{
	printf("%s '%s'\n", good ? "ok" : "NOT OK", what);
	n_failed += !good;
}

static void *symbol(const char *name)
{
	void *address = dlsym(lib, name);

	if (!address) {
		printf("NOT OK '%s is exported'\n", name);
		exit(1);
	}
	return address;
}

/* call(name, argument types...)(arguments...) */
#define call(name, ...) ((nvmlReturn_t(*)(__VA_ARGS__))symbol(#name))
/* Of a device: call_device(name, more types...)(device, ...) */
#define call_device(name, ...) call(name, nvmlDevice_t, __VA_ARGS__)

static bool is_answer(nvmlReturn_t r)
{
	return r == NVML_SUCCESS || r == NVML_ERROR_NOT_SUPPORTED;
}

static nvmlDevice_t first_device(void)
{
	nvmlDevice_t device = NULL;
	unsigned n = 0;

	check(call(nvmlDeviceGetCount_v2, unsigned *)(&n) == 0 && n == 2, "counts devices");
	check(call(nvmlDeviceGetHandleByIndex_v2, unsigned, nvmlDevice_t *)(0, &device) == 0,
	      "takes the first");
	return device;
}

/* A process that is on the books with HELD_BYTES, until it is killed. */
static pid_t hold(void)
{
	struct softgpu_config config;
	struct state *state;
	int ready[2];
	char byte;
	pid_t pid;

	fflush(stdout);
	if (pipe(ready) < 0)
		exit(1);
	pid = fork();
	if (pid < 0)
		exit(1);
	if (pid > 0) {
		close(ready[1]);
		if (read(ready[0], &byte, 1) != 1)
			exit(1);
		close(ready[0]);
		return pid;
	}
	if (config_load(&config) != 0 || state_open(&config, STATE_CONFIGURE, &state) != 0 ||
	    state_attach(state) != 0 || state_charge(state, 0, HELD_BYTES) != 0)
		_exit(1);
	state_context_add(state, 0, 1);
	if (write(ready[1], "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* nvtop ends at once where one of these is missing. */
static const char *const nvtop_needs[] = {
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

static void test_nvtop(void)
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

/* Counts devices in a process without the driver, and says who has the memory when there is none. */
static void test_pytorch(void)
{
	nvmlDevice_t device, same = NULL;
	nvmlProcessInfo_v1_t infos[1024];
	unsigned n = 1024;
	nvmlPciInfo_t pci;
	char text[96];
	int version;

	symbol("nvmlDeviceGetNvLinkRemoteDeviceType");
	symbol("nvmlDeviceGetNvLinkRemotePciInfo_v2");
	symbol("nvmlDeviceGetGpuFabricInfoV");
	check(call(nvmlInit, void)() == 0, "PyTorch: starts by the first name");
	device = first_device();
	check(call_device(nvmlDeviceGetUUID, char *, unsigned)(device, text, sizeof(text)) == 0 &&
		      strncmp(text, "GPU-", 4) == 0,
	      "PyTorch: UUID");
	check(call(nvmlInit_v2, void)() == 0 &&
		      call(nvmlSystemGetCudaDriverVersion_v2, int *)(&version) == 0 &&
		      version >= 12000,
	      "PyTorch: starts again, by the second");
	call_device(nvmlDeviceGetPciInfo_v3, nvmlPciInfo_t *)(device, &pci);
	snprintf(text, sizeof(text), "%08x:%02x:%02x.0", pci.domain, pci.bus, pci.device);
	check(call(nvmlDeviceGetHandleByPciBusId_v2, const char *, nvmlDevice_t *)(text, &same) ==
			      0 &&
		      same == device,
	      "PyTorch: the device by the address that the driver tells");
	check(call_device(nvmlDeviceGetComputeRunningProcesses, unsigned *, void *)(device, &n,
										    infos) == 0 &&
		      n == 1 && infos[0].pid == (unsigned)holder &&
		      infos[0].usedGpuMemory == HELD_BYTES,
	      "PyTorch: who has the memory, in entries of 16 bytes");
	check(call(nvmlShutdown, void)() == 0 && call(nvmlShutdown, void)() == 0, "PyTorch: ends");
}

/* It starts and ends the library with flags, to see whether there is one, before it stays. */
static void dcgm_start(void)
{
	static const unsigned flags[] = { 1 /* no GPUs */, 1 | 2 /* do not attach */, 1 | 4 };
	bool good = true;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		good = good && call(nvmlInitWithFlags, unsigned)(flags[i]) == 0 &&
		       call(nvmlShutdown, void)() == 0;
	check(good, "DCGM: starts with flags, three times");
	check(call(nvmlInit_v2, void)() == 0, "DCGM: starts");
}

static void dcgm_identity(nvmlDevice_t device)
{
	char text[96], *end;
	nvmlDevice_t same = NULL;
	nvmlPciInfo_t pci;
	unsigned value, other;

	check(call(nvmlSystemGetDriverVersion, char *, unsigned)(text, sizeof(text)) == 0 &&
		      strtol(text, &end, 10) > 0 && *end == '.',
	      "DCGM: the driver's version, up to the dot");
	check(call_device(nvmlDeviceGetUUID, char *, unsigned)(device, text, sizeof(text)) == 0 &&
		      call(nvmlDeviceGetHandleByUUID, const char *, nvmlDevice_t *)(text, &same) ==
			      0 &&
		      same == device,
	      "DCGM: UUID, and back");
	check(is_answer(call_device(nvmlDeviceGetSerial, char *, unsigned)(device, text,
									   sizeof(text))) &&
		      is_answer(call_device(nvmlDeviceGetBrand, unsigned *)(device, &value)) &&
		      is_answer(call_device(nvmlDeviceGetVirtualizationMode, unsigned *)(device,
											 &value)),
	      "DCGM: serial number, brand, virtualization");
	check(call_device(nvmlDeviceGetPciInfo_v3, nvmlPciInfo_t *)(device, &pci) == 0 &&
		      call_device(nvmlDeviceGetName, char *, unsigned)(device, text,
								       sizeof(text)) == 0 &&
		      call_device(nvmlDeviceGetArchitecture, unsigned *)(device, &value) == 0,
	      "DCGM: PCI address, name, architecture");
	check(is_answer(call_device(nvmlDeviceGetMigMode, unsigned *, unsigned *)(device, &value,
										  &other)) &&
		      is_answer(call_device(nvmlDeviceGetMaxMigDeviceCount, unsigned *)(device,
											&value)),
	      "DCGM: MIG");
	check(is_answer(call_device(nvmlDeviceGetAccountingMode, unsigned *)(device, &value)),
	      "DCGM: accounting");
	symbol("nvmlSystemGetConfComputeState");
}

static void dcgm_watches(nvmlDevice_t device)
{
	nvmlFieldValue_t values[] = { { .fieldId = 83 }, { .fieldId = 186 }, { .fieldId = 5000 } };
	nvmlEventSet_t set = NULL;
	nvmlEventData_t event;

	check(call(nvmlEventSetCreate, nvmlEventSet_t *)(&set) == 0 &&
		      is_answer(call_device(nvmlDeviceRegisterEvents, unsigned long long,
					    nvmlEventSet_t)(device, 8 /* Xid */, set)) &&
		      call(nvmlEventSetWait_v2, nvmlEventSet_t, nvmlEventData_t *,
			   unsigned)(set, &event, 1) == NVML_ERROR_TIMEOUT &&
		      call(nvmlEventSetFree, nvmlEventSet_t)(set) == 0,
	      "DCGM: events");
	check(call_device(nvmlDeviceGetFieldValues, int, nvmlFieldValue_t *)(device, 3, values) ==
			      0 &&
		      values[0].nvmlReturn == 0 && values[1].nvmlReturn == 0 &&
		      values[2].nvmlReturn == NVML_ERROR_NOT_SUPPORTED,
	      "DCGM: values by number, each with its answer");
}

static void test_dcgm(void)
{
	nvmlDevice_t device;

	dcgm_start();
	device = first_device();
	dcgm_identity(device);
	dcgm_watches(device);
	check(call(nvmlShutdown, void)() == 0, "DCGM: ends");
}

int main(_unused_ int argc, char **argv)
{
	char dir[] = "/tmp/softgpu-tools-XXXXXX", command[64];

	lib = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!lib || !mkdtemp(dir)) {
		printf("NOT OK '%s'\n", lib ? "a folder for the state" : dlerror());
		return 1;
	}
	setenv("SOFTGPU_DIR", dir, 1);
	holder = hold();
	test_nvtop();
	test_pytorch();
	test_dcgm();
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command) != 0 || n_failed != 0;
}
