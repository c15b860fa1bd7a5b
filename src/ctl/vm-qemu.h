/* SPDX-License-Identifier: Apache-2.0 */
/* What a command line of QEMU lacks for a virtual machine that shares the GPU. */
#ifndef CTL_VM_QEMU_H
#define CTL_VM_QEMU_H

/**
 * vm_qemu_command() - a command line with the device, and with memory that is shared with the host
 * @argv:	QEMU's, ending in NULL. Where it names a memory backend itself only the device is added, and
 *		whether that is shared is up to it
 * @socket:	where the broker listens
 *
 * Return: an array that ends in NULL, to be freed with vm_qemu_free(); NULL where there is no memory.
 */
char **vm_qemu_command(char *const *argv, const char *socket);

void vm_qemu_free(char **command);

#endif
