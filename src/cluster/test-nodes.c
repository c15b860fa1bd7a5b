/* SPDX-License-Identifier: Apache-2.0 */
/* Two nodes of two devices each, of which Slurm gives away 3584 MiB; job 7 runs on n1, 8 on both. */
#include "cluster/nodes.h"

#include "base/check.h"
#include "base/str.h"

#include <errno.h>

#define MIB	  (1ULL << 20)
#define SILENT_MS 15000

static struct node_facts facts_of(const char *name)
{
	struct node_facts facts = { .address = strdup("127.0.0.1"),
				    .booked_out_mib = { 3584, 3584 },
				    .n_devices = 2 };

	str_copy(facts.name, sizeof(facts.name), name);
	return facts;
}

static int learn(struct nodes *nodes, size_t n)
{
	static const struct node_job jobs[] = { { 7, "n1" }, { 8, "n1" }, { 8, "n2" } };
	struct node_facts *facts = calloc(n, sizeof(*facts));
	struct node_job *own = calloc(ARRAY_SIZE(jobs), sizeof(*own));
	size_t i;

	memcpy(own, jobs, sizeof(jobs));
	for (i = 0; i < n; i++)
		facts[i] = facts_of(i ? "n2" : "n1");
	return nodes_learn(nodes, facts, n, own, ARRAY_SIZE(jobs));
}

/* A report of so many devices of so many MiB, with one tenant. */
static int take(struct nodes *nodes, const char *name, size_t n_devices, uint64_t mib, uint32_t job,
		uint64_t now_ms)
{
	struct node *node = nodes_find(nodes, name);
	struct report report = { .n_devices = n_devices, .n_tenants = 1 };
	size_t i;
	int r;

	report.devices = calloc(n_devices + 1, sizeof(*report.devices));
	report.tenants = calloc(1, sizeof(*report.tenants));
	for (i = 0; i < n_devices; i++)
		report.devices[i].total_bytes = mib * MIB;
	report.tenants[0].job = job;
	snprintf(report.tenants[0].name, REPORT_NAME, "job-%u", job);
	r = nodes_take(nodes, node, &report, now_ms);
	report_done(&report);
	return r;
}

static bool is_silent(const struct nodes *nodes, const char *name, uint64_t now_ms)
{
	return node_is_silent(nodes_find(nodes, name), now_ms, SILENT_MS);
}

static void test_silence(struct nodes *nodes)
{
	check(is_silent(nodes, "n1", 0), "nodes: who was never heard is silent");
	check(take(nodes, "n1", 2, 4096, 7, 1000) == 0 && !is_silent(nodes, "n1", 1000) &&
		      !is_silent(nodes, "n1", 15999) && is_silent(nodes, "n1", 16000),
	      "nodes: fifteen seconds after the last report a node is silent");
	check(is_silent(nodes, "n2", 1000), "nodes: and the other one is as before");
	check(take(nodes, "n1", 2, 4096, 7, 20000) == 0 && !is_silent(nodes, "n1", 20000),
	      "nodes: it is back with its next report");
}

static void refused(struct nodes *nodes, int r, const char *reason)
{
	const struct node *node = nodes_find(nodes, "n2");

	check(r == -EINVAL && str_eq(node->refused, reason), "nodes: %s", node->refused);
}

static void test_lies(struct nodes *nodes)
{
	refused(nodes, take(nodes, "n2", 1, 4096, 8, 1000), "1 devices are there, and Slurm has 2");
	refused(nodes, take(nodes, "n2", 2, 2048, 8, 1000),
		"device 0 has 2048 MiB, and Slurm gives away 3584 of it");
	refused(nodes, take(nodes, "n2", 2, 4096, 7, 1000),
		"job-7 is not here: Slurm has it on n1");
	check(is_silent(nodes, "n2", 1000) && nodes_find(nodes, "n2")->n_refused == 3,
	      "nodes: who lies is as good as silent");
	check(!is_silent(nodes, "n1", 20000) && !*nodes_find(nodes, "n1")->refused,
	      "nodes: and nobody else is");
	check(take(nodes, "n2", 2, 4096, 8, 20000) == 0 && !*nodes_find(nodes, "n2")->refused,
	      "nodes: a job of several nodes is on each of them");
	check(take(nodes, "n2", 3, 4096, 9, 20000) == 0,
	      "nodes: a job that Slurm has not, and a device that it has not, disturb nobody");
}

static void test_change(struct nodes *nodes)
{
	check(learn(nodes, 1) == 0 && nodes->n == 1 && !is_silent(nodes, "n1", 20000) &&
		      nodes_find(nodes, "n1")->last.n_devices == 2 && !nodes_find(nodes, "n2"),
	      "nodes: what a node said stays as long as Slurm has it");
	check(learn(nodes, 2) == 0 && is_silent(nodes, "n2", 20000),
	      "nodes: one that comes again begins anew");
}

int main(void)
{
	struct nodes nodes = {};

	check(learn(&nodes, 2) == 0 && nodes.n == 2 && !nodes_find(&nodes, "n3"),
	      "nodes: those that Slurm has");
	test_silence(&nodes);
	test_lies(&nodes);
	test_change(&nodes);
	nodes_done(&nodes);
	return check_result();
}
