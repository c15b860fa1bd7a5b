// SPDX-License-Identifier: Apache-2.0
/*
 * Attributes of devices. Three sources: what the configuration says, what follows from the
 * compute capability, and what is the same for all.
 *
 * What this driver does not do is answered with 0, so that programs look for another way:
 * textures apart, whose limits are those of hardware, since arrays have them too.
 */
#include "softgpu/cuda/core.h"

#define KIB 1024

/* Per multiprocessor, as NVIDIA's table of technical specifications gives it. */
static const struct generation {
	unsigned compute; /* 10 * major + minor: this capability and those up to the next */
	int max_threads;
	int max_blocks;
	int shared_bytes;
	int fp32_per_fp64;
	int l2_bytes;
	int bus_bits;
} generations[] = {
	{ 0, 2048, 32, 64 * KIB, 32, 2048 * KIB, 256 },
	{ 70, 2048, 32, 96 * KIB, 2, 6144 * KIB, 4096 },
	{ 75, 1024, 16, 64 * KIB, 32, 4096 * KIB, 256 },
	{ 80, 2048, 32, 164 * KIB, 2, 40960 * KIB, 5120 },
	{ 86, 1536, 16, 100 * KIB, 64, 6144 * KIB, 384 },
	{ 87, 1536, 16, 164 * KIB, 64, 4096 * KIB, 256 },
	{ 89, 1536, 24, 100 * KIB, 64, 73728 * KIB, 384 },
	{ 90, 2048, 32, 228 * KIB, 2, 51200 * KIB, 5120 },
	{ 100, 2048, 32, 228 * KIB, 2, 129024 * KIB, 8192 },
	{ 120, 1536, 24, 100 * KIB, 64, 131072 * KIB, 512 },
};

static const struct generation *generation_of(const struct device *device)
{
	unsigned compute = 10 * device->config.compute_major + device->config.compute_minor;
	const struct generation *found = generations;
	size_t i;

	for (i = 0; i < sizeof(generations) / sizeof(generations[0]); i++)
		if (generations[i].compute <= compute)
			found = &generations[i];
	return found;
}

/* From 8.0 on, each block has 1 KiB of shared memory for the system. */
static int reserved_shared(const struct device *device)
{
	return device->config.compute_major >= 8 ? KIB : 0;
}

#define A(name) CU_DEVICE_ATTRIBUTE_##name

