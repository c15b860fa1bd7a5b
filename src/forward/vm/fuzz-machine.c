// SPDX-License-Identifier: Apache-2.0
/*
 * A guest's kernel and workers that do what they should, nearly so, or anything at all. The input is steps of 32 bytes
 * and what follows them.
 *
 * As long as the guest's kernel keeps to the protocol, it is held against the broker that no answer ends something,
 * or says that it never began, while anybody of the host's still has that memory.
 */
#include "forward/vm/virtq.h"

#include "forward/transport.h"

#include <stddef.h>

static size_t answer_write(const struct ram *ram, const struct chain *chain, const void *from,
			   size_t size);

#define chain_write answer_write
#include "forward/vm/machine.c"
#undef chain_write

#include "forward/host/session.h"
#include "forward/vm/fake-worker.h"
#include "forward/wire.h"

#include <signal.h>
#include <sys/mman.h>

#define LOW_SIZE     (24ULL << 20)
#define HIGH	     (4ULL << 30)
#define HIGH_SIZE    (8ULL << 20)
#define USER	     0x10000000ULL
#define RING_SIZE    64
#define MAX_PIECES   8
#define MAX_MESSAGES 256
#define MAX_BYTES    (256 << 10)

/* Below it are the rings, and messages; above it a session's block and heap. */
#define ROOM (1 << 20)

enum step_kind {
	STEP_MESSAGE,
	STEP_WORKER,
	STEP_MAPPER,
	STEP_WORKER_SAYS,
	STEP_BELL,
	STEP_CALL,
	STEP_EVENTS,
	STEP_END,
	STEP_BYTES,
	STEP_RESET,
	N_STEPS,
};

/* @flags: what is not as it should be; 0 where all is */
struct step {
	uint8_t kind;
	uint8_t type;
	uint8_t flags;
	uint8_t n_pieces;
	uint32_t session;
	uint32_t id;
	uint32_t offset;
	uint64_t address;
	uint64_t size;
};

enum {
	FLAG_SIZE = 1,
	FLAG_PIECES = 2,
	FLAG_NUMBERS = 4,
	FLAG_PROTOCOL = 8,
};

/**
 * struct said - a message of the guest's kernel
 * @is_asked:	it is not answered yet
 * @is_had:	what it began is there, or would be: the kernel has pinned its memory
 */
struct said {
	bool is_asked;
	bool is_had;
	struct wire_message message;
	struct wire_piece pieces[MAX_PIECES];
};

static struct said said[MAX_MESSAGES];
static uint32_t n_said;
/* The guest's kernel has kept to the protocol. */
static bool is_honest;

static struct {
	unsigned long inputs, sessions, lanes, grants, lanes_gone, revoked, closed, told;
} counts;

static bool begins(const struct wire_message *m)
{
	return m->type == WIRE_SESSION_OPEN || m->type == WIRE_LANE_ADD || m->type == WIRE_GRANT;
}

/* The type of what began it; 0: this ends nothing. */
static uint32_t begun_by(uint32_t type)
{
	switch (type) {
	case WIRE_SESSION_CLOSE:
		return WIRE_SESSION_OPEN;
	case WIRE_LANE_REMOVE:
		return WIRE_LANE_ADD;
	case WIRE_REVOKE:
		return WIRE_GRANT;
	default:
		return 0;
	}
}

static uint32_t named(uint32_t session, uint64_t guest, uint64_t size)
{
	const struct wire_piece *piece;
	uint32_t n;

	for (n = 1; n < n_said; n++)
		for (piece = said[n].pieces; piece < said[n].pieces + said[n].message.n_pieces;
		     piece++)
			if (said[n].is_asked && begins(&said[n].message) &&
			    said[n].message.session == session && piece->address == guest &&
			    piece->size == size)
				return n;
	return is_honest ? 0 : UINT32_MAX;
}

static uint32_t ended(uint32_t session, const struct wire_message *message)
{
	uint32_t n, type = begun_by(message->type);

	for (n = n_said - 1; n > 0; n--)
		if (said[n].is_had && said[n].message.type == type &&
		    said[n].message.session == session && said[n].message.id == message->id)
			return n;
	return 0;
}

static const struct fake_guest kernel = { named, ended };

static void had_no_more(uint32_t n)
{
	if (is_honest && n && fake_has(n))
		abort();
	said[n].is_had = false;
}

static void session_had_no_more(uint32_t session)
{
	uint32_t n;

	for (n = 1; n < n_said; n++)
		if (said[n].message.session == session) {
			/* What was asked of it has its answer before its end has. */
			if (is_honest && said[n].is_asked)
				abort();
			had_no_more(n);
		}
}

