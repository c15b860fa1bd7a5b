// SPDX-License-Identifier: Apache-2.0
/*
 * Sets of events. The one kind there could be, a critical error of a device, never happens
 * to these, so a wait lasts as long as its caller allows.
 */
#include "softgpu/nvml/nvml.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define EVENTS_KNOWN 0x8ull

struct nvml_event_set {
	struct nvml_event_set *next;
};

/* All sets, so that a stale one is told from a good one. */
static pthread_mutex_t sets_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nvml_event_set *sets;

/* Under the lock: where the set is linked; NULL if it is none. */
static struct nvml_event_set **set_find(const struct nvml_event_set *set)
{
	for (struct nvml_event_set **p = &sets; *p; p = &(*p)->next) {
		if (*p == set)
			return p;
	}
	return NULL;
}

static nvmlReturn_t set_check(nvmlEventSet_t set)
{
	nvmlReturn_t r = nvml_check();

	if (r != NVML_SUCCESS)
		return r;
	pthread_mutex_lock(&sets_lock);
	r = set_find(set) ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
	pthread_mutex_unlock(&sets_lock);
	return r;
}

CALL(nvmlEventSetCreate, nvmlEventSet_t *set)
{
	nvmlReturn_t r = nvml_check();
	struct nvml_event_set *new;

	if (r != NVML_SUCCESS)
		return r;
	if (!set)
		return NVML_ERROR_INVALID_ARGUMENT;
	new = malloc(sizeof(*new));
	if (!new)
		return NVML_ERROR_MEMORY;
	pthread_mutex_lock(&sets_lock);
	new->next = sets;
	sets = new;
	pthread_mutex_unlock(&sets_lock);
	*set = new;
	return NVML_SUCCESS;
}

CALL(nvmlEventSetFree, nvmlEventSet_t set)
{
	nvmlReturn_t r = nvml_check();
	struct nvml_event_set **link;

	if (r != NVML_SUCCESS)
		return r;
	pthread_mutex_lock(&sets_lock);
	link = set_find(set);
	if (link)
		*link = set->next;
	pthread_mutex_unlock(&sets_lock);
	if (!link)
		return NVML_ERROR_INVALID_ARGUMENT;
	free(set);
	return NVML_SUCCESS;
}

CALL(nvmlDeviceRegisterEvents, nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, set, &dev);

	if (r == NVML_SUCCESS)
		r = set_check(set);
	if (r == NVML_SUCCESS && (types & ~EVENTS_KNOWN))
		r = NVML_ERROR_NOT_SUPPORTED;
	return r;
}

static nvmlReturn_t set_wait(nvmlEventSet_t set, const nvmlEventData_t *data, unsigned timeout_ms)
{
	struct timespec ts = {
		.tv_sec = timeout_ms / 1000,
		.tv_nsec = timeout_ms % 1000 * 1000000l,
	};
	nvmlReturn_t r = set_check(set);

	if (r != NVML_SUCCESS)
		return r;
	if (!data)
		return NVML_ERROR_INVALID_ARGUMENT;
	while (nanosleep(&ts, &ts) < 0)
		;
	return NVML_ERROR_TIMEOUT;
}

CALL(nvmlEventSetWait, nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
	return set_wait(set, data, timeout_ms);
}

CALL(nvmlEventSetWait_v2, nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
	return set_wait(set, data, timeout_ms);
}
