// SPDX-License-Identifier: Apache-2.0
#include "forward/vm/fake-front.h"

#include "base/base.h"

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define PAGE 4096

struct header {
	uint32_t request;
	uint32_t flags;
	uint32_t size;
};

static bool send_request(struct front *f, const struct header *header, const void *payload, int fd)
{
	struct iovec parts[] = { { (void *)header, sizeof(*header) },
				 { (void *)payload, header->size } };
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control = { .header = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
	/* The memory's descriptor goes along once for each region. */
	int fds[] = { fd, fd }, n = header->request == 5 ? 2 : 1;

	if (fd >= 0) {
		control.header.cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
		memcpy(CMSG_DATA(&control.header), fds, (size_t)n * sizeof(int));
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
	}
	return sendmsg(f->socket, &message, MSG_NOSIGNAL) > 0;
}

static bool receive(struct front *f, void *payload, size_t size)
{
	struct header header;

	return recv(f->socket, &header, sizeof(header), MSG_WAITALL) == sizeof(header) &&
	       header.size == size && header.flags & 4 &&
	       recv(f->socket, payload, size, MSG_WAITALL) == (ssize_t)size;
}

uint64_t front_ask(struct front *f, uint32_t request, const void *payload, size_t size)
{
	const struct header header = { request, 1, (uint32_t)size };
	uint64_t answer;

	return send_request(f, &header, payload, -1) && receive(f, &answer, sizeof(answer))
		       ? answer
		       : UINT64_MAX;
}

bool front_tell(struct front *f, uint32_t request, const void *payload, size_t size, int fd)
{
	const struct header header = { request, 1 | 8, (uint32_t)size };
	uint64_t answer;

	return send_request(f, &header, payload, fd) && receive(f, &answer, sizeof(answer)) &&
	       answer == 0;
}

unsigned front_stop(struct front *f, unsigned queue)
{
	const struct header header = { 11, 1, 2 * sizeof(uint32_t) };
	uint32_t state[2] = { queue, 0 };

	return send_request(f, &header, state, -1) && receive(f, state, sizeof(state)) ? state[1]
										       : UINT32_MAX;
}

uint64_t front_alloc(struct front *f, uint64_t size)
{
	uint64_t at = f->next;

	f->next += (size + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	return at;
}

void *front_at(const struct front *f, uint64_t guest)
{
	return f->ram + (guest < FRONT_HIGH ? guest : FRONT_REGION_SIZE + guest - FRONT_HIGH);
}

static bool share_memory(struct front *f)
{
	const uint64_t user = (uintptr_t)f->ram;
	struct {
		uint32_t n, padding;
		uint64_t regions[2][4];
	} table = { .n = 2,
		    .regions = { { 0, FRONT_REGION_SIZE, user, 0 },
				 { FRONT_HIGH, FRONT_REGION_SIZE, user + FRONT_REGION_SIZE,
				   FRONT_REGION_SIZE } } };

	return front_tell(f, 5, &table, sizeof(table), f->memory);
}

static bool start_queue(struct front *f, unsigned number)
{
	struct front_queue *q = &f->queues[number];
	uint64_t bell = number;
	uint32_t size[] = { number, FRONT_QUEUE_SIZE }, base[] = { number, 0 },
		 on[] = { number, 1 };
	struct {
		uint32_t queue, flags;
		uint64_t desc, used, avail, log;
	} address = { .queue = number };

	q->desc = front_at(f, front_alloc(f, PAGE));
	q->avail = front_at(f, front_alloc(f, PAGE));
	q->used = front_at(f, front_alloc(f, PAGE));
	address.desc = (uintptr_t)q->desc;
	address.avail = (uintptr_t)q->avail;
	address.used = (uintptr_t)q->used;
	q->kick = eventfd(0, EFD_NONBLOCK);
	q->call = eventfd(0, EFD_NONBLOCK);
	return front_tell(f, 8, size, sizeof(size), -1) &&
	       front_tell(f, 10, base, sizeof(base), -1) &&
	       front_tell(f, 9, &address, sizeof(address), -1) &&
	       front_tell(f, 12, &bell, sizeof(bell), q->kick) &&
	       front_tell(f, 13, &bell, sizeof(bell), q->call) &&
	       front_tell(f, 18, on, sizeof(on), -1);
}

bool front_start(struct front *f, int socket)
{
	uint64_t features, protocol;
	unsigned i;
	bool ok;

	*f = (struct front){ .socket = socket, .memory = memfd_create("ram", 0), .next = 1 << 20 };
	if (f->memory < 0 || ftruncate(f->memory, 2 * FRONT_REGION_SIZE) < 0)
		return false;
	f->ram =
		mmap(NULL, 2 * FRONT_REGION_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, f->memory, 0);
	features = front_ask(f, 1, NULL, 0);
	protocol = front_ask(f, 15, NULL, 0);
	ok = f->ram != MAP_FAILED && features & 1ULL << 32 &&
	     front_tell(f, 16, &protocol, sizeof(protocol), -1) &&
	     front_ask(f, 17, NULL, 0) >= FRONT_QUEUES &&
	     front_tell(f, 2, &features, sizeof(features), -1) && share_memory(f);
	for (i = 0; i < FRONT_QUEUES && ok; i++)
		ok = start_queue(f, i);
	return ok;
}

uint64_t front_send(struct front *f, unsigned queue, const void *read, size_t n_read,
		    size_t n_write)
{
	struct front_queue *q = &f->queues[queue];
	uint16_t head = (uint16_t)(2 * q->n_sent % FRONT_QUEUE_SIZE);
	uint64_t at = front_alloc(f, n_read + n_write + 1), room = at + n_read;

	if (n_read)
		memcpy(front_at(f, at), read, n_read);
	q->desc[head] = (struct vring_desc){ at, (uint32_t)n_read, n_write ? VRING_DESC_F_NEXT : 0,
					     (uint16_t)(head + 1) };
	q->desc[head + 1] = (struct vring_desc){ room, (uint32_t)n_write, VRING_DESC_F_WRITE, 0 };
	/* A chain of nothing but room begins with it. */
	q->avail->ring[q->n_sent % FRONT_QUEUE_SIZE] = n_read ? head : (uint16_t)(head + 1);
	__atomic_store_n(&q->avail->idx, ++q->n_sent, __ATOMIC_RELEASE);
	return room;
}

void front_kick(struct front *f, unsigned queue)
{
	uint64_t one = 1;

	if (write(f->queues[queue].kick, &one, sizeof(one)) < 0)
		abort();
}

int front_wait(struct front *f, unsigned queue, int timeout_ms)
{
	struct front_queue *q = &f->queues[queue];
	struct pollfd fd = { q->call, POLLIN, 0 };
	uint64_t n;

	while (__atomic_load_n(&q->used->idx, __ATOMIC_ACQUIRE) == q->n_taken) {
		if (poll(&fd, 1, timeout_ms) <= 0)
			return -1;
		if (read(q->call, &n, sizeof(n)) < 0)
			return -1;
	}
	return (int)q->used->ring[q->n_taken++ % FRONT_QUEUE_SIZE].len;
}