static void ended_well(const struct wire_message *m)
{
	switch (m->type) {
	case WIRE_SESSION_CLOSE:
		session_had_no_more(m->session);
		counts.closed++;
		break;
	case WIRE_LANE_REMOVE:
		had_no_more(ended(m->session, m));
		counts.lanes_gone++;
		break;
	default:
		had_no_more(ended(m->session, m));
		counts.revoked++;
		break;
	}
}

static void all_gone(void)
{
	fake_workers_gone();
	memset(said, 0, sizeof(said));
}

static void begun(const struct wire_message *m)
{
	counts.sessions += m->type == WIRE_SESSION_OPEN;
	counts.lanes += m->type == WIRE_LANE_ADD;
	counts.grants += m->type == WIRE_GRANT;
}

/* What the guest's kernel believes from now on. */
static void hear(const struct wire_message *m)
{
	struct said *s = m->reserved && m->reserved < n_said ? &said[m->reserved] : NULL;

	if (!s || !s->is_asked || m->type != s->message.type)
		return;
	s->is_asked = false;
	if (m->type == WIRE_HELLO)
		all_gone();
	else if (begins(m) && m->error)
		had_no_more(m->reserved);
	else if (begins(m))
		begun(m);
	else if (m->error == 0)
		ended_well(m);
}

static size_t answer_write(const struct ram *ram, const struct chain *chain, const void *from,
			   size_t size)
{
	hear(from);
	return chain_write(ram, chain, from, size);
}

static uint64_t ring_at(unsigned queue, unsigned part)
{
	return (queue * 3 + part) * 4096;
}

static void memory_begin(void)
{
	struct ram_region regions[] = {
		{ .user = USER, .size = LOW_SIZE, .fd = memfd_create("ram", 0) },
		{ .guest = HIGH, .user = USER + LOW_SIZE, .size = HIGH_SIZE, .offset = LOW_SIZE },
	};

	if (regions[0].fd < 0 || ftruncate(regions[0].fd, LOW_SIZE + HIGH_SIZE) < 0)
		abort();
	regions[1].fd = dup(regions[0].fd);
	if (regions[1].fd < 0 || ram_set(&machine.vhost.ram, regions, 2) < 0)
		abort();
}

