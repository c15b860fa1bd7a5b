// SPDX-License-Identifier: Apache-2.0
#include "forward/vm/process.h"

#include "base/base.h"
#include "base/log.h"
#include "forward/host/session.h"
#include "forward/vm/leftover.h"
#include "forward/vm/mapping.h"

#include <errno.h>
#include <sys/socket.h>

#define PAGE 4096

/**
 * struct vm_lane - a lane's place in the guest, and its bells
 * @guest:	its first page, guest-physical
 * @at:		where the worker has it
 * @kick:	wakes the worker's thread, which has @kick_end
 * @call:	rung by it at @call_end
 * @removal:	the request that ends it
 */
struct vm_lane {
	struct process *process;
	uint64_t guest;
	uint64_t at;
	int kick, kick_end, call_end;
	struct source call;
	struct event event;
	struct request removal;
};

/**
 * struct process
 * @pending:	the request under way, as session.pending
 * @closing:	the request that ends it
 * @error:	what @pending is answered with when nobody reaches its memory any more; 0: not ending by it
 * @pieces:	of @pending, until the mapper has them
 * @block:	the first page of the session's block, guest-physical
 * @grants:	where the worker has them
 * @is_over:	worker and mapper are gone, and the guest has not closed it yet
 */
struct process {
	struct machine *machine;
	uint32_t number;
	struct session session;
	struct mapping mapping;
	struct request pending;
	struct request closing;
	int error;
	struct wire_piece *pieces;
	uint64_t block;
	struct {
		uint64_t at;
		uint64_t size;
	} grants[WIRE_MAX_GRANTS];
	bool is_over;
	struct source call;
	int call_end;
	struct event service;
	struct event lost;
	struct vm_lane *lanes[WIRE_MAX_LANES];
};

static struct process *process_of(struct session *session)
{
	return container_of(session, struct process, session);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(TAKE_FD(*fd));
}

/* A bell that a worker rings. */
static int bell_new(struct source *source, int *ret_end, void (*ready)(struct source *source))
{
	int fd, r;

	r = socket_pair_new(SOCK_STREAM, &fd, ret_end);
	if (r < 0)
		return r;
	r = source_add(source, fd, ready);
	if (r < 0)
		close(fd);
	return r;
}

/* Return: has it been rung? When the worker is gone it is told elsewhere. */
static bool bell_rang(struct source *source)
{
	char bytes[256];
	ssize_t n = read(source->fd, bytes, sizeof(bytes));

	if (n == 0)
		source_close(source);
	return n > 0;
}

/* Do they add up to a whole that nothing else is part of? @border: none goes across it. */
static bool pieces_are(const struct wire_piece *pieces, size_t n, uint64_t border, uint64_t size)
{
	uint64_t done = 0;
	size_t i;

	for (i = 0; i < n; i++) {
		if (pieces[i].size == 0 || pieces[i].size % PAGE || pieces[i].address % PAGE ||
		    pieces[i].size > (done < border ? border : size) - done)
			return false;
		done += pieces[i].size;
	}
	return done == size;
}

static bool are_memory(const struct ram *ram, const struct wire_piece *pieces, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!ram_region_of(ram, pieces[i].address, pieces[i].size))
			return false;
	return true;
}

static bool pieces_fit(const struct wire_message *m, const struct wire_piece *pieces)
{
	switch (m->type) {
	case WIRE_SESSION_OPEN:
		return m->size == WIRE_HEAP_SIZE &&
		       pieces_are(pieces, m->n_pieces, SESSION_SIZE, SESSION_SIZE + WIRE_HEAP_SIZE);
	case WIRE_LANE_ADD:
		return pieces_are(pieces, m->n_pieces, 0, LANE_SIZE);
	case WIRE_GRANT:
		return pieces_are(pieces, m->n_pieces, 0, m->size);
	default:
		return m->n_pieces == 0;
	}
}

static int check_pieces(const struct machine *machine, const struct wire_message *m,
			const struct wire_piece *pieces)
{
	if (!pieces_fit(m, pieces))
		return -EINVAL;
	return are_memory(&machine->vhost.ram, pieces, m->n_pieces) ? 0 : -EFAULT;
}

