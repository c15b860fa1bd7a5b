// SPDX-License-Identifier: Apache-2.0
/*
 * The library as programs load it, named by the argument: every public name is there, and
 * what it tells is what processes do.
 */
#include "softgpu/engine/engine.h"
#include "src/nvml/nvml_abi.h"
#include "softgpu/state/test-cgroup.h"
#include "softgpu/util/check.h"
#include "softgpu/util/test-child.h"
#include "softgpu/util/test-dir.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB	  (1ull << 20)
#define PERIOD_NS 500000000ull /* of test_load() */

/*
 * The device of a process that always has work for it is busy in each sample period of 1/6 s in which that
 * process ran in time; whether one was, a look at the next one tells. A minute at most.
 */
#define WAIT_UNTIL(condition)                                                                      \
	({                                                                                         \
		bool is_true_ = false;                                                             \
                                                                                                   \
		for (int i_ = 0; i_ < 6000 && !(is_true_ = (condition)); i_++)                     \
			usleep(10000);                                                             \
		is_true_;                                                                          \
	})

static const char *const names[] = {
#define NVML(name) #name,
#include "src/nvml/nvml.def"
#undef NVML
};
#define N_NAMES (sizeof(names) / sizeof(names[0]))

static void *lib;
static char dir[] = "/tmp/softgpu-nvml-XXXXXX";

/* call(name, argument types...)(arguments...) */
#define call(name, ...) ((nvmlReturn_t(*)(__VA_ARGS__))symbol(#name))

static void *symbol(const char *name)
{
	void *address = dlsym(lib, name);

	if (!address) {
		printf("NOT OK '%s is exported'\n", name);
		exit(1);
	}
	return address;
}

static nvmlDevice_t device(unsigned index)
{
	nvmlDevice_t handle = NULL;

	call(nvmlDeviceGetHandleByIndex_v2, unsigned, nvmlDevice_t *)(index, &handle);
	return handle;
}

static void test_names(void)
{
	unsigned n_missing = 0;

	for (size_t i = 0; i < N_NAMES; i++)
		n_missing += !dlsym(lib, names[i]);
	check(n_missing == 0, "every name of nvml.def is exported");
	check(N_NAMES > 400, "and there are more than 400");
}

/* Those that are not implemented are one function, whose arguments do not matter. */
static void check_unsupported(nvmlReturn_t expected, const char *what)
{
	void *unsupported = symbol("nvmlDeviceGetFanSpeed"), *address;
	unsigned n = 0, n_wrong = 0;

	for (size_t i = 0; i < N_NAMES; i++) {
		address = symbol(names[i]);
		if (address != unsupported)
			continue;
		n++;
		n_wrong += ((nvmlReturn_t(*)(void *, void *, void *))address)(NULL, NULL, NULL) !=
			   expected;
	}
	check(n > 200 && n_wrong == 0, what);
}

static void test_layouts(void)
{
	check(sizeof(nvmlPciInfo_t) == 68 && offsetof(nvmlPciInfo_t, busId) == 36, "nvmlPciInfo_t");
	check(sizeof(nvmlMemory_t) == 24, "nvmlMemory_t");
	check(NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2) == 0x02000028, "nvmlMemory_v2_t");
	check(sizeof(nvmlProcessInfo_v1_t) == 16 && sizeof(nvmlProcessInfo_v2_t) == 24,
	      "nvmlProcessInfo_t");
	check(sizeof(nvmlProcessUtilizationSample_t) == 32, "nvmlProcessUtilizationSample_t");
	check(sizeof(nvmlFieldValue_t) == 40 && sizeof(nvmlSample_t) == 16, "nvmlFieldValue_t");
	check(sizeof(nvmlEventData_t) == 32, "nvmlEventData_t");
	check(sizeof(nvmlSetMemoryLimits_v1_t) == 24 && sizeof(nvmlGetMemoryLimits_v1_t) == 32,
	      "memory limits");
}

static void test_uninitialised(void)
{
	unsigned n;

	check(call(nvmlDeviceGetCount_v2, unsigned *)(&n) == NVML_ERROR_UNINITIALIZED,
	      "nothing before nvmlInit");
	check(call(nvmlShutdown, void)() == NVML_ERROR_UNINITIALIZED, "no shutdown either");
	check_unsupported(NVML_ERROR_UNINITIALIZED, "nor what is not supported");
	check(strcmp(((const char *(*)(int))symbol("nvmlErrorString"))(3), "Not Supported") == 0 &&
		      strcmp(((const char *(*)(int))symbol("nvmlErrorString"))(-5),
			     "Unknown Error") == 0,
	      "nvmlErrorString");
}

