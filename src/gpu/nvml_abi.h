/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of NVML's binary interface that is used: layouts and codes as the
 * library documents them, written anew. The library is opened at run time.
 */
#ifndef GPU_NVML_ABI_H
#define GPU_NVML_ABI_H

#include <stdint.h>

enum {
	NVML_OK = 0,
	NVML_NOT_SUPPORTED = 3,
	NVML_NO_PERMISSION = 4,
	NVML_NOT_FOUND = 6,
	NVML_INSUFFICIENT_SIZE = 7,
};

/* What the library tells where it knows no number. */
#define NVML_NOT_AVAILABLE UINT64_MAX

typedef void *nvml_device;

struct nvml_memory {
	uint64_t total;
	uint64_t free;
	uint64_t used;
};

/* Versions 2 and 3 of the process calls. */
struct nvml_process {
	uint32_t pid;
	uint64_t used_bytes;
	uint32_t gpu_instance;
	uint32_t compute_instance;
};

struct nvml_process_sample {
	uint32_t pid;
	uint64_t time_us;
	uint32_t sm_percent;
	uint32_t memory_percent;
	uint32_t encoder_percent;
	uint32_t decoder_percent;
};

struct nvml_utilization {
	uint32_t gpu_percent;
	uint32_t memory_percent;
};

/* From driver R615 on: limits that the driver itself keeps on a cgroup. */
struct nvml_memory_limits {
	const char *cgroup_dir;
	uint64_t soft_bytes;
	uint64_t hard_bytes;
};

struct nvml_pci {
	char bus_id_legacy[16];
	uint32_t numbers[5];
	char bus_id[32];
};

#define NVML_MIG_ENABLED 1

_Static_assert(sizeof(struct nvml_pci) == 68, "as the library has it");
_Static_assert(sizeof(struct nvml_memory) == 24, "as the library has it");
_Static_assert(sizeof(struct nvml_process) == 24, "as the library has it");
_Static_assert(sizeof(struct nvml_process_sample) == 32, "as the library has it");
_Static_assert(sizeof(struct nvml_memory_limits) == 24, "as the library has it");

/*
 * NVML_CALL(member, symbol, needed, arguments): every function that is looked up.
 * Without one that is needed, the library is refused.
 */
#define NVML_CALLS(NVML_CALL)                                                                      \
	NVML_CALL(init, "nvmlInit_v2", true, (void))                                               \
	NVML_CALL(shutdown, "nvmlShutdown", true, (void))                                          \
	NVML_CALL(driver_version, "nvmlSystemGetDriverVersion", true, (char *, unsigned))          \
	NVML_CALL(cuda_version, "nvmlSystemGetCudaDriverVersion_v2", false, (int *))               \
	NVML_CALL(device_count, "nvmlDeviceGetCount_v2", true, (unsigned *))                       \
	NVML_CALL(device_by_index, "nvmlDeviceGetHandleByIndex_v2", true,                          \
		  (unsigned, nvml_device *))                                                       \
	NVML_CALL(device_uuid, "nvmlDeviceGetUUID", true, (nvml_device, char *, unsigned))         \
	NVML_CALL(device_name, "nvmlDeviceGetName", true, (nvml_device, char *, unsigned))         \
	NVML_CALL(device_pci, "nvmlDeviceGetPciInfo_v3", false, (nvml_device, struct nvml_pci *))  \
	NVML_CALL(device_serial, "nvmlDeviceGetSerial", false, (nvml_device, char *, unsigned))    \
	NVML_CALL(mig_mode, "nvmlDeviceGetMigMode", false, (nvml_device, unsigned *, unsigned *))  \
	NVML_CALL(mig_count, "nvmlDeviceGetMaxMigDeviceCount", false, (nvml_device, unsigned *))   \
	NVML_CALL(mig_by_index, "nvmlDeviceGetMigDeviceHandleByIndex", false,                      \
		  (nvml_device, unsigned, nvml_device *))                                          \
	NVML_CALL(device_memory, "nvmlDeviceGetMemoryInfo", true,                                  \
		  (nvml_device, struct nvml_memory *))                                             \
	NVML_CALL(device_utilization, "nvmlDeviceGetUtilizationRates", false,                      \
		  (nvml_device, struct nvml_utilization *))                                        \
	NVML_CALL(compute_processes, "nvmlDeviceGetComputeRunningProcesses_v3", false,             \
		  (nvml_device, unsigned *, struct nvml_process *))                                \
	NVML_CALL(compute_processes_v2, "nvmlDeviceGetComputeRunningProcesses_v2", false,          \
		  (nvml_device, unsigned *, struct nvml_process *))                                \
	NVML_CALL(graphics_processes, "nvmlDeviceGetGraphicsRunningProcesses_v3", false,           \
		  (nvml_device, unsigned *, struct nvml_process *))                                \
	NVML_CALL(process_samples, "nvmlDeviceGetProcessUtilization", false,                       \
		  (nvml_device, struct nvml_process_sample *, unsigned *, unsigned long long))     \
	NVML_CALL(set_memory_limits, "nvmlDeviceSetMemoryLimits_v1", false,                        \
		  (nvml_device, struct nvml_memory_limits *))

struct nvml_calls {
#define NVML_CALL(member, symbol, needed, arguments) int(*member) arguments;
	NVML_CALLS(NVML_CALL)
#undef NVML_CALL
};

#endif