static void lane_free(struct process *p, uint32_t id)
{
	struct vm_lane *lane = TAKE_PTR(p->lanes[id]);

	if (!lane)
		return;
	event_forget(&p->machine->events, &lane->event);
	source_close(&lane->call);
	close_fd(&lane->kick);
	close_fd(&lane->kick_end);
	close_fd(&lane->call_end);
	free(lane);
}

static void lane_called(struct source *source)
{
	struct vm_lane *lane = container_of(source, struct vm_lane, call);

	if (!bell_rang(source))
		return;
	event_due(&lane->process->machine->events, &lane->event);
	machine_tell(lane->process->machine);
}

static int lane_new(struct process *p, uint32_t id)
{
	struct vm_lane *lane = calloc(1, sizeof(*lane));
	int r;

	if (!lane)
		return -ENOMEM;
	lane->process = p;
	lane->guest = p->pieces[0].address;
	lane->event.what = (struct cotenant_event){ p->number, id };
	lane->kick = lane->kick_end = lane->call_end = lane->call.fd = -1;
	p->lanes[id] = lane;
	r = socket_pair_new(SOCK_STREAM, &lane->kick, &lane->kick_end);
	return r < 0 ? r : bell_new(&lane->call, &lane->call_end, lane_called);
}

static void service_called(struct source *source)
{
	struct process *p = container_of(source, struct process, call);

	if (!bell_rang(source))
		return;
	event_due(&p->machine->events, &p->service);
	machine_tell(p->machine);
}

static int lane_tell(struct session *session, struct vm_lane *lane)
{
	const int fds[] = { lane->kick_end, lane->call_end };
	int r = session_tell(session, fds, ARRAY_SIZE(fds));

	lane->at = session->pending.at;
	close_fd(&lane->kick_end);
	close_fd(&lane->call_end);
	return r;
}

/* The worker is told when its memory is there. */
static int tell(struct process *p)
{
	int r;

	switch (p->session.pending.type) {
	case WIRE_SESSION_OPEN:
		r = session_tell(&p->session, &p->call_end, 1);
		close_fd(&p->call_end);
		return r;
	case WIRE_LANE_ADD:
		return lane_tell(&p->session, p->lanes[p->session.pending.id]);
	default:
		return session_tell(&p->session, NULL, 0);
	}
}

static void mapped(struct mapping *mapping, int error)
{
	struct process *p = container_of(mapping, struct process, mapping);

	if (error == 0)
		error = tell(p);
	/* Some of it may be mapped. */
	if (error < 0)
		session_end(&p->session);
}

/* Bytes of the memory that the request under way is about. */
static uint64_t pending_size(const struct session *session)
{
	switch (session->pending.type) {
	case WIRE_SESSION_OPEN:
		return SESSION_SIZE + WIRE_HEAP_SIZE;
	case WIRE_LANE_ADD:
		return LANE_SIZE;
	default:
		return session->pending.size;
	}
}

static int reserve(struct process *p)
{
	const struct wire_message message = { .type = WIRE_RESERVE,
					      .address = p->session.pending.address,
					      .size = pending_size(&p->session) };

	return socket_send(p->session.worker.fd, &message, NULL, 0);
}

/* First for addresses, and when the worker has said them, for memory there. */
static int bring(struct session *session)
{
	struct process *p = process_of(session);
	int r = 0;

	if (session->pending.at)
		return mapping_begin(&p->mapping, session->pending.at, TAKE_PTR(p->pieces),
				     p->pending.message.n_pieces);
	if (session->pending.type == WIRE_LANE_ADD)
		r = lane_new(p, session->pending.id);
	if (r == 0)
		r = reserve(p);
	if (r < 0 && session->pending.type == WIRE_LANE_ADD)
		lane_free(p, session->pending.id);
	return r;
}

/*
 * Return: has the worker let go of it? If not, or where that cannot be told, its session ends, and what asked is
 * answered when the worker is gone.
 */
static bool is_released(struct process *p, uint64_t at, uint64_t size)
{
	int r = leftover_check(&p->machine->vhost.ram, p->session.pid, at, size);

	if (r == 0)
		return true;
	log_warn(r, "a worker keeps what it was to give back: its session ends");
	session_end(&p->session);
	return false;
}

