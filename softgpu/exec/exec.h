/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine that runs PTX.
 *
 * An image is made of one or more parsed modules: their globals are placed
 * in device memory by the caller's allocator, their code is decoded once. A
 * launch runs one kernel of an image over a grid. It advances only inside
 * exec_step(), a slice at a time, so the caller decides when the device is
 * whose; what is between two slices is plain memory and can wait for ever.
 *
 * Device addresses are host addresses. Every access to global memory is
 * checked by space_ok_in() of softgpu/mem/space.h.
 *
 * Error numbers in here (fault codes) are those of CUresult, because that is
 * what they become; no other type of the driver is used.
 */
#ifndef SOFTGPU_EXEC_EXEC_H
#define SOFTGPU_EXEC_EXEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ptx_module;
struct exec_image;
struct exec_launch;
struct exec_heap;

/* Where an image's globals and a cooperative launch's workspace are put. */
struct exec_place {
	/* 0 and a device address aligned to @align, or negative errno */
	int (*alloc)(void *arg, uint64_t size, uint64_t align, uint64_t *ret_addr);
	void (*free)(void *arg, uint64_t addr);
	void *arg;
};

struct exec_param {
	uint32_t offset; /* in the parameter buffer */
	uint32_t size;
};

/* What is known of a kernel without running it. */
struct exec_kernel {
	struct exec_image *image;
	const char *name;
	const struct exec_param *params;
	uint32_t n_params;
	uint32_t param_bytes;
	uint32_t shared_bytes; /* static; the launch adds its dynamic ones */
	uint32_t local_bytes;  /* per thread, callees included, recursion once */
	uint32_t const_bytes;  /* of the whole image, as the driver tells it */
	uint32_t n_regs;       /* what hardware would need, estimated, 16 to 255 */
	uint32_t max_threads;  /* per block: .maxntid or .reqntid, else 1024 */
	uint32_t required[3];  /* .reqntid, or zeros */
	uint32_t ptx_version;  /* of .target sm_NN: NN */
};

/**
 * exec_image_new() - link modules into something that runs
 * @modules:	parsed modules; not needed any more afterwards
 * @n_modules:	their number, at least 1
 * @place:	allocator for globals; copied, used until the image is freed
 * @log:	buffer for what cannot be linked, always terminated
 * @log_size:	its size; 0 if nobody wants to know
 * @ret:	where to store the image
 *
 * Return: 0, or EXEC_E_LINK with the reason in @log: a symbol that is
 * declared and nowhere defined, or defined twice. Faults are negative errno,
 * from @place among others.
 */
int exec_image_new(struct ptx_module *const *modules, size_t n_modules,
		   const struct exec_place *place, char *log, size_t log_size,
		   struct exec_image **ret);
#define EXEC_E_LINK 1

/* Ends an image: its globals are given back. No launch of it may be left. */
void exec_image_free(struct exec_image *image);

/* Kernels in the order of the text; NULL past the last or if there is none of that name. */
const struct exec_kernel *exec_kernel_at(const struct exec_image *image, size_t index);
const struct exec_kernel *exec_kernel_find(const struct exec_image *image, const char *name);

/* Finds a .global or .const variable that is visible to the host. */
bool exec_global_find(const struct exec_image *image, const char *name, uint64_t *ret_addr,
		      uint64_t *ret_size);

/* Does code of the image call malloc() or free()? */
bool exec_image_uses_heap(const struct exec_image *image);

/**
 * exec_heap_new() - what kernels' malloc() hands out
 * @addr:	device memory, a multiple of 16; still the caller's to free
 *
 * Launches that are given it share it. Return: NULL if the host has no memory.
 */
struct exec_heap *exec_heap_new(uint64_t addr, uint64_t size);
void exec_heap_free(struct exec_heap *heap);

/* What special registers tell of the device; zeros stand for an H100. */
struct exec_device {
	uint32_t n_sm;
	uint32_t clock_khz;
	uint32_t blocks_per_sm; /* how many blocks can be resident at once; default 16 */
};

struct exec_launch_args {
	const struct exec_kernel *kernel;
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t dynamic_shared_bytes;
	const void *params; /* kernel->param_bytes long; copied */
	bool cooperative;   /* every block is resident, and grid sync works */
	struct exec_device device;
	const uint8_t *space;	/* what of global memory it may touch; NULL: space_blocks */
	struct exec_heap *heap; /* NULL: malloc() finds nothing */
	uint32_t stack_bytes;	/* local memory per thread for recursion; 0: 64 KiB */

	/* Text of vprintf, called inside exec_step() by its caller's thread; may be NULL */
	void (*print)(void *arg, const char *text, size_t len);
	void *print_arg;
};

/**
 * exec_launch_new() - prepare a kernel to run
 * @args:	what to run; nothing in it is needed afterwards
 * @ret:	where to store the launch
 *
 * Return: 0; -EINVAL if a dimension is 0 or a block has more than 1024
 * threads; -ENOMEM if there is no memory for the resident blocks' state.
 */
int exec_launch_new(const struct exec_launch_args *args, struct exec_launch **ret);
void exec_launch_free(struct exec_launch *launch);

/* Fault codes: CUDA_ERROR_ILLEGAL_ADDRESS and so on. */
enum exec_fault_code {
	EXEC_FAULT_NONE = 0,
	EXEC_FAULT_MEMORY = 2, /* no host memory for the blocks' state */
	EXEC_FAULT_ADDRESS = 700,
	EXEC_FAULT_ASSERT = 710,
	EXEC_FAULT_STACK = 714, /* recursion deeper than the stack */
	EXEC_FAULT_MISALIGNED = 716,
	EXEC_FAULT_PC = 718, /* a call to what is no function */
	EXEC_FAULT_TRAP = 719,
};

struct exec_budget {
	uint64_t instructions; /* executed by threads; a slice may end a little later */
	uint64_t wall_ns;      /* host time after which it ends too; 0: no limit */
};

struct exec_progress {
	uint64_t instructions; /* by threads, in this slice */
	bool done;	       /* every block has ended, or a fault has ended them all */
	bool stalled;	       /* not done, and no thread can go on before wake_ns */
	uint64_t wake_ns;      /* CLOCK_MONOTONIC; UINT64_MAX: never (it hangs, as on hardware) */
	int fault;	       /* enum exec_fault_code */
	char message[160];     /* about the fault: what, which thread */
};

/**
 * exec_step() - run a slice of a launch
 * @launch:	the launch; one exec_step() of it at a time
 * @budget:	when to stop
 * @ret:	what happened
 *
 * Blocks are spread over the worker threads; the calling thread is one of
 * them. Several launches may be stepped at once by different threads.
 */
void exec_step(struct exec_launch *launch, const struct exec_budget *budget,
	       struct exec_progress *ret);

/* Sets how many threads share the work of one exec_step(); 0: one per CPU (the default). */
void exec_set_workers(unsigned int n);

#endif
