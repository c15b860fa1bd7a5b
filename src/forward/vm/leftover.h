/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Has a worker let go of what it said it let go of?
 *
 * The guest gives such pages to others, so a worker's word is not enough: the kernel is asked. A worker cannot move a
 * mapping, so it is where it was put or nowhere.
 */
#ifndef FORWARD_VM_LEFTOVER_H
#define FORWARD_VM_LEFTOVER_H

#include "forward/vm/ram.h"

#include <sys/types.h>

/**
 * leftover_check() - does a process have memory of the guest between @at and @at + @size?
 *
 * Return: 0 if not, -EBUSY if so, or why it cannot be told.
 */
int leftover_check(const struct ram *ram, pid_t pid, uint64_t at, uint64_t size);

#endif
