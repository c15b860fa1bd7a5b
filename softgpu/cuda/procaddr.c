// SPDX-License-Identifier: Apache-2.0
/*
 * cuGetProcAddress(): from a name, a CUDA version and the kind of default stream to the address
 * of an exported entry.
 *
 * Of the forms of a call, the newest whose version is not above the requested one is given, not
 * the one with the highest suffix. With the per-thread flag only the per-thread twins count,
 * where a call has any; other calls have one form for both. So cuMemcpy asked for at 4000 and
 * per-thread is refused: it came with 4000, its twin only with 7000.
 */
#include <string.h>

#include "src/cuda/calls.h"
#include "softgpu/cuda/core.h"
#include "softgpu/cuda/driver.h"
#include "softgpu/cuda/variant.h"

#define ENTRY(name, ...) extern const char stub_##name[] __attribute__((visibility("hidden")));
#include "procaddr.inc"
#undef ENTRY

static const struct entry {
	const char *base;
	int version;
	unsigned char stream;
	unsigned char drivers;
	const char *address;
} entries[] = {
#define ENTRY(name, base, version, stream, drivers)                                                \
	{ #base, version, STREAM_##stream, DRIVERS_##drivers, stub_##name },
#include "procaddr.inc"
#undef ENTRY
};

#define N_ENTRIES (sizeof(entries) / sizeof(entries[0]))

/* The first entry of a base name: they are sorted by it. N_ENTRIES if there is none. */
static size_t entry_first(const char *base)
{
	size_t low = 0, high = N_ENTRIES, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (strcmp(entries[middle].base, base) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < N_ENTRIES && !strcmp(entries[low].base, base) ? low : N_ENTRIES;
}

static bool entry_exists(const struct entry *entry)
{
	return (entry->drivers & variant.drivers) && entry->version <= driver_cuda_version();
}

/* The newest form that a program of @version can use; @ret_status says why there is none. */
static const struct entry *entry_find(const char *base, int version, bool per_thread,
				      CUdriverProcAddressQueryResult *ret_status)
{
	const struct entry *plain = NULL, *twin = NULL, *found;
	bool has_plain = false, has_twin = false;
	size_t i;

	for (i = entry_first(base); i < N_ENTRIES && !strcmp(entries[i].base, base); i++) {
		bool is_twin = entries[i].stream == STREAM_PER_THREAD;

		if (!entry_exists(&entries[i]))
			continue;
		*(is_twin ? &has_twin : &has_plain) = true;
		if (entries[i].version <= version)
			*(is_twin ? &twin : &plain) = &entries[i];
	}
	found = per_thread && has_twin ? twin : plain;
	if (found)
		*ret_status = CU_GET_PROC_ADDRESS_SUCCESS;
	else if (has_plain || has_twin)
		*ret_status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
	else
		*ret_status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return found;
}

static CUresult look_up(const char *symbol, void **pfn, int version, cuuint64_t flags,
			CUdriverProcAddressQueryResult *ret_status)
{
	const cuuint64_t known =
		CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	const struct entry *entry;

	if (!symbol || !pfn || flags & ~known)
		return CUDA_ERROR_INVALID_VALUE;
	/* The driver takes versions from the future, and negative ones, as very high. */
	if (version < 0)
		version = INT32_MAX;
	entry = entry_find(symbol, version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
			   ret_status);
	if (!entry)
		return CUDA_ERROR_NOT_FOUND;
	*pfn = (void *)(uintptr_t)entry->address;
	return CUDA_SUCCESS;
}

/* The first form, of 11.3: what is not there is an error, and *pfn is left alone. */
CALL(cuGetProcAddress, const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
	CUdriverProcAddressQueryResult status;

	return look_up(symbol, pfn, cudaVersion, flags, &status);
}

/* The second, of 12.0: what is not there is NULL with a status, and no error. */
CALL(cuGetProcAddress_v2, const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
     CUdriverProcAddressQueryResult *symbolStatus)
{
	CUdriverProcAddressQueryResult status;
	CUresult r = look_up(symbol, pfn, cudaVersion, flags, &status);

	if (r == CUDA_ERROR_INVALID_VALUE)
		return r;
	if (r == CUDA_ERROR_NOT_FOUND)
		*pfn = NULL;
	if (symbolStatus)
		*symbolStatus = status;
	return CUDA_SUCCESS;
}

/* Private tables of functions: there are none. */
CALL(cuGetExportTable, const void **ppExportTable, const CUuuid *pExportTableId)
{
	if (!ppExportTable || !pExportTableId)
		return CUDA_ERROR_INVALID_VALUE;
	*ppExportTable = NULL;
	return CUDA_ERROR_NOT_FOUND;
}
