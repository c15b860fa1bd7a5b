// SPDX-License-Identifier: Apache-2.0
/*
 * Calls by the table: arguments become a record's words, and what the answer brings goes where the
 * arguments point.
 */
#include "forward/guest/call.h"

#include "base/base.h"
#include "forward/guest/cache.h"
#include "forward/guest/variable.h"

#include <string.h>

#define STRING_OUT_MAX 4096

/* How many elements an argument points at. */
static size_t element_count(const struct wire_argument *argument, const uint64_t *words)
{
	switch (argument->kind) {
	case WIRE_OUT_N:
	case WIRE_IN_N:
	case WIRE_HANDLES:
	case WIRE_OUT_HANDLES:
		return (uint32_t)words[argument->count];
	case WIRE_LIST:
		return *(const size_t *)words[argument->count];
	default:
		return 1;
	}
}

static size_t piece_size(const struct wire_argument *argument, const uint64_t *words, uint64_t word)
{
	if (argument->kind == WIRE_STRING)
		return strlen((const char *)word) + 1;
	return element_count(argument, words) * argument->size;
}

static bool is_read(const struct wire_argument *argument)
{
	return argument->kind == WIRE_IN || argument->kind == WIRE_IN_N ||
	       argument->kind == WIRE_INOUT || argument->kind == WIRE_STRING ||
	       argument->kind == WIRE_HANDLES;
}

static bool is_written(const struct wire_argument *argument)
{
	return argument->kind == WIRE_OUT || argument->kind == WIRE_OUT_N ||
	       argument->kind == WIRE_OUT_HANDLE || argument->kind == WIRE_OUT_HANDLES ||
	       argument->kind == WIRE_INOUT || argument->kind == WIRE_LIST ||
	       argument->kind == WIRE_STRING_OUT;
}

static size_t buffer_size(const struct guest_buffer *buffer, uint64_t size)
{
	return buffer->inlined ? size : sizeof(buffer->where);
}

/* Bytes of the body; 0 where it would be longer than a record may be. */
static size_t body_size(const struct wire_call *wire, const uint64_t *words)
{
	size_t i, piece, size = wire->n_arguments * sizeof(uint64_t);

	for (i = 0; i < wire->n_arguments; i++) {
		const struct wire_argument *argument = &wire->arguments[i];

		piece = 0;
		if (words[i] && is_read(argument))
			piece = piece_size(argument, words, words[i]);
		else if (words[i] && argument->kind == WIRE_BUFFER)
			piece = buffer_size((const void *)words[i], words[argument->count]);
		if (piece > WIRE_RECORD_MAX)
			return 0;
		size += wire_align(piece);
	}
	return size <= WIRE_RECORD_MAX - sizeof(struct wire_record) ? size : 0;
}

static uint64_t encode_piece(uint8_t **at, const void *from, size_t size)
{
	memcpy(*at, from, size);
	*at += wire_align(size);
	return size + 1;
}

static uint64_t encode_buffer(uint8_t **at, const struct guest_buffer *buffer, uint64_t size)
{
	if (!buffer->inlined) {
		encode_piece(at, &buffer->where, sizeof(buffer->where));
		return 1;
	}
	return encode_piece(at, buffer->inlined, size) + 1;
}

static void encode(const struct wire_call *wire, const uint64_t *words, void *body)
{
	uint8_t *at = (uint8_t *)body + wire->n_arguments * sizeof(uint64_t);
	uint64_t *out = body;
	size_t i;

	for (i = 0; i < wire->n_arguments; i++) {
		const struct wire_argument *argument = &wire->arguments[i];

		if (words[i] == 0)
			out[i] = 0;
		else if (is_read(argument))
			out[i] = encode_piece(&at, (const void *)words[i],
					      piece_size(argument, words, words[i]));
		else if (argument->kind == WIRE_STRING_OUT)
			out[i] = 1;
		else if (is_written(argument))
			out[i] = piece_size(argument, words, words[i]) + 1;
		else if (argument->kind == WIRE_BUFFER)
			out[i] = encode_buffer(&at, (const void *)words[i], words[argument->count]);
		else
			out[i] = words[i];
	}
}

/* A list's length is what the call said, at most what there was room for. */
static void decode_list(const struct wire_argument *argument, uint64_t *to, size_t room,
			const uint8_t *from, size_t n)
{
	memcpy(to, from, MIN(n, room) * argument->size);
}

/* The host's own text: the guest keeps a copy for as long as it lives. */
static const char *text_keep(const char *from)
{
	return strndup(from, STRING_OUT_MAX);
}

