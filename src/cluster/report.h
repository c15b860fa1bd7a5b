/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node tells the controller of itself: its devices, who holds how much of them, and which of
 * them held more than they asked for.
 *
 *	{"node": "n1", "nonce": "5b0c...",
 *	 "devices": [{"total": 4294967296, "used": 1073741824}, ...],
 *	 "tenants": [{"tenant": "job-7", "gpu": 0, "low": 1073741824, "held": 536870912}, ...],
 *	 "incidents": [{"id": 3, "tenant": "job-7", "begun": 1700000000, "ended": 0,
 *			"request": 1073741824, "peak": 3758096384, "policy": "evict", "state": "over"}]}
 *
 * The bytes are a node's, and a node may lie: all lists and names are bounded, and what cannot be so
 * (more used of a device than it has, a tenant of a device that is not there) is no report.
 */
#ifndef CLUSTER_REPORT_H
#define CLUSTER_REPORT_H

#include "base/base.h"

/* Of the text. What a report may have at the most takes less, however long its names and numbers are. */
#define REPORT_BYTES	 (512 * 1024)
#define REPORT_NAME	 64
#define REPORT_NONCE	 33
#define REPORT_WORD	 24
#define REPORT_REASON	 200
#define REPORT_DEVICES	 64
#define REPORT_TENANTS	 3072
#define REPORT_INCIDENTS 100

struct report_device {
	uint64_t total_bytes;
	uint64_t used_bytes;
};

/**
 * struct report_tenant - a tenant on one device
 * @job:	of Slurm, if its name says so, else 0
 */
struct report_tenant {
	char name[REPORT_NAME];
	uint32_t job;
	uint32_t gpu;
	uint64_t low_bytes;
	uint64_t held_bytes;
};

/**
 * struct report_incident - an over-use of a request
 * @ended_s:	0 while it goes on
 */
struct report_incident {
	uint64_t id;
	char tenant[REPORT_NAME];
	uint64_t begun_s;
	uint64_t ended_s;
	uint64_t request_bytes;
	uint64_t peak_bytes;
	char policy[REPORT_WORD];
	char state[REPORT_WORD];
};

/**
 * struct report - all of it
 * @nonce:	what the controller asked with: an answer to another question is no answer
 */
struct report {
	char node[REPORT_NAME];
	char nonce[REPORT_NONCE];
	struct report_device *devices;
	size_t n_devices;
	struct report_tenant *tenants;
	size_t n_tenants;
	struct report_incident *incidents;
	size_t n_incidents;
};

/**
 * report_parse() - read one
 * @reason:	filled in on -EINVAL
 *
 * Return: 0, -EINVAL or -ENOMEM.
 */
int report_parse(const char *text, size_t len, struct report *ret, char reason[REPORT_REASON]);

/**
 * report_print() - write one
 *
 * Return: the text, which the caller frees; NULL when there is no memory.
 */
char *report_print(const struct report *report);

void report_done(struct report *report);

#endif
