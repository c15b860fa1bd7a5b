// SPDX-License-Identifier: Apache-2.0
/*
 * Sets of events. Of devices there is one kind: a kernel has failed (an Xid, as drivers number
 * them). Those of the system tell of devices that come and go, which none of ours does: a wait for
 * them ends with its time.
 */
#include "softgpu/nvml/nvml.h"

#include "softgpu/engine/engine.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EVENT_XID    0x8ull
#define EVENT_UNBIND 0x1ull
#define EVENT_BIND   0x2ull
#define NAP_NS	     100000000 /* between looks at the devices that are not waited on */
#define NS_PER_MS    1000000ull
#define MS_PER_S     1000
#define FOR_EVER_MS  0xffffffffu

enum kind { OF_DEVICES, OF_SYSTEM };

/*
 * @kind:	what is told; calls of one kind take no set of the other
 * @is_watched:	devices whose events are wanted
 * @n_seen:	failures of each that have been told, or were before it was registered
 */
struct nvml_event_set {
	struct nvml_event_set *next;
	enum kind kind;
	bool is_watched[SOFTGPU_DEVICES_MAX];
	uint64_t n_seen[SOFTGPU_DEVICES_MAX];
};

/* All sets, so that a stale one is told from a good one. The lock guards what is in them. */
static pthread_mutex_t sets_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nvml_event_set *sets;

/* Under the lock: where the set is linked; NULL if it is none. */
static struct nvml_event_set **set_find(const struct nvml_event_set *set, enum kind kind)
{
	for (struct nvml_event_set **p = &sets; *p; p = &(*p)->next) {
		if (*p == set && set->kind == kind)
			return p;
	}
	return NULL;
}

static nvmlReturn_t set_create(enum kind kind, nvmlEventSet_t *ret_set)
{
	struct nvml_event_set *set = calloc(1, sizeof(*set));

	if (!set)
		return NVML_ERROR_MEMORY;
	set->kind = kind;
	pthread_mutex_lock(&sets_lock);
	set->next = sets;
	sets = set;
	pthread_mutex_unlock(&sets_lock);
	*ret_set = set;
	return NVML_SUCCESS;
}

static nvmlReturn_t set_free(enum kind kind, nvmlEventSet_t set)
{
	struct nvml_event_set **link;

	pthread_mutex_lock(&sets_lock);
	link = set_find(set, kind);
	if (link)
		*link = set->next;
	pthread_mutex_unlock(&sets_lock);
	if (!link)
		return NVML_ERROR_INVALID_ARGUMENT;
	free(set);
	return NVML_SUCCESS;
}

/* Of devices */

CALL(nvmlEventSetCreate, nvmlEventSet_t *set)
{
	nvmlReturn_t r = nvml_check();

	if (r != NVML_SUCCESS)
		return r;
	return set ? set_create(OF_DEVICES, set) : NVML_ERROR_INVALID_ARGUMENT;
}

CALL(nvmlEventSetFree, nvmlEventSet_t set)
{
	nvmlReturn_t r = nvml_check();

	return r == NVML_SUCCESS ? set_free(OF_DEVICES, set) : r;
}

CALL(nvmlDeviceRegisterEvents, nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, set, &dev);

	if (r != NVML_SUCCESS)
		return r;
	if (types & ~EVENT_XID)
		return NVML_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&sets_lock);
	if (!set_find(set, OF_DEVICES)) {
		r = NVML_ERROR_INVALID_ARGUMENT;
	} else if (types && !set->is_watched[dev]) {
		set->is_watched[dev] = true;
		set->n_seen[dev] = state_fault_last(nvml.state, dev, NULL);
	}
	pthread_mutex_unlock(&sets_lock);
	return r;
}

/* What a wait that found nothing can sleep on. */
struct watch {
	unsigned dev;
	uint64_t n;
};

/* Under the lock: NVML_SUCCESS with an event, or NVML_ERROR_TIMEOUT if there is none yet. */
static nvmlReturn_t set_look(struct nvml_event_set *set, nvmlEventData_t *data, struct watch *watch)
{
	uint32_t xid = 0;
	uint64_t n;

	/* Of a set that watches none, any device will do. */
	*watch = (struct watch){ .n = state_fault_last(nvml.state, 0, NULL) };
	for (unsigned dev = 0; dev < state_n_devices(nvml.state); dev++) {
		if (!set->is_watched[dev])
			continue;
		n = state_fault_last(nvml.state, dev, &xid);
		*watch = (struct watch){ .dev = dev, .n = n };
		if (n == set->n_seen[dev])
			continue;
		set->n_seen[dev] = n;
		*data = (nvmlEventData_t){
			.device = device_handle(dev),
			.eventType = EVENT_XID,
			.eventData = xid,
			.gpuInstanceId = NVML_NO_INSTANCE,
			.computeInstanceId = NVML_NO_INSTANCE,
		};
		return NVML_SUCCESS;
	}
	return NVML_ERROR_TIMEOUT;
}

