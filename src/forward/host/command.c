// SPDX-License-Identifier: Apache-2.0
/*
 * Executing by the table: a record's words become the driver's arguments.
 *
 * Whatever is wrong with them is answered as the driver would answer a wrong argument. What a call writes
 * goes straight to the reply's place; the objects among it get names afterwards.
 */
#include "forward/host/command.h"

#include "base/base.h"
#include "forward/host/driver.h"
#include "forward/host/handle.h"
#include "forward/host/memory.h"

#include <string.h>

#define STRING_OUT_MAX 4096

struct reader command_reader(const struct command *command)
{
	return (struct reader){ .at = command->body, .end = command->body + command->size };
}

const void *reader_bytes(struct reader *reader, size_t n)
{
	const uint8_t *at = reader->at;

	if (reader->failed || n > WIRE_RECORD_MAX || wire_align(n) > (size_t)(reader->end - at)) {
		reader->failed = true;
		return NULL;
	}
	reader->at += wire_align(n);
	return at;
}

uint64_t reader_word(struct reader *reader)
{
	const uint64_t *word = reader_bytes(reader, sizeof(*word));

	return word ? *word : 0;
}

uint64_t reader_handle(struct reader *reader, enum handle_kind kind)
{
	uint64_t object = 0;

	if (handle_get(kind, reader_word(reader), &object) < 0)
		reader->failed = true;
	return object;
}

void *reader_buffer(struct reader *reader, uint64_t *ret_size)
{
	const struct wire_buffer *buffer = reader_bytes(reader, sizeof(*buffer));
	void *at = buffer ? grant_find(buffer) : NULL;

	if (!at)
		reader->failed = true;
	else
		*ret_size = buffer->size;
	return at;
}

void *reply_bytes(struct command *command, size_t n)
{
	uint8_t *at = command->reply + command->reply_size;

	if (n > REPLY_MAX || wire_align(n) > REPLY_MAX - command->reply_size)
		return NULL;
	command->reply_size += wire_align(n);
	memset(at, 0, wire_align(n));
	return at;
}

/* How many elements a pointer's word speaks of; it has to fit what the call is told. */
static bool element_count(const struct wire_argument *argument, uint64_t word, const uint64_t *raw,
			  size_t *ret)
{
	size_t bytes = word - 1;

	if (bytes > REPLY_MAX || bytes % argument->size)
		return false;
	*ret = bytes / argument->size;
	switch (argument->kind) {
	case WIRE_OUT_N:
	case WIRE_IN_N:
	case WIRE_HANDLES:
	case WIRE_OUT_HANDLES:
		return (uint32_t)raw[argument->count] == *ret;
	case WIRE_LIST:
		return true;
	default:
		return *ret == 1;
	}
}

struct decoder {
	struct command *command;
	const struct wire_call *wire;
	struct reader reader;
	const uint64_t *raw;
	uint64_t words[CALL_N_ARGUMENTS_MAX];
	/* Arrays of handles that the call reads, as objects. */
	uint64_t objects[WIRE_RECORD_MAX / sizeof(uint64_t)];
	size_t n_objects;
};

static bool decode_out(struct decoder *d, size_t i, size_t size)
{
	void *at = reply_bytes(d->command, size);

	d->words[i] = POINTER(at);
	return at != NULL;
}

static bool decode_inout(struct decoder *d, size_t i)
{
	size_t size = d->wire->arguments[i].size;
	const void *from = reader_bytes(&d->reader, size);

	if (!from || !decode_out(d, i, size))
		return false;
	memcpy((void *)d->words[i], from, size);
	return true;
}

static bool decode_handles(struct decoder *d, size_t i, size_t n)
{
	const struct wire_argument *argument = &d->wire->arguments[i];
	uint64_t *objects = d->objects + d->n_objects;
	size_t k;

	if (n > ARRAY_SIZE(d->objects) - d->n_objects)
		return false;
	for (k = 0; k < n; k++)
		objects[k] = reader_handle(&d->reader, argument->handle);
	d->n_objects += n;
	d->words[i] = POINTER(objects);
	return !d->reader.failed;
}

static bool decode_string(struct decoder *d, size_t i)
{
	size_t size = d->raw[i] - 1;
	const char *text = reader_bytes(&d->reader, size);

	d->words[i] = POINTER(text);
	return text && size > 0 && text[size - 1] == '\0';
}

