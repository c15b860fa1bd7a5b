/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File descriptors: whole reads and writes, directories made as needed, processes.
 */
#ifndef BASE_FD_H
#define BASE_FD_H

#include "base/base.h"

#include <sys/types.h>

/**
 * fd_write_all() - write every byte, whatever the kernel takes at a time
 *
 * Return: 0, or what the kernel said.
 */
int fd_write_all(int fd, const void *buf, size_t n);

/**
 * fd_mkdir_parents() - make a directory and those above it that are missing
 *
 * Return: 0 (also if it was there), or what the kernel said.
 */
int fd_mkdir_parents(const char *path, mode_t mode);

/**
 * fd_set_nonblock() - reads and writes that would wait answer -EAGAIN from now on
 */
int fd_set_nonblock(int fd);

/**
 * fd_of_process() - pidfd_open() of a process
 *
 * The kernel says otherwise than that there is none where the number still stands for something else: for a process
 * group or a session, as long as that has members, or for a thread of somebody's.
 *
 * Return: the descriptor, which tells the end of the process; -ESRCH where none has this number, or what else the
 * kernel said.
 */
int fd_of_process(pid_t pid);

#endif
