/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of limits that a request asks for: reading them, and who may make them.
 */
#ifndef DAEMON_CHANGE_H
#define DAEMON_CHANGE_H

#include "daemon/daemon.h"

/**
 * change_limits() - bring "limits" and "gpu" of a request into limits
 *
 * Devices may be named by index or the beginning of a UUID; what is stored is the
 * UUID. null takes a limit away.
 *
 * Return: 0, or -EINVAL with the request's error filled in; @limits may then be
 * changed in part.
 */
int change_limits(struct daemon *d, const struct request *q, struct limits *limits);

/**
 * change_check_nested() - may a user give these limits to what he starts?
 *
 * His own limits hold around it, so he may set anything but what would give him
 * more than others allow him: a guarantee, a weight, and what happens when nobody
 * can answer.
 */
int change_check_nested(struct daemon *d, const struct request *q, const struct limits *limits);

/**
 * change_check_lowered() - may a user take this off his own limits?
 */
int change_check_lowered(struct daemon *d, const struct request *q, const struct tenant *t,
			 const struct limits *lowered);

/**
 * change_check_depth() - has a cgroup room for one more tenant inside all those around it?
 */
int change_check_depth(struct daemon *d, const struct request *q, const char *cgroup);

/**
 * change_warnings() - what whoever sets limits should know: an array of sentences
 */
json_t *change_warnings(struct daemon *d, const struct tenant *t);

#endif
