/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept of virtual machines by their names: {"limits": {...}, "gpus": [...]}, a file each.
 *
 * Root's are in /var/lib/cotenant/vm, a user's below his XDG_STATE_HOME.
 */
#ifndef CTL_VM_STORE_H
#define CTL_VM_STORE_H

#include <jansson.h>

/**
 * vm_store_load() - what is kept of a name
 *
 * Return: an object, empty where nothing is kept; NULL where the file is damaged or there is no memory.
 */
json_t *vm_store_load(const char *name);

/** vm_store_save() - keep it. Return: 0, or what the kernel said. */
int vm_store_save(const char *name, const json_t *vm);

/** vm_store_list() - all of them: an object, by name; the caller drops it */
json_t *vm_store_list(void);

#endif
