// SPDX-License-Identifier: Apache-2.0
/* What happens to devices is numbered and kept, whoever asks: on an NVML that is the calls below. */
#include "forward/host/device-events.h"

#include "base/base.h"
#include "base/check.h"

#include <dlfcn.h>

#define TYPES 0x18ull

/* Two devices, the set of each, and how many events it has that were not taken. */
static struct nvml_device {
	uint8_t uuid[16];
	int n_waiting;
	uint64_t next_data;
	bool is_lost;
} devices[2] = { { .uuid = { 1 } }, { .uuid = { 2 } } };

static struct nvml_event_set {
	struct nvml_device *device;
} sets[8];

static int n_sets, n_freed;
static nvmlReturn_t types_result;

#define NVML(name, ...)                                                                            \
	__attribute__((visibility("default"))) nvmlReturn_t name(__VA_ARGS__);                     \
	__attribute__((visibility("default"))) nvmlReturn_t name(__VA_ARGS__)

NVML(nvmlEventSetCreate, nvmlEventSet_t *ret)
{
	*ret = &sets[n_sets++];
	return NVML_SUCCESS;
}

NVML(nvmlEventSetFree, _unused_ nvmlEventSet_t set)
{
	n_freed++;
	return NVML_SUCCESS;
}

NVML(nvmlDeviceGetSupportedEventTypes, _unused_ nvmlDevice_t device, unsigned long long *ret)
{
	*ret = TYPES;
	return types_result;
}

NVML(nvmlDeviceRegisterEvents, nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
	set->device = device;
	return types == TYPES ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

NVML(nvmlEventSetWait_v2, nvmlEventSet_t set, nvmlEventData_t *ret, unsigned timeout_ms)
{
	struct nvml_device *device = set->device;

	if (device->n_waiting == 0 || timeout_ms)
		return device->is_lost ? NVML_ERROR_GPU_IS_LOST : NVML_ERROR_TIMEOUT;
	device->n_waiting--;
	*ret = (nvmlEventData_t){ .eventType = 8, .eventData = device->next_data++ };
	return NVML_SUCCESS;
}

static nvmlReturn_t tell(struct nvml_device *device, uint64_t after, struct wire_event *ret)
{
	return device_events_tell(device, device->uuid, after, ret);
}

static void test_refused(void)
{
	struct wire_event event;

	check(tell(&devices[0], 0, &event) == NVML_ERROR_NOT_SUPPORTED,
	      "nothing is told before there is a library");
	device_events_load(dlopen(NULL, RTLD_NOW));
	types_result = NVML_ERROR_NO_PERMISSION;
	check(tell(&devices[0], 0, &event) == NVML_ERROR_NO_PERMISSION && n_sets == 1 &&
		      n_freed == 1,
	      "where a device tells nothing, why is told, and no set stays");
	types_result = NVML_SUCCESS;
}

static void test_numbers(void)
{
	struct wire_event first, event;
	uint64_t begin;

	check(tell(&devices[0], 0, &event) == NVML_SUCCESS && event.number > 0 && event.type == 0,
	      "the first question is told where the numbers begin");
	begin = event.number;
	check(tell(&devices[0], begin, &event) == NVML_ERROR_TIMEOUT, "and there is no event yet");
	devices[0].n_waiting = 2;
	check(tell(&devices[0], begin, &first) == NVML_SUCCESS && first.number == begin + 1 &&
		      first.type == 8 && first.data == 0,
	      "of two events the first is told");
	check(tell(&devices[0], first.number, &event) == NVML_SUCCESS && event.data == 1,
	      "and then the second");
	check(tell(&devices[0], event.number, &event) == NVML_ERROR_TIMEOUT, "and no third");
	check(tell(&devices[0], begin, &event) == NVML_SUCCESS && event.number == first.number,
	      "who asks later is told both");
	check(tell(&devices[0], 0, &event) == NVML_SUCCESS && event.number == begin + 2,
	      "whoever begins now is told neither");
	check(tell(&devices[0], UINT64_MAX, &event) == NVML_ERROR_TIMEOUT,
	      "no number is too high to be asked with");
}

static void test_another_device(void)
{
	struct wire_event event;

	devices[1].n_waiting = 1;
	check(tell(&devices[1], 0, &event) == NVML_SUCCESS && n_sets == 3,
	      "another device has a set of its own");
	check(tell(&devices[1], event.number - 1, &event) == NVML_SUCCESS && event.data == 0,
	      "and events of its own");
	check(tell(&devices[0], 0, &event) == NVML_SUCCESS && n_sets == 3 && event.number == 3,
	      "the first one has none of them");
}

static void test_too_many(void)
{
	struct wire_event event = { .number = 3 };
	uint64_t begin;
	int n = 0;

	devices[0].n_waiting = 3 * DEVICE_EVENTS_KEPT;
	tell(&devices[0], event.number, &event);
	check(devices[0].n_waiting == 2 * DEVICE_EVENTS_KEPT,
	      "many events are taken a part at a time");
	tell(&devices[0], 0, &event);
	check(devices[0].n_waiting == 0 && event.number == 3 + 3 * DEVICE_EVENTS_KEPT,
	      "but by whoever begins now, whom none of them concerns");
	begin = event.number = 3;
	while (n < 1000 && tell(&devices[0], event.number, &event) == NVML_SUCCESS)
		n++;
	check(n == DEVICE_EVENTS_KEPT && event.data == devices[0].next_data - 1,
	      "of more than are kept the newest are told");
	check(begin + 3 * DEVICE_EVENTS_KEPT == event.number, "up to the last");
}

static void test_lost(void)
{
	struct wire_event begin, event;

	tell(&devices[1], 0, &begin);
	devices[1].n_waiting = 1;
	devices[1].is_lost = true;
	check(tell(&devices[1], begin.number, &event) == NVML_SUCCESS && event.type == 8,
	      "what happened before a device was lost is told");
	check(tell(&devices[1], event.number, &event) == NVML_ERROR_GPU_IS_LOST,
	      "and then that it is lost");
}

int main(void)
{
	test_refused();
	test_numbers();
	test_another_device();
	test_too_many();
	test_lost();
	return check_result();
}
