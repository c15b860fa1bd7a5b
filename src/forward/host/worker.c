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
#include "forward/host/ask.h"
#include "forward/host/callback.h"
#include "forward/host/driver.h"
#include "forward/host/handle.h"
#include "forward/host/lane.h"
#include "forward/host/mapper.h"
#include "forward/host/memory.h"
#include "forward/host/sandbox.h"
#include "forward/host/spawn.h"
#include "forward/socket.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

static struct session_block *session;

/*
 * The memory that a message is about. In a virtual machine it is mapped already; elsewhere a descriptor comes
 * along, the first that was not taken yet.
 */
static int take_memory(struct socket_message *m, size_t *taken, size_t size, void **ret)
{
	void *at = NULL;

	if (m->message.at) {
		*ret = (uint8_t *)m->message.at;
		return 0;
	}
	if (*taken == m->n_fds)
		return -EINVAL;
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, m->fds[(*taken)++], 0);
	if (at == MAP_FAILED)
		return -errno;
	*ret = at;
	return 0;
}

/* Descriptors: block and heap where they are not mapped yet, event for the service thread. */
static int begin(struct socket_message *m)
{
	size_t taken = 0;
	void *at = NULL;
	int r;

	if (session)
		return -EINVAL;
	r = take_memory(m, &taken, SESSION_SIZE, &at);
	if (r < 0 || m->n_fds != (m->message.at ? 1 : 3))
		return r < 0 ? r : -EINVAL;
	session = at;
	callback_init(session, TAKE_FD(m->fds[m->n_fds - 1]));
	if (m->message.at)
		return grant_add_at(/* id= */ 0, (uint8_t *)at + SESSION_SIZE, /* address= */ 0,
				    WIRE_HEAP_SIZE);
	return grant_add(/* id= */ 0, m->fds[taken], m->message.address, WIRE_HEAP_SIZE);
}

/*
 * Addresses that become free are told of before they are reserved anew: the broker looks whether they are free,
 * and has others mapped there later.
 */
static pthread_mutex_t addresses = PTHREAD_MUTEX_INITIALIZER;

/* The threads of lanes and the one that serves the broker send whole messages, so they need no lock for that. */
static void lane_ended(uint32_t id, void *memory)
{
	struct wire_message message = { .type = WIRE_LANE_REMOVE, .id = id };
	int r;

	pthread_mutex_lock(&addresses);
	munmap(memory, LANE_SIZE);
	r = socket_send(WORKER_SOCKET, &message, NULL, 0);
	pthread_mutex_unlock(&addresses);
	if (r < 0)
		log_debug(r, "cannot tell of a lane's end");
}

static int lane_begin(struct socket_message *m)
{
	struct lane_bells bells;
	size_t taken = 0;
	void *at = NULL;
	int r;

	if (!session)
		return -EINVAL;
	r = take_memory(m, &taken, LANE_SIZE, &at);
	bells = (struct lane_bells){ .beside = !m->message.at };
	if (r < 0 || m->n_fds != taken + (bells.beside ? 3 : 2))
		return r < 0 ? r : -EINVAL;
	bells.kick = TAKE_FD(m->fds[taken++]);
	bells.kick_end = bells.beside ? TAKE_FD(m->fds[taken++]) : -1;
	bells.call = TAKE_FD(m->fds[taken]);
	return lane_add(m->message.id, at, &bells, session, lane_ended);
}

static int grant_begin(struct socket_message *m)
{
	const struct wire_message *g = &m->message;
	int r;

	if (!g->at)
		return m->n_fds == 1 ? grant_add(g->id, m->fds[0], g->address, g->size) : -EINVAL;
	r = grant_add_at(g->id, (uint8_t *)g->at, g->address, g->size);
	if (r < 0)
		munmap((void *)g->at, g->size);
	return r;
}

static int reserve(struct wire_message *message)
{
	pthread_mutex_lock(&addresses);
	message->at = (uintptr_t)memory_reserve(message->address, message->size);
	pthread_mutex_unlock(&addresses);
	return message->at ? 0 : -ENOMEM;
}

static int obey(struct socket_message *m)
{
	switch (m->message.type) {
	case WIRE_SESSION_OPEN:
		return begin(m);
	case WIRE_LANE_ADD:
		return lane_begin(m);
	case WIRE_GRANT:
		return grant_begin(m);
	case WIRE_REVOKE:
		return grant_remove(m->message.id);
	case WIRE_RESERVE:
		return reserve(&m->message);
	default:
		return -ENOSYS;
	}
}

static int serve_one(struct socket_message *m)
{
	switch (m->message.type) {
	case WIRE_IPC_PUT:
	case WIRE_IPC_GET:
	case WIRE_DEVICE:
		broker_answered(&m->message);
		return 0;
	case WIRE_LANE_REMOVE:
		/* Its thread answers. */
		return lane_remove(m->message.id);
	default:
		m->message.error = obey(m);
		return socket_send(WORKER_SOCKET, &m->message, NULL, 0);
	}
}

static int serve(void)
{
	static struct socket_message m;
	int r;

	do {
		r = socket_receive(WORKER_SOCKET, &m);
		if (r == 0)
			r = serve_one(&m);
		socket_message_done(&m);
	} while (r == 0);
	return r == -EPIPE ? 0 : r;
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

	start->result = sandbox_drop(SANDBOX_NO_CAP);
	if (start->result < 0)
		return NULL;
	start->result = driver_open(start->library, &error, &result);
	if (start->result == -ENOENT)
		log_err(0, "%s", error);
	else if (start->result < 0)
		log_err(0, "%s: cuInit answered %d", start->library, result);
	return NULL;
}

static int start(const char *library, bool mapped)
{
	struct start start = { .library = library };
	const char *what = "namespaces";
	pthread_t thread;
	int r;

	r = sandbox_begin();
	if (r == 0 && mapped) {
		what = "mapper";
		r = mapper_start();
	}
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

	return socket_send(WORKER_SOCKET, &message, NULL, 0);
}

int main(int argc, char **argv)
{
	int r;

	log_init("cotenant-worker", LOG_WARNING);
	if (argc != 2 && argc != 3)
		return log_err(0, "usage: cotenant-worker LIBCUDA [mapped]"), 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	r = handle_init();
	if (r == 0)
		r = start(argv[1], argc == 3);
	if (say_ready(r) < 0 || r < 0)
		return 1;
	r = serve();
	/* Its threads may be in the driver; nobody waits for them any more. */
	_exit(r < 0 ? 1 : 0);
}
