/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is to be done so that the jobs that there are become those that there should be.
 *
 * A pure function without memory: what services there are, what Slurm says of jobs and nodes, in;
 * orders to Slurm, out. Whoever carries them out may die between any two of them, or before any of
 * them is known to have arrived, and whoever takes over asks again and goes on.
 *
 *	submit	-> held --release--> pending --(Slurm)--> running --(end)--> gone
 *		    ^  \__move (new device)
 *		    '---- requeued and held, with no device: moved away from its node
 *
 * An instance is a service and a number below the service's count of replicas. Its job says so itself
 * (in its comment, beside the request UUID), and is submitted held: it is released only once it is seen
 * to be the one job of its instance, on a device that has room. So of two that were submitted for one
 * instance, by a controller and by the one after it, one at most ever runs.
 *
 * Orders that were sent and not answered may arrive late. Who takes over, or had no answer, waits until
 * they have arrived or never will (Slurm's MessageTimeout), and then asks again.
 */
#ifndef CLUSTER_RECONCILE_H
#define CLUSTER_RECONCILE_H

#include "cluster/placement.h"

#define RECONCILE_NO_DEVICE SIZE_MAX

/**
 * struct reconcile_raises - the instances of a service that ask for more than the others
 * @items:	in the order of their numbers
 */
struct reconcile_raises {
	struct reconcile_raise {
		uint32_t instance;
		uint64_t memory_mib;
	} * items;
	size_t n;
};

/**
 * reconcile_request_mib() - what an instance asks for
 * @memory_mib:	what the others do
 * @raises:	NULL for none
 */
uint64_t reconcile_request_mib(uint64_t memory_mib, const struct reconcile_raises *raises,
			       uint32_t instance);

/**
 * struct reconcile_service - what should be
 * @id:		not 0
 * @priority:	who has more is placed first; then the lower id
 * @order:	how its instances are spread
 * @raises:	NULL for none
 */
struct reconcile_service {
	uint32_t id;
	uint32_t n_replicas;
	uint32_t priority;
	uint64_t memory_mib;
	uint32_t compute_permille;
	enum placement_order order;
	const struct reconcile_raises *raises;
};

enum reconcile_state {
	RECONCILE_HELD, /* until we release it */
	RECONCILE_PENDING,
	RECONCILE_RUNNING,
	RECONCILE_ENDING, /* what it had is still taken */
};

/**
 * struct reconcile_job - a job that is; those that have ended are not
 * @id:		Slurm's, which uses it again after a crash
 * @service:	0 for somebody else's job: it is counted and left alone
 * @instance:	number of the instance of the service
 * @device:	RECONCILE_NO_DEVICE where none is booked for it
 * @avoid_node:	where it was moved away from, or PLACEMENT_NO_NODE
 */
struct reconcile_job {
	uint32_t id;
	uint32_t service;
	uint32_t instance;
	enum reconcile_state state;
	size_t device;
	uint64_t memory_mib;
	uint32_t compute_permille;
	uint32_t avoid_node;
};

/**
 * struct reconcile_view - all that is known
 * @jobs:	each has one entry
 * @devices:	what is booked of them is what none of @jobs explains; their nodes are below @n_nodes
 */
struct reconcile_view {
	const struct reconcile_service *services;
	size_t n_services;
	const struct reconcile_job *jobs;
	size_t n_jobs;
	const struct placement_device *devices;
	size_t n_devices;
	uint32_t n_nodes;
};

enum reconcile_kind {
	RECONCILE_SUBMIT,  /* held, bound to @device */
	RECONCILE_RELEASE, /* @job */
	RECONCILE_MOVE,	   /* @job, which is held, to @device */
	RECONCILE_CANCEL,  /* @job */
	RECONCILE_WAIT,	   /* nothing: the instance waits for room */
};

enum reconcile_reason {
	RECONCILE_WANTED,
	RECONCILE_UNWANTED,   /* its service is gone, or has fewer instances */
	RECONCILE_SECOND,     /* another job is the instance */
	RECONCILE_LOST_PLACE, /* it has not begun, and its device is out of use or full */
};

/** struct reconcile_action - an order; @job is 0 where there is none yet */
struct reconcile_action {
	enum reconcile_kind kind;
	enum reconcile_reason reason;
	uint32_t job;
	uint32_t service;
	uint32_t instance;
	size_t device;
};

struct reconcile_actions {
	struct reconcile_action *items;
	size_t n;
	size_t cap;
};

/**
 * reconcile() - the orders that bring what is nearer to what should be
 * @books:	n_devices of them: filled in with what is booked once all is carried out
 * @ret:	emptied, then filled in, in the order in which to send
 *
 * Return: 0 or -ENOMEM.
 */
int reconcile(const struct reconcile_view *view, struct placement_device *books,
	      struct reconcile_actions *ret);

void reconcile_actions_done(struct reconcile_actions *actions);

/**
 * reconcile_kind_name(), reconcile_reason_name() - the words that the log has for them
 */
const char *reconcile_kind_name(enum reconcile_kind kind);
const char *reconcile_reason_name(enum reconcile_reason reason);

#endif
