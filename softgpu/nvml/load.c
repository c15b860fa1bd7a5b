// SPDX-License-Identifier: Apache-2.0
/*
 * How busy a device is, and what follows from it: power, temperature, clocks.
 *
 * A device at rest takes 15 % of its power limit at 32 degrees, a busy one all of it at 77;
 * in between they follow the utilisation, the temperature that of the last 10 s.
 */
#include "softgpu/nvml/nvml.h"

#include "softgpu/engine/engine.h"

#include <string.h>

#define IDLE_PERMILLE	 150
#define IDLE_CLOCK_MHZ	 210
#define TEMPERATURE_IDLE 32
#define TEMPERATURE_BUSY 77
#define TEMPERATURE_NS	 10000000000ull
#define SAMPLES_MAX	 120

enum sampling {
	SAMPLING_POWER,
	SAMPLING_GPU,
	SAMPLING_MEMORY,
	SAMPLING_ENCODER,
	SAMPLING_DECODER,
	SAMPLING_SM_CLOCK,
	SAMPLING_MEMORY_CLOCK,
};

static size_t samples_get(unsigned dev, struct state_sample *samples, size_t n_max)
{
	engine_update(nvml.state, dev);
	return state_samples(nvml.state, dev, samples, n_max);
}

static unsigned load_average(unsigned dev, size_t n_periods)
{
	struct state_sample samples[SAMPLES_MAX];
	size_t n = samples_get(dev, samples, n_periods);
	unsigned sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += samples[i].percent;
	return n ? sum / (unsigned)n : 0;
}

unsigned load_percent(unsigned dev)
{
	return load_average(dev, 1);
}

static unsigned power_at(unsigned dev, unsigned percent)
{
	unsigned limit_mw = device_properties(dev).power_watts * 1000;
	unsigned idle_mw = limit_mw / 1000 * IDLE_PERMILLE;

	return idle_mw + (unsigned)((uint64_t)(limit_mw - idle_mw) * percent / 100);
}

unsigned load_power_mw(unsigned dev)
{
	return power_at(dev, load_percent(dev));
}

unsigned load_temperature(unsigned dev)
{
	uint64_t period_ns = state_sample_period_ns(nvml.state, dev);
	uint64_t n_periods = (TEMPERATURE_NS + period_ns / 2) / period_ns;

	if (n_periods > SAMPLES_MAX)
		n_periods = SAMPLES_MAX;
	return TEMPERATURE_IDLE +
	       (TEMPERATURE_BUSY - TEMPERATURE_IDLE) * load_average(dev, n_periods) / 100;
}

/* Since the machine started, in thousandths of a joule. */
uint64_t load_energy_mj(unsigned dev)
{
	uint64_t idle_mw = power_at(dev, 0), more_mw = power_at(dev, 100) - idle_mw;

	engine_update(nvml.state, dev);
	return engine_now_ns() / 1000000 * idle_mw / 1000 +
	       state_busy_ns(nvml.state, dev) / 1000000 * more_mw / 1000;
}

static unsigned clock_at(unsigned dev, int type, unsigned percent)
{
	struct softgpu_device_config properties = device_properties(dev);

	if (type == NVML_CLOCK_MEM)
		return properties.memory_clock_mhz;
	if (percent > 0 || properties.clock_mhz < IDLE_CLOCK_MHZ)
		return properties.clock_mhz;
	return IDLE_CLOCK_MHZ;
}

unsigned load_clock_mhz(unsigned dev, int type)
{
	return clock_at(dev, type, load_percent(dev));
}

CALL(nvmlDeviceGetUtilizationRates, nvmlDevice_t device, nvmlUtilization_t *utilization)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, utilization, &dev);

	if (r != NVML_SUCCESS)
		return r;
	utilization->gpu = load_percent(dev);
	utilization->memory = utilization->gpu;
	return NVML_SUCCESS;
}

GETTER(nvmlDeviceGetPowerUsage, unsigned, load_power_mw(dev))
GETTER(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, load_energy_mj(dev))

/* Bit 0: the clocks are low because there is nothing to do. */
GETTER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, load_percent(dev) == 0)
GETTER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, load_percent(dev) == 0)

CALL(nvmlDeviceGetTemperature, nvmlDevice_t device, unsigned sensor, unsigned *celsius)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, celsius, &dev);

	if (r != NVML_SUCCESS)
		return r;
	if (sensor != 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	*celsius = load_temperature(dev);
	return NVML_SUCCESS;
}

