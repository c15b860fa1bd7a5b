/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Slurm's public header, in the words that every release has.
 *
 * hostlist_t is a pointer up to Slurm 23.02 and a struct since 23.11. `struct hostlist *` is the same
 * in all of them.
 */
#ifndef SLURM_SLURM_API_H
#define SLURM_SLURM_API_H

#include <slurm/slurm.h>

#pragma GCC poison hostlist_t

#endif
