/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests and measurements: a piece of device memory, and kernels from text.
 */
#ifndef SOFTGPU_EXEC_TEST_KIT_H
#define SOFTGPU_EXEC_TEST_KIT_H

#include "softgpu/exec/exec.h"
#include "softgpu/exec/machine.h"

/* Makes the device memory; before anything else. */
void kit_init(void);

/* Zeroed device memory until kit_reset(). */
void *kit_alloc(u64 size);
void kit_reset(void);

/* The image of a module; the text is that of functions, what comes before them is added. */
struct exec_image *kit_image(const char *text);

/* The reason why a text makes no image; empty if it does. */
const char *kit_refusal(const char *text);

/* Allocates like the driver would. */
extern const struct exec_place kit_place;

struct kit_run {
	struct exec_image *image;
	const char *kernel; /* NULL: the first */
	u32 grid, block, shared;
	bool cooperative;
	u64 params[8]; /* all of a kernel's parameters are .u64 */
	u64 budget;    /* instructions of a slice; 0: no limit */
	u64 wall_ns;   /* host time of a slice; 0: no limit */
	u64 limit;     /* instructions in all, then it is left unfinished; 0: 2^32 */
};

/* Runs a kernel to its end. */
struct exec_progress kit_run(const struct kit_run *run);

/* What kernels printed since the last call. */
const char *kit_printed(void);

/* Prints "ok 'what'" or "not ok"; returns @ok. */
bool kit_check(bool ok, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* 0 if every check was ok, for main(). */
int kit_result(void);

#endif
