// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/class/misc/cotenant0/counters/: what went through the kernel since the device began.
 *
 * doorbell_records counts submissions that the kernel told the host of; those that a process rings by its
 * mapped page are not to be seen here, so with user_doorbell=1 it stays 0, and with 0 doorbell_maps does.
 */
#include <linux/device.h>
#include <linux/sysfs.h>

#include "cotenant.h"

struct counter_attribute {
	struct device_attribute attribute;
	enum counter counter;
};

static ssize_t counter_show(struct device *dev, struct device_attribute *attribute, char *buffer)
{
	struct ctn_device *device = container_of(dev_get_drvdata(dev), struct ctn_device, misc);
	struct counter_attribute *which =
		container_of(attribute, struct counter_attribute, attribute);

	return sysfs_emit(buffer, "%lld\n",
			  (long long)atomic64_read(&device->counters[which->counter]));
}

#define COUNTER(name, number)                                                                      \
	static struct counter_attribute counter_##name = {                                         \
		.attribute = __ATTR(name, 0444, counter_show, NULL),                               \
		.counter = number,                                                                 \
	}

COUNTER(sessions, COUNTER_SESSIONS);
COUNTER(requests, COUNTER_REQUESTS);
COUNTER(doorbell_maps, COUNTER_DOORBELL_MAPS);
COUNTER(doorbell_records, COUNTER_DOORBELL_RECORDS);
COUNTER(waits, COUNTER_WAITS);
COUNTER(calls, COUNTER_CALLS);
COUNTER(pinned_pages, COUNTER_PINNED_PAGES);
COUNTER(leaked_pages, COUNTER_LEAKED_PAGES);

static struct attribute *counters[] = {
	&counter_sessions.attribute.attr,
	&counter_requests.attribute.attr,
	&counter_doorbell_maps.attribute.attr,
	&counter_doorbell_records.attribute.attr,
	&counter_waits.attribute.attr,
	&counter_calls.attribute.attr,
	&counter_pinned_pages.attribute.attr,
	&counter_leaked_pages.attribute.attr,
	NULL,
};

static const struct attribute_group counter_group = {
	.name = "counters",
	.attrs = counters,
};

const struct attribute_group *ctn_counter_groups[] = { &counter_group, NULL };
