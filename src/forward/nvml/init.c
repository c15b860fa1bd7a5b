// SPDX-License-Identifier: Apache-2.0
/*
 * Starting and ending, and what is told without the host.
 *
 * The session stays for as long as the process lives, however often it calls nvmlInit() and nvmlShutdown().
 */
#include "forward/nvml/nvml.h"

#include "base/base.h"
#include "forward/guest/session.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

static _Atomic int n_inits;

nvmlReturn_t nvml_check(void)
{
	return atomic_load(&n_inits) > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

static nvmlReturn_t init(void)
{
	switch (session_open()) {
	case CUDA_SUCCESS:
		atomic_fetch_add(&n_inits, 1);
		return NVML_SUCCESS;
	case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
		return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
	case CUDA_ERROR_OUT_OF_MEMORY:
		return NVML_ERROR_MEMORY;
	case DEVICE_LOST:
		return NVML_ERROR_GPU_IS_LOST;
	default:
		return NVML_ERROR_DRIVER_NOT_LOADED;
	}
}

ENTRY(nvmlInit, void)
{
	return init();
}

ENTRY(nvmlInit_v2, void)
{
	return init();
}

ENTRY(nvmlInitWithFlags, _unused_ unsigned flags)
{
	return init();
}

ENTRY(nvmlShutdown, void)
{
	int n = atomic_load(&n_inits);

	while (n > 0 && !atomic_compare_exchange_weak(&n_inits, &n, n - 1))
		;
	return n > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

__attribute__((visibility("default"))) const char *nvmlErrorString(nvmlReturn_t result);

const char *nvmlErrorString(nvmlReturn_t result)
{
	static const char *const texts[] = {
#define ERROR(number, text) [number] = text,
#include "src/nvml/errors.def"
#undef ERROR
	};

	if (result < 0 || (size_t)result >= ARRAY_SIZE(texts) || !texts[result])
		return "Unknown Error";
	return texts[result];
}

ENTRY(nvmlSystemGetCudaDriverVersion, int *version)
{
	if (!version)
		return NVML_ERROR_INVALID_ARGUMENT;
	return ask(QUESTION_nvmlSystemGetCudaDriverVersion_v2, 0, 0, version, sizeof(*version));
}

/* A process of the guest's, so the guest knows. Its name ends at the first zero, or where the caller's room does. */
ENTRY(nvmlSystemGetProcessName, unsigned pid, char *name, unsigned length)
{
	_cleanup_close_ int fd = -1;
	char path[64], text[1024];
	ssize_t n;

	if (nvml_check() != NVML_SUCCESS)
		return NVML_ERROR_UNINITIALIZED;
	if (!name || length == 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return NVML_ERROR_NOT_FOUND;
	text[n] = '\0';
	snprintf(name, length, "%s", text);
	return NVML_SUCCESS;
}

/* Boxes that hold several devices. */
ENTRY(nvmlUnitGetCount, unsigned *count)
{
	if (nvml_check() != NVML_SUCCESS)
		return NVML_ERROR_UNINITIALIZED;
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = 0;
	return NVML_SUCCESS;
}
