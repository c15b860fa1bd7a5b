/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What is known of the devices, loaded from slurmctld by a thread of its own.
 */
#ifndef SLURM_WATCH_H
#define SLURM_WATCH_H

#include "cluster/slurm/inventory.h"

/**
 * watch_start() - load now, and again after each submission and from time to time
 */
int watch_start(void);

/**
 * watch_stop() - load no more; does not wait for the thread
 */
void watch_stop(void);

/**
 * watch_choose() - inventory_choose() of what is known; what is chosen counts as waited for
 *
 * Return: as there; -EAGAIN while nothing is known.
 */
int watch_choose(const struct inventory_request *request, char **ret,
		 char reason[INVENTORY_REASON]);

#endif
