/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop.
 */
#include "softgpu/exec/handlers.h"

void PER_ISA(warp_loop)(struct warp *w)
{
	int r = RUN_ON;

	do {
		const struct insn *in = w->pc++;
		u32 mask = w->active & (predicate(w, in->guard) ^ in->guard_xor);

		if (!mask)
			continue;
		w->executed += (u64)__builtin_popcount(mask) * in->weight;
		r = in->fn(w, in, mask);
	} while (r == RUN_ON);
}