/* 1: in a grant; anything else is the number of bytes that came along, and 2. */
static bool decode_buffer(struct decoder *d, size_t i)
{
	uint64_t size = d->raw[d->wire->arguments[i].count], found = 0;

	if (d->raw[i] == 1) {
		d->words[i] = POINTER(reader_buffer(&d->reader, &found));
	} else {
		found = d->raw[i] - 2;
		d->words[i] = POINTER(reader_bytes(&d->reader, found));
	}
	return d->words[i] && found == size;
}

static bool decode_pointer(struct decoder *d, size_t i)
{
	const struct wire_argument *argument = &d->wire->arguments[i];
	size_t n;

	if (d->raw[i] == 0)
		return true;
	switch (argument->kind) {
	case WIRE_STRING:
		return decode_string(d, i);
	case WIRE_STRING_OUT:
		return decode_out(d, i, STRING_OUT_MAX);
	case WIRE_BUFFER:
		return decode_buffer(d, i);
	default:
		break;
	}
	if (!element_count(argument, d->raw[i], d->raw, &n))
		return false;
	switch (argument->kind) {
	case WIRE_INOUT:
		return decode_inout(d, i);
	case WIRE_IN:
	case WIRE_IN_N:
		d->words[i] = POINTER(reader_bytes(&d->reader, n * argument->size));
		break;
	case WIRE_HANDLES:
		return decode_handles(d, i, n);
	default:
		return decode_out(d, i, n * argument->size);
	}
	return d->words[i] != 0;
}

/* Bytes that a call reaches from an address on; false where that is no number. */
static bool reach_of(const struct decoder *d, size_t i, uint64_t *ret)
{
	const struct wire_argument *argument = &d->wire->arguments[i];
	uint64_t rows;

	if (argument->kind == WIRE_ADDRESS) {
		*ret = 1;
		return true;
	}
	if (argument->kind == WIRE_RANGE)
		return !__builtin_mul_overflow(d->raw[argument->count], argument->size, ret);
	if (d->raw[3] == 0 || d->raw[4] == 0) {
		*ret = 0;
		return true;
	}
	return !__builtin_mul_overflow(d->raw[1], d->raw[4] - 1, &rows) &&
	       !__builtin_mul_overflow(d->raw[3], argument->size, ret) &&
	       !__builtin_add_overflow(*ret, rows, ret);
}

static CUresult decode_argument(struct decoder *d, size_t i)
{
	const struct wire_argument *argument = &d->wire->arguments[i];
	uint64_t reach;

	switch (argument->kind) {
	case WIRE_NUMBER:
		d->words[i] = d->raw[i];
		return CUDA_SUCCESS;
	case WIRE_HANDLE:
		return handle_get(argument->handle, d->raw[i], &d->words[i]) < 0
			       ? CUDA_ERROR_INVALID_HANDLE
			       : CUDA_SUCCESS;
	case WIRE_ADDRESS:
	case WIRE_RANGE:
	case WIRE_RANGE2D:
		d->words[i] = d->raw[i];
		if (!reach_of(d, i, &reach) || (d->raw[i] && !range_ok(d->raw[i], reach)))
			return CUDA_ERROR_INVALID_VALUE;
		return CUDA_SUCCESS;
	default:
		return decode_pointer(d, i) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	}
}

/* The call believes the number that a list's length argument points at, so it is what there is room for. */
static void clamp_list(struct decoder *d, size_t i)
{
	size_t *n = (size_t *)d->words[d->wire->arguments[i].count];
	size_t room = (d->raw[i] - 1) / sizeof(uint64_t);

	if (n && *n > room)
		*n = room;
}

/*
 * Counts are compared by the half that calls with a number of 4 bytes look at. Those with one of 8 must not see
 * more in the other half.
 */
static void clamp_count(struct decoder *d, size_t i)
{
	uint64_t *n = &d->words[d->wire->arguments[i].count];

	*n = (uint32_t)*n;
}

static bool is_counted(const struct wire_argument *argument)
{
	return argument->kind == WIRE_OUT_N || argument->kind == WIRE_IN_N ||
	       argument->kind == WIRE_HANDLES || argument->kind == WIRE_OUT_HANDLES;
}

static CUresult decode(struct decoder *d)
{
	CUresult r = CUDA_SUCCESS;
	size_t i;

	d->raw = reader_bytes(&d->reader, d->wire->n_arguments * sizeof(uint64_t));
	if (!d->raw)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < d->wire->n_arguments && r == CUDA_SUCCESS; i++)
		r = decode_argument(d, i);
	for (i = 0; i < d->wire->n_arguments && r == CUDA_SUCCESS; i++)
		if (d->raw[i] && d->wire->arguments[i].kind == WIRE_LIST)
			clamp_list(d, i);
		else if (d->raw[i] && is_counted(&d->wire->arguments[i]))
			clamp_count(d, i);
	return r;
}