static void queue_begin(unsigned i)
{
	struct vhost_queue *queue = &machine.vhost.queues[i];

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

static void machine_begin(void)
{
	unsigned i;

	memory_begin();
	for (i = 0; i < COTENANT_N_QUEUES; i++)
		queue_begin(i);
	event_list_init(&machine.events);
	machine.said_hello = true;
	machine.features = COTENANT_F_USER_DOORBELL;
	memset(said, 0, sizeof(said));
	n_said = 1;
	is_honest = true;
	fake_workers_begin(&machine.vhost.ram, &kernel);
}

/* Hands a chain over: what lies at @at is read, and there is room behind it. */
static void hand_over(enum cotenant_queue number, uint64_t at, uint32_t n_read, uint32_t n_write)
{
	struct vhost_queue *queue = &machine.vhost.queues[number];
	struct vring_desc *desc = ram_at(&machine.vhost.ram, ring_at(number, 0), 2 * sizeof(*desc));
	struct vring_avail *avail = ram_at(&machine.vhost.ram, ring_at(number, 1), 4096);

	desc[0] = (struct vring_desc){ at, n_read, n_write ? VRING_DESC_F_NEXT : 0, 1 };
	desc[1] = (struct vring_desc){ at + n_read, n_write, VRING_DESC_F_WRITE, 0 };
	avail->ring[avail->idx++ % RING_SIZE] = n_read ? 0 : 1;
	kicked(&machine.vhost, number);
	if (!queue->ring.avail)
		is_honest = false;
}

static struct wire_message message_of(const struct step *step)
{
	const struct cotenant_hello hello = { .magic = WIRE_MAGIC,
					      .version = COTENANT_ABI_VERSION,
					      .features = step->size };
	struct wire_message m = { .type = step->type % (WIRE_DEVICE + 2),
				  .session = step->session % FAKE_WORKERS,
				  .id = step->id % FAKE_LANES,
				  .address = step->address,
				  .size = step->size,
				  .magic = WIRE_MAGIC };

	if (m.type == WIRE_HELLO)
		memcpy(m.data, &hello, sizeof(hello));
	else
		memcpy(m.hash, wire_hash, WIRE_HASH_SIZE);
	if (step->flags & FLAG_NUMBERS) {
		m.session = step->session % (WIRE_MAX_SESSIONS + 1);
		m.id = step->id % (WIRE_MAX_GRANTS + 1);
	}
	if (step->flags & FLAG_PROTOCOL)
		m.data[step->offset % sizeof(m.data)] ^= 1;
	return m;
}

/* Pieces as they should be: a session's are two, a lane's one, and a grant's as they come. */
static void size_pieces(struct wire_message *m, struct wire_piece *pieces, uint32_t flags)
{
	uint64_t size = 0;
	uint32_t i;

	if (m->type == WIRE_SESSION_OPEN) {
		m->n_pieces = 2;
		pieces[0] = (struct wire_piece){ ROOM, SESSION_SIZE };
		pieces[1] = (struct wire_piece){ ROOM + SESSION_SIZE, WIRE_HEAP_SIZE };
	} else if (m->type == WIRE_LANE_ADD) {
		m->n_pieces = 1;
		pieces[0].size = LANE_SIZE;
	} else if (m->type == WIRE_HELLO) {
		m->n_pieces = 1;
		pieces[0].size = 4096;
	}
	for (i = 0; i < m->n_pieces; i++)
		size += pieces[i].size;
	if (m->type == WIRE_SESSION_OPEN)
		size = WIRE_HEAP_SIZE;
	if (!(flags & FLAG_SIZE))
		m->size = size;
	if (m->type == WIRE_GRANT && !(flags & FLAG_SIZE))
		m->address -= m->address % 4096;
}

static void name_pieces(struct wire_message *m, struct wire_piece *pieces, const struct step *step)
{
	uint64_t at = ROOM + SESSION_SIZE + WIRE_HEAP_SIZE;
	uint32_t i;

	if (step->offset % 2)
		at = HIGH;
	m->n_pieces = begins(m) ? 1 + step->n_pieces % (MAX_PIECES - 1) : 0;
	for (i = 0; i < m->n_pieces; i++)
		pieces[i] = (struct wire_piece){ at + (step->offset / 2 + i) % 512 * 4096,
						 (1 + step->id / FAKE_LANES % 4) * 4096 };
	if (!(step->flags & FLAG_PIECES)) {
		size_pieces(m, pieces, step->flags);
		return;
	}
	m->n_pieces = step->n_pieces % MAX_PIECES;
	pieces[step->offset % MAX_PIECES].address ^= step->address;
	pieces[step->offset % MAX_PIECES].size ^= step->size;
}

static void send_message(const struct step *step)
{
	struct wire_message m = message_of(step);
	struct wire_piece pieces[MAX_PIECES] = { 0 };
	uint8_t *room = ram_at(&machine.vhost.ram, ROOM / 2, ROOM / 2);
	struct said *s = &said[n_said];

	if (n_said == MAX_MESSAGES)
		return;
	name_pieces(&m, pieces, step);
	if (m.session >= FAKE_WORKERS)
		is_honest = false;
	m.reserved = n_said++;
	*s = (struct said){ .is_asked = true, .is_had = begins(&m), .message = m };
	memcpy(s->pieces, pieces, sizeof(pieces));
	memcpy(room, &m, sizeof(m));
	memcpy(room + sizeof(m), pieces, m.n_pieces * sizeof(*pieces));
	fake_worker_for(m.session);
	hand_over(COTENANT_QUEUE_CONTROL, ROOM / 2,
		  (uint32_t)(sizeof(m) + m.n_pieces * sizeof(*pieces)), sizeof(m));
	fake_settle();
}

/* A lane's words as the two sides would have written them, and its bell in one of two ways. */
static void ring_bell(const struct step *step)
{
	const struct wire_message add = { .type = WIRE_LANE_REMOVE, .id = step->id % FAKE_LANES };
	struct cotenant_doorbell bell = { .session = step->session % FAKE_WORKERS, .lane = add.id };
	uint32_t n = ended(bell.session, &add);
	struct lane *lane =
		n ? ram_at(&machine.vhost.ram, said[n].pieces[0].address, sizeof(*lane)) : NULL;

	if (lane) {
		lane->guest.head = step->size;
		lane->host.tail = step->address;
		lane->bell.sleeps = step->type;
	}
	if (step->flags & FLAG_NUMBERS)
		bell = (struct cotenant_doorbell){ .session = step->session, .lane = step->id };
	memcpy(ram_at(&machine.vhost.ram, ROOM / 2, sizeof(bell)), &bell, sizeof(bell));
	if (step->flags & FLAG_PROTOCOL)
		kicked(&machine.vhost, COTENANT_QUEUE_DOORBELL);
	else
		hand_over(COTENANT_QUEUE_DOORBELL, ROOM / 2, sizeof(bell), 0);
	fake_worker_wakes(bell.session, bell.lane);
}

static void give_buffer(const struct step *step)
{
	const struct vhost_queue *queue = &machine.vhost.queues[COTENANT_QUEUE_EVENTS];
	uint16_t used = queue->ring.next_used;

	hand_over(COTENANT_QUEUE_EVENTS, ROOM / 2, /* n_read= */ 0,
		  step->flags & FLAG_SIZE ? step->id % 64 : sizeof(struct cotenant_event));
	counts.told += queue->ring.next_used != used;
}

static size_t write_bytes(const struct step *step, const uint8_t *data, size_t size)
{
	size_t n = MIN(size, (size_t)step->id % 256);
	uint8_t *at = ram_at(&machine.vhost.ram, step->offset % ROOM, n);

	is_honest = false;
	if (at)
		memcpy(at, data, n);
	fake_worker_for(0);
	kicked(&machine.vhost, step->type % COTENANT_N_QUEUES);
	fake_settle();
	return n;
}

static void worker_says(const struct step *step)
{
	struct wire_message m = message_of(step);

	m.error = (int32_t)(step->n_pieces % 3) - 1;
	if (m.type == WIRE_RESERVE)
		m.at = step->address;
	fake_worker_says(step->session % FAKE_WORKERS, &m);
}

/* Return: how many bytes behind it are its own. */
static size_t take_step(const struct step *step, const uint8_t *data, size_t size)
{
	uint32_t session = step->session % FAKE_WORKERS;

	switch (step->kind % N_STEPS) {
	case STEP_MESSAGE:
		send_message(step);
		break;
	case STEP_WORKER:
		fake_worker_works(session, /* keeps= */ step->flags & 1);
		break;
	case STEP_MAPPER:
		fake_mapper_works(session, step->flags ? step->offset : 0);
		break;
	case STEP_WORKER_SAYS:
		worker_says(step);
		break;
	case STEP_BELL:
		ring_bell(step);
		break;
	case STEP_CALL:
		fake_worker_rings(session, step->id, /* closes= */ step->flags & 1);
		break;
	case STEP_EVENTS:
		give_buffer(step);
		break;
	case STEP_END:
		fake_worker_ends(session, /* mapper= */ step->flags & 1);
		break;
	case STEP_BYTES:
		return write_bytes(step, data, size);
	case STEP_RESET:
		stop(&machine.vhost);
		all_gone();
		break;
	}
	return 0;
}

/* What nobody reaches any more is tried by nobody. */
static void say_what_was_reached(void)
{
	const struct {
		const char *what;
		unsigned long n;
	} reached[] = {
		{ "sessions", counts.sessions },
		{ "lanes", counts.lanes },
		{ "grants", counts.grants },
		{ "mappings", fake_counts.mapped },
		{ "mappings refused", fake_counts.not_mapped },
		{ "lanes removed", counts.lanes_gone },
		{ "grants revoked", counts.revoked },
		{ "grants kept", fake_counts.kept },
		{ "lanes woken", fake_counts.woken },
		{ "events told", counts.told },
		{ "sessions closed", counts.closed },
	};
	bool all = true;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(reached); i++) {
		fprintf(stderr, "reached: %lu %s\n", reached[i].n, reached[i].what);
		all = all && reached[i].n;
	}
	/* A few inputs by hand need not. */
	if (!all && counts.inputs > 1000) {
		fprintf(stderr, "not all was reached\n");
		_exit(1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct worker_program program = { "worker", "libcuda.so.1" };
	struct step step;
	size_t n;

	if (counts.inputs++ == 0) {
		atexit(say_what_was_reached);
		/* As the broker does. */
		signal(SIGPIPE, SIG_IGN);
	}
	log_init("fuzz", LOG_EMERG);
	session_limit_bytes(MAX_BYTES);
	machine.program = &program;
	machine_begin();
	while (size >= sizeof(step)) {
		memcpy(&step, data, sizeof(step));
		data += sizeof(step);
		size -= sizeof(step);
		n = take_step(&step, data, size);
		data += n;
		size -= n;
	}
	end_all(&machine);
	fake_workers_gone();
	ram_done(&machine.vhost.ram);
	return 0;
}
