/* SPDX-License-Identifier: Apache-2.0 */
/* A guest's process on a unix socket: its session's memory is made here, and handed to both sides. */
#ifndef FORWARD_HOST_CONNECTION_H
#define FORWARD_HOST_CONNECTION_H

#include "forward/host/session.h"

struct connection;

/** connection_new() - for a socket, which is taken over. Return: 0, -EDQUOT, or what the kernel said. */
int connection_new(int socket, const struct worker_program *program, struct connection **ret);

/**
 * connection_request() - what the guest asks
 *
 * Return: 0, or why the connection has to end.
 */
int connection_request(struct connection *connection, struct socket_message *message);

/** connection_session() - for tests */
struct session *connection_session(struct connection *connection);

/** connection_end() - the guest is cut off; it is freed when its worker is gone */
void connection_end(struct connection *connection);

#endif
