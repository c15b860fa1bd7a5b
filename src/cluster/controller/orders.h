/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Orders to Slurm: submit an instance's job, give it another device, let it go, cancel it.
 */
#ifndef CLUSTER_ORDERS_H
#define CLUSTER_ORDERS_H

#include "cluster/controller/world.h"

#define ORDER_WORDS 200

/**
 * order_send() - carry out one action
 * @ret_job:	the job it is about, also a new one
 * @words:	what was done, or why not
 *
 * Return: 0, or -EIO: it may have arrived all the same.
 */
int order_send(const struct world *world, const struct service *service,
	       const struct reconcile_action *action, uint32_t *ret_job, char words[ORDER_WORDS]);

#endif
