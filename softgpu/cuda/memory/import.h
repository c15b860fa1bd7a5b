/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of another process that is mapped here: what IPC handles and pools have in common. */
#pragma once

#include "softgpu/cuda/memory/memory.h"
#include "softgpu/mem/share.h"

/**
 * import_new() - map what was opened
 * @kind:	MEMORY_IMPORT or MEMORY_POOL_IMPORT
 * @ctx:	in whose name; NULL: it ends only by a call
 * @import:	taken over on success
 * @ticket:	what was opened
 * @size:	bytes of the allocation itself
 */
CUresult import_new(enum memory_kind kind, struct context *ctx, struct device *device,
		    const struct share_import *import, const struct share_ticket *ticket,
		    uint64_t size, struct memory **ret);
