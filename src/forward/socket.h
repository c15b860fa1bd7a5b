/* SPDX-License-Identifier: Apache-2.0 */
/* Messages with descriptors over a unix socket: guest and broker, broker and worker. */
#ifndef FORWARD_SOCKET_H
#define FORWARD_SOCKET_H

#include "forward/transport.h"

#include <stddef.h>
#include <sys/socket.h>

#define SOCKET_MAX_FDS 4

/**
 * struct socket_message - a message as it comes
 * @fds:	descriptors that came along; the receiver owns them
 */
struct socket_message {
	struct wire_message message;
	size_t n_fds;
	int fds[SOCKET_MAX_FDS];
};

/**
 * socket_send() - send a message
 *
 * Return: 0, or what the kernel said (-EPIPE where the other side is gone).
 */
int socket_send(int fd, const struct wire_message *message, const int *fds, size_t n_fds);

/**
 * socket_receive() - receive one
 *
 * Return: 0, -EPIPE at the end, -EPROTO for what is no message, or what the kernel said. Descriptors
 * of what is refused are closed.
 */
int socket_receive(int fd, struct socket_message *ret);

/**
 * socket_take_fds() - the descriptors that came with what recvmsg() has filled in
 * @max:	room at @fds; more are closed
 *
 * Return: how many there are.
 */
size_t socket_take_fds(struct msghdr *header, int *fds, size_t max);

/**
 * socket_pair_new() - two ends of a socket, of which ours never makes us wait
 *
 * Whoever has the other end cannot change that, as he could of an event or a pipe that both have: a worker
 * that does not read costs its own session alone.
 */
int socket_pair_new(int type, int *ret_ours, int *ret_theirs);

/** socket_message_done() - close the descriptors that are still its own (others are -1) */
void socket_message_done(struct socket_message *message);

#endif
