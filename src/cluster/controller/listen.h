/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The controller's ear: nodes connect, and what they report is judged and kept, in threads of its own.
 *
 * A report counts as a node's where root sealed it and it comes from the address that Slurm has of the
 * node, from a port that only root may take. So a user can speak for no node, and a node for no other
 * one unless they share an address; and nobody can fill the places of somebody else's connections.
 */
#ifndef CLUSTER_LISTEN_H
#define CLUSTER_LISTEN_H

#include "cluster/controller/world.h"

struct listener;

/**
 * struct listen_options - how
 * @address:		HOST:PORT
 * @munge_socket:	NULL for MUNGE's own
 * @silent_ms:		nothing is placed on a node that was not heard for so long
 */
struct listen_options {
	const char *address;
	const char *munge_socket;
	uint64_t silent_ms;
};

/**
 * listener_start() - listen from now on
 * @options:	stays the caller's, and as it is
 *
 * Return: 0, -EINVAL for an address that is none, -ENOMEM, or what the kernel said.
 */
int listener_start(const struct listen_options *options, struct listener **ret);

/**
 * listener_learn() - what Slurm says now; devices of nodes that are silent are put out of use
 *
 * Return: 0 or -ENOMEM.
 */
int listener_learn(struct listener *listener, struct world *world);

/**
 * listener_each() - visit all nodes, while no report is taken
 *
 * Return: 0, or what @fn returned when it was not 0.
 */
typedef int (*listener_fn)(struct node *node, bool is_silent, void *userdata);
int listener_each(struct listener *listener, listener_fn fn, void *userdata);

/**
 * listener_stop() - hear nobody any more; accepts NULL
 */
void listener_stop(struct listener *listener);

#endif
