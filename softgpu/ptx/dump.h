/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Help for tests and for debugging the parser; no part of the driver.
 */
#ifndef SOFTGPU_PTX_DUMP_H
#define SOFTGPU_PTX_DUMP_H

#include <stdio.h>

#include "softgpu/ptx/ptx.h"

/* ptx_dump() - print a module as it was understood: one line per instruction */
void ptx_dump(const struct ptx_module *module, FILE *to);

/* ptx_verify() - what is promised in ptx.h and does not hold, or NULL */
const char *ptx_verify(const struct ptx_module *module);

#endif
