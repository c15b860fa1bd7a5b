// SPDX-License-Identifier: Apache-2.0
/*
 * DCGM's calls: how its daemon starts, finds the devices and begins to watch them, and what its
 * exporter reads of each by default.
 */
#include "softgpu/nvml/test-tools.h"

#include <stdlib.h>
#include <string.h>

#define INIT_NO_GPUS   1
#define INIT_NO_ATTACH 2
#define INIT_FORCE     4
#define MOST_DEVICES   32
#define LEAST_DRIVER   "384.00"
#define NO_ATTACH_FROM 611 /* before, it starts again without */
#define EVENT_XID      0x8
#define EVENT_MIG      0x200
#define EVENT_BINDINGS 0x3

/* A thread of its own waits for devices that come and go, from before the library is used. */
static nvmlEventSet_t bindings_watched(void)
{
	nvmlSystemEventSetRequest_t made = {
		.version = NVML_STRUCT_VERSION(nvmlSystemEventSetRequest_t, 1),
	};
	nvmlSystemRegisterEventRequest_t wanted = {
		.version = NVML_STRUCT_VERSION(nvmlSystemRegisterEventRequest_t, 1),
		.eventTypes = EVENT_BINDINGS,
	};

	check(made.version == 0x1000010 && wanted.version == 0x1000018,
	      "DCGM: versions of what it asks of the system");
	check(call(nvmlSystemEventSetCreate, nvmlSystemEventSetRequest_t *)(&made) == 0,
	      "DCGM: a set of the system's events");
	wanted.set = made.set;
	check(call(nvmlSystemRegisterEvents, nvmlSystemRegisterEventRequest_t *)(&wanted) == 0,
	      "DCGM: devices that come and go");
	return made.set;
}

static void bindings_end(nvmlEventSet_t set)
{
	nvmlSystemEventSetRequest_t freed = {
		.version = NVML_STRUCT_VERSION(nvmlSystemEventSetRequest_t, 1),
		.set = set,
	};
	nvmlSystemEventData_t events[2];
	nvmlSystemEventSetWaitRequest_t wait = {
		.version = NVML_STRUCT_VERSION(nvmlSystemEventSetWaitRequest_t, 1),
		.timeoutms = 1,
		.set = set,
		.data = events,
		.dataSize = 2,
		.numEvent = 2,
	};

	check(wait.version == 0x1000020, "DCGM: the version of a wait");
	check(call(nvmlSystemEventSetWait, nvmlSystemEventSetWaitRequest_t *)(&wait) ==
			      NVML_ERROR_TIMEOUT &&
		      wait.numEvent == 0,
	      "DCGM: none comes or goes");
	check(call(nvmlEventSetFree, nvmlEventSet_t)(set) == NVML_ERROR_INVALID_ARGUMENT,
	      "the system's set is none of a device");
	check(call(nvmlSystemEventSetFree, nvmlSystemEventSetRequest_t *)(&freed) == 0 &&
		      call(nvmlSystemEventSetFree, nvmlSystemEventSetRequest_t *)(&freed) ==
			      NVML_ERROR_INVALID_ARGUMENT,
	      "DCGM: its set is freed, once");
	freed.version = 0;
	check(call(nvmlSystemEventSetCreate, nvmlSystemEventSetRequest_t *)(&freed) ==
			      NVML_ERROR_ARGUMENT_VERSION_MISMATCH &&
		      call(nvmlSystemEventSetCreate, nvmlSystemEventSetRequest_t *)(NULL) ==
			      NVML_ERROR_INVALID_ARGUMENT,
	      "a request without version, and none");
}

/* Starts without devices, reads the driver's version, and starts again as that driver needs it. */
static void thread_starts(void)
{
	char version[80], *end = version;
	long major = 0;

	check(call(nvmlInitWithFlags, unsigned)(INIT_NO_GPUS | INIT_NO_ATTACH) == 0,
	      "DCGM: starts without devices");
	check(call(nvmlSystemGetDriverVersion, char *, unsigned)(version, sizeof(version)) == 0 &&
		      (major = strtol(version, &end, 10)) > 0 && *end == '.',
	      "DCGM: the driver's version, up to the dot");
	check(strcmp(version, LEAST_DRIVER) >= 0, "DCGM: the driver is not too old");
	if (major < NO_ATTACH_FROM)
		check(call(nvmlShutdown, void)() == 0 &&
			      call(nvmlInitWithFlags, unsigned)(INIT_NO_GPUS) == 0,
		      "DCGM: starts again, but attached");
}

