// SPDX-License-Identifier: Apache-2.0
/* A graph as text for Graphviz. */
#include <stdio.h>

#include "softgpu/cuda/graph/graph.h"

static void print_label(FILE *f, const struct graph_node *node, unsigned int flags)
{
	bool all = flags & CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE;
	const CUgraphNodeParams *params = &node->params;

	fprintf(f, "%s\\n%llu", node->class->name, (unsigned long long)node->id);
	if (node->type == CU_GRAPH_NODE_TYPE_KERNEL &&
	    (all || flags & CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS))
		fprintf(f, "\\n<<<(%u,%u,%u),(%u,%u,%u),%u>>>", params->kernel.gridDimX,
			params->kernel.gridDimY, params->kernel.gridDimZ, params->kernel.blockDimX,
			params->kernel.blockDimY, params->kernel.blockDimZ,
			params->kernel.sharedMemBytes);
	if (node->type == CU_GRAPH_NODE_TYPE_MEMCPY &&
	    (all || flags & CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS))
		fprintf(f, "\\n%zu x %zu x %zu bytes", params->memcpy.copyParams.WidthInBytes,
			params->memcpy.copyParams.Height, params->memcpy.copyParams.Depth);
	if (node->type == CU_GRAPH_NODE_TYPE_MEMSET &&
	    (all || flags & CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS))
		fprintf(f, "\\n%#x to %zu x %zu of %u bytes", params->memset.value,
			params->memset.width, params->memset.height, params->memset.elementSize);
	if (all || flags & CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES)
		fprintf(f, "\\n%p", (void *)node->handle);
}

static void print_graph(FILE *f, const struct graph *graph, unsigned int flags)
{
	fprintf(f, "subgraph cluster_%llu {\nlabel=\"graph_%llu\"\n", (unsigned long long)graph->id,
		(unsigned long long)graph->id);
	for (const struct graph_node *node = graph->first; node; node = node->next) {
		fprintf(f, "\"node_%llu\" [label=\"", (unsigned long long)node->id);
		print_label(f, node, flags);
		fputs("\"]\n", f);
		if (node->type == CU_GRAPH_NODE_TYPE_GRAPH)
			print_graph(f, node_child(node), flags);
	}
	for (const struct graph_node *node = graph->first; node; node = node->next)
		for (size_t i = 0; i < node->n_after; i++)
			fprintf(f, "\"node_%llu\" -> \"node_%llu\"\n",
				(unsigned long long)node->after[i].from->id,
				(unsigned long long)node->id);
	fputs("}\n", f);
}

CALL(cuGraphDebugDotPrint, CUgraph handle, const char *path, unsigned int flags)
{
	struct graph *graph;
	FILE *f;
	CUresult r = graph_find(handle, &graph);

	if (r != CUDA_SUCCESS)
		return r;
	if (!path)
		return CUDA_ERROR_INVALID_VALUE;
	f = fopen(path, "we");
	if (!f)
		return CUDA_ERROR_OPERATING_SYSTEM;
	fputs("digraph dot {\n", f);
	print_graph(f, graph, flags);
	fputs("}\n", f);
	return fclose(f) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
