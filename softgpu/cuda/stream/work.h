/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of work that both streams and graphs know, beside those of stream.h. Each is run by
 * the file that has its calls.
 */
#pragma once

#include "softgpu/cuda/stream/stream.h"

extern const struct work_class work_host; /* CUDA_HOST_NODE_PARAMS; stream-host.c */
extern const struct work_class
	work_batch_mem_op; /* CUDA_BATCH_MEM_OP_NODE_PARAMS; stream-memop.c */
extern const struct work_class work_event_record; /* struct event_work; event.c */
extern const struct work_class work_event_wait;	  /* struct event_work; event.c */
extern const struct work_class work_kernel;	  /* struct kernel_work; launch.c */

bool batch_mem_op_is_valid(const CUDA_BATCH_MEM_OP_NODE_PARAMS *batch);
