// SPDX-License-Identifier: Apache-2.0
/*
 * Whatever the call, it becomes a copy in three dimensions, each end of which is near, the program's own
 * pageable memory, or far: an array, device memory, or host memory that devices reach. What is near at one
 * end goes through the heap in packed pieces of some rows.
 */
#include "forward/guest/copy3d.h"

#include "base/base.h"
#include "forward/guest/call.h"
#include "forward/guest/capture.h"
#include "forward/guest/copy.h"
#include "forward/guest/memory.h"
#include "forward/guest/shared.h"
#include "forward/guest/variable.h"

#include <string.h>

/**
 * struct plan - a copy, looked through
 * @near_from, @near_to: where the program's memory begins; NULL for an end that is far
 */
struct plan {
	struct wire_copy wire;
	char *near_from, *near_to;
};

static bool is_far(uint64_t address)
{
	struct memory memory;

	return memory_find(address, &memory) || memory_is_device(address);
}

/* One end. The fields of both have the same names with src and dst before them. */
static CUresult side_make(CUmemorytype type, const void *host, CUdeviceptr device, CUarray array,
			  struct wire_side *side, char **ret_near)
{
	if (type == CU_MEMORYTYPE_UNIFIED)
		type = is_far(device) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
	else if (type == CU_MEMORYTYPE_HOST)
		device = POINTER(host);
	if (type == CU_MEMORYTYPE_HOST && is_far(device))
		type = CU_MEMORYTYPE_DEVICE;
	side->type = type;
	side->at = type == CU_MEMORYTYPE_ARRAY ? POINTER(array) : device;
	*ret_near = type == CU_MEMORYTYPE_HOST ? (char *)device : NULL;
	return side->at ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult plan_make(const CUDA_MEMCPY3D *copy, struct plan *ret)
{
	CUresult r;

	*ret = (struct plan){ .wire = {
				      .from = { .x = copy->srcXInBytes,
						.y = copy->srcY,
						.z = copy->srcZ,
						.pitch = copy->srcPitch,
						.rows = copy->srcHeight,
						.context = POINTER(copy->reserved0) },
				      .to = { .x = copy->dstXInBytes,
					      .y = copy->dstY,
					      .z = copy->dstZ,
					      .pitch = copy->dstPitch,
					      .rows = copy->dstHeight,
					      .context = POINTER(copy->reserved1) },
				      .width = copy->WidthInBytes,
				      .height = copy->Height,
				      .depth = copy->Depth,
			      } };
	if (copy->srcLOD || copy->dstLOD)
		return CUDA_ERROR_INVALID_VALUE;
	r = side_make(copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcArray,
		      &ret->wire.from, &ret->near_from);
	if (r == CUDA_SUCCESS)
		r = side_make(copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstArray,
			      &ret->wire.to, &ret->near_to);
	return r;
}

static uint64_t pitch_of(const struct wire_copy *copy, const struct wire_side *side)
{
	return side->pitch ? side->pitch : side->x + copy->width;
}

/* From the beginning of a near side to a row of the copy. */
static uint64_t row_offset(const struct wire_copy *copy, const struct wire_side *side, uint64_t z,
			   uint64_t y)
{
	uint64_t rows = side->rows ? side->rows : side->y + copy->height;

	return ((side->z + z) * rows + side->y + y) * pitch_of(copy, side) + side->x;
}

static void copy_near(const struct plan *plan)
{
	const struct wire_copy *copy = &plan->wire;
	uint64_t y, z;

	for (z = 0; z < copy->depth; z++)
		for (y = 0; y < copy->height; y++)
			memmove(plan->near_to + row_offset(copy, &copy->to, z, y),
				plan->near_from + row_offset(copy, &copy->from, z, y), copy->width);
}

enum sending {
	SEND_ASK,     /* the result is the call's */
	SEND_POST,    /* it is told later */
	SEND_AWAITED, /* a piece: copy_pipe_end() waits for it */
};

static CUresult send_copy(enum call_id id, const struct wire_copy *copy, enum sending how)
{
	struct guest_lane *l;
	void *body;
	CUresult r;

	r = call_begin(id, sizeof(*copy), &l, &body);
	if (r != CUDA_SUCCESS)
		return r;
	memcpy(body, copy, sizeof(*copy));
	switch (how) {
	case SEND_ASK:
		r = call_ask(l, NULL, NULL);
		variable_pull();
		return r;
	case SEND_POST:
		return call_post(l);
	default:
		lane_post_awaited(l);
		return CUDA_SUCCESS;
	}
}

/**
 * struct window - part of a copy that fits into a block: rows of one layer, or a stretch of one row
 */
struct window {
	uint64_t x, width;
	uint64_t y, n_rows;
	uint64_t z;
};

static void window_pack(const struct plan *plan, const struct window *w, char *block, bool out)
{
	const struct wire_copy *copy = &plan->wire;
	const struct wire_side *side = out ? &copy->to : &copy->from;
	char *near = out ? plan->near_to : plan->near_from;
	uint64_t i;

	session_count_copied(w->n_rows * w->width);
	for (i = 0; i < w->n_rows; i++) {
		char *row = near + row_offset(copy, side, w->z, w->y + i) + w->x;

		memcpy(out ? row : block + i * w->width, out ? block + i * w->width : row,
		       w->width);
	}
}

/* The copy of a window: the near end is the block, packed. */
static struct wire_copy window_copy(const struct plan *plan, const struct window *w, unsigned block)
{
	struct wire_copy copy = plan->wire;
	struct wire_side *near = plan->near_to ? &copy.to : &copy.from;
	struct wire_side *far = plan->near_to ? &copy.from : &copy.to;

