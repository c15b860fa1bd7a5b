/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's libnvidia-ml.so.1: what every call of it builds on.
 *
 * It has a session with the host as the guest's libcuda.so.1 has, and knows nothing by itself: what the host
 * tells of is the devices, the limits and the processes of the virtual machine, or of the one command.
 */
#ifndef FORWARD_NVML_NVML_H
#define FORWARD_NVML_NVML_H

#include "forward/question.h"

#include <stddef.h>

#define ENTRY(name, ...)                                                                           \
	__attribute__((visibility("default"))) nvmlReturn_t name(__VA_ARGS__);                     \
	__attribute__((visibility("default"))) nvmlReturn_t name(__VA_ARGS__)

/** nvml_check() - NVML_SUCCESS between nvmlInit() and nvmlShutdown() */
nvmlReturn_t nvml_check(void);

/**
 * ask() - a question to the host
 * @device:	by its number, where the question is about one
 * @which:	as in struct wire_question
 * @ret:	@size bytes of the answer, which has ANSWER_SIZE
 */
nvmlReturn_t ask(enum question question, unsigned device, uint64_t which, void *ret, size_t size);

/** ask_text() - the same for a text: NVML_ERROR_INSUFFICIENT_SIZE where there is no room for it */
nvmlReturn_t ask_text(enum question question, unsigned device, char *ret, unsigned size);

/** device_ask() - the same by a handle. NVML_ERROR_INVALID_ARGUMENT where it is none, or @ret is NULL */
nvmlReturn_t device_ask(nvmlDevice_t device, enum question question, uint64_t which, void *ret,
			size_t size);

/** device_check() - what every call about a device checks first */
nvmlReturn_t device_check(nvmlDevice_t device, const void *ret, unsigned *ret_number);

/** device_of() - the handle of a device by its number, which is below MAX_DEVICES */
nvmlDevice_t device_of(unsigned number);

#endif
