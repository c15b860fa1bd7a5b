// SPDX-License-Identifier: Apache-2.0
#include "forward/host/driver.h"

#include <dlfcn.h>
#include <errno.h>

static void *entries[CALL_N];

int driver_open(const char *library, const char **ret_error, CUresult *ret_result)
{
	void *handle;
	size_t i;

	handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		*ret_error = dlerror();
		return -ENOENT;
	}
	for (i = 0; i < CALL_N; i++)
		entries[i] = dlsym(handle, calls[i].name);
	*ret_result = DRIVER(cuInit, 0);
	return *ret_result == CUDA_SUCCESS ? 0 : -EIO;
}

void *driver_entry(enum call_id id)
{
	return entries[id];
}

/* Words that the call does not have lie in the caller's part of the stack and hurt nobody. */
CUresult driver_call(enum call_id id, const uint64_t w[CALL_N_ARGUMENTS_MAX])
{
	CUresult (*entry)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
			  uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
			  uint64_t, uint64_t);

	if (!entries[id])
		return CUDA_ERROR_NOT_SUPPORTED;
	entry = (__typeof__(entry))entries[id];
	return entry(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11],
		     w[12], w[13], w[14], w[15]);
}
