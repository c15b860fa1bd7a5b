// SPDX-License-Identifier: Apache-2.0
/*
 * Changing executable graphs: the parameters of single nodes, all parameters at once from another
 * graph of the same shape, and switching nodes off. Launches that are queued keep the plan they
 * have.
 */
#include "softgpu/cuda/graph/graph-exec.h"

static struct graph_step *step_find(struct graph_plan *plan, const struct graph_node *node)
{
	for (size_t i = 0; i < plan->n_steps; i++)
		if (plan->steps[i].node_id == node->id)
			return &plan->steps[i];
	return NULL;
}

/* The step of a node, and the executable graph's lock. */
static CUresult step_lock(CUgraphExec handle, CUgraphNode node_handle, struct graph_exec **ret,
			  struct graph_step **ret_step, struct graph_node **ret_node)
{
	CUresult r = graph_exec_find(handle, ret);

	if (r == CUDA_SUCCESS)
		r = node_find(node_handle, ret_node);
	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&(*ret)->lock);
	*ret_step = step_find((*ret)->plan, *ret_node);
	if (*ret_step)
		return CUDA_SUCCESS;
	pthread_mutex_unlock(&(*ret)->lock);
	return CUDA_ERROR_INVALID_VALUE;
}

/* Makes the plan one that nobody else has. Steps keep their places. */
static CUresult plan_own(struct graph_exec *exec)
{
	struct graph_plan *copy;
	CUresult r;

	if (atomic_load(&exec->plan->n_references) == 1)
		return CUDA_SUCCESS;
	r = plan_copy(exec->plan, &copy);
	if (r != CUDA_SUCCESS)
		return r;
	plan_unref(exec->plan);
	exec->plan = copy;
	return CUDA_SUCCESS;
}

/* Steps count their dependencies from the start of their plan: @first is the difference. */
static bool steps_match(const struct graph_step *old, size_t first, const struct graph_step *new)
{
	if (old->n_inside != new->n_inside || old->n_after != new->n_after)
		return false;
	for (size_t i = 0; i < old->n_after; i++)
		if (old->after[i] != new->after[i] + first)
			return false;
	return true;
}

/* A copy stays between the same kinds of memory. */
static bool copy_kind_changes(const struct graph_step *old, const struct graph_step *new)
{
	const CUDA_MEMCPY3D *was = old->work, *is = new->work;

	return old->type == CU_GRAPH_NODE_TYPE_MEMCPY &&
	       (was->srcMemoryType != is->srcMemoryType || was->dstMemoryType != is->dstMemoryType);
}

