// SPDX-License-Identifier: Apache-2.0
/*
 * Devices as a program sees them, through the library itself.
 *
 * test-device LIBRARY
 *
 * The driver reads configuration and environment once, so each case is a process of its own.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/cuda/cuda_abi.h"
#include "softgpu/util/check.h"
#include "softgpu/util/test-dir.h"

static CUresult (*cuInit)(unsigned);
static CUresult (*cuDeviceGetCount)(int *);
static CUresult (*cuDeviceGet)(CUdevice *, int);
static CUresult (*cuDeviceGetName)(char *, int, CUdevice);
static CUresult (*cuDeviceGetUuid)(CUuuid *, CUdevice);
static CUresult (*cuDeviceGetUuid_v2)(CUuuid *, CUdevice);
static CUresult (*cuDeviceGetLuid)(char *, unsigned *, CUdevice);
static CUresult (*cuDeviceGetAttribute)(int *, CUdevice_attribute, CUdevice);
static CUresult (*cuDeviceGetProperties)(CUdevprop *, CUdevice);
static CUresult (*cuDeviceTotalMem)(unsigned *, CUdevice);
static CUresult (*cuDeviceTotalMem_v2)(size_t *, CUdevice);
static CUresult (*cuDeviceGetPCIBusId)(char *, int, CUdevice);
static CUresult (*cuDeviceGetByPCIBusId)(CUdevice *, const char *);
static CUresult (*cuDeviceComputeCapability)(int *, int *, CUdevice);
static CUresult (*cuDriverGetVersion)(int *);
static CUresult (*cuGetErrorName)(CUresult, const char **);
static CUresult (*cuGetErrorString)(CUresult, const char **);
static CUresult (*cuGLInit)(void);

static void load(const char *path)
{
	void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);

	if (!library) {
		fprintf(stderr, "test-device: %s\n", dlerror());
		exit(1);
	}
#define LOAD(name) *(void **)&name = dlsym(library, #name)
	LOAD(cuInit);
	LOAD(cuDeviceGetCount);
	LOAD(cuDeviceGet);
	LOAD(cuDeviceGetName);
	LOAD(cuDeviceGetUuid);
	LOAD(cuDeviceGetUuid_v2);
	LOAD(cuDeviceGetLuid);
	LOAD(cuDeviceGetAttribute);
	LOAD(cuDeviceGetProperties);
	LOAD(cuDeviceTotalMem);
	LOAD(cuDeviceTotalMem_v2);
	LOAD(cuDeviceGetPCIBusId);
	LOAD(cuDeviceGetByPCIBusId);
	LOAD(cuDeviceComputeCapability);
	LOAD(cuDriverGetVersion);
	LOAD(cuGetErrorName);
	LOAD(cuGetErrorString);
	LOAD(cuGLInit);
#undef LOAD
}

static int attribute(CUdevice_attribute which)
{
	int value = -77;

	cuDeviceGetAttribute(&value, which, 0);
	return value;
}

static void all_attributes(void)
{
	int i, value, n_refused = 0;

	cuInit(0);
	for (i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; i++)
		n_refused += cuDeviceGetAttribute(&value, i, 0) != CUDA_SUCCESS;
	check(n_refused == 0, "every attribute is answered");
	check(cuDeviceGetAttribute(&value, 0, 0) == CUDA_ERROR_INVALID_VALUE &&
		      cuDeviceGetAttribute(&value, -1, 0) == CUDA_ERROR_INVALID_VALUE &&
		      cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0) ==
			      CUDA_ERROR_INVALID_VALUE,
	      "0 and those to come are none");
	check(cuDeviceGetAttribute(NULL, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0) ==
		      CUDA_ERROR_INVALID_VALUE,
	      "no place for the answer");
	check(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 2) ==
		      CUDA_ERROR_INVALID_DEVICE,
	      "of a device that does not exist");
}

static void default_device(void)
{
	CUdevprop properties;
	size_t total = 0;
	unsigned total32 = 0;
	int major = 0, minor = 0;

	cuInit(0);
	check(cuDeviceTotalMem_v2(&total, 0) == CUDA_SUCCESS && total == 80ull << 30, "80 GiB");
	check(cuDeviceTotalMem(&total32, 0) == CUDA_SUCCESS && total32 == UINT32_MAX,
	      "or what 32 bits can tell");
	check(cuDeviceComputeCapability(&major, &minor, 0) == CUDA_SUCCESS && major == 8 &&
		      minor == 0,
	      "compute capability 8.0");
	check(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) == 8 &&
		      attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) == 0,
	      "the same as attributes");
	check(attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT) == 108, "108 multiprocessors");
	check(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) == 2048 &&
		      attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) ==
			      164 << 10 &&
		      attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) == 163 << 10,
	      "of 2,048 threads and 164 KiB");
	check(cuDeviceGetProperties(&properties, 0) == CUDA_SUCCESS &&
		      properties.maxThreadsPerBlock == 1024 && properties.maxThreadsDim[2] == 64 &&
		      properties.SIMDWidth == 32 &&
		      properties.clockRate == attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
	      "properties agree");
}

static void names(void)
{
	char name[16], luid[8], bus[16];
	CUuuid uuid, second;
	unsigned mask;

	cuInit(0);
	check(cuDeviceGetName(name, sizeof(name), 0) == CUDA_SUCCESS &&
		      !strcmp(name, "SoftGPU 80GB"),
	      "the name");
	check(cuDeviceGetName(name, 5, 0) == CUDA_SUCCESS && !strcmp(name, "Soft"),
	      "as much of it as there is room for");
	check(cuDeviceGetName(name, 0, 0) == CUDA_ERROR_INVALID_VALUE &&
		      cuDeviceGetName(NULL, 5, 0) == CUDA_ERROR_INVALID_VALUE,
	      "no room at all");
	check(cuDeviceGetUuid(&uuid, 0) == CUDA_SUCCESS &&
		      cuDeviceGetUuid(&second, 1) == CUDA_SUCCESS &&
		      memcmp(&uuid, &second, sizeof(uuid)) != 0,
	      "the UUIDs differ");
	check(cuDeviceGetUuid_v2(&second, 0) == CUDA_SUCCESS &&
		      !memcmp(&uuid, &second, sizeof(uuid)),
	      "both forms tell the same");
	check(cuDeviceGetLuid(luid, &mask, 0) == CUDA_ERROR_NOT_SUPPORTED, "there are no LUIDs");
	check(cuDeviceGetPCIBusId(bus, 12, 0) == CUDA_ERROR_INVALID_VALUE &&
		      cuDeviceGetPCIBusId(bus, 13, 0) == CUDA_SUCCESS,
	      "a PCI id needs 13 bytes");
}

static void pci(void)
{
	CUdevice device = 7;
	char id[16];

	setenv("SOFTGPU_PCI", "0001:af:1c.0,0000:17:00.0", 1);
	cuInit(0);
	check(cuDeviceGetPCIBusId(id, sizeof(id), 0) == CUDA_SUCCESS && !strcmp(id, "0001:AF:1C.0"),
	      "told in capitals");
	check(cuDeviceGetByPCIBusId(&device, id) == CUDA_SUCCESS && device == 0, "found as told");
	check(cuDeviceGetByPCIBusId(&device, "0:17:0") == CUDA_SUCCESS && device == 1,
	      "found without function");
	check(cuDeviceGetByPCIBusId(&device, "17:00.0") == CUDA_SUCCESS && device == 1,
	      "found without domain");
	check(cuDeviceGetByPCIBusId(&device, "0000:18:00.0") == CUDA_ERROR_INVALID_DEVICE,
	      "nothing there");
	check(cuDeviceGetByPCIBusId(&device, "banana") == CUDA_ERROR_INVALID_VALUE &&
		      cuDeviceGetByPCIBusId(&device, "17:00.0x") == CUDA_ERROR_INVALID_VALUE &&
		      cuDeviceGetByPCIBusId(&device, "") == CUDA_ERROR_INVALID_VALUE &&
		      cuDeviceGetByPCIBusId(&device, NULL) == CUDA_ERROR_INVALID_VALUE,
	      "no PCI id");
}

static void configured(void)
{
	size_t total = 0;
	int n = 0, version = 0;

	setenv("SOFTGPU_DEVICES", "3", 1);
	setenv("SOFTGPU_MEMORY", "16G,24G", 1);
	setenv("SOFTGPU_COMPUTE", "8.6", 1);
	setenv("SOFTGPU_CUDA", "12.4", 1);
	check(cuDriverGetVersion(&version) == CUDA_SUCCESS && version == 12040,
	      "the version before cuInit");
	cuInit(0);
	check(cuDeviceGetCount(&n) == CUDA_SUCCESS && n == 3, "three devices");
	check(cuDeviceTotalMem_v2(&total, 0) == CUDA_SUCCESS && total == 16ull << 30 &&
		      cuDeviceTotalMem_v2(&total, 2) == CUDA_SUCCESS && total == 24ull << 30,
	      "the last setting is for the rest");
	check(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) == 1536 &&
		      attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR) == 16 &&
		      attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) == 99 << 10,
	      "attributes follow the capability");
}

static void visible(void)
{
	size_t total = 0;
	CUdevice device;
	int n = 0;

	setenv("SOFTGPU_MEMORY", "16G,24G", 1);
	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	cuInit(0);
	check(cuDeviceGetCount(&n) == CUDA_SUCCESS && n == 1, "one is visible");
	check(cuDeviceTotalMem_v2(&total, 0) == CUDA_SUCCESS && total == 24ull << 30,
	      "the second, as 0");
	check(cuDeviceGet(&device, 1) == CUDA_ERROR_INVALID_DEVICE, "there is no 1");
}

static void none_visible(void)
{
	int n = 7;

	setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
	check(cuInit(0) == CUDA_ERROR_NO_DEVICE &&
		      cuDeviceGetCount(&n) == CUDA_ERROR_NOT_INITIALIZED && n == 7,
	      "none is visible");
}

static void bad_configuration(void)
{
	setenv("SOFTGPU_MEMORY", "plenty", 1);
	check(cuInit(0) == CUDA_ERROR_INVALID_VALUE, "a wrong setting is refused");
}

static void errors(void)
{
	const char *text = NULL;

	check(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text) == CUDA_SUCCESS &&
		      !strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS"),
	      "names");
	check(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text) == CUDA_SUCCESS &&
		      !strcmp(text, "out of memory"),
	      "texts");
	check(cuGetErrorName(12345, &text) == CUDA_ERROR_INVALID_VALUE && !text, "of no error");
	check(cuGetErrorName(CUDA_SUCCESS, NULL) == CUDA_ERROR_INVALID_VALUE, "nowhere to put it");
}

static void missing(void)
{
	char said[256] = "";
	int fds[2], n_good = 0, i;
	ssize_t n;

	setenv("SOFTGPU_LOG", "1", 1);
	if (pipe(fds) != 0 || dup2(fds[1], STDERR_FILENO) < 0)
		exit(1);
	for (i = 0; i < 3; i++)
		n_good += cuGLInit() == CUDA_ERROR_NOT_SUPPORTED;
	check(n_good == 3, "a call without implementation is not supported");
	n = read(fds[0], said, sizeof(said) - 1);
	check(n > 0 && !strcmp(said, "softgpu: cuGLInit is not supported\n"), "and said so once");
}

static void run(void (*test)(void))
{
	char dir[] = "/tmp/test-device-XXXXXX";
	int status = 0;
	pid_t child;

	if (!mkdtemp(dir))
		exit(1);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		setenv("SOFTGPU_DIR", dir, 1);
		test();
		fflush(stdout);
		_exit(n_failed != 0);
	}
	waitpid(child, &status, 0);
	if (status)
		n_failed++;
	if (test_dir_remove(dir) != 0)
		n_failed++;
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: test-device LIBRARY\n");
		return 1;
	}
	load(argv[1]);
	run(all_attributes);
	run(default_device);
	run(names);
	run(pci);
	run(configured);
	run(visible);
	run(none_visible);
	run(bad_configuration);
	run(errors);
	run(missing);
	return n_failed != 0;
}