/* Lists are filled after their numbers are known, so the numbers of before are kept. */
static void decode(const struct wire_call *wire, const uint64_t *words, const uint8_t *data,
		   size_t size)
{
	size_t i, piece, room[CALL_N_ARGUMENTS_MAX] = { 0 };

	for (i = 0; i < wire->n_arguments; i++)
		if (words[i] && wire->arguments[i].kind == WIRE_LIST)
			room[i] = element_count(&wire->arguments[i], words);
	for (i = 0; i < wire->n_arguments; i++) {
		const struct wire_argument *argument = &wire->arguments[i];

		if (!words[i] || !is_written(argument))
			continue;
		piece = argument->kind == WIRE_STRING_OUT ? STRING_OUT_MAX
			: argument->kind == WIRE_LIST	  ? room[i] * argument->size
							  : piece_size(argument, words, words[i]);
		if (wire_align(piece) > size)
			return;
		if (argument->kind == WIRE_STRING_OUT)
			*(const char **)words[i] = text_keep((const char *)data);
		else if (argument->kind == WIRE_LIST)
			decode_list(argument, (uint64_t *)words[i], room[i], data, room[i]);
		else
			memcpy((void *)words[i], data, piece);
		data += wire_align(piece);
		size -= wire_align(piece);
	}
}

CUresult call_begin(unsigned call, size_t size, struct guest_lane **ret_lane, void **ret_body)
{
	CUresult r = lane_get(ret_lane);

	if (r != CUDA_SUCCESS)
		return r;
	variable_push(call);
	return lane_begin(*ret_lane, call, size, ret_body);
}

CUresult call_ask(struct guest_lane *l, const uint8_t **ret_data, size_t *ret_size)
{
	return lane_error(l, lane_ask(l, ret_data, ret_size));
}

CUresult call_post(struct guest_lane *l)
{
	if (session_is_synchronous())
		return call_ask(l, NULL, NULL);
	lane_post(l);
	return lane_error(l, CUDA_SUCCESS);
}

static CUresult ask_and_decode(const struct wire_call *wire, const uint64_t *words, size_t size,
			       struct guest_lane *l, unsigned call, const void *question)
{
	const uint8_t *data = NULL;
	size_t data_size = 0;
	CUresult r;

	r = lane_ask(l, &data, &data_size);
	if (r == CUDA_SUCCESS) {
		if (wire->cache)
			cache_add(wire->cache, call, question, size, data, data_size);
		decode(wire, words, data, data_size);
	}
	return lane_error(l, r);
}

/* The question is written aside first: it is what the answer is kept under. */
static CUresult call_cached(enum call_id id, const struct wire_call *wire, const uint64_t *words,
			    size_t size)
{
	uint64_t question[512], answer[1024];
	struct guest_lane *l;
	void *body;
	CUresult r = session_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (size > sizeof(question))
		return CUDA_ERROR_INVALID_VALUE;
	memset(question, 0, size);
	encode(wire, words, question);
	if (cache_find(wire->cache, id, question, size, answer, sizeof(answer))) {
		decode(wire, words, (const uint8_t *)answer, sizeof(answer));
		return CUDA_SUCCESS;
	}
	r = call_begin(id, size, &l, &body);
	if (r != CUDA_SUCCESS)
		return r;
	memcpy(body, question, size);
	return ask_and_decode(wire, words, size, l, id, question);
}

CUresult call_words_awaited(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX])
{
	const struct wire_call *wire = &wire_calls[id];
	size_t size = body_size(wire, words);
	struct guest_lane *l;
	void *body;
	CUresult r;

	r = call_begin(id, size, &l, &body);
	if (r != CUDA_SUCCESS)
		return r;
	encode(wire, words, body);
	lane_post_awaited(l);
	return CUDA_SUCCESS;
}

CUresult call_words(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX])
{
	const struct wire_call *wire = &wire_calls[id];
	size_t size = body_size(wire, words);
	struct guest_lane *l;
	void *body;
	CUresult r;

	if (size == 0 && wire->n_arguments)
		return CUDA_ERROR_INVALID_VALUE;
	if (wire->cache)
		return call_cached(id, wire, words, size);
	r = call_begin(id, size, &l, &body);
	if (r != CUDA_SUCCESS)
		return r;
	encode(wire, words, body);
	if (wire->class == WIRE_POST)
		r = call_post(l);
	else
		r = ask_and_decode(wire, words, size, l, id, NULL);
	if (wire->ends)
		cache_end(wire->ends);
	if (r == CUDA_SUCCESS && variable_waits_for(id))
		variable_pull();
	return r;
}
