/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays and mipmapped arrays, textures and surfaces. Included by cuda_abi.h. */
#pragma once

/* Flags of an array. */
#define CUDA_ARRAY3D_LAYERED		 0x01
#define CUDA_ARRAY3D_2DARRAY		 0x01
#define CUDA_ARRAY3D_SURFACE_LDST	 0x02
#define CUDA_ARRAY3D_CUBEMAP		 0x04
#define CUDA_ARRAY3D_TEXTURE_GATHER	 0x08
#define CUDA_ARRAY3D_DEPTH_TEXTURE	 0x10
#define CUDA_ARRAY3D_COLOR_ATTACHMENT	 0x20
#define CUDA_ARRAY3D_SPARSE		 0x40
#define CUDA_ARRAY3D_DEFERRED_MAPPING	 0x80
#define CUDA_ARRAY3D_VIDEO_ENCODE_DECODE 0x100

#define CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL 0x1

typedef enum {
	CU_AD_FORMAT_UNSIGNED_INT8 = 1,
	CU_AD_FORMAT_UNSIGNED_INT16 = 2,
	CU_AD_FORMAT_UNSIGNED_INT32 = 3,
	CU_AD_FORMAT_SIGNED_INT8 = 8,
	CU_AD_FORMAT_SIGNED_INT16 = 9,
	CU_AD_FORMAT_SIGNED_INT32 = 10,
	CU_AD_FORMAT_HALF = 16,
	CU_AD_FORMAT_FLOAT = 32,
	CU_AD_FORMAT_NV12 = 176,
	CU_AD_FORMAT_UNORM_INT8X1 = 192,
	CU_AD_FORMAT_UNORM_INT8X2 = 193,
	CU_AD_FORMAT_UNORM_INT8X4 = 194,
	CU_AD_FORMAT_UNORM_INT16X1 = 195,
	CU_AD_FORMAT_UNORM_INT16X2 = 196,
	CU_AD_FORMAT_UNORM_INT16X4 = 197,
	CU_AD_FORMAT_SNORM_INT8X1 = 198,
	CU_AD_FORMAT_SNORM_INT8X2 = 199,
	CU_AD_FORMAT_SNORM_INT8X4 = 200,
	CU_AD_FORMAT_SNORM_INT16X1 = 201,
	CU_AD_FORMAT_SNORM_INT16X2 = 202,
	CU_AD_FORMAT_SNORM_INT16X4 = 203,
	CU_AD_FORMAT_BC1_UNORM = 145,
	CU_AD_FORMAT_BC1_UNORM_SRGB = 146,
	CU_AD_FORMAT_BC2_UNORM = 147,
	CU_AD_FORMAT_BC2_UNORM_SRGB = 148,
	CU_AD_FORMAT_BC3_UNORM = 149,
	CU_AD_FORMAT_BC3_UNORM_SRGB = 150,
	CU_AD_FORMAT_BC4_UNORM = 151,
	CU_AD_FORMAT_BC4_SNORM = 152,
	CU_AD_FORMAT_BC5_UNORM = 153,
	CU_AD_FORMAT_BC5_SNORM = 154,
	CU_AD_FORMAT_BC6H_UF16 = 155,
	CU_AD_FORMAT_BC6H_SF16 = 156,
	CU_AD_FORMAT_BC7_UNORM = 157,
	CU_AD_FORMAT_BC7_UNORM_SRGB = 158,
	CU_AD_FORMAT_P010 = 159,
	CU_AD_FORMAT_P016 = 161,
	CU_AD_FORMAT_NV16 = 162,
	CU_AD_FORMAT_P210 = 163,
	CU_AD_FORMAT_P216 = 164,
	CU_AD_FORMAT_YUY2 = 165,
	CU_AD_FORMAT_Y210 = 166,
	CU_AD_FORMAT_Y216 = 167,
	CU_AD_FORMAT_AYUV = 168,
	CU_AD_FORMAT_Y410 = 169,
	CU_AD_FORMAT_Y416 = 177,
	CU_AD_FORMAT_Y444_PLANAR8 = 178,
	CU_AD_FORMAT_Y444_PLANAR10 = 179,
	CU_AD_FORMAT_YUV444_8bit_SemiPlanar = 180,
	CU_AD_FORMAT_YUV444_16bit_SemiPlanar = 181,
	CU_AD_FORMAT_UNORM_INT_101010_2 = 80,
	CU_AD_FORMAT_MAX = 0x7fffffff,
} CUarray_format;

typedef enum {
	CU_CUBEMAP_FACE_POSITIVE_X = 0,
	CU_CUBEMAP_FACE_NEGATIVE_X = 1,
	CU_CUBEMAP_FACE_POSITIVE_Y = 2,
	CU_CUBEMAP_FACE_NEGATIVE_Y = 3,
	CU_CUBEMAP_FACE_POSITIVE_Z = 4,
	CU_CUBEMAP_FACE_NEGATIVE_Z = 5,
} CUarray_cubemap_face;

