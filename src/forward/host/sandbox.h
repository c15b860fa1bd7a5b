/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a worker can reach: the devices, what the driver had opened when it started, what it is granted.
 *
 * Everything else is closed before the first byte of the guest's is read, because the guest is taken to own
 * the worker from then on.
 */
#ifndef FORWARD_HOST_SANDBOX_H
#define FORWARD_HOST_SANDBOX_H

/**
 * sandbox_begin() - namespaces of its own, while there is one thread; files are still there
 *
 * Return: 0, or what the kernel said.
 */
int sandbox_begin(void);

/**
 * sandbox_drop() - the calling thread, and those that it starts, lose all capabilities
 * @kept:	but this one, which stays permitted; SANDBOX_NO_CAP
 *
 * The driver is started by such a thread: the others keep theirs until sandbox_finish().
 */
#define SANDBOX_NO_CAP (-1)

int sandbox_drop(int kept);

/**
 * sandbox_finish() - files, capabilities and system calls go
 * @ret_what:	in which step it failed
 *
 * Return: 0, or what the kernel said.
 */
int sandbox_finish(const char **ret_what);

/**
 * sandbox_pids() - the broker's children are in a pid namespace of their own from now on
 *
 * All workers of a broker share it, because they may share memory; they see nobody else's processes.
 *
 * Return: 0, or what the kernel said.
 */
int sandbox_pids(void);

#endif
