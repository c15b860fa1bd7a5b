// SPDX-License-Identifier: Apache-2.0
/*
 * Device memory between processes: cuIpcGetMemHandle() and what belongs to it.
 *
 * A handle is a ticket (softgpu/mem/share.h) and which device it is about. It is good as long as
 * the allocation and its process live; what is open then stays, charged to the exporter, or to an
 * importer when the exporter is gone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softgpu/cuda/memory/import.h"
#include "softgpu/mem/section.h"

#define IPC_MAGIC 0x5347504d /* "SGPM" */

struct ipc_handle {
	uint32_t magic;
	uint32_t device; /* struct device's index */
	struct share_ticket ticket;
	uint64_t size;
};

_Static_assert(sizeof(struct ipc_handle) <= sizeof(CUipcMemHandle), "fits into the public type");

struct import {
	struct memory memory;
	struct share_import import;
	struct share_ticket ticket;
	uint64_t base, span; /* the blocks that are mapped */
	unsigned n_open;     /* how often, by this context */
	struct import *next; /* in the list of all, under memory_lock */
};

static struct import *imports;

static void import_end(struct memory *memory)
{
	struct import *import = memory->owner, **at;

	pthread_mutex_lock(&memory_lock);
	for (at = &imports; *at != import; at = &(*at)->next)
		;
	*at = import->next;
	memory_leave(memory);
	space_remove(import->base, import->span);
	pthread_mutex_unlock(&memory_lock);

	section_free(import->base, import->span);
	share_close(&import->import);
	free(import);
}

/* The whole blocks around the memory: they are what can be mapped. */
static CUresult import_map(struct import *import, const struct device *device)
{
	uint64_t start = import->import.offset & ~(SPACE_BLOCK_SIZE - 1);
	uint64_t end = (import->import.offset + import->import.size + SPACE_BLOCK_SIZE - 1) &
		       ~(SPACE_BLOCK_SIZE - 1);
	int r;

	import->span = end - start;
	r = section_reserve(/* hint= */ 0, import->span, SPACE_BLOCK_SIZE, /* flags= */ 0,
			    &import->base);
	if (r < 0)
		return memory_error(r);

	import->memory.range.space.addr = import->base + import->import.offset - start;
	r = section_map(import->base, import->span, import->import.fd, start,
			/* accessible= */ true);
	if (r == 0)
		r = space_add(&import->memory.range.space, import->base, import->span,
			      SPACE_READ_WRITE, SPACE_DEVICE(device->ordinal));
	if (r < 0)
		section_free(import->base, import->span);
	return memory_error(r);
}

CUresult import_new(enum memory_kind kind, struct context *ctx, struct device *device,
		    const struct share_import *share, const struct share_ticket *ticket,
		    uint64_t size, struct memory **ret)
{
	struct share_charge charge = memory_charge_inherited(device);
	struct import *import;
	CUresult r;

	if (size == 0 || size > share->size)
		return CUDA_ERROR_INVALID_VALUE;

	import = calloc(1, sizeof(*import));
	if (!import)
		return CUDA_ERROR_OUT_OF_MEMORY;

	import->import = *share;
	import->ticket = *ticket;
	import->n_open = 1;
	import->memory.range.space.size = size;
	import->memory.owner = import;
	import->memory.end = import_end;

	pthread_mutex_lock(&memory_lock);
	r = import_map(import, device);
	if (r == CUDA_SUCCESS) {
		memory_enter(&import->memory, kind, ctx, device);
		import->next = imports;
		imports = import;
	}
	pthread_mutex_unlock(&memory_lock);
	if (r != CUDA_SUCCESS) {
		free(import);
		return r;
	}

	share_inherit(&import->import, &charge);
	*ret = &import->memory;
	return CUDA_SUCCESS;
}

