// SPDX-License-Identifier: Apache-2.0
/*
 * A hostile guest and a hostile worker against the broker's side of a session, and a watcher that says anything.
 * Each 16 bytes of the input are a message of one of them.
 */
#include "forward/host/connection.h"

#include "base/base.h"
#include "base/log.h"
#include "forward/host/monitor.h"
#include "forward/host/watcher.h"
#include "forward/wire.h"

#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

/* Nobody's: what is killed at the end of the session does not exist. */
#define WORKER_PID 0x7ffffff0

struct step {
	uint8_t from_worker;
	uint8_t type;
	uint16_t id;
	int32_t error;
	uint32_t address;
	uint32_t size;
};

static int worker_end = -1, watcher_end = -1;

int worker_start(_unused_ const struct worker_program *program, _unused_ bool mapped,
		 struct worker *ret)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) < 0)
		return -1;
	worker_end = pair[1];
	*ret = (struct worker){ WORKER_PID, pair[0], eventfd(0, 0), -1 };
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
	if (m.message.type == WIRE_DEVICE) {
		m.message.id = step->id % (N_QUESTIONS + 1);
		m.message.address = step->address % 4;
	}
	if (m.message.type == WIRE_GRANT)
		m.message.size = (uint64_t)(step->size % 64) << 12;
	return &m;
}

static void watcher_begin(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) < 0 ||
	    monitor_begin(pair[0]) < 0)
		abort();
	watcher_end = pair[1];
}

/* Return: had it been asked? The broker has something to read then, so the loop does not sleep. */
static bool watcher_answers(int32_t result, int32_t pid)
{
	struct watcher_question question;
	struct watcher_answer answer = { .result = result, .pid = pid };

	if (recv(watcher_end, &question, sizeof(question), 0) < 0)
		return false;
	if (question.question >= N_QUESTIONS || question.n_pids > WIRE_MAX_SESSIONS)
		abort();
	if (send(watcher_end, &answer, sizeof(answer), 0) < 0)
		abort();
	loop_once();
	return true;
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
	if (watcher_end < 0)
		watcher_begin();
	session_limit_bytes(1 << 20);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) < 0 ||
	    connection_new(pair[0], &program, &connection) < 0)
		abort();
	session = connection_session(connection);
	for (; r == 0 && size >= sizeof(step); data += sizeof(step), size -= sizeof(step)) {
		memcpy(&step, data, sizeof(step));
		if (step.from_worker & 4)
			watcher_answers(step.error % 4, step.id % 2 ? WORKER_PID : step.id);
		else if (step.from_worker & 1 && session->worker.fd >= 0)
			r = session_answer(session, message_of(&step));
		else
			r = connection_request(connection, message_of(&step));
		drain(pair[1]);
		drain(worker_end);
	}
	/* What the loop does when the worker has ended. */
	session_end_now(session);
	session->side->gone(session);
	while (watcher_answers(0, 0))
		;
	close(pair[1]);
	if (worker_end >= 0)
		close(TAKE_FD(worker_end));
	return 0;
}