static void identity_read(nvmlDevice_t device)
{
	int major, minor;
	unsigned value;
	nvmlPciInfo_t pci;
	char text[96];

	check(call_device(nvmlDeviceGetUUID, char *, unsigned)(device, text, 80) == 0 &&
		      call_device(nvmlDeviceGetSerial, char *, unsigned)(device, text, 128) == 0 &&
		      call_device(nvmlDeviceGetBrand, unsigned *)(device, &value) == 0,
	      "DCGM: UUID, serial number, brand");
	check(call_device(nvmlDeviceGetPciInfo_v3, nvmlPciInfo_t *)(device, &pci) == 0 &&
		      call_device(nvmlDeviceGetName, char *, unsigned)(device, text,
								       sizeof(text)) == 0,
	      "DCGM: PCI address, name");
	check(call_device(nvmlDeviceGetCudaComputeCapability, int *, int *)(device, &major,
									    &minor) == 0 &&
		      major >= 5,
	      "DCGM: an architecture that it supports");
	check(call_device(nvmlDeviceGetVirtualizationMode, unsigned *)(device, &value) == 0 &&
		      value == 0,
	      "DCGM: no virtual GPU");
}

/* What a device can do, and how it is divided. */
static void features_read(nvmlDevice_t device)
{
	nvmlFieldValue_t n_links = { .fieldId = 91 };
	unsigned now = 1, pending, n = 0, cc[4];
	unsigned gpm[3] = { 0x100000c };

	check(is_answer(call(nvmlSystemGetConfComputeState, unsigned *)(cc)),
	      "DCGM: confidential computing");
	check(is_answer(call_device(nvmlGpmQueryDeviceSupport, unsigned *)(device, gpm)) &&
		      gpm[1] == 0,
	      "DCGM: no profiling by NVML");
	check(call_device(nvmlDeviceGetFieldValues, int, nvmlFieldValue_t *)(device, 1, &n_links) ==
			      0 &&
		      n_links.nvmlReturn == 0 && n_links.value.uiVal == 0,
	      "DCGM: no links");
	check(call_device(nvmlDeviceGetMigMode, unsigned *, unsigned *)(device, &now, &pending) ==
			      0 &&
		      now == 0 &&
		      is_answer(call_device(nvmlDeviceGetMaxMigDeviceCount, unsigned *)(device,
											&n)) &&
		      n == 0,
	      "DCGM: not divided into instances");
	n = 0;
	check(call_device(nvmlDeviceGetSupportedVgpus, unsigned *, unsigned *)(device, &n, NULL) ==
			      NVML_ERROR_NOT_SUPPORTED &&
		      call_device(nvmlDeviceGetCreatableVgpus, unsigned *,
				  unsigned *)(device, &n, NULL) == NVML_ERROR_NOT_SUPPORTED &&
		      call_device(nvmlDeviceGetActiveVgpus, unsigned *,
				  unsigned *)(device, &n, NULL) == NVML_ERROR_NOT_SUPPORTED,
	      "DCGM: nor into virtual GPUs");
	check(is_answer(call_device(nvmlDeviceGetAccountingMode, unsigned *)(device, &now)) &&
		      is_answer(call_device(nvmlDeviceSetAccountingMode, int)(device, 1)),
	      "DCGM: accounting");
}

static void events_watched(nvmlDevice_t device)
{
	nvmlEventSet_t set = NULL;
	nvmlEventData_t event;

	check(call(nvmlEventSetCreate, nvmlEventSet_t *)(&set) == 0, "DCGM: a set of events");
	check(call_device(nvmlDeviceRegisterEvents, unsigned long long,
			  nvmlEventSet_t)(device, EVENT_XID, set) == 0 &&
		      is_answer(call_device(nvmlDeviceRegisterEvents, unsigned long long,
					    nvmlEventSet_t)(device, EVENT_MIG, set)),
	      "DCGM: kernels that fail, and changes of instances");
	check(call(nvmlEventSetWait_v2, nvmlEventSet_t, nvmlEventData_t *,
		   unsigned)(set, &event, 1) == NVML_ERROR_TIMEOUT &&
		      call(nvmlEventSetFree, nvmlEventSet_t)(set) == 0,
	      "DCGM: none fails");
}

