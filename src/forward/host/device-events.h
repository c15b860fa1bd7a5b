/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens to devices, in the watcher.
 *
 * NVML tells each event of a set once, and a broker has many that ask. So there is one set for each device
 * that was ever asked about, and its last events are kept, numbered, until newer ones take their place.
 */
#ifndef FORWARD_HOST_DEVICE_EVENTS_H
#define FORWARD_HOST_DEVICE_EVENTS_H

#include "forward/question.h"

#include <stdint.h>

/* How many are kept of each device. */
#define DEVICE_EVENTS_KEPT 64

/** device_events_load() - find the calls in the host's NVML, of which dlopen() has said @library */
void device_events_load(void *library);

/**
 * device_events_tell() - the next event
 * @uuid:	of @device, whose handle may be another each time
 * @after:	the number of the one before; 0: none is told, but the newest's number
 *
 * Return: NVML_SUCCESS; NVML_ERROR_TIMEOUT: there is no newer one; else why none can be told.
 */
nvmlReturn_t device_events_tell(nvmlDevice_t device, const uint8_t uuid[16], uint64_t after,
				struct wire_event *ret);

#endif
