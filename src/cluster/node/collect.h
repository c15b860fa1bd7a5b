/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node's report out of what its daemon answers.
 */
#ifndef CLUSTER_COLLECT_H
#define CLUSTER_COLLECT_H

#include "cluster/report.h"

#include <jansson.h>

/**
 * collect_report() - make one of three answers
 * @devices, @tenants, @incidents:	of devices.list, tenants.list, incidents.list
 * @report:	the node's name and the nonce are there; the lists are filled in
 *
 * What is not known, such as the memory of a device that does not answer, is left out, and so is what
 * is more than a report has room for.
 *
 * Return: 0 or -ENOMEM.
 */
int collect_report(const json_t *devices, const json_t *tenants, const json_t *incidents,
		   struct report *report);

/**
 * collect_ask() - ask the daemon, and make one of what it says
 * @until_ms:	of channel_now_ms(): who has not answered by then does not answer
 * @reason:	filled in on -EIO
 *
 * Return: 0, -EIO or -ENOMEM.
 */
int collect_ask(const char *socket, uint64_t until_ms, struct report *report,
		char reason[REPORT_REASON]);

#endif
