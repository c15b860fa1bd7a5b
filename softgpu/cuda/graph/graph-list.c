// SPDX-License-Identifier: Apache-2.0
/* What a graph consists of, as programs ask for it: nodes, edges, neighbours. */
#include <string.h>

#include "softgpu/cuda/graph/graph.h"

/*
 * Lists that a program asks for in two steps: without an array it learns the number; with one it
 * gets as many as it has room for, the rest of the room filled with zeros.
 */
struct node_list {
	CUgraphNode *first, *second;
	CUgraphEdgeData *data;
	size_t room, n;
	bool lossy; /* an edge has data that the caller does not ask for */
};

static void list_add(struct node_list *list, CUgraphNode first, CUgraphNode second,
		     const CUgraphEdgeData *data)
{
	static const CUgraphEdgeData zero;

	if (data && !list->data && memcmp(data, &zero, sizeof(zero)) != 0)
		list->lossy = true;
	if (list->n < list->room) {
		if (list->first)
			list->first[list->n] = first;
		if (list->second)
			list->second[list->n] = second;
		if (list->data)
			list->data[list->n] = data ? *data : zero;
	}
	list->n++;
}

static CUresult list_end(struct node_list *list, size_t *ret_n)
{
	if (list->lossy && list->first)
		return CUDA_ERROR_LOSSY_QUERY;
	if (!list->first && !list->second) {
		*ret_n = list->n;
		return CUDA_SUCCESS;
	}
	for (size_t i = list->n; i < list->room; i++) {
		if (list->first)
			list->first[i] = NULL;
		if (list->second)
			list->second[i] = NULL;
	}
	if (list->n < list->room)
		*ret_n = list->n;
	return CUDA_SUCCESS;
}

static CUresult list_nodes(CUgraph handle, bool only_roots, CUgraphNode *nodes, size_t *n)
{
	struct node_list list = { .first = nodes };
	struct graph *graph;
	CUresult r = graph_find(handle, &graph);

	if (r != CUDA_SUCCESS)
		return r;
	if (!n)
		return CUDA_ERROR_INVALID_VALUE;
	list.room = nodes ? *n : 0;
	for (struct graph_node *node = graph->first; node; node = node->next)
		if (!only_roots || node->n_after == 0)
			list_add(&list, node->handle, NULL, NULL);
	return list_end(&list, n);
}

CALL(cuGraphGetNodes, CUgraph handle, CUgraphNode *nodes, size_t *n)
{
	return list_nodes(handle, /* only_roots= */ false, nodes, n);
}

CALL(cuGraphGetRootNodes, CUgraph handle, CUgraphNode *nodes, size_t *n)
{
	return list_nodes(handle, /* only_roots= */ true, nodes, n);
}

CALL(cuGraphGetEdges_v2, CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
     size_t *n)
{
	struct node_list list = { .first = from, .second = to, .data = data };
	struct graph *graph;
	CUresult r = graph_find(handle, &graph);

	if (r != CUDA_SUCCESS)
		return r;
	if (!n || !from != !to)
		return CUDA_ERROR_INVALID_VALUE;
	list.room = from ? *n : 0;
	for (struct graph_node *node = graph->first; node; node = node->next)
		for (size_t i = 0; i < node->n_after; i++)
			list_add(&list, node->after[i].from->handle, node->handle,
				 &node->after[i].data);
	return list_end(&list, n);
}

CALL(cuGraphGetEdges, CUgraph handle, CUgraphNode *from, CUgraphNode *to, size_t *n)
{
	return impl_cuGraphGetEdges_v2(handle, from, to, NULL, n);
}

/* What a node waits for, or what waits for it, as a list with room for *@n. */
static CUresult list_begin(CUgraphNode handle, const size_t *n, struct node_list *list,
			   struct graph_node **ret)
{
	CUresult r = node_find(handle, ret);

	if (r == CUDA_SUCCESS && !n)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r == CUDA_SUCCESS)
		list->room = list->first ? *n : 0;
	return r;
}

CALL(cuGraphNodeGetDependencies_v2, CUgraphNode handle, CUgraphNode *nodes, CUgraphEdgeData *data,
     size_t *n)
{
	struct node_list list = { .first = nodes, .data = data };
	struct graph_node *node;
	CUresult r = list_begin(handle, n, &list, &node);

	if (r != CUDA_SUCCESS)
		return r;
	for (size_t i = 0; i < node->n_after; i++)
		list_add(&list, node->after[i].from->handle, NULL, &node->after[i].data);
	return list_end(&list, n);
}

CALL(cuGraphNodeGetDependencies, CUgraphNode handle, CUgraphNode *nodes, size_t *n)
{
	return impl_cuGraphNodeGetDependencies_v2(handle, nodes, NULL, n);
}

CALL(cuGraphNodeGetDependentNodes_v2, CUgraphNode handle, CUgraphNode *nodes, CUgraphEdgeData *data,
     size_t *n)
{
	struct node_list list = { .first = nodes, .data = data };
	struct graph_dependency *dependency;
	struct graph_node *node;
	CUresult r = list_begin(handle, n, &list, &node);

	if (r != CUDA_SUCCESS)
		return r;
	for (struct graph_node *other = node->graph->first; other; other = other->next) {
		dependency = dependency_find(other, node);
		if (dependency)
			list_add(&list, other->handle, NULL, &dependency->data);
	}
	return list_end(&list, n);
}

CALL(cuGraphNodeGetDependentNodes, CUgraphNode handle, CUgraphNode *nodes, size_t *n)
{
	return impl_cuGraphNodeGetDependentNodes_v2(handle, nodes, NULL, n);
}