static void test_identity(void)
{
	char text[96], small[4];
	nvmlDevice_t other = NULL;
	nvmlPciInfo_t pci;
	unsigned n = 0;
	int major = 0, minor = 0;

	check(call(nvmlDeviceGetCount_v2, unsigned *)(&n) == 0 && n == 2, "two devices");
	check(call(nvmlDeviceGetName, nvmlDevice_t, char *, unsigned)(device(0), text, 96) == 0 &&
		      strcmp(text, "SoftGPU 80GB") == 0,
	      "a name");
	check(call(nvmlDeviceGetName, nvmlDevice_t, char *, unsigned)(device(0), small, 4) ==
		      NVML_ERROR_INSUFFICIENT_SIZE,
	      "a buffer that is too small");
	call(nvmlDeviceGetUUID, nvmlDevice_t, char *, unsigned)(device(1), text, 96);
	check(call(nvmlDeviceGetHandleByUUID, const char *, nvmlDevice_t *)(text, &other) == 0 &&
		      other == device(1),
	      "by UUID");
	check(call(nvmlDeviceGetPciInfo_v3, nvmlDevice_t, nvmlPciInfo_t *)(device(1), &pci) == 0 &&
		      strcmp(pci.busId, "00000000:11:00.0") == 0 &&
		      strcmp(pci.busIdLegacy, "0000:11:00.0") == 0,
	      "PCI id");
	check(call(nvmlDeviceGetHandleByPciBusId_v2, const char *, nvmlDevice_t *)(pci.busId,
										   &other) == 0 &&
		      other == device(1),
	      "by PCI id");
	check(call(nvmlDeviceGetCudaComputeCapability, nvmlDevice_t, int *,
		   int *)(device(0), &major, &minor) == 0 &&
		      major == 8 && minor == 0,
	      "compute capability");
	check(call(nvmlDeviceGetIndex, nvmlDevice_t, unsigned *)((nvmlDevice_t)&n, &n) ==
		      NVML_ERROR_INVALID_ARGUMENT,
	      "a handle that is none");
	check(call(nvmlDeviceGetIndex, nvmlDevice_t, unsigned *)(device(0), NULL) ==
		      NVML_ERROR_INVALID_ARGUMENT,
	      "no place for the answer");
}

/* What there are several calls or structures for is the same by all of them. */
static void test_versions(void)
{
	nvmlDeviceAttributes_t attributes[2] = { 0 };
	nvmlUUID_t uuid = { .version = NVML_STRUCT_VERSION(nvmlUUID_t, 1), .type = 1 };
	nvmlPciInfoExt_t pci_ext = { .version = NVML_STRUCT_VERSION(nvmlPciInfoExt_t, 1) };
	nvmlDevice_t by_uuid = NULL, by_pci = NULL, by_serial = NULL;
	nvmlPciInfo_t pci = { 0 }, pci_v2 = { 0 };
	char serial[30];
	unsigned n = 0;

	check(call(nvmlDeviceGetCount, unsigned *)(&n) == 0 && n == 2, "devices are as many");
	call(nvmlDeviceGetUUID, nvmlDevice_t, char *, unsigned)(device(1), uuid.value.str,
								sizeof(uuid.value.str));
	check(call(nvmlDeviceGetHandleByUUIDV, const nvmlUUID_t *, nvmlDevice_t *)(&uuid,
										   &by_uuid) == 0 &&
		      by_uuid == device(1),
	      "by UUID of another form");
	uuid.version = 0;
	check(call(nvmlDeviceGetHandleByUUIDV, const nvmlUUID_t *,
		   nvmlDevice_t *)(&uuid, &by_uuid) == NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
	      "and of none that is known");
	call(nvmlDeviceGetSerial, nvmlDevice_t, char *, unsigned)(device(1), serial, 30);
	check(call(nvmlDeviceGetHandleBySerial, const char *, nvmlDevice_t *)(serial, &by_serial) ==
			      0 &&
		      by_serial == device(1),
	      "by serial number");
	check(call(nvmlDeviceGetHandleBySerial, const char *, nvmlDevice_t *)("?", &by_serial) ==
		      NVML_ERROR_NOT_FOUND,
	      "which may be nobody's");
	call(nvmlDeviceGetPciInfo, nvmlDevice_t, nvmlPciInfo_t *)(device(1), &pci);
	call(nvmlDeviceGetPciInfo_v2, nvmlDevice_t, nvmlPciInfo_t *)(device(1), &pci_v2);
	check(memcmp(&pci, &pci_v2, sizeof(pci)) == 0 && pci.bus == 0x11, "PCI ids, shorter");
	check(call(nvmlDeviceGetHandleByPciBusId, const char *, nvmlDevice_t *)(pci.busIdLegacy,
										&by_pci) == 0 &&
		      by_pci == device(1),
	      "and by them");
	check(call(nvmlDeviceGetPciInfoExt, nvmlDevice_t, nvmlPciInfoExt_t *)(device(1),
									      &pci_ext) == 0 &&
		      pci_ext.bus == pci.bus && strcmp(pci_ext.busId, "00000000:11:00.0") == 0,
	      "and a longer one");
	check(call(nvmlDeviceGetAttributes, nvmlDevice_t,
		   nvmlDeviceAttributes_t *)(device(0), &attributes[0]) == 0 &&
		      call(nvmlDeviceGetAttributes_v2, nvmlDevice_t,
			   nvmlDeviceAttributes_t *)(device(0), &attributes[1]) == 0 &&
		      memcmp(&attributes[0], &attributes[1], sizeof(attributes[0])) == 0 &&
		      attributes[0].multiprocessorCount == 108,
	      "attributes");
}

