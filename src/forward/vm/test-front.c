// SPDX-License-Identifier: Apache-2.0
/*
 * A guest without a virtual machine against broker and worker: test-front SOCKET.
 *
 * Everything that a guest's kernel does is done here by hand: a session whose memory is scattered over the guest,
 * a lane, a grant, and their ends; then what the worker has mapped of the guest's memory is counted.
 */
#include "forward/vm/fake-front.h"

#include "base/base.h"
#include "base/check.h"
#include "forward/virtio-abi.h"
#include "forward/wire.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#define PAGE	      4096
#define TIMEOUT_MS    60000
#define MAX_PIECES    16
#define GRANT_ADDRESS 0x300000000000ULL

static struct front front;

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : fd;
}

/* Return: the answer's error, or -ETIME where there is none. The answer is in @message. */
static int ask(struct wire_message *message, const struct wire_piece *pieces, uint32_t n)
{
	char bytes[sizeof(*message) + MAX_PIECES * sizeof(*pieces)];
	uint64_t room;

	message->n_pieces = n;
	memcpy(bytes, message, sizeof(*message));
	memcpy(bytes + sizeof(*message), pieces, n * sizeof(*pieces));
	room = front_send(&front, COTENANT_QUEUE_CONTROL, bytes,
			  sizeof(*message) + n * sizeof(*pieces), sizeof(*message));
	front_kick(&front, COTENANT_QUEUE_CONTROL);
	if (front_wait(&front, COTENANT_QUEUE_CONTROL, TIMEOUT_MS) != sizeof(*message))
		return -ETIME;
	memcpy(message, front_at(&front, room), sizeof(*message));
	return message->error;
}

static int ask_short(uint32_t type, uint32_t session, uint32_t id)
{
	struct wire_message message = { .type = type, .session = session, .id = id };

	return ask(&message, NULL, 0);
}

static uint64_t say_hello(void)
{
	struct cotenant_hello hello = { .magic = WIRE_MAGIC,
					.version = COTENANT_ABI_VERSION + 1,
					.features = COTENANT_F_USER_DOORBELL };
	struct wire_message message = { .type = WIRE_HELLO };
	struct wire_piece beat = { front_alloc(&front, PAGE), PAGE };

	check(ask_short(WIRE_SESSION_OPEN, 1, 0) == -ENOTCONN, "hello: nothing before it");
	memcpy(message.data, &hello, sizeof(hello));
	check(ask(&message, &beat, 1) == -EPROTO, "hello: another version is refused");
	message.type = WIRE_HELLO;
	hello.version = COTENANT_ABI_VERSION;
	memcpy(message.data, &hello, sizeof(hello));
	check(ask(&message, &beat, 1) == 0, "hello: ours is not");
	memcpy(&hello, message.data, sizeof(hello));
	check(hello.max_sessions == WIRE_MAX_SESSIONS && hello.max_pieces >= 4112,
	      "hello: what may be asked for");
	return beat.address;
}

/* The heap in three pieces, of both regions and out of order. */
static uint64_t open_session(void)
{
	const uint64_t part = WIRE_HEAP_SIZE / 4;
	struct wire_message message = {
		.type = WIRE_SESSION_OPEN, .session = 1, .size = WIRE_HEAP_SIZE, .magic = WIRE_MAGIC
	};
	struct wire_piece pieces[] = {
		{ front_alloc(&front, SESSION_SIZE), SESSION_SIZE },
		{ FRONT_HIGH + part, part },
		{ front_alloc(&front, 2 * part), 2 * part },
		{ FRONT_HIGH, part },
	};

	check(ask(&message, pieces, 4) == -EPROTO,
	      "open: a library of another protocol is refused");
	message = (struct wire_message){
		.type = WIRE_SESSION_OPEN, .session = 1, .size = WIRE_HEAP_SIZE, .magic = WIRE_MAGIC
	};
	memcpy(message.hash, wire_hash, WIRE_HASH_SIZE);
	pieces[3].address = FRONT_HIGH + FRONT_REGION_SIZE - PAGE;
	check(ask(&message, pieces, 4) == -EFAULT, "open: nothing beyond the guest's memory");
	message = (struct wire_message){
		.type = WIRE_SESSION_OPEN, .session = 1, .size = WIRE_HEAP_SIZE, .magic = WIRE_MAGIC
	};
	memcpy(message.hash, wire_hash, WIRE_HASH_SIZE);
	pieces[3].address = FRONT_HIGH;
	check(ask(&message, pieces, 4) == 0, "open: a session");
	return pieces[0].address;
}

/* Asks the worker through the lane whether it knows an address, as no driver does. */
static bool lane_works(uint64_t guest, uint64_t number)
{
	struct lane *lane = front_at(&front, guest);
	uint8_t *ring = (uint8_t *)lane + LANE_RING_OFFSET;
	const struct wire_reply *reply = (const void *)((uint8_t *)lane + LANE_REPLY_OFFSET);
	struct wire_record record = { .size = sizeof(record) + sizeof(uint64_t),
				      .call = WIRE_CLASSIFY,
				      .flags = WIRE_F_REPLY,
				      .number = number };
	uint64_t address = 0x1000, head = lane->guest.head;

	memcpy(ring + head, &record, sizeof(record));
	memcpy(ring + head + sizeof(record), &address, sizeof(address));
	__atomic_store_n(&lane->guest.waits, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&lane->guest.head, head + LANE_ALIGN, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&lane->bell.sleeps, __ATOMIC_SEQ_CST) % 2)
		front_kick(&front, COTENANT_QUEUE_DOORBELL);
	if (front_wait(&front, COTENANT_QUEUE_EVENTS, TIMEOUT_MS) != sizeof(struct cotenant_event))
		return false;
	return __atomic_load_n(&lane->host.replied, __ATOMIC_ACQUIRE) == number &&
	       reply->result == 0 && *(const uint64_t *)(reply + 1) == 0;
}

