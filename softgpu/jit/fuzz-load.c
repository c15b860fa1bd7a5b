/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies as a cache file may hold them: any bytes, with a checksum that fits. They must load or be
 * refused; nothing that loads is run.
 */
#include <stdlib.h>

#include "softgpu/jit/code.h"

#define INSNS 64

/* A kernel whose places are ends of it, places to enter, and neither, in turn; of all lanes and of none. */
static const struct insn *insns(void)
{
	static struct insn made[INSNS];

	for (u32 i = 0; i < INSNS; i++) {
		made[i].fn = i % 3 == 0 || i == INSNS - 1 ? flow_enter
			     : i % 3 == 1		  ? flow_ret
							  : NULL;
		made[i].guard = OPERAND_CONST;
		made[i].guard_xor = i % 2 ? ALL_LANES : 0;
		made[i].weight = 1;
	}
	return made;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);
int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static const u8 constants[4];
	const struct code code = {
		.insns = (struct insn *)insns(),
		.constants = (u8 *)constants,
		.n_insns = INSNS,
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
