// SPDX-License-Identifier: Apache-2.0
/*
 * cotenant-vm: the broker between guests' processes and the workers that execute for them.
 *
 * It makes the memory that both share and starts and ends workers. It never loads libcuda and never looks
 * into that memory, so that nothing a guest does can crash it: it is what a virtual machine's device
 * depends on.
 */
#include "base/base.h"
#include "base/log.h"
#include "base/str.h"
#include "forward/host/sandbox.h"
#include "forward/host/session.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#define FDS_PER_SESSION 3

static struct session *sessions[WIRE_MAX_SESSIONS];
static size_t n_sessions;

static int listen_on(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -1;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	unlink(path);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 128) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static void session_accept(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	struct session *session;

	if (fd < 0)
		return;
	if (n_sessions == WIRE_MAX_SESSIONS) {
		close(fd);
		return;
	}
	session = session_new(fd);
	if (session)
		sessions[n_sessions++] = session;
}

/* Room for @fds of all sessions, in their order; what is gone is -1, which poll() passes over. */
static size_t fds_fill(struct pollfd *fds, int listener)
{
	size_t i, n = 0;

	fds[n++] = (struct pollfd){ listener, POLLIN, 0 };
	for (i = 0; i < n_sessions; i++) {
		fds[n++] = (struct pollfd){ sessions[i]->guest, POLLIN, 0 };
		fds[n++] = (struct pollfd){ sessions[i]->worker, POLLIN, 0 };
		fds[n++] = (struct pollfd){ sessions[i]->pidfd, POLLIN, 0 };
	}
	return n;
}

static void session_serve(struct session *session, const struct session_limits *limits,
			  const struct pollfd *fds)
{
	static struct socket_message message;
	int r = 0;

	if (fds[2].revents)
		r = -EPIPE;
	if (r == 0 && fds[1].revents) {
		r = socket_receive(session->worker, &message);
		if (r == 0)
			r = session_answer(session, &message);
	}
	if (r == 0 && fds[0].revents) {
		r = socket_receive(session->guest, &message);
		if (r == 0)
			r = session_request(session, limits, &message);
	}
	if (r < 0) {
		log_debug(r, "a session ends");
		session_end(session);
	}
}

static void sessions_sweep(void)
{
	size_t i = 0;

	while (i < n_sessions) {
		if (session_is_over(sessions[i])) {
			session_free(sessions[i]);
			sessions[i] = sessions[--n_sessions];
		} else {
			i++;
		}
	}
}

static int serve(int listener, const struct session_limits *limits)
{
	static struct pollfd fds[1 + FDS_PER_SESSION * WIRE_MAX_SESSIONS];
	size_t i, n;

	for (;;) {
		n = fds_fill(fds, listener);
		if (poll(fds, n, -1) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		/* Sessions that come now have no place in fds yet. */
		n = (n - 1) / FDS_PER_SESSION;
		for (i = 0; i < n; i++)
			session_serve(sessions[i], limits, &fds[1 + FDS_PER_SESSION * i]);
		if (fds[0].revents)
			session_accept(listener);
		sessions_sweep();
	}
}

static int usage(void)
{
	fprintf(stderr,
		"usage: cotenant-vm --socket PATH --worker PROGRAM [--driver LIBCUDA] [--max-host-memory BYTES]\n");
	return 2;
}

static int parse(int argc, char **argv, const char **ret_socket, struct session_limits *ret)
{
	static const struct option options[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "worker", required_argument, NULL, 'w' },
		{ "driver", required_argument, NULL, 'd' },
		{ "max-host-memory", required_argument, NULL, 'm' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			*ret_socket = optarg;
			break;
		case 'w':
			ret->worker = optarg;
			break;
		case 'd':
			ret->driver = optarg;
			break;
		case 'm':
			if (str_parse_u64(optarg, &ret->max_bytes) < 0)
				return usage();
			break;
		default:
			return usage();
		}
	}
	return optind == argc && *ret_socket && ret->worker ? 0 : usage();
}

int main(int argc, char **argv)
{
	struct session_limits limits = { .driver = "libcuda.so.1", .max_bytes = 16ULL << 30 };
	const char *path = NULL;
	int listener, r;

	log_init("cotenant-vm", LOG_INFO);
	r = parse(argc, argv, &path, &limits);
	if (r)
		return r;
	signal(SIGPIPE, SIG_IGN);
	r = sandbox_pids();
	if (r < 0)
		log_warn(r, "workers see the processes of the host");
	listener = listen_on(path);
	if (listener < 0)
		return log_err(listener, "cannot listen on %s", path), 1;
	/* Whoever started it waits for this line's end. */
	if (write(STDOUT_FILENO, "ready\n", 6) < 0)
		return 1;
	return log_err(serve(listener, &limits), "cannot go on"), 1;
}
