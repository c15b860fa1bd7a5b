/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every call of libcuda builds on: how calls are defined, whether the driver
 * is ready, devices, contexts and their errors.
 *
 * A call is written
 *
 *	CALL(cuMemAlloc_v2, CUdeviceptr *dptr, size_t bytesize)
 *	{
 *		...
 *	}
 *
 * and becomes the hidden function impl_cuMemAlloc_v2. The exported name is a stub
 * of its own, generated from src/cuda/calls.def, that jumps there; so a probe on an
 * exported name sees what programs call and nothing that the driver does by
 * itself. Nothing in here may call an exported name.
 *
 * Where a call has no implementation its stub reaches a weak default that answers
 * CUDA_ERROR_NOT_SUPPORTED.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/cuda/cuda_abi.h"
#include "softgpu/cuda/handle.h"
#include "softgpu/state/config.h"

#define CALL(name, ...)                                                                            \
	CUresult impl_##name(__VA_ARGS__);                                                         \
	CUresult impl_##name(__VA_ARGS__)

/**
 * FIND() - the object of a handle
 * @object:	handle_get() or handle_remove() of the handle; called once the driver is ready
 * @missing:	the error if there is none
 * @ret:	where to store it
 *
 * Return: what driver_check() says; @missing if @object is NULL; else CUDA_SUCCESS.
 */
#define FIND(object, missing, ret)                                                                 \
	({                                                                                         \
		CUresult find_r = driver_check();                                                  \
		void *found = find_r == CUDA_SUCCESS ? (object) : NULL;                            \
                                                                                                   \
		if (found)                                                                         \
			*(ret) = found;                                                            \
		else if (find_r == CUDA_SUCCESS)                                                   \
			find_r = (missing);                                                        \
		find_r;                                                                            \
	})

/**
 * TELL() - what a call answers that tells one thing of something
 * @find:	finds it, a CUresult
 * @to:		where the program wants the answer
 * @value:	the answer, looked at only once @find has found
 *
 * Return: the error of @find; CUDA_ERROR_INVALID_VALUE where @to is NULL; else CUDA_SUCCESS, and
 * @value is stored. In this order, as the driver looks at handles first.
 */
#define TELL(find, to, value)                                                                      \
	({                                                                                         \
		CUresult tell_r = (find);                                                          \
                                                                                                   \
		if (tell_r == CUDA_SUCCESS && !(to))                                               \
			tell_r = CUDA_ERROR_INVALID_VALUE;                                         \
		if (tell_r == CUDA_SUCCESS)                                                        \
			*(to) = (value);                                                           \
		tell_r;                                                                            \
	})

struct engine_client;
struct state;

enum driver_phase {
	DRIVER_NEW,
	DRIVER_READY,
	/* The parent had it ready: nothing works in the child, as with the real driver. */
	DRIVER_FORKED,
};

extern _Atomic int driver_phase;

