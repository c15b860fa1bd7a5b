// SPDX-License-Identifier: Apache-2.0
/*
 * Virtual memory: address space reserved apart from the memory that is mapped there.
 *
 *	cuMemAddressReserve	struct reservation: addresses without memory
 *	cuMemCreate		struct physical: memory without an address
 *	cuMemMap		struct mapping: the one in the other
 *	cuMemSetAccess		which devices may touch a mapping
 *
 * Memory lives as long as there is a handle to it or a mapping of it, and is charged that long. It
 * is a part of the device's file (softgpu/mem/vram.h), or a file of its own where the program wants
 * to share it: then that file's descriptor is what other processes get. An importer is not charged;
 * memory whose creator has let go of it stays charged to him while an importer has it.
 *
 * memory_lock guards everything here.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softgpu/cuda/memory.h"
#include "softgpu/mem/section.h"
#include "softgpu/mem/share.h"
#include "softgpu/state/state.h"

#define GRANULARITY SPACE_BLOCK_SIZE

/* The name of a file that is shared, with the device's index, or -1 for host memory. */
#define FILE_NAME      "softgpu-physical-%d"
#define FILE_NAME_LINK "/memfd:" FILE_NAME

/* For host memory in access masks, which have a bit for each device. */
#define ACCESS_HOST 63

struct physical {
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop;
	struct device *device;		/* NULL for host memory */
	uint64_t size;
	unsigned n_handles, n_mappings;

	struct vram_range range;	/* where not shareable: a part of the device's file */
	int fd;				/* else a file of its own, or the importer's */
	bool is_own, is_imported;
};

struct mapping {
	struct memory memory;
	struct physical *physical;
	uint64_t readers, writers;	/* a bit for each device */
};

struct reservation {
	uint64_t addr, size;
	struct reservation *next;
};

static struct reservation *reservations;

static bool is_aligned(uint64_t n)
{
	return n % GRANULARITY == 0;
}

/* Memory without an address */

static struct physical *physical_find(CUmemGenericAllocationHandle handle)
{
	struct physical *physical = handle_get(HANDLE_PHYSICAL, handle);

	/* A handle that was released stays in the table while its memory is mapped. */
	return physical && physical->n_handles > 0 ? physical : NULL;
}

/* The memory of an own file goes when nobody has it open, which the kernel sees to. */
static void own_file_done(void *arg)
{
	struct physical *physical = arg;

	if (physical->device)
		state_uncharge(driver.state, physical->device->index, physical->size);
	close(physical->fd);
	free(physical);
}

static void own_file_end(struct physical *physical)
{
	if (share_unexport(physical->fd, /* offset= */ 0, physical->size))
		share_keep(physical->fd, /* offset= */ 0, physical->size, own_file_done, physical);
	else
		own_file_done(physical);
}

/* Ends it once it has neither handles nor mappings. */
static void physical_put(struct physical *physical)
{
	if (physical->n_handles > 0 || physical->n_mappings > 0)
		return;

	handle_remove(HANDLE_PHYSICAL, physical->handle);
	if (physical->is_own) {
		own_file_end(physical);
		return;
	}

	if (physical->is_imported)
		close(physical->fd);
	else
		vram_release(&physical->range);
	free(physical);
}

static int physical_file(const struct physical *physical, uint64_t *ret_offset)
{
	if (physical->is_own || physical->is_imported) {
		*ret_offset = 0;
		return physical->fd;
	}

	*ret_offset = vram_offset(&physical->range);
	return vram_file(physical->range.vram);
}

