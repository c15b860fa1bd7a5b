// SPDX-License-Identifier: Apache-2.0
/*
 * Executable graphs: instantiating, launching, ending.
 *
 * A launch is one piece of work of its stream. The stream's thread takes the steps one after
 * another in the plan's order: branches of a graph could overlap on hardware, but a device that
 * runs one kernel at a time gains nothing from it.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/cuda/graph/capture.h"
#include "softgpu/cuda/stream/event.h"
#include "softgpu/cuda/graph/graph-exec.h"
#include "softgpu/cuda/graph/graph-mem.h"
#include "softgpu/cuda/code/launch.h"
#include "softgpu/cuda/stream/stream-queue.h"
#include "softgpu/engine/engine.h"

#define INSTANTIATE_FLAGS                                                                          \
	(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |    \
	 CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH |                                               \
	 CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)

struct graph_set {
	pthread_mutex_t lock;
	struct graph_exec *first;
};

/* A launch: parameters of work_graph. @points has one for each step, NULL but for events. */
struct graph_launch {
	struct graph_exec *exec;
	struct graph_plan *plan;
	struct event_point **points;
};

CUresult graph_exec_find(CUgraphExec handle, struct graph_exec **ret)
{
	return FIND(handle_get(HANDLE_GRAPH_EXEC, handle), CUDA_ERROR_INVALID_VALUE, ret);
}

static void exec_unref(struct graph_exec *exec)
{
	if (atomic_fetch_sub(&exec->n_references, 1) > 1)
		return;
	plan_unref(exec->plan);
	user_references_free(exec->user_references);
	pthread_mutex_destroy(&exec->lock);
	pthread_mutex_destroy(&exec->turn);
	free(exec);
}

/* The moment of the next step: it begins when the one before it has ended. */
static void moment_advance(struct stream_moment *moment)
{
	if (moment->end_ns == 0)
		moment->end_ns = engine_now_ns();
	if (moment->end_ns > moment->ready_ns)
		moment->ready_ns = moment->end_ns;
}

static CUresult step_run(const struct graph_step *step, struct event_point *point,
			 struct context *ctx, struct stream_moment *moment)
{
	switch (step->type) {
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		event_point_reach(point, moment->ready_ns);
		moment->end_ns = moment->ready_ns;
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		if (point)
			event_point_wait(point, ctx);
		return CUDA_SUCCESS;
	default:
		if (step->class->work)
			return step->class->work->run(step->ctx ? step->ctx : ctx, step->work);
		moment->end_ns = moment->ready_ns;
		return CUDA_SUCCESS;
	}
}

/* What a step runs at: its node's priority if the graph was instantiated so, else the stream's. */
static int step_priority(const struct graph_exec *exec, const struct graph_step *step,
			 int of_stream)
{
	if (!(exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) ||
	    step->type != CU_GRAPH_NODE_TYPE_KERNEL)
		return of_stream;
	return ((const struct kernel_work *)step->work)->priority;
}

static CUresult graph_run(struct context *ctx, void *params)
{
	const struct graph_launch *launch = params;
	struct stream_moment *moment = stream_moment();
	bool more = moment->more;
	int priority = moment->priority;
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&launch->exec->turn);
	for (size_t i = 0; i < launch->plan->n_steps && r == CUDA_SUCCESS; i++) {
		const struct graph_step *step = &launch->plan->steps[i];

		if (step->disabled)
			continue;
		if (stream_cancelled(ctx))
			break;
		moment->end_ns = 0;
		moment->more = more || i + 1 < launch->plan->n_steps;
		moment->priority = step_priority(launch->exec, step, priority);
		r = step_run(step, launch->points[i], ctx, moment);
		moment_advance(moment);
	}
	moment->end_ns = moment->ready_ns;
	pthread_mutex_unlock(&launch->exec->turn);
	return r;
}

