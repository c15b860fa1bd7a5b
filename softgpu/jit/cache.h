/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies of the compiler, kept on disk for the user: $XDG_CACHE_HOME/softgpu, else ~/.cache/softgpu.
 *
 * A file has a request and the reply to it, under a name made of the request's hash and the
 * compiler's file; only a request that is the same to the byte is answered. Code of it is executed,
 * so the folder and the file must be the user's own, writable by nobody else, and neither a link nor
 * anything but a plain file; else it is as if there were none. What is damaged is written again.
 */
#ifndef SOFTGPU_JIT_CACHE_H
#define SOFTGPU_JIT_CACHE_H

#include <stdint.h>

#include "softgpu/jit/request.h"

/* Bytes in all; beyond them the files longest unused go. */
#define JIT_CACHE_MAX_BYTES (256u << 20)

/**
 * jit_cache_get() - look for the reply to a request
 * @compiler:	what tells compilers apart
 *
 * Return: the reply, which the caller frees, as it was kept: its checksum is not looked at. NULL if
 * there is none.
 */
struct jit_reply *jit_cache_get(const struct jit_request *request, uint64_t compiler);

/* Keeps a reply; that it cannot is no fault. */
void jit_cache_put(const struct jit_request *request, uint64_t compiler,
		   const struct jit_reply *reply);

#endif
