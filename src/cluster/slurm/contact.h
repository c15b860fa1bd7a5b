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
 * @before:	the latest line of the one that was started before this one; NULL for none
 *
 * The lines are those of contact-line.h.
 */
void contact_tell(const char *node, const char *before);

#endif
