/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest that breaks the rules: hostile ROUNDS. In each round it opens a session with the broker and writes
 * nonsense into what both share: positions that jump, records of impossible sizes and of every call with
 * random words, buffers beyond their grants. It needs no library, only the protocol's header.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "forward/transport.h"

static unsigned seed = 1;

static uint64_t noise(void)
{
	uint64_t x = (uint64_t)rand_r(&seed) << 32 ^ (uint64_t)rand_r(&seed) << 11 ^
		     (uint64_t)rand_r(&seed);

	/* Small numbers and those near the ends meet more of the checks. */
	switch (rand_r(&seed) % 4) {
	case 0:
		return x % 64;
	case 1:
		return 0 - x % 64;
	case 2:
		return x % (1 << 20);
	default:
		return x;
	}
}

static int ask(int control, struct wire_message *m, int *fds, int n_fds)
{
	char room[CMSG_SPACE(4 * sizeof(int))];
	struct iovec part = { m, sizeof(*m) };
	struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (send(control, m, sizeof(*m), MSG_NOSIGNAL) < 0)
		return -1;
	header.msg_control = room;
	header.msg_controllen = sizeof(room);
	if (recvmsg(control, &header, 0) != sizeof(*m))
		return -1;
	c = CMSG_FIRSTHDR(&header);
	if (n_fds && (!c || c->cmsg_len != CMSG_LEN(n_fds * sizeof(int))))
		return -1;
	if (n_fds)
		memcpy(fds, CMSG_DATA(c), n_fds * sizeof(int));
	return m->error;
}

static int connected(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", getenv("COTENANT_FORWARD"));
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? fd : -1;
}

/* The refusal of a wrong version tells the right one. */
static int hello(int control)
{
	struct wire_message m = { .type = WIRE_HELLO, .magic = WIRE_MAGIC };

	if (ask(control, &m, NULL, 0) == 0)
		return -1;
	m.type = WIRE_HELLO;
	m.magic = WIRE_MAGIC;
	return ask(control, &m, NULL, 0);
}

static void odd_requests(int control)
{
	for (int i = 0; i < 20; i++) {
		struct wire_message m = { .type = (uint32_t)noise() % 12 + WIRE_LANE_REMOVE,
					  .id = (uint32_t)noise(),
					  .address = noise() & ~4095ULL,
					  .size = (noise() % 64) << 12 };

		if (m.type == WIRE_GRANT)
			continue;
		ask(control, &m, NULL, 0);
	}
}

/* Of the driver's calls mostly, and of the commands that are none. */
static uint16_t some_call(void)
{
	switch (rand_r(&seed) % 16) {
	case 0:
		return (uint16_t)noise();
	case 1:
		return (uint16_t)(WIRE_CLASSIFY + rand_r(&seed) % 12);
	default:
		return (uint16_t)(rand_r(&seed) % 700);
	}
}

static void write_record(uint8_t *at, uint64_t number)
{
	struct wire_record *record = (struct wire_record *)at;
	uint64_t *body = (uint64_t *)(record + 1);

	record->size =
		rand_r(&seed) % 8 ? sizeof(*record) + 8 * (rand_r(&seed) % 40) : (uint32_t)noise();
	record->call = some_call();
	record->flags = WIRE_F_REPLY;
	record->ticket = 0;
	record->number = number;
	for (int i = 0; i < 40; i++)
		body[i] = noise();
}

static void nonsense(struct lane *lane, int kick)
{
	uint8_t *ring = (uint8_t *)lane + LANE_RING_OFFSET;
	uint64_t head = 0, one = 1;

	for (int i = 0; i < 100; i++) {
		write_record(ring + head % (LANE_RING_SIZE / 2), (uint64_t)i + 1);
		head += rand_r(&seed) % 30 ? 64 * (1 + (uint64_t)rand_r(&seed) % 6) : noise();
		__atomic_store_n(&lane->guest.head, head, __ATOMIC_SEQ_CST);
		if (write(kick, &one, sizeof(one)) < 0)
			return;
	}
}

static int round_trip(int i)
{
	struct wire_message m = { .type = WIRE_SESSION_OPEN };
	int control = connected(), session[3], lane[4];
	void *at;

	if (control < 0 || hello(control) || ask(control, &m, session, 3))
		return 1;
	m = (struct wire_message){ .type = WIRE_LANE_ADD };
	if (ask(control, &m, lane, 4))
		return 1;
	at = mmap(NULL, LANE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, lane[0], 0);
	if (at == MAP_FAILED)
		return 1;
	seed = (unsigned)i + 1;
	/* Neither side can make the memory smaller. */
	if (ftruncate(lane[0], 0) == 0)
		return 1;
	nonsense(at, lane[2]);
	odd_requests(control);
	poll(&(struct pollfd){ control, POLLIN, 0 }, 1, 50);
	munmap(at, LANE_SIZE);
	for (int k = 0; k < 3; k++)
		close(session[k]);
	for (int k = 0; k < 4; k++)
		close(lane[k]);
	close(control);
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 0; i < atoi(argv[1]); i++)
		if (round_trip(i)) {
			fprintf(stderr, "round %d: the broker is not there\n", i);
			return 1;
		}
	printf("%s rounds of nonsense\n", argv[1]);
	return 0;
}