static CUresult prop_check(const CUmemAllocationProp *prop, struct device **ret)
{
	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;

	*ret = NULL;
	switch (prop->location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return device_find(prop->location.id, ret);
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CALL(cuMemGetAllocationGranularity, size_t *ret, const CUmemAllocationProp *prop,
     CUmemAllocationGranularity_flags option)
{
	struct device *device;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
		     option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
		return CUDA_ERROR_INVALID_VALUE;

	r = prop_check(prop, &device);
	if (r == CUDA_SUCCESS)
		*ret = GRANULARITY;
	return r;
}

static CUresult own_file_fill(struct physical *physical, const char *name)
{
	struct share_ticket ticket;
	int fd;

	fd = memfd_create(name, MFD_CLOEXEC);
	if (fd < 0)
		return memory_error(-errno);

	if (ftruncate(fd, physical->size) < 0 ||
	    share_export(fd, /* offset= */ 0, physical->size, /* serial= */ 0, &ticket) < 0) {
		close(fd);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}

	physical->fd = fd;
	physical->is_own = true;
	return CUDA_SUCCESS;
}

static CUresult own_file_make(struct physical *physical)
{
	struct device *device = physical->device;
	char name[32];
	CUresult r;

	if (device && state_charge(driver.state, device->index, physical->size))
		return CUDA_ERROR_OUT_OF_MEMORY;

	snprintf(name, sizeof(name), FILE_NAME, device ? (int)device->index : -1);
	r = own_file_fill(physical, name);
	if (r != CUDA_SUCCESS && device)
		state_uncharge(driver.state, device->index, physical->size);
	return r;
}

static CUresult physical_fill(struct physical *physical)
{
	struct vram *vram;

	if (physical->prop.requestedHandleTypes || !physical->device)
		return own_file_make(physical);

	vram = memory_vram(physical->device);
	if (!vram)
		return CUDA_ERROR_OUT_OF_MEMORY;

	return memory_error(vram_alloc(vram, physical->size, SPACE_NONE, &physical->range));
}

/* Gives @physical its first handle; ends it if that fails. */
static CUresult physical_publish(struct physical *physical, CUmemGenericAllocationHandle *ret)
{
	CUresult r = CUDA_SUCCESS;

	physical->handle = handle_new(CUmemGenericAllocationHandle, HANDLE_PHYSICAL, physical);
	pthread_mutex_lock(&memory_lock);
	if (physical->handle) {
		physical->n_handles = 1;
		*ret = physical->handle;
	} else {
		physical_put(physical);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&memory_lock);

	return r;
}

CALL(cuMemCreate, CUmemGenericAllocationHandle *ret, size_t size, const CUmemAllocationProp *prop,
     unsigned long long flags)
{
	struct physical *physical;
	struct device *device;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || flags || size == 0 || !is_aligned(size))
		return CUDA_ERROR_INVALID_VALUE;

	r = prop_check(prop, &device);
	if (r != CUDA_SUCCESS)
		return r;

	physical = calloc(1, sizeof(*physical));
	if (!physical)
		return CUDA_ERROR_OUT_OF_MEMORY;

	physical->prop = *prop;
	physical->device = device;
	physical->size = size;
	r = physical_fill(physical);
	if (r != CUDA_SUCCESS) {
		free(physical);
		return r;
	}

	return physical_publish(physical, ret);
}

CALL(cuMemRelease, CUmemGenericAllocationHandle handle)
{
	struct physical *physical;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;

	pthread_mutex_lock(&memory_lock);
	physical = physical_find(handle);
	if (physical) {
		physical->n_handles--;
		physical_put(physical);
	}
	pthread_mutex_unlock(&memory_lock);

	return physical ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuMemGetAllocationPropertiesFromHandle, CUmemAllocationProp *ret,
     CUmemGenericAllocationHandle handle)
{
	struct physical *physical;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&memory_lock);
	physical = physical_find(handle);
	if (physical)
		*ret = physical->prop;
	pthread_mutex_unlock(&memory_lock);

	return physical ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Sharing */

CALL(cuMemExportToShareableHandle, void *ret, CUmemGenericAllocationHandle handle,
     CUmemAllocationHandleType type, unsigned long long flags)
{
	struct physical *physical;
	int fd = -1;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;

	pthread_mutex_lock(&memory_lock);
	physical = physical_find(handle);
	if (!physical || !(physical->prop.requestedHandleTypes & type))
		r = CUDA_ERROR_INVALID_VALUE;
	else if ((fd = fcntl(physical->fd, F_DUPFD_CLOEXEC, 0)) < 0)
		r = CUDA_ERROR_OPERATING_SYSTEM;
	pthread_mutex_unlock(&memory_lock);

	if (r == CUDA_SUCCESS)
		*(int *)ret = fd;
	return r;
}

/* Reads off a file's name whose memory it is. */
static bool file_device(int fd, struct device **ret)
{
	char path[64], name[128];
	int index;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, name, sizeof(name) - 1);
	if (n < 0)
		return false;

	name[n] = '\0';
	if (sscanf(name, FILE_NAME_LINK, &index) != 1)
		return false;

	*ret = NULL;
	if (index < 0)
		return true;
	for (unsigned i = 0; i < driver.n_devices; i++)
		if (driver.devices[i].index == (unsigned)index)
			*ret = &driver.devices[i];
	return *ret;
}

