/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The forwarded calls as data, made from calls.def and wire.def: what both sides marshal by.
 *
 * A record's arguments are words of 8 bytes in the call's order:
 *
 *	number, address		itself
 *	handle			the guest's name for an object: never an address of the host's
 *	pointer			0 for NULL, else 1 + how many bytes the call reads or writes there
 *	BUFFER			0, or 1; a struct wire_buffer follows like something that is read
 *
 * Then comes what the call reads, in the order of its arguments, each piece at a multiple of 8.
 * In the reply comes what it wrote, in the same manner. Handles in either are the guest's.
 */
#ifndef FORWARD_WIRE_H
#define FORWARD_WIRE_H

#include "forward/transport.h"

#include "src/cuda/calls.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wire_class {
	WIRE_REFUSED,
	WIRE_POST,
	WIRE_LOCAL,
	WIRE_CACHED,
	WIRE_ROUND_TRIP,
	WIRE_GUEST,
};

enum wire_hand {
	WIRE_HAND = 1,
	WIRE_HAND_GUEST = 2,
	WIRE_HAND_HOST = 4,
};

/* Answers that the guest keeps, by what makes them wrong. */
enum wire_cache {
	WIRE_CACHE_NONE,
	WIRE_CACHE_DEVICE,   /* nothing does */
	WIRE_CACHE_FUNCTION, /* attributes set, code unloaded */
	WIRE_CACHE_CURRENT,  /* of the calling thread: its current context changed */
};

enum wire_kind {
	WIRE_NUMBER,
	WIRE_HANDLE,
	WIRE_ADDRESS,
	WIRE_RANGE,
	WIRE_RANGE2D,
	WIRE_OUT,
	WIRE_OUT_N,
	WIRE_OUT_HANDLE,
	WIRE_IN,
	WIRE_IN_N,
	WIRE_INOUT,
	WIRE_STRING,
	WIRE_STRING_OUT,
	WIRE_BUFFER,
	WIRE_HANDLES,
	WIRE_LIST,
	WIRE_OUT_HANDLES,
};

/* Kinds of objects. A handle tells its own, so one cannot pass for another. */
enum handle_kind {
	HANDLE_NONE,
	HANDLE_CONTEXT,
	HANDLE_STREAM,
	HANDLE_EVENT,
	HANDLE_MODULE,
	HANDLE_FUNCTION,
	HANDLE_LIBRARY,
	HANDLE_KERNEL,
	HANDLE_LINK,
	HANDLE_POOL,
	HANDLE_ARRAY,
	HANDLE_MIPMAPPED_ARRAY,
	HANDLE_TEXTURE,
	HANDLE_SURFACE,
	HANDLE_PHYSICAL,
	HANDLE_GRAPH,
	HANDLE_GRAPH_NODE,
	HANDLE_GRAPH_EXEC,
	HANDLE_USER_OBJECT,
	N_HANDLE_KINDS,
};

/**
 * struct wire_argument - how an argument travels
 * @kind:	enum wire_kind
 * @handle:	enum handle_kind of a handle, or of each in an array
 * @count:	the argument that says how many: bytes of a buffer, elements of others
 * @drops:	the handle ends with the call
 * @size:	of one element
 */
struct wire_argument {
	uint8_t kind;
	uint8_t handle;
	uint8_t count;
	uint8_t drops;
	uint32_t size;
};

struct wire_call {
	uint8_t class;
	uint8_t cache;
	uint8_t ends;
	uint8_t hand;
	uint8_t n_arguments;
	struct wire_argument arguments[CALL_N_ARGUMENTS_MAX];
};

/* Bodies of calls that have code of their own. */

/**
 * struct wire_launch - a kernel's launch; its parameters follow, then its attributes
 * @parameters_size:	bytes of packed parameters
 * @n_attributes:	CUlaunchAttribute that follow them
 */
struct wire_launch {
	uint64_t function;
	uint64_t stream;
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t shared_size;
	uint32_t parameters_size;
	uint32_t n_attributes;
	uint32_t reserved;
};

/**
 * struct wire_kernel_node - what a node launches; its packed parameters follow
 * @launch:	without a stream and attributes. The function's name is 0 where the node has but a kernel
 */
struct wire_kernel_node {
	struct wire_launch launch;
	uint64_t kernel;
	uint64_t context;
};

/**
 * struct wire_capture - what a stream captures; the names of the nodes that come next follow
 * @status:	CUstreamCaptureStatus; there is nothing else where it is not active
 * @n:		how many names
 */
struct wire_capture {
	uint64_t status;
	uint64_t id;
	uint64_t graph;
	uint64_t n;
};

/**
 * struct wire_parameters - what WIRE_PARAMETERS answers: how a kernel's parameters are packed
 * @size:	bytes of all
 * @n:		struct wire_parameter that follow
 */
struct wire_parameters {
	uint32_t size;
	uint32_t n;
};

struct wire_parameter {
	uint32_t offset;
	uint32_t size;
};

/**
 * struct wire_side - one end of a copy in up to three dimensions
 * @type:	CUmemorytype: host memory is @buffer, all else @at
 * @at:		an address, or an array's name
 * @rows:	of a layer; 0 where there is but one
 * @context:	whose memory it is, in a copy between devices
 */
struct wire_side {
	uint32_t type;
	uint32_t reserved;
	uint64_t at;
	struct wire_buffer buffer;
	uint64_t x, y, z;
	uint64_t pitch, rows;
	uint64_t context;
};

/**
 * struct wire_copy - the copy
 * @where:	the stream's name, or in a graph's node the context's
 */
struct wire_copy {
	uint64_t where;
	struct wire_side from, to;
	uint64_t width, height, depth;
};

#define WIRE_MAX_PARAMETERS	 4096
#define WIRE_MAX_PARAMETERS_SIZE 32764
#define WIRE_MAX_ATTRIBUTES	 32

/* Of an image: the fat binary that was linked, and those that it was linked from. */
#define WIRE_MAX_PARTS 1024

/* Indexed by enum call_id. */
extern const struct wire_call wire_calls[CALL_N];

/* The protocol's version: of wire.def, calls.def and transport.h together. */
extern const uint8_t wire_hash[WIRE_HASH_SIZE];

/** wire_hash_text() - a version as people read it; ret has room for 2 * WIRE_HASH_SIZE + 1 */
void wire_hash_text(const uint8_t hash[WIRE_HASH_SIZE], char *ret);

/** wire_call_name() - of a call or a command of our own, "?" if there is none of that number */
const char *wire_call_name(unsigned call);

/** wire_align() - to where the next piece begins */
static inline size_t wire_align(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

#endif