	far->pitch = pitch_of(&plan->wire, far);
	far->rows = far->rows ? far->rows : far->y + plan->wire.height;
	far->x += w->x;
	far->y += w->y;
	far->z += w->z;
	*near = (struct wire_side){ .type = CU_MEMORYTYPE_HOST,
				    .buffer = heap_buffer(block, w->width * w->n_rows),
				    .pitch = w->width,
				    .rows = w->n_rows,
				    .context = near->context };
	copy.width = w->width;
	copy.height = w->n_rows;
	copy.depth = 1;
	return copy;
}

static CUresult window_in(enum call_id id, const struct plan *plan, struct copy_pipe *pipe,
			  const struct window *w)
{
	struct wire_copy copy;
	unsigned block;
	CUresult r;

	r = copy_pipe_next(pipe, &block);
	if (r != CUDA_SUCCESS)
		return r;
	window_pack(plan, w, heap_at(block), /* out= */ false);
	copy = window_copy(plan, w, block);
	r = send_copy(id, &copy, SEND_AWAITED);
	copy_pipe_sent(pipe, NULL, 0);
	return r;
}

static CUresult window_out(enum call_id id, const struct plan *plan,
			   _unused_ struct copy_pipe *pipe, const struct window *w)
{
	unsigned block = heap_take();
	struct wire_copy copy = window_copy(plan, w, block);
	CUresult r = send_copy(id, &copy, SEND_ASK);

	if (r == CUDA_SUCCESS)
		window_pack(plan, w, heap_at(block), /* out= */ true);
	heap_give(block);
	return r;
}

static CUresult copy_windows(enum call_id id, const struct plan *plan)
{
	const struct wire_copy *copy = &plan->wire;
	uint64_t most_rows = MAX((uint64_t)HEAP_BLOCK / copy->width, (uint64_t)1);
	struct copy_pipe pipe = { 0 };
	struct window w = { 0 };
	CUresult r = lane_get(&pipe.lane);

	for (w.z = 0; w.z < copy->depth && r == CUDA_SUCCESS; w.z++)
		for (w.y = 0; w.y < copy->height && r == CUDA_SUCCESS; w.y += w.n_rows) {
			w.n_rows = MIN(most_rows, copy->height - w.y);
			for (w.x = 0; w.x < copy->width && r == CUDA_SUCCESS; w.x += w.width) {
				w.width = MIN(copy->width - w.x, (uint64_t)HEAP_BLOCK);
				r = plan->near_to ? window_out(id, plan, &pipe, &w)
						  : window_in(id, plan, &pipe, &w);
			}
		}
	return copy_pipe_end(&pipe, r);
}

static bool is_empty(const struct wire_copy *copy)
{
	return !copy->width || !copy->height || !copy->depth;
}

static CUresult side_adopt(const struct wire_copy *copy, struct wire_side *side, const char *near)
{
	uint64_t reach;
	CUresult r;

	if (!near || is_empty(copy))
		return CUDA_SUCCESS;
	reach = row_offset(copy, side, copy->depth - 1, copy->height - 1) + copy->width;
	r = memory_adopt(near, reach);
	if (r == CUDA_SUCCESS && !shared_buffer(POINTER(near), reach, &side->buffer))
		r = CUDA_ERROR_INVALID_VALUE;
	return r;
}

CUresult copy3d_adopt(const CUDA_MEMCPY3D *copy, struct wire_copy *ret)
{
	struct plan plan;
	CUresult r = plan_make(copy, &plan);

	if (r == CUDA_SUCCESS)
		r = side_adopt(&plan.wire, &plan.wire.from, plan.near_from);
	if (r == CUDA_SUCCESS)
		r = side_adopt(&plan.wire, &plan.wire.to, plan.near_to);
	*ret = plan.wire;
	return r;
}

static CUresult copy3d(enum call_id id, const CUDA_MEMCPY3D *copy, CUstream stream)
{
	bool wait = wire_calls[id].class == WIRE_ROUND_TRIP;
	struct plan plan;
	CUresult r = session_check();

	if (r != CUDA_SUCCESS)
		return r;
	r = plan_make(copy, &plan);
	if (r != CUDA_SUCCESS || is_empty(&plan.wire))
		return r;
	if (!wait && capture_is_active() && (plan.near_from || plan.near_to))
		r = copy3d_adopt(copy, &plan.wire);
	else if (plan.near_from && plan.near_to)
		return copy_near(&plan), CUDA_SUCCESS;
	plan.wire.where = POINTER(stream);
	if (r != CUDA_SUCCESS)
		return r;
	if ((plan.near_from || plan.near_to) && (wait || !capture_is_active()))
		return copy_windows(id, &plan);
	return send_copy(id, &plan.wire, wait ? SEND_ASK : SEND_POST);
}

static CUDA_MEMCPY3D deepened(const CUDA_MEMCPY2D *copy)
{
	return (CUDA_MEMCPY3D){
		.srcXInBytes = copy->srcXInBytes,
		.srcY = copy->srcY,
		.srcMemoryType = copy->srcMemoryType,
		.srcHost = copy->srcHost,
		.srcDevice = copy->srcDevice,
		.srcArray = copy->srcArray,
		.srcPitch = copy->srcPitch,
		.dstXInBytes = copy->dstXInBytes,
		.dstY = copy->dstY,
		.dstMemoryType = copy->dstMemoryType,
		.dstHost = copy->dstHost,
		.dstDevice = copy->dstDevice,
		.dstArray = copy->dstArray,
		.dstPitch = copy->dstPitch,
		.WidthInBytes = copy->WidthInBytes,
		.Height = copy->Height,
		.Depth = 1,
	};
}

/* A copy in two dimensions travels as one in three, under that call's name. */
static CUresult copy2d(enum call_id id, const CUDA_MEMCPY2D *copy, CUstream stream)
{
	CUDA_MEMCPY3D deep;

	if (!copy)
		return CUDA_ERROR_INVALID_VALUE;
	deep = deepened(copy);
	return copy3d(id, &deep, stream);
}

static enum call_id pick(bool twin, enum call_id plain, enum call_id other)
{
	return twin ? other : plain;
}

CALL_TWINS(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D *copy), (copy))
{
	return copy2d(pick(id != CALL_ID_cuMemcpy2D_v2, CALL_ID_cuMemcpy3D_v2,
			   CALL_ID_cuMemcpy3D_v2_ptds),
		      copy, NULL);
}