/* The same for all devices; those that are not named are 0. */
static const int fixed[CU_DEVICE_ATTRIBUTE_MAX] = {
	[A(MAX_THREADS_PER_BLOCK)] = 1024,
	[A(MAX_BLOCK_DIM_X)] = 1024,
	[A(MAX_BLOCK_DIM_Y)] = 1024,
	[A(MAX_BLOCK_DIM_Z)] = 64,
	[A(MAX_GRID_DIM_X)] = INT32_MAX,
	[A(MAX_GRID_DIM_Y)] = 65535,
	[A(MAX_GRID_DIM_Z)] = 65535,
	[A(MAX_SHARED_MEMORY_PER_BLOCK)] = 48 * KIB,
	[A(TOTAL_CONSTANT_MEMORY)] = 64 * KIB,
	[A(WARP_SIZE)] = 32,
	[A(MAX_PITCH)] = INT32_MAX,
	[A(MAX_REGISTERS_PER_BLOCK)] = 65536,
	[A(MAX_REGISTERS_PER_MULTIPROCESSOR)] = 65536,
	[A(TEXTURE_ALIGNMENT)] = 512,
	[A(TEXTURE_PITCH_ALIGNMENT)] = 32,
	[A(SURFACE_ALIGNMENT)] = 512,
	[A(GPU_OVERLAP)] = 1,
	[A(ASYNC_ENGINE_COUNT)] = 3,
	[A(CAN_MAP_HOST_MEMORY)] = 1,
	[A(COMPUTE_MODE)] = CU_COMPUTEMODE_DEFAULT,
	[A(CONCURRENT_KERNELS)] = 1,
	[A(UNIFIED_ADDRESSING)] = 1,
	[A(STREAM_PRIORITIES_SUPPORTED)] = 1,
	[A(GLOBAL_L1_CACHE_SUPPORTED)] = 1,
	[A(LOCAL_L1_CACHE_SUPPORTED)] = 1,
	[A(MANAGED_MEMORY)] = 1,
	[A(CONCURRENT_MANAGED_ACCESS)] = 1,
	[A(HOST_NATIVE_ATOMIC_SUPPORTED)] = 1,
	[A(COMPUTE_PREEMPTION_SUPPORTED)] = 1,
	[A(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM)] = 1,
	[A(COOPERATIVE_LAUNCH)] = 1,
	[A(HOST_REGISTER_SUPPORTED)] = 1,
	[A(READ_ONLY_HOST_REGISTER_SUPPORTED)] = 1,
	[A(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)] = 1,
	[A(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED)] = 1,
	[A(MEMORY_POOLS_SUPPORTED)] = 1,
	[A(MEMPOOL_SUPPORTED_HANDLE_TYPES)] = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	[A(CAN_USE_STREAM_MEM_OPS_V1)] = 1,
	[A(CAN_USE_64_BIT_STREAM_MEM_OPS_V1)] = 1,
	[A(CAN_USE_STREAM_WAIT_VALUE_NOR_V1)] = 1,
	[A(CAN_USE_64_BIT_STREAM_MEM_OPS)] = 1,
	[A(CAN_USE_STREAM_WAIT_VALUE_NOR)] = 1,
	[A(IPC_EVENT_SUPPORTED)] = 1,
	[A(MEM_SYNC_DOMAIN_COUNT)] = 1,
	[A(NUMA_CONFIG)] = CU_DEVICE_NUMA_CONFIG_NONE,
	[A(NUMA_ID)] = -1,
	[A(HOST_NUMA_ID)] = -1,

	[A(MAXIMUM_TEXTURE1D_WIDTH)] = 131072,
	[A(MAXIMUM_TEXTURE1D_LINEAR_WIDTH)] = 268435456,
	[A(MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH)] = 32768,
	[A(MAXIMUM_TEXTURE1D_LAYERED_WIDTH)] = 32768,
	[A(MAXIMUM_TEXTURE1D_LAYERED_LAYERS)] = 2048,
	[A(MAXIMUM_TEXTURE2D_WIDTH)] = 131072,
	[A(MAXIMUM_TEXTURE2D_HEIGHT)] = 65536,
	[A(MAXIMUM_TEXTURE2D_LAYERED_WIDTH)] = 32768,
	[A(MAXIMUM_TEXTURE2D_LAYERED_HEIGHT)] = 32768,
	[A(MAXIMUM_TEXTURE2D_LAYERED_LAYERS)] = 2048,
	[A(MAXIMUM_TEXTURE2D_GATHER_WIDTH)] = 32768,
	[A(MAXIMUM_TEXTURE2D_GATHER_HEIGHT)] = 32768,
	[A(MAXIMUM_TEXTURE2D_LINEAR_WIDTH)] = 131072,
	[A(MAXIMUM_TEXTURE2D_LINEAR_HEIGHT)] = 65000,
	[A(MAXIMUM_TEXTURE2D_LINEAR_PITCH)] = 2097120,
	[A(MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH)] = 32768,
	[A(MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT)] = 32768,
	[A(MAXIMUM_TEXTURE3D_WIDTH)] = 16384,
	[A(MAXIMUM_TEXTURE3D_HEIGHT)] = 16384,
	[A(MAXIMUM_TEXTURE3D_DEPTH)] = 16384,
	[A(MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE)] = 8192,
	[A(MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE)] = 8192,
	[A(MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE)] = 32768,
	[A(MAXIMUM_TEXTURECUBEMAP_WIDTH)] = 32768,
	[A(MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH)] = 32768,
	[A(MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS)] = 2046,
	[A(MAXIMUM_SURFACE1D_WIDTH)] = 32768,
	[A(MAXIMUM_SURFACE1D_LAYERED_WIDTH)] = 32768,
	[A(MAXIMUM_SURFACE1D_LAYERED_LAYERS)] = 2048,
	[A(MAXIMUM_SURFACE2D_WIDTH)] = 131072,
	[A(MAXIMUM_SURFACE2D_HEIGHT)] = 65536,
	[A(MAXIMUM_SURFACE2D_LAYERED_WIDTH)] = 32768,
	[A(MAXIMUM_SURFACE2D_LAYERED_HEIGHT)] = 32768,
	[A(MAXIMUM_SURFACE2D_LAYERED_LAYERS)] = 2048,
	[A(MAXIMUM_SURFACE3D_WIDTH)] = 16384,
	[A(MAXIMUM_SURFACE3D_HEIGHT)] = 16384,
	[A(MAXIMUM_SURFACE3D_DEPTH)] = 16384,
	[A(MAXIMUM_SURFACECUBEMAP_WIDTH)] = 32768,
	[A(MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH)] = 32768,
	[A(MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS)] = 2046,
};

/* From the configuration; @fallback for what it does not say. */
static int configured(const struct softgpu_device_config *config, CUdevice_attribute attribute,
		      int fallback)
{
	switch (attribute) {
	case A(CLOCK_RATE):
		return (int)config->clock_mhz * 1000;
	case A(MEMORY_CLOCK_RATE):
		return (int)config->memory_clock_mhz * 1000;
	case A(MULTIPROCESSOR_COUNT):
		return (int)config->n_sms;
	case A(COMPUTE_CAPABILITY_MAJOR):
		return (int)config->compute_major;
	case A(COMPUTE_CAPABILITY_MINOR):
		return (int)config->compute_minor;
	case A(PCI_DOMAIN_ID):
		return (int)config->pci_domain;
	case A(PCI_BUS_ID):
		return (int)config->pci_bus;
	case A(PCI_DEVICE_ID):
		return (int)config->pci_device;
	default:
		return fallback;
	}
}

int device_attribute(const struct device *device, CUdevice_attribute attribute)
{
	const struct generation *generation = generation_of(device);
	int reserved = reserved_shared(device);

	if ((int)attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
		return DEVICE_ATTRIBUTE_UNKNOWN;

	switch (attribute) {
	case A(MAX_THREADS_PER_MULTIPROCESSOR):
		return generation->max_threads;
	case A(MAX_BLOCKS_PER_MULTIPROCESSOR):
		return generation->max_blocks;
	case A(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR):
		return generation->shared_bytes;
	case A(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN):
		return generation->shared_bytes - reserved;
	case A(RESERVED_SHARED_MEMORY_PER_BLOCK):
		return reserved;
	case A(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO):
		return generation->fp32_per_fp64;
	case A(L2_CACHE_SIZE):
		return generation->l2_bytes;
	case A(GLOBAL_MEMORY_BUS_WIDTH):
		return generation->bus_bits;
	case A(MULTI_GPU_BOARD_GROUP_ID):
		return device->ordinal;
	default:
		return configured(&device->config, attribute, fixed[attribute]);
	}
}