/* Puts a ticket for the allocation at @dptr into @handle. */
static CUresult handle_fill(struct ipc_handle *handle, CUdeviceptr dptr)
{
	struct memory *memory = memory_find(dptr);
	struct vram_range *range;
	int r;

	if (!memory || memory->is_freed || memory_kind(memory) != MEMORY_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;

	range = &memory->range;
	r = share_export(vram_file(range->vram), vram_offset(range), range->span, memory->id,
			 &handle->ticket);
	if (r < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;

	range->is_exported = true;
	handle->magic = IPC_MAGIC;
	handle->device = memory->device->index;
	handle->size = memory_size(memory);
	return CUDA_SUCCESS;
}

CALL(cuIpcGetMemHandle, CUipcMemHandle *ret, CUdeviceptr dptr)
{
	struct ipc_handle handle = {};
	CUresult r;

	r = context_need();
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret)
		return CUDA_ERROR_INVALID_VALUE;

	pthread_mutex_lock(&memory_lock);
	r = handle_fill(&handle, dptr);
	pthread_mutex_unlock(&memory_lock);
	if (r != CUDA_SUCCESS)
		return r;

	memset(ret, 0, sizeof(*ret));
	memcpy(ret, &handle, sizeof(handle));
	return CUDA_SUCCESS;
}

/* One more opening of what the context has open already. */
static bool import_again(const struct context *ctx, const struct share_ticket *ticket,
			 CUdeviceptr *ret)
{
	struct import *import;

	pthread_mutex_lock(&memory_lock);
	for (import = imports; import; import = import->next)
		if (import->memory.ctx == ctx && !import->memory.is_freed &&
		    memory_kind(&import->memory) == MEMORY_IMPORT &&
		    memcmp(&import->ticket, ticket, sizeof(*ticket)) == 0)
			break;
	if (import) {
		import->n_open++;
		*ret = memory_addr(&import->memory);
	}
	pthread_mutex_unlock(&memory_lock);

	return import;
}

static CUresult ipc_open(struct context *ctx, const struct ipc_handle *handle, CUdeviceptr *ret)
{
	struct device *device = memory_device_of_index(handle->device);
	struct share_import import;
	struct memory *memory;
	CUresult r;
	int opened;

	if (handle->magic != IPC_MAGIC || !device)
		return CUDA_ERROR_INVALID_VALUE;
	/* The driver does not let a process open its own memory. */
	if (handle->ticket.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	if (import_again(ctx, &handle->ticket, ret))
		return CUDA_SUCCESS;

	opened = share_import(&handle->ticket, &import);
	if (opened == SHARE_E_GONE)
		return CUDA_ERROR_INVALID_HANDLE;
	if (opened < 0)
		return opened == -EACCES || opened == -EPERM ? CUDA_ERROR_NOT_PERMITTED
							     : memory_error(opened);

	r = import_new(MEMORY_IMPORT, ctx, device, &import, &handle->ticket, handle->size, &memory);
	if (r != CUDA_SUCCESS) {
		share_close(&import);
		return r;
	}

	/* The flag that there has to be asks for it. */
	if (device != ctx->device)
		context_reach(ctx, device);
	*ret = memory_addr(memory);
	return CUDA_SUCCESS;
}

CALL(cuIpcOpenMemHandle_v2, CUdeviceptr *ret, CUipcMemHandle public_handle, unsigned flags)
{
	struct ipc_handle handle;
	struct context *ctx;
	CUresult r;

	r = context_current(&ctx);
	if (r != CUDA_SUCCESS)
		return r;
	if (!ret || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;

	memcpy(&handle, &public_handle, sizeof(handle));
	return ipc_open(ctx, &handle, ret);
}

CALL(cuIpcOpenMemHandle, CUdeviceptr *ret, CUipcMemHandle public_handle, unsigned flags)
{
	return impl_cuIpcOpenMemHandle_v2(ret, public_handle, flags);
}

/* The memory, if this was its last opening: then the caller ends it. */
static CUresult import_close_once(CUdeviceptr dptr, struct memory **ret)
{
	struct memory *memory = memory_find(dptr);
	struct import *import;

	if (!memory || memory->is_freed || memory_kind(memory) != MEMORY_IMPORT ||
	    memory_addr(memory) != dptr)
		return CUDA_ERROR_INVALID_VALUE;

	import = memory->owner;
	import->n_open--;
	memory->is_freed = import->n_open == 0;
	*ret = memory->is_freed ? memory : NULL;
	return CUDA_SUCCESS;
}

CALL(cuIpcCloseMemHandle, CUdeviceptr dptr)
{
	struct memory *memory;
	CUresult r;

	r = context_need();
	if (r != CUDA_SUCCESS)
		return r;

	pthread_mutex_lock(&memory_lock);
	r = import_close_once(dptr, &memory);
	pthread_mutex_unlock(&memory_lock);
	return r != CUDA_SUCCESS || !memory ? r : memory_release(memory);
}
