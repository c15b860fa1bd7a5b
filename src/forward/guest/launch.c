// SPDX-License-Identifier: Apache-2.0
/*
 * Launches.
 *
 * The layout of a kernel's parameters is asked for when the function is looked up, so that a launch is
 * only posted. A handle's index leads straight to it; handles of the host's count up from 1.
 */
#include "forward/guest/launch.h"

#include "base/base.h"
#include "forward/guest/call.h"
#include "forward/guest/log.h"

#include <pthread.h>
#include <string.h>

#define N_LAYOUTS (1U << 16)

struct slot {
	uint64_t handle;
	struct layout *layout;
};

/* Slots are filled under the lock and read without: the layout is stored before the handle. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct slot slots[N_LAYOUTS];

static CUresult layout_ask(uint64_t handle, struct layout **ret)
{
	const struct wire_parameters *head;
	struct guest_lane *l;
	struct layout *layout;
	const uint8_t *data = NULL;
	size_t size = 0, n = 0;
	void *body;
	CUresult r;

	r = call_begin(WIRE_PARAMETERS, sizeof(handle), &l, &body);
	if (r != CUDA_SUCCESS)
		return r;
	memcpy(body, &handle, sizeof(handle));
	r = lane_ask(l, &data, &size);
	head = (const struct wire_parameters *)data;
	if (r == CUDA_SUCCESS && size >= sizeof(*head))
		n = MIN((size_t)head->n, (size - sizeof(*head)) / sizeof(struct wire_parameter));
	else if (r != CUDA_ERROR_NOT_SUPPORTED)
		return r != CUDA_SUCCESS ? r : session_lose();
	layout = calloc(1, sizeof(*layout) + n * sizeof(layout->parameters[0]));
	if (!layout)
		return CUDA_ERROR_OUT_OF_MEMORY;
	layout->known = r;
	if (r == CUDA_SUCCESS) {
		layout->size = head->size;
		layout->n = (uint32_t)n;
		memcpy(layout->parameters, head + 1, n * sizeof(layout->parameters[0]));
	}
	*ret = layout;
	return CUDA_SUCCESS;
}

const struct layout *layout_get(uint64_t handle)
{
	struct slot *slot = &slots[(uint32_t)handle % N_LAYOUTS];
	struct layout *layout = NULL;

	if (__atomic_load_n(&slot->handle, __ATOMIC_ACQUIRE) == handle)
		return slot->layout;
	if (layout_ask(handle, &layout) != CUDA_SUCCESS || !layout)
		return NULL;
	/* What was there may be in use by a launch of this moment, so it stays. */
	pthread_mutex_lock(&lock);
	__atomic_store_n(&slot->handle, 0, __ATOMIC_RELEASE);
	slot->layout = layout;
	__atomic_store_n(&slot->handle, handle, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return layout;
}

/* A buffer that the program packed itself. */
static CUresult pack_extra(const struct layout *layout, void *const *extra, void *to)
{
	const void *from = NULL;
	size_t size = 0;

	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			from = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
			size = *(const size_t *)extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (size > layout->size || (size && !from))
		return CUDA_ERROR_INVALID_VALUE;
	if (size)
		memcpy(to, from, size);
	memset((char *)to + size, 0, layout->size - size);
	return CUDA_SUCCESS;
}

CUresult layout_pack(const struct layout *layout, void *const *parameters, void *const *extra,
		     void *to)
{
	uint32_t i;

	if (layout->known != CUDA_SUCCESS)
		return layout->known;
	if (parameters && extra)
		return CUDA_ERROR_INVALID_VALUE;
	if (extra)
		return pack_extra(layout, extra, to);
	if (layout->n && !parameters)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < layout->n; i++)
		memcpy((char *)to + layout->parameters[i].offset, parameters[i],
		       layout->parameters[i].size);
	return CUDA_SUCCESS;
}

