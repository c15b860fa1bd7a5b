/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Copied while no report is taken, and written afterwards: SQLite may keep us waiting for seconds.
 */
#include "cluster/controller/telling.h"

#include "cluster/channel.h"

#include "base/log.h"
#include "base/str.h"

#include <errno.h>
#include <time.h>

/**
 * struct copy - of all nodes
 * @incidents:	those that are news
 */
struct copy {
	struct store_node *nodes;
	size_t n_nodes;
	struct store_incident *incidents;
	size_t n_incidents;
	uint64_t now_ms;
	time_t now_s;
};

static void copy_done(struct copy *copy)
{
	free(copy->nodes);
	free(copy->incidents);
}

static int copy_state(struct copy *copy, const struct node *node, bool is_silent)
{
	struct store_node *nodes = reallocarray(copy->nodes, copy->n_nodes + 1, sizeof(*nodes));
	struct store_node *to;

	if (!nodes)
		return -ENOMEM;
	copy->nodes = nodes;
	to = &nodes[copy->n_nodes++];
	/* They are compared byte by byte. */
	memset(to, 0, sizeof(*to));
	str_copy(to->name, sizeof(to->name), node->facts.name);
	str_copy(to->refused, sizeof(to->refused), node->refused);
	to->is_silent = is_silent;
	if (node->n_taken)
		to->heard_s = copy->now_s - (copy->now_ms - node->heard_ms) / 1000;
	return 0;
}

static int copy_incidents(struct copy *copy, const struct node *node)
{
	const struct report *report = &node->last;
	struct store_incident *incidents = reallocarray(
		copy->incidents, copy->n_incidents + report->n_incidents + 1, sizeof(*incidents));
	size_t i;

	if (!incidents)
		return -ENOMEM;
	copy->incidents = incidents;
	for (i = 0; i < report->n_incidents; i++) {
		struct store_incident *to = &incidents[copy->n_incidents++];

		str_copy(to->node, sizeof(to->node), node->facts.name);
		to->incident = report->incidents[i];
	}
	return 0;
}

static int copy_node(struct node *node, bool is_silent, void *userdata)
{
	struct copy *copy = userdata;
	int r;

	r = copy_state(copy, node, is_silent);
	if (r == 0 && node->has_news)
		r = copy_incidents(copy, node);
	if (r == 0)
		node->has_news = false;
	return r;
}

static int is_news_again(struct node *node, _unused_ bool is_silent, _unused_ void *userdata)
{
	node->has_news = true;
	return 0;
}

static bool is_as_told(const struct telling *told, const struct copy *copy)
{
	return told->n_nodes == copy->n_nodes &&
	       (!copy->n_nodes ||
		memcmp(told->nodes, copy->nodes, copy->n_nodes * sizeof(*copy->nodes)) == 0);
}

int telling_write(struct telling *told, struct listener *listener, struct store *store)
{
	_cleanup_(copy_done) struct copy copy = { .now_ms = channel_now_ms(), .now_s = time(NULL) };
	int r;

	r = listener_each(listener, copy_node, &copy);
	if (r == 0 && copy.n_incidents)
		r = store_put_incidents(store, copy.incidents, copy.n_incidents);
	if (r == 0 && !is_as_told(told, &copy))
		r = store_set_nodes(store, copy.nodes, copy.n_nodes);
	if (r < 0) {
		listener_each(listener, is_news_again, NULL);
		return log_err(r, "what the nodes say is not written down: %s",
			       store_reason(store));
	}
	telling_done(told);
	told->nodes = TAKE_PTR(copy.nodes);
	told->n_nodes = copy.n_nodes;
	return 0;
}

void telling_done(struct telling *told)
{
	free(told->nodes);
	*told = (struct telling){};
}
