/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between a node and the controller, inside MUNGE credentials.
 *
 * MUNGE is there wherever Slurm is, and who has its key can have Slurm do anything already, so it adds
 * no key to hand out and no circle of trust to keep. A credential says which user sealed it, on any
 * machine of the cluster; which machine, it does not say: that is told by the address of whoever sends
 * it, see listen.h. Its age and that it is opened once are checked by MUNGE, and that it is an answer
 * to this very question, by a nonce in what is sealed.
 */
#ifndef CLUSTER_SEAL_H
#define CLUSTER_SEAL_H

#include "cluster/report.h"

#include <sys/types.h>

/**
 * seal_close() - put a text into a credential
 * @socket:	of munged; NULL for MUNGE's own
 * @reader:	the one user who can open it
 * @reason:	filled in on -EIO
 *
 * Return: 0 with a text without line breaks in @ret, which the caller frees, -EIO or -ENOMEM.
 */
int seal_close(const char *socket, uid_t reader, const char *text, char **ret,
	       char reason[REPORT_REASON]);

/**
 * seal_open() - take the text out of a credential
 * @ret_uid:	who sealed it
 * @reason:	filled in on -EACCES
 *
 * Return: 0, -EACCES for what is no credential, or one that is old or was opened before, or -ENOMEM.
 */
int seal_open(const char *socket, const char *credential, char **ret, uid_t *ret_uid,
	      char reason[REPORT_REASON]);

#endif
