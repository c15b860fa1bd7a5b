/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether Slurm hears a node, told again and again.
 */
#ifndef SLURM_CONTACT_H
#define SLURM_CONTACT_H

#include "base/base.h"

/**
 * contact_tell() - print a line whenever Slurm says that it hears the node, until nobody reads them
 * @node:	as Slurm calls it
 *
 *	ASKED_MS TIMEOUT_MS [JOB ...]
 *
 * ASKED_MS is when it was asked, by CLOCK_BOOTTIME; TIMEOUT_MS is SlurmdTimeout; the jobs are those of the
 * node that Slurm starts nowhere else when it gives up the node.
 */
void contact_tell(const char *node);

#endif
