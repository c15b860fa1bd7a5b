/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every call of NVML builds on.
 *
 *	CALL(nvmlDeviceGetIndex, nvmlDevice_t device, unsigned *index)
 *	{
 *		...
 *	}
 *
 * defines an exported call. Calls do not call each other, so that a probe on one sees what
 * programs call.
 */
#ifndef SOFTGPU_NVML_NVML_H
#define SOFTGPU_NVML_NVML_H

#include "src/nvml/nvml_abi.h"
#include "softgpu/state/state.h"

#include <stddef.h>

#define CALL(name, ...)                                                                            \
	__attribute__((visibility("default"))) nvmlReturn_t name(__VA_ARGS__);                     \
	nvmlReturn_t name(__VA_ARGS__)

/*
 * A call that gives one value of a device: GETTER(name, type, expression), where `dev` is the
 * device's index.
 */
#define GETTER(name, type, expression)                                                             \
	CALL(name, nvmlDevice_t device, type *value)                                               \
	{                                                                                          \
		unsigned dev;                                                                      \
		nvmlReturn_t r = device_check(device, value, &dev);                                \
                                                                                                   \
		if (r != NVML_SUCCESS)                                                             \
			return r;                                                                  \
		*value = (expression);                                                             \
		return NVML_SUCCESS;                                                               \
	}

/* The machine, while the library is initialised; NULL else. */
extern struct nvml {
	struct state *state;
	struct softgpu_config config;
} nvml;

/** nvml_check() - NVML_SUCCESS once nvmlInit() has been called */
nvmlReturn_t nvml_check(void);

/**
 * device_check() - what every call about a device checks first
 * @value:	an argument that must not be NULL
 */
nvmlReturn_t device_check(nvmlDevice_t device, const void *value, unsigned *ret_dev);

/** device_handle() - the handle of a device */
nvmlDevice_t device_handle(unsigned dev);

/** device_properties() - what it is like */
struct softgpu_device_config device_properties(unsigned dev);

/** text_return() - copy a text to a caller's buffer: NVML_ERROR_INSUFFICIENT_SIZE if too short */
nvmlReturn_t text_return(const char *text, char *buf, unsigned size);

/** power_min_mw() - the least that the limit of its power could be set to */
unsigned power_min_mw(unsigned dev);

/* load.c: what follows from how busy a device is */
unsigned load_percent(unsigned dev);
unsigned load_power_mw(unsigned dev);
unsigned load_temperature(unsigned dev);
unsigned load_clock_mhz(unsigned dev, int type);
uint64_t load_energy_mj(unsigned dev);

#endif
