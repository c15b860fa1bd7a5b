/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's libcuda, by number of call.
 *
 * An integer or a pointer takes a register, or 8 bytes of the stack, whatever its type. So a call can be
 * made from a list of words without knowing its prototype; the few that take anything else are not here.
 */
#ifndef FORWARD_HOST_DRIVER_H
#define FORWARD_HOST_DRIVER_H

#include "src/cuda/calls.h"
#include "src/cuda/cuda_abi.h"

/**
 * driver_open() - load a libcuda and start it
 * @library:	its path or name
 * @ret_error:	what the loader said; valid until the next of its calls
 *
 * Return: 0, -ENOENT with *ret_error set, or -EIO with *ret_result what cuInit() answered.
 */
int driver_open(const char *library, const char **ret_error, CUresult *ret_result);

/** driver_entry() - the call itself, NULL where this driver does not export it */
void *driver_entry(enum call_id id);

/** driver_call() - make a call; CUDA_ERROR_NOT_SUPPORTED where this driver does not export it */
CUresult driver_call(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX]);

/** DRIVER() - make a call by its name, with arguments that are integers or pointers */
#define DRIVER(name, ...)                                                                          \
	driver_call(CALL_ID_##name, (const uint64_t[CALL_N_ARGUMENTS_MAX]){ __VA_ARGS__ })

/** POINTER() - an argument of DRIVER() */
#define POINTER(p) ((uint64_t)(uintptr_t)(p))

#endif
