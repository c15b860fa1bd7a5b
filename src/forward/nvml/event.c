// SPDX-License-Identifier: Apache-2.0
/*
 * Sets of events.
 *
 * The host tells what has happened when it is asked, and never by itself: a wait is looks with naps between.
 * Each set goes by the numbers of the events, so every set is told all of them.
 */
#include "forward/nvml/nvml.h"

#include "base/base.h"
#include "base/clock.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define NAP_NS	  100000000
#define NS_PER_MS 1000000ull

/* @types: that are waited for; @seen: number of the event that was told last */
struct nvml_event_set {
	struct nvml_event_set *next;
	struct watched {
		uint64_t types;
		uint64_t seen;
	} devices[MAX_DEVICES];
};

/* All sets, so that a stale one is told from a good one. The lock guards what is in them. */
static pthread_mutex_t sets_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nvml_event_set *sets;

/* Under the lock: where the set is linked; NULL if it is none. */
static struct nvml_event_set **set_find(const struct nvml_event_set *set)
{
	struct nvml_event_set **link;

	for (link = &sets; *link; link = &(*link)->next)
		if (*link == set)
			return link;
	return NULL;
}

ENTRY(nvmlEventSetCreate, nvmlEventSet_t *set)
{
	struct nvml_event_set *new;

	if (nvml_check() != NVML_SUCCESS)
		return NVML_ERROR_UNINITIALIZED;
	if (!set)
		return NVML_ERROR_INVALID_ARGUMENT;
	new = calloc(1, sizeof(*new));
	if (!new)
		return NVML_ERROR_MEMORY;
	pthread_mutex_lock(&sets_lock);
	new->next = sets;
	sets = new;
	pthread_mutex_unlock(&sets_lock);
	*set = new;
	return NVML_SUCCESS;
}

ENTRY(nvmlEventSetFree, nvmlEventSet_t set)
{
	struct nvml_event_set **link;

	if (nvml_check() != NVML_SUCCESS)
		return NVML_ERROR_UNINITIALIZED;
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

/* Under the lock. What happened before the set began to watch the device is none of its. */
static nvmlReturn_t watch(struct watched *watched, unsigned device, uint64_t types)
{
	struct wire_event newest;
	nvmlReturn_t r = NVML_SUCCESS;

	if (!watched->types && types) {
		r = ask(QUESTION_nvmlEventSetWait_v2, device, /* which= */ 0, &newest,
			sizeof(newest));
		if (r == NVML_SUCCESS)
			watched->seen = newest.number;
	}
	if (r == NVML_SUCCESS)
		watched->types |= types;
	return r;
}

ENTRY(nvmlDeviceRegisterEvents, nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
	unsigned long long supported;
	unsigned number;
	nvmlReturn_t r = device_check(device, set, &number);

	if (r == NVML_SUCCESS)
		r = ask(QUESTION_nvmlDeviceGetSupportedEventTypes, number, /* which= */ 0,
			&supported, sizeof(supported));
	if (r != NVML_SUCCESS)
		return r;
	if (types & ~supported)
		return NVML_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&sets_lock);
	r = set_find(set) ? watch(&set->devices[number], number, types)
			  : NVML_ERROR_INVALID_ARGUMENT;
	pthread_mutex_unlock(&sets_lock);
	return r;
}

/* Under the lock: NVML_SUCCESS with an event of a type that is waited for, or NVML_ERROR_TIMEOUT. */
static nvmlReturn_t device_look(struct watched *watched, unsigned device, nvmlEventData_t *ret)
{
	struct wire_event event;
	nvmlReturn_t r;

	do {
		r = ask(QUESTION_nvmlEventSetWait_v2, device, watched->seen, &event, sizeof(event));
		if (r != NVML_SUCCESS)
			return r;
		watched->seen = event.number;
	} while (!(event.type & watched->types));
	*ret = (nvmlEventData_t){
		.device = device_of(device),
		.eventType = event.type,
		.eventData = event.data,
		.gpuInstanceId = NVML_NO_INSTANCE,
		.computeInstanceId = NVML_NO_INSTANCE,
	};
	return NVML_SUCCESS;
}

/* Under the lock, likewise. */
static nvmlReturn_t set_look(struct nvml_event_set *set, nvmlEventData_t *ret)
{
	nvmlReturn_t r = NVML_ERROR_TIMEOUT;
	unsigned i;

	if (!set_find(set))
		return NVML_ERROR_INVALID_ARGUMENT;
	for (i = 0; i < MAX_DEVICES && r == NVML_ERROR_TIMEOUT; i++)
		if (set->devices[i].types)
			r = device_look(&set->devices[i], i, ret);
	return r;
}

static nvmlReturn_t set_wait(struct nvml_event_set *set, unsigned timeout_ms, nvmlEventData_t *ret)
{
	uint64_t now, end = clock_now_ns(CLOCK_MONOTONIC) + timeout_ms * NS_PER_MS;
	struct timespec nap = { 0 };
	nvmlReturn_t r;

	if (nvml_check() != NVML_SUCCESS)
		return NVML_ERROR_UNINITIALIZED;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (;;) {
		pthread_mutex_lock(&sets_lock);
		r = set_look(set, ret);
		pthread_mutex_unlock(&sets_lock);
		now = clock_now_ns(CLOCK_MONOTONIC);
		if (r != NVML_ERROR_TIMEOUT || now >= end)
			return r;
		nap.tv_nsec = (long)MIN(end - now, (uint64_t)NAP_NS);
		nanosleep(&nap, NULL);
	}
}

ENTRY(nvmlEventSetWait, nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
	nvmlEventData_t event;
	nvmlReturn_t r = set_wait(set, timeout_ms, data ? &event : NULL);

	if (r == NVML_SUCCESS)
		memcpy(data, &event, NVML_FIRST_EVENT_SIZE);
	return r;
}

ENTRY(nvmlEventSetWait_v2, nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
	return set_wait(set, timeout_ms, data);
}
