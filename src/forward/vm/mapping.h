/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's side of a worker's mapper (host/mapper.h): pieces of the guest's memory, one behind the other, at
 * addresses of the worker's.
 */
#ifndef FORWARD_VM_MAPPING_H
#define FORWARD_VM_MAPPING_H

#include "forward/host/loop.h"
#include "forward/host/mapper.h"
#include "forward/vm/ram.h"

#include "forward/transport.h"

#include <stdbool.h>

struct mapping;

/**
 * struct mapping - a worker's mapper, and what it is doing
 * @listener:	where the kernel asks about its mappings; -1 until it has introduced itself
 * @exit:	readable when it has ended
 * @pieces:	that are to be mapped, in order; @n of them, of which the mapper was told of those before @told and
 *		those before @next are done
 * @address:	of the next piece
 * @finished:	all are mapped, or why not; then the mapper is of no use any more
 * @gone:	it has ended
 */
struct mapping {
	const struct ram *ram;
	struct source control;
	struct source listener;
	struct source exit;
	struct wire_piece *pieces;
	size_t n, told, next;
	uint64_t address, told_address;
	void (*finished)(struct mapping *mapping, int error);
	void (*gone)(struct mapping *mapping);
};

/** mapping_init() - of a mapper whose socket is @control, which is taken over. Return: 0, or what the kernel said. */
int mapping_init(struct mapping *mapping, int control, const struct ram *ram,
		 void (*finished)(struct mapping *mapping, int error),
		 void (*gone)(struct mapping *mapping));

/**
 * mapping_begin() - map pieces, whose array is taken over whatever happens
 *
 * Return: 0: finished() follows; -EFAULT for what is not the guest's memory, -EBUSY, or what the kernel said.
 */
int mapping_begin(struct mapping *mapping, uint64_t address, struct wire_piece *pieces, size_t n);

/** mapping_end() - end the mapper; gone() follows if it was ever there. Return: was it? */
bool mapping_end(struct mapping *mapping);

/** mapping_end_now() - end it, and wait until it is gone; gone() is not called */
void mapping_end_now(struct mapping *mapping);

#endif