static void test_idle(void)
{
	nvmlMemory_t memory;
	nvmlMemory_v2_t memory_v2 = { .version = NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2) };
	nvmlUtilization_t utilization;
	unsigned n = 0;

	check(call(nvmlDeviceGetMemoryInfo, nvmlDevice_t, nvmlMemory_t *)(device(0), &memory) ==
			      0 &&
		      memory.total == 80ull << 30 && memory.used == 0 &&
		      memory.free == memory.total,
	      "idle: all memory is free");
	check(call(nvmlDeviceGetMemoryInfo_v2, nvmlDevice_t, nvmlMemory_v2_t *)(device(0),
										&memory_v2) == 0 &&
		      memory_v2.total == memory_v2.free + memory_v2.used + memory_v2.reserved,
	      "memory, version 2");
	memory_v2.version = 1;
	check(call(nvmlDeviceGetMemoryInfo_v2, nvmlDevice_t, nvmlMemory_v2_t *)(
		      device(0), &memory_v2) == NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
	      "memory, an unknown version");
	check(call(nvmlDeviceGetUtilizationRates, nvmlDevice_t,
		   nvmlUtilization_t *)(device(0), &utilization) == 0 &&
		      utilization.gpu == 0,
	      "idle: 0 %");
	check(call(nvmlDeviceGetTemperature, nvmlDevice_t, unsigned, unsigned *)(device(0), 0,
										 &n) == 0 &&
		      n == 32,
	      "idle: 32 degrees");
	n = 0;
	check(call(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDevice_t, unsigned *,
		   void *)(device(0), &n, NULL) == 0 &&
		      n == 0,
	      "idle: we are no compute process ourselves");
}

/* A process with 500 MiB and a context, whose device is always busy; and memory on another. */
static void work(int ready)
{
	struct engine_job job = { .duration_ns = 100000000, .more = true };
	struct softgpu_config config;
	struct engine_client *client;
	struct state *state;

	if (config_load(&config) != 0 || state_open(&config, STATE_CONFIGURE, &state) != 0 ||
	    state_attach(state) != 0 || state_charge(state, 0, 500 * MIB) != 0 ||
	    state_charge(state, 1, 100 * MIB) != 0 || engine_client_new(state, 0, &client) != 0)
		_exit(1);
	state_context_add(state, 0, 1);
	if (write(ready, "", 1) != 1)
		_exit(1);
	for (;;) {
		engine_run(client, &job);
		job.ready_ns = job.ret_end_ns;
	}
}

static unsigned n_running(void)
{
	unsigned n = 0;

	call(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDevice_t, unsigned *, void *)(device(0),
											&n, NULL);
	return n;
}