CALL(nvmlDeviceGetTemperatureV, nvmlDevice_t device, nvmlTemperature_t *temperature)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, temperature, &dev);

	if (r != NVML_SUCCESS)
		return r;
	if (temperature->version != NVML_STRUCT_VERSION(nvmlTemperature_t, 1))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (temperature->sensorType != 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	temperature->temperature = (int)load_temperature(dev);
	return NVML_SUCCESS;
}

static nvmlReturn_t clock_get(nvmlDevice_t device, int type, bool most, unsigned *mhz)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, mhz, &dev);

	if (r != NVML_SUCCESS)
		return r;
	if (type < NVML_CLOCK_GRAPHICS || type > NVML_CLOCK_VIDEO)
		return NVML_ERROR_INVALID_ARGUMENT;
	*mhz = most ? clock_at(dev, type, 100) : load_clock_mhz(dev, type);
	return NVML_SUCCESS;
}

CALL(nvmlDeviceGetClockInfo, nvmlDevice_t device, int type, unsigned *mhz)
{
	return clock_get(device, type, /* most= */ false, mhz);
}

/* The current clock is 0; its target, its default and the most it may be are all the same. */
CALL(nvmlDeviceGetClock, nvmlDevice_t device, int type, int which, unsigned *mhz)
{
	return clock_get(device, type, /* most= */ which != 0, mhz);
}

CALL(nvmlDeviceGetMaxClockInfo, nvmlDevice_t device, int type, unsigned *mhz)
{
	return clock_get(device, type, /* most= */ true, mhz);
}

CALL(nvmlDeviceGetApplicationsClock, nvmlDevice_t device, int type, unsigned *mhz)
{
	return clock_get(device, type, /* most= */ true, mhz);
}

CALL(nvmlDeviceGetDefaultApplicationsClock, nvmlDevice_t device, int type, unsigned *mhz)
{
	return clock_get(device, type, /* most= */ true, mhz);
}

CALL(nvmlDeviceGetMaxCustomerBoostClock, nvmlDevice_t device, int type, unsigned *mhz)
{
	return clock_get(device, type, /* most= */ true, mhz);
}

/* Engines that the device does not have are idle; their sampling period is the device's. */
static nvmlReturn_t engine_idle(nvmlDevice_t device, unsigned *utilization, unsigned *period_us)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, utilization, &dev);

	if (r != NVML_SUCCESS)
		return r;
	if (!period_us)
		return NVML_ERROR_INVALID_ARGUMENT;
	*utilization = 0;
	*period_us = (unsigned)(state_sample_period_ns(nvml.state, dev) / 1000);
	return NVML_SUCCESS;
}

#define IDLE_ENGINE(name)                                                                          \
	CALL(name, nvmlDevice_t device, unsigned *utilization, unsigned *period_us)                \
	{                                                                                          \
		return engine_idle(device, utilization, period_us);                                \
	}

IDLE_ENGINE(nvmlDeviceGetEncoderUtilization)
IDLE_ENGINE(nvmlDeviceGetDecoderUtilization)
IDLE_ENGINE(nvmlDeviceGetJpgUtilization)
IDLE_ENGINE(nvmlDeviceGetOfaUtilization)

static unsigned sample_value(unsigned dev, int type, unsigned percent)
{
	switch (type) {
	case SAMPLING_POWER:
		return power_at(dev, percent);
	case SAMPLING_GPU:
	case SAMPLING_MEMORY:
		return percent;
	case SAMPLING_SM_CLOCK:
		return clock_at(dev, NVML_CLOCK_SM, percent);
	case SAMPLING_MEMORY_CLOCK:
		return clock_at(dev, NVML_CLOCK_MEM, percent);
	default:
		return 0;
	}
}

CALL(nvmlDeviceGetSamples, nvmlDevice_t device, int type, unsigned long long last_seen_us,
     int *value_type, unsigned *count, nvmlSample_t *samples)
{
	struct state_sample all[SAMPLES_MAX];
	unsigned dev, n = 0, room;
	size_t n_all;
	nvmlReturn_t r = device_check(device, count, &dev);

	if (r != NVML_SUCCESS)
		return r;
	if (!value_type)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (type < SAMPLING_POWER || type > SAMPLING_MEMORY_CLOCK)
		return NVML_ERROR_NOT_SUPPORTED;
	*value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
	room = *count;
	n_all = samples_get(dev, all, SAMPLES_MAX);
	for (size_t i = 0; i < n_all; i++) {
		if (all[i].end_us <= last_seen_us)
			continue;
		if (samples && n < room) {
			memset(&samples[n], 0, sizeof(samples[n]));
			samples[n].timeStamp = all[i].end_us;
			samples[n].sampleValue.uiVal = sample_value(dev, type, all[i].percent);
		}
		n++;
	}
	*count = samples && n > room ? room : n;
	return n > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}
