/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Keeping services running: look at what is, order what is missing, and again.
 */
#ifndef CLUSTER_KEEP_H
#define CLUSTER_KEEP_H

#include "cluster/controller/listen.h"
#include "cluster/controller/store.h"

/**
 * struct keep_options - how
 * @interval_ms:	from one look to the next
 * @settle_ms:		how long an order without an answer may still arrive: Slurm's MessageTimeout
 * @lease_ms:		how long a controller that is not heard of keeps the others waiting
 * @listen:		where nodes report to; without an address, what Slurm says of them is enough
 */
struct keep_options {
	const char *path;
	uint64_t interval_ms;
	uint64_t settle_ms;
	uint64_t lease_ms;
	struct listen_options listen;
};

/**
 * keep_services() - until SIGTERM or SIGINT; waits while another controller has the file
 *
 * Return: 0, or a fault that was logged.
 */
int keep_services(const struct keep_options *options);

#endif
