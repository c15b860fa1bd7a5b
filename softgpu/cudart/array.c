// SPDX-License-Identifier: Apache-2.0
/* Arrays and mipmapped arrays. */
#include "softgpu/cudart/runtime.h"

static const struct {
	enum cudaChannelFormatKind kind;
	int bits;
	CUarray_format format;
	size_t bytes;
} formats[] = {
	{ cudaChannelFormatKindUnsigned, 8, CU_AD_FORMAT_UNSIGNED_INT8, 1 },
	{ cudaChannelFormatKindUnsigned, 16, CU_AD_FORMAT_UNSIGNED_INT16, 2 },
	{ cudaChannelFormatKindUnsigned, 32, CU_AD_FORMAT_UNSIGNED_INT32, 4 },
	{ cudaChannelFormatKindSigned, 8, CU_AD_FORMAT_SIGNED_INT8, 1 },
	{ cudaChannelFormatKindSigned, 16, CU_AD_FORMAT_SIGNED_INT16, 2 },
	{ cudaChannelFormatKindSigned, 32, CU_AD_FORMAT_SIGNED_INT32, 4 },
	{ cudaChannelFormatKindFloat, 16, CU_AD_FORMAT_HALF, 2 },
	{ cudaChannelFormatKindFloat, 32, CU_AD_FORMAT_FLOAT, 4 },
};

#define N_FORMATS (sizeof(formats) / sizeof(formats[0]))

size_t element_bytes(CUarray array)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;

	if (driver.cuArray3DGetDescriptor(&descriptor, array))
		return 0;
	for (size_t i = 0; i < N_FORMATS; i++)
		if (formats[i].format == descriptor.Format)
			return formats[i].bytes * descriptor.NumChannels;
	return 0;
}

struct cudaChannelFormatDesc impl_cudaCreateChannelDesc(int x, int y, int z, int w,
							enum cudaChannelFormatKind kind);
struct cudaChannelFormatDesc impl_cudaCreateChannelDesc(int x, int y, int z, int w,
							enum cudaChannelFormatKind kind)
{
	return (struct cudaChannelFormatDesc){ x, y, z, w, kind };
}

/* The channels that are there have one width, and none follows a missing one. */
cudaError_t descriptor_of(const struct cudaChannelFormatDesc *channel, struct cudaExtent extent,
			  unsigned flags, CUDA_ARRAY3D_DESCRIPTOR *ret)
{
	int widths[] = { channel->x, channel->y, channel->z, channel->w };
	unsigned n = 0;

	while (n < 4 && widths[n] == widths[0])
		n++;
	for (unsigned i = n; i < 4; i++)
		if (widths[i] != 0)
			return failed(cudaErrorInvalidChannelDescriptor);
	for (size_t i = 0; i < N_FORMATS; i++) {
		if (formats[i].kind != channel->f || formats[i].bits != widths[0])
			continue;
		*ret = (CUDA_ARRAY3D_DESCRIPTOR){ .Width = extent.width,
						  .Height = extent.height,
						  .Depth = extent.depth,
						  .Format = formats[i].format,
						  .NumChannels = n,
						  .Flags = flags };
		return cudaSuccess;
	}
	return failed(cudaErrorInvalidChannelDescriptor);
}

RUNTIME_CALL(cudaMalloc3DArray, CUarray *array, const struct cudaChannelFormatDesc *channel,
	     struct cudaExtent extent, unsigned flags)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;

	if (!array || !channel)
		return failed(cudaErrorInvalidValue);
	return in_context() ?: descriptor_of(channel, extent, flags, &descriptor) ?:
		       told(driver.cuArray3DCreate(array, &descriptor));
}

RUNTIME_CALL(cudaMallocArray, CUarray *array, const struct cudaChannelFormatDesc *channel,
	     size_t width, size_t height, unsigned flags)
{
	return impl_cudaMalloc3DArray(array, channel, (struct cudaExtent){ width, height, 0 },
				      flags);
}

RUNTIME_CALL(cudaFreeArray, CUarray array)
{
	return in_context() ?: told_value(array ? driver.cuArrayDestroy(array) : CUDA_SUCCESS);
}

struct cudaChannelFormatDesc channel_of(CUarray_format format, unsigned n)
{
	for (size_t i = 0; i < N_FORMATS; i++) {
		int bits = formats[i].bits;

		if (formats[i].format == format)
			return (struct cudaChannelFormatDesc){ bits, n > 1 ? bits : 0,
							       n > 2 ? bits : 0, n > 3 ? bits : 0,
							       formats[i].kind };
	}
	return (struct cudaChannelFormatDesc){ .f = cudaChannelFormatKindNone };
}

RUNTIME_CALL(cudaArrayGetInfo, struct cudaChannelFormatDesc *channel, struct cudaExtent *extent,
	     unsigned *flags, CUarray array)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	cudaError_t error =
		in_context() ?: told_value(driver.cuArray3DGetDescriptor(&descriptor, array));

	if (error)
		return error;
	if (extent)
		*extent = (struct cudaExtent){ descriptor.Width, descriptor.Height,
					       descriptor.Depth };
	if (flags)
		*flags = descriptor.Flags;
	if (channel)
		*channel = channel_of(descriptor.Format, descriptor.NumChannels);
	return cudaSuccess;
}

RUNTIME_CALL(cudaGetChannelDesc, struct cudaChannelFormatDesc *channel, CUarray array)
{
	if (!channel)
		return failed(cudaErrorInvalidValue);
	return impl_cudaArrayGetInfo(channel, NULL, NULL, array);
}

RUNTIME_CALL(cudaMallocMipmappedArray, CUmipmappedArray *array,
	     const struct cudaChannelFormatDesc *channel, struct cudaExtent extent,
	     unsigned n_levels, unsigned flags)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;

	if (!array || !channel)
		return failed(cudaErrorInvalidValue);
	return in_context() ?: descriptor_of(channel, extent, flags, &descriptor) ?:
		       told(driver.cuMipmappedArrayCreate(array, &descriptor, n_levels));
}

RUNTIME_CALL(cudaGetMipmappedArrayLevel, CUarray *array, CUmipmappedArray mipmapped, unsigned level)
{
	return in_context() ?: told(driver.cuMipmappedArrayGetLevel(array, mipmapped, level));
}

RUNTIME_CALL(cudaFreeMipmappedArray, CUmipmappedArray array)
{
	return in_context()
		       ?: told_value(array ? driver.cuMipmappedArrayDestroy(array) : CUDA_SUCCESS);
}

PASSED_ON_AS(told_value, cudaArrayGetMemoryRequirements, cuArrayGetMemoryRequirements,
	     (CUDA_ARRAY_MEMORY_REQUIREMENTS * requirements, CUarray array, int device),
	     (requirements, array, device))
PASSED_ON_AS(told_value, cudaMipmappedArrayGetMemoryRequirements,
	     cuMipmappedArrayGetMemoryRequirements,
	     (CUDA_ARRAY_MEMORY_REQUIREMENTS * requirements, CUmipmappedArray array, int device),
	     (requirements, array, device))
