/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of the driver's compiler, as they come with code. Those that point somewhere are its texts: whoever makes
 * the call says where they are to be written here.
 */
#ifndef FORWARD_HOST_JIT_OPTIONS_H
#define FORWARD_HOST_JIT_OPTIONS_H

#include "forward/host/command.h"

#define JIT_MAX_OPTIONS 32
#define JIT_MAX_TEXT	(32U << 10)

/* The information, and the errors. */
#define JIT_TEXTS 2

struct jit_options {
	uint32_t n;
	CUjit_option names[JIT_MAX_OPTIONS];
	void *values[JIT_MAX_OPTIONS];
};

/** jit_options_take() - how many, then for each its number and value; false where one would be an address */
bool jit_options_take(struct reader *reader, struct jit_options *ret);

/** jit_options_room() - bytes that the guest has for a text, at most JIT_MAX_TEXT; -1: it wants none */
int jit_options_room(const struct jit_options *options, unsigned text);

/** jit_options_place() - where the driver is to write a text, and how much */
void jit_options_place(struct jit_options *options, unsigned text, void *at, int room);

#endif