/* The newest form of the list, by mode: compute, graphics, MPS. */
static void check_process_details(pid_t pid)
{
	nvmlProcessDetail_v1_t entries[4] = { 0 };
	nvmlProcessDetailList_t list = {
		.version = NVML_STRUCT_VERSION(nvmlProcessDetailList_t, 1),
		.numProcArrayEntries = 4,
		.procArray = entries,
	};

	check(call(nvmlDeviceGetRunningProcessDetailList, nvmlDevice_t,
		   nvmlProcessDetailList_t *)(device(0), &list) == 0 &&
		      list.numProcArrayEntries == 1 && entries[0].pid == (unsigned)pid &&
		      entries[0].usedGpuMemory == 500 * MIB,
	      "running processes: the list of all modes");
	list.mode = 1;
	list.numProcArrayEntries = 4;
	check(call(nvmlDeviceGetRunningProcessDetailList, nvmlDevice_t,
		   nvmlProcessDetailList_t *)(device(0), &list) == 0 &&
		      list.numProcArrayEntries == 0,
	      "running processes: none does graphics");
	list.version = 7;
	check(call(nvmlDeviceGetRunningProcessDetailList, nvmlDevice_t, nvmlProcessDetailList_t *)(
		      device(0), &list) == NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
	      "running processes: an unknown version of the list");
}

static void check_processes(pid_t pid)
{
	nvmlProcessInfo_v2_t infos[4] = { 0 };
	nvmlProcessInfo_v1_t infos_v1[4] = { 0 };
	unsigned n = 0;

	check(call(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDevice_t, unsigned *,
		   nvmlProcessInfo_v2_t *)(device(0), &n, infos) == NVML_ERROR_INSUFFICIENT_SIZE &&
		      n == 1,
	      "running processes: how many there are");
	n = 4;
	check(call(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDevice_t, unsigned *,
		   nvmlProcessInfo_v2_t *)(device(0), &n, infos) == 0 &&
		      n == 1 && infos[0].pid == (unsigned)pid &&
		      infos[0].usedGpuMemory == 500 * MIB &&
		      infos[0].gpuInstanceId == NVML_NO_INSTANCE,
	      "running processes: pid and memory");
	n = 4;
	memset(infos, 0, sizeof(infos));
	check(call(nvmlDeviceGetComputeRunningProcesses_v2, nvmlDevice_t, unsigned *,
		   nvmlProcessInfo_v2_t *)(device(0), &n, infos) == 0 &&
		      n == 1 && infos[0].pid == (unsigned)pid &&
		      infos[0].usedGpuMemory == 500 * MIB &&
		      infos[0].gpuInstanceId == NVML_NO_INSTANCE,
	      "running processes: the second version's entries");
	n = 4;
	check(call(nvmlDeviceGetComputeRunningProcesses, nvmlDevice_t, unsigned *,
		   nvmlProcessInfo_v1_t *)(device(0), &n, infos_v1) == 0 &&
		      n == 1 && infos_v1[0].pid == (unsigned)pid &&
		      infos_v1[0].usedGpuMemory == 500 * MIB,
	      "running processes: the first version's entries");
	n = 4;
	check(call(nvmlDeviceGetComputeRunningProcesses_v3, nvmlDevice_t, unsigned *,
		   void *)(device(1), &n, infos) == 0 &&
		      n == 1 && infos[0].usedGpuMemory == 100 * MIB,
	      "running processes: of another device, with memory alone");
}

static void check_utilization(pid_t pid)
{
	nvmlProcessUtilizationSample_t samples[4] = { 0 };
	nvmlUtilization_t utilization = { 0 };
	unsigned n, power = 0, clock = 0;

	check(WAIT_UNTIL((call(nvmlDeviceGetUtilizationRates, nvmlDevice_t,
			       nvmlUtilization_t *)(device(0), &utilization),
			  utilization.gpu == 100)),
	      "busy: 100 %");
	check(WAIT_UNTIL((n = 4, call(nvmlDeviceGetProcessUtilization, nvmlDevice_t,
				      nvmlProcessUtilizationSample_t *, unsigned *,
				      unsigned long long)(device(0), samples, &n, 0) == 0 &&
					 n == 1 && samples[0].pid == (unsigned)pid &&
					 samples[0].smUtil == 100)),
	      "busy: its process is");
	n = 4;
	check(call(nvmlDeviceGetProcessUtilization, nvmlDevice_t, nvmlProcessUtilizationSample_t *,
		   unsigned *,
		   unsigned long long)(device(0), samples, &n, samples[0].timeStamp + 10000000) ==
			      NVML_ERROR_NOT_FOUND &&
		      n == 0,
	      "a sample that was seen is not told again");
	check(WAIT_UNTIL(
		      (call(nvmlDeviceGetPowerUsage, nvmlDevice_t, unsigned *)(device(0), &power),
		       call(nvmlDeviceGetClockInfo, nvmlDevice_t, int, unsigned *)(device(0), 1,
										   &clock),
		       power == 400000 && clock == 1410)),
	      "busy: power and clock");
	call(nvmlDeviceGetPowerUsage, nvmlDevice_t, unsigned *)(device(1), &power);
	call(nvmlDeviceGetClockInfo, nvmlDevice_t, int, unsigned *)(device(1), 1, &clock);
	check(power == 60000 && clock == 210, "the other device rests");
}

