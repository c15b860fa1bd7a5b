// SPDX-License-Identifier: Apache-2.0
#include "forward/vm/machine.h"

#include "base/base.h"
#include "base/log.h"
#include "forward/vm/process.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

_Static_assert(sizeof(struct cotenant_hello) <= sizeof(((struct wire_message *)NULL)->data),
	       "a greeting fits into a message");
_Static_assert((int)COTENANT_N_QUEUES <= VHOST_MAX_QUEUES, "there are queues enough");

static struct machine machine;

static struct machine *machine_of(struct vhost *vhost)
{
	return container_of(vhost, struct machine, vhost);
}

static struct vhost_queue *queue_of(struct machine *m, enum cotenant_queue queue)
{
	return &m->vhost.queues[queue];
}

void machine_answer(struct machine *m, struct request *request, int error)
{
	struct vhost_queue *control = queue_of(m, COTENANT_QUEUE_CONTROL);
	size_t n;

	if (!request->is_there)
		return;
	request->is_there = false;
	request->message.error = error;
	request->message.n_pieces = 0;
	n = chain_write(&m->vhost.ram, &request->chain, &request->message,
			sizeof(request->message));
	vhost_push(control, request->chain.head, (uint32_t)n);
}

/* A guest that breaks the rules of a queue has none any more until its device is reset. */
static void queue_is_broken(struct vhost_queue *queue)
{
	log_warn(0, "a guest broke queue %d", (int)(queue - queue->vhost->queues));
	queue->ring.avail = NULL;
}

void machine_tell(struct machine *m)
{
	struct vhost_queue *queue = queue_of(m, COTENANT_QUEUE_EVENTS);

	if (events_tell(&m->events, queue) < 0)
		queue_is_broken(queue);
}

static void end_all(struct machine *m)
{
	size_t i;

	for (i = 0; i < WIRE_MAX_SESSIONS; i++)
		if (m->processes[i])
			process_end_now(m->processes[i]);
	event_list_init(&m->events);
	m->said_hello = false;
	m->beat = 0;
}

static int hello(struct machine *m, struct request *request, const struct wire_piece *pieces)
{
	struct cotenant_hello said;
	bool same;

	memcpy(&said, request->message.data, sizeof(said));
	end_all(m);
	same = said.magic == WIRE_MAGIC && said.version == COTENANT_ABI_VERSION;
	if (same &&
	    (request->message.n_pieces != 1 || pieces[0].size != 4096 || pieces[0].address % 4096))
		return -EINVAL;
	said = (struct cotenant_hello){ .magic = WIRE_MAGIC,
					.version = COTENANT_ABI_VERSION,
					.features = said.features & COTENANT_F_USER_DOORBELL,
					.max_sessions = WIRE_MAX_SESSIONS,
					.max_lanes = WIRE_MAX_LANES,
					.max_grants = WIRE_MAX_GRANTS,
					.max_pieces = COTENANT_MAX_PIECES };
	memcpy(request->message.data, &said, sizeof(said));
	if (!same)
		return -EPROTO;
	m->said_hello = true;
	m->features = said.features;
	m->beat = pieces[0].address;
	return 0;
}

