// SPDX-License-Identifier: Apache-2.0
/*
 * Copies in one dimension.
 *
 * Memory in a grant is named. Of other memory a little travels in the record itself, and more through the
 * heap in pieces, which are posted: the next one is filled while the host copies the last. A copy from
 * pageable memory has read it, and one to it has written it, when the call returns; CUDA promises as much
 * even where the call is called asynchronous.
 */
#include "forward/guest/copy.h"

#include "base/base.h"
#include "forward/guest/call.h"
#include "forward/guest/capture.h"
#include "forward/guest/memory.h"
#include "forward/guest/shared.h"
#include "forward/guest/variable.h"
#include "src/cuda/bulk-copy.h"

#include <string.h>

#define INLINE_MAX (16U << 10)
/* Takes longer than an idle CPU does to wake. */
#define APART_MIN (1U << 20)

/* The other side of the heap is another CPU's. A piece that is not a whole block belongs to a short copy. */
static void piece_copy(void *to, const void *from, size_t size)
{
	if (size >= BULK_COPY_MIN)
		bulk_copy(to, from, size);
	else
		memcpy(to, from, size);
}

static CUresult slot_end(struct copy_pipe *pipe, unsigned slot)
{
	CUresult r = lane_wait_executed(pipe->lane, pipe->numbers[slot]);

	if (r == CUDA_SUCCESS && pipe->out[slot])
		piece_copy(pipe->out[slot], heap_at(pipe->blocks[slot]), pipe->sizes[slot]);
	return r;
}

CUresult copy_pipe_next(struct copy_pipe *pipe, unsigned *ret_block)
{
	unsigned slot = pipe->n % COPY_DEPTH;
	CUresult r = CUDA_SUCCESS;

	if (pipe->n < COPY_DEPTH)
		pipe->blocks[slot] = heap_take();
	else
		r = slot_end(pipe, slot);
	*ret_block = pipe->blocks[slot];
	pipe->numbers[slot] = 0;
	pipe->out[slot] = NULL;
	pipe->n++;
	return r;
}

void copy_pipe_sent(struct copy_pipe *pipe, void *out, size_t size)
{
	unsigned slot = (pipe->n - 1) % COPY_DEPTH;

	pipe->numbers[slot] = pipe->lane->n_sent;
	pipe->sizes[slot] = size;
	pipe->out[slot] = out;
}

CUresult copy_pipe_end(struct copy_pipe *pipe, CUresult result)
{
	unsigned i, first = pipe->n > COPY_DEPTH ? pipe->n - COPY_DEPTH : 0;
	CUresult r;

	for (i = first; i < pipe->n; i++) {
		r = slot_end(pipe, i % COPY_DEPTH);
		if (result == CUDA_SUCCESS)
			result = r;
		heap_give(pipe->blocks[i % COPY_DEPTH]);
	}
	if (pipe->lane)
		pipe->lane->carrier.apart = false;
	variable_pull();
	return pipe->n ? lane_error(pipe->lane, result) : result;
}

/**
 * struct line - a copy in one dimension between host memory and the device's
 * @out:	to the host
 * @far:	address on the device, or an offset in @array
 */
struct line {
	enum call_id call;
	bool out;
	const void *near;
	uint64_t far;
	uint64_t array;
	size_t size;
	uint64_t stream;
};

/* Each call has its arguments in an order of its own. */
static void line_words(const struct line *line, size_t offset, const struct guest_buffer *buffer,
		       size_t size, uint64_t words[CALL_N_ARGUMENTS_MAX])
{
	const struct wire_argument *arguments = wire_calls[line->call].arguments;
	uint64_t far = line->far + offset, near = POINTER(buffer);

	memset(words, 0, CALL_N_ARGUMENTS_MAX * sizeof(words[0]));
	if (arguments[0].kind == WIRE_HANDLE) {
		words[0] = line->array;
		words[1] = far;
		words[2] = near;
	} else if (arguments[1].kind == WIRE_HANDLE) {
		words[0] = near;
		words[1] = line->array;
		words[2] = far;
	} else {
		words[0] = line->out ? near : far;
		words[1] = line->out ? far : near;
		words[2] = size;
		words[3] = line->stream;
		return;
	}
	words[3] = size;
}