/* By number, all in one call: what is not there fails alone. */
static void fields_read(nvmlDevice_t device)
{
	nvmlFieldValue_t values[] = {
		{ .fieldId = 82 },  /* the memory's temperature */
		{ .fieldId = 83 },  /* energy */
		{ .fieldId = 94 },  /* PCIe replays */
		{ .fieldId = 142 }, /* remapped rows: three */
		{ .fieldId = 143 },  { .fieldId = 145 }, { .fieldId = 186 }, /* power */
		{ .fieldId = 197 },			 /* bytes over PCIe: both */
		{ .fieldId = 198 },  { .fieldId = 230 }, /* what to do to recover */
		{ .fieldId = 5000 },
	};
	int n = sizeof(values) / sizeof(values[0]);
	bool good;

	good = call_device(nvmlDeviceGetFieldValues, int, nvmlFieldValue_t *)(device, n, values) ==
	       0;
	for (int i = 0; i < n - 1; i++)
		good = good && values[i].nvmlReturn == 0 && values[i].timestamp > 0;
	check(good, "DCGM: values by number");
	check(values[0].value.uiVal > 0 && values[0].value.uiVal < 100,
	      "DCGM: the memory's temperature");
	check(values[n - 1].nvmlReturn == NVML_ERROR_NOT_SUPPORTED,
	      "DCGM: one that there is not fails alone");
}

static void exporter_reads(nvmlDevice_t device)
{
	nvmlMemory_v2_t memory = { .version = NVML_STRUCT_VERSION(nvmlMemory_v2_t, 2) };
	unsigned sm, mem, celsius, milliwatts, percent, period_us, n = 0;
	nvmlUtilization_t utilization;

	check(call_device(nvmlDeviceGetClockInfo, int, unsigned *)(device, NVML_CLOCK_SM, &sm) ==
			      0 &&
		      call_device(nvmlDeviceGetClockInfo, int, unsigned *)(device, NVML_CLOCK_MEM,
									   &mem) == 0 &&
		      sm > 0 && mem > 0,
	      "exporter: clocks");
	check(call_device(nvmlDeviceGetTemperature, int, unsigned *)(device, 0, &celsius) == 0 &&
		      call_device(nvmlDeviceGetPowerUsage, unsigned *)(device, &milliwatts) == 0 &&
		      celsius > 0 && milliwatts > 0,
	      "exporter: temperature and power");
	check(call_device(nvmlDeviceGetUtilizationRates, nvmlUtilization_t *)(device,
									      &utilization) == 0 &&
		      call_device(nvmlDeviceGetEncoderUtilization, unsigned *,
				  unsigned *)(device, &percent, &period_us) == 0 &&
		      call_device(nvmlDeviceGetDecoderUtilization, unsigned *,
				  unsigned *)(device, &percent, &period_us) == 0,
	      "exporter: utilization");
	check(call_device(nvmlDeviceGetMemoryInfo_v2, nvmlMemory_v2_t *)(device, &memory) == 0 &&
		      memory.used == HELD_BYTES &&
		      memory.free + memory.used + memory.reserved == memory.total,
	      "exporter: memory adds up");
	check(call_device(nvmlDeviceGetComputeRunningProcesses_v3, unsigned *,
			  void *)(device, &n, NULL) == NVML_ERROR_INSUFFICIENT_SIZE &&
		      n == 1,
	      "exporter: how many processes");
	n = 0;
	check(call_device(nvmlDeviceGetGraphicsRunningProcesses_v3, unsigned *, void *)(device, &n,
											NULL) == 0,
	      "exporter: no graphics");
}

void test_dcgm(void)
{
	nvmlEventSet_t bindings;
	nvmlDevice_t device;
	unsigned n;

	thread_starts();
	bindings = bindings_watched();
	check(call(nvmlInitWithFlags, unsigned)(INIT_NO_GPUS | INIT_FORCE) == 0, "DCGM: starts");
	check(call(nvmlDeviceGetCount_v2, unsigned *)(&n) == 0 && n <= MOST_DEVICES,
	      "DCGM: not too many devices");
	device = first_device();
	identity_read(device);
	features_read(device);
	events_watched(device);
	fields_read(device);
	exporter_reads(device);
	bindings_end(bindings);
	check(call(nvmlShutdown, void)() == 0 && call(nvmlShutdown, void)() == 0, "DCGM: ends");
}
