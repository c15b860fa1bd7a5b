// SPDX-License-Identifier: Apache-2.0
/*
 * A unix socket to the broker. The environment names it: COTENANT_FORWARD.
 *
 * The broker makes all shared memory, so memory that is to keep its contents is copied once into what
 * the broker made, which then takes its place. Another thread that writes there meanwhile may lose what it
 * writes; registering memory in use is the program's mistake on real hardware, too, but not a fatal one.
 */
#include "forward/guest/carrier.h"

#include "base/base.h"
#include "forward/guest/log.h"
#include "forward/socket.h"
#include "forward/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

static int control = -1;

static int host_connect(void)
{
	const char *path = getenv("COTENANT_FORWARD");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -1;

	if (!path || strlen(path) >= sizeof(address.sun_path))
		return -ENOENT;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* Asks and waits for the answer, whose descriptors the caller gets: @n_fds of them, or an error. */
static int ask(struct wire_message *message, int *ret_fds, size_t n_fds)
{
	static struct socket_message answer;
	uint32_t type = message->type;
	int r;

	r = socket_send(control, message, NULL, 0);
	if (r == 0)
		r = socket_receive(control, &answer);
	if (r < 0)
		return r == -EPIPE ? -ENODEV : r;
	*message = answer.message;
	r = answer.message.error;
	if (r == 0 && (answer.message.type != type || answer.n_fds != n_fds))
		r = -EPROTO;
	if (r < 0)
		socket_message_done(&answer);
	else if (n_fds)
		memcpy(ret_fds, answer.fds, n_fds * sizeof(int));
	return r;
}

static int map(int fd, void *at, uint64_t size, void **ret)
{
	void *mapped =
		mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0), fd, 0);

	if (mapped == MAP_FAILED)
		return -errno;
	/* A child has no session: it gets nothing of ours. */
	if (!at)
		madvise(mapped, size, MADV_DONTFORK);
	*ret = mapped;
	return 0;
}

static int say_hello(void)
{
	struct wire_message message = { .type = WIRE_HELLO, .magic = WIRE_MAGIC };
	char ours[2 * WIRE_HASH_SIZE + 1], theirs[2 * WIRE_HASH_SIZE + 1];
	int r;

	memcpy(message.hash, wire_hash, WIRE_HASH_SIZE);
	r = ask(&message, NULL, 0);
	if (r == -EPROTO) {
		wire_hash_text(wire_hash, ours);
		wire_hash_text(message.hash, theirs);
		guest_log("this library speaks protocol %s, the host %s", ours, theirs);
	}
	return r;
}

static int open_session(struct session_block **ret_block, void **ret_heap, int *ret_call)
{
	struct wire_message message = { .type = WIRE_SESSION_OPEN };
	void *block = NULL;
	int fds[3], r;

	control = host_connect();
	if (control < 0)
		return control;
	r = say_hello();
	if (r == 0)
		r = ask(&message, fds, ARRAY_SIZE(fds));
	if (r < 0)
		return r;
	r = map(fds[0], NULL, SESSION_SIZE, &block);
	if (r == 0)
		r = map(fds[1], NULL, WIRE_HEAP_SIZE, ret_heap);
	close(fds[0]);
	close(fds[1]);
	*ret_block = block;
	*ret_call = fds[2];
	return r;
}

static int lane_add(struct carrier_lane *ret)
{
	struct wire_message message = { .type = WIRE_LANE_ADD };
	void *memory = NULL;
	int fds[4], r;

	r = ask(&message, fds, ARRAY_SIZE(fds));
	if (r < 0)
		return r;
	r = map(fds[0], NULL, LANE_SIZE, &memory);
	close(fds[0]);
	if (r < 0) {
		close(fds[1]);
		close(fds[2]);
		close(fds[3]);
		return r;
	}
	*ret = (struct carrier_lane){ .id = message.id,
				      .memory = memory,
				      .kick_end = fds[1],
				      .kick = fds[2],
				      .call = fds[3],
				      .beside = true };
	return 0;
}

static void lane_remove(struct carrier_lane *lane)
{
	struct wire_message message = { .type = WIRE_LANE_REMOVE, .id = lane->id };

	ask(&message, NULL, 0);
	munmap(lane->memory, LANE_SIZE);
	close(lane->kick_end);
	close(lane->kick);
	close(lane->call);
}

static int fill(int fd, const void *from, uint64_t size)
{
	void *at = NULL;
	int r;

	r = map(fd, NULL, size, &at);
	if (r < 0)
		return r;
	memcpy(at, from, size);
	munmap(at, size);
	return 0;
}

static int grant(void *address, uint64_t size, bool keep, uint32_t *ret_id)
{
	struct wire_message message = { .type = WIRE_GRANT,
					.address = (uintptr_t)address,
					.size = size };
	void *mapped;
	int fd, r;

	r = ask(&message, &fd, 1);
	if (r < 0)
		return r;
	r = keep ? fill(fd, address, size) : 0;
	if (r == 0)
		r = map(fd, address, size, &mapped);
	close(fd);
	*ret_id = message.id;
	return r;
}

static int revoke_grant(uint32_t id)
{
	struct wire_message message = { .type = WIRE_REVOKE, .id = id };

	return ask(&message, NULL, 0);
}

/* A page that is put into a pipe wakes the reader as other things do: the kernel looks for an idle CPU. */
static bool kick_apart(int pipe)
{
	static char byte;
	struct iovec one = { &byte, 1 };

	return vmsplice(pipe, &one, 1, SPLICE_F_NONBLOCK) == 1;
}

static void kick(const struct carrier_lane *lane)
{
	if (lane->apart && kick_apart(lane->kick))
		return;
	/* Where there is no room the host has enough to wake up for. */
	if (write(lane->kick, "", 1) < 0)
		return;
}

static int wait_call(int call, int timeout_ms)
{
	struct pollfd fds[] = { { call, POLLIN, 0 }, { control, 0, 0 } };
	uint64_t n;
	int r;

	r = poll(fds, ARRAY_SIZE(fds), timeout_ms);
	if (r < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[0].revents & POLLIN)
		return read(call, &n, sizeof(n)) < 0 ? -errno : 0;
	if (fds[1].revents & (POLLHUP | POLLERR))
		return -ENODEV;
	return r == 0 ? -ETIMEDOUT : 0;
}

const struct carrier carrier_unix = {
	.name = "unix socket",
	.open = open_session,
	.lane_add = lane_add,
	.lane_remove = lane_remove,
	.grant = grant,
	.revoke = revoke_grant,
	.kick = kick,
	.wait = wait_call,
};
