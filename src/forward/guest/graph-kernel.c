// SPDX-License-Identifier: Apache-2.0
/*
 * Parameters of kernel nodes: those that a program sets, and those that it reads.
 *
 * What it reads points at values, which CUDA keeps until the node has others. They are kept here, a block for each
 * node that was asked about: of a node's end nothing is told when its graph ends, so for as long as the process lives.
 */
#include "forward/guest/graph-kernel.h"

#include "base/base.h"
#include "forward/guest/graph.h"

#include <pthread.h>

/**
 * struct kept - what a node's parameters point at
 * @pointers:	one for each value; the values lie behind them, as they are packed
 */
struct kept {
	struct kept *next;
	uint64_t node;
	size_t size;
	void **pointers;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept *all;

CUresult kernel_of(const CUDA_KERNEL_NODE_PARAMS *params, struct kernel *ret)
{
	uint64_t function = POINTER(params->func ? (void *)params->func : (void *)params->kern);

	*ret = (struct kernel){ params, function, function ? layout_get(function) : NULL };
	return ret->layout ? ret->layout->known : CUDA_ERROR_INVALID_HANDLE;
}

size_t kernel_size(const struct kernel *kernel)
{
	return sizeof(struct wire_launch) + wire_align(kernel->layout->size);
}

CUresult kernel_write(struct writer *w, const struct kernel *kernel)
{
	const CUDA_KERNEL_NODE_PARAMS *params = kernel->params;
	struct wire_launch launch = {
		.function = kernel->function,
		.grid = { params->gridDimX, params->gridDimY, params->gridDimZ },
		.block = { params->blockDimX, params->blockDimY, params->blockDimZ },
		.shared_size = params->sharedMemBytes,
		.parameters_size = kernel->layout->size,
	};

	write_bytes(w, &launch, sizeof(launch));
	return layout_pack(kernel->layout, params->kernelParams, params->extra, w->at);
}

CUDA_KERNEL_NODE_PARAMS kernel_params(const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUDA_KERNEL_NODE_PARAMS more = { 0 };

	memcpy(&more, params, sizeof(*params));
	return more;
}

/* Of a graph's node, or of an executable one's, where there is one. */
static CUresult set(enum call_id id, CUgraphExec exec, CUgraphNode node,
		    const CUDA_KERNEL_NODE_PARAMS *params)
{
	struct kernel kernel;
	struct writer w;
	CUresult r = session_check();

	if (r == CUDA_SUCCESS && !params)
		r = CUDA_ERROR_INVALID_VALUE;
	if (r == CUDA_SUCCESS)
		r = kernel_of(params, &kernel);
	if (r == CUDA_SUCCESS)
		r = writer_begin(&w, id, 2 * sizeof(uint64_t) + kernel_size(&kernel));
	if (r != CUDA_SUCCESS)
		return r;
	write_word(&w, POINTER(exec));
	write_word(&w, POINTER(node));
	r = kernel_write(&w, &kernel);
	return r == CUDA_SUCCESS ? call_ask(w.lane, NULL, NULL) : r;
}

CALL(cuGraphExecKernelNodeSetParams_v2, CUgraphExec exec, CUgraphNode node,
     const CUDA_KERNEL_NODE_PARAMS *params)
{
	return set(CALL_ID_cuGraphExecKernelNodeSetParams_v2, exec, node, params);
}

CALL(cuGraphExecKernelNodeSetParams, CUgraphExec exec, CUgraphNode node,
     const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUDA_KERNEL_NODE_PARAMS more;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	more = kernel_params(params);
	return cuGraphExecKernelNodeSetParams_v2(exec, node, &more);
}

CALL(cuGraphKernelNodeSetParams_v2, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
	return set(CALL_ID_cuGraphKernelNodeSetParams_v2, NULL, node, params);
}

CALL(cuGraphKernelNodeSetParams, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
	CUDA_KERNEL_NODE_PARAMS more;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	more = kernel_params(params);
	return cuGraphKernelNodeSetParams_v2(node, &more);
}

/* The caller has the lock. The node's block, with room for so many bytes. */
static struct kept *kept_get(uint64_t node, size_t size)
{
	struct kept *kept = all;
	void **room;