CALL(cuMemImportFromShareableHandle, CUmemGenericAllocationHandle *ret, void *shared,
     CUmemAllocationHandleType type)
{
	struct share_import import;
	struct share_ticket ticket;
	struct physical *physical;
	int fd = (int)(intptr_t)shared;
	struct device *device;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!file_device(fd, &device) || share_ticket_whole(fd, &ticket) < 0 ||
	    share_import_through(fd, &ticket, &import))
		return CUDA_ERROR_INVALID_VALUE;

	physical = calloc(1, sizeof(*physical));
	if (!physical) {
		share_close(&import);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}

	physical->prop = (CUmemAllocationProp){
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location.type = device ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST,
		.location.id = device ? device->ordinal : 0,
	};
	physical->device = device;
	physical->size = import.size;
	physical->fd = import.fd;
	physical->is_imported = true;
	return physical_publish(physical, ret);
}

/* Addresses without memory */

CALL(cuMemAddressReserve, CUdeviceptr *ret, size_t size, size_t alignment, CUdeviceptr hint,
     unsigned long long flags)
{
	struct reservation *reservation;
	CUresult r;
	int error;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || flags || size == 0 || !is_aligned(size) || alignment & (alignment - 1))
		return CUDA_ERROR_INVALID_VALUE;
	if (alignment < GRANULARITY)
		alignment = GRANULARITY;
	if (size >> SPACE_BITS || alignment >> SPACE_BITS)
		return CUDA_ERROR_OUT_OF_MEMORY;

	reservation = calloc(1, sizeof(*reservation));
	if (!reservation)
		return CUDA_ERROR_OUT_OF_MEMORY;

	reservation->size = size;
	error = section_reserve(hint, size, alignment, /* flags= */ 0, &reservation->addr);
	if (error < 0) {
		free(reservation);
		return memory_error(error);
	}

	pthread_mutex_lock(&memory_lock);
	reservation->next = reservations;
	reservations = reservation;
	pthread_mutex_unlock(&memory_lock);
	*ret = reservation->addr;
	return CUDA_SUCCESS;
}

/* The next mapping at or after @addr and before @end. Blocks that are not mapped are skipped. */
static struct mapping *mapping_from(uint64_t addr, uint64_t end)
{
	struct memory *memory;

	for (; addr < end; addr += GRANULARITY) {
		memory = memory_find(addr);
		if (memory && memory_kind(memory) == MEMORY_VIRTUAL)
			return (struct mapping *)memory;
	}

	return NULL;
}

CALL(cuMemAddressFree, CUdeviceptr addr, size_t size)
{
	struct reservation **at, *reservation = NULL;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;

	pthread_mutex_lock(&memory_lock);
	for (at = &reservations; *at; at = &(*at)->next)
		if ((*at)->addr == addr && (*at)->size == size)
			break;
	if (*at && !mapping_from(addr, addr + size)) {
		reservation = *at;
		*at = reservation->next;
	}
	pthread_mutex_unlock(&memory_lock);
	if (!reservation)
		return CUDA_ERROR_INVALID_VALUE;

	section_free(addr, size);
	free(reservation);
	return CUDA_SUCCESS;
}

bool memory_is_reserved(uint64_t addr, uint64_t size)
{
	const struct reservation *reservation;

	for (reservation = reservations; reservation; reservation = reservation->next)
		if (addr >= reservation->addr && size <= reservation->size &&
		    addr - reservation->addr <= reservation->size - size)
			return true;

	return false;
}