static void test_busy(void)
{
	nvmlMemory_t memory;
	int ready[2];
	pid_t pid;
	char byte;

	if (pipe(ready) < 0)
		exit(1);
	pid = child_new();
	if (pid == 0)
		work(ready[1]);
	close(ready[1]);
	check(read(ready[0], &byte, 1) == 1, "a process works");
	close(ready[0]);
	call(nvmlDeviceGetMemoryInfo, nvmlDevice_t, nvmlMemory_t *)(device(0), &memory);
	check(memory.used == 500 * MIB && memory.total == memory.used + memory.free,
	      "used memory adds up");
	check_processes(pid);
	check_process_details(pid);
	check_utilization(pid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	call(nvmlDeviceGetMemoryInfo, nvmlDevice_t, nvmlMemory_t *)(device(0), &memory);
	check(memory.used == 0 && n_running() == 0, "a killed process is gone at once");
}

static void test_fields(void)
{
	nvmlFieldValue_t values[] = { { .fieldId = 186 }, { .fieldId = 5000 } };

	check(call(nvmlDeviceGetFieldValues, nvmlDevice_t, int, nvmlFieldValue_t *)(device(1), 2,
										    values) == 0 &&
		      values[0].nvmlReturn == 0 && values[0].value.uiVal == 60000 &&
		      values[1].nvmlReturn == NVML_ERROR_NOT_SUPPORTED,
	      "values by number");
}

/* Another process's kernel, a little later. */
static void fail_kernel(void)
{
	struct softgpu_config config;
	struct state *state;

	if (child_new() != 0)
		return;
	if (config_load(&config) != 0 || state_open(&config, 0, &state) != 0 ||
	    state_attach(state) != 0)
		_exit(1);
	usleep(20000);
	state_fault_add(state, 0, 31);
	_exit(0);
}

static void test_events(void)
{
	nvmlEventSet_t set = NULL;
	nvmlEventData_t data, first = { .computeInstanceId = 1234 };

	check(call(nvmlEventSetCreate, nvmlEventSet_t *)(&set) == 0 &&
		      call(nvmlDeviceRegisterEvents, nvmlDevice_t, unsigned long long,
			   nvmlEventSet_t)(device(0), 8, set) == 0,
	      "a set of events");
	check(call(nvmlEventSetWait_v2, nvmlEventSet_t, nvmlEventData_t *,
		   unsigned)(set, &data, 1) == NVML_ERROR_TIMEOUT,
	      "nothing happens");
	fail_kernel();
	check(call(nvmlEventSetWait_v2, nvmlEventSet_t, nvmlEventData_t *, unsigned)(set, &data,
										     60000) == 0 &&
		      data.device == device(0) && data.eventType == 8 && data.eventData == 31,
	      "a kernel fails");
	check(call(nvmlEventSetWait_v2, nvmlEventSet_t, nvmlEventData_t *,
		   unsigned)(set, &data, 1) == NVML_ERROR_TIMEOUT,
	      "an event is told once");
	fail_kernel();
	check(call(nvmlEventSetWait, nvmlEventSet_t, nvmlEventData_t *, unsigned)(set, &first,
										  10000) == 0 &&
		      first.eventData == 31 && first.computeInstanceId == 1234,
	      "the first version writes nothing behind its structure");
	check(call(nvmlEventSetFree, nvmlEventSet_t)(set) == 0 &&
		      call(nvmlEventSetFree, nvmlEventSet_t)(set) == NVML_ERROR_INVALID_ARGUMENT,
	      "a set is freed once");
}

static bool limits_are(char *cgroup, uint64_t soft_bytes, uint64_t hard_bytes, uint64_t used_bytes)
{
	nvmlGetMemoryLimits_v1_t limits = { .nameSpace = cgroup };

	return call(nvmlDeviceGetMemoryLimits_v1, nvmlDevice_t,
		    nvmlGetMemoryLimits_v1_t *)(device(0), &limits) == NVML_SUCCESS &&
	       limits.softLimit == soft_bytes && limits.hardLimit == hard_bytes &&
	       limits.currentUsed == used_bytes;
}

/*
 * In a cgroup with a hard limit of 150 MiB: takes 100 of them, and sees what is left. Tells by
 * @done whether that is so, and holds them until it is killed.
 */
static _Noreturn void be_limited(const char *cgroup, int done)
{
	nvmlMemory_t memory = { 0 };
	struct softgpu_config config;
	struct state *state;
	bool good;

	cgroup_enter(cgroup);
	good = config_load(&config) == 0 && state_open(&config, 0, &state) == 0 &&
	       state_attach(state) == 0 && state_charge(state, 0, 100 * MIB) == 0 &&
	       state_charge(state, 0, 51 * MIB) == STATE_E_FULL &&
	       call(nvmlDeviceGetMemoryInfo, nvmlDevice_t, nvmlMemory_t *)(device(0), &memory) ==
		       0 &&
	       memory.total == 150 * MIB && memory.free == 50 * MIB;
	if (write(done, &good, sizeof(good)) != sizeof(good))
		_exit(1);
	for (;;)
		pause();
}

static void check_limits(char *cgroup)
{
	nvmlSetMemoryLimits_v1_t limits = {
		.nameSpace = cgroup,
		.softLimit = 10 * MIB,
		.hardLimit = 150 * MIB,
	};
	bool good = false;
	int done[2];
	pid_t pid;

	check(limits_are(cgroup, 0, UINT64_MAX, 0), "a cgroup without limits");
	check(call(nvmlDeviceSetMemoryLimits_v1, nvmlDevice_t,
		   nvmlSetMemoryLimits_v1_t *)(device(0), &limits) == NVML_SUCCESS &&
		      limits_are(cgroup, 10 * MIB, 150 * MIB, 0),
	      "limits are read as they were set");
	if (pipe(done) < 0)
		exit(1);
	pid = child_new();
	if (pid == 0)
		be_limited(cgroup, done[1]);
	close(done[1]);
	check(read(done[0], &good, sizeof(good)) == sizeof(good) && good,
	      "the hard limit holds, and is what the process sees of the device");
	close(done[0]);
	check(limits_are(cgroup, 10 * MIB, 150 * MIB, 100 * MIB), "and what it uses is told");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	rmdir(cgroup);
	mkdir(cgroup, 0755);
	check(limits_are(cgroup, 0, UINT64_MAX, 0), "limits go with their cgroup");
}

static void test_limits(void)
{
	char cgroup[STATE_PATH_MAX];
	nvmlSetMemoryLimits_v1_t limits = { .nameSpace = "/nonexistent", .hardLimit = MIB };
	nvmlReturn_t r = call(nvmlDeviceSetMemoryLimits_v1, nvmlDevice_t,
			      nvmlSetMemoryLimits_v1_t *)(device(0), &limits);

	check(r == (geteuid() == 0 ? NVML_ERROR_OPERATING_SYSTEM : NVML_ERROR_NO_PERMISSION),
	      "a limit of a cgroup that is not there");
	limits.softLimit = 2 * MIB;
	check(call(nvmlDeviceSetMemoryLimits_v1, nvmlDevice_t,
		   nvmlSetMemoryLimits_v1_t *)(device(0), &limits) == NVML_ERROR_INVALID_ARGUMENT,
	      "a soft limit above the hard one");
	if (!cgroup_new(cgroup)) {
		printf("skip 'limits of a cgroup': may not make one\n");
		return;
	}
	check_limits(cgroup);
	rmdir(cgroup);
}

/*
 * Work of the past: the device was always busy until 10 s ago, since then half of each period.
 * Goes on from *next, the first period that is not filled, to the last one that is over.
 */
static void history_fill(struct engine_client *client, uint64_t *next)
{
	uint64_t now = engine_now_ns() / PERIOD_NS;
	struct engine_job job;

	if (*next == 0)
		*next = now - 40;
	for (; *next < now; ++*next) {
		job = (struct engine_job){
			.ready_ns = *next * PERIOD_NS,
			.duration_ns = *next < now - 20 ? PERIOD_NS : PERIOD_NS / 2,
		};
		engine_run(client, &job);
	}
}

static void check_load(struct engine_client *client)
{
	unsigned power, temperature, period_us, encoder, n;
	nvmlUtilization_t utilization = { 0 };
	nvmlSample_t samples[120];
	uint64_t next = 0;
	int type;

	/* Again if a period ended while we looked: it was not filled. */
	do {
		history_fill(client, &next);
		power = temperature = 0;
		n = 120;
		call(nvmlDeviceGetPowerUsage, nvmlDevice_t, unsigned *)(device(0), &power);
		call(nvmlDeviceGetTemperature, nvmlDevice_t, unsigned, unsigned *)(device(0), 0,
										   &temperature);
		call(nvmlDeviceGetUtilizationRates, nvmlDevice_t,
		     nvmlUtilization_t *)(device(0), &utilization);
		call(nvmlDeviceGetSamples, nvmlDevice_t, int, unsigned long long, int *, unsigned *,
		     nvmlSample_t *)(device(0), 1, 0, &type, &n, samples);
	} while (engine_now_ns() / PERIOD_NS != next);
	check(utilization.gpu == 50, "half busy: 50 %");
	check(power == 230000, "half busy: the power is half way from rest to all");
	check(temperature == 54, "half busy for 10 s: the temperature is, and knows no more");
	check(n == 120 && samples[119].sampleValue.uiVal == 50 &&
		      samples[119].timeStamp - samples[118].timeStamp == PERIOD_NS / 1000,
	      "there is a sample each period");
	check(call(nvmlDeviceGetEncoderUtilization, nvmlDevice_t, unsigned *,
		   unsigned *)(device(0), &encoder, &period_us) == 0 &&
		      period_us == PERIOD_NS / 1000,
	      "the period that is told is the device's");
}

/* A device of its own, which a program has made with a longer sample period. */
static void test_load(void)
{
	struct softgpu_config config;
	struct engine_client *client;
	char version[32] = "";
	struct state *state;
	int cuda = 0;

	if (config_load(&config) != 0)
		exit(1);
	snprintf(config.dir, sizeof(config.dir), "%s/load", dir);
	config.sample_period_ns = PERIOD_NS;
	if (state_open(&config, STATE_CONFIGURE, &state) != 0 || state_attach(state) != 0 ||
	    engine_client_new(state, 0, &client) != 0) {
		check(false, "a device with another sample period");
		return;
	}
	setenv("SOFTGPU_DIR", config.dir, 1);
	setenv("SOFTGPU_DRIVER", "615.43.02", 1);
	setenv("SOFTGPU_CUDA", "12.4", 1);
	check(call(nvmlInit_v2, void)() == 0 &&
		      call(nvmlSystemGetDriverVersion, char *, unsigned)(version, 32) == 0 &&
		      strcmp(version, "615.43.02") == 0,
	      "the driver's version is what SOFTGPU_DRIVER says");
	check(call(nvmlSystemGetCudaDriverVersion, int *)(&cuda) == 0 && cuda == 12040,
	      "and that of CUDA what SOFTGPU_CUDA says");
	check_load(client);
	call(nvmlShutdown, void)();
	engine_client_free(client);
	state_close(state);
}

int main(int argc, char **argv)
{
	lib = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	if (!lib || !mkdtemp(dir) || setenv("SOFTGPU_DIR", dir, 1) < 0) {
		printf("NOT OK '%s'\n", argc == 2 ? dlerror() : "which library?");
		return 1;
	}
	test_names();
	test_layouts();
	test_uninitialised();
	check(call(nvmlInit, void)() == 0 && call(nvmlInit_v2, void)() == 0, "nvmlInit, twice");
	check(call(nvmlShutdown, void)() == 0, "nvmlShutdown, once");
	check_unsupported(NVML_ERROR_NOT_SUPPORTED,
			  "every name that is not there is not supported");
	test_identity();
	test_versions();
	test_idle();
	test_busy();
	test_fields();
	test_events();
	test_limits();
	check(call(nvmlShutdown, void)() == 0, "nvmlShutdown");
	test_load();
	test_dir_remove(dir);
	return n_failed != 0;
}
