/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines that a node and the controller send each other over TCP:
 *
 *	controller	the nonce
 *	node		a credential with a report that has the nonce
 *	controller	a credential with the answer, which has the nonce as well
 *
 * Lines end in a newline, are bounded, and come within a time or not at all.
 */
#ifndef CLUSTER_CHANNEL_H
#define CLUSTER_CHANNEL_H

#include "base/base.h"

/**
 * channel_now_ms() - a clock that nobody sets, and that goes on while the machine sleeps
 *
 * Whoever has slept has heard nobody meanwhile, and may have lost the lease.
 */
uint64_t channel_now_ms(void);

/**
 * channel_connect() - connect from a port that only root has
 * @address:	HOST:PORT
 * @until_ms:	of channel_now_ms(), as below
 *
 * Return: the socket; -EINVAL for what is no such address, else what the kernel said.
 */
int channel_connect(const char *address, uint64_t until_ms);

/**
 * channel_listen() - listen on HOST:PORT
 */
int channel_listen(const char *address);

/**
 * channel_write() - write a line; the newline is added
 */
int channel_write(int fd, const char *line, uint64_t until_ms);

/**
 * channel_read() - read a line
 * @most:	bytes
 * @ret:	without the newline; the caller frees it
 *
 * Return: 0, -ETIMEDOUT, -EMSGSIZE, -ENODATA where the other side ended first, or a fault.
 */
int channel_read(int fd, size_t most, uint64_t until_ms, char **ret);

/**
 * channel_wait_end() - wait until the other side has ended
 *
 * Who ends first keeps his port for a minute, and of those that only root has there are few.
 */
void channel_wait_end(int fd, uint64_t until_ms);

#endif
