// SPDX-License-Identifier: Apache-2.0
#include "forward/host/device-events.h"

#include "base/base.h"

#include <dlfcn.h>
#include <string.h>

/* Of what has happened before; a device that never rests must not keep us for ever. */
#define PAST_MOST (64 * DEVICE_EVENTS_KEPT)

/*
 * @newest:	number of the event that came last; 1: none yet, as 0 is nobody's
 * @kept:	by their numbers, modulo
 */
struct device_events {
	uint8_t uuid[16];
	nvmlEventSet_t set;
	uint64_t newest;
	struct wire_event kept[DEVICE_EVENTS_KEPT];
};

static struct device_events devices[MAX_DEVICES];
static size_t n_devices;

static nvmlReturn_t (*set_create)(nvmlEventSet_t *ret);
static nvmlReturn_t (*set_free)(nvmlEventSet_t set);
static nvmlReturn_t (*set_wait)(nvmlEventSet_t set, nvmlEventData_t *ret, unsigned timeout_ms);
static nvmlReturn_t (*types_get)(nvmlDevice_t device, unsigned long long *ret);
static nvmlReturn_t (*events_register)(nvmlDevice_t device, unsigned long long types,
				       nvmlEventSet_t set);

void device_events_load(void *library)
{
	set_create = (__typeof__(set_create))dlsym(library, "nvmlEventSetCreate");
	set_free = (__typeof__(set_free))dlsym(library, "nvmlEventSetFree");
	set_wait = (__typeof__(set_wait))dlsym(library, "nvmlEventSetWait_v2");
	types_get = (__typeof__(types_get))dlsym(library, "nvmlDeviceGetSupportedEventTypes");
	events_register = (__typeof__(events_register))dlsym(library, "nvmlDeviceRegisterEvents");
}

/* Of all types: which of them somebody waits for, the guest knows. */
static nvmlReturn_t register_all(nvmlDevice_t device, nvmlEventSet_t set)
{
	unsigned long long types = 0;
	nvmlReturn_t r = types_get(device, &types);

	return r == NVML_SUCCESS ? events_register(device, types, set) : r;
}

static nvmlReturn_t events_begin(nvmlDevice_t device, const uint8_t uuid[16],
				 struct device_events **ret)
{
	struct device_events *events = &devices[n_devices];
	nvmlEventSet_t set;
	nvmlReturn_t r;

	if (!set_create || !set_free || !set_wait || !types_get || !events_register)
		return NVML_ERROR_NOT_SUPPORTED;
	if (n_devices == MAX_DEVICES)
		return NVML_ERROR_INSUFFICIENT_RESOURCES;
	r = set_create(&set);
	if (r != NVML_SUCCESS)
		return r;
	r = register_all(device, set);
	if (r != NVML_SUCCESS) {
		set_free(set);
		return r;
	}
	memcpy(events->uuid, uuid, sizeof(events->uuid));
	events->set = set;
	events->newest = 1;
	n_devices++;
	*ret = events;
	return NVML_SUCCESS;
}

static nvmlReturn_t events_find(nvmlDevice_t device, const uint8_t uuid[16],
				struct device_events **ret)
{
	size_t i;

	for (i = 0; i < n_devices; i++) {
		if (memcmp(devices[i].uuid, uuid, sizeof(devices[i].uuid)) != 0)
			continue;
		*ret = &devices[i];
		return NVML_SUCCESS;
	}
	return events_begin(device, uuid, ret);
}

/* What has come meanwhile, no more than @most. */
static nvmlReturn_t events_take(struct device_events *events, size_t most)
{
	nvmlEventData_t data;
	nvmlReturn_t r;
	size_t i;

	for (i = 0; i < most; i++) {
		r = set_wait(events->set, &data, /* timeout_ms= */ 0);
		if (r != NVML_SUCCESS)
			return r == NVML_ERROR_TIMEOUT ? NVML_SUCCESS : r;
		events->newest++;
		events->kept[events->newest % DEVICE_EVENTS_KEPT] = (struct wire_event){
			.number = events->newest,
			.type = data.eventType,
			.data = data.eventData,
		};
	}
	return NVML_SUCCESS;
}

nvmlReturn_t device_events_tell(nvmlDevice_t device, const uint8_t uuid[16], uint64_t after,
				struct wire_event *ret)
{
	struct device_events *events;
	nvmlReturn_t r = events_find(device, uuid, &events);

	if (r != NVML_SUCCESS)
		return r;
	r = events_take(events, after == 0 ? PAST_MOST : DEVICE_EVENTS_KEPT);
	if (after == 0) {
		*ret = (struct wire_event){ .number = events->newest };
		return r;
	}
	/* What happened before the device was lost is told first. */
	if (after >= events->newest)
		return r == NVML_SUCCESS ? NVML_ERROR_TIMEOUT : r;
	/* Who asks seldom finds the oldest that is kept. */
	if (events->newest - after > DEVICE_EVENTS_KEPT)
		after = events->newest - DEVICE_EVENTS_KEPT;
	*ret = events->kept[(after + 1) % DEVICE_EVENTS_KEPT];
	return NVML_SUCCESS;
}
