/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/nodes.h"

#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

#define MIB (1ULL << 20)

struct node *nodes_find(const struct nodes *nodes, const char *name)
{
	size_t i;

	for (i = 0; i < nodes->n; i++) {
		if (str_eq(nodes->items[i].facts.name, name))
			return &nodes->items[i];
	}
	return NULL;
}

static void node_done(struct node *node)
{
	free(node->facts.address);
	report_done(&node->last);
}

/* --- what Slurm says --- */

static void free_facts(struct node_facts *facts, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		free(facts[i].address);
	free(facts);
}

/* What was known of a node goes on under its new facts. */
static void move_node(struct nodes *nodes, struct node_facts *facts, struct node *to)
{
	struct node *known = nodes_find(nodes, facts->name);

	if (known) {
		*to = *known;
		free(known->facts.address);
		known->facts.address = NULL;
		known->last = (struct report){};
	}
	to->facts = *facts;
}

int nodes_learn(struct nodes *nodes, struct node_facts *facts, size_t n_facts,
		struct node_job *jobs, size_t n_jobs)
{
	struct node *items = calloc(n_facts + 1, sizeof(*items));
	size_t i;

	free(nodes->jobs);
	nodes->jobs = jobs;
	nodes->n_jobs = n_jobs;
	if (!items) {
		free_facts(facts, n_facts);
		return -ENOMEM;
	}
	for (i = 0; i < n_facts; i++)
		move_node(nodes, &facts[i], &items[i]);
	free(facts);
	for (i = 0; i < nodes->n; i++)
		node_done(&nodes->items[i]);
	free(nodes->items);
	nodes->items = items;
	nodes->n = n_facts;
	return 0;
}

/* --- what a node says --- */

void nodes_refuse(struct node *node, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(node->refused, sizeof(node->refused), fmt, ap);
	va_end(ap);
	node->n_refused++;
}

/* Devices are in the order in which Slurm has them. */
static bool devices_agree(struct node *node, const struct report *report)
{
	size_t i;

	if (report->n_devices < node->facts.n_devices) {
		nodes_refuse(node, "%zu devices are there, and Slurm has %zu", report->n_devices,
			     node->facts.n_devices);
		return false;
	}
	for (i = 0; i < node->facts.n_devices; i++) {
		uint64_t mib = report->devices[i].total_bytes / MIB;

		if (mib >= node->facts.booked_out_mib[i])
			continue;
		nodes_refuse(node,
			     "device %zu has %" PRIu64 " MiB, and Slurm gives away %" PRIu64
			     " of it",
			     i, mib, node->facts.booked_out_mib[i]);
		return false;
	}
	return true;
}

/* Where Slurm has a job on nodes, and none of them is this one: the first of them. */
static const char *elsewhere(const struct nodes *nodes, uint32_t job, const char *node)
{
	const char *other = NULL;
	size_t i;

	for (i = 0; i < nodes->n_jobs; i++) {
		if (nodes->jobs[i].id != job)
			continue;
		if (str_eq(nodes->jobs[i].node, node))
			return NULL;
		other = other ? other : nodes->jobs[i].node;
	}
	return other;
}

/*
 * A job that Slurm does not have may be one that ends, or that Slurm has forgotten and is about to
 * end. One that it has elsewhere is somebody else's, or a second copy of what runs there.
 */
static bool tenants_agree(const struct nodes *nodes, struct node *node, const struct report *report)
{
	size_t i;

	for (i = 0; i < report->n_tenants; i++) {
		const struct report_tenant *tenant = &report->tenants[i];
		const char *other =
			tenant->job ? elsewhere(nodes, tenant->job, node->facts.name) : NULL;

		if (!other)
			continue;
		nodes_refuse(node, "%s is not here: Slurm has it on %s", tenant->name, other);
		return false;
	}
	return true;
}

static bool has_news(const struct report *before, const struct report *now)
{
	return now->n_incidents != before->n_incidents ||
	       (now->n_incidents && memcmp(now->incidents, before->incidents,
					   now->n_incidents * sizeof(*now->incidents)) != 0);
}

int nodes_take(struct nodes *nodes, struct node *node, struct report *report, uint64_t now_ms)
{
	if (!devices_agree(node, report) || !tenants_agree(nodes, node, report))
		return -EINVAL;
	node->has_news |= has_news(&node->last, report);
	report_done(&node->last);
	node->last = *report;
	*report = (struct report){};
	node->heard_ms = now_ms;
	node->n_taken++;
	node->refused[0] = '\0';
	return 0;
}

bool node_is_silent(const struct node *node, uint64_t now_ms, uint64_t silent_ms)
{
	return !node->n_taken || now_ms - node->heard_ms >= silent_ms;
}

void nodes_done(struct nodes *nodes)
{
	size_t i;

	for (i = 0; i < nodes->n; i++)
		node_done(&nodes->items[i]);
	free(nodes->items);
	free(nodes->jobs);
	*nodes = (struct nodes){};
}
