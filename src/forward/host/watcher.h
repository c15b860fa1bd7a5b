/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The process that has the host's NVML for a broker.
 *
 * It is of the broker's pid namespace, so NVML's numbers of processes are those that the broker knows its
 * workers by; and of its cgroup, so where the tenant has limits the memory that NVML tells is the tenant's.
 * It hears of nothing but numbers that the broker has checked.
 */
#ifndef FORWARD_HOST_WATCHER_H
#define FORWARD_HOST_WATCHER_H

#include "forward/question.h"

#include <stdint.h>
#include <sys/types.h>

/**
 * struct watcher_question - what the broker asks
 * @which:	of a NUMBER_OF, a FIELD and an EVENT as in struct wire_question
 * @question:	enum question, but none of the form COUNT
 * @uuid:	the device's, where it is about one
 * @pids:	of a PROCESS: the first of these that uses the device is told
 */
struct watcher_question {
	uint64_t which;
	uint32_t question;
	uint32_t n_pids;
	uint8_t uuid[16];
	int32_t pids[WIRE_MAX_SESSIONS];
};

/**
 * struct watcher_answer - the answer
 * @result:	nvmlReturn_t
 * @pid:	of a PROCESS: which it is
 * @data:	as of struct wire_answer
 */
struct watcher_answer {
	int32_t result;
	int32_t pid;
	uint8_t data[ANSWER_SIZE] __attribute__((aligned(8)));
};

/**
 * watcher_start() - start it, while the broker has one thread. It ends with the broker
 * @library:	the host's NVML; it is loaded when the first question comes
 * @ret_fd:	our end of its socket
 *
 * Return: 0, or what the kernel said.
 */
int watcher_start(const char *library, int *ret_fd);

#endif
