// SPDX-License-Identifier: Apache-2.0
/*
 * A hostile guest's kernel, and workers that say anything. The input is steps of 32 bytes and what follows them: a
 * message in a proper chain, bytes anywhere in the guest's memory with the bell of a queue, or a worker's answer.
 */
#include "forward/vm/machine.c"

#include "forward/socket.h"
#include "forward/vm/leftover.h"
#include "forward/wire.h"

#include <sys/eventfd.h>
#include <sys/mman.h>

#define MEMORY_SIZE (32ULL << 20)
#define USER	    0x10000000ULL
#define RING_SIZE   64
#define MAX_PIECES  8
#define ROOM	    (1 << 20)

enum step_kind {
	STEP_MESSAGE,
	STEP_BYTES,
	STEP_WORKER,
	N_STEPS,
};

struct step {
	uint8_t kind;
	uint8_t type;
	uint8_t queue;
	uint8_t n_pieces;
	uint32_t session;
	uint32_t id;
	uint32_t offset;
	uint64_t address;
	uint64_t size;
};

static int worker_end = -1;

int worker_start(_unused_ const struct worker_program *program, _unused_ bool mapped,
		 struct worker *ret)
{
	int pair[2], mapper[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, mapper) < 0)
		abort();
	if (worker_end >= 0)
		close(worker_end);
	worker_end = pair[1];
	close(mapper[1]);
	*ret = (struct worker){ 0x7ffffff0, pair[0], eventfd(0, 0), mapper[0] };
	return 0;
}

/* The worker that does not exist has let go of everything. */
int leftover_check(_unused_ const struct ram *ram, _unused_ pid_t pid, _unused_ uint64_t at,
		   _unused_ uint64_t size)
{
	return 0;
}

static uint64_t ring_at(unsigned queue, unsigned part)
{
	return (queue * 3 + part) * 4096;
}

static void machine_begin(void)
{
	struct ram_region region = { .user = USER,
				     .size = MEMORY_SIZE,
				     .fd = memfd_create("ram", 0) };
	struct vhost_queue *queue;
	unsigned i;

	if (region.fd < 0 || ftruncate(region.fd, MEMORY_SIZE) < 0 ||
	    ram_set(&machine.vhost.ram, &region, 1) < 0)
		abort();
	for (i = 0; i < COTENANT_N_QUEUES; i++) {
		queue = &machine.vhost.queues[i];
		*queue = (struct vhost_queue){ .vhost = &machine.vhost,
					       .kick.fd = 0,
					       .call = -1,
					       .enabled = true,
					       .ring = { .ram = &machine.vhost.ram,
							 .size = RING_SIZE,
							 .user = { USER + ring_at(i, 0),
								   USER + ring_at(i, 1),
								   USER + ring_at(i, 2) } } };
		if (virtq_find(&queue->ring) < 0)
			abort();
	}
	event_list_init(&machine.events);
	machine.said_hello = true;
}

static struct wire_message message_of(const struct step *step)
{
	struct wire_message m = { .type = step->type % (WIRE_DEVICE + 2),
				  .session = step->session % 4,
				  .id = step->id % 5000,
				  .address = step->address,
				  .size = step->size,
				  .magic = WIRE_MAGIC };

	/* What would be refused at the first look has been looked at often enough. */
	memcpy(m.hash, wire_hash, WIRE_HASH_SIZE);
	if (m.type == WIRE_SESSION_OPEN)
		m.size = WIRE_HEAP_SIZE;
	return m;
}

static void sizes_fit(struct wire_message *m, struct wire_piece *pieces)
{
	if (m->type == WIRE_SESSION_OPEN && m->n_pieces == 2) {
		pieces[0] = (struct wire_piece){ 1 << 20, SESSION_SIZE };
		pieces[1] = (struct wire_piece){ 2 << 20, WIRE_HEAP_SIZE };
	} else if (m->type == WIRE_LANE_ADD && m->n_pieces == 1) {
		pieces[0].size = LANE_SIZE;
	}
}

static void send_message(const struct step *step)
{
	struct vhost_queue *queue = &machine.vhost.queues[COTENANT_QUEUE_CONTROL];
	struct wire_message m = message_of(step);
	struct wire_piece pieces[MAX_PIECES];
	uint8_t *room = ram_at(&machine.vhost.ram, ROOM / 2, ROOM / 2);
	struct vring_desc *desc = ram_at(&machine.vhost.ram, ring_at(0, 0), 2 * sizeof(*desc));
	struct vring_avail *avail = ram_at(&machine.vhost.ram, ring_at(0, 1), 4096);
	uint32_t i, size;

	m.n_pieces = step->n_pieces % MAX_PIECES;
	for (i = 0; i < m.n_pieces; i++)
		pieces[i] = (struct wire_piece){ (step->offset + i) * 4096ULL % MEMORY_SIZE,
						 (step->id % 5) * 4096ULL };
	sizes_fit(&m, pieces);
	size = sizeof(m) + m.n_pieces * sizeof(*pieces);
	memcpy(room, &m, sizeof(m));
	memcpy(room + sizeof(m), pieces, m.n_pieces * sizeof(*pieces));
	desc[0] = (struct vring_desc){ ROOM / 2, size, VRING_DESC_F_NEXT, 1 };
	desc[1] = (struct vring_desc){ ROOM / 2 + size, sizeof(m), VRING_DESC_F_WRITE, 0 };
	if (!queue->ring.avail)
		return;
	avail->idx = queue->ring.next_avail;
	avail->ring[avail->idx++ % RING_SIZE] = 0;
	kicked(&machine.vhost, COTENANT_QUEUE_CONTROL);
}

static size_t write_bytes(const struct step *step, const uint8_t *data, size_t size)
{
	size_t n = MIN(size, (size_t)step->id % 256);
	uint8_t *at = ram_at(&machine.vhost.ram, step->offset % ROOM, n);

	if (at)
		memcpy(at, data, n);
	kicked(&machine.vhost, step->queue % COTENANT_N_QUEUES);
	return n;
}

/* The broker has something to read then, so the loop does not sleep. */
static void worker_says(const struct step *step)
{
	static struct socket_message drained;
	struct wire_message m = message_of(step);

	if (worker_end < 0)
		return;
	m.error = (int32_t)(step->n_pieces % 3) - 1;
	if (m.type == WIRE_RESERVE)
		m.at = step->address;
	if (socket_send(worker_end, &m, NULL, 0) == 0)
		loop_once();
	while (socket_receive(worker_end, &drained) == 0)
		socket_message_done(&drained);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct worker_program program = { "worker", "libcuda.so.1" };
	struct step step;
	size_t n;

	log_init("fuzz", LOG_EMERG);
	machine.program = &program;
	machine_begin();
	while (size >= sizeof(step)) {
		memcpy(&step, data, sizeof(step));
		data += sizeof(step);
		size -= sizeof(step);
		n = 0;
		if (step.kind % N_STEPS == STEP_MESSAGE)
			send_message(&step);
		else if (step.kind % N_STEPS == STEP_BYTES)
			n = write_bytes(&step, data, size);
		else
			worker_says(&step);
		data += n;
		size -= n;
	}
	end_all(&machine);
	ram_done(&machine.vhost.ram);
	if (worker_end >= 0)
		close(TAKE_FD(worker_end));
	return 0;
}
