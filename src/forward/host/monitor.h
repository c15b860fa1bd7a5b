/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the guest's NVML asks, in the broker: which processes are the guest's, and who waits for the watcher.
 *
 * Of processes the watcher is only ever asked about those of this broker's workers, so of others nothing
 * comes here.
 */
#ifndef FORWARD_HOST_MONITOR_H
#define FORWARD_HOST_MONITOR_H

#include "forward/host/session.h"

/** monitor_begin() - the watcher is at the other end of @fd, which is taken over. Return: 0, or what the kernel said. */
int monitor_begin(int fd);

/**
 * monitor_ask() - a worker's WIRE_DEVICE
 *
 * Return: 0, and it is answered here or later; -EPROTO: it has not waited for the answer to the one before.
 */
int monitor_ask(struct session *session, const struct wire_message *message);

#endif
