// SPDX-License-Identifier: Apache-2.0
/* Texture and surface objects: the driver's, whose structures are laid out otherwise. */
#include "softgpu/cudart/runtime.h"

static cudaError_t linear_format(const struct cudaChannelFormatDesc *channel,
				 CUarray_format *format, unsigned *n_channels)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	cudaError_t error = descriptor_of(channel, (struct cudaExtent){ 1, 1, 1 }, 0, &descriptor);

	if (error)
		return error;
	*format = descriptor.Format;
	*n_channels = descriptor.NumChannels;
	return cudaSuccess;
}

static cudaError_t resource_to_driver(const struct cudaResourceDesc *desc, CUDA_RESOURCE_DESC *ret)
{
	*ret = (CUDA_RESOURCE_DESC){ .resType = desc->resType };
	switch (desc->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		ret->res.array.hArray = desc->res.array;
		return cudaSuccess;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		ret->res.mipmap.hMipmappedArray = desc->res.mipmap;
		return cudaSuccess;
	case CU_RESOURCE_TYPE_LINEAR:
		ret->res.linear.devPtr = (CUdeviceptr)desc->res.linear.devPtr;
		ret->res.linear.sizeInBytes = desc->res.linear.sizeInBytes;
		return linear_format(&desc->res.linear.desc, &ret->res.linear.format,
				     &ret->res.linear.numChannels);
	case CU_RESOURCE_TYPE_PITCH2D:
		ret->res.pitch2D.devPtr = (CUdeviceptr)desc->res.pitch2D.devPtr;
		ret->res.pitch2D.width = desc->res.pitch2D.width;
		ret->res.pitch2D.height = desc->res.pitch2D.height;
		ret->res.pitch2D.pitchInBytes = desc->res.pitch2D.pitchInBytes;
		return linear_format(&desc->res.pitch2D.desc, &ret->res.pitch2D.format,
				     &ret->res.pitch2D.numChannels);
	default:
		return failed(cudaErrorInvalidValue);
	}
}

static void resource_from_driver(const CUDA_RESOURCE_DESC *desc, struct cudaResourceDesc *ret)
{
	*ret = (struct cudaResourceDesc){ .resType = desc->resType };
	switch (desc->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		ret->res.array = desc->res.array.hArray;
		break;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		ret->res.mipmap = desc->res.mipmap.hMipmappedArray;
		break;
	case CU_RESOURCE_TYPE_LINEAR:
		ret->res.linear.devPtr = (void *)desc->res.linear.devPtr;
		ret->res.linear.desc =
			channel_of(desc->res.linear.format, desc->res.linear.numChannels);
		ret->res.linear.sizeInBytes = desc->res.linear.sizeInBytes;
		break;
	default:
		ret->res.pitch2D.devPtr = (void *)desc->res.pitch2D.devPtr;
		ret->res.pitch2D.desc =
			channel_of(desc->res.pitch2D.format, desc->res.pitch2D.numChannels);
		ret->res.pitch2D.width = desc->res.pitch2D.width;
		ret->res.pitch2D.height = desc->res.pitch2D.height;
		ret->res.pitch2D.pitchInBytes = desc->res.pitch2D.pitchInBytes;
	}
}

static CUDA_TEXTURE_DESC sampling_to_driver(const struct cudaTextureDesc *desc)
{
	CUDA_TEXTURE_DESC driver_desc = {
		.filterMode = desc->filterMode,
		.flags =
			(desc->readMode == 0 ? CU_TRSF_READ_AS_INTEGER : 0) |
			(desc->normalizedCoords ? CU_TRSF_NORMALIZED_COORDINATES : 0) |
			(desc->sRGB ? CU_TRSF_SRGB : 0) |
			(desc->disableTrilinearOptimization ? CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION
							    : 0),
		.maxAnisotropy = desc->maxAnisotropy,
		.mipmapFilterMode = desc->mipmapFilterMode,
		.mipmapLevelBias = desc->mipmapLevelBias,
		.minMipmapLevelClamp = desc->minMipmapLevelClamp,
		.maxMipmapLevelClamp = desc->maxMipmapLevelClamp,
	};

	for (int i = 0; i < 3; i++)
		driver_desc.addressMode[i] = desc->addressMode[i];
	for (int i = 0; i < 4; i++)
		driver_desc.borderColor[i] = desc->borderColor[i];
	return driver_desc;
}

static struct cudaTextureDesc sampling_from_driver(const CUDA_TEXTURE_DESC *desc)
{
	struct cudaTextureDesc sampling = {
		.filterMode = desc->filterMode,
		.readMode = !(desc->flags & CU_TRSF_READ_AS_INTEGER),
		.sRGB = !!(desc->flags & CU_TRSF_SRGB),
		.normalizedCoords = !!(desc->flags & CU_TRSF_NORMALIZED_COORDINATES),
		.maxAnisotropy = desc->maxAnisotropy,
		.mipmapFilterMode = desc->mipmapFilterMode,
		.mipmapLevelBias = desc->mipmapLevelBias,
		.minMipmapLevelClamp = desc->minMipmapLevelClamp,
		.maxMipmapLevelClamp = desc->maxMipmapLevelClamp,
		.disableTrilinearOptimization =
			!!(desc->flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION),
	};

