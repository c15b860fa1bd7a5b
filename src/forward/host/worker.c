// SPDX-License-Identifier: Apache-2.0
/*
 * cotenant-worker: executes the CUDA calls of one process of a guest.
 *
 * It is started by the broker with a socket as descriptor 3 and does what the broker says: maps the memory
 * that the guest shares, and runs a thread for each of the guest's. What it reads there is hostile, and so
 * it is treated as if the guest owned it: whatever it could reach beyond its grants is closed off before
 * the first byte of the guest's is read.
 */
#include "base/base.h"
#include "base/log.h"
#include "forward/host/callback.h"
#include "forward/host/driver.h"
#include "forward/host/handle.h"
#include "forward/host/ipc.h"
#include "forward/host/lane.h"
#include "forward/host/memory.h"
#include "forward/host/sandbox.h"
#include "forward/socket.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define BROKER 3

static struct session_block *session;

/* Descriptors: block, heap, event for the service thread. */
static int begin(struct socket_message *m)
{
	void *at;

	if (m->n_fds != 3 || session)
		return -EINVAL;
	at = mmap(NULL, SESSION_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, m->fds[0], 0);
	if (at == MAP_FAILED)
		return -errno;
	session = at;
	callback_init(session, TAKE_FD(m->fds[2]));
	return grant_add(/* id= */ 0, m->fds[1], m->message.address, WIRE_HEAP_SIZE, NULL, 0);
}

static int lane_begin(struct socket_message *m)
{
	if (m->n_fds != 3 || !session)
		return -EINVAL;
	return lane_add(m->message.id, TAKE_FD(m->fds[0]), TAKE_FD(m->fds[1]), TAKE_FD(m->fds[2]),
			session);
}

static int grant_begin(struct socket_message *m)
{
	if (m->n_fds != 1 || m->message.id == 0)
		return -EINVAL;
	return grant_add(m->message.id, m->fds[0], m->message.address, m->message.size,
			 m->message.n_pieces ? m->pieces : NULL, m->message.n_pieces);
}

static int obey(struct socket_message *m)
{
	switch (m->message.type) {
	case WIRE_SESSION_OPEN:
		return begin(m);
	case WIRE_LANE_ADD:
		return lane_begin(m);
	case WIRE_LANE_REMOVE:
		return lane_remove(m->message.id);
	case WIRE_GRANT:
		return grant_begin(m);
	case WIRE_REVOKE:
		return grant_remove(m->message.id);
	default:
		return -ENOSYS;
	}
}

static int serve(void)
{
	static struct socket_message m;
	int r;

	for (;;) {
		r = socket_receive(BROKER, &m);
		if (r < 0)
			return r == -EPIPE ? 0 : r;
		if (m.message.type == WIRE_IPC_PUT || m.message.type == WIRE_IPC_GET) {
			socket_message_done(&m);
			ipc_answered(&m.message);
			continue;
		}
		m.message.error = obey(&m);
		m.message.n_pieces = 0;
		socket_message_done(&m);
		r = socket_send(BROKER, &m.message, NULL, NULL, 0);
		if (r < 0)
			return r == -EPIPE ? 0 : r;
	}
}

/**
 * struct start - the driver's start, by a thread that has no capabilities, and so its threads have none
 */
struct start {
	const char *library;
	int result;
};

static void *start_driver(void *arg)
{
	struct start *start = arg;
	const char *error = NULL;
	CUresult result;

	start->result = sandbox_drop();
	if (start->result < 0)
		return NULL;
	start->result = driver_open(start->library, &error, &result);
	if (start->result == -ENOENT)
		log_err(0, "%s", error);
	else if (start->result < 0)
		log_err(0, "%s: cuInit answered %d", start->library, result);
	return NULL;
}

static int start(const char *library)
{
	struct start start = { .library = library };
	const char *what = "namespaces";
	pthread_t thread;
	int r;

	r = sandbox_begin();
	if (r < 0)
		return log_err(r, "cannot confine a worker (%s)", what);
	r = -pthread_create(&thread, NULL, start_driver, &start);
	if (r == 0)
		r = -pthread_join(thread, NULL);
	if (r == 0)
		r = start.result;
	if (r < 0)
		return r;
	r = sandbox_finish(&what);
	return r < 0 ? log_err(r, "cannot confine a worker (%s)", what) : 0;
}

/* What the broker waits for: the driver is there, or why not. */
static int say_ready(int error)
{
	struct wire_message message = { .type = WIRE_HELLO, .error = error };

	return socket_send(BROKER, &message, NULL, NULL, 0);
}

int main(int argc, char **argv)
{
	int r;

	log_init("cotenant-worker", LOG_WARNING);
	if (argc != 2)
		return log_err(0, "usage: cotenant-worker LIBCUDA"), 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	r = handle_init();
	if (r == 0)
		r = start(argv[1]);
	if (say_ready(r) < 0 || r < 0)
		return 1;
	r = serve();
	/* Its threads may be in the driver; nobody waits for them any more. */
	_exit(r < 0 ? 1 : 0);
}
