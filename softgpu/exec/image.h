/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image: linked modules, their variables placed, their code decoded.
 */
#ifndef SOFTGPU_EXEC_IMAGE_H
#define SOFTGPU_EXEC_IMAGE_H

#include "softgpu/exec/isa.h"
#include "softgpu/exec/machine.h"
#include "softgpu/ptx/arena.h"

/*
 * A function's address is no place in memory, only a number of the image's:
 * above the windows, a multiple of 16, never 0.
 */
#define FUNCTION_WINDOW (PARAM_WINDOW + WINDOW_BYTES)

/* What a symbol of a module stands for; modules share those of names that are seen outside. */
struct definition {
	const char *name;
	const struct ptx_module *module; /* that defines it */
	const struct ptx_symbol *symbol;
	struct definition *next; /* with the same hash */
	bool defined;
	u8 builtin; /* enum builtin */
	/* a function */
	struct code *code;
	u64 function; /* its address */
	/* a variable */
	u64 addr; /* .global and .const; in .shared an offset */
	bool placed;
	u32 placed_by; /* .shared of a kernel: which kernel has placed it */
};

struct image_module {
	const struct ptx_module *ptx;
	struct definition **definitions; /* per symbol */
};

struct image_kernel {
	struct exec_kernel kernel;
	struct code *code;
	bool needs_stack; /* calls functions by address, or recursion */
};

struct image_global {
	const char *name;
	u64 addr, size;
};

struct exec_image {
	struct arena *arena;
	struct exec_place place;
	struct image_kernel *kernels;
	u32 n_kernels;
	struct code **functions; /* by number in their address */
	u32 n_functions;
	struct image_global *globals; /* that the host can name */
	u32 n_globals;
	u64 const_addr, const_bytes; /* all constants together */
	u64 global_addr;
	bool uses_heap; /* its code calls malloc() or free() */
	/* only while it is linked */
	struct image_module *modules;
	u32 n_modules;
	struct definition **names; /* hash table */
	u32 n_names;		   /* of it, a power of two */
	u32 common_shared;	   /* bytes that device functions use of shared memory */
	char *log;
	size_t log_size;
};

/* The code at a function's address; NULL if there is none. */
const struct code *image_function(const struct exec_image *image, u64 addr);

/* The kernel's other half. */
static inline const struct image_kernel *image_kernel_of(const struct exec_kernel *kernel)
{
	return (const struct image_kernel *)kernel;
}

/* Writes a line to the log; returns EXEC_E_LINK. */
int image_refuse(struct exec_image *image, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- decode.c ----------------------------------------------------------------------------------- */

/**
 * decode_function() - turn a parsed function into code
 * @kernel:	index of the kernel that it is, from 1; 0 for a device function
 * @shared:	for a kernel, where its own shared variables start; their end on return
 */
int decode_function(struct exec_image *image, const struct image_module *module,
		    const struct ptx_function *f, struct code *code, u32 kernel, u32 *shared);

#endif
