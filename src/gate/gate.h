/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second gate: the ioctls by which device memory is taken, whatever code issues them.
 *
 * A command starts with a seccomp filter that reports them (gate_filter()). A keeper process holds
 * the other end, looks at each, lets it run, and reports what asks for device memory. It is
 * evidence, not proof: another thread may change the struct between the keeper's look and the
 * kernel's. So a report carries no verdict; it makes the daemon compare the books with the device
 * at once.
 *
 * The keeper outlives the daemon. Were it to go, the command's ioctls would fail, not pass unseen.
 */
#ifndef GATE_GATE_H
#define GATE_GATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct gate_report - a process asks the device for memory, below the CUDA API
 * @n_asked:	how often it has since the report before
 * @bytes:	how much in all, as far as the structs tell
 */
struct gate_report {
	uint32_t pid;
	uint32_t n_asked;
	uint64_t bytes;
};

/** gate_copy_fn - bytes of the process' memory. Return: whether all of them could be read */
typedef bool (*gate_copy_fn)(void *userdata, uint64_t address, void *to, size_t n);

/**
 * gate_decode() - does this ioctl take device memory?
 * @command:	the ioctl's number
 * @argument:	its argument
 * @copy:	how to read what it points to
 * @ret_bytes:	how much, 0 where that cannot be told
 *
 * Return: whether it does. What cannot be read is taken for one that does.
 */
bool gate_decode(uint32_t command, uint64_t argument, gate_copy_fn copy, void *userdata,
		 uint64_t *ret_bytes);

/**
 * gate_filter() - report this process' ioctls of NVIDIA's device files, and those of all that it
 * starts
 *
 * Without CAP_SYS_ADMIN this gives up setuid programs, too.
 *
 * Return: the listener's descriptor, or a fault.
 */
int gate_filter(void);

/**
 * gate_is_listener() - is it the listener of a seccomp filter, and no other file?
 */
bool gate_is_listener(int fd);

/**
 * gate_keep() - hold a listener until the last process with the filter is gone
 * @device:	a file to be taken for one of NVIDIA's, too; 0 for none
 * @socket:	path of the datagram socket that reports go to; nobody need be there
 *
 * Returns at once if it is no listener.
 */
void gate_keep(int listener, dev_t device, const char *socket);

#endif
