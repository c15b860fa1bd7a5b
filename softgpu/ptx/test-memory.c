/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation of the parser fails in turn: it says -ENOMEM, and nothing is lost.
 *
 * The linker turns malloc() and its kin into the functions below (--wrap).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/ptx.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);

static long until_failure = -1; /* allocations that still succeed; negative: all do */

static bool fails(void)
{
	return until_failure >= 0 && until_failure-- == 0;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails() ? NULL : __real_realloc(old, size);
}

static const char text[] =
	".version 8.0\n.target sm_80\n.address_size 64\n"
	".global .u32 a[3] = {1, 2, 3}; .global .u64 b = a;\n"
	".func (.param .b32 r) f(.param .b32 x) { .reg .b32 %r<9>; ld.param.b32 %r1, [x];\n"
	"add.cc.u32 %r2, %r1, 1; addc.u32 %r3, %r2, 0; st.param.b32 [r], %r3; ret; }\n"
	".entry k(.param .u64 p) { .reg .pred %p<3>; .reg .b32 %r<20>; .reg .b64 %d<3>;\n"
	"T: .branchtargets L0, L1; L0: setp.eq.u32 %p1, %r1, %r2; @%p1 bra L1;\n"
	"{ .param .b32 q0; .param .b32 q1; call (q0), f, (q1);\n"
	"P: .callprototype (.param .b32 _) _ (.param .b32 _); call (q0), %d1, (q1), P; }\n"
	"brx.idx %r3, T; L1: .reg .b32 %x1<3>; mov.u32 %x12, %r4; ret; }\n";

int main(void)
{
	struct ptx_module *module;
	long n = 0;
	int r;

	do {
		until_failure = n++;
		r = ptx_parse(text, strlen(text), NULL, &module);
	} while (r == -ENOMEM);
	until_failure = -1;
	if (r == 0)
		ptx_module_free(module);
	printf("%s 'ptx_parse: each of %ld allocations failed in turn'\n",
	       r == 0 && n > 20 ? "ok" : "not ok", n - 1);
	return r != 0 || n <= 20;
}
