/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cotenant-slurm says to cotenant-node whenever Slurm hears the node: a line.
 *
 *	ASKED_MS TIMEOUT_MS CONTROLLERS [JOB ...]
 *
 *	4711000 300000 head:6817,spare:6817 3 7
 *
 * It is all that has to be known when nobody answers any more. So the latest one is kept, where the death
 * of neither program ends it, and handed to the one that is started anew.
 */
#ifndef CLUSTER_CONTACT_LINE_H
#define CLUSTER_CONTACT_LINE_H

#include "base/base.h"

#define CONTACT_LINE_SIZE     65536
#define CONTACT_NO_CONTROLLER "-"

/**
 * struct contact_line - what a line says; its texts are the line's
 * @asked_ms:		when Slurm was asked, by CLOCK_BOOTTIME
 * @timeout_ms:		SlurmdTimeout
 * @controllers:	where slurmctld listens, each as HOST:PORT, commas between them; or CONTACT_NO_CONTROLLER
 * @controllers_len:	that many bytes of it
 * @kept:		the jobs of the node that Slurm starts nowhere else when it gives up the node: "3 7"
 */
struct contact_line {
	uint64_t asked_ms;
	uint64_t timeout_ms;
	const char *controllers;
	size_t controllers_len;
	const char *kept;
};

/**
 * contact_line_parse() - what a line says
 * @line:	without its end
 *
 * Return: 0, or -EINVAL.
 */
int contact_line_parse(const char *line, struct contact_line *ret);

#endif