static int read_pieces(struct machine *m, const struct request *request, struct wire_piece **ret)
{
	size_t n = request->message.n_pieces, size = n * sizeof(**ret);

	*ret = NULL;
	if (n > COTENANT_MAX_PIECES)
		return -E2BIG;
	/* One too many, so that nobody has to ask whether there is any. */
	*ret = calloc(n + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	return chain_read(&m->vhost.ram, &request->chain, sizeof(request->message), *ret, size) ==
			       size
		       ? 0
		       : -EINVAL;
}

/* Those that are about a session. The pieces are taken over. */
static void pass_on(struct machine *m, struct request *request, struct wire_piece *pieces)
{
	uint32_t number = request->message.session;
	struct process *process = number < WIRE_MAX_SESSIONS ? m->processes[number] : NULL;

	if (request->message.type == WIRE_SESSION_OPEN) {
		process_open(m, request, pieces);
	} else if (!process) {
		free(pieces);
		machine_answer(m, request, -ENOENT);
	} else if (request->message.type == WIRE_SESSION_CLOSE) {
		free(pieces);
		process_close(process, request);
	} else {
		process_request(process, request, pieces);
	}
}

static void serve(struct machine *m, struct request *request)
{
	struct wire_piece *pieces = NULL;
	int r;

	if (chain_read(&m->vhost.ram, &request->chain, 0, &request->message,
		       sizeof(request->message)) != sizeof(request->message))
		memset(&request->message, 0, sizeof(request->message));
	r = read_pieces(m, request, &pieces);
	if (r == 0 && request->message.type == WIRE_HELLO)
		r = hello(m, request, pieces);
	else if (r == 0 && m->said_hello)
		return pass_on(m, request, pieces);
	else if (r == 0)
		r = -ENOTCONN;
	free(pieces);
	machine_answer(m, request, r);
}

static void serve_control(struct machine *m)
{
	struct vhost_queue *queue = queue_of(m, COTENANT_QUEUE_CONTROL);
	unsigned n = virtq_available(&queue->ring);
	struct request request;
	int r;

	for (; n && vhost_queue_is_on(queue); n--) {
		r = virtq_pop(&queue->ring, &request.chain);
		if (r == 0)
			break;
		request.is_there = true;
		if (r == 1)
			serve(m, &request);
		else if (r == -EPROTO)
			queue_is_broken(queue);
		else
			vhost_push(queue, request.chain.head, 0);
	}
}

static void ring(struct machine *m, const struct cotenant_doorbell *bell)
{
	struct process *process =
		bell->session < WIRE_MAX_SESSIONS ? m->processes[bell->session] : NULL;

	if (process)
		process_ring(process, bell->lane);
}

static void ring_all(struct machine *m)
{
	size_t i;

	for (i = 0; i < WIRE_MAX_SESSIONS; i++)
		if (m->processes[i])
			process_ring_all(m->processes[i]);
}

/* Return: were there any? */
static bool serve_bells(struct machine *m)
{
	struct vhost_queue *queue = queue_of(m, COTENANT_QUEUE_DOORBELL);
	unsigned n = virtq_available(&queue->ring);
	struct cotenant_doorbell bell;
	struct chain chain;
	bool any = false;
	int r;

	for (; n && vhost_queue_is_on(queue); n--) {
		r = virtq_pop(&queue->ring, &chain);
		if (r == -EPROTO)
			queue_is_broken(queue);
		if (r == 0 || r == -EPROTO)
			break;
		any = true;
		if (r == 1 &&
		    chain_read(&m->vhost.ram, &chain, 0, &bell, sizeof(bell)) == sizeof(bell))
			ring(m, &bell);
		vhost_push(queue, chain.head, 0);
	}
	return any;
}

static void kicked(struct vhost *vhost, unsigned queue)
{
	struct machine *m = machine_of(vhost);

	switch (queue) {
	case COTENANT_QUEUE_CONTROL:
		serve_control(m);
		break;
	case COTENANT_QUEUE_DOORBELL:
		if (!serve_bells(m) || m->features & COTENANT_F_USER_DOORBELL)
			ring_all(m);
		break;
	case COTENANT_QUEUE_EVENTS:
		machine_tell(m);
		break;
	default:
		break;
	}
}

static void stop(struct vhost *vhost)
{
	end_all(machine_of(vhost));
}

static void beat(struct source *source)
{
	struct machine *m = container_of(source, struct machine, timer);
	struct cotenant_beat *at;
	uint64_t n;

	if (read(source->fd, &n, sizeof(n)) < 0)
		return;
	at = m->beat ? ram_at(&m->vhost.ram, m->beat, sizeof(*at)) : NULL;
	if (at)
		__atomic_store_n(&at->beat, at->beat + 1, __ATOMIC_RELEASE);
}

static void listener_ready(struct source *source);

static void over(struct vhost *vhost, int error)
{
	struct machine *m = machine_of(vhost);
	int r;

	end_all(m);
	vhost_done(vhost);
	if (error != -EPIPE)
		log_warn(error, "QEMU's connection ends");
	r = source_add(&m->listener, m->listener.fd, listener_ready);
	if (r < 0)
		log_err(r, "cannot wait for QEMU");
}

static const struct vhost_ops ops = {
	.kicked = kicked,
	.stop = stop,
	.over = over,
};

static void listener_ready(struct source *source)
{
	struct machine *m = container_of(source, struct machine, listener);
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC), listener, r;

	if (fd < 0)
		return;
	r = vhost_init(&m->vhost, fd, &ops);
	if (r < 0) {
		close(fd);
		log_warn(r, "QEMU is turned away");
		return;
	}
	/* A machine has one QEMU: the next one waits in line. */
	listener = source_remove(source);
	m->listener.fd = listener;
}

static int beat_begin(struct machine *m)
{
	const struct timespec each = { .tv_nsec = COTENANT_BEAT_MS * 1000000L };
	const struct itimerspec when = { each, each };
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0)
		return -errno;
	timerfd_settime(fd, 0, &when, NULL);
	return source_add(&m->timer, fd, beat);
}

int machine_listen(int socket, const struct worker_program *program)
{
	int r;

	machine.program = program;
	event_list_init(&machine.events);
	r = beat_begin(&machine);
	return r < 0 ? r : source_add(&machine.listener, socket, listener_ready);
}
