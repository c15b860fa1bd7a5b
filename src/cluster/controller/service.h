/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A service: a command or an image of which some instances are to run, each on a part of a device;
 * and how an instance's job is known again.
 */
#ifndef CLUSTER_SERVICE_H
#define CLUSTER_SERVICE_H

#include "cluster/reconcile.h"

#define SERVICE_NAME   64
#define SERVICE_POLICY 16
#define SERVICE_IMAGE  256

/**
 * struct service - one service
 * @id:			never used again for another one
 * @command:		a line for a shell; "" for what an image itself would run
 * @image:		what podman is to run it in, "" for the node itself
 * @compute_permille:	of the device's time; 0 where it takes what is left over
 * @policy:		what is done about over-use, "" for the node's own choice
 * @raise_mib:		an instance that is evicted asks elsewhere for what it held, up to this; 0: no more than before
 * @raises:		what those that were evicted ask for since then, also where they are placed anew
 */
struct service {
	uint32_t id;
	char name[SERVICE_NAME];
	char *command;
	char image[SERVICE_IMAGE];
	char policy[SERVICE_POLICY];
	uint32_t n_replicas;
	uint32_t priority;
	uint64_t memory_mib;
	uint32_t compute_permille;
	enum placement_order order;
	uint64_t raise_mib;
	struct reconcile_raises raises;
};

struct services {
	struct service *items;
	size_t n;
};

/**
 * service_find(), service_by_id() - a service, or NULL; it is the list's
 */
const struct service *service_find(const struct services *services, const char *name);
const struct service *service_by_id(const struct services *services, uint32_t id);
void services_done(struct services *services);

/**
 * service_order_parse() - "binpack", "spread", "spread-nodes"
 *
 * Return: 0, or -EINVAL.
 */
int service_order_parse(const char *text, enum placement_order *ret);

/** service_order_name() - what service_order_parse() reads */
const char *service_order_name(enum placement_order order);

/**
 * service_request_mib() - what an instance that has no job asks for
 */
uint64_t service_request_mib(const struct service *service, uint32_t instance);

/**
 * service_raised() - what an instance asks for that was evicted
 * @memory_mib:	what it asked for
 * @note:	what was noted of what it held, see PEAK_NOTE; NULL for nothing
 */
uint64_t service_raised(const struct service *service, uint64_t memory_mib, const char *note);

/* In the administrator's comment of an instance's job: what it held at the most, in MiB. */
#define PEAK_NOTE      "cotenant-peak:"
#define PEAK_NOTE_SIZE 64

#define IDENTITY_PREFIX "cotenant:"
#define IDENTITY_UUID	37
#define IDENTITY_SIZE	128

/**
 * struct identity - what an instance's job says of itself in its comment
 * @n_placed:	how often Slurm had restarted it when it was last given a device: one that was
 *		restarted since was moved away from there
 * @uuid:	of the request; Slurm uses the numbers of jobs again after a crash
 */
struct identity {
	uint32_t service;
	uint32_t instance;
	uint32_t n_placed;
	char uuid[IDENTITY_UUID];
};

/**
 * identity_make() - of a new request
 */
int identity_make(uint32_t service, uint32_t instance, struct identity *ret);

/**
 * identity_print() - "cotenant:3:0:1:5b0c..."
 */
void identity_print(const struct identity *identity, char ret[IDENTITY_SIZE]);

/**
 * identity_parse() - read that
 *
 * Return: 0, or -EINVAL for what is no identity.
 */
int identity_parse(const char *comment, struct identity *ret);

#endif
