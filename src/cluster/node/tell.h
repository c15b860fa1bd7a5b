/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One report to one controller: connect, be asked, answer, and hear whether it was taken.
 */
#ifndef CLUSTER_TELL_H
#define CLUSTER_TELL_H

#include "base/base.h"

#define TELL_REASON 300

/**
 * struct tell_options - who tells whom
 * @node:		as Slurm calls it
 * @controller:		HOST:PORT
 * @controller_uid:	who the controller runs as: no other answer counts
 * @socket:		of cotenantd
 * @munge_socket:	NULL for MUNGE's own
 */
struct tell_options {
	const char *node;
	const char *controller;
	uid_t controller_uid;
	const char *socket;
	const char *munge_socket;
};

/**
 * tell_controller() - tell how it is now
 * @reason:	why that was not taken
 *
 * Return: 0; -EACCES where the controller refused it; -EIO where it never heard of it.
 */
int tell_controller(const struct tell_options *options, char reason[TELL_REASON]);

#endif
