/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime's own types, as its public documentation gives them. Handles are the
 * driver's: a cudaStream_t is a CUstream, a cudaGraph_t a CUgraph.
 */
#pragma once

#include <stddef.h>

#include "src/cuda/cuda_abi.h"

typedef enum {
#define ERROR(name, value) name = value,
#include "softgpu/cudart/errors.def"
#undef ERROR
} cudaError_t;

struct dim3 {
	unsigned x, y, z;
};

enum cudaMemcpyKind {
	cudaMemcpyHostToHost,
	cudaMemcpyHostToDevice,
	cudaMemcpyDeviceToHost,
	cudaMemcpyDeviceToDevice,
	cudaMemcpyDefault,
};

struct cudaExtent {
	size_t width, height, depth;
};

struct cudaPos {
	size_t x, y, z;
};

struct cudaPitchedPtr {
	void *ptr;
	size_t pitch, xsize, ysize;
};

enum cudaChannelFormatKind {
	cudaChannelFormatKindSigned,
	cudaChannelFormatKindUnsigned,
	cudaChannelFormatKindFloat,
	cudaChannelFormatKindNone,
};

struct cudaChannelFormatDesc {
	int x, y, z, w;
	enum cudaChannelFormatKind f;
};

struct cudaResourceDesc {
	CUresourcetype resType;
	union {
		CUarray array;
		CUmipmappedArray mipmap;
		struct {
			void *devPtr;
			struct cudaChannelFormatDesc desc;
			size_t sizeInBytes;
		} linear;
		struct {
			void *devPtr;
			struct cudaChannelFormatDesc desc;
			size_t width, height, pitchInBytes;
		} pitch2D;
	} res;
};

/* What all versions have of it. Address and filter modes are the driver's. */
struct cudaTextureDesc {
	CUaddress_mode addressMode[3];
	CUfilter_mode filterMode;
	int readMode; /* 0: elements as they are; 1: integers as floats */
	int sRGB;
	float borderColor[4];
	int normalizedCoords;
	unsigned maxAnisotropy;
	CUfilter_mode mipmapFilterMode;
	float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
	int disableTrilinearOptimization;
};

/* As the driver's, formats too, without what is reserved in some versions. */
struct cudaResourceViewDesc {
	CUresourceViewFormat format;
	size_t width, height, depth;
	unsigned firstMipmapLevel, lastMipmapLevel, firstLayer, lastLayer;
};

struct cudaMemcpy3DParms {
	CUarray srcArray;
	struct cudaPos srcPos;
	struct cudaPitchedPtr srcPtr;
	CUarray dstArray;
	struct cudaPos dstPos;
	struct cudaPitchedPtr dstPtr;
	struct cudaExtent extent;
	enum cudaMemcpyKind kind;
};

struct cudaMemcpy3DPeerParms {
	CUarray srcArray;
	struct cudaPos srcPos;
	struct cudaPitchedPtr srcPtr;
	int srcDevice;
	CUarray dstArray;
	struct cudaPos dstPos;
	struct cudaPitchedPtr dstPtr;
	int dstDevice;
	struct cudaExtent extent;
};

struct cudaPointerAttributes {
	int type;
	int device;
	void *devicePointer;
	void *hostPointer;
};

struct cudaFuncAttributes {
	size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
	int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA;
	int maxDynamicSharedSizeBytes, preferredShmemCarveout, clusterDimMustBeSet;
	int requiredClusterWidth, requiredClusterHeight, requiredClusterDepth;
	int clusterSchedulingPolicyPreference, nonPortableClusterSizeAllowed;
	int reserved[16];
};

struct cudaLaunchConfig {
	struct dim3 gridDim, blockDim;
	size_t dynamicSmemBytes;
	CUstream stream;
	CUlaunchAttribute *attrs;
	unsigned numAttrs;
};

struct cudaKernelNodeParams {
	void *func;
	struct dim3 gridDim, blockDim;
	unsigned sharedMemBytes;
	void **kernelParams;
	void **extra;
};

struct cudaMemsetParams {
	void *dst;
	size_t pitch;
	unsigned value, elementSize;
	size_t width, height;
};

struct cudaHostNodeParams {
	CUhostFn fn;
	void *userData;
};

/* Members that are laid out as the driver's have its types. */
struct cudaGraphNodeParams {
	CUgraphNodeType type;
	int reserved0[3];
	union {
		long long reserved1[29];
		struct cudaKernelNodeParams kernel;
		struct {
			int flags, reserved[3];
			struct cudaMemcpy3DParms copyParams;
		} memcpy;
		struct cudaMemsetParams memset;
		CUDA_MEM_ALLOC_NODE_PARAMS alloc;
	};
	long long reserved2;
};

/* cudaMemPoolProps and cudaMemLocation are laid out as the driver's. */
