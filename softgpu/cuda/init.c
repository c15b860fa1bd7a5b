// SPDX-License-Identifier: Apache-2.0
/*
 * cuInit(): from nothing to a driver that is ready.
 *
 * It happens once in a process. A call that comes before it, or in a child that was forked
 * after it, answers CUDA_ERROR_NOT_INITIALIZED. A failed cuInit() may be tried again.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/cuda/calls.h"
#include "softgpu/cuda/driver.h"
#include "softgpu/cuda/variant.h"
#include "softgpu/cuda/visible.h"
#include "softgpu/jit/jit.h"
#include "softgpu/mem/room.h"
#include "softgpu/state/state.h"

_Atomic int driver_phase = DRIVER_NEW;
struct driver driver;

static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t config_once = PTHREAD_ONCE_INIT;
static bool config_good;

static void load_config(void)
{
	config_good = config_load(&driver.config) == 0;
	if (!config_good)
		config_default(&driver.config);
}

bool driver_configured(void)
{
	pthread_once(&config_once, load_config);
	return config_good;
}

int driver_cuda_version(void)
{
	if (variant.cuda_version)
		return variant.cuda_version;
	driver_configured();
	return (int)driver.config.cuda_version;
}

void driver_log(const char *format, ...)
{
	char line[512];
	va_list args;
	int n;

	driver_configured();
	if (!driver.config.log)
		return;
	va_start(args, format);
	n = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	/* One write, so that lines of several processes do not mix. */
	if (n >= 0)
		fprintf(stderr, "softgpu: %s\n", line);
}

/* What a call without implementation does; its stub passes its place in calls.def. */
__attribute__((visibility("hidden"))) CUresult call_missing(enum call_id id);
CUresult call_missing(enum call_id id)
{
	static _Atomic unsigned char told[CALL_N];

	if (!atomic_exchange_explicit(&told[id], 1, memory_order_relaxed))
		driver_log("%s is not supported", calls[id].name);
	return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult init_state(void)
{
	int r = state_open(&driver.config, STATE_CONFIGURE, &driver.state);

	if (r == 0)
		r = state_attach(driver.state);
	if (r == 0)
		return CUDA_SUCCESS;
	state_close(driver.state);
	driver.state = NULL;
	driver_log("cannot use the shared state in %s: %s", driver.config.dir,
		   r == STATE_E_FOREIGN ? "a file there is not ours"
		   : r == STATE_E_BUSY	? "too many processes"
		   : r < 0		? strerror(-r)
					: "forked");
	if (r == STATE_E_FOREIGN)
		return CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
	if (r == STATE_E_BUSY)
		return CUDA_ERROR_DEVICE_UNAVAILABLE;
	return r == -ENOMEM ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_OPERATING_SYSTEM;
}

/* Devices as the shared state has them, which may differ from this process's configuration. */
static CUresult init_devices(void)
{
	struct softgpu_device_config all[SOFTGPU_DEVICES_MAX];
	unsigned order[SOFTGPU_DEVICES_MAX];
	unsigned n_all = state_n_devices(driver.state), i;

	for (i = 0; i < n_all; i++)
		state_device(driver.state, i, &all[i]);
	driver.n_devices = visible_devices(all, n_all, getenv("CUDA_DEVICE_ORDER"),
					   getenv("CUDA_VISIBLE_DEVICES"), order);
	for (i = 0; i < driver.n_devices; i++) {
		struct device *device = &driver.devices[i];

		device->ordinal = (CUdevice)i;
		device->index = order[i];
		device->config = all[order[i]];
		if (!device->primary)
			device->primary = context_primary_new(device);
		if (!device->primary)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return driver.n_devices ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

static void in_forked_child(void)
{
	int ready = DRIVER_READY;

	atomic_compare_exchange_strong(&driver_phase, &ready, DRIVER_FORKED);
	/* Another thread of the parent may have held it; there is no such thread here. */
	pthread_mutex_init(&init_lock, NULL);
}

static const enum jit_mode jit_modes[] = {
	[CONFIG_JIT_AUTO] = JIT_AUTO,
	[CONFIG_JIT_NEVER] = JIT_OFF,
	[CONFIG_JIT_FIRST] = JIT_ON,
};

static CUresult init(void)
{
	static bool watches_forks;
	CUresult r;

	if (!driver_configured()) {
		driver_log("the configuration is wrong");
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!watches_forks && pthread_atfork(NULL, NULL, in_forked_child) != 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	watches_forks = true;
	room_limit(driver.config.host_memory_bytes);
	jit_init(jit_modes[driver.config.jit], driver_log);
	r = driver.state ? CUDA_SUCCESS : init_state();
	return r == CUDA_SUCCESS ? init_devices() : r;
}

CALL(cuInit, unsigned Flags)
{
	CUresult r = CUDA_SUCCESS;

	if (Flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&init_lock);
	switch (atomic_load(&driver_phase)) {
	case DRIVER_READY:
		break;
	case DRIVER_FORKED:
		r = CUDA_ERROR_NOT_INITIALIZED;
		break;
	default:
		r = init();
		if (r == CUDA_SUCCESS)
			atomic_store(&driver_phase, DRIVER_READY);
	}
	pthread_mutex_unlock(&init_lock);
	return r;
}

CALL(cuDriverGetVersion, int *driverVersion)
{
	if (!driverVersion)
		return CUDA_ERROR_INVALID_VALUE;
	*driverVersion = driver_cuda_version();
	return CUDA_SUCCESS;
}
