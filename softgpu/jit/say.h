/* SPDX-License-Identifier: Apache-2.0 */
/* A log for jit_init() of tests and benchmarks: a line on standard error. */
#ifndef SOFTGPU_JIT_SAY_H
#define SOFTGPU_JIT_SAY_H

#include <stdarg.h>
#include <stdio.h>

static void say(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
}

#endif