/* What the driver refuses at once, and cheaply, is refused here, because a posted launch is told too late. */
static CUresult check_shape(const struct wire_launch *launch)
{
	int i;

	for (i = 0; i < 3; i++)
		if (launch->grid[i] == 0 || launch->block[i] == 0)
			return CUDA_ERROR_INVALID_VALUE;
	if (launch->grid[1] > 65535 || launch->grid[2] > 65535 || launch->grid[0] > INT32_MAX ||
	    (uint64_t)launch->block[0] * launch->block[1] > 1024 ||
	    launch->block[0] * launch->block[1] * (uint64_t)launch->block[2] > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult launch(const struct wire_launch *launch, const CUlaunchAttribute *attributes,
		       void *const *parameters, void *const *extra)
{
	size_t packed, attributes_size = launch->n_attributes * sizeof(*attributes);
	const struct layout *layout;
	struct wire_launch *head;
	struct guest_lane *l;
	uint8_t *at;
	CUresult r = session_check();

	if (r != CUDA_SUCCESS)
		return r;
	layout = launch->function ? layout_get(launch->function) : NULL;
	if (!layout)
		return session_check() != CUDA_SUCCESS ? DEVICE_LOST : CUDA_ERROR_INVALID_HANDLE;
	r = check_shape(launch);
	if (r != CUDA_SUCCESS)
		return r;
	packed = wire_align(layout->size);
	r = call_begin(CALL_ID_cuLaunchKernel, sizeof(*head) + packed + attributes_size, &l,
		       (void **)&head);
	if (r != CUDA_SUCCESS)
		return r;
	*head = *launch;
	head->parameters_size = layout->size;
	at = (uint8_t *)(head + 1);
	r = layout_pack(layout, parameters, extra, at);
	if (r != CUDA_SUCCESS)
		return r;
	if (attributes_size)
		memcpy(at + packed, attributes, attributes_size);
	return call_post(l);
}

/* The thread's own default stream, where a twin means it by NULL. */
static uint64_t stream_of(CUstream stream, bool twin)
{
	return POINTER(stream ? stream : twin ? CU_STREAM_PER_THREAD : NULL);
}

CALL_TWINS(cuLaunchKernel, _ptsz,
	   (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
	    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_size,
	    CUstream stream, void **parameters, void **extra),
	   (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_size, stream,
	    parameters, extra))
{
	struct wire_launch head = {
		.function = POINTER(function),
		.stream = stream_of(stream, id != CALL_ID_cuLaunchKernel),
		.grid = { grid_x, grid_y, grid_z },
		.block = { block_x, block_y, block_z },
		.shared_size = shared_size,
	};

	return launch(&head, NULL, parameters, extra);
}

CALL_TWINS(cuLaunchCooperativeKernel, _ptsz,
	   (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
	    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_size,
	    CUstream stream, void **parameters),
	   (function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_size, stream,
	    parameters))
{
	static const CUlaunchAttribute cooperative = { .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
						       .value = { .cooperative = 1 } };
	struct wire_launch head = {
		.function = POINTER(function),
		.stream = stream_of(stream, id != CALL_ID_cuLaunchCooperativeKernel),
		.grid = { grid_x, grid_y, grid_z },
		.block = { block_x, block_y, block_z },
		.shared_size = shared_size,
		.n_attributes = 1,
	};

	return launch(&head, &cooperative, parameters, NULL);
}

CALL_TWINS(cuLaunchKernelEx, _ptsz,
	   (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra),
	   (config, function, parameters, extra))
{
	struct wire_launch head;

	if (!config || config->numAttrs > WIRE_MAX_ATTRIBUTES ||
	    (config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	head = (struct wire_launch){
		.function = POINTER(function),
		.stream = stream_of(config->hStream, id != CALL_ID_cuLaunchKernelEx),
		.grid = { config->gridDimX, config->gridDimY, config->gridDimZ },
		.block = { config->blockDimX, config->blockDimY, config->blockDimZ },
		.shared_size = config->sharedMemBytes,
		.n_attributes = config->numAttrs,
	};
	return launch(&head, config->attrs, parameters, extra);
}

/* Looking a function up is when its layout is learnt. */
CALL(cuModuleGetFunction, CUfunction *ret, CUmodule module, const char *name)
{
	CUresult r = CALL_WORDS(CALL_ID_cuModuleGetFunction, POINTER(ret), POINTER(module),
				POINTER(name));

	if (r == CUDA_SUCCESS)
		layout_get(POINTER(*ret));
	return r;
}

CALL(cuLibraryGetKernel, CUkernel *ret, CUlibrary library, const char *name)
{
	CUresult r = CALL_WORDS(CALL_ID_cuLibraryGetKernel, POINTER(ret), POINTER(library),
				POINTER(name));

	if (r == CUDA_SUCCESS)
		layout_get(POINTER(*ret));
	return r;
}
