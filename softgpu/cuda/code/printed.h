/* SPDX-License-Identifier: Apache-2.0 */
/* Text of printf() in kernels: kept per context and written when the program waits for work. */
#pragma once

#include "softgpu/cuda/core.h"

/** printed_add() - a kernel prints; @ctx is a struct context */
void printed_add(void *ctx, const char *text, size_t n);

/** printed_flush() - write what is kept */
void printed_flush(struct context *ctx);
