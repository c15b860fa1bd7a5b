/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked to a test of softgpu/exec: the same test with every kernel compiled. At its end something
 * must have been. Skipped where the CPU is not one that is compiled for.
 */
#include <stdio.h>
#include <stdlib.h>

#include "softgpu/exec/block.h"
#include "softgpu/jit/code.h"
#include "softgpu/jit/jit.h"
#include "softgpu/jit/say.h"

__attribute__((constructor)) static void begin(void)
{
	/* Not what an earlier run has left. */
	setenv("XDG_CACHE_HOME", /* no folder: */ "/dev/null", 1);
	jit_always = true;
	jit_init(JIT_ON, say);
	if (!exec_compiler)
		exit(77);
}

__attribute__((destructor)) static void end(void)
{
	struct jit_counts counts;

	/* The last line that is printed is the reason of a skip. */
	if (!exec_compiler)
		return;
	jit_counts(&counts);
	fprintf(stderr, "%u functions compiled, %u from the cache, %u interpreted\n",
		counts.n_compiled, counts.n_cached, counts.n_refused);
	if (!counts.n_compiled)
		_Exit(1);
}
