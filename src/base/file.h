/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small files, read and written whole.
 *
 * Paths are relative to a directory descriptor, so that tests can hand in a
 * fixture for /proc and the like; AT_FDCWD is the ordinary case.
 */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include "base/base.h"

#include <sys/types.h>

/**
 * file_open_at() - open for reading as a stream, closed on exec
 *
 * Return: 0, or what the kernel said.
 */
int file_open_at(int dir_fd, const char *path, FILE **ret);

/**
 * file_read_at() - all bytes of a file, also of one in /proc that tells no size
 * @max:	refuse files that are larger: -EFBIG
 * @ret:	the bytes and a terminating NUL; the caller frees them
 * @ret_len:	their number without the NUL; NULL if not wanted
 *
 * Return: 0, or what the kernel said.
 */
int file_read_at(int dir_fd, const char *path, size_t max, char **ret, size_t *ret_len);

/**
 * file_write_at() - write into a file that exists: a knob in /sys or /proc
 */
int file_write_at(int dir_fd, const char *path, const char *text);

/**
 * file_replace() - put a file in place of another, whole or not at all
 * @mode:	permissions of the new file
 *
 * Written beside it, flushed, renamed: a crash leaves the old or the new one.
 */
int file_replace(const char *path, const char *bytes, size_t len, mode_t mode);

/**
 * file_put() - the same for what is of no use after a boot of the host: it is not flushed
 */
int file_put(const char *path, const char *bytes, size_t len, mode_t mode);

/**
 * file_find_program() - may a program be started, as posix_spawnp() looks for it?
 * @name:	with a slash it is a path; else it is in a folder of $PATH
 *
 * Return: 0, -ENOENT if there is none, -EACCES if it may not be executed.
 */
int file_find_program(const char *name);

#endif