CALL_TWINS(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D *copy), (copy))
{
	return copy2d(pick(id != CALL_ID_cuMemcpy2DUnaligned_v2, CALL_ID_cuMemcpy3D_v2,
			   CALL_ID_cuMemcpy3D_v2_ptds),
		      copy, NULL);
}

CALL_TWINS(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D *copy, CUstream stream), (copy, stream))
{
	return copy2d(pick(id != CALL_ID_cuMemcpy2DAsync_v2, CALL_ID_cuMemcpy3DAsync_v2,
			   CALL_ID_cuMemcpy3DAsync_v2_ptsz),
		      copy, stream);
}

CALL_TWINS(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D *copy), (copy))
{
	return copy ? copy3d(id, copy, NULL) : CUDA_ERROR_INVALID_VALUE;
}

CALL_TWINS(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D *copy, CUstream stream), (copy, stream))
{
	return copy ? copy3d(id, copy, stream) : CUDA_ERROR_INVALID_VALUE;
}

/* Between devices. The ends' contexts stand where other copies have reserved words. */
static CUresult copy_peer(enum call_id id, const CUDA_MEMCPY3D_PEER *peer, CUstream stream)
{
	CUDA_MEMCPY3D copy;

	if (!peer)
		return CUDA_ERROR_INVALID_VALUE;
	_Static_assert(sizeof(copy) == sizeof(*peer), "as a copy on one device");
	memcpy(&copy, peer, sizeof(copy));
	return copy3d(id, &copy, stream);
}

CALL_TWINS(cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D_PEER *copy), (copy))
{
	return copy_peer(id, copy, NULL);
}

CALL_TWINS(cuMemcpy3DPeerAsync, _ptsz, (const CUDA_MEMCPY3D_PEER *copy, CUstream stream),
	   (copy, stream))
{
	return copy_peer(id, copy, stream);
}
