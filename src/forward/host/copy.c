// SPDX-License-Identifier: Apache-2.0
/* Every byte that a copy reaches is looked at before the driver is asked: it would believe the addresses. */
#include "forward/host/copy.h"

#include "forward/host/driver.h"
#include "forward/host/handle.h"
#include "forward/host/memory.h"

#include <string.h>

/* Larger than any memory, and small enough that products of two with a small number do not wrap. */
#define EXTENT_MAX (1ULL << 40)

static bool extent_ok(const struct wire_copy *copy, const struct wire_side *side)
{
	return copy->width <= EXTENT_MAX && copy->height <= EXTENT_MAX &&
	       copy->depth <= EXTENT_MAX && side->x <= EXTENT_MAX && side->y <= EXTENT_MAX &&
	       side->z <= EXTENT_MAX && side->pitch <= EXTENT_MAX && side->rows <= EXTENT_MAX;
}

/* Bytes from a side's beginning to the last one that is copied. */
static bool reach_of(const struct wire_copy *copy, const struct wire_side *side, uint64_t *ret)
{
	unsigned __int128 pitch, rows, reach;

	if (!extent_ok(copy, side))
		return false;
	if (!copy->width || !copy->height || !copy->depth) {
		*ret = 0;
		return true;
	}
	pitch = side->pitch ? side->pitch : side->x + copy->width;
	rows = side->rows ? side->rows : side->y + copy->height;
	reach = (side->z + copy->depth - 1) * rows;
	if (reach > EXTENT_MAX)
		return false;
	reach = (reach + side->y + copy->height - 1) * pitch + side->x + copy->width;
	*ret = (uint64_t)reach;
	return reach <= EXTENT_MAX;
}

struct end {
	CUmemorytype type;
	void *host;
	uint64_t device;
	uint64_t array;
};

static bool end_take(const struct wire_copy *copy, const struct wire_side *side, struct end *ret)
{
	uint64_t reach;

	*ret = (struct end){ .type = (CUmemorytype)side->type };
	if (!reach_of(copy, side, &reach))
		return false;
	switch (side->type) {
	case CU_MEMORYTYPE_HOST:
		ret->host = grant_find(&side->buffer);
		return ret->host && reach <= side->buffer.size;
	case CU_MEMORYTYPE_DEVICE:
		ret->device = side->at;
		return range_ok(side->at, reach);
	case CU_MEMORYTYPE_ARRAY:
		return handle_get(HANDLE_ARRAY, side->at, &ret->array) == 0;
	default:
		return false;
	}
}

bool copy_take(const struct wire_copy *copy, CUDA_MEMCPY3D *ret)
{
	struct end from, to;

	if (!end_take(copy, &copy->from, &from) || !end_take(copy, &copy->to, &to))
		return false;
	*ret = (CUDA_MEMCPY3D){
		.srcXInBytes = copy->from.x,
		.srcY = copy->from.y,
		.srcZ = copy->from.z,
		.srcMemoryType = from.type,
		.srcHost = from.host,
		.srcDevice = from.device,
		.srcArray = (CUarray)from.array,
		.srcPitch = copy->from.pitch,
		.srcHeight = copy->from.rows,
		.dstXInBytes = copy->to.x,
		.dstY = copy->to.y,
		.dstZ = copy->to.z,
		.dstMemoryType = to.type,
		.dstHost = to.host,
		.dstDevice = to.device,
		.dstArray = (CUarray)to.array,
		.dstPitch = copy->to.pitch,
		.dstHeight = copy->to.rows,
		.WidthInBytes = copy->width,
		.Height = copy->height,
		.Depth = copy->depth,
	};
	return true;
}

CUresult copy_execute(struct command *command)
{
	struct reader reader = command_reader(command);
	const struct wire_copy *from = reader_bytes(&reader, sizeof(*from));
	CUDA_MEMCPY3D copy;
	uint64_t stream;

	if (!from || !copy_take(from, &copy))
		return CUDA_ERROR_INVALID_VALUE;
	if (handle_get(HANDLE_STREAM, from->where, &stream) < 0)
		return CUDA_ERROR_INVALID_HANDLE;
	return driver_call(command->call,
			   (const uint64_t[CALL_N_ARGUMENTS_MAX]){ POINTER(&copy), stream });
}

/* The same between devices; a side's context stands where other copies have a reserved word. */
CUresult copy_peer_execute(struct command *command)
{
	struct reader reader = command_reader(command);
	const struct wire_copy *from = reader_bytes(&reader, sizeof(*from));
	uint64_t stream, src_context, dst_context;
	CUDA_MEMCPY3D_PEER peer;
	CUDA_MEMCPY3D copy;

	if (!from || !copy_take(from, &copy))
		return CUDA_ERROR_INVALID_VALUE;
	if (handle_get(HANDLE_CONTEXT, from->from.context, &src_context) < 0 ||
	    handle_get(HANDLE_CONTEXT, from->to.context, &dst_context) < 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (handle_get(HANDLE_STREAM, from->where, &stream) < 0)
		return CUDA_ERROR_INVALID_HANDLE;
	_Static_assert(sizeof(peer) == sizeof(copy), "as a copy on one device");
	memcpy(&peer, &copy, sizeof(peer));
	peer.srcContext = (CUcontext)src_context;
	peer.dstContext = (CUcontext)dst_context;
	return driver_call(command->call,
			   (const uint64_t[CALL_N_ARGUMENTS_MAX]){ POINTER(&peer), stream });
}

static CUresult unpin(void *at)
{
	CUresult r = DRIVER(cuMemHostUnregister, POINTER(at));

	/* With the driver's word alone: what devices may still write to must not become somebody else's. */
	if (r == CUDA_SUCCESS || r == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED)
		pin_end(at);
	return r;
}

static CUresult pin(void *at, uint64_t size, uint64_t flags, uint64_t *ret_device)
{
	CUresult r;

	if (pin_begin(at, size) < 0)
		return CUDA_ERROR_INVALID_VALUE;
	r = DRIVER(cuMemHostRegister_v2, POINTER(at), size,
		   flags & ~(uint64_t)CU_MEMHOSTREGISTER_IOMEMORY);
	if (r != CUDA_SUCCESS) {
		pin_end(at);
		return r;
	}
	return DRIVER(cuMemHostGetDevicePointer_v2, POINTER(ret_device), POINTER(at), 0);
}

/* The buffer, then the flags of cuMemHostRegister(). */
CUresult pin_execute(struct command *command)
{
	struct reader reader = command_reader(command);
	uint64_t size = 0, flags, *device = reply_bytes(command, sizeof(*device));
	void *at = reader_buffer(&reader, &size);

	flags = reader_word(&reader);
	if (reader.failed || !device)
		return CUDA_ERROR_INVALID_VALUE;
	return command->call == WIRE_UNPIN ? unpin(at) : pin(at, size, flags, device);
}
