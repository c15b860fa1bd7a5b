// SPDX-License-Identifier: Apache-2.0
/*
 * What is always the same: settings of a device that is in order, has nothing to be set and
 * is connected as a fast one would be.
 */
#include "softgpu/nvml/nvml.h"

#define PCIE_GENERATION	   4
#define PCIE_WIDTH	   16
#define PCIE_MBPS	   16000 /* per lane */
#define MEMORY_BUS_BITS	   5120
#define POWER_MIN_PERMILLE 250
#define TOPOLOGY_INTERNAL  0
#define TOPOLOGY_SYSTEM	   50
#define EVENTS_CRITICAL	   0x8
#define PSTATE_UNKNOWN	   32
#define DEFAULT_COMPUTE	   0

GETTER(nvmlDeviceGetPersistenceMode, unsigned, 1)
GETTER(nvmlDeviceGetDisplayActive, unsigned, 0)
GETTER(nvmlDeviceGetDisplayMode, unsigned, 0)
GETTER(nvmlDeviceGetComputeMode, unsigned, DEFAULT_COMPUTE)
GETTER(nvmlDeviceGetPerformanceState, unsigned, 0)
GETTER(nvmlDeviceGetPowerState, unsigned, 0)
GETTER(nvmlDeviceGetPowerManagementMode, unsigned, 1)
GETTER(nvmlDeviceGetPowerManagementLimit, unsigned, device_properties(dev).power_watts * 1000)
GETTER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned,
       device_properties(dev).power_watts * 1000)
GETTER(nvmlDeviceGetEnforcedPowerLimit, unsigned, device_properties(dev).power_watts * 1000)
GETTER(nvmlDeviceGetVirtualizationMode, unsigned, 0)
GETTER(nvmlDeviceGetMaxMigDeviceCount, unsigned, 0)
GETTER(nvmlDeviceIsMigDeviceHandle, unsigned, 0)
GETTER(nvmlDeviceGetMultiGpuBoard, unsigned, 0)
GETTER(nvmlDeviceGetNumFans, unsigned, 0)
GETTER(nvmlDeviceGetMemoryBusWidth, unsigned, MEMORY_BUS_BITS)
GETTER(nvmlDeviceGetAccountingMode, unsigned, 0)
GETTER(nvmlDeviceGetRetiredPagesPendingStatus, unsigned, 0)
GETTER(nvmlDeviceGetPcieReplayCounter, unsigned, 0)
GETTER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned, PCIE_GENERATION)
GETTER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned, PCIE_GENERATION)
GETTER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned, PCIE_GENERATION)
GETTER(nvmlDeviceGetMaxPcieLinkWidth, unsigned, PCIE_WIDTH)
GETTER(nvmlDeviceGetCurrPcieLinkWidth, unsigned, PCIE_WIDTH)
GETTER(nvmlDeviceGetPcieSpeed, unsigned, PCIE_MBPS)
GETTER(nvmlDeviceGetSupportedClocksEventReasons, unsigned long long, 1)
GETTER(nvmlDeviceGetSupportedClocksThrottleReasons, unsigned long long, 1)
GETTER(nvmlDeviceGetSupportedEventTypes, unsigned long long, EVENTS_CRITICAL)

CALL(nvmlDeviceValidateInforom, nvmlDevice_t device)
{
	unsigned dev;

	return device_check(device, device, &dev);
}

/* Two values that are the same: what holds now, and what will after the next start. */
static nvmlReturn_t pair_get(nvmlDevice_t device, unsigned now, unsigned *ret_now,
			     unsigned *ret_pending)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, ret_now, &dev);

	if (r != NVML_SUCCESS)
		return r;
	if (!ret_pending)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret_now = *ret_pending = now;
	return NVML_SUCCESS;
}

CALL(nvmlDeviceGetEccMode, nvmlDevice_t device, unsigned *now, unsigned *pending)
{
	return pair_get(device, 1, now, pending);
}

CALL(nvmlDeviceGetMigMode, nvmlDevice_t device, unsigned *now, unsigned *pending)
{
	return pair_get(device, 0, now, pending);
}

CALL(nvmlDeviceGetMigDeviceHandleByIndex, nvmlDevice_t device, _unused_ unsigned index,
     nvmlDevice_t *mig)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, mig, &dev);

	return r == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : r;
}

static nvmlReturn_t no_errors(nvmlDevice_t device, unsigned long long *count)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, count, &dev);

	if (r == NVML_SUCCESS)
		*count = 0;
	return r;
}

CALL(nvmlDeviceGetTotalEccErrors, nvmlDevice_t device, _unused_ int type, _unused_ int counter,
     unsigned long long *count)
{
	return no_errors(device, count);
}

CALL(nvmlDeviceGetMemoryErrorCounter, nvmlDevice_t device, _unused_ int type, _unused_ int counter,
     _unused_ int location, unsigned long long *count)
{
	return no_errors(device, count);
}

static nvmlReturn_t none_retired(nvmlDevice_t device, unsigned *count)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, count, &dev);

	if (r == NVML_SUCCESS)
		*count = 0;
	return r;
}

