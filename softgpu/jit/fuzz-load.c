/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies as a cache file may hold them: any bytes, with a checksum that fits. They must load or be
 * refused; nothing that loads is run.
 */
#include <stdlib.h>

#include "softgpu/jit/code.h"

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static const struct code code = {
		.n_insns = 64,
		.n_enters = 3, /* as in the seed */
		.scalars = 65536,
		.class_count = { 16, 16, 16, 16, 16 },
	};
	struct jit_reply *reply;
	const char *why;

	if (size < sizeof(*reply))
		return 0;
	reply = malloc(size);
	if (!reply)
		return 0;
	memcpy(reply, data, size);
	/* What would keep the input from being looked at. */
	reply->magic = JIT_MAGIC;
	reply->version = JIT_VERSION;
	reply->size = (u32)size;
	reply->checksum = jit_hash(JIT_HASH_START, reply + 1, size - sizeof(*reply));
	jit_free(jit_load(reply, size, &code, &why));
	free(reply);
	return 0;
}
