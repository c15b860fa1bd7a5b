// SPDX-License-Identifier: Apache-2.0
/* Graphs as structures: making, cloning, nodes, edges, and the calls that look at them. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/cuda/graph/graph.h"

static _Atomic uint64_t n_ids;

static uint64_t next_id(void)
{
	return atomic_fetch_add(&n_ids, 1) + 1;
}

CUresult graph_find(CUgraph handle, struct graph **ret)
{
	/* Graphs and nodes are arguments like others: a bad one is an invalid value. */
	return FIND(handle_get(HANDLE_GRAPH, handle), CUDA_ERROR_INVALID_VALUE, ret);
}

CUresult node_find(CUgraphNode handle, struct graph_node **ret)
{
	return FIND(handle_get(HANDLE_GRAPH_NODE, handle), CUDA_ERROR_INVALID_VALUE, ret);
}

CUresult graph_new(struct graph **ret)
{
	struct graph *graph = calloc(1, sizeof(*graph));

	if (!graph)
		return CUDA_ERROR_OUT_OF_MEMORY;
	graph->handle = handle_new(CUgraph, HANDLE_GRAPH, graph);
	if (!graph->handle) {
		free(graph);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	graph->id = next_id();
	*ret = graph;
	return CUDA_SUCCESS;
}

void graph_free(struct graph *graph)
{
	if (!graph)
		return;
	while (graph->first)
		node_free(graph->first);
	handle_remove(HANDLE_GRAPH, graph->handle);
	user_references_free(graph->user_references);
	free(graph);
}

struct graph *node_child(const struct graph_node *node)
{
	return handle_get(HANDLE_GRAPH, node->params.graph.graph);
}

void node_params_release(const struct node_class *class, CUgraphNodeParams *params)
{
	if (class->release)
		class->release(params);
}

static bool edge_is_valid(const CUgraphEdgeData *data)
{
	static const CUgraphEdgeData zero;

	return data->type <= CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC && data->to_port == 0 &&
	       data->from_port <= CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER &&
	       memcmp(data->reserved, zero.reserved, sizeof(zero.reserved)) == 0;
}

struct graph_dependency *dependency_find(struct graph_node *node, const struct graph_node *from)
{
	for (size_t i = 0; i < node->n_after; i++)
		if (node->after[i].from == from)
			return &node->after[i];
	return NULL;
}

CUresult node_depend(struct graph_node *node, struct graph_node *from, const CUgraphEdgeData *data)
{
	struct graph_dependency *after;

	if (from->graph != node->graph || from == node || dependency_find(node, from) ||
	    (data && !edge_is_valid(data)))
		return CUDA_ERROR_INVALID_VALUE;
	after = realloc(node->after, (node->n_after + 1) * sizeof(*after));
	if (!after)
		return CUDA_ERROR_OUT_OF_MEMORY;
	node->after = after;
	after[node->n_after++] =
		(struct graph_dependency){ from, data ? *data : (CUgraphEdgeData){ 0 } };
	return CUDA_SUCCESS;
}

static void dependency_remove(struct graph_node *node, struct graph_dependency *dependency)
{
	size_t n_behind = node->after + node->n_after - dependency - 1;

	memmove(dependency, dependency + 1, n_behind * sizeof(*dependency));
	node->n_after--;
}

static CUresult depend_on_all(struct graph_node *node, const CUgraphNode *after,
			      const CUgraphEdgeData *data, size_t n_after)
{
	struct graph_node *from;
	CUresult r = CUDA_SUCCESS;

	for (size_t i = 0; i < n_after && r == CUDA_SUCCESS; i++) {
		r = node_find(after[i], &from);
		if (r == CUDA_SUCCESS)
			r = node_depend(node, from, data ? &data[i] : NULL);
	}
	return r;
}

static bool is_memory(CUgraphNodeType type)
{
	return type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || type == CU_GRAPH_NODE_TYPE_MEM_FREE;
}

/* A node without parameters, at the end of the graph. */
static struct graph_node *node_append(struct graph *graph, CUgraphNodeType type,
				      const struct node_class *class)
{
	struct graph_node *node = calloc(1, sizeof(*node));

	if (!node)
		return NULL;
	node->handle = handle_new(CUgraphNode, HANDLE_GRAPH_NODE, node);
	if (!node->handle) {
		free(node);
		return NULL;
	}
	node->id = next_id();
	node->graph = graph;
	node->type = type;
	node->class = class;
	node->prev = graph->last;
	if (graph->last)
		graph->last->next = node;
	else
		graph->first = node;
	graph->last = node;
	graph->n_nodes++;
	graph->n_memory_nodes += is_memory(type);
	return node;
}

static void node_unlink(struct graph_node *node)
{
	struct graph *graph = node->graph;

	if (node->prev)
		node->prev->next = node->next;
	else
		graph->first = node->next;
	if (node->next)
		node->next->prev = node->prev;
	else
		graph->last = node->prev;
	graph->n_nodes--;
	graph->n_memory_nodes -= is_memory(node->type);
	handle_remove(HANDLE_GRAPH_NODE, node->handle);
	free(node->attributes);
	free(node->after);
	free(node);
}

void node_free(struct graph_node *node)
{
	struct graph_dependency *dependency;

	/* Dependents were added later, but for edges that were added by hand. */
	for (struct graph_node *other = node->graph->first; other; other = other->next) {
		dependency = dependency_find(other, node);
		if (dependency)
			dependency_remove(other, dependency);
	}
	node_params_release(node->class, &node->params);
	node_unlink(node);
}

/* A child graph that shall belong to its node, instead of a copy of it. */
static bool moves_graph(const CUgraphNodeParams *params)
{
	return params->type == CU_GRAPH_NODE_TYPE_GRAPH &&
	       params->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
}

/* Is @graph what a child graph node shall have, or inside of it? */
static bool would_own_itself(const struct graph *graph, const CUgraphNodeParams *params)
{
	if (!moves_graph(params))
		return false;
	while (graph->handle != params->graph.graph && graph->parent)
		graph = graph->parent->graph;
	return graph->handle == params->graph.graph;
}

/* What one graph allocates it can free once. */
static bool would_free_again(const struct graph *graph, const CUgraphNodeParams *params)
{
	if (params->type != CU_GRAPH_NODE_TYPE_MEM_FREE || graph->n_memory_nodes == 0)
		return false;
	for (const struct graph_node *node = graph->first; node; node = node->next)
		if (node->type == CU_GRAPH_NODE_TYPE_MEM_FREE &&
		    node->params.free.dptr == params->free.dptr)
			return true;
	return false;
}

CUresult node_new(struct graph *graph, const CUgraphNode *after, const CUgraphEdgeData *data,
		  size_t n_after, CUgraphNodeParams *params, struct graph_node **ret)
{
	const struct node_class *class = node_class_find(params->type);
	CUgraphNodeParams taken;
	struct graph_node *node;
	CUresult r;

	if (!class)
		return CUDA_ERROR_NOT_SUPPORTED;
	if ((n_after > 0 && !after) || would_own_itself(graph, params) ||
	    would_free_again(graph, params))
		return CUDA_ERROR_INVALID_VALUE;
	/* Before the node is there: a child graph may be a copy of this very graph. */
	r = class->take(&taken, params);
	if (r != CUDA_SUCCESS)
		return r;
	node = node_append(graph, params->type, class);
	r = node ? depend_on_all(node, after, data, n_after) : CUDA_ERROR_OUT_OF_MEMORY;
	if (r != CUDA_SUCCESS) {
		/* What was to be moved stays the caller's. */
		if (!moves_graph(&taken))
			node_params_release(class, &taken);
		if (node)
			node_unlink(node);
		return r;
	}
	node->params = taken;
	if (node->type == CU_GRAPH_NODE_TYPE_GRAPH)
		node_child(node)->parent = node;
	*ret = node;
	return CUDA_SUCCESS;
}

CUresult node_set(struct graph_node *node, CUgraphNodeParams *params)
{
	CUgraphNodeParams copy;
	CUresult r;

	if (params->type != node->type)
		return CUDA_ERROR_INVALID_VALUE;
	/* Memory nodes and child graphs are what they are made as. */
	if (node->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
	    node->type == CU_GRAPH_NODE_TYPE_MEM_FREE || node->type == CU_GRAPH_NODE_TYPE_GRAPH)
		return CUDA_ERROR_NOT_SUPPORTED;
	r = node->class->take(&copy, params);
	if (r != CUDA_SUCCESS)
		return r;
	node_params_release(node->class, &node->params);
	node->params = copy;
	return CUDA_SUCCESS;
}

/* Depth first, along the dependencies. Graphs are shallow next to their size, but not always. */
static bool comes_after(const struct graph_node *node, const struct graph_node *other,
			const struct graph_node **stack, bool *seen)
{
	size_t depth = 0;

	stack[depth++] = node;
	while (depth > 0) {
		node = stack[--depth];
		if (node == other)
			return true;
		for (size_t i = 0; i < node->n_after; i++) {
			const struct graph_node *from = node->after[i].from;

			if (seen[from->index])
				continue;
			seen[from->index] = true;
			stack[depth++] = from;
		}
	}
	return false;
}

bool node_comes_after(const struct graph_node *node, const struct graph_node *other)
{
	const struct graph_node **stack;
	struct graph *graph = node->graph;
	bool *seen, after = false;
	size_t n = 0;

	for (struct graph_node *each = graph->first; each; each = each->next)
		each->index = n++;
	stack = calloc(n + 1, sizeof(*stack));
	seen = calloc(n, sizeof(*seen));
	if (stack && seen)
		after = comes_after(node, other, stack, seen);
	free(stack);
	free(seen);
	return after;
}

static CUresult clone_node(struct graph *clone, const struct graph_node *node)
{
	struct graph_node *copy = node_append(clone, node->type, node->class);
	size_t n_bytes = NODE_ATTRIBUTES_N * sizeof(*node->attributes);
	CUresult r;

	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	copy->origin = node->id;
	if (node->attributes) {
		copy->attributes = malloc(n_bytes);
		if (!copy->attributes) {
			node_unlink(copy);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		memcpy(copy->attributes, node->attributes, n_bytes);
	}
	copy->params = node->params;
	r = node->class->copy ? node->class->copy(&copy->params, &node->params) : CUDA_SUCCESS;
	if (r != CUDA_SUCCESS)
		node_unlink(copy);
	else if (copy->type == CU_GRAPH_NODE_TYPE_GRAPH)
		node_child(copy)->parent = copy;
	return r;
}

/* Nodes of both graphs are in the same order, so numbers are enough to find counterparts. */
static CUresult clone_edges(const struct graph *graph, struct graph *clone)
{
	struct graph_node **copies, *copy = clone->first;
	CUresult r = CUDA_SUCCESS;
	size_t n = 0;

	copies = calloc(clone->n_nodes + 1, sizeof(*copies));
	if (!copies)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (struct graph_node *node = graph->first; node; node = node->next) {
		node->index = n;
		copies[n++] = copy;
		copy = copy->next;
	}
	for (struct graph_node *node = graph->first; node && r == CUDA_SUCCESS; node = node->next)
		for (size_t i = 0; i < node->n_after && r == CUDA_SUCCESS; i++)
			r = node_depend(copies[node->index], copies[node->after[i].from->index],
					&node->after[i].data);
	free(copies);
	return r;
}

CUresult graph_clone(const struct graph *graph, struct graph **ret)
{
	struct graph *clone;
	CUresult r;

	r = graph_new(&clone);
	if (r != CUDA_SUCCESS)
		return r;
	clone->origin = graph->id;
	for (struct graph_node *node = graph->first; node && r == CUDA_SUCCESS; node = node->next)
		r = clone_node(clone, node);
	if (r == CUDA_SUCCESS)
		r = clone_edges(graph, clone);
	if (r == CUDA_SUCCESS)
		r = user_references_copy(graph->user_references, &clone->user_references);
	if (r != CUDA_SUCCESS) {
		graph_free(clone);
		return r;
	}
	*ret = clone;
	return CUDA_SUCCESS;
}

CALL(cuGraphCreate, CUgraph *ret, unsigned int flags)
{
	struct graph *graph;
	CUresult r = driver_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	r = graph_new(&graph);
	if (r == CUDA_SUCCESS)
		*ret = graph->handle;
	return r;
}

CALL(cuGraphDestroy, CUgraph handle)
{
	struct graph *graph;
	CUresult r = graph_find(handle, &graph);

	if (r != CUDA_SUCCESS)
		return r;
	if (graph->parent)
		return CUDA_ERROR_INVALID_VALUE;
	graph_free(graph);
	return CUDA_SUCCESS;
}

CALL(cuGraphClone, CUgraph *ret, CUgraph handle)
{
	struct graph *graph, *clone;
	CUresult r = graph_find(handle, &graph);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	r = graph_clone(graph, &clone);
	if (r == CUDA_SUCCESS)
		*ret = clone->handle;
	return r;
}

CALL(cuGraphNodeFindInClone, CUgraphNode *ret, CUgraphNode original, CUgraph handle)
{
	struct graph_node *node;
	struct graph *graph;
	CUresult r = node_find(original, &node);

	if (r == CUDA_SUCCESS)
		r = graph_find(handle, &graph);
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	for (struct graph_node *copy = graph->first; copy; copy = copy->next) {
		if (copy->origin == node->id) {
			*ret = copy->handle;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_VALUE;
}

CALL(cuGraphDestroyNode, CUgraphNode handle)
{
	struct graph_node *node;
	CUresult r = node_find(handle, &node);

	if (r != CUDA_SUCCESS)
		return r;
	/* Of a graph with memory nothing is taken away: who uses the memory when is settled. */
	if (node->graph->n_memory_nodes > 0)
		return CUDA_ERROR_NOT_SUPPORTED;
	node_free(node);
	return CUDA_SUCCESS;
}

CALL(cuGraphNodeGetType, CUgraphNode handle, CUgraphNodeType *ret)
{
	struct graph_node *node;

	return TELL(node_find(handle, &node), ret, node->type);
}

/* Both ends of an edge that a call names: nodes of this graph. */
static CUresult edge_ends(struct graph *graph, CUgraphNode from, CUgraphNode to,
			  struct graph_node **ret_from, struct graph_node **ret_to)
{
	CUresult r = node_find(from, ret_from);

	if (r == CUDA_SUCCESS)
		r = node_find(to, ret_to);
	if (r == CUDA_SUCCESS && ((*ret_from)->graph != graph || (*ret_to)->graph != graph))
		r = CUDA_ERROR_INVALID_VALUE;
	return r;
}

CALL(cuGraphAddDependencies_v2, CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
     const CUgraphEdgeData *data, size_t n)
{
	struct graph_node *first, *second;
	struct graph *graph;
	CUresult r = graph_find(handle, &graph);

	if (r == CUDA_SUCCESS && n > 0 && (!from || !to))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++) {
		r = edge_ends(graph, from[i], to[i], &first, &second);
		if (r == CUDA_SUCCESS)
			r = node_depend(second, first, data ? &data[i] : NULL);
	}
	return r;
}

CALL(cuGraphAddDependencies, CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
     size_t n)
{
	return impl_cuGraphAddDependencies_v2(handle, from, to, NULL, n);
}

CALL(cuGraphRemoveDependencies_v2, CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
     const CUgraphEdgeData *data, size_t n)
{
	struct graph_dependency *dependency;
	struct graph_node *first, *second;
	struct graph *graph;
	CUresult r = graph_find(handle, &graph);

	if (r == CUDA_SUCCESS && n > 0 && (!from || !to))
		return CUDA_ERROR_INVALID_VALUE;
	if (r == CUDA_SUCCESS && n > 0 && graph->n_memory_nodes > 0)
		return CUDA_ERROR_NOT_SUPPORTED;
	for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++) {
		r = edge_ends(graph, from[i], to[i], &first, &second);
		if (r != CUDA_SUCCESS)
			break;
		dependency = dependency_find(second, first);
		if (!dependency ||
		    (data && memcmp(&dependency->data, &data[i], sizeof(data[i])) != 0))
			return CUDA_ERROR_INVALID_VALUE;
		dependency_remove(second, dependency);
	}
	return r;
}

CALL(cuGraphRemoveDependencies, CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
     size_t n)
{
	return impl_cuGraphRemoveDependencies_v2(handle, from, to, NULL, n);
}
