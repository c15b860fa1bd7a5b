// SPDX-License-Identifier: Apache-2.0
#include "forward/host/session.h"

#include "base/base.h"
#include "base/log.h"
#include "forward/host/monitor.h"
#include "forward/host/token.h"
#include "forward/wire.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define PAGE 4096

/* Of all sessions. */
static uint64_t max_bytes = UINT64_MAX, n_bytes;
static unsigned n_lanes;
/* Those that have begun, and were not released yet. */
static struct session *first;
static uint64_t n_begun;

void session_limit_bytes(uint64_t max)
{
	max_bytes = max;
}

void session_init(struct session *session, const struct session_side *side,
		  const struct worker_program *program, bool mapped)
{
	*session = (struct session){ .side = side,
				     .program = program,
				     .mapped = mapped,
				     .worker.fd = -1,
				     .exit.fd = -1,
				     .mapper = -1 };
}

static void lane_set(struct session *session, uint32_t id, enum lane_state state)
{
	n_lanes += (state != LANE_FREE) - (session->lanes[id] != LANE_FREE);
	session->lanes[id] = state;
}

static void grant_set(struct session *session, uint32_t id, uint64_t size)
{
	n_bytes += size - session->grants[id];
	session->bytes += size - session->grants[id];
	session->grants[id] = size;
}

static void books_clear(struct session *session)
{
	uint32_t id;

	for (id = 0; id < WIRE_MAX_LANES; id++)
		lane_set(session, id, LANE_FREE);
	for (id = 0; id < WIRE_MAX_GRANTS; id++)
		grant_set(session, id, 0);
}

static void enter(struct session *session)
{
	struct session **at = &first;

	while (*at)
		at = &(*at)->next;
	*at = session;
	session->number = ++n_begun;
	session->guest_pid = session->pending.id;
}

static void leave(struct session *session)
{
	struct session **at = &first;

	while (*at && *at != session)
		at = &(*at)->next;
	if (*at)
		*at = session->next;
}

struct session *session_after(uint64_t number)
{
	struct session *session = first;

	while (session && (session->number <= number || session->state >= SESSION_ENDING))
		session = session->next;
	return session;
}

void session_done(struct session *session)
{
	leave(session);
	books_clear(session);
	source_close(&session->worker);
	source_close(&session->exit);
	if (session->mapper >= 0)
		close(TAKE_FD(session->mapper));
}

int session_free_lane(const struct session *session)
{
	int id;

	for (id = 0; id < WIRE_MAX_LANES; id++)
		if (session->lanes[id] == LANE_FREE)
			return id;
	return -EDQUOT;
}

int session_free_grant(const struct session *session)
{
	int id;

	for (id = 1; id < WIRE_MAX_GRANTS; id++)
		if (!session->grants[id])
			return id;
	return -EDQUOT;
}

int session_tell(struct session *session, const int *fds, size_t n_fds)
{
	session->told = true;
	return socket_send(session->worker.fd, &session->pending, fds, n_fds);
}

static void worker_ready(struct source *source)
{
	struct session *session = container_of(source, struct session, worker);
	static struct socket_message message;
	int r;

	r = socket_receive(source->fd, &message);
	if (r == -EAGAIN)
		return;
	if (r == 0)
		r = session_answer(session, &message);
	if (r < 0)
		session_end(session);
}

/* It is answered before its side hears of the end, and hears of the end once. */
static void worker_exited(struct source *source)
{
	struct session *session = container_of(source, struct session, exit);

	waitpid(session->pid, NULL, 0);
	source_close(&session->worker);
	source_close(&session->exit);
	session->state = SESSION_GONE;
	if (session->pending.type)
		session_fail(session, -ENODEV);
	session->side->gone(session);
}

static int start(struct session *session)
{
	struct worker worker;
	int r;

	if (session->state != SESSION_NEW)
		return -EALREADY;
	r = worker_start(session->program, session->mapped, &worker);
	if (r < 0)
		return r;
	session->pid = worker.pid;
	session->mapper = worker.mapper;
	session->state = SESSION_STARTING;
	enter(session);
	r = source_add(&session->worker, worker.socket, worker_ready);
	if (r < 0)
		close(worker.socket);
	else
		r = source_add(&session->exit, worker.pidfd, worker_exited);
	if (r < 0) {
		close(worker.pidfd);
		session_end_now(session);
	}
	return r;
}

static int lane_new(struct session *session, uint32_t id)
{
	if (id >= WIRE_MAX_LANES)
		return -EINVAL;
	if (session->lanes[id] != LANE_FREE)
		return -EEXIST;
	if (n_lanes == SESSION_MAX_LANES_ALL)
		return -EDQUOT;
	lane_set(session, id, LANE_ON);
	return session->side->bring(session);
}

/* One that was asked for is there when that is answered: its end has nothing to end before. */
static bool is_coming(const struct session *session, uint32_t id)
{
	return session->pending.type == WIRE_LANE_ADD && session->pending.id == id;
}

static int lane_end(struct session *session, const struct wire_message *message)
{
	if (message->id >= WIRE_MAX_LANES || session->lanes[message->id] != LANE_ON ||
	    is_coming(session, message->id))
		return -ENOENT;
	lane_set(session, message->id, LANE_ENDING);
	return socket_send(session->worker.fd, message, NULL, 0);
}

static int grant_new(struct session *session, uint32_t id)
{
	uint64_t size = session->pending.size;

	if (id == 0 || id >= WIRE_MAX_GRANTS || size == 0 || size % PAGE ||
	    session->pending.address % PAGE)
		return -EINVAL;
	if (session->grants[id])
		return -EEXIST;
	if (size > WIRE_MAX_GRANT || n_bytes > max_bytes || size > max_bytes - n_bytes)
		return -EDQUOT;
	grant_set(session, id, size);
	return session->side->bring(session);
}

