/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the controller knows of its nodes: what Slurm says of each, and when the node itself last said
 * something that agrees with it.
 *
 * No I/O, no clock. A node that lies is refused, with the reason, and is then as one that is silent:
 * nothing is placed there any more, and nothing that runs there is ended. What it says of itself
 * changes nothing about anybody else: how much can be booked of a device is Slurm's to say.
 */
#ifndef CLUSTER_NODES_H
#define CLUSTER_NODES_H

#include "cluster/report.h"

#include <stdbool.h>

/**
 * struct node_facts - what Slurm says of a node
 * @address:		where it is reached; its reports come from there
 * @booked_out_mib:	of each of its devices, what of it is for jobs
 */
struct node_facts {
	char name[REPORT_NAME];
	char *address;
	uint64_t booked_out_mib[REPORT_DEVICES];
	size_t n_devices;
};

/**
 * struct node_job - a job that has a part of a node
 */
struct node_job {
	uint32_t id;
	char node[REPORT_NAME];
};

/**
 * struct node - one node
 * @heard_ms:	when a report was taken last, where one was
 * @n_taken:	how many were
 * @n_refused:	how many were not
 * @refused:	why the last one was not, or "" where it was taken
 * @last:	the last one that was taken
 * @has_news:	its incidents are other ones than before; who has written them down clears it
 */
struct node {
	struct node_facts facts;
	uint64_t heard_ms;
	uint64_t n_taken;
	uint64_t n_refused;
	char refused[REPORT_REASON];
	struct report last;
	bool has_news;
};

struct nodes {
	struct node *items;
	size_t n;
	struct node_job *jobs;
	size_t n_jobs;
};

/**
 * nodes_learn() - take what Slurm says now; of nodes that stay, what they reported stays
 * @facts, @jobs:	become the nodes', also on failure
 *
 * Return: 0 or -ENOMEM.
 */
int nodes_learn(struct nodes *nodes, struct node_facts *facts, size_t n_facts,
		struct node_job *jobs, size_t n_jobs);

/**
 * nodes_find() - a node by its name in Slurm, or NULL
 */
struct node *nodes_find(const struct nodes *nodes, const char *name);

/**
 * nodes_take() - take a report that was sealed by root and came from the node's address
 * @report:	taken out of the caller's hands where it is taken
 *
 * Return: 0, or -EINVAL with the reason in the node's @refused.
 */
int nodes_take(struct nodes *nodes, struct node *node, struct report *report, uint64_t now_ms);

/**
 * nodes_refuse() - note that a report was none
 */
void nodes_refuse(struct node *node, const char *fmt, ...) PRINTF(2, 3);

/**
 * node_is_silent() - has it said nothing true for so long?
 */
bool node_is_silent(const struct node *node, uint64_t now_ms, uint64_t silent_ms);

void nodes_done(struct nodes *nodes);

#endif
