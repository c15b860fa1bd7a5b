/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What nodes report, written down for the command, which asks no controller.
 */
#ifndef CLUSTER_TELLING_H
#define CLUSTER_TELLING_H

#include "cluster/controller/listen.h"
#include "cluster/controller/store.h"

/**
 * struct telling - the nodes as they were written last: what is as it was is not written again
 */
struct telling {
	struct store_node *nodes;
	size_t n_nodes;
};

/**
 * telling_write() - write what has changed
 *
 * Return: 0, or a fault that was logged; it is then tried again with the next.
 */
int telling_write(struct telling *told, struct listener *listener, struct store *store);

void telling_done(struct telling *told);

#endif
