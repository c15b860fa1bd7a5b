/* SPDX-License-Identifier: Apache-2.0 */
/* All bytes or none: reading and writing where the kernel may take or give a part. */
#pragma once

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

/* @once does what it can of the @size bytes at `at`, and says how much, as read() does. */
#define WHOLE(at, size, once)                                                                      \
	({                                                                                         \
		ssize_t whole_n = 1;                                                               \
                                                                                                   \
		while ((size) > 0 && whole_n > 0) {                                                \
			whole_n = (once);                                                          \
			if (whole_n < 0 && errno == EINTR) {                                       \
				whole_n = 1;                                                       \
			} else if (whole_n > 0) {                                                  \
				(at) += whole_n;                                                   \
				(size) -= (size_t)whole_n;                                         \
			}                                                                          \
		}                                                                                  \
		(size) == 0;                                                                       \
	})

/** whole_read() - whether all of @size bytes came; from a socket too */
static inline bool whole_read(int fd, void *to, size_t size)
{
	uint8_t *at = to;

	return WHOLE(at, size, read(fd, at, size));
}

/** whole_write() - whether all of @size bytes went */
static inline bool whole_write(int fd, const void *from, size_t size)
{
	const uint8_t *at = from;

	return WHOLE(at, size, write(fd, at, size));
}

/** whole_send() - the same into a socket, whose other end may be gone: that is no signal here */
static inline bool whole_send(int fd, const void *from, size_t size)
{
	const uint8_t *at = from;

	return WHOLE(at, size, send(fd, at, size, MSG_NOSIGNAL));
}
