/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a container runtime tells a hook, and what of it is a request.
 *
 *	{"id": "web", "pid": 4711, "bundle": "/...",
 *	 "annotations": {"cotenant.memory.low": "3G", "cotenant.gpu": "0,1"}}
 */
#ifndef CTL_OCI_H
#define CTL_OCI_H

#include "base/base.h"

#include <jansson.h>

#define OCI_REASON_SIZE 200

/* Annotations that begin so are ours; behind it stands a limit, "gpu" or "name". */
#define OCI_PREFIX "cotenant."

/**
 * oci_state_parse() - read the state that a hook gets
 * @reason:	filled in on -EBADMSG
 *
 * Return: 0 with an object that has a usable id and pid, -EBADMSG, or -ENOMEM.
 */
int oci_state_parse(const char *bytes, size_t len, json_t **ret, char reason[OCI_REASON_SIZE]);

/**
 * oci_request() - the arguments of run.begin that a container asks for
 * @annotations:	of the state or of config.json; NULL for none
 * @ret:		NULL where it asks for nothing
 *
 * Return: 0, -EBADMSG with @reason, or -ENOMEM.
 */
int oci_request(const json_t *state, const json_t *annotations, json_t **ret,
		char reason[OCI_REASON_SIZE]);

#endif