static CUresult line_whole(const struct line *line, const struct guest_buffer *buffer)
{
	uint64_t words[CALL_N_ARGUMENTS_MAX];

	line_words(line, 0, buffer, line->size, words);
	return call_words(line->call, words);
}

/* One piece of pageable memory. */
static CUresult piece_send(struct copy_pipe *pipe, const struct line *line, size_t offset,
			   size_t size)
{
	uint64_t words[CALL_N_ARGUMENTS_MAX];
	struct guest_buffer buffer = { 0 };
	unsigned block;
	CUresult r;

	r = copy_pipe_next(pipe, &block);
	if (r != CUDA_SUCCESS)
		return r;
	buffer.where = heap_buffer(block, size);
	if (!line->out)
		piece_copy(heap_at(block), (const char *)line->near + offset, size);
	line_words(line, offset, &buffer, size, words);
	r = call_words_awaited(line->call, words);
	session_count_copied(size);
	copy_pipe_sent(pipe, line->out && r == CUDA_SUCCESS ? (char *)line->near + offset : NULL,
		       size);
	return r;
}

static CUresult line_in_pieces(const struct line *line)
{
	struct copy_pipe pipe = { 0 };
	size_t offset, size;
	CUresult r;

	r = lane_get(&pipe.lane);
	if (r == CUDA_SUCCESS)
		pipe.lane->carrier.apart = line->size >= APART_MIN;
	for (offset = 0; offset < line->size && r == CUDA_SUCCESS; offset += size) {
		size = MIN(line->size - offset, (size_t)HEAP_BLOCK);
		r = piece_send(&pipe, line, offset, size);
	}
	return copy_pipe_end(&pipe, r);
}

/*
 * A little pageable memory. The driver may wait for the stream before it has read it, so the caller waits,
 * too, and nobody else.
 */
static CUresult line_inlined(const struct line *line, const struct guest_buffer *buffer)
{
	uint64_t words[CALL_N_ARGUMENTS_MAX];
	struct guest_lane *l;
	CUresult r;

	line_words(line, 0, buffer, line->size, words);
	session_count_copied(line->size);
	r = lane_get(&l);
	if (r == CUDA_SUCCESS)
		r = call_words_awaited(line->call, words);
	if (r == CUDA_SUCCESS)
		r = lane_wait_executed(l, l->n_sent);
	variable_pull();
	return r == CUDA_SUCCESS ? lane_error(l, r) : r;
}

/* What a capture records runs later: the host needs the memory itself. */
static CUresult line_adopted(const struct line *line)
{
	struct guest_buffer buffer = { 0 };
	CUresult r = memory_adopt(line->near, line->size);

	if (r == CUDA_SUCCESS && !shared_buffer(POINTER(line->near), line->size, &buffer.where))
		r = CUDA_ERROR_INVALID_VALUE;
	return r == CUDA_SUCCESS ? line_whole(line, &buffer) : r;
}

static CUresult line_copy(const struct line *line)
{
	struct guest_buffer buffer = { 0 };
	CUresult r = session_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (!line->near && line->size)
		return CUDA_ERROR_INVALID_VALUE;
	if (shared_buffer(POINTER(line->near), line->size, &buffer.where))
		return line_whole(line, &buffer);
	if (capture_is_active() && wire_calls[line->call].class == WIRE_POST)
		return line_adopted(line);
	if (!line->out && line->size <= INLINE_MAX) {
		buffer.inlined = line->near ? line->near : "";
		return line_inlined(line, &buffer);
	}
	return line_in_pieces(line);
}

CALL_TWINS(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr to, const void *from, size_t size),
	   (to, from, size))
{
	return line_copy(&(struct line){ .call = id, .near = from, .far = to, .size = size });
}

