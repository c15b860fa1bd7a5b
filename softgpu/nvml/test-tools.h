/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of tools share: the library is looked into by name, as they do it, while a
 * process holds memory.
 */
#ifndef SOFTGPU_NVML_TEST_TOOLS_H
#define SOFTGPU_NVML_TEST_TOOLS_H

#include "src/nvml/nvml_abi.h"
#include "softgpu/state/state.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define HELD_BYTES (500ull << 20)

/* The process that holds HELD_BYTES of the first device. */
extern pid_t holder;

void check(bool good, const char *what);

/** symbol() - the address of a name of the library; the test ends where there is none */
void *symbol(const char *name);

/* call(name, argument types...)(arguments...) */
#define call(name, ...) ((nvmlReturn_t(*)(__VA_ARGS__))symbol(#name))
/* Of a device: call_device(name, more types...)(device, ...) */
#define call_device(name, ...) call(name, nvmlDevice_t, __VA_ARGS__)

/** is_answer() - one that a tool takes where it can do without */
bool is_answer(nvmlReturn_t r);

/** first_device() - of the two that there are */
nvmlDevice_t first_device(void);

void test_nvtop(void);
void test_pytorch(void);
void test_dcgm(void);

#endif