typedef struct {
	size_t Width, Height;
	CUarray_format Format;
	unsigned NumChannels;
} CUDA_ARRAY_DESCRIPTOR;

typedef struct {
	size_t Width, Height, Depth;
	CUarray_format Format;
	unsigned NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR;

typedef struct {
	struct {
		unsigned width, height, depth;
	} tileExtent;
	unsigned miptailFirstLevel;
	unsigned long long miptailSize;
	unsigned flags, reserved[4];
} CUDA_ARRAY_SPARSE_PROPERTIES;

typedef struct {
	size_t size, alignment;
	unsigned reserved[4];
} CUDA_ARRAY_MEMORY_REQUIREMENTS;

/* As the calls without suffix took them before CUDA 3.2. */
typedef struct {
	unsigned Width, Height;
	CUarray_format Format;
	unsigned NumChannels;
} CUDA_ARRAY_DESCRIPTOR_v1;

typedef struct {
	unsigned Width, Height, Depth;
	CUarray_format Format;
	unsigned NumChannels, Flags;
} CUDA_ARRAY3D_DESCRIPTOR_v1;

typedef enum {
	CU_RESOURCE_TYPE_ARRAY = 0,
	CU_RESOURCE_TYPE_MIPMAPPED_ARRAY = 1,
	CU_RESOURCE_TYPE_LINEAR = 2,
	CU_RESOURCE_TYPE_PITCH2D = 3,
} CUresourcetype;

typedef enum {
	CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL = 0,
	CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL = 1,
} CUarraySparseSubresourceType;

typedef struct {
	CUresourcetype resourceType;
	union {
		CUmipmappedArray mipmap;
		CUarray array;
	} resource;
	CUarraySparseSubresourceType subresourceType;
	union {
		struct {
			unsigned level, layer, offsetX, offsetY;
			unsigned offsetZ, extentWidth, extentHeight;
			unsigned extentDepth;
		} sparseLevel;
		struct {
			unsigned layer;
			unsigned long long offset, size;
		} miptail;
	} subresource;
	CUmemOperationType memOperationType;
	CUmemHandleType memHandleType;
	union {
		CUmemGenericAllocationHandle memHandle;
	} memHandle;
	unsigned long long offset;
	unsigned deviceBitMask, flags, reserved[2];
} CUarrayMapInfo;

/* Textures and surfaces. */
#define CU_TRSA_OVERRIDE_FORMAT		       0x01
#define CU_TRSF_READ_AS_INTEGER		       0x01
#define CU_TRSF_NORMALIZED_COORDINATES	       0x02
#define CU_TRSF_SRGB			       0x10
#define CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION 0x20
#define CU_TRSF_SEAMLESS_CUBEMAP	       0x40
#define CU_PARAM_TR_DEFAULT		       (-1)

typedef enum {
	CU_TR_ADDRESS_MODE_WRAP = 0,
	CU_TR_ADDRESS_MODE_CLAMP = 1,
	CU_TR_ADDRESS_MODE_MIRROR = 2,
	CU_TR_ADDRESS_MODE_BORDER = 3,
} CUaddress_mode;

typedef enum {
	CU_TR_FILTER_MODE_POINT = 0,
	CU_TR_FILTER_MODE_LINEAR = 1,
} CUfilter_mode;

typedef enum {
	CU_RES_VIEW_FORMAT_NONE = 0,
	CU_RES_VIEW_FORMAT_UINT_1X8 = 1,
	CU_RES_VIEW_FORMAT_UINT_2X8 = 2,
	CU_RES_VIEW_FORMAT_UINT_4X8 = 3,
	CU_RES_VIEW_FORMAT_SINT_1X8 = 4,
	CU_RES_VIEW_FORMAT_SINT_2X8 = 5,
	CU_RES_VIEW_FORMAT_SINT_4X8 = 6,
	CU_RES_VIEW_FORMAT_UINT_1X16 = 7,
	CU_RES_VIEW_FORMAT_UINT_2X16 = 8,
	CU_RES_VIEW_FORMAT_UINT_4X16 = 9,
	CU_RES_VIEW_FORMAT_SINT_1X16 = 10,
	CU_RES_VIEW_FORMAT_SINT_2X16 = 11,
	CU_RES_VIEW_FORMAT_SINT_4X16 = 12,
	CU_RES_VIEW_FORMAT_UINT_1X32 = 13,
	CU_RES_VIEW_FORMAT_UINT_2X32 = 14,
	CU_RES_VIEW_FORMAT_UINT_4X32 = 15,
	CU_RES_VIEW_FORMAT_SINT_1X32 = 16,
	CU_RES_VIEW_FORMAT_SINT_2X32 = 17,
	CU_RES_VIEW_FORMAT_SINT_4X32 = 18,
	CU_RES_VIEW_FORMAT_FLOAT_1X16 = 19,
	CU_RES_VIEW_FORMAT_FLOAT_2X16 = 20,
	CU_RES_VIEW_FORMAT_FLOAT_4X16 = 21,
	CU_RES_VIEW_FORMAT_FLOAT_1X32 = 22,
	CU_RES_VIEW_FORMAT_FLOAT_2X32 = 23,
	CU_RES_VIEW_FORMAT_FLOAT_4X32 = 24,
	CU_RES_VIEW_FORMAT_UNSIGNED_BC1 = 25,
	CU_RES_VIEW_FORMAT_UNSIGNED_BC2 = 26,
	CU_RES_VIEW_FORMAT_UNSIGNED_BC3 = 27,
	CU_RES_VIEW_FORMAT_UNSIGNED_BC4 = 28,
	CU_RES_VIEW_FORMAT_SIGNED_BC4 = 29,
	CU_RES_VIEW_FORMAT_UNSIGNED_BC5 = 30,
	CU_RES_VIEW_FORMAT_SIGNED_BC5 = 31,
	CU_RES_VIEW_FORMAT_UNSIGNED_BC6H = 32,
	CU_RES_VIEW_FORMAT_SIGNED_BC6H = 33,
	CU_RES_VIEW_FORMAT_UNSIGNED_BC7 = 34,
} CUresourceViewFormat;

typedef struct {
	CUresourcetype resType;
	union {
		struct {
			CUarray hArray;
		} array;
		struct {
			CUmipmappedArray hMipmappedArray;
		} mipmap;
		struct {
			CUdeviceptr devPtr;
			CUarray_format format;
			unsigned numChannels;
			size_t sizeInBytes;
		} linear;
		struct {
			CUdeviceptr devPtr;
			CUarray_format format;
			unsigned numChannels;
			size_t width, height, pitchInBytes;
		} pitch2D;
		struct {
			int reserved[32];
		} reserved;
	} res;
	unsigned flags;
} CUDA_RESOURCE_DESC;

typedef struct {
	CUaddress_mode addressMode[3];
	CUfilter_mode filterMode;
	unsigned flags, maxAnisotropy;
	CUfilter_mode mipmapFilterMode;
	float mipmapLevelBias, minMipmapLevelClamp;
	float maxMipmapLevelClamp, borderColor[4];
	int reserved[12];
} CUDA_TEXTURE_DESC;

typedef struct {
	CUresourceViewFormat format;
	size_t width, height, depth;
	unsigned firstMipmapLevel, lastMipmapLevel, firstLayer;
	unsigned lastLayer, reserved[16];
} CUDA_RESOURCE_VIEW_DESC;

/* Tensor maps. */
typedef enum {
	CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0,
	CU_TENSOR_MAP_DATA_TYPE_UINT16 = 1,
	CU_TENSOR_MAP_DATA_TYPE_UINT32 = 2,
	CU_TENSOR_MAP_DATA_TYPE_INT32 = 3,
	CU_TENSOR_MAP_DATA_TYPE_UINT64 = 4,
	CU_TENSOR_MAP_DATA_TYPE_INT64 = 5,
	CU_TENSOR_MAP_DATA_TYPE_FLOAT16 = 6,
	CU_TENSOR_MAP_DATA_TYPE_FLOAT32 = 7,
	CU_TENSOR_MAP_DATA_TYPE_FLOAT64 = 8,
	CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 = 9,
	CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ = 10,
	CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 = 11,
	CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ = 12,
	CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B = 13,
	CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B = 14,
	CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B = 15,
} CUtensorMapDataType;

typedef enum {
	CU_TENSOR_MAP_INTERLEAVE_NONE = 0,
	CU_TENSOR_MAP_INTERLEAVE_16B = 1,
	CU_TENSOR_MAP_INTERLEAVE_32B = 2,
} CUtensorMapInterleave;

typedef enum {
	CU_TENSOR_MAP_SWIZZLE_NONE = 0,
	CU_TENSOR_MAP_SWIZZLE_32B = 1,
	CU_TENSOR_MAP_SWIZZLE_64B = 2,
	CU_TENSOR_MAP_SWIZZLE_128B = 3,
	CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B = 4,
	CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B = 5,
	CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B = 6,
} CUtensorMapSwizzle;

typedef enum {
	CU_TENSOR_MAP_L2_PROMOTION_NONE = 0,
	CU_TENSOR_MAP_L2_PROMOTION_L2_64B = 1,
	CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2,
	CU_TENSOR_MAP_L2_PROMOTION_L2_256B = 3,
} CUtensorMapL2promotion;

typedef enum {
	CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0,
	CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA = 1,
} CUtensorMapFloatOOBfill;

typedef enum {
	CU_TENSOR_MAP_IM2COL_WIDE_MODE_W = 0,
	CU_TENSOR_MAP_IM2COL_WIDE_MODE_W128 = 1,
} CUtensorMapIm2ColWideMode;

/* Opaque to programs; the driver wants it aligned to a cache line. */
typedef struct {
	_Alignas(64) cuuint64_t opaque[16];
} CUtensorMap;