	for (int i = 0; i < 3; i++)
		sampling.addressMode[i] = desc->addressMode[i];
	for (int i = 0; i < 4; i++)
		sampling.borderColor[i] = desc->borderColor[i];
	return sampling;
}

static CUDA_RESOURCE_VIEW_DESC view_to_driver(const struct cudaResourceViewDesc *view)
{
	return (CUDA_RESOURCE_VIEW_DESC){
		.format = view->format,
		.width = view->width,
		.height = view->height,
		.depth = view->depth,
		.firstMipmapLevel = view->firstMipmapLevel,
		.lastMipmapLevel = view->lastMipmapLevel,
		.firstLayer = view->firstLayer,
		.lastLayer = view->lastLayer,
	};
}

RUNTIME_CALL(cudaCreateTextureObject, CUtexObject *texture, const struct cudaResourceDesc *resource,
	     const struct cudaTextureDesc *sampling, const struct cudaResourceViewDesc *view)
{
	CUDA_RESOURCE_VIEW_DESC driver_view;
	CUDA_RESOURCE_DESC driver_resource;
	CUDA_TEXTURE_DESC driver_sampling;
	cudaError_t error;

	if (!texture || !resource || !sampling)
		return failed(cudaErrorInvalidValue);
	error = in_context() ?: resource_to_driver(resource, &driver_resource);
	if (error)
		return error;
	driver_sampling = sampling_to_driver(sampling);
	if (view)
		driver_view = view_to_driver(view);
	return told_value(driver.cuTexObjectCreate(texture, &driver_resource, &driver_sampling,
						   view ? &driver_view : NULL));
}

RUNTIME_CALL(cudaCreateSurfaceObject, CUsurfObject *surface,
	     const struct cudaResourceDesc *resource)
{
	CUDA_RESOURCE_DESC driver_resource;
	cudaError_t error;

	if (!surface || !resource)
		return failed(cudaErrorInvalidValue);
	error = in_context() ?: resource_to_driver(resource, &driver_resource);
	return error ?: told_value(driver.cuSurfObjectCreate(surface, &driver_resource));
}

PASSED_ON(cudaDestroyTextureObject, cuTexObjectDestroy, (CUtexObject texture), (texture))
PASSED_ON(cudaDestroySurfaceObject, cuSurfObjectDestroy, (CUsurfObject surface), (surface))

RUNTIME_CALL(cudaGetTextureObjectResourceDesc, struct cudaResourceDesc *resource,
	     CUtexObject texture)
{
	CUDA_RESOURCE_DESC desc;
	cudaError_t error;

	if (!resource)
		return failed(cudaErrorInvalidValue);
	error = in_context() ?: told(driver.cuTexObjectGetResourceDesc(&desc, texture));
	if (!error)
		resource_from_driver(&desc, resource);
	return error;
}

RUNTIME_CALL(cudaGetSurfaceObjectResourceDesc, struct cudaResourceDesc *resource,
	     CUsurfObject surface)
{
	CUDA_RESOURCE_DESC desc;
	cudaError_t error;

	if (!resource)
		return failed(cudaErrorInvalidValue);
	error = in_context() ?: told(driver.cuSurfObjectGetResourceDesc(&desc, surface));
	if (!error)
		resource_from_driver(&desc, resource);
	return error;
}

RUNTIME_CALL(cudaGetTextureObjectTextureDesc, struct cudaTextureDesc *sampling, CUtexObject texture)
{
	CUDA_TEXTURE_DESC desc;
	cudaError_t error;

	if (!sampling)
		return failed(cudaErrorInvalidValue);
	error = in_context() ?: told(driver.cuTexObjectGetTextureDesc(&desc, texture));
	if (!error)
		*sampling = sampling_from_driver(&desc);
	return error;
}

RUNTIME_CALL(cudaGetTextureObjectResourceViewDesc, struct cudaResourceViewDesc *view,
	     CUtexObject texture)
{
	CUDA_RESOURCE_VIEW_DESC desc;
	cudaError_t error;

	if (!view)
		return failed(cudaErrorInvalidValue);
	error = in_context() ?: told(driver.cuTexObjectGetResourceViewDesc(&desc, texture));
	if (!error)
		*view = (struct cudaResourceViewDesc){
			.format = desc.format,
			.width = desc.width,
			.height = desc.height,
			.depth = desc.depth,
			.firstMipmapLevel = desc.firstMipmapLevel,
			.lastMipmapLevel = desc.lastMipmapLevel,
			.firstLayer = desc.firstLayer,
			.lastLayer = desc.lastLayer,
		};
	return error;
}
