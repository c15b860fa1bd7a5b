// SPDX-License-Identifier: Apache-2.0
/*
 * The guest packs a kernel's parameters by the layout that the driver told, and the driver takes them as
 * they are packed. It checks nothing about them: their size has to be the kernel's own, or it would read
 * beyond what the guest sent.
 */
#include "forward/host/launch.h"

#include "base/base.h"
#include "forward/host/driver.h"
#include "forward/host/handle.h"

#include <string.h>

/* A handle's kind says by which of two calls the layout is asked for. */
static enum call_id layout_call(uint64_t handle)
{
	return handle >> 56 == HANDLE_KERNEL ? CALL_ID_cuKernelGetParamInfo
					     : CALL_ID_cuFuncGetParamInfo;
}

/* CUDA_ERROR_INVALID_VALUE behind the last one. */
static CUresult layout_at(enum call_id call, uint64_t object, size_t i, struct wire_parameter *ret)
{
	size_t offset = 0, size = 0;
	uint64_t words[CALL_N_ARGUMENTS_MAX] = { object, i, POINTER(&offset), POINTER(&size) };
	CUresult r = driver_call(call, words);

	*ret = (struct wire_parameter){ (uint32_t)offset, (uint32_t)size };
	return r;
}

CUresult launch_parameters(struct command *command)
{
	struct reader reader = command_reader(command);
	uint64_t handle = reader_word(&reader), object;
	struct wire_parameters *head = reply_bytes(command, sizeof(*head));
	struct wire_parameter next, *at;
	enum call_id call;
	CUresult r;

	if (reader.failed || !head || !handle || handle_get(HANDLE_FUNCTION, handle, &object) < 0)
		return CUDA_ERROR_INVALID_HANDLE;
	call = layout_call(handle);
	while ((r = layout_at(call, object, head->n, &next)) == CUDA_SUCCESS) {
		at = reply_bytes(command, sizeof(*at));
		if (!at || head->n == WIRE_MAX_PARAMETERS)
			return CUDA_ERROR_NOT_SUPPORTED;
		*at = next;
		head->n++;
		head->size = MAX(head->size, next.offset + next.size);
	}
	return r == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : r;
}

/* Bytes of all parameters: what a packed launch has to bring. */
static CUresult layout_size(uint64_t handle, uint64_t object, uint32_t *ret)
{
	enum call_id call = layout_call(handle);
	struct wire_parameter next;
	uint32_t i, size = 0;
	CUresult r;

	for (i = 0; (r = layout_at(call, object, i, &next)) == CUDA_SUCCESS; i++)
		size = MAX(size, next.offset + next.size);
	*ret = size;
	return r == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : r;
}

CUresult launch_size(uint64_t name, uint32_t *ret)
{
	uint64_t object;

	if (!name || handle_get(HANDLE_FUNCTION, name, &object) < 0)
		return CUDA_ERROR_INVALID_HANDLE;
	return layout_size(name, object, ret);
}

CUresult launch_pack(uint64_t name, void *const *parameters, void *to, size_t size)
{
	struct wire_parameter next;
	uint64_t object;
	uint32_t i;
	CUresult r;

	if (!name || handle_get(HANDLE_FUNCTION, name, &object) < 0)
		return CUDA_ERROR_INVALID_HANDLE;
	for (i = 0; (r = layout_at(layout_call(name), object, i, &next)) == CUDA_SUCCESS; i++) {
		if (next.size > size || next.offset > size - next.size)
			return CUDA_ERROR_INVALID_VALUE;
		memcpy((char *)to + next.offset, parameters[i], next.size);
	}
	return r == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : r;
}

/* The size of the kernel that was launched last: most launches repeat it. */
static CUresult layout_check(uint64_t handle, uint64_t object, uint32_t size)
{
	static __thread uint64_t last_handle;
	static __thread uint32_t last_size;
	CUresult r;

	if (handle != last_handle) {
		r = layout_size(handle, object, &last_size);
		if (r != CUDA_SUCCESS)
			return r;
		last_handle = handle;
	}
	return size == last_size ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Events among a launch's attributes are the guest's names. */
static bool attributes_take(struct reader *reader, uint32_t n, CUlaunchAttribute *ret)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const CUlaunchAttribute *from = reader_bytes(reader, sizeof(*from));
		uint64_t object;

		if (!from)
			return false;
		ret[i] = *from;
		if (from->id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT &&
		    from->id != CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT)
			continue;
		if (handle_get(HANDLE_EVENT, POINTER(from->value.programmaticEvent.event),
			       &object) < 0)
			return false;
		ret[i].value.programmaticEvent.event = (CUevent)object;
	}
	return true;
}

static CUresult launch_ex(const struct launch_taken *launch, CUlaunchAttribute *attributes,
			  void **extra)
{
	const struct wire_launch *head = launch->head;
	CUlaunchConfig config = {
		.gridDimX = head->grid[0],
		.gridDimY = head->grid[1],
		.gridDimZ = head->grid[2],
		.blockDimX = head->block[0],
		.blockDimY = head->block[1],
		.blockDimZ = head->block[2],
		.sharedMemBytes = head->shared_size,
		.hStream = (CUstream)launch->stream,
		.attrs = attributes,
		.numAttrs = head->n_attributes,
	};

	return DRIVER(cuLaunchKernelEx, POINTER(&config), launch->function, 0, POINTER(extra));
}

static CUresult launch_plain(const struct launch_taken *launch, void **extra)
{
	const struct wire_launch *head = launch->head;

	return DRIVER(cuLaunchKernel, launch->function, head->grid[0], head->grid[1], head->grid[2],
		      head->block[0], head->block[1], head->block[2], head->shared_size,
		      launch->stream, 0, POINTER(extra));
}

CUresult launch_take(struct reader *reader, struct launch_taken *ret)
{
	const struct wire_launch *head = reader_bytes(reader, sizeof(*head));

	if (!head || head->n_attributes > WIRE_MAX_ATTRIBUTES)
		return CUDA_ERROR_INVALID_VALUE;
	ret->head = head;
	ret->parameters = reader_bytes(reader, head->parameters_size);
	if (!ret->parameters)
		return CUDA_ERROR_INVALID_VALUE;
	if (!head->function || handle_get(HANDLE_FUNCTION, head->function, &ret->function) < 0 ||
	    handle_get(HANDLE_STREAM, head->stream, &ret->stream) < 0)
		return CUDA_ERROR_INVALID_HANDLE;
	return layout_check(head->function, ret->function, head->parameters_size);
}

CUresult launch_kernel(struct command *command)
{
	struct reader reader = command_reader(command);
	CUlaunchAttribute attributes[WIRE_MAX_ATTRIBUTES];
	struct launch_taken launch;
	size_t size;
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, NULL, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			  CU_LAUNCH_PARAM_END };
	CUresult r;

	r = launch_take(&reader, &launch);
	if (r != CUDA_SUCCESS)
		return r;
	if (!attributes_take(&reader, launch.head->n_attributes, attributes))
		return CUDA_ERROR_INVALID_HANDLE;
	size = launch.head->parameters_size;
	extra[1] = (void *)launch.parameters;
	if (launch.head->n_attributes)
		return launch_ex(&launch, attributes, size ? extra : NULL);
	return launch_plain(&launch, size ? extra : NULL);
}
