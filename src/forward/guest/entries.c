// SPDX-License-Identifier: Apache-2.0
/* The exported functions that the table is enough for, and those that are not forwarded. */
#include "forward/guest/call.h"
#include "forward/guest/log.h"

#include <stdatomic.h>

/* Said once for each name. */
static CUresult refuse(enum call_id id)
{
	static _Atomic unsigned char said[CALL_N];

	if (!atomic_exchange(&said[id], 1))
		guest_log("%s is not forwarded", calls[id].name);
	return CUDA_ERROR_NOT_SUPPORTED;
}

#define ENTRY_REFUSED(name)                                                                        \
	EXPORT CUresult name(void);                                                                \
	EXPORT CUresult name(void)                                                                 \
	{                                                                                          \
		return refuse(CALL_ID_##name);                                                     \
	}

#define ENTRY(name, arguments, ...)                                                                \
	EXPORT CUresult name arguments;                                                            \
	EXPORT CUresult name arguments                                                             \
	{                                                                                          \
		const uint64_t words[CALL_N_ARGUMENTS_MAX] = { __VA_ARGS__ };                      \
                                                                                                   \
		return call_words(CALL_ID_##name, words);                                          \
	}

#include "entries.inc"
