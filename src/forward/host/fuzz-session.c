// SPDX-License-Identifier: Apache-2.0
/*
 * A hostile guest and a hostile worker against the broker's side of a session. Each 16 bytes of the input are
 * a message of one of them.
 */
#include "forward/host/connection.h"

#include "base/base.h"
#include "base/log.h"
#include "forward/wire.h"

#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

struct step {
	uint8_t from_worker;
	uint8_t type;
	uint16_t id;
	int32_t error;
	uint32_t address;
	uint32_t size;
};

static int worker_end = -1;

int worker_start(_unused_ const struct worker_program *program, _unused_ bool mapped,
		 struct worker *ret)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) < 0)
		return -1;
	worker_end = pair[1];
	/* Nobody's: what is killed at the end of the session does not exist. */
	*ret = (struct worker){ 0x7ffffff0, pair[0], eventfd(0, 0), -1 };
	return 0;
}

static void drain(int fd)
{
	static struct socket_message message;

	while (fd >= 0 && socket_receive(fd, &message) == 0)
		socket_message_done(&message);
}

static struct socket_message *message_of(const struct step *step)
{
	static struct socket_message m;

	m.n_fds = 0;
	m.message = (struct wire_message){ .type = step->type % 12,
					   .error = step->from_worker & 2 ? step->error : 0,
					   .id = step->id,
					   .address = (uint64_t)step->address << (step->type >> 4),
					   .size = (uint64_t)step->size << (step->type >> 4) };
	if (m.message.type == WIRE_HELLO && step->id % 8) {
		m.message.magic = WIRE_MAGIC;
		memcpy(m.message.hash, wire_hash, WIRE_HASH_SIZE);
	}
	if (m.message.type == WIRE_GRANT)
		m.message.size = (uint64_t)(step->size % 64) << 12;
	return &m;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct worker_program program = { "worker", "libcuda.so.1" };
	struct connection *connection;
	struct session *session;
	struct step step;
	int pair[2], r = 0;

	log_init("fuzz", LOG_EMERG);
	session_limit_bytes(1 << 20);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) < 0 ||
	    connection_new(pair[0], &program, &connection) < 0)
		abort();
	session = connection_session(connection);
	for (; r == 0 && size >= sizeof(step); data += sizeof(step), size -= sizeof(step)) {
		memcpy(&step, data, sizeof(step));
		if (step.from_worker & 1 && session->worker.fd >= 0)
			r = session_answer(session, message_of(&step));
		else
			r = connection_request(connection, message_of(&step));
		drain(pair[1]);
		drain(worker_end);
	}
	/* What the loop does when the worker has ended. */
	session_end_now(session);
	session->side->gone(session);
	close(pair[1]);
	if (worker_end >= 0)
		close(TAKE_FD(worker_end));
	return 0;
}
