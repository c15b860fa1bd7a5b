/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The list of driver calls as data. The enumerations serve BPF programs too: nothing
 * is included here.
 */
#pragma once

/* enum call_id: CALL_ID_cuMemAlloc_v2 and so on, in the order of calls.def. */
enum call_id {
#define CALL(name, ...) CALL_ID_##name,
#include "calls.def"
#undef CALL
	CALL_N,
};

/* Sets of drivers that export a call. */
enum call_driver {
	DRIVER_535 = 1,
	DRIVER_550 = 2,
	DRIVER_13 = 4,
	DRIVERS_ALL = DRIVER_535 | DRIVER_550 | DRIVER_13,
	DRIVERS_BEFORE_13 = DRIVER_535 | DRIVER_550,
	DRIVERS_SINCE_550 = DRIVER_550 | DRIVER_13,
	DRIVERS_SINCE_13 = DRIVER_13,
};

enum call_stream {
	STREAM_PLAIN,
	STREAM_PER_THREAD,
};

enum call_class {
	CLASS_MEMORY,
	CLASS_COMPUTE,
	CLASS_INFO,
	CLASS_CONTEXT,
	CLASS_OTHER,
};

enum call_group {
	GROUP_INIT,
	GROUP_INFO,
	GROUP_CONTEXT,
	GROUP_CONTEXT_STATE,
	GROUP_ALLOC_DEVICE,
	GROUP_ALLOC_HOST,
	GROUP_FREE_DEVICE,
	GROUP_FREE_HOST,
	GROUP_VMM,
	GROUP_POOL,
	GROUP_SHARE,
	GROUP_MEMORY_STATE,
	GROUP_CODE,
	GROUP_FUNCTION,
	GROUP_LAUNCH,
	GROUP_COPY,
	GROUP_STREAM,
	GROUP_SYNC,
	GROUP_EVENT,
	GROUP_GRAPH,
	GROUP_TEXTURE,
	GROUP_INTEROP,
	GROUP_CHECKPOINT,
	GROUP_DEBUG,
};

/* The role of an argument. A role with 32 is four bytes wide where its namesake has eight. */
enum call_argument {
	ARG_NONE,
	ARG_SIZE,   /* bytes of memory */
	ARG_SIZE32, /* the same, 4 bytes wide */
	ARG_WIDTH,
	ARG_WIDTH32,
	ARG_HEIGHT,
	ARG_HEIGHT32,
	ARG_PITCH,
	ARG_OUT_PITCH,
	ARG_OUT_PITCH32,
	ARG_ADDRESS,	      /* a device address, or one of either kind */
	ARG_ADDRESS32,	      /* the same, 4 bytes wide */
	ARG_OUT_ADDRESS,      /* where the device address is stored */
	ARG_OUT_ADDRESS32,    /* the same, 4 bytes wide */
	ARG_HOST_ADDRESS,     /* a host address */
	ARG_OUT_HOST_ADDRESS, /* where a host address is stored */
	ARG_PHYSICAL,	      /* a handle of physical memory */
	ARG_OUT_PHYSICAL,
	ARG_OUT_FREE, /* where the free size is stored, 8 bytes */
	ARG_OUT_FREE32,
	ARG_OUT_TOTAL, /* where the size of the device is stored, 8 bytes */
	ARG_OUT_TOTAL32,
	ARG_DEVICE,
	ARG_OUT_DEVICE,
	ARG_CONTEXT,
	ARG_OUT_CONTEXT,
	ARG_STREAM,
	ARG_OUT_STREAM,
	ARG_POOL,
	ARG_OUT_POOL,
	ARG_OUT_ARRAY,
	ARG_IN,	 /* what the call reads */
	ARG_OUT, /* what the call writes */
	ARG_ARRAY,
	ARG_VALUE,  /* a number */
	ARG_BUFFER, /* untyped; another argument tells what it is */
	ARG_FLAGS,
	ARG_COUNT,
	ARG_GREEN_CONTEXT,
	ARG_EVENT,
	ARG_EXTERNAL_MEMORY,
	ARG_EXTERNAL_SEMAPHORE,
	ARG_INOUT, /* what it reads and writes */
	ARG_STRING,
	ARG_CALLBACK,
	ARG_USER_DATA, /* handed on to a callback */
	ARG_GRAPHICS_RESOURCE,
	ARG_OUT_EVENT,
	ARG_OUT_MIPMAPPED_ARRAY,
	ARG_FUNCTION,
	ARG_OUT_MODULE,
	ARG_OUT_GRAPH_NODE,
	ARG_GRAPH,
	ARG_COPY, /* a structure that describes a copy */
	ARG_GRAPH_NODE,
	ARG_OUT_GRAPH,
	ARG_GRAPH_EXEC,
	ARG_OUT_GRAPH_EXEC,
	ARG_USER_OBJECT,
	ARG_OUT_GRAPHICS_RESOURCE,
	ARG_OUT_GREEN_CONTEXT,
	ARG_OUT_EXTERNAL_MEMORY,
	ARG_KERNEL,
	ARG_OUT_FUNCTION,
	ARG_OUT_LIBRARY,
	ARG_GRID,
	ARG_BLOCK,
	ARG_SHARED_SIZE, /* bytes of shared memory */
	ARG_OUT_KERNEL,
	ARG_LIBRARY,
	ARG_LINK,
	ARG_OUT_LINK,
	ARG_OFFSET,
	ARG_MIPMAPPED_ARRAY,
	ARG_MODULE,
	ARG_OUT_TEXTURE,
	ARG_TEXTURE,
	ARG_OUT_USER_OBJECT,
};

#define CALL_N_ARGUMENTS_MAX 16

/**
 * struct call - a row of calls.def
 * @version:	CUDA version that it came with; 0 if cuGetProcAddress() does not give it
 * @drivers:	bits of enum call_driver
 * @arguments:	enum call_argument of each, up to the first ARG_NONE
 */
struct call {
	const char *name;
	const char *base;
	int version;
	unsigned char stream;
	unsigned char drivers;
	unsigned char class;
	unsigned char group;
	unsigned char arguments[CALL_N_ARGUMENTS_MAX];
};

/* Indexed by enum call_id. */
extern const struct call calls[CALL_N];

/** call_find() - the call of that exported name, or NULL */
const struct call *call_find(const char *name);

/** call_argument() - position of the first argument with a role, or -1 */
int call_argument(const struct call *call, enum call_argument role);