/* The one in the other */

static CUresult mapping_make(struct mapping *mapping, uint64_t addr, uint64_t size, uint64_t offset)
{
	struct physical *physical = mapping->physical;
	uint64_t file_offset;
	int fd = physical_file(physical, &file_offset), r;

	mapping->memory.range.space.addr = addr;
	mapping->memory.range.space.size = size;
	mapping->memory.owner = mapping;

	r = section_map(addr, size, fd, file_offset + offset, /* accessible= */ true);
	if (r < 0)
		return memory_error(r);

	memory_enter(&mapping->memory, MEMORY_VIRTUAL, /* ctx= */ NULL, physical->device);
	r = space_add(&mapping->memory.range.space, addr, size, SPACE_NONE);
	if (r < 0) {
		section_unmap(addr, size);
		return memory_error(r);
	}

	physical->n_mappings++;
	return CUDA_SUCCESS;
}

static CUresult map(struct mapping *mapping, uint64_t addr, uint64_t size, uint64_t offset,
		    CUmemGenericAllocationHandle handle)
{
	uint64_t end;

	mapping->physical = physical_find(handle);
	if (!mapping->physical || __builtin_add_overflow(offset, size, &end) ||
	    end > mapping->physical->size)
		return CUDA_ERROR_INVALID_VALUE;
	if (!memory_is_reserved(addr, size) || mapping_from(addr, addr + size))
		return CUDA_ERROR_INVALID_VALUE;

	return mapping_make(mapping, addr, size, offset);
}

CALL(cuMemMap, CUdeviceptr addr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
     unsigned long long flags)
{
	struct mapping *mapping;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (flags || size == 0 || !is_aligned(addr | size | offset))
		return CUDA_ERROR_INVALID_VALUE;

	mapping = calloc(1, sizeof(*mapping));
	if (!mapping)
		return CUDA_ERROR_OUT_OF_MEMORY;

	pthread_mutex_lock(&memory_lock);
	r = map(mapping, addr, size, offset, handle);
	pthread_mutex_unlock(&memory_lock);
	if (r != CUDA_SUCCESS)
		free(mapping);

	return r;
}

/* Is the range made of whole mappings without a hole? */
static bool is_whole_mappings(uint64_t addr, uint64_t size)
{
	uint64_t end = addr + size;
	const struct memory *memory;

	while (addr < end) {
		memory = memory_find(addr);
		if (!memory || memory_kind(memory) != MEMORY_VIRTUAL ||
		    memory_addr(memory) != addr || memory_size(memory) > end - addr)
			return false;
		addr += memory_size(memory);
	}

	return true;
}

static bool is_range(uint64_t addr, uint64_t size)
{
	return size > 0 && is_aligned(addr | size) && size >> SPACE_BITS == 0 &&
	       (addr + size) >> SPACE_BITS == 0;
}

static void unmap(uint64_t addr, uint64_t size)
{
	struct mapping *mapping;
	uint64_t end = addr + size;

	while ((mapping = mapping_from(addr, end))) {
		addr = memory_addr(&mapping->memory) + memory_size(&mapping->memory);
		space_remove(memory_addr(&mapping->memory), memory_size(&mapping->memory));
		section_unmap(memory_addr(&mapping->memory), memory_size(&mapping->memory));
		mapping->physical->n_mappings--;
		physical_put(mapping->physical);
		free(mapping);
	}
}

CALL(cuMemUnmap, CUdeviceptr addr, size_t size)
{
	struct context *ctx;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!is_range(addr, size))
		return CUDA_ERROR_INVALID_VALUE;

	/* What runs may use it, and touching what is not mapped would end the process. */
	if (context_current(&ctx) == CUDA_SUCCESS)
		context_synchronize(ctx);

	pthread_mutex_lock(&memory_lock);
	if (is_whole_mappings(addr, size))
		unmap(addr, size);
	else
		r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&memory_lock);

	return r;
}