static void launch_release(void *params)
{
	struct graph_launch *launch = params;

	for (size_t i = 0; i < launch->plan->n_steps; i++) {
		if (!launch->points[i])
			continue;
		/* Whoever waits for a step that was not run must not wait for ever. */
		if (launch->plan->steps[i].type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
			event_point_reach(launch->points[i], 0);
		event_point_unref(launch->points[i]);
	}
	free(launch->points);
	plan_unref(launch->plan);
	exec_unref(launch->exec);
}

/* Whoever submits a launch hands its references over. */
static const struct work_class work_graph = {
	.type = WORK_NO_NODE,
	.size = sizeof(struct graph_launch),
	.run = graph_run,
	.release = launch_release,
};

/* Events are recorded, and what waits for them is settled, when the graph is launched. */
static CUresult launch_prepare_event(struct graph_launch *launch, size_t i)
{
	const struct graph_step *step = &launch->plan->steps[i];
	struct event *event;
	CUresult r = event_find(step->event, &event);

	if (r != CUDA_SUCCESS)
		return r;
	if (step->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
		return event_record_begin(event, &launch->points[i]);
	launch->points[i] = event_latest(event);
	return CUDA_SUCCESS;
}

static CUresult launch_prepare(struct graph_launch *launch)
{
	bool auto_free = launch->exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
	CUresult r = CUDA_SUCCESS;

	for (size_t i = 0; i < launch->plan->n_steps && r == CUDA_SUCCESS; i++) {
		const struct graph_step *step = &launch->plan->steps[i];

		if (step->disabled)
			continue;
		if (step->event)
			r = launch_prepare_event(launch, i);
		else if (step->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
			r = graph_memory_back(step->dptr, auto_free || step->freed);
	}
	/* All or nothing: of a launch that fails no memory stays allocated. */
	for (size_t i = 0; i < launch->plan->n_steps && r == CUDA_SUCCESS; i++)
		if (launch->plan->steps[i].type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
			r = graph_memory_take(launch->plan->steps[i].dptr);
	return r;
}

static struct graph_plan *exec_plan(struct graph_exec *exec)
{
	struct graph_plan *plan;

	pthread_mutex_lock(&exec->lock);
	plan = plan_ref(exec->plan);
	pthread_mutex_unlock(&exec->lock);
	return plan;
}

/* A launch into a capture: a child graph that does the same. */
static CUresult exec_capture(struct graph_exec *exec, struct stream *stream)
{
	struct graph_plan *plan = exec_plan(exec);
	struct graph *graph = NULL;
	CUresult r;

	r = plan_graph(plan, &graph);
	plan_unref(plan);
	if (r == CUDA_SUCCESS)
		r = user_references_copy(exec->user_references, &graph->user_references);
	if (r == CUDA_SUCCESS)
		r = capture_graph(stream, graph);
	else
		capture_fail(stream, r);
	if (r != CUDA_SUCCESS)
		graph_free(graph);
	return r;
}

static CUresult exec_launch_in(struct graph_exec *exec, struct stream *stream)
{
	struct graph_launch launch = { .exec = exec, .plan = exec_plan(exec) };
	CUresult r;

	atomic_fetch_add(&exec->n_references, 1);
	launch.points = calloc(launch.plan->n_steps + 1, sizeof(*launch.points));
	if (!launch.points) {
		plan_unref(launch.plan);
		exec_unref(exec);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}

	r = launch_prepare(&launch);
	if (r == CUDA_SUCCESS)
		r = stream_submit(stream, &work_graph, &launch);
	if (r != CUDA_SUCCESS)
		launch_release(&launch);
	return r;
}

CALL_TWINS(cuGraphLaunch, _ptsz, (CUgraphExec handle, CUstream stream_handle),
	   (handle, stream_handle))
{
	struct graph_exec *exec;
	struct stream *stream;
	bool captures;
	CUresult r = graph_exec_find(handle, &exec);

	if (r == CUDA_SUCCESS)
		r = stream_find(stream_handle, dflt, &stream);
	if (r == CUDA_SUCCESS)
		r = capture_check(stream, &captures);
	if (r != CUDA_SUCCESS)
		return r;
	return captures ? exec_capture(exec, stream) : exec_launch_in(exec, stream);
}

/* There is nothing to upload to, but the memory of the graph is there afterwards. */
CALL_TWINS(cuGraphUpload, _ptsz, (CUgraphExec handle, CUstream stream_handle),
	   (handle, stream_handle))
{
	struct graph_exec *exec;
	struct stream *stream;
	CUresult r = graph_exec_find(handle, &exec);

	return r != CUDA_SUCCESS ? r : stream_find(stream_handle, dflt, &stream);
}

static CUresult exec_enter(struct graph_exec *exec)
{
	struct graph_set *set = exec->ctx->graphs;

	exec->handle = handle_new(CUgraphExec, HANDLE_GRAPH_EXEC, exec);
	if (!exec->handle)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&set->lock);
	exec->next = set->first;
	exec->at = &set->first;
	if (exec->next)
		exec->next->at = &exec->next;
	set->first = exec;
	pthread_mutex_unlock(&set->lock);
	return CUDA_SUCCESS;
}

/* The first @n steps' memory is another executable graph's to allocate again. */
static void memory_unclaim(const struct graph_plan *plan, size_t n)
{
	while (n-- > 0)
		if (plan->steps[n].type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
			graph_memory_unclaim(plan->steps[n].dptr);
}

/* Of a graph with memory there is one executable graph at a time. */
static CUresult memory_claim(const struct graph_plan *plan)
{
	for (size_t i = 0; i < plan->n_steps; i++) {
		if (plan->steps[i].type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
		    !graph_memory_claim(plan->steps[i].dptr)) {
			memory_unclaim(plan, i);
			return CUDA_ERROR_NOT_SUPPORTED;
		}
	}
	return CUDA_SUCCESS;
}

static CUresult exec_new(struct context *ctx, struct graph *graph, cuuint64_t flags,
			 CUgraphExec *ret, CUgraphNode *ret_bad)
{
	struct graph_exec *exec = calloc(1, sizeof(*exec));
	CUresult r;

	if (!exec)
		return CUDA_ERROR_OUT_OF_MEMORY;
	exec->ctx = ctx;
	exec->flags = flags;
	exec->n_references = 1;
	pthread_mutex_init(&exec->lock, NULL);
	pthread_mutex_init(&exec->turn, NULL);
	r = plan_new(graph, &exec->plan, ret_bad);
	if (r == CUDA_SUCCESS)
		r = user_references_copy(graph->user_references, &exec->user_references);
	if (r == CUDA_SUCCESS)
		r = memory_claim(exec->plan);
	if (r == CUDA_SUCCESS) {
		r = exec_enter(exec);
		if (r != CUDA_SUCCESS)
			memory_unclaim(exec->plan, exec->plan->n_steps);
	}
	if (r != CUDA_SUCCESS) {
		exec_unref(exec);
		return r;
	}
	*ret = exec->handle;
	return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *ret, CUgraph handle, cuuint64_t flags,
			    CUgraphNode *ret_bad)
{
	struct context *ctx;
	struct graph *graph;
	CUresult r = context_current(&ctx);

	if (r == CUDA_SUCCESS)
		r = graph_find(handle, &graph);
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || flags & ~(cuuint64_t)INSTANTIATE_FLAGS)
		return CUDA_ERROR_INVALID_VALUE;
	/* Kernels cannot launch anything here, graphs neither. */
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)
		return CUDA_ERROR_NOT_SUPPORTED;
	return exec_new(ctx, graph, flags, ret, ret_bad);
}

CALL(cuGraphInstantiateWithFlags, CUgraphExec *ret, CUgraph graph, unsigned long long flags)
{
	return instantiate(ret, graph, flags, NULL);
}

CALL(cuGraphInstantiate_v2, CUgraphExec *ret, CUgraph graph, CUgraphNode *ret_bad, char *log,
     size_t log_size)
{
	CUgraphNode bad = NULL;
	CUresult r = instantiate(ret, graph, 0, &bad);

	if (ret_bad)
		*ret_bad = bad;
	if (log && log_size > 0)
		log[0] = '\0';
	return r;
}

CALL(cuGraphInstantiate, CUgraphExec *ret, CUgraph graph, CUgraphNode *ret_bad, char *log,
     size_t log_size)
{
	return impl_cuGraphInstantiate_v2(ret, graph, ret_bad, log, log_size);
}

CALL_TWINS(cuGraphInstantiateWithParams, _ptsz,
	   (CUgraphExec * ret, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
	   (ret, graph, params))
{
	CUresult r;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	params->hErrNode_out = NULL;
	r = instantiate(ret, graph, params->flags, &params->hErrNode_out);
	if (r == CUDA_SUCCESS && params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
		r = twin_cuGraphUpload(dflt, *ret, params->hUploadStream);

	if (r == CUDA_SUCCESS)
		params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	else if (r == CUDA_ERROR_NOT_SUPPORTED)
		params->result_out = CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED;
	else if (r == CUDA_ERROR_INVALID_VALUE && !params->hErrNode_out)
		params->result_out = CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE;
	else
		params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
	return r;
}

CALL(cuGraphExecGetFlags, CUgraphExec handle, cuuint64_t *ret)
{
	struct graph_exec *exec;
	CUresult r = graph_exec_find(handle, &exec);

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	/* Uploading is done, not kept. */
	*ret = exec->flags & ~(cuuint64_t)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
	return CUDA_SUCCESS;
}

static CUresult exec_destroy(CUgraphExec handle)
{
	struct graph_exec *exec = handle_remove(HANDLE_GRAPH_EXEC, handle);
	struct graph_set *set;

	if (!exec)
		return CUDA_ERROR_INVALID_VALUE;
	set = exec->ctx->graphs;
	pthread_mutex_lock(&set->lock);
	*exec->at = exec->next;
	if (exec->next)
		exec->next->at = exec->at;
	pthread_mutex_unlock(&set->lock);
	memory_unclaim(exec->plan, exec->plan->n_steps);
	exec_unref(exec);
	return CUDA_SUCCESS;
}

CALL(cuGraphExecDestroy, CUgraphExec handle)
{
	CUresult r = driver_check();

	return r != CUDA_SUCCESS ? r : exec_destroy(handle);
}

static CUresult graphs_begin(struct context *ctx)
{
	ctx->graphs = calloc(1, sizeof(*ctx->graphs));
	if (!ctx->graphs)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_init(&ctx->graphs->lock, NULL);
	return CUDA_SUCCESS;
}

static void graphs_end(struct context *ctx)
{
	struct graph_set *set = ctx->graphs;

	while (set->first)
		exec_destroy(set->first->handle);
	pthread_mutex_destroy(&set->lock);
	free(set);
	ctx->graphs = NULL;
}

CONTEXT_PART(graphs, .order = 30, .begin = graphs_begin, .end = graphs_end);
