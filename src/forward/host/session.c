// SPDX-License-Identifier: Apache-2.0
#include "forward/host/session.h"

#include "base/base.h"
#include "base/log.h"
#include "forward/host/token.h"
#include "forward/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>

struct session *session_new(int guest)
{
	struct session *session = calloc(1, sizeof(*session));

	if (!session) {
		close(guest);
		return NULL;
	}
	session->guest = guest;
	session->worker = -1;
	session->pidfd = -1;
	return session;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void pending_done(struct session *session)
{
	size_t i;

	for (i = 0; i < session->n_pending_fds; i++)
		close(session->pending_fds[i]);
	session->n_pending_fds = 0;
	session->pending.type = 0;
}

void session_free(struct session *session)
{
	pending_done(session);
	close_fd(&session->guest);
	close_fd(&session->worker);
	close_fd(&session->pidfd);
	free(session);
}

/* Memory that both sides map: nobody can make it smaller under the other's feet. */
static int memory_new(uint64_t size)
{
	_cleanup_close_ int fd = memfd_create("cotenant-forward", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)size) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int event_new(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int pending_add(struct session *session, int fd)
{
	if (fd < 0)
		return fd;
	if (session->n_pending_fds == SOCKET_MAX_FDS) {
		close(fd);
		return -EPROTO;
	}
	session->pending_fds[session->n_pending_fds++] = fd;
	return 0;
}

/* The worker gets what the guest will get when it has answered. */
static int pass_on(struct session *session)
{
	return socket_send(session->worker, &session->pending, NULL, session->pending_fds,
			   session->n_pending_fds);
}

static int make_session(struct session *session)
{
	int r;

	r = pending_add(session, memory_new(SESSION_SIZE));
	if (r == 0)
		r = pending_add(session, memory_new(WIRE_HEAP_SIZE));
	if (r == 0)
		r = pending_add(session, event_new());
	session->pending.size = WIRE_HEAP_SIZE;
	return r < 0 ? r : pass_on(session);
}

static int make_lane(struct session *session)
{
	uint32_t id = 0;
	int r;

	while (id < WIRE_MAX_LANES && session->lanes[id])
		id++;
	if (id == WIRE_MAX_LANES)
		return -EDQUOT;
	r = pending_add(session, memory_new(LANE_SIZE));
	if (r == 0)
		r = pending_add(session, event_new());
	if (r == 0)
		r = pending_add(session, event_new());
	if (r < 0)
		return r;
	session->pending.id = id;
	session->lanes[id] = true;
	return pass_on(session);
}

static int make_grant(struct session *session, const struct session_limits *limits)
{
	uint64_t size = session->pending.size;
	uint32_t id = 1;
	int r;

	if (size == 0 || size % 4096 || session->pending.address % 4096)
		return -EINVAL;
	if (size > limits->max_bytes - session->bytes)
		return -EDQUOT;
	while (id < WIRE_MAX_GRANTS && session->grants[id])
		id++;
	if (id == WIRE_MAX_GRANTS)
		return -EDQUOT;
	r = pending_add(session, memory_new(size));
	if (r < 0)
		return r;
	session->pending.id = id;
	session->grants[id] = size;
	session->bytes += size;
	return pass_on(session);
}

static int end_lane(struct session *session)
{
	uint32_t id = session->pending.id;

	return id < WIRE_MAX_LANES && session->lanes[id] ? pass_on(session) : -ENOENT;
}

static int end_grant(struct session *session)
{
	uint32_t id = session->pending.id;

	return id && id < WIRE_MAX_GRANTS && session->grants[id] ? pass_on(session) : -ENOENT;
}

static int start(struct session *session, const struct session_limits *limits)
{
	session->pid = worker_start(limits, &session->worker, &session->pidfd);
	if (session->pid < 0)
		return session->pid;
	session->state = SESSION_STARTING;
	return 0;
}

/* Both hashes travel: whoever is refused can say which. */
static int hello(struct session *session)
{
	bool same = session->pending.magic == WIRE_MAGIC &&
		    memcmp(session->pending.hash, wire_hash, WIRE_HASH_SIZE) == 0;
	char theirs[2 * WIRE_HASH_SIZE + 1], ours[2 * WIRE_HASH_SIZE + 1];

	if (!same) {
		wire_hash_text(session->pending.hash, theirs);
		wire_hash_text(wire_hash, ours);
		log_err(0, "refused a guest whose protocol is %s: ours is %s", theirs, ours);
	}
	memcpy(session->pending.hash, wire_hash, WIRE_HASH_SIZE);
	return same ? 0 : -EPROTO;
}

static int reply(struct session *session, int error)
{
	int r;

	session->pending.error = error;
	session->pending.n_pieces = 0;
	r = socket_send(session->guest, &session->pending, NULL, session->pending_fds,
			error ? 0 : session->n_pending_fds);
	pending_done(session);
	return r;
}

/* Return: 0 where the worker is asked now, 1 where there is nothing to ask it, or what is wrong. */
static int handle(struct session *session, const struct session_limits *limits)
{
	if (session->pending.type == WIRE_HELLO) {
		int r = hello(session);

		return r < 0 ? r : 1;
	}
	if (session->pending.type == WIRE_SESSION_OPEN)
		return session->state == SESSION_CONNECTED ? start(session, limits) : -EALREADY;
	if (session->state != SESSION_OPEN)
		return -ENOTCONN;
	switch (session->pending.type) {
	case WIRE_LANE_ADD:
		return make_lane(session);
	case WIRE_LANE_REMOVE:
		return end_lane(session);
	case WIRE_GRANT:
		return make_grant(session, limits);
	case WIRE_REVOKE:
		return end_grant(session);
	default:
		return -ENOSYS;
	}
}

int session_request(struct session *session, const struct session_limits *limits,
		    struct socket_message *message)
{
	int r;

	socket_message_done(message);
	if (session->pending.type || session->state == SESSION_ENDING)
		return -EPROTO;
	session->pending = message->message;
	session->pending.n_pieces = 0;
	session->pending.session = 0;
	r = handle(session, limits);
	if (r == 0)
		return 0;
	return reply(session, MIN(r, 0));
}

/* The books follow what the worker has, not what was asked. */
static void settle(struct session *session, int error)
{
	uint32_t id = session->pending.id;
	bool ended =
		session->pending.type == WIRE_LANE_REMOVE || session->pending.type == WIRE_REVOKE;

	switch (session->pending.type) {
	case WIRE_SESSION_OPEN:
		if (!error)
			session->state = SESSION_OPEN;
		break;
	case WIRE_LANE_ADD:
	case WIRE_LANE_REMOVE:
		session->lanes[id] = ended ? false : !error;
		break;
	case WIRE_GRANT:
	case WIRE_REVOKE:
		if (ended || error) {
			session->bytes -= session->grants[id];
			session->grants[id] = 0;
		}
		break;
	default:
		break;
	}
}

int session_answer(struct session *session, struct socket_message *message)
{
	int error = message->message.error;

	socket_message_done(message);
	if (message->message.type == WIRE_IPC_PUT || message->message.type == WIRE_IPC_GET) {
		token_serve(&message->message);
		message->message.n_pieces = 0;
		return socket_send(session->worker, &message->message, NULL, NULL, 0);
	}
	if (!session->pending.type)
		return -EPROTO;
	if (session->state == SESSION_STARTING) {
		if (message->message.type != WIRE_HELLO)
			return -EPROTO;
		session->state = SESSION_OPENING;
		if (!error)
			error = make_session(session);
		return error ? reply(session, error) : 0;
	}
	if (message->message.type != session->pending.type)
		return -EPROTO;
	settle(session, error);
	return reply(session, error > 0 ? -EIO : error);
}

void session_end(struct session *session)
{
	if (session->state == SESSION_ENDING)
		return;
	session->state = SESSION_ENDING;
	close_fd(&session->guest);
	close_fd(&session->worker);
	if (session->pid > 0)
		kill(session->pid, SIGKILL);
}

bool session_is_over(struct session *session)
{
	if (session->state != SESSION_ENDING)
		return false;
	return session->pid <= 0 || waitpid(session->pid, NULL, WNOHANG) != 0;
}