static int grant_end(struct session *session, uint32_t id)
{
	return id && id < WIRE_MAX_GRANTS && session->grants[id] ? session_tell(session, NULL, 0)
								 : -ENOENT;
}

static int begin(struct session *session)
{
	switch (session->pending.type) {
	case WIRE_SESSION_OPEN:
		return start(session);
	case WIRE_LANE_ADD:
		return lane_new(session, session->pending.id);
	case WIRE_GRANT:
		return grant_new(session, session->pending.id);
	case WIRE_REVOKE:
		return grant_end(session, session->pending.id);
	default:
		return -ENOSYS;
	}
}

/* The books follow what the worker has, not what was asked. */
static void settle(struct session *session, int error)
{
	uint32_t id = session->pending.id;

	switch (session->pending.type) {
	case WIRE_SESSION_OPEN:
		if (!error)
			session->state = SESSION_OPEN;
		break;
	case WIRE_LANE_ADD:
		if (error && error != -EEXIST && id < WIRE_MAX_LANES)
			lane_set(session, id, LANE_FREE);
		break;
	case WIRE_GRANT:
		if (error && error != -EEXIST && id < WIRE_MAX_GRANTS)
			grant_set(session, id, 0);
		break;
	case WIRE_REVOKE:
		if (!error)
			grant_set(session, id, 0);
		break;
	default:
		break;
	}
}

int session_request(struct session *session, const struct wire_message *message)
{
	int r;

	if (session->state >= SESSION_ENDING)
		return -ENODEV;
	if (message->type != WIRE_SESSION_OPEN && session->state != SESSION_OPEN)
		return -ENOTCONN;
	if (message->type == WIRE_LANE_REMOVE)
		return lane_end(session, message);
	if (session->pending.type)
		return -EBUSY;
	session->pending = *message;
	session->pending.n_pieces = 0;
	/* What the side brings it says itself; a worker believes it. */
	session->pending.at = 0;
	session->told = false;
	r = begin(session);
	if (r < 0) {
		settle(session, r);
		session->pending.type = 0;
	}
	return r;
}

static void finish(struct session *session, int error)
{
	settle(session, error);
	session->side->answer(session, error);
	session->pending.type = 0;
}

void session_fail(struct session *session, int error)
{
	finish(session, error);
}

/* Its first word: the driver is there, or why not. */
static int started(struct session *session, const struct wire_message *message)
{
	int error = MIN(message->error, 0);

	if (message->type != WIRE_HELLO)
		return -EPROTO;
	session->state = SESSION_OPENING;
	if (!error)
		error = session->side->bring(session);
	if (error)
		finish(session, error);
	return 0;
}

static int lane_ended(struct session *session, uint32_t id)
{
	if (id >= WIRE_MAX_LANES || session->lanes[id] != LANE_ENDING)
		return -EPROTO;
	lane_set(session, id, LANE_FREE);
	session->side->lane_gone(session, id);
	return 0;
}

static int reserved(struct session *session, const struct wire_message *message)
{
	if (!session->mapped || session->pending.at || message->at == 0)
		return -EPROTO;
	session->pending.at = message->at;
	return message->error < 0 ? message->error : session->side->bring(session);
}

int session_answer(struct session *session, struct socket_message *m)
{
	struct wire_message *message = &m->message;

	socket_message_done(m);
	switch (message->type) {
	case WIRE_IPC_PUT:
	case WIRE_IPC_GET:
		token_serve(message);
		return socket_send(session->worker.fd, message, NULL, 0);
	case WIRE_DEVICE:
		return monitor_ask(session, message);
	case WIRE_LANE_REMOVE:
		return lane_ended(session, message->id);
	default:
		break;
	}
	if (!session->pending.type)
		return -EPROTO;
	if (session->state == SESSION_STARTING)
		return started(session, message);
	if (message->type == WIRE_RESERVE)
		return reserved(session, message);
	/* Who speaks before he was told could say next that he gave back what is only mapped afterwards. */
	if (message->type != session->pending.type || !session->told)
		return -EPROTO;
	/* Whether a number is taken is for our books to say. */
	finish(session, message->error > 0 || message->error == -EEXIST ? -EIO : message->error);
	return 0;
}

void session_end(struct session *session)
{
	if (session->state >= SESSION_ENDING)
		return;
	source_close(&session->worker);
	if (session->pid > 0) {
		session->state = SESSION_ENDING;
		kill(session->pid, SIGKILL);
	} else {
		session->state = SESSION_GONE;
		session->side->gone(session);
	}
}

void session_end_now(struct session *session)
{
	source_close(&session->worker);
	if (session->pid > 0 && session->state != SESSION_GONE) {
		kill(session->pid, SIGKILL);
		waitpid(session->pid, NULL, 0);
	}
	source_close(&session->exit);
	session->state = SESSION_GONE;
}

int session_hello(struct wire_message *message)
{
	bool same = message->magic == WIRE_MAGIC &&
		    memcmp(message->hash, wire_hash, WIRE_HASH_SIZE) == 0;
	char theirs[2 * WIRE_HASH_SIZE + 1], ours[2 * WIRE_HASH_SIZE + 1];

	if (!same) {
		wire_hash_text(message->hash, theirs);
		wire_hash_text(wire_hash, ours);
		log_err(0, "refused a guest whose protocol is %s: ours is %s", theirs, ours);
	}
	memcpy(message->hash, wire_hash, WIRE_HASH_SIZE);
	return same ? 0 : -EPROTO;
}
