/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML's types, as far as they are needed, with the names that the calls' documentation uses.
 */
#ifndef NVML_ABI_H
#define NVML_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef int nvmlReturn_t;
typedef struct nvml_device *nvmlDevice_t;
typedef struct nvml_event_set *nvmlEventSet_t;

enum {
	NVML_SUCCESS = 0,
	NVML_ERROR_UNINITIALIZED = 1,
	NVML_ERROR_INVALID_ARGUMENT = 2,
	NVML_ERROR_NOT_SUPPORTED = 3,
	NVML_ERROR_NO_PERMISSION = 4,
	NVML_ERROR_NOT_FOUND = 6,
	NVML_ERROR_INSUFFICIENT_SIZE = 7,
	NVML_ERROR_DRIVER_NOT_LOADED = 9,
	NVML_ERROR_TIMEOUT = 10,
	NVML_ERROR_GPU_IS_LOST = 15,
	NVML_ERROR_OPERATING_SYSTEM = 17,
	NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
	NVML_ERROR_MEMORY = 20,
	NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
	NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
	NVML_ERROR_UNKNOWN = 999,
};

/* Versioned structures begin with their size and version. */
#define NVML_STRUCT_VERSION(type, version) ((uint32_t)(sizeof(type) | (version) << 24))

#define NVML_NO_INSTANCE 0xffffffffu

typedef struct {
	char busIdLegacy[16];
	unsigned domain;
	unsigned bus;
	unsigned device;
	unsigned pciDeviceId;
	unsigned pciSubSystemId;
	char busId[32];
} nvmlPciInfo_t;

typedef struct {
	unsigned version;
	unsigned domain;
	unsigned bus;
	unsigned device;
	unsigned pciDeviceId;
	unsigned pciSubSystemId;
	unsigned baseClass;
	unsigned subClass;
	char busId[32];
} nvmlPciInfoExt_t;

typedef struct {
	unsigned version;
	unsigned type; /* 1: text, 2: bytes */
	union {
		char str[41];
		unsigned char bytes[16];
	} value;
} nvmlUUID_t;

typedef struct {
	uint64_t total;
	uint64_t free;
	uint64_t used;
} nvmlMemory_t;

typedef struct {
	unsigned version;
	uint64_t total;
	uint64_t reserved;
	uint64_t free;
	uint64_t used;
} nvmlMemory_v2_t;

typedef struct {
	uint64_t bar1Total;
	uint64_t bar1Free;
	uint64_t bar1Used;
} nvmlBAR1Memory_t;

typedef struct {
	const char *nameSpace;
	uint64_t softLimit;
	uint64_t hardLimit;
} nvmlSetMemoryLimits_v1_t;

typedef struct {
	const char *nameSpace;
	uint64_t softLimit;
	uint64_t hardLimit;
	uint64_t currentUsed;
} nvmlGetMemoryLimits_v1_t;

typedef struct {
	unsigned gpu;
	unsigned memory;
} nvmlUtilization_t;

typedef struct {
	unsigned pid;
	uint64_t usedGpuMemory;
} nvmlProcessInfo_v1_t;

typedef struct {
	unsigned pid;
	uint64_t usedGpuMemory;
	unsigned gpuInstanceId;
	unsigned computeInstanceId;
} nvmlProcessInfo_v2_t;

typedef struct {
	unsigned pid;
	uint64_t usedGpuMemory;
	unsigned gpuInstanceId;
	unsigned computeInstanceId;
	uint64_t usedGpuCcProtectedMemory;
} nvmlProcessDetail_v1_t;

typedef struct {
	unsigned version;
	unsigned mode; /* 0: compute, 1: graphics, 2: MPS */
	unsigned numProcArrayEntries;
	nvmlProcessDetail_v1_t *procArray;
} nvmlProcessDetailList_t;

typedef struct {
	unsigned pid;
	uint64_t timeStamp;
	unsigned smUtil;
	unsigned memUtil;
	unsigned encUtil;
	unsigned decUtil;
} nvmlProcessUtilizationSample_t;

typedef struct {
	uint64_t timeStamp;
	unsigned pid;
	unsigned smUtil;
	unsigned memUtil;
	unsigned encUtil;
	unsigned decUtil;
	unsigned jpgUtil;
	unsigned ofaUtil;
} nvmlProcessUtilizationInfo_v1_t;

typedef struct {
	unsigned version;
	unsigned processSamplesCount;
	uint64_t lastSeenTimeStamp;
	nvmlProcessUtilizationInfo_v1_t *procUtilArray;
} nvmlProcessesUtilizationInfo_t;

typedef union {
	double dVal;
	int siVal;
	unsigned uiVal;
	unsigned long ulVal;
	unsigned long long ullVal;
} nvmlValue_t;

enum {
	NVML_VALUE_TYPE_UNSIGNED_INT = 1,
	NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3,
};

typedef struct {
	uint64_t timeStamp;
	nvmlValue_t sampleValue;
} nvmlSample_t;

typedef struct {
	unsigned fieldId;
	unsigned scopeId;
	int64_t timestamp;
	int64_t latencyUsec;
	int valueType;
	nvmlReturn_t nvmlReturn;
	nvmlValue_t value;
} nvmlFieldValue_t;

typedef struct {
	unsigned version;
	int sensorType;
	int temperature;
} nvmlTemperature_t;

typedef struct {
	uint64_t referenceTime;
	uint64_t violationTime;
} nvmlViolationTime_t;

typedef struct {
	unsigned multiprocessorCount;
	unsigned sharedCopyEngineCount;
	unsigned sharedDecoderCount;
	unsigned sharedEncoderCount;
	unsigned sharedJpegCount;
	unsigned sharedOfaCount;
	unsigned gpuInstanceSliceCount;
	unsigned computeInstanceSliceCount;
	uint64_t memorySizeMB;
} nvmlDeviceAttributes_t;

typedef struct {
	nvmlDevice_t device;
	uint64_t eventType;
	uint64_t eventData;
	unsigned gpuInstanceId;
	unsigned computeInstanceId;
} nvmlEventData_t;

/* What nvmlEventSetWait() writes; its second version writes the members behind these, too. */
#define NVML_FIRST_EVENT_SIZE offsetof(nvmlEventData_t, gpuInstanceId)

/* To make a set of the system's events, and to free it. */
typedef struct {
	unsigned version;
	nvmlEventSet_t set;
} nvmlSystemEventSetRequest_t;

typedef struct {
	unsigned version;
	uint64_t eventTypes;
	nvmlEventSet_t set;
} nvmlSystemRegisterEventRequest_t;

typedef struct {
	uint64_t eventType;
	unsigned gpuId;
} nvmlSystemEventData_t;

typedef struct {
	unsigned version;
	unsigned timeoutms;
	nvmlEventSet_t set;
	nvmlSystemEventData_t *data;
	unsigned dataSize;
	unsigned numEvent;
} nvmlSystemEventSetWaitRequest_t;

enum {
	NVML_CLOCK_GRAPHICS,
	NVML_CLOCK_SM,
	NVML_CLOCK_MEM,
	NVML_CLOCK_VIDEO,
};

#endif
