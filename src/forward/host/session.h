/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's side of a session: a process of the guest, and the worker that executes for it.
 *
 *	guest -- connection.c (unix socket) or vm/machine.c (virtqueue) -- session.c -- worker
 *
 * The guest asks, its side brings the memory that is asked for, the worker is told, and when the worker has it
 * the guest gets its answer. One request is under way at a time, but the end of a lane has its own time: its
 * thread may have much to execute yet. When either side goes the worker is killed, and the session is gone
 * when that is.
 */
#ifndef FORWARD_HOST_SESSION_H
#define FORWARD_HOST_SESSION_H

#include "forward/host/loop.h"
#include "forward/host/spawn.h"
#include "forward/socket.h"

#include <stdbool.h>
#include <stdint.h>

/* Of all sessions of a broker: each lane is a thread. */
#define SESSION_MAX_LANES_ALL 4096

struct session;

/**
 * struct session_side - what a guest's side does for its sessions
 * @bring:	bring the memory and events of session->pending, and call session_tell() then or later. An errno
 *		here is its answer
 * @answer:	the request under way is answered, session->pending
 * @lane_gone:	nobody has that lane any more
 * @gone:	the session has no worker any more, by session_end() or not; nothing will come from it
 */
struct session_side {
	int (*bring)(struct session *session);
	void (*answer)(struct session *session, int error);
	void (*lane_gone)(struct session *session, uint32_t id);
	void (*gone)(struct session *session);
};

enum session_state {
	SESSION_NEW,
	/* Its worker begins; then the worker is told of the session. */
	SESSION_STARTING,
	SESSION_OPENING,
	SESSION_OPEN,
	SESSION_ENDING,
	SESSION_GONE,
};

enum lane_state {
	LANE_FREE,
	LANE_ON,
	LANE_ENDING,
};

/**
 * struct session - one process of the guest
 * @mapped:	its memory is a virtual machine's: the worker has a mapper
 * @next:	of those that have begun, in their order
 * @number:	counted over all that have begun, from 1
 * @guest_pid:	the process, as the guest numbers it; 0: not known
 * @question:	of the worker's, until it has its answer; type 0: none
 * @pending:	the request that is under way; type 0: none
 * @told:	the worker was told of @pending
 * @bytes:	of all grants
 * @grants:	their sizes; 0: free
 */
struct session {
	const struct session_side *side;
	const struct worker_program *program;
	bool mapped;
	struct session *next;
	uint64_t number;
	uint32_t guest_pid;
	struct wire_message question;
	enum session_state state;
	pid_t pid;
	struct source worker;
	struct source exit;
	int mapper;
	struct wire_message pending;
	bool told;
	uint64_t bytes;
	uint8_t lanes[WIRE_MAX_LANES]; /* enum lane_state */
	uint64_t grants[WIRE_MAX_GRANTS];
};

/** session_init() - one that has no worker yet */
void session_init(struct session *session, const struct session_side *side,
		  const struct worker_program *program, bool mapped);

/** session_done() - release it: only when there is no worker, or with it by session_end_now() */
void session_done(struct session *session);

/**
 * session_request() - what the guest asks: WIRE_SESSION_OPEN, LANE_ADD, LANE_REMOVE, GRANT or REVOKE
 *
 * Return: 0: side->answer() or, for a lane's end, side->lane_gone() follows. Else it is the answer: -EBUSY,
 * -EINVAL, -EEXIST, -ENOENT, -EDQUOT, -ENODEV, -ENOTCONN, -EALREADY, -ENOSYS or what the kernel said.
 */
int session_request(struct session *session, const struct wire_message *message);

/** session_tell() - pass session->pending on to the worker, with descriptors that stay the caller's */
int session_tell(struct session *session, const int *fds, size_t n_fds);

/** session_answer() - what the worker said. Return: 0, or why the session has to end. */
int session_answer(struct session *session, struct socket_message *message);

/** session_fail() - the request under way cannot be fulfilled: what was noted for it is taken back */
void session_fail(struct session *session, int error);

/** session_free_lane() - a number for a new lane, or -EDQUOT */
int session_free_lane(const struct session *session);

/** session_free_grant() - a number for a new grant, or -EDQUOT */
int session_free_grant(const struct session *session);

/**
 * session_after() - the first that has begun after the one of that number, and has a worker; NULL: there is none
 */
struct session *session_after(uint64_t number);

/** session_end() - begin to end it: the worker is killed, and side->gone() follows */
void session_end(struct session *session);

/** session_end_now() - end it, and wait until the worker is gone; side->gone() is not called */
void session_end_now(struct session *session);

/**
 * session_hello() - is the guest's protocol ours? Its place in @message becomes ours: whoever is refused can say both
 *
 * Return: 0 or -EPROTO.
 */
int session_hello(struct wire_message *message);

/** session_limit_bytes() - how much all grants of all sessions may be */
void session_limit_bytes(uint64_t max);

#endif
