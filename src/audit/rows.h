/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The table of rows.def as the BPF programs and the loader see it.
 *
 * A row's number travels to the programs in the cookie of its probe, together with the way from the
 * call's entry to a `ret` byte of the same code, which is where a call that is answered continues.
 */
#ifndef AUDIT_ROWS_H
#define AUDIT_ROWS_H

#include <linux/types.h>

/* The order matters in one place: everything up to GRAPH_INSTANTIATE asks for memory. */
enum row_action {
	ROW_ALLOCATE,
	ROW_ALLOCATE_PITCH,
	ROW_ALLOCATE_ASYNC,
	ROW_ALLOCATE_FROM_POOL,
	ROW_ARRAY_2D,
	ROW_ARRAY_3D,
	ROW_ARRAY_MIPMAPPED,
	ROW_PHYSICAL_CREATE,
	ROW_CONTEXT_CREATE,
	ROW_PRIMARY_RETAIN,
	ROW_GREEN_CREATE,
	ROW_GRAPH_INSTANTIATE,
	ROW_FREE,
	ROW_FREE_ASYNC,
	ROW_FREE_ARRAY,
	ROW_PHYSICAL_RELEASE,
	ROW_PHYSICAL_RETAIN,
	ROW_PHYSICAL_MAP,
	ROW_PHYSICAL_UNMAP,
	ROW_POOL_CREATE,
	ROW_POOL_DESTROY,
	ROW_POOL_DEFAULT,
	ROW_POOL_SET,
	ROW_GRAPH_ADD_ALLOCATION,
	ROW_GRAPH_ADD_NODE,
	ROW_GRAPH_ADD_CHILD,
	ROW_GRAPH_CLONE,
	ROW_GRAPH_DESTROY,
	ROW_GRAPH_EXEC_DESTROY,
	ROW_CAPTURE_BEGIN,
	ROW_CAPTURE_TO_GRAPH,
	ROW_CAPTURE_END,
	ROW_PRIMARY_RELEASE,
	ROW_PRIMARY_RESET,
	ROW_CONTEXT_DESTROY,
	ROW_CONTEXT_ATTACH,
	ROW_CONTEXT_DETACH,
	ROW_GREEN_DESTROY,
	ROW_GREEN_CONTEXT,
	ROW_CONTEXT_SET,
	ROW_CONTEXT_PUSH,
	ROW_CONTEXT_POP,
	ROW_CONTEXT_LEARN,
	ROW_CONTEXT_LEARN_DEVICE,
	ROW_DEVICE_UUID,
	ROW_SETTLE,
	ROW_EXPORT,
	ROW_INFO_MEMORY,
	ROW_INFO_TOTAL,
	ROW_NVML_HANDLE,
	ROW_NVML_HANDLE_BY_NAME,
	ROW_NVML_NAME,
	ROW_NVML_MEMORY,
	ROW_NVML_MEMORY_V2,
	ROW_LAUNCH_KERNEL,
	ROW_LAUNCH_CONFIG,
	ROW_LAUNCH_GRID,
	ROW_LAUNCH_ONE,
	ROW_NOTHING,
};

#define ROW_NARROW     1
#define ROW_LOCATION   2
#define ROW_PENDING    4
#define ROW_PER_THREAD 8
#define ROW_GIVES      16

/** struct row - one call: what to do with it, and with which of its arguments */
struct row {
	__u8 action;
	__u8 a;
	__u8 b;
	__u8 c;
	__u32 flags;
};

#define ROW_FLAGS_0	     0
#define ROW_FLAGS_NARROW     ROW_NARROW
#define ROW_FLAGS_LOCATION   ROW_LOCATION
#define ROW_FLAGS_PENDING    ROW_PENDING
#define ROW_FLAGS_PER_THREAD ROW_PER_THREAD
#define ROW_FLAGS_GIVES	     ROW_GIVES
#define TWIN(name, action, a, b, c)                                                                \
	ROW(name, action, a, b, c, 0) ROW(name##_ptsz, action, a, b, c, PER_THREAD)

enum row_number {
#define ROW(name, ...) ROW_OF_##name,
#include "rows.def"
#undef ROW
	ROW_COUNT,
};

#define ROW(name, action, a, b, c, flags)                                                          \
	[ROW_OF_##name] = { ROW_##action, a, b, c, ROW_FLAGS_##flags },

/* cookie = way to a `ret` byte << 32 | row */
#define ROW_COOKIE(row, ret_delta) ((__u64)(__u32)(ret_delta) << 32 | (row))
#define ROW_OF_COOKIE(cookie)	   ((__u32)(cookie)&0xffff)
#define RET_OF_COOKIE(cookie)	   ((__s32)((cookie) >> 32))

/* Launches are never answered; their cookie holds the number of the process' record of launches. */
#define ROW_IS_LAUNCH(action)	      ((action) >= ROW_LAUNCH_KERNEL && (action) <= ROW_LAUNCH_ONE)
#define LAUNCH_COOKIE(row, work)      ((__u64)(work) << 32 | (row))
#define LAUNCH_WORK_OF_COOKIE(cookie) ((cookie) >> 32)

#endif
