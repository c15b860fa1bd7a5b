// SPDX-License-Identifier: Apache-2.0
/* Plans: the steps of a graph in an order that respects all dependencies. */
#include <stdlib.h>
#include <string.h>

#include "softgpu/cuda/graph/graph-exec.h"
#include "softgpu/cuda/code/launch.h"

void step_empty(struct graph_step *step)
{
	if (!step->work)
		return;
	if (step->class->work->release)
		step->class->work->release(step->work);
	free(step->work);
	step->work = NULL;
}

CUresult step_fill(struct graph_step *step, const struct graph_node *node,
		   const CUgraphNodeParams *params)
{
	CUresult r;

	if (step->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
		step->event = params->eventRecord.event;
	else if (step->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
		step->event = params->eventWait.event;
	else if (step->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		step->dptr = params->alloc.dptr;
	else if (step->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
		step->dptr = params->free.dptr;
	if (!step->class->work)
		return CUDA_SUCCESS;

	step->work = calloc(1, step->class->work->size);
	if (!step->work)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = step->class->to_work(node, params, step->work);
	if (r != CUDA_SUCCESS) {
		free(step->work);
		step->work = NULL;
		return r;
	}
	if (step->type == CU_GRAPH_NODE_TYPE_KERNEL)
		step->ctx = ((struct kernel_work *)step->work)->function->module->ctx;
	return CUDA_SUCCESS;
}

struct graph_plan *plan_ref(struct graph_plan *plan)
{
	atomic_fetch_add(&plan->n_references, 1);
	return plan;
}

void plan_unref(struct graph_plan *plan)
{
	if (!plan || atomic_fetch_sub(&plan->n_references, 1) > 1)
		return;
	for (size_t i = 0; i < plan->n_steps; i++) {
		step_empty(&plan->steps[i]);
		free(plan->steps[i].after);
	}
	free(plan->steps);
	free(plan);
}

static struct graph_step *plan_append(struct graph_plan *plan)
{
	size_t room = plan->room ? 2 * plan->room : 16;
	struct graph_step *steps;

	if (plan->n_steps == plan->room) {
		steps = realloc(plan->steps, room * sizeof(*steps));
		if (!steps)
			return NULL;
		plan->steps = steps;
		plan->room = room;
	}
	steps = &plan->steps[plan->n_steps++];
	*steps = (struct graph_step){ 0 };
	return steps;
}

/* What order_nodes() knows of a node. */
enum visit {
	VISIT_NEW,
	VISIT_OPEN, /* it waits for those that come before it */
	VISIT_DONE,
};

struct ordering {
	struct graph_node **stack;
	size_t *next;	      /* of each node on the stack, the dependency to look at next */
	unsigned char *visit; /* by index */
	struct graph_node **order;
	size_t n_ordered;
};

/* Puts a node after everything it depends on. False if it depends on itself. */
static bool order_node(struct ordering *ordering, struct graph_node *node)
{
	struct graph_node *from;
	size_t depth = 0;

	ordering->stack[0] = node;
	ordering->next[0] = 0;
	ordering->visit[node->index] = VISIT_OPEN;
	for (;;) {
		node = ordering->stack[depth];
		if (ordering->next[depth] == node->n_after) {
			ordering->visit[node->index] = VISIT_DONE;
			ordering->order[ordering->n_ordered++] = node;
			if (depth-- == 0)
				return true;
			continue;
		}
		from = node->after[ordering->next[depth]++].from;
		if (ordering->visit[from->index] == VISIT_OPEN)
			return false;
		if (ordering->visit[from->index] == VISIT_NEW) {
			ordering->visit[from->index] = VISIT_OPEN;
			ordering->stack[++depth] = from;
			ordering->next[depth] = 0;
		}
	}
}

/* The nodes in an order that respects all edges; the caller frees it. */
static CUresult order_nodes(struct graph *graph, struct graph_node ***ret)
{
	size_t n = graph->n_nodes + 1, index = 0;
	struct ordering ordering = {
		.stack = calloc(n, sizeof(*ordering.stack)),
		.next = calloc(n, sizeof(*ordering.next)),
		.visit = calloc(n, sizeof(*ordering.visit)),
		.order = calloc(n, sizeof(*ordering.order)),
	};
	CUresult r = CUDA_SUCCESS;

	if (!ordering.stack || !ordering.next || !ordering.visit || !ordering.order)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	for (struct graph_node *node = graph->first; node; node = node->next)
		node->index = index++;
	for (struct graph_node *node = graph->first; node && r == CUDA_SUCCESS; node = node->next)
		if (ordering.visit[node->index] == VISIT_NEW && !order_node(&ordering, node))
			r = CUDA_ERROR_INVALID_VALUE;

	free(ordering.stack);
	free(ordering.next);
	free(ordering.visit);
	if (r == CUDA_SUCCESS)
		*ret = ordering.order;
	else
		free(ordering.order);
	return r;
}

static CUresult plan_add_graph(struct graph_plan *plan, struct graph *graph, CUgraphNode *ret_bad);

/* One node, and what is inside of it. From here on its index is its step's. */
static CUresult plan_add_node(struct graph_plan *plan, struct graph_node *node,
			      CUgraphNode *ret_bad)
{
	struct graph_step *step = plan_append(plan);
	size_t place = plan->n_steps - 1;
	CUresult r;

	if (!step)
		return CUDA_ERROR_OUT_OF_MEMORY;
	node->index = place;
	step->node = node->handle;
	step->node_id = node->id;
	step->type = node->type;
	step->class = node->class;
	step->after = calloc(node->n_after + 1, sizeof(*step->after));
	if (!step->after)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (; step->n_after < node->n_after; step->n_after++)
		step->after[step->n_after] = node->after[step->n_after].from->index;

	r = step_fill(step, node, &node->params);
	if (r == CUDA_SUCCESS && node->type == CU_GRAPH_NODE_TYPE_GRAPH) {
		r = plan_add_graph(plan, node_child(node), ret_bad);
		plan->steps[place].n_inside = plan->n_steps - place - 1;
	} else if (r != CUDA_SUCCESS && ret_bad) {
		*ret_bad = node->handle;
	}
	return r;
}

static CUresult plan_add_graph(struct graph_plan *plan, struct graph *graph, CUgraphNode *ret_bad)
{
	struct graph_node **order;
	CUresult r = order_nodes(graph, &order);

	if (r != CUDA_SUCCESS)
		return r;
	for (size_t i = 0; order[i] && r == CUDA_SUCCESS; i++)
		r = plan_add_node(plan, order[i], ret_bad);
	free(order);
	return r;
}

/* Tells allocations that the plan itself frees from those that outlive a launch. */
static void plan_mark_freed(struct graph_plan *plan)
{
	for (size_t i = 0; i < plan->n_steps; i++) {
		if (plan->steps[i].type != CU_GRAPH_NODE_TYPE_MEM_FREE)
			continue;
		for (size_t j = 0; j < i; j++)
			if (plan->steps[j].dptr == plan->steps[i].dptr)
				plan->steps[j].freed = true;
	}
}

CUresult plan_new(struct graph *graph, struct graph_plan **ret, CUgraphNode *ret_bad)
{
	struct graph_plan *plan = calloc(1, sizeof(*plan));
	CUresult r;

	if (!plan)
		return CUDA_ERROR_OUT_OF_MEMORY;
	plan->n_references = 1;
	r = plan_add_graph(plan, graph, ret_bad);
	if (r != CUDA_SUCCESS) {
		plan_unref(plan);
		return r;
	}
	plan_mark_freed(plan);
	*ret = plan;
	return CUDA_SUCCESS;
}

static CUresult step_copy(struct graph_step *to, const struct graph_step *from)
{
	const struct work_class *work = from->class->work;
	CUresult r;

	*to = *from;
	to->work = NULL;
	to->after = calloc(from->n_after + 1, sizeof(*to->after));
	if (!to->after)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(to->after, from->after, from->n_after * sizeof(*to->after));
	if (!from->work)
		return CUDA_SUCCESS;

	to->work = malloc(work->size);
	if (!to->work)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(to->work, from->work, work->size);
	r = work->copy ? work->copy(to->work, from->work) : CUDA_SUCCESS;
	if (r != CUDA_SUCCESS) {
		free(to->work);
		to->work = NULL;
	}
	return r;
}

CUresult plan_copy(const struct graph_plan *plan, struct graph_plan **ret)
{
	struct graph_plan *copy = calloc(1, sizeof(*copy));
	struct graph_step *step;
	CUresult r = CUDA_SUCCESS;

	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	copy->n_references = 1;
	for (size_t i = 0; i < plan->n_steps && r == CUDA_SUCCESS; i++) {
		step = plan_append(copy);
		r = step ? step_copy(step, &plan->steps[i]) : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r != CUDA_SUCCESS) {
		plan_unref(copy);
		return r;
	}
	*ret = copy;
	return CUDA_SUCCESS;
}

static CUresult graph_of_steps(const struct graph_plan *plan, CUgraphNode *nodes, size_t first,
			       size_t n, struct graph **ret);

/* The node of a step that is no work which the class knows how to make a node of. */
static CUresult node_of_step(struct graph *graph, const CUgraphNode *after,
			     const struct graph_plan *plan, CUgraphNode *nodes, size_t place,
			     struct graph_node **ret)
{
	const struct graph_step *step = &plan->steps[place];
	CUgraphNodeParams params = { .type = step->type };
	struct graph *inside = NULL;
	CUresult r = CUDA_SUCCESS;

	switch (step->type) {
	case CU_GRAPH_NODE_TYPE_GRAPH:
		r = graph_of_steps(plan, nodes, place + 1, step->n_inside, &inside);
		if (r != CUDA_SUCCESS)
			return r;
		params.graph.graph = inside->handle;
		params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
		break;
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		params.eventRecord.event = step->event;
		break;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		params.eventWait.event = step->event;
		break;
	case CU_GRAPH_NODE_TYPE_EMPTY:
		break;
	default:
		/* Memory: an address belongs to one node. */
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	r = node_new(graph, after, NULL, step->n_after, &params, ret);
	if (r != CUDA_SUCCESS)
		graph_free(inside);
	return r;
}

static CUresult graph_add_step(struct graph *graph, const struct graph_plan *plan,
			       CUgraphNode *nodes, size_t place)
{
	const struct graph_step *step = &plan->steps[place];
	CUgraphNodeParams nothing = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
	CUgraphNode *after = calloc(step->n_after + 1, sizeof(*after));
	struct graph_node *node = NULL;
	CUresult r;

	if (!after)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < step->n_after; i++)
		after[i] = nodes[step->after[i]];
	if (step->disabled)
		r = node_new(graph, after, NULL, step->n_after, &nothing, &node);
	else if (step->class->from_work)
		r = node_new_of_work(graph, after, NULL, step->n_after, step->type, step->work,
				     &node);
	else
		r = node_of_step(graph, after, plan, nodes, place, &node);
	if (r == CUDA_SUCCESS)
		nodes[place] = node->handle;
	free(after);
	return r;
}

/* @nodes: by place in the plan, those that there are already; filled in. */
static CUresult graph_of_steps(const struct graph_plan *plan, CUgraphNode *nodes, size_t first,
			       size_t n, struct graph **ret)
{
	struct graph *graph = NULL;
	CUresult r = graph_new(&graph);

	for (size_t i = first; i < first + n && r == CUDA_SUCCESS; i += 1 + plan->steps[i].n_inside)
		r = graph_add_step(graph, plan, nodes, i);
	if (r == CUDA_SUCCESS)
		*ret = graph;
	else
		graph_free(graph);
	return r;
}

CUresult plan_graph(const struct graph_plan *plan, struct graph **ret)
{
	CUgraphNode *nodes = calloc(plan->n_steps + 1, sizeof(*nodes));
	CUresult r;

	if (!nodes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = graph_of_steps(plan, nodes, 0, plan->n_steps, ret);
	free(nodes);
	return r;
}
