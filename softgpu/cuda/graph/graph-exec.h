/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executable graphs. Instantiating puts the nodes in an order in which each comes after those it
 * depends on, child graphs opened up in place, and makes each node's work. That plan never
 * changes once a launch has it: updates make a changed copy.
 */
#pragma once

#include "softgpu/cuda/graph/graph.h"

struct event_point;

/**
 * struct graph_step - a node in a plan
 * @node, @node_id:	what it was made from
 * @ctx:		where it runs; NULL: where the graph is launched
 * @work:		parameters of @class->work, or NULL
 * @event:		of event nodes
 * @n_inside:		of a child graph: so many steps that follow are its nodes
 * @after:		the steps that it depends on, for comparing plans
 */
struct graph_step {
	CUgraphNode node;
	uint64_t node_id;
	CUgraphNodeType type;
	const struct node_class *class;
	bool disabled;
	struct context *ctx;
	void *work;
	CUevent event;
	CUdeviceptr dptr;
	bool freed;
	size_t n_inside;
	size_t *after, n_after;
};

struct graph_plan {
	_Atomic unsigned int n_references;
	struct graph_step *steps;
	size_t n_steps, room;
};

/**
 * struct graph_exec - an executable graph
 * @lock:	guards @plan
 * @turn:	held while it runs: launches of one executable graph follow each other
 */
struct graph_exec {
	CUgraphExec handle;
	struct context *ctx;
	cuuint64_t flags;
	_Atomic unsigned int n_references;
	pthread_mutex_t lock, turn;
	struct graph_plan *plan;
	struct user_reference *user_references;
	struct graph_exec *next, **at; /* in the context's list */
};

CUresult graph_exec_find(CUgraphExec handle, struct graph_exec **ret);

/**
 * plan_new() - put a graph in order
 * @ret_bad:	the node that cannot be, if it is a single one's fault; else not written
 */
CUresult plan_new(struct graph *graph, struct graph_plan **ret, CUgraphNode *ret_bad);

/** plan_graph() - the opposite: a graph that does what a plan does, for captures */
CUresult plan_graph(const struct graph_plan *plan, struct graph **ret);
CUresult plan_copy(const struct graph_plan *plan, struct graph_plan **ret);
struct graph_plan *plan_ref(struct graph_plan *plan);
void plan_unref(struct graph_plan *plan);

/** step_fill() - make a step's work of parameters */
CUresult step_fill(struct graph_step *step, const struct graph_node *node,
		   const CUgraphNodeParams *params);
void step_empty(struct graph_step *step);