static void answer(struct session *session, int error)
{
	struct process *p = process_of(session);
	uint32_t id = session->pending.id;

	free(TAKE_PTR(p->pieces));
	if (session->state >= SESSION_ENDING)
		return;
	if (!error && session->pending.type == WIRE_REVOKE &&
	    !is_released(p, p->grants[id].at, p->grants[id].size))
		return;
	if (!error && session->pending.type == WIRE_GRANT) {
		p->grants[id].at = session->pending.at;
		p->grants[id].size = session->pending.size;
	}
	if (error && session->pending.type == WIRE_LANE_ADD)
		lane_free(p, id);
	if (error && session->pending.type == WIRE_SESSION_OPEN) {
		p->error = error;
		session_end(session);
		return;
	}
	/* What could not begin was mapped by then. */
	if (error && session->pending.at &&
	    !is_released(p, session->pending.at, pending_size(session)))
		return;
	machine_answer(p->machine, &p->pending, error);
}

static void lane_gone(struct session *session, uint32_t id)
{
	struct process *p = process_of(session);
	struct request removal = p->lanes[id]->removal;

	if (!is_released(p, p->lanes[id]->at, LANE_SIZE))
		return;
	lane_free(p, id);
	machine_answer(p->machine, &removal, 0);
}

static void process_free(struct process *p)
{
	struct machine *machine = p->machine;
	uint32_t id;

	for (id = 0; id < WIRE_MAX_LANES; id++)
		lane_free(p, id);
	event_forget(&machine->events, &p->service);
	event_forget(&machine->events, &p->lost);
	source_close(&p->call);
	close_fd(&p->call_end);
	free(p->pieces);
	session_done(&p->session);
	machine->processes[p->number] = NULL;
	free(p);
}

/* The worker wrote this block and is gone, so it is ours to write. */
static void say_lost(struct process *p)
{
	struct session_block *block = ram_at(&p->machine->vhost.ram, p->block, PAGE);

	if (block)
		__atomic_store_n(&block->host.lost, 1, __ATOMIC_RELEASE);
	event_due(&p->machine->events, &p->lost);
	machine_tell(p->machine);
}

/* Nobody reaches its memory any more: what was asked is answered, and then its end. */
static void over(struct process *p)
{
	bool never_was = p->error != 0;
	uint32_t id;

	p->is_over = true;
	for (id = 0; id < WIRE_MAX_LANES; id++)
		if (p->lanes[id])
			machine_answer(p->machine, &p->lanes[id]->removal, -ENODEV);
	machine_answer(p->machine, &p->pending, never_was ? p->error : -ENODEV);
	if (!p->closing.is_there && !never_was) {
		say_lost(p);
		return;
	}
	machine_answer(p->machine, &p->closing, 0);
	process_free(p);
}

static void worker_gone(struct session *session)
{
	struct process *p = process_of(session);

	/* An opening that ends so never was, whoever ended it. */
	if (p->pending.is_there && p->pending.message.type == WIRE_SESSION_OPEN && !p->error)
		p->error = -ENODEV;
	if (!mapping_end(&p->mapping))
		over(p);
}

static void mapper_gone(struct mapping *mapping)
{
	struct process *p = container_of(mapping, struct process, mapping);

	if (p->session.state == SESSION_GONE)
		over(p);
	else
		session_end(&p->session);
}

static const struct session_side side = {
	.bring = bring,
	.answer = answer,
	.lane_gone = lane_gone,
	.gone = worker_gone,
};

/* Return: 0, and the request is under way; else what it is answered with, and there is no process. */
static int start(struct process *p, struct request *request)
{
	int r;

	r = bell_new(&p->call, &p->call_end, service_called);
	if (r < 0)
		return r;
	r = session_request(&p->session, &request->message);
	if (r < 0)
		return r;
	r = mapping_init(&p->mapping, TAKE_FD(p->session.mapper), &p->machine->vhost.ram, mapped,
			 mapper_gone);
	if (r < 0)
		session_end_now(&p->session);
	return r;
}