CALL(nvmlDeviceGetRetiredPages, nvmlDevice_t device, _unused_ int cause, unsigned *count,
     _unused_ unsigned long long *addresses)
{
	return none_retired(device, count);
}

CALL(nvmlDeviceGetRetiredPages_v2, nvmlDevice_t device, _unused_ int cause, unsigned *count,
     _unused_ unsigned long long *addresses, _unused_ unsigned long long *timestamps)
{
	return none_retired(device, count);
}

CALL(nvmlDeviceGetRemappedRows, nvmlDevice_t device, unsigned *correctable, unsigned *uncorrectable,
     unsigned *pending, unsigned *failed)
{
	nvmlReturn_t r = pair_get(device, 0, correctable, uncorrectable);

	return r == NVML_SUCCESS ? pair_get(device, 0, pending, failed) : r;
}

unsigned power_min_mw(unsigned dev)
{
	return device_properties(dev).power_watts * POWER_MIN_PERMILLE;
}

CALL(nvmlDeviceGetPowerManagementLimitConstraints, nvmlDevice_t device, unsigned *min_mw,
     unsigned *max_mw)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, min_mw, &dev);

	if (r != NVML_SUCCESS)
		return r;
	if (!max_mw)
		return NVML_ERROR_INVALID_ARGUMENT;
	*max_mw = device_properties(dev).power_watts * 1000;
	*min_mw = power_min_mw(dev);
	return NVML_SUCCESS;
}

CALL(nvmlDeviceGetTemperatureThreshold, nvmlDevice_t device, int which, unsigned *celsius)
{
	/* Shutdown, slowdown, most for the memory, most for the GPU. */
	static const unsigned thresholds[] = { 92, 89, 95, 85 };
	unsigned dev;
	nvmlReturn_t r = device_check(device, celsius, &dev);

	if (r != NVML_SUCCESS)
		return r;
	if (which < 0 || (size_t)which >= sizeof(thresholds) / sizeof(thresholds[0]))
		return NVML_ERROR_NOT_SUPPORTED;
	*celsius = thresholds[which];
	return NVML_SUCCESS;
}

CALL(nvmlDeviceGetPcieThroughput, nvmlDevice_t device, _unused_ int counter, unsigned *kbytes)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, kbytes, &dev);

	if (r == NVML_SUCCESS)
		*kbytes = 0;
	return r;
}

CALL(nvmlDeviceGetViolationStatus, nvmlDevice_t device, _unused_ int policy,
     nvmlViolationTime_t *times)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, times, &dev);

	if (r == NVML_SUCCESS)
		*times = (nvmlViolationTime_t){ 0 };
	return r;
}

/* One clock each: that of the configuration. */
static nvmlReturn_t only_clock(_unused_ nvmlDevice_t device, unsigned mhz, unsigned *count,
			       unsigned *clocks)
{
	unsigned room = clocks ? *count : 0;

	*count = 1;
	if (room < 1)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	clocks[0] = mhz;
	return NVML_SUCCESS;
}

CALL(nvmlDeviceGetSupportedMemoryClocks, nvmlDevice_t device, unsigned *count, unsigned *clocks)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, count, &dev);

	if (r != NVML_SUCCESS)
		return r;
	return only_clock(device, device_properties(dev).memory_clock_mhz, count, clocks);
}

CALL(nvmlDeviceGetSupportedGraphicsClocks, nvmlDevice_t device, _unused_ unsigned memory_mhz,
     unsigned *count, unsigned *clocks)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, count, &dev);

	if (r != NVML_SUCCESS)
		return r;
	return only_clock(device, device_properties(dev).clock_mhz, count, clocks);
}

CALL(nvmlDeviceGetSupportedPerformanceStates, nvmlDevice_t device, unsigned *states, unsigned size)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, states, &dev);

	if (r != NVML_SUCCESS)
		return r;
	for (unsigned i = 0; i < size / sizeof(*states); i++)
		states[i] = i == 0 ? 0 : PSTATE_UNKNOWN;
	return NVML_SUCCESS;
}

static nvmlReturn_t two_devices(nvmlDevice_t a, nvmlDevice_t b, const void *value, unsigned *ret_a,
				unsigned *ret_b)
{
	nvmlReturn_t r = device_check(a, value, ret_a);

	return r == NVML_SUCCESS ? device_check(b, value, ret_b) : r;
}

CALL(nvmlDeviceGetTopologyCommonAncestor, nvmlDevice_t a, nvmlDevice_t b, unsigned *level)
{
	unsigned dev_a, dev_b;
	nvmlReturn_t r = two_devices(a, b, level, &dev_a, &dev_b);

	if (r == NVML_SUCCESS)
		*level = dev_a == dev_b ? TOPOLOGY_INTERNAL : TOPOLOGY_SYSTEM;
	return r;
}

/* All devices reach each other. */
CALL(nvmlDeviceGetP2PStatus, nvmlDevice_t a, nvmlDevice_t b, _unused_ int capability,
     unsigned *status)
{
	unsigned dev_a, dev_b;
	nvmlReturn_t r = two_devices(a, b, status, &dev_a, &dev_b);

	if (r == NVML_SUCCESS)
		*status = 0;
	return r;
}
