// SPDX-License-Identifier: Apache-2.0
/*
 * Commands of a hostile guest against the worker's decoder. The input is records, each of two bytes of length,
 * two of the call, and the body; where the call's first bit is set the body is put into the shape that the
 * table asks for, so that what lies behind the first checks is reached.
 */
#include "forward/host/command.h"

#include "base/base.h"
#include "forward/host/handle.h"
#include "forward/host/memory.h"

#include <string.h>
#include <sys/mman.h>

/* Commands of our own, and some more numbers. */
#define N_OWN	    16
#define GRANT_SIZE  (64 << 10)
#define KNOWN_BEGIN 0x10000000ULL
#define KNOWN_SIZE  0x10000000ULL

/* Behind a record there are zeros, which the shape that the table asks for may take in. */
#define ROOM_BEHIND 512

static uint64_t body[(WIRE_RECORD_MAX + ROOM_BEHIND) / sizeof(uint64_t)];
static uint64_t reply[REPLY_MAX / sizeof(uint64_t)];

static void begin(void)
{
	int fd = memfd_create("fuzz", 0);

	/* What the driver says it knows it says is managed, so it is there. */
	if (mmap((void *)KNOWN_BEGIN, KNOWN_SIZE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
		 0) != (void *)KNOWN_BEGIN)
		abort();
	if (fd < 0 || ftruncate(fd, GRANT_SIZE) < 0 || handle_init() < 0 ||
	    grant_add(0, fd, 0, GRANT_SIZE) < 0 || grant_add(1, fd, 0, GRANT_SIZE) < 0)
		abort();
	close(fd);
	for (int kind = 1; kind < N_HANDLE_KINDS; kind++)
		for (uint64_t object = 0x1000; kind != HANDLE_LINK && object < 0x1004; object++)
			handle_put(kind, object);
}

/* A link's name leads to an object of ours, so there has to be one. */
static uint64_t some_link(void)
{
	static uint64_t no_options, name;
	struct command create = { .call = CALL_ID_cuLinkCreate_v2,
				  .body = (const uint8_t *)&no_options,
				  .size = sizeof(no_options),
				  .reply = (uint8_t *)reply };
	uint64_t object;

	if (handle_get(HANDLE_LINK, name, &object) == 0 && object)
		return name;
	name = command_execute(&create) == CUDA_SUCCESS ? reply[0] : 0;
	return name;
}

/* A name that exists, of the kind that is wanted: entries were made kind by kind, four of each. */
static uint64_t some_handle(enum handle_kind kind, uint64_t seed)
{
	return kind == HANDLE_LINK ? some_link() : handle_put(kind, 0x1000 + seed % 4);
}

static void shape_argument(const struct wire_argument *argument, uint64_t *word, uint64_t *words)
{
	uint64_t n = *word % 5;

	switch (argument->kind) {
	case WIRE_HANDLE:
		*word = some_handle(argument->handle, *word);
		break;
	case WIRE_ADDRESS:
	case WIRE_RANGE:
	case WIRE_RANGE2D:
		*word = 0x10000000ULL + *word % 0x10000000ULL;
		break;
	case WIRE_OUT_N:
	case WIRE_IN_N:
	case WIRE_HANDLES:
	case WIRE_OUT_HANDLES:
		words[argument->count] = n;
		*word = n * argument->size + 1;
		break;
	case WIRE_LIST:
		*word = n * argument->size + 1;
		break;
	case WIRE_BUFFER:
		words[argument->count] %= 256;
		*word = *word % 2 ? 1 : words[argument->count] + 2;
		break;
	case WIRE_STRING:
		*word = *word % 64 + 2;
		break;
	case WIRE_OUT:
	case WIRE_OUT_HANDLE:
	case WIRE_IN:
	case WIRE_INOUT:
	case WIRE_STRING_OUT:
		*word = argument->size + 1;
		break;
	default:
		break;
	}
}

static void shape(unsigned call)
{
	const struct wire_call *wire;
	size_t i;

	if (call >= CALL_N)
		return;
	wire = &wire_calls[call];
	for (i = 0; i < wire->n_arguments; i++)
		shape_argument(&wire->arguments[i], &body[i], body);
	if (wire->hand != WIRE_HAND)
		return;
	/* Calls by hand begin with a handle, mostly of a graph, or with a buffer; those about nodes with theirs. */
	if (wire->arguments[0].handle == HANDLE_GRAPH_NODE && body[0] % 2) {
		body[1] = body[0];
		body[0] = 0;
	} else if (wire->arguments[0].handle != HANDLE_GRAPH_NODE &&
		   wire->arguments[0].handle != HANDLE_GRAPH_EXEC &&
		   wire->arguments[0].handle != HANDLE_LINK && body[0] % 3)
		body[0] = some_handle(body[0] % 2 ? HANDLE_GRAPH : HANDLE_FUNCTION, body[0]);
}

static size_t execute_one(const uint8_t *data, size_t size)
{
	struct command command = { .body = (const uint8_t *)body, .reply = (uint8_t *)reply };
	uint16_t length, call;

	if (size < 4)
		return 0;
	memcpy(&length, data, sizeof(length));
	memcpy(&call, data + 2, sizeof(call));
	command.size = MIN((size_t)length, size - 4);
	memset(body, 0, command.size + ROOM_BEHIND);
	memcpy(body, data + 4, command.size);
	command.call = (call >> 1) < CALL_N + N_OWN ? (unsigned)(call >> 1) : call;
	if (command.call >= CALL_N && command.call < CALL_N + N_OWN)
		command.call = WIRE_PAD + (command.call - CALL_N);
	if (call & 1) {
		shape(command.call);
		command.size = MAX(command.size, (size_t)256);
	}
	command_execute(&command);
	return 4 + MIN((size_t)length, size - 4);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool begun;
	size_t used;

	if (!begun)
		begin();
	begun = true;
	while (size > 0 && (used = execute_one(data, size)) > 0) {
		data += used;
		size -= used;
	}
	return 0;
}