CALL(cuMemRetainAllocationHandle, CUmemGenericAllocationHandle *ret, void *addr)
{
	struct memory *memory;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&memory_lock);
	memory = memory_find((uint64_t)addr);
	if (memory && memory_kind(memory) == MEMORY_VIRTUAL) {
		struct physical *physical = ((struct mapping *)memory->owner)->physical;

		physical->n_handles++;
		*ret = physical->handle;
	} else {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&memory_lock);

	return r;
}

/* Access */

/* The bit of a location in the masks of a mapping. */
static CUresult location_bit(const CUmemLocation *location, uint64_t *ret)
{
	struct device *device;
	CUresult r;

	switch (location->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		r = device_find(location->id, &device);
		if (r == CUDA_SUCCESS)
			*ret = 1ULL << device->ordinal;
		return r;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		*ret = 1ULL << ACCESS_HOST;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult access_check(const CUmemAccessDesc *desc, size_t count)
{
	uint64_t bit;
	CUresult r;

	for (size_t i = 0; i < count; i++) {
		r = location_bit(&desc[i].location, &bit);
		if (r != CUDA_SUCCESS)
			return r;
		if (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
		    desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
		    desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return CUDA_ERROR_INVALID_VALUE;
	}

	return CUDA_SUCCESS;
}

/*
 * What kernels may do is told apart by address, not by device: whatever any device may do, all
 * may.
 */
static void mapping_protect(struct mapping *mapping)
{
	uint64_t devices = ~(1ULL << ACCESS_HOST);
	enum space_access access = SPACE_NONE;

	if (mapping->writers & devices)
		access = SPACE_READ_WRITE;
	else if (mapping->readers & devices)
		access = SPACE_READ;
	space_protect(memory_addr(&mapping->memory), memory_size(&mapping->memory), access);
}

static void mapping_set_access(struct mapping *mapping, const CUmemAccessDesc *desc, size_t count)
{
	uint64_t bit;

	for (size_t i = 0; i < count; i++) {
		if (location_bit(&desc[i].location, &bit) != CUDA_SUCCESS)
			continue;
		mapping->readers &= ~bit;
		mapping->writers &= ~bit;
		if (desc[i].flags & CU_MEM_ACCESS_FLAGS_PROT_READ)
			mapping->readers |= bit;
		if (desc[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			mapping->writers |= bit;
	}
	mapping_protect(mapping);
}

static void set_access(uint64_t addr, uint64_t size, const CUmemAccessDesc *desc, size_t count)
{
	uint64_t end = addr + size;
	struct mapping *mapping;

	while ((mapping = mapping_from(addr, end))) {
		mapping_set_access(mapping, desc, count);
		addr = memory_addr(&mapping->memory) + memory_size(&mapping->memory);
	}
}

CALL(cuMemSetAccess, CUdeviceptr addr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!desc || count == 0 || !is_range(addr, size))
		return CUDA_ERROR_INVALID_VALUE;

	r = access_check(desc, count);
	if (r != CUDA_SUCCESS)
		return r;

	pthread_mutex_lock(&memory_lock);
	if (is_whole_mappings(addr, size))
		set_access(addr, size, desc, count);
	else
		r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&memory_lock);

	return r;
}

static unsigned long long mapping_access(const struct mapping *mapping, uint64_t bit)
{
	if (mapping->writers & bit)
		return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return mapping->readers & bit ? CU_MEM_ACCESS_FLAGS_PROT_READ :
					CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

CALL(cuMemGetAccess, unsigned long long *ret, const CUmemLocation *location, CUdeviceptr addr)
{
	struct memory *memory;
	uint64_t bit;
	CUresult r;

	r = driver_check();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || !location)
		return CUDA_ERROR_INVALID_VALUE;

	r = location_bit(location, &bit);
	if (r != CUDA_SUCCESS)
		return r;

	pthread_mutex_lock(&memory_lock);
	memory = memory_find(addr);
	if (memory && memory_kind(memory) == MEMORY_VIRTUAL)
		*ret = mapping_access(memory->owner, bit);
	else
		r = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&memory_lock);

	return r;
}
