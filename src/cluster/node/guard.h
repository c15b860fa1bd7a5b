/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends what Slurm may start elsewhere, before it does, where Slurm hears this node no more.
 *
 * That is the node's own business: whoever cannot be heard cannot be told. Where cotenant-cluster alone is
 * gone, or cut off, nothing ends, as Slurm starts nothing anew then.
 */
#ifndef CLUSTER_GUARD_H
#define CLUSTER_GUARD_H

#include "base/base.h"

#include <signal.h>

/**
 * struct guard_options - of which node
 * @node:		as Slurm calls it
 * @socket:		of cotenantd
 * @batch_program:	cotenant-slurm, by its path or its name
 * @state:		the file of lease-memory.h
 */
struct guard_options {
	const char *node;
	const char *socket;
	const char *batch_program;
	const char *state;
};

/**
 * guard_run() - until it is over
 *
 * Return: 0, or what the kernel said where it could not begin.
 */
int guard_run(const struct guard_options *options, const volatile sig_atomic_t *is_over);

#endif
