// SPDX-License-Identifier: Apache-2.0
/*
 * Sets of events. There is one kind: a kernel has failed (an Xid, as drivers number them).
 */
#include "softgpu/nvml/nvml.h"

#include "softgpu/engine/engine.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define EVENT_XID   0x8ull
#define NAP_NS	    100000000 /* between looks at the devices that are not waited on */
#define NS_PER_MS   1000000ull
#define FOR_EVER_MS 0xffffffffu

/* What nvmlEventSetWait() writes; it has the members behind these from its second version on. */
#define FIRST_EVENT_SIZE offsetof(nvmlEventData_t, gpuInstanceId)

/*
 * @is_watched:	devices whose events are wanted
 * @n_seen:	failures of each that have been told, or were before it was registered
 */
struct nvml_event_set {
	struct nvml_event_set *next;
	bool is_watched[SOFTGPU_DEVICES_MAX];
	uint64_t n_seen[SOFTGPU_DEVICES_MAX];
};

/* All sets, so that a stale one is told from a good one. The lock guards what is in them. */
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

CALL(nvmlEventSetCreate, nvmlEventSet_t *set)
{
	nvmlReturn_t r = nvml_check();
	struct nvml_event_set *new;

	if (r != NVML_SUCCESS)
		return r;
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

	if (r != NVML_SUCCESS)
		return r;
	if (types & ~EVENT_XID)
		return NVML_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&sets_lock);
	if (!set_find(set)) {
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
	if (set_find(set))
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
		memcpy(data, &event, FIRST_EVENT_SIZE);
	return r;
}

CALL(nvmlEventSetWait_v2, nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms)
{
	return set_wait(set, data, timeout_ms);
}