/** driver_check() - CUDA_SUCCESS once cuInit() has been called in this process */
static inline CUresult driver_check(void)
{
	int phase = atomic_load_explicit(&driver_phase, memory_order_acquire);

	return phase == DRIVER_READY ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

/**
 * struct device - a device that this process sees
 * @ordinal:	the CUdevice: its place after CUDA_VISIBLE_DEVICES
 * @index:	its place in the shared state
 * @config:	what it is like
 * @primary:	its primary context; exists from cuInit() on, active or not
 */
struct device {
	CUdevice ordinal;
	unsigned index;
	struct softgpu_device_config config;
	struct context *primary;
};

/** device_find() - CUDA_ERROR_INVALID_DEVICE if there is no such ordinal */
CUresult device_find(CUdevice ordinal, struct device **ret);

/** device_attribute() - what cuDeviceGetAttribute() answers */
#define DEVICE_ATTRIBUTE_UNKNOWN INT32_MIN
int device_attribute(const struct device *device, CUdevice_attribute attribute);

/* The process's view, complete once the driver is ready and unchanged from then on. */
extern struct driver {
	struct softgpu_config config;
	struct state *state;
	unsigned n_devices;
	struct device devices[SOFTGPU_DEVICES_MAX];
} driver;

/** driver_log() - a line on standard error, if SOFTGPU_LOG=1 */
void driver_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define CONTEXT_N_LIMITS CU_LIMIT_MAX

/**
 * struct context - a context
 * @handle:	what the program holds
 * @id:		cuCtxGetId()'s; never used twice in a process
 * @client:	the engine's view of it
 * @error:	CUDA_SUCCESS, or why no call in it works any more: the fault of a
 *		kernel, or CUDA_ERROR_CONTEXT_IS_DESTROYED while it is not active
 * @lock:	guards what parts of the driver keep in lists under @streams..@graphs,
 *		for those that have no lock of their own
 * @peers:	devices, by ordinal, whose memory its kernels may reach; see context_reaches()
 * @view:	what of the address space they see; NULL: all
 */
struct context {
	CUcontext handle;
	uint64_t id;
	struct device *device;
	struct engine_client *client;
	_Atomic CUresult error;
	unsigned api_version;
	_Atomic unsigned flags;
	bool is_primary;

	pthread_mutex_t lock;
	struct stream_set *streams;
	struct event_set *events;
	struct printed *printed;
	struct module_set *modules;
	struct graph_set *graphs;
	struct memory_set *memory;

	_Atomic uint64_t limits[CONTEXT_N_LIMITS];
	atomic_bool heap_stands; /* the heap of kernels is there, as large as its limit was */
	_Atomic CUfunc_cache cache_config;
	_Atomic CUsharedconfig shared_config;
	_Atomic uint64_t peers;
	struct space_view *view;

	/* Under the lock of context.c. */
	unsigned n_references;
	uint64_t charged_bytes;
	struct context *next;
};

/**
 * struct context_part - a part of the driver that keeps things in contexts
 * @order:	parts begin in this order and end in the opposite one
 * @begin:	called when a context becomes active; may be NULL
 * @synchronize:	waits for all its work in the context; may be NULL
 * @drain:	the same in a context that shall end, unless a piece of work takes longer than so much
 * @end:	frees what it keeps in the context, which no thread can reach any more
 *
 * Orders in use: 5 view, 10 memory, 15 textures, 18 printed text, 20 modules, 30 graphs, 40 events,
 * 50 streams. A context that ends has first been drained, unless it has failed; what runs still
 * then has to be given up.
 */
struct context_part {
	int order;
	CUresult (*begin)(struct context *ctx);
	CUresult (*synchronize)(struct context *ctx);
	void (*drain)(struct context *ctx, uint64_t most_ns);
	void (*end)(struct context *ctx);
};

/*
 * CONTEXT_PART(streams, .order = 50, .begin = ..., .end = ...);
 * enters a part in the list that context.c walks, which the linker collects.
 */
#define CONTEXT_PART(name, ...)                                                                    \
	static const struct context_part context_part_##name = { __VA_ARGS__ };                    \
	static const struct context_part *const context_part_entry_##name                          \
		__attribute__((used, section("context_parts"))) = &context_part_##name

/* The handle of the thread's current context, NULL if there is none. */
extern _Thread_local CUcontext context_current_handle
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/* Is the thread running a function of the program for a stream? Then it must not wait for any. */
extern _Thread_local bool context_in_callback
	__attribute__((visibility("hidden"), tls_model("initial-exec")));

/**
 * context_find() - the context that a handle means
 *
 * Return: CUDA_ERROR_INVALID_CONTEXT if @handle is none. A failed or inactive context is found:
 * look at its @error where that matters.
 */
CUresult context_find(CUcontext handle, struct context **ret);

/** context_current_any() - the current context, even if it has failed */
static inline CUresult context_current_any(struct context **ret)
{
	CUcontext handle = context_current_handle;
	CUresult r = driver_check();
	struct context *ctx;

	if (r != CUDA_SUCCESS)
		return r;
	if (!handle)
		return CUDA_ERROR_INVALID_CONTEXT;
	ctx = handle_get(HANDLE_CONTEXT, handle);
	/* It was current here when another thread destroyed it. */
	if (!ctx)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	*ret = ctx;
	return CUDA_SUCCESS;
}

/**
 * context_current() - the context that a call works in
 *
 * Return: CUDA_ERROR_NOT_INITIALIZED, CUDA_ERROR_INVALID_CONTEXT (none is current),
 * CUDA_ERROR_CONTEXT_IS_DESTROYED, or the error that the context has failed with.
 */
static inline CUresult context_current(struct context **ret)
{
	struct context *ctx;
	CUresult r = context_current_any(&ctx);

	if (r != CUDA_SUCCESS)
		return r;
	r = atomic_load_explicit(&ctx->error, memory_order_acquire);
	if (r != CUDA_SUCCESS)
		return r;
	*ret = ctx;
	return CUDA_SUCCESS;
}

/** context_need() - the same for a call that works in none, but wants one to be current */
static inline CUresult context_need(void)
{
	struct context *ctx;

	return context_current(&ctx);
}

/** context_error() - CUDA_SUCCESS, or what the context has failed with */
static inline CUresult context_error(const struct context *ctx)
{
	return atomic_load_explicit(&ctx->error, memory_order_acquire);
}

/**
 * context_fail() - a kernel's fault: from now on every call in the context answers @error
 *
 * The first fault stays.
 */
void context_fail(struct context *ctx, CUresult error);

/** context_synchronize() - wait for all work of the context; its error, if it has one */
CUresult context_synchronize(struct context *ctx);

/** context_reach() - let kernels of @ctx touch memory of @device; false: they could before */
bool context_reach(struct context *ctx, const struct device *device);

/** context_reaches() - may kernels of @ctx touch memory of @device? */
static inline bool context_reaches(const struct context *ctx, const struct device *device)
{
	if (ctx->device == device)
		return true;
	return atomic_load_explicit(&ctx->peers, memory_order_acquire) >> device->ordinal & 1;
}
