/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's side of a session: a process of the guest, and the worker that executes for it.
 *
 * The guest asks, the broker makes what is asked for and tells the worker, and when the worker has it the
 * guest gets its answer. One request is under way at a time; the guest's library asks no second one before.
 * A session ends when either side goes: the worker is killed, and the session is gone when it is.
 */
#ifndef FORWARD_HOST_SESSION_H
#define FORWARD_HOST_SESSION_H

#include "forward/socket.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct session_limits - what the broker was started with
 * @worker:	the program that executes
 * @driver:	the libcuda that it loads
 * @max_bytes:	host memory that one session's grants may take
 */
struct session_limits {
	const char *worker;
	const char *driver;
	uint64_t max_bytes;
};

enum session_state {
	SESSION_CONNECTED,
	/* Its worker begins; then the worker is told of the session. */
	SESSION_STARTING,
	SESSION_OPENING,
	SESSION_OPEN,
	SESSION_ENDING,
};

/**
 * struct session - one process of the guest
 * @guest:	its connection
 * @worker:	the worker's, -1 while there is none
 * @pidfd:	readable when the worker is gone
 * @pending:	the request that the worker has not answered yet; type 0: none
 * @pending_fds: what its answer brings to the guest
 * @bytes:	of all grants
 */
struct session {
	int guest;
	int worker;
	int pidfd;
	pid_t pid;
	enum session_state state;
	struct wire_message pending;
	int pending_fds[SOCKET_MAX_FDS];
	size_t n_pending_fds;
	uint64_t bytes;
	bool lanes[WIRE_MAX_LANES];
	uint64_t grants[WIRE_MAX_GRANTS]; /* their sizes; 0: free */
};

/** session_new() - for a connection, which is taken over; NULL where there is no memory */
struct session *session_new(int guest);

void session_free(struct session *session);

/** session_request() - what the guest asks. Return: 0, or why the session has to end. */
int session_request(struct session *session, const struct session_limits *limits,
		    struct socket_message *message);

/** session_answer() - what the worker said. Return: 0, or why the session has to end. */
int session_answer(struct session *session, struct socket_message *message);

/** session_end() - begin to end it: the guest is cut off, the worker killed */
void session_end(struct session *session);

/** session_is_over() - is the worker gone, too? Reaps it. */
bool session_is_over(struct session *session);

/**
 * worker_start() - start a worker
 * @ret_socket:	our end of its socket
 * @ret_pidfd:	readable when it has ended
 *
 * Return: its pid, or what the kernel said.
 */
pid_t worker_start(const struct session_limits *limits, int *ret_socket, int *ret_pidfd);

#endif
