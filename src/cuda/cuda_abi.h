/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The binary interface of the CUDA driver, declared by this project.
 *
 * Names, numbers and layouts are those of the public documentation, so that
 * code reads as every CUDA programmer expects; nothing of NVIDIA's is needed to
 * build. test-abi compares all of it with a toolkit's cuda.h where one is
 * installed.
 *
 * A structure without suffix is the current one. `_v1`, `_v2`: earlier and later
 * shapes that old and new exports of the same call take. Enumerations are int.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CUDA_VERSION 13000

typedef enum {
#define ERROR(name, number, text) name = number,
#include "errors.def"
#undef ERROR
} CUresult;

typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;

/* Addresses as the calls without suffix took them before CUDA 3.2. */
typedef unsigned CUdeviceptr_v1;

#define CU_DEVICE_CPU	  ((CUdevice)-1)
#define CU_DEVICE_INVALID ((CUdevice)-2)

typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUlinkState_st *CUlinkState;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUtexref_st *CUtexref;
typedef struct CUsurfref_st *CUsurfref;
typedef struct CUevent_st *CUevent;
typedef struct CUstream_st *CUstream;
typedef struct CUgraphicsResource_st *CUgraphicsResource;
typedef struct CUextMemory_st *CUexternalMemory;
typedef struct CUextSemaphore_st *CUexternalSemaphore;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphDeviceUpdatableNode_st *CUgraphDeviceNode;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUuserObject_st *CUuserObject;
typedef struct CUasyncCallbackEntry_st *CUasyncCallbackHandle;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;
typedef struct CUlogsCallbackEntry_st *CUlogsCallbackHandle;
typedef unsigned long long CUtexObject;
typedef unsigned long long CUsurfObject;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef cuuint64_t CUgraphConditionalHandle;
typedef unsigned CUlogIterator;

typedef struct {
	char bytes[16];
} CUuuid;

#include "abi/device.h"
#include "abi/context.h"
#include "abi/memory.h"
#include "abi/array.h"
#include "abi/copy.h"
#include "abi/module.h"
#include "abi/stream.h"
#include "abi/launch.h"
#include "abi/external.h"
#include "abi/graph.h"
