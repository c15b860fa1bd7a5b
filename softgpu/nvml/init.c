// SPDX-License-Identifier: Apache-2.0
/*
 * Starting and ending, and what is told of the whole machine.
 *
 * The library only reads: it opens the shared state and is not on the books.
 */
#include "softgpu/nvml/nvml.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct nvml nvml;

static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned n_inits;

nvmlReturn_t nvml_check(void)
{
	return nvml.state ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

static nvmlReturn_t open_locked(void)
{
	int r = config_load(&nvml.config);

	if (r != 0)
		return NVML_ERROR_UNKNOWN;
	r = state_open(&nvml.config, 0, &nvml.state);
	if (r == STATE_E_FOREIGN)
		return NVML_ERROR_LIB_RM_VERSION_MISMATCH;
	if (r != 0 && nvml.config.log)
		fprintf(stderr, "softgpu: %s: %s\n", nvml.config.dir, strerror(-r));
	return r == 0 ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED;
}

static nvmlReturn_t init(void)
{
	nvmlReturn_t r = NVML_SUCCESS;

	pthread_mutex_lock(&init_lock);
	if (n_inits == 0)
		r = open_locked();
	if (r == NVML_SUCCESS)
		n_inits++;
	pthread_mutex_unlock(&init_lock);
	return r;
}

CALL(nvmlInit, void)
{
	return init();
}

CALL(nvmlInit_v2, void)
{
	return init();
}

CALL(nvmlInitWithFlags, _unused_ unsigned flags)
{
	return init();
}

CALL(nvmlShutdown, void)
{
	nvmlReturn_t r = NVML_ERROR_UNINITIALIZED;

	pthread_mutex_lock(&init_lock);
	if (n_inits > 0) {
		r = NVML_SUCCESS;
		if (--n_inits == 0) {
			state_close(nvml.state);
			nvml.state = NULL;
		}
	}
	pthread_mutex_unlock(&init_lock);
	return r;
}

__attribute__((visibility("default"))) const char *nvmlErrorString(nvmlReturn_t result);

const char *nvmlErrorString(nvmlReturn_t result)
{
	static const char *const texts[] = {
#define ERROR(number, text) [number] = text,
#include "src/nvml/errors.def"
#undef ERROR
	};

	if (result < 0 || (size_t)result >= sizeof(texts) / sizeof(texts[0]) || !texts[result])
		return "Unknown Error";
	return texts[result];
}

nvmlReturn_t text_return(const char *text, char *buf, unsigned size)
{
	if (!buf)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (strlen(text) >= size)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(buf, text);
	return NVML_SUCCESS;
}

CALL(nvmlSystemGetDriverVersion, char *version, unsigned length)
{
	nvmlReturn_t r = nvml_check();

	return r == NVML_SUCCESS ? text_return(nvml.config.driver_version, version, length) : r;
}

/* The library's version is the CUDA version and the driver's. */
CALL(nvmlSystemGetNVMLVersion, char *version, unsigned length)
{
	struct softgpu_config config;
	char text[64];

	/* Answered before nvmlInit(), too. */
	if (config_load(&config) != 0)
		config_default(&config);
	snprintf(text, sizeof(text), "%u.%s", config.cuda_version / 1000, config.driver_version);
	return text_return(text, version, length);
}

static nvmlReturn_t cuda_version(int *version)
{
	struct softgpu_config config;

	if (!version)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (config_load(&config) != 0)
		return NVML_ERROR_UNKNOWN;
	*version = (int)config.cuda_version;
	return NVML_SUCCESS;
}

CALL(nvmlSystemGetCudaDriverVersion, int *version)
{
	return cuda_version(version);
}

CALL(nvmlSystemGetCudaDriverVersion_v2, int *version)
{
	return cuda_version(version);
}

CALL(nvmlSystemGetProcessName, unsigned pid, char *name, unsigned length)
{
	char path[64], text[1024];
	nvmlReturn_t r = nvml_check();
	ssize_t n;
	int fd;

	if (r != NVML_SUCCESS)
		return r;
	if (!name || length == 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NVML_ERROR_NOT_FOUND;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return NVML_ERROR_NOT_FOUND;
	/* The program's name ends at the first NUL; cut to what the caller has room for. */
	text[n] = '\0';
	snprintf(name, length, "%s", text);
	return NVML_SUCCESS;
}

CALL(nvmlUnitGetCount, unsigned *count)
{
	nvmlReturn_t r = nvml_check();

	if (r != NVML_SUCCESS)
		return r;
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = 0;
	return NVML_SUCCESS;
}
