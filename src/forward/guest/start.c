// SPDX-License-Identifier: Apache-2.0
/*
 * Start, look-up of entry points, texts of errors: all that is answered without the host.
 *
 * Of the forms of a call cuGetProcAddress() gives the newest whose version is not above the requested one;
 * with the per-thread flag only the per-thread twins count, where a call has any.
 *
 * cuGetExportTable() finds nothing: the private tables of NVIDIA's runtime are not here. Whoever adds them
 * adds them in this file.
 */
#include "forward/guest/call.h"

#include <string.h>

#define CUDA_VERSION_HERE 13000

#define ADDRESS(name)		extern const char address_##name[] __asm__(#name);
#define CALL_ADDRESS(name, ...) ADDRESS(name)
#undef CALL
#define CALL(name, ...) CALL_ADDRESS(name)
#include "src/cuda/calls.def"
#undef CALL

static const char *const addresses[CALL_N] = {
#define CALL(name, ...) address_##name,
#include "src/cuda/calls.def"
#undef CALL
};

struct named_error {
	CUresult result;
	const char *name;
	const char *text;
};

static const struct named_error errors[] = {
#define ERROR(name, number, text) { number, #name, text },
#include "src/cuda/errors.def"
#undef ERROR
};

static const struct named_error *error_find(CUresult result)
{
	size_t i;

	for (i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].result == result)
			return &errors[i];
	return NULL;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **ret);
EXPORT CUresult cuGetErrorName(CUresult error, const char **ret)
{
	const struct named_error *found = error_find(error);

	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = found ? found->name : NULL;
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **ret);
EXPORT CUresult cuGetErrorString(CUresult error, const char **ret)
{
	const struct named_error *found = error_find(error);

	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = found ? found->text : NULL;
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuInit(unsigned flags);
EXPORT CUresult cuInit(unsigned flags)
{
	return flags ? CUDA_ERROR_INVALID_VALUE : session_open();
}

EXPORT CUresult cuDriverGetVersion(int *ret);
EXPORT CUresult cuDriverGetVersion(int *ret)
{
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	*ret = CUDA_VERSION_HERE;
	return CUDA_SUCCESS;
}

/* The newest form that a program of @version can use; @ret_status says why there is none. */
static int form_find(const char *base, int version, bool per_thread,
		     CUdriverProcAddressQueryResult *ret_status)
{
	int i, best[2] = { -1, -1 };
	bool has[2] = { false, false };

	for (i = 0; i < CALL_N; i++) {
		const struct call *call = &calls[i];
		bool twin = call->stream == STREAM_PER_THREAD;

		if (!call->version || call->version > CUDA_VERSION_HERE ||
		    strcmp(call->base, base) != 0)
			continue;
		has[twin] = true;
		if (call->version <= version &&
		    (best[twin] < 0 || call->version >= calls[best[twin]].version))
			best[twin] = i;
	}
	per_thread = per_thread && has[1];
	if (best[per_thread] >= 0)
		*ret_status = CU_GET_PROC_ADDRESS_SUCCESS;
	else if (has[0] || has[1])
		*ret_status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
	else
		*ret_status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return best[per_thread];
}

static CUresult look_up(const char *symbol, void **pfn, int version, cuuint64_t flags,
			CUdriverProcAddressQueryResult *ret_status)
{
	const cuuint64_t known =
		CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	int form;

	if (!symbol || !pfn || flags & ~known)
		return CUDA_ERROR_INVALID_VALUE;
	/* The driver takes versions from the future, and negative ones, as very high. */
	if (version < 0)
		version = INT32_MAX;
	form = form_find(symbol, version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
			 ret_status);
	if (form < 0)
		return CUDA_ERROR_NOT_FOUND;
	*pfn = (void *)(uintptr_t)addresses[form];
	return CUDA_SUCCESS;
}

EXPORT CUresult cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags);
EXPORT CUresult cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags)
{
	CUdriverProcAddressQueryResult status;

	return look_up(symbol, pfn, version, flags, &status);
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
				    CUdriverProcAddressQueryResult *ret_status);
EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
				    CUdriverProcAddressQueryResult *ret_status)
{
	CUdriverProcAddressQueryResult status;
	CUresult r = look_up(symbol, pfn, version, flags, &status);

	if (r == CUDA_ERROR_INVALID_VALUE)
		return r;
	if (r == CUDA_ERROR_NOT_FOUND)
		*pfn = NULL;
	if (ret_status)
		*ret_status = status;
	return CUDA_SUCCESS;
}

EXPORT CUresult cuGetExportTable(const void **ret_table, const CUuuid *id);
EXPORT CUresult cuGetExportTable(const void **ret_table, const CUuuid *id)
{
	if (!ret_table || !id)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}