	while (kept && kept->node != node)
		kept = kept->next;
	if (kept && kept->size >= size)
		return kept;
	room = malloc(size);
	if (!room)
		return NULL;
	if (!kept) {
		kept = calloc(1, sizeof(*kept));
		if (!kept) {
			free(room);
			return NULL;
		}
		kept->node = node;
		kept->next = all;
		all = kept;
	}
	free(kept->pointers);
	kept->pointers = room;
	kept->size = size;
	return kept;
}

/* The packed values of a node, behind pointers to each. NULL where it has none, or there is no memory. */
static void **values_keep(uint64_t node, const struct layout *layout, const void *packed)
{
	struct kept *kept;
	char *values;
	uint32_t i;

	if (layout->n == 0)
		return NULL;
	pthread_mutex_lock(&lock);
	kept = kept_get(node, layout->n * sizeof(void *) + layout->size);
	if (kept) {
		values = (char *)(kept->pointers + layout->n);
		memcpy(values, packed, layout->size);
		for (i = 0; i < layout->n; i++)
			kept->pointers[i] = values + layout->parameters[i].offset;
	}
	pthread_mutex_unlock(&lock);
	return kept ? kept->pointers : NULL;
}

/* The answer is copied: to learn a layout may need another. */
static CUresult node_ask(CUgraphNode node, struct wire_kernel_node *ret, void *packed)
{
	const uint8_t *data = NULL;
	struct writer w;
	size_t size = 0;
	CUresult r;

	r = writer_begin(&w, CALL_ID_cuGraphKernelNodeGetParams_v2, sizeof(uint64_t));
	if (r != CUDA_SUCCESS)
		return r;
	write_word(&w, POINTER(node));
	r = lane_ask(w.lane, &data, &size);
	if (r == CUDA_SUCCESS) {
		if (size < sizeof(*ret))
			return session_lose();
		memcpy(ret, data, sizeof(*ret));
		if (ret->launch.parameters_size >
		    MIN(size - sizeof(*ret), (size_t)WIRE_MAX_PARAMETERS_SIZE))
			return session_lose();
		memcpy(packed, data + sizeof(*ret), ret->launch.parameters_size);
	}
	return lane_error(w.lane, r);
}

CALL(cuGraphKernelNodeGetParams_v2, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *ret)
{
	_cleanup_free_ void *packed = malloc(WIRE_MAX_PARAMETERS_SIZE);
	const struct layout *layout;
	struct wire_kernel_node asked;
	CUresult r = session_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || !packed)
		return ret ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
	r = node_ask(node, &asked, packed);
	if (r != CUDA_SUCCESS)
		return r;
	layout = layout_get(asked.launch.function ? asked.launch.function : asked.kernel);
	if (!layout || layout->size != asked.launch.parameters_size)
		return CUDA_ERROR_INVALID_HANDLE;
	*ret = (CUDA_KERNEL_NODE_PARAMS){
		.func = (CUfunction)asked.launch.function,
		.gridDimX = asked.launch.grid[0],
		.gridDimY = asked.launch.grid[1],
		.gridDimZ = asked.launch.grid[2],
		.blockDimX = asked.launch.block[0],
		.blockDimY = asked.launch.block[1],
		.blockDimZ = asked.launch.block[2],
		.sharedMemBytes = asked.launch.shared_size,
		.kernelParams = values_keep(POINTER(node), layout, packed),
		.kern = (CUkernel)asked.kernel,
		.ctx = (CUcontext)asked.context,
	};
	return layout->n && !ret->kernelParams ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CALL(cuGraphKernelNodeGetParams, CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *ret)
{
	CUDA_KERNEL_NODE_PARAMS more;
	CUresult r;

	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	r = cuGraphKernelNodeGetParams_v2(node, &more);
	if (r != CUDA_SUCCESS)
		return r;
	/* Where there is a kernel alone it stands for the function. */
	if (!more.func)
		more.func = (CUfunction)more.kern;
	memcpy(ret, &more, sizeof(*ret));
	return CUDA_SUCCESS;
}