static void open_checked(struct machine *machine, struct request *request,
			 struct wire_piece *pieces)
{
	uint32_t number = request->message.session;
	struct process *p = calloc(1, sizeof(*p));
	int r;

	if (!p) {
		free(pieces);
		machine_answer(machine, request, -ENOMEM);
		return;
	}
	p->machine = machine;
	p->number = number;
	p->pieces = pieces;
	p->block = pieces[0].address;
	p->call.fd = p->call_end = -1;
	p->service.what = (struct cotenant_event){ number, COTENANT_EVENT_SERVICE };
	p->lost.what = (struct cotenant_event){ number, COTENANT_EVENT_LOST };
	session_init(&p->session, &side, machine->program, /* mapped= */ true);
	machine->processes[number] = p;
	r = start(p, request);
	if (r < 0) {
		process_free(p);
		machine_answer(machine, request, r);
		return;
	}
	p->pending = *request;
}

static int check_open(struct machine *machine, struct request *request,
		      const struct wire_piece *pieces)
{
	uint32_t number = request->message.session;
	int r;

	if (number == 0 || number >= WIRE_MAX_SESSIONS)
		return -EINVAL;
	if (machine->processes[number])
		return -EEXIST;
	r = check_pieces(machine, &request->message, pieces);
	return r < 0 ? r : session_hello(&request->message);
}

void process_open(struct machine *machine, struct request *request, struct wire_piece *pieces)
{
	int r = check_open(machine, request, pieces);

	if (r < 0) {
		free(pieces);
		machine_answer(machine, request, r);
		return;
	}
	open_checked(machine, request, pieces);
}

static void lane_remove(struct process *p, struct request *request)
{
	int r = session_request(&p->session, &request->message);

	if (r < 0)
		machine_answer(p->machine, request, r);
	else
		p->lanes[request->message.id]->removal = *request;
}

void process_request(struct process *p, struct request *request, struct wire_piece *pieces)
{
	int r = p->pending.is_there ? -EBUSY : 0;

	if (request->message.type == WIRE_LANE_REMOVE) {
		free(pieces);
		lane_remove(p, request);
		return;
	}
	if (r == 0)
		r = check_pieces(p->machine, &request->message, pieces);
	if (r < 0) {
		free(pieces);
		machine_answer(p->machine, request, r);
		return;
	}
	p->pieces = pieces;
	p->pending = *request;
	r = session_request(&p->session, &request->message);
	if (r == 0)
		return;
	free(TAKE_PTR(p->pieces));
	machine_answer(p->machine, &p->pending, r);
}

void process_close(struct process *p, struct request *request)
{
	if (p->closing.is_there) {
		machine_answer(p->machine, request, -EALREADY);
		return;
	}
	if (p->is_over) {
		machine_answer(p->machine, request, 0);
		process_free(p);
		return;
	}
	p->closing = *request;
	session_end(&p->session);
}

/*
 * What the guest says here at worst wakes a thread for nothing, or leaves its own asleep. It has published before
 * it rang, so a lane that has nothing now needs no waking.
 */
static void lane_ring(const struct process *p, const struct vm_lane *lane)
{
	const struct lane *at = ram_at(&p->machine->vhost.ram, lane->guest, PAGE);
	const char one = 1;

	if (!at || __atomic_load_n(&at->bell.sleeps, __ATOMIC_RELAXED) % 2 == 0 ||
	    __atomic_load_n(&at->guest.head, __ATOMIC_RELAXED) ==
		    __atomic_load_n(&at->host.tail, __ATOMIC_RELAXED))
		return;
	/* Where there is no room its thread has enough to wake up for. */
	if (write(lane->kick, &one, sizeof(one)) < 0)
		log_debug(-errno, "cannot wake a lane");
}

void process_ring(struct process *p, uint32_t id)
{
	if (id < WIRE_MAX_LANES && p->lanes[id])
		lane_ring(p, p->lanes[id]);
}

void process_ring_all(struct process *p)
{
	uint32_t id;

	for (id = 0; id < WIRE_MAX_LANES; id++)
		if (p->lanes[id])
			lane_ring(p, p->lanes[id]);
}

void process_end_now(struct process *p)
{
	session_end_now(&p->session);
	mapping_end_now(&p->mapping);
	process_free(p);
}
