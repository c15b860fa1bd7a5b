/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that the guest has for the driver's objects.
 *
 *	63..56 kind   55..32 generation   31..0 index
 *
 * The guest never sees an address of the worker's, and what it says is looked up: a name of another
 * kind, of an object that is gone, or made up, finds nothing. An index with its top bit set was chosen
 * by the guest, for objects that it makes without waiting.
 */
#ifndef FORWARD_HOST_HANDLE_H
#define FORWARD_HOST_HANDLE_H

#include "forward/wire.h"

#define HANDLE_LOCAL 0x80000000U

/** handle_init() - make the table; once, before any lane runs. Return: 0 or -ENOMEM. */
int handle_init(void);

/**
 * handle_get() - the object of a name
 *
 * NULL stands for itself, and so do the two streams that have numbers. A kernel is taken for a function
 * where the driver takes it, too.
 *
 * Return: 0, or -ENOENT.
 */
int handle_get(enum handle_kind kind, uint64_t handle, uint64_t *ret_object);

/**
 * handle_put() - the name of an object, a new one if it has none
 *
 * Return: the name, 0 for object 0 or when the table is full.
 */
uint64_t handle_put(enum handle_kind kind, uint64_t object);

/** handle_put_local() - give an object the name that the guest chose. Return: 0, -EINVAL. */
int handle_put_local(enum handle_kind kind, uint64_t handle, uint64_t object);

/** handle_find() - the name that an object has, 0 if it has none */
uint64_t handle_find(enum handle_kind kind, uint64_t object);

/** handle_drop() - the object is gone */
void handle_drop(uint64_t handle);

#endif