CALL_TWINS(cuMemcpyHtoDAsync_v2, _ptsz,
	   (CUdeviceptr to, const void *from, size_t size, CUstream stream),
	   (to, from, size, stream))
{
	return line_copy(&(struct line){ id, .near = from, .far = to, .size = size,
					 .stream = POINTER(stream) });
}

CALL_TWINS(cuMemcpyDtoH_v2, _ptds, (void *to, CUdeviceptr from, size_t size), (to, from, size))
{
	return line_copy(&(struct line){ id, .out = true, .near = to, .far = from, .size = size });
}

CALL_TWINS(cuMemcpyDtoHAsync_v2, _ptsz, (void *to, CUdeviceptr from, size_t size, CUstream stream),
	   (to, from, size, stream))
{
	return line_copy(
		&(struct line){ id, true, to, from, .size = size, .stream = POINTER(stream) });
}

CALL_TWINS(cuMemcpyHtoA_v2, _ptds, (CUarray to, size_t offset, const void *from, size_t size),
	   (to, offset, from, size))
{
	return line_copy(&(struct line){ id, .near = from, .far = offset, .array = POINTER(to),
					 .size = size });
}

CALL_TWINS(cuMemcpyAtoH_v2, _ptds, (void *to, CUarray from, size_t offset, size_t size),
	   (to, from, offset, size))
{
	return line_copy(&(struct line){ id, .out = true, .near = to, .far = offset,
					 .array = POINTER(from), .size = size });
}

/* Copies of which the addresses tell where they go. */

static bool is_far(CUdeviceptr address)
{
	struct memory memory;

	return memory_find(address, &memory) || memory_is_device(address);
}

/* The calls that do it, with and without waiting, for a program's default stream or a thread's. */
struct directions {
	enum call_id in, out, across;
};

static CUresult copy_anywhere(const struct directions *calls_for, CUdeviceptr to, CUdeviceptr from,
			      size_t size, uint64_t stream)
{
	bool to_far, from_far;
	CUresult r = session_check();

	if (r != CUDA_SUCCESS || size == 0)
		return r;
	to_far = is_far(to);
	from_far = is_far(from);
	if (to_far && from_far)
		return CALL_WORDS(calls_for->across, to, from, size, stream);
	if (to_far)
		return line_copy(
			&(struct line){ calls_for->in, false, (void *)from, to, 0, size, stream });
	if (from_far)
		return line_copy(
			&(struct line){ calls_for->out, true, (void *)to, from, 0, size, stream });
	memmove((void *)to, (void *)from, size);
	return CUDA_SUCCESS;
}

CALL_TWINS(cuMemcpy, _ptds, (CUdeviceptr to, CUdeviceptr from, size_t size), (to, from, size))
{
	static const struct directions plain = { CALL_ID_cuMemcpyHtoD_v2, CALL_ID_cuMemcpyDtoH_v2,
						 CALL_ID_cuMemcpyDtoD_v2 };
	static const struct directions twin = { CALL_ID_cuMemcpyHtoD_v2_ptds,
						CALL_ID_cuMemcpyDtoH_v2_ptds,
						CALL_ID_cuMemcpyDtoD_v2_ptds };

	return copy_anywhere(id == CALL_ID_cuMemcpy ? &plain : &twin, to, from, size, 0);
}

CALL_TWINS(cuMemcpyAsync, _ptsz, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream),
	   (to, from, size, stream))
{
	static const struct directions plain = { CALL_ID_cuMemcpyHtoDAsync_v2,
						 CALL_ID_cuMemcpyDtoHAsync_v2,
						 CALL_ID_cuMemcpyDtoDAsync_v2 };
	static const struct directions twin = { CALL_ID_cuMemcpyHtoDAsync_v2_ptsz,
						CALL_ID_cuMemcpyDtoHAsync_v2_ptsz,
						CALL_ID_cuMemcpyDtoDAsync_v2_ptsz };

	return copy_anywhere(id == CALL_ID_cuMemcpyAsync ? &plain : &twin, to, from, size,
			     POINTER(stream));
}