static void test_lane(void)
{
	struct wire_message message = { .type = WIRE_LANE_ADD, .session = 1, .id = 7 };
	struct wire_piece piece = { front_alloc(&front, LANE_SIZE), LANE_SIZE };
	uint64_t event =
		front_send(&front, COTENANT_QUEUE_EVENTS, NULL, 0, sizeof(struct cotenant_event));
	const struct cotenant_event *said = front_at(&front, event);
	int i;

	for (i = 0; i < 3; i++)
		front_send(&front, COTENANT_QUEUE_EVENTS, NULL, 0, sizeof(*said));
	front_kick(&front, COTENANT_QUEUE_EVENTS);
	check(ask(&message, &piece, 1) == 0, "lane: begins");
	message.type = WIRE_LANE_ADD;
	check(ask(&message, &piece, 1) == -EEXIST, "lane: a number once");
	check(lane_works(piece.address, 1), "lane: a call is answered, and an event tells it");
	check(said->session == 1 && said->lane == 7, "lane: the event names it");
	usleep(20000);
	check(lane_works(piece.address, 2), "lane: the doorbell wakes a sleeper");
	check(ask_short(WIRE_LANE_REMOVE, 1, 7) == 0, "lane: ends");
	check(ask_short(WIRE_LANE_REMOVE, 1, 7) == -ENOENT, "lane: once");
}

static void test_grant(void)
{
	struct wire_piece pieces[] = { { FRONT_HIGH + (32 << 20), PAGE },
				       { front_alloc(&front, 2 * PAGE), 2 * PAGE } };
	struct wire_message message = { .type = WIRE_GRANT,
					.session = 1,
					.id = 1,
					.size = 3 * PAGE,
					.address = GRANT_ADDRESS };

	check(ask(&message, pieces, 2) == 0, "grant: of scattered pages");
	message = (struct wire_message){ .type = WIRE_GRANT,
					 .session = 1,
					 .id = 2,
					 .size = 4 * PAGE,
					 .address = GRANT_ADDRESS };
	check(ask(&message, pieces, 2) == -EINVAL, "grant: pieces of another size");
	message = (struct wire_message){
		.type = WIRE_GRANT, .session = 1, .id = 4096, .size = 3 * PAGE
	};
	check(ask(&message, pieces, 2) == -EINVAL, "grant: numbers have an end");
	check(ask_short(WIRE_REVOKE, 1, 1) == 0 && ask_short(WIRE_REVOKE, 1, 1) == -ENOENT,
	      "grant: ends once");
	message = (struct wire_message){ .type = WIRE_GRANT,
					 .session = 1,
					 .id = 1,
					 .size = 3 * PAGE,
					 .address = GRANT_ADDRESS };
	check(ask(&message, pieces, 2) == 0, "grant: a number is free again");
}

/* Whoever stands still meanwhile is not given up at once. */
static bool beats_again(const struct cotenant_beat *beat)
{
	uint64_t before = __atomic_load_n(&beat->beat, __ATOMIC_RELAXED);
	unsigned waited_ms = 0;

	while (__atomic_load_n(&beat->beat, __ATOMIC_RELAXED) == before) {
		if (waited_ms >= TIMEOUT_MS)
			return false;
		usleep(COTENANT_BEAT_MS * 1000);
		waited_ms += COTENANT_BEAT_MS;
	}
	return true;
}

static void test_end(uint64_t beat_at, uint64_t block)
{
	const struct cotenant_beat *beat = front_at(&front, beat_at);
	const struct session_block *session = front_at(&front, block);

	check(beats_again(beat), "beat: goes on");
	check(!session->host.lost, "end: not lost before");
	check(ask_short(WIRE_SESSION_CLOSE, 1, 0) == 0, "end: of the session");
	check(ask_short(WIRE_SESSION_CLOSE, 1, 0) == -ENOENT, "end: once");
	open_session();
	check(front_stop(&front, COTENANT_QUEUE_CONTROL) != UINT32_MAX,
	      "end: of the queue, with a session open");
}

/* Tells whoever started us, and goes on when he says so: he looks at the worker meanwhile. */
static void pause_here(void)
{
	char line[8];

	printf("paused\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		printf("nobody is there\n");
}

int main(int argc, char **argv)
{
	uint64_t beat, block;
	int fd = argc == 2 ? connect_to(argv[1]) : -EINVAL;

	if (!check(fd >= 0 && front_start(&front, fd), "a back-end answers"))
		return check_result();
	beat = say_hello();
	block = open_session();
	test_lane();
	test_grant();
	pause_here();
	test_end(beat, block);
	return check_result();
}