static nvmlReturn_t set_check(nvmlEventSet_t set, nvmlEventData_t *data, struct watch *watch)
{
	nvmlReturn_t r = NVML_ERROR_INVALID_ARGUMENT;

	pthread_mutex_lock(&sets_lock);
	if (set_find(set, OF_DEVICES))
		r = set_look(set, data, watch);
	pthread_mutex_unlock(&sets_lock);
	return r;
}

static nvmlReturn_t set_wait(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
	uint64_t end_ns =
		timeout_ms == FOR_EVER_MS ? UINT64_MAX : engine_now_ns() + timeout_ms * NS_PER_MS;
	struct watch watch;
	nvmlReturn_t r = nvml_check();
	uint64_t now_ns;

	if (r != NVML_SUCCESS)
		return r;
	if (!data)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (;;) {
		r = set_check(set, data, &watch);
		now_ns = engine_now_ns();
		if (r != NVML_ERROR_TIMEOUT || now_ns >= end_ns)
			return r;
		state_fault_wait(nvml.state, watch.dev, watch.n,
				 end_ns - now_ns < NAP_NS ? end_ns - now_ns : NAP_NS);
	}
}

CALL(nvmlEventSetWait, nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
	nvmlEventData_t event;
	nvmlReturn_t r = set_wait(set, data ? &event : NULL, timeout_ms);

	if (r == NVML_SUCCESS)
		memcpy(data, &event, NVML_FIRST_EVENT_SIZE);
	return r;
}

CALL(nvmlEventSetWait_v2, nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
	return set_wait(set, data, timeout_ms);
}

/* Of the system */

/* Each call takes one structure, which begins with its version. */
static nvmlReturn_t request_check(const void *request, unsigned expected)
{
	const unsigned *version = request;
	nvmlReturn_t r = nvml_check();

	if (r != NVML_SUCCESS)
		return r;
	if (!version)
		return NVML_ERROR_INVALID_ARGUMENT;
	return *version == expected ? NVML_SUCCESS : NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
}

static nvmlReturn_t system_set_check(nvmlEventSet_t set)
{
	bool is_one;

	pthread_mutex_lock(&sets_lock);
	is_one = set_find(set, OF_SYSTEM);
	pthread_mutex_unlock(&sets_lock);
	return is_one ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

CALL(nvmlSystemEventSetCreate, nvmlSystemEventSetRequest_t *request)
{
	nvmlReturn_t r =
		request_check(request, NVML_STRUCT_VERSION(nvmlSystemEventSetRequest_t, 1));

	return r == NVML_SUCCESS ? set_create(OF_SYSTEM, &request->set) : r;
}

CALL(nvmlSystemEventSetFree, nvmlSystemEventSetRequest_t *request)
{
	nvmlReturn_t r =
		request_check(request, NVML_STRUCT_VERSION(nvmlSystemEventSetRequest_t, 1));

	return r == NVML_SUCCESS ? set_free(OF_SYSTEM, request->set) : r;
}

CALL(nvmlSystemRegisterEvents, nvmlSystemRegisterEventRequest_t *request)
{
	nvmlReturn_t r =
		request_check(request, NVML_STRUCT_VERSION(nvmlSystemRegisterEventRequest_t, 1));

	if (r != NVML_SUCCESS)
		return r;
	if (request->eventTypes & ~(EVENT_UNBIND | EVENT_BIND))
		return NVML_ERROR_INVALID_ARGUMENT;
	return system_set_check(request->set);
}

CALL(nvmlSystemEventSetWait, nvmlSystemEventSetWaitRequest_t *request)
{
	nvmlReturn_t r =
		request_check(request, NVML_STRUCT_VERSION(nvmlSystemEventSetWaitRequest_t, 1));
	struct timespec rest;

	if (r == NVML_SUCCESS)
		r = system_set_check(request->set);
	if (r != NVML_SUCCESS)
		return r;
	rest.tv_sec = request->timeoutms / MS_PER_S;
	rest.tv_nsec = (long)(request->timeoutms % MS_PER_S * NS_PER_MS);
	request->numEvent = 0;
	/* A signal's handler runs and the wait goes on: its end is what was asked for. */
	while (nanosleep(&rest, &rest) < 0)
		;
	return NVML_ERROR_TIMEOUT;
}
