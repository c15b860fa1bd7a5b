/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs: nodes, what each does, and the order between them.
 *
 * A node keeps the parameters of the newest call (CUgraphNodeParams), whichever call made it; the
 * calls for single kinds of node only convert. What a kind means is in a table of classes
 * (graph-node.c). As the driver has it, a program that uses one graph from several threads has to
 * lock it; only captures, which may add nodes from several threads, are locked in here.
 */
#pragma once

#include "softgpu/cuda/stream/stream.h"

struct graph;
struct graph_node;
struct user_reference;

/* Room for what from_work() makes up. */
struct node_scratch {
	void *extra[5];
	size_t extra_size;
};

/**
 * struct node_class - a kind of node
 * @work:	what it does when it runs; NULL if it only orders others, or if its work is made anew
 *		for each launch (events)
 * @take:	checks the program's parameters and makes an independent copy of them; may fill in
 *		what the call tells the program
 * @copy:	makes @to, a byte copy of @from, which was taken, independent; NULL if a byte copy
 *		will do
 * @release:	gives back what @take and @copy took
 * @to_work:	parameters of @work, with what they take
 * @from_work:	the opposite, for captures; good as long as the work and @scratch are
 * @can_disable:	cuGraphNodeSetEnabled() takes it
 */
struct node_class {
	const char *name;
	const struct work_class *work;
	CUresult (*take)(CUgraphNodeParams *to, CUgraphNodeParams *from);
	CUresult (*copy)(CUgraphNodeParams *to, const CUgraphNodeParams *from);
	void (*release)(CUgraphNodeParams *params);
	CUresult (*to_work)(const struct graph_node *node, const CUgraphNodeParams *params,
			    void *work);
	void (*from_work)(const void *work, CUgraphNodeParams *params,
			  struct node_scratch *scratch);
	bool can_disable;
};

/** node_class_find() - NULL if there is no such kind or it cannot be run here */
const struct node_class *node_class_find(CUgraphNodeType type);

struct graph_dependency {
	struct graph_node *from;
	CUgraphEdgeData data;
};

/* Attributes that kernel nodes keep, by CUlaunchAttributeID. */
#define NODE_ATTRIBUTES_N (CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING + 1)

/**
 * struct graph_node - a node
 * @id:		of its own, never used twice in the process
 * @origin:	the id of the node that it was cloned from, or 0
 * @attributes:	of kernels, NODE_ATTRIBUTES_N of them; NULL until one is set
 * @index:	its place while graph-exec.c puts the nodes in order
 */
struct graph_node {
	CUgraphNode handle;
	struct graph *graph;
	struct graph_node *next, *prev;
	uint64_t id, origin;
	CUgraphNodeType type;
	const struct node_class *class;
	CUgraphNodeParams params;
	CUkernelNodeAttrValue *attributes;
	struct graph_dependency *after;
	size_t n_after;
	size_t index;
};

/**
 * struct graph - a graph
 * @n_memory_nodes:	of @n_nodes those that allocate or free
 * @parent:	the child graph node that it belongs to, or NULL
 */
struct graph {
	CUgraph handle;
	struct graph_node *first, *last;
	size_t n_nodes, n_memory_nodes;
	uint64_t id, origin;
	struct graph_node *parent;
	struct user_reference *user_references;
};

struct graph *node_child(const struct graph_node *node);

CUresult graph_find(CUgraph handle, struct graph **ret);
CUresult graph_new(struct graph **ret);
void graph_free(struct graph *graph);
CUresult graph_clone(const struct graph *graph, struct graph **ret);

CUresult node_find(CUgraphNode handle, struct graph_node **ret);

/**
 * node_new() - add a node
 * @after:	nodes of the same graph that come before it
 * @data:	of the edges; NULL for ordinary ones
 * @params:	what it does; @params->type tells its kind. Filled in for allocations
 */
CUresult node_new(struct graph *graph, const CUgraphNode *after, const CUgraphEdgeData *data,
		  size_t n_after, CUgraphNodeParams *params, struct graph_node **ret);

/**
 * node_new_of_work() - add a node that does what a piece of work does
 * @type:	the work's
 * @work:	parameters of the work; NULL where nodes of that kind have none
 *
 * CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if no node can.
 */
CUresult node_new_of_work(struct graph *graph, const CUgraphNode *after,
			  const CUgraphEdgeData *data, size_t n_after, int type, const void *work,
			  struct graph_node **ret);
void node_free(struct graph_node *node);

/** node_depend() - let a node come after another one; CUDA_ERROR_INVALID_VALUE if it does */
CUresult node_depend(struct graph_node *node, struct graph_node *from, const CUgraphEdgeData *data);

/** dependency_find() - how @node comes after @from, or NULL if it does not by itself */
struct graph_dependency *dependency_find(struct graph_node *node, const struct graph_node *from);

/** node_set() - other parameters of the same kind */
CUresult node_set(struct graph_node *node, CUgraphNodeParams *params);

void node_params_release(const struct node_class *class, CUgraphNodeParams *params);

/** node_comes_after() - is @node @other, or after it? */
bool node_comes_after(const struct graph_node *node, const struct graph_node *other);

/* Objects of the program that live as long as graphs that use them: user-object.c. */
CUresult user_references_copy(struct user_reference *from, struct user_reference **ret);
void user_references_free(struct user_reference *first);

/* cuGraphExecNodeSetParams; graph-update.c */
CUresult graph_exec_set(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params);