/* An array of objects becomes one of names; it may be longer than what the call filled in. */
static void name_objects(struct decoder *d, size_t i, size_t n)
{
	size_t k, room = (d->raw[i] - 1) / sizeof(uint64_t);
	uint64_t *list = (uint64_t *)d->words[i];

	for (k = 0; k < room; k++)
		list[k] = k < n ? handle_put(d->wire->arguments[i].handle, list[k]) : 0;
}

static void name_list(struct decoder *d, size_t i)
{
	const size_t *n = (const size_t *)d->words[d->wire->arguments[i].count];

	if (n)
		name_objects(d, i, *n);
}

static void copy_text(struct decoder *d, size_t i)
{
	char *at = (char *)d->words[i];
	const char *text;

	memcpy(&text, at, sizeof(text));
	memset(at, 0, STRING_OUT_MAX);
	if (text)
		strncpy(at, text, STRING_OUT_MAX - 1);
}

static void encode_argument(struct decoder *d, size_t i)
{
	const struct wire_argument *argument = &d->wire->arguments[i];
	uint64_t *at = (uint64_t *)d->words[i];

	if (argument->drops) {
		handle_drop(d->raw[i]);
		return;
	}
	if (!at)
		return;
	if (argument->kind == WIRE_OUT_HANDLE && d->wire->class == WIRE_LOCAL)
		handle_put_local(argument->handle, d->raw[i], *at);
	else if (argument->kind == WIRE_OUT_HANDLE)
		*at = handle_put(argument->handle, *at);
	else if (argument->kind == WIRE_LIST)
		name_list(d, i);
	else if (argument->kind == WIRE_OUT_HANDLES)
		name_objects(d, i, SIZE_MAX);
	else if (argument->kind == WIRE_STRING_OUT)
		copy_text(d, i);
}

/* Addresses that the call gave out, or took back. */
static void note_ranges(struct decoder *d)
{
	const struct call *call = &calls[d->command->call];
	int out = call_argument(call, ARG_OUT_ADDRESS), size = call_argument(call, ARG_SIZE);

	if (out >= 0 && size >= 0 && d->words[out])
		range_add(*(uint64_t *)d->words[out], d->raw[size]);
	else if (d->command->call == CALL_ID_cuMemAddressFree)
		range_remove(d->raw[0]);
}

/* The handle that the guest chose stands where others say how much they write. */
static bool decode_local(struct decoder *d)
{
	size_t i;

	for (i = 0; i < d->wire->n_arguments; i++) {
		if (d->wire->arguments[i].kind == WIRE_OUT_HANDLE &&
		    !decode_out(d, i, sizeof(uint64_t)))
			return false;
		if (d->wire->arguments[i].kind == WIRE_NUMBER)
			d->words[i] = d->raw[i];
	}
	return true;
}

static CUresult execute_generic(struct decoder *d)
{
	CUresult r;
	size_t i;

	if (d->wire->class == WIRE_LOCAL) {
		d->raw = reader_bytes(&d->reader, d->wire->n_arguments * sizeof(uint64_t));
		r = d->raw && decode_local(d) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	} else {
		r = decode(d);
	}
	if (r == CUDA_SUCCESS)
		r = d->wire->hand & WIRE_HAND_HOST ? hand_call(d->command->call, d->words)
						   : driver_call(d->command->call, d->words);
	if (r != CUDA_SUCCESS) {
		d->command->reply_size = 0;
		return r;
	}
	for (i = 0; i < d->wire->n_arguments; i++)
		encode_argument(d, i);
	note_ranges(d);
	return CUDA_SUCCESS;
}

CUresult command_execute(struct command *command)
{
	static __thread struct decoder decoder;
	const struct wire_call *wire;

	command->reply_size = 0;
	if (command->call >= CALL_N)
		return hand_execute(command);
	wire = &wire_calls[command->call];
	if (wire->class == WIRE_REFUSED || wire->class == WIRE_GUEST)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (wire->hand == WIRE_HAND)
		return hand_execute(command);
	decoder.command = command;
	decoder.wire = wire;
	decoder.reader = command_reader(command);
	decoder.n_objects = 0;
	memset(decoder.words, 0, sizeof(decoder.words));
	return execute_generic(&decoder);
}