/* Whether the @n steps of @plan from @first on have the shape of all of @other's. */
static CUgraphExecUpdateResult compare(const struct graph_plan *plan, size_t first, size_t n,
				       const struct graph_plan *other, size_t *ret_bad)
{
	const struct graph_step *old, *new;

	*ret_bad = 0;
	if (n != other->n_steps)
		return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	for (size_t i = 0; i < n; i++) {
		old = &plan->steps[first + i];
		new = &other->steps[i];
		*ret_bad = i;
		if (old->type != new->type)
			return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
		if (!steps_match(old, first, new))
			return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
		if (old->ctx != new->ctx)
			return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
		if (old->dptr != new->dptr || copy_kind_changes(old, new))
			return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
	}
	return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/* Moves the work of all of @other's steps to those of @plan from @first on. */
static void take_steps(struct graph_plan *plan, size_t first, struct graph_plan *other)
{
	for (size_t i = 0; i < other->n_steps; i++) {
		struct graph_step *to = &plan->steps[first + i], *from = &other->steps[i];

		step_empty(to);
		to->work = from->work;
		to->event = from->event;
		to->dptr = from->dptr;
		from->work = NULL;
	}
}

/* Another graph for a child graph node. Under the lock. */
static CUresult exec_set_child(struct graph_exec *exec, size_t place, CUgraph handle)
{
	struct graph_plan *plan;
	struct graph *graph;
	size_t bad;
	CUresult r = graph_find(handle, &graph);

	if (r == CUDA_SUCCESS)
		r = plan_new(graph, &plan, NULL);
	if (r != CUDA_SUCCESS)
		return r;
	if (compare(exec->plan, place + 1, exec->plan->steps[place].n_inside, plan, &bad) !=
	    CU_GRAPH_EXEC_UPDATE_SUCCESS)
		r = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	else
		take_steps(exec->plan, place + 1, plan);
	plan_unref(plan);
	return r;
}

/* Other parameters for a node. Under the lock. */
static CUresult exec_set_step(struct graph_step *step, const struct graph_node *node,
			      CUgraphNodeParams *params)
{
	struct graph_step fresh = { .type = step->type, .class = step->class };
	CUgraphNodeParams taken;
	CUresult r;

	r = step->class->take(&taken, params);
	if (r != CUDA_SUCCESS)
		return r;
	r = step_fill(&fresh, node, &taken);
	node_params_release(step->class, &taken);
	if (r != CUDA_SUCCESS)
		return r;
	if (fresh.ctx != step->ctx || copy_kind_changes(step, &fresh)) {
		step_empty(&fresh);
		return CUDA_ERROR_INVALID_VALUE;
	}
	step_empty(step);
	step->work = fresh.work;
	step->event = fresh.event;
	return CUDA_SUCCESS;
}

CUresult graph_exec_set(CUgraphExec handle, CUgraphNode node_handle, CUgraphNodeParams *params)
{
	struct graph_exec *exec;
	struct graph_node *node;
	struct graph_step *step;
	size_t place;
	CUresult r = step_lock(handle, node_handle, &exec, &step, &node);

	if (r != CUDA_SUCCESS)
		return r;
	place = step - exec->plan->steps;
	if (params->type != step->type)
		r = CUDA_ERROR_INVALID_VALUE;
	else if (step->dptr)
		r = CUDA_ERROR_NOT_SUPPORTED;
	else
		r = plan_own(exec);
	if (r == CUDA_SUCCESS && params->type == CU_GRAPH_NODE_TYPE_GRAPH)
		r = exec_set_child(exec, place, params->graph.graph);
	else if (r == CUDA_SUCCESS)
		r = exec_set_step(&exec->plan->steps[place], node, params);
	pthread_mutex_unlock(&exec->lock);
	return r;
}

static CUresult exec_update(struct graph_exec *exec, struct graph *graph,
			    CUgraphExecUpdateResultInfo *info)
{
	struct graph_plan *plan;
	size_t bad;
	CUresult r = plan_new(graph, &plan, NULL);

	info->result = CU_GRAPH_EXEC_UPDATE_ERROR;
	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&exec->lock);
	info->result = compare(exec->plan, 0, exec->plan->n_steps, plan, &bad);
	if (info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS)
		r = plan_own(exec);
	else if (plan->n_steps > bad)
		info->errorNode = plan->steps[bad].node;
	if (info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS && r == CUDA_SUCCESS)
		take_steps(exec->plan, 0, plan);
	pthread_mutex_unlock(&exec->lock);
	plan_unref(plan);
	if (r != CUDA_SUCCESS)
		return r;
	return info->result == CU_GRAPH_EXEC_UPDATE_SUCCESS ? CUDA_SUCCESS
							    : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

CALL(cuGraphExecUpdate_v2, CUgraphExec handle, CUgraph graph_handle,
     CUgraphExecUpdateResultInfo *info)
{
	struct graph_exec *exec;
	struct graph *graph;
	CUresult r = graph_exec_find(handle, &exec);

	if (r == CUDA_SUCCESS)
		r = graph_find(graph_handle, &graph);
	if (r != CUDA_SUCCESS)
		return r;
	if (!info)
		return CUDA_ERROR_INVALID_VALUE;
	*info = (CUgraphExecUpdateResultInfo){ 0 };
	return exec_update(exec, graph, info);
}

CALL(cuGraphExecUpdate, CUgraphExec exec, CUgraph graph, CUgraphNode *ret_bad,
     CUgraphExecUpdateResult *ret_result)
{
	CUgraphExecUpdateResultInfo info;
	CUresult r;

	if (!ret_result)
		return CUDA_ERROR_INVALID_VALUE;
	r = impl_cuGraphExecUpdate_v2(exec, graph, &info);
	*ret_result = info.result;
	if (ret_bad)
		*ret_bad = info.errorNode;
	return r;
}

CALL(cuGraphNodeSetEnabled, CUgraphExec handle, CUgraphNode node_handle, unsigned int enabled)
{
	struct graph_exec *exec;
	struct graph_node *node;
	struct graph_step *step;
	size_t place;
	CUresult r = step_lock(handle, node_handle, &exec, &step, &node);

	if (r != CUDA_SUCCESS)
		return r;
	place = step - exec->plan->steps;
	r = step->class->can_disable ? plan_own(exec) : CUDA_ERROR_INVALID_VALUE;
	if (r == CUDA_SUCCESS)
		exec->plan->steps[place].disabled = !enabled;
	pthread_mutex_unlock(&exec->lock);
	return r;
}

CALL(cuGraphNodeGetEnabled, CUgraphExec handle, CUgraphNode node_handle, unsigned int *ret)
{
	struct graph_exec *exec;
	struct graph_node *node;
	struct graph_step *step;
	CUresult r = step_lock(handle, node_handle, &exec, &step, &node);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || !step->class->can_disable)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		*ret = !step->disabled;
	pthread_mutex_unlock(&exec->lock);
	return r;
}
