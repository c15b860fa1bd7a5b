// SPDX-License-Identifier: Apache-2.0
#include "forward/host/connection.h"

#include "base/base.h"
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

/**
 * struct connection - a guest's process
 * @fds:	what the answer to the request under way brings the guest
 */
struct connection {
	struct source guest;
	struct session session;
	int fds[SOCKET_MAX_FDS];
	size_t n_fds;
};

static unsigned n_connections;

static struct connection *connection_of(struct session *session)
{
	return container_of(session, struct connection, session);
}

static void fds_done(struct connection *c)
{
	while (c->n_fds)
		close(c->fds[--c->n_fds]);
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

static int add(struct connection *c, int fd)
{
	if (fd < 0)
		return fd;
	c->fds[c->n_fds++] = fd;
	return 0;
}

static int bring_session(struct connection *c)
{
	int r;

	c->session.pending.size = WIRE_HEAP_SIZE;
	r = add(c, memory_new(SESSION_SIZE));
	if (r == 0)
		r = add(c, memory_new(WIRE_HEAP_SIZE));
	return r < 0 ? r : add(c, event_new());
}

static int add_pipe(struct connection *c)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	/* The guest must not wait for a worker that does not read. */
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	add(c, fds[0]);
	return add(c, fds[1]);
}

static int bring_lane(struct connection *c)
{
	int r;

	r = add(c, memory_new(LANE_SIZE));
	if (r == 0)
		r = add_pipe(c);
	return r < 0 ? r : add(c, event_new());
}

static int bring(struct session *session)
{
	struct connection *c = connection_of(session);
	int r;

	if (session->pending.type == WIRE_SESSION_OPEN)
		r = bring_session(c);
	else if (session->pending.type == WIRE_LANE_ADD)
		r = bring_lane(c);
	else
		r = add(c, memory_new(session->pending.size));
	return r < 0 ? r : session_tell(session, c->fds, c->n_fds);
}

static int reply(struct connection *c, struct wire_message *message, int error)
{
	int r;

	message->error = error;
	r = socket_send(c->guest.fd, message, c->fds, error ? 0 : c->n_fds);
	fds_done(c);
	return r;
}

static void answer(struct session *session, int error)
{
	struct connection *c = connection_of(session);

	if (c->guest.fd < 0)
		fds_done(c);
	else if (reply(c, &session->pending, error) < 0)
		connection_end(c);
}

/* The guest did not wait for it. */
static void lane_gone(_unused_ struct session *session, _unused_ uint32_t id)
{
}

static void gone(struct session *session)
{
	struct connection *c = connection_of(session);

	source_close(&c->guest);
	fds_done(c);
	session_done(session);
	free(c);
	n_connections--;
}

static const struct session_side side = {
	.bring = bring,
	.answer = answer,
	.lane_gone = lane_gone,
	.gone = gone,
};

static int peer_pid(struct connection *c)
{
	struct ucred peer = { 0 };
	socklen_t size = sizeof(peer);

	if (getsockopt(c->guest.fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return 0;
	return peer.pid;
}

/* What the guest leaves to us. */
static int choose_id(struct connection *c, struct wire_message *message)
{
	int id = 0;

	if (message->type == WIRE_SESSION_OPEN)
		id = peer_pid(c);
	else if (message->type == WIRE_LANE_ADD)
		id = session_free_lane(&c->session);
	else if (message->type == WIRE_GRANT)
		id = session_free_grant(&c->session);
	else
		return 0;
	message->id = MAX(id, 0);
	return MIN(id, 0);
}

int connection_request(struct connection *c, struct socket_message *m)
{
	struct wire_message *message = &m->message;
	int r;

	socket_message_done(m);
	message->session = 0;
	message->n_pieces = 0;
	if (message->type == WIRE_HELLO)
		return reply(c, message, session_hello(message));
	r = choose_id(c, message);
	if (r == 0)
		r = session_request(&c->session, message);
	/* The guest's library asks for nothing before it has its answer. */
	if (r == -EBUSY || r == -ENODEV)
		return -EPROTO;
	return r == 0 && message->type != WIRE_LANE_REMOVE ? 0 : reply(c, message, r);
}

static void guest_ready(struct source *source)
{
	struct connection *c = container_of(source, struct connection, guest);
	static struct socket_message message;
	int r;

	r = socket_receive(source->fd, &message);
	if (r == -EAGAIN)
		return;
	if (r == 0)
		r = connection_request(c, &message);
	if (r < 0)
		connection_end(c);
}

int connection_new(int socket, const struct worker_program *program, struct connection **ret)
{
	struct connection *c;
	int r;

	c = n_connections < WIRE_MAX_SESSIONS ? malloc(sizeof(*c)) : NULL;
	if (!c) {
		close(socket);
		return n_connections < WIRE_MAX_SESSIONS ? -ENOMEM : -EDQUOT;
	}
	c->n_fds = 0;
	session_init(&c->session, &side, program, /* mapped= */ false);
	/* Who does not read our answers keeps nobody else waiting. */
	r = fd_set_nonblock(socket);
	if (r == 0)
		r = source_add(&c->guest, socket, guest_ready);
	if (r < 0) {
		close(socket);
		free(c);
		return r;
	}
	n_connections++;
	*ret = c;
	return 0;
}

struct session *connection_session(struct connection *c)
{
	return &c->session;
}

void connection_end(struct connection *c)
{
	source_close(&c->guest);
	session_end(&c->session);
}
