/* SPDX-License-Identifier: Apache-2.0 */
/* A server and its client in two processes, over a real socket. */
#include "api/client.h"
#include "api/server.h"
#include "base/check.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#define GREEDY 65533 /* a user */
#define GREED  200

static struct api_call *kept;

/* Keeps one call until the next arrives, then answers both. */
static void handler(struct api_call *call, _unused_ void *userdata)
{
	struct api_error error;

	switch (api_call_method(call)) {
	case API_METRICS:
		api_call_reply_text(call, strdup("metric 1\n"));
		break;
	case API_EVENTS_LIST:
		kept = call;
		break;
	case API_TENANTS_SHOW:
		api_fail(&error, API_E_NOT_FOUND, "there is no tenant '%s'",
			 api_arg_string(api_call_args(call), "tenant"));
		api_hint(&error, "look with cotenant list");
		api_call_refuse(call, &error);
		break;
	default:
		if (kept)
			api_call_reply(TAKE_PTR(kept), json_pack("{s:b}", "late", 1));
		api_call_reply(call, json_pack("{s:i, s:i}", "uid", (int)api_call_peer(call)->uid,
					       "pid", (int)api_call_peer(call)->pid));
	}
}

static void serve(const char *path)
{
	struct api_server *server;
	struct pollfd p = { .events = POLLIN };

	if (api_server_new(path, handler, NULL, &server) < 0)
		_exit(1);
	p.fd = api_server_fd(server);
	for (;;) {
		poll(&p, 1, 1000);
		api_server_dispatch(server);
	}
}

/* The socket's file is there before anybody listens on it, so ask until there is an answer. */
static void wait_for(const char *path)
{
	struct api_error error = {};
	int i, r = -1;

	for (i = 0; i < 6000 && r < 0; i++) {
		_cleanup_free_ char *text = NULL;

		r = api_request(path, API_WITHIN_MS, API_METRICS, NULL, &text, &error);
		if (r < 0)
			usleep(10000);
	}
}

static void test_calls(const char *path)
{
	_cleanup_free_ char *text = NULL;
	struct api_error error = {};
	json_t *reply = NULL;

	check(api_request(path, API_WITHIN_MS, API_METRICS, NULL, &text, &error) == 0 &&
		      str_eq(text, "metric 1\n"),
	      "api: plain text");
	check(api_request_json(path, API_WITHIN_MS, API_DAEMON_VERSION, NULL, &reply, &error) ==
			      0 &&
		      json_integer_value(json_object_get(reply, "pid")) == getpid() &&
		      json_integer_value(json_object_get(reply, "uid")) == getuid(),
	      "api: the kernel says who calls");
	json_decref(reply);
	check(api_request_json(path, API_WITHIN_MS, API_TENANTS_SHOW,
			       json_pack("{s:s}", "tenant", "bob"), &reply, &error) < 0 &&
		      error.status == 404 && strstr(error.message, "bob") &&
		      strstr(error.hint, "cotenant list"),
	      "api: a refusal with its hint");
	check(api_request_json(path, API_WITHIN_MS, API_TENANTS_SHOW, NULL, &reply, &error) < 0 &&
		      error.status == 400,
	      "api: arguments are checked before the handler");
}

static void test_late_answer(const char *path)
{
	struct api_error error = {};
	json_t *reply = NULL;
	pid_t child;

	child = fork();
	if (child == 0) {
		/* Comes second, whatever the order of the two processes. */
		do {
			usleep(50000);
		} while (api_request_json(path, API_WITHIN_MS, API_DAEMON_VERSION, NULL, &reply,
					  &error) == 0);
		_exit(0);
	}
	check(api_request_json(path, API_WITHIN_MS, API_EVENTS_LIST, NULL, &reply, &error) == 0 &&
		      json_is_true(json_object_get(reply, "late")),
	      "api: a call that was kept is answered later");
	json_decref(reply);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	str_copy(address.sun_path, sizeof(address.sun_path), path);
	return fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 ? fd : -1;
}

static bool is_hung_up(int fd, int wait_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char byte;

	return poll(&p, 1, wait_ms) == 1 && read(fd, &byte, 1) <= 0;
}

/* A user who opens many connections: how many of them the server keeps. */
static int greedy_user(const char *path)
{
	int fds[GREED], kept = 0, i;

	if (setgid(GREEDY) < 0 || setuid(GREEDY) < 0)
		return -1;
	for (i = 0; i < GREED; i++)
		fds[i] = connect_to(path);
	/* They are taken in order: when the last is decided, all are. */
	if (!is_hung_up(fds[GREED - 1], /* wait_ms= */ 60000))
		return GREED;
	for (i = 0; i < GREED; i++)
		kept += !is_hung_up(fds[i], 0);
	return kept;
}

static void test_caps(const char *path)
{
	_cleanup_free_ char *text = NULL;
	struct api_error error = {};
	int said[2], kept = -1;
	pid_t child;

	if (getuid() != 0) {
		printf("skip 'a cap per user': needs root to become one\n");
		return;
	}
	check(pipe(said) == 0, "a pipe");
	child = fork();
	if (child == 0) {
		kept = greedy_user(path);
		if (write(said[1], &kept, sizeof(kept)) == sizeof(kept))
			pause();
		_exit(1);
	}
	check(read(said[0], &kept, sizeof(kept)) == sizeof(kept) && kept > 0 && kept < GREED,
	      "api: a user has so many connections and no more");
	check(api_request(path, API_WITHIN_MS, API_METRICS, NULL, &text, &error) == 0,
	      "api: others are answered meanwhile");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* One that is stopped takes as many connections as its queue has room for, and the next one not even that. */
static void test_silent_daemon(const char *dir)
{
	_cleanup_free_ char *path = str_format("%s/silent", dir), *text = NULL;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), n_late = 0, i;
	struct api_error error;

	str_copy(address.sun_path, sizeof(address.sun_path), path);
	check(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
		      listen(fd, /* backlog= */ 0) == 0,
	      "a daemon that stands still");
	for (i = 0; i < 3; i++) {
		error = (struct api_error){};
		n_late += api_request(path, /* within_ms= */ 20, API_METRICS, NULL, &text, &error) <
				  0 &&
			  error.status == 503 && strstr(error.message, "within 20 ms") &&
			  *error.hint;
	}
	check(n_late == 3, "api: whoever is not answered is told so, connected or not (%d)",
	      n_late);
	error = (struct api_error){};
	check(api_request(path, /* within_ms= */ 0, API_METRICS, NULL, &text, &error) < 0 &&
		      error.status == 503,
	      "api: no time is none, and not for ever");
	close(fd);
	unlink(path);
}

/* What begins to answer, and goes on for ever without an end. */
static void test_slow_daemon(const char *dir)
{
	_cleanup_free_ char *path = str_format("%s/slow", dir), *text = NULL;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), connection;
	struct api_error error = {};
	pid_t child;

	str_copy(address.sun_path, sizeof(address.sun_path), path);
	check(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 1) == 0,
	      "a daemon that answers slowly");
	child = fork();
	if (child == 0) {
		connection = accept(fd, NULL, NULL);
		while (send(connection, "H", 1, MSG_NOSIGNAL) == 1)
			usleep(5000);
		_exit(0);
	}
	check(api_request(path, /* within_ms= */ 100, API_METRICS, NULL, &text, &error) < 0 &&
		      error.status == 503 && strstr(error.message, "within 100 ms"),
	      "api: nor is what comes byte by byte waited for");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(fd);
	unlink(path);
}

int main(void)
{
	char dir[] = "/tmp/test-server-XXXXXX", *path;
	struct api_server *second;
	struct api_error error;
	char *text;
	pid_t child;

	if (!mkdtemp(dir) || chmod(dir, 0755) < 0)
		return 1;
	path = str_format("%s/socket", dir);
	check(api_request(path, API_WITHIN_MS, API_METRICS, NULL, &text, &error) < 0 &&
		      error.status == 503 && *error.hint,
	      "api: nobody listens, and what to do about it");
	test_silent_daemon(dir);
	test_slow_daemon(dir);
	child = fork();
	if (child == 0)
		serve(path);
	wait_for(path);
	test_calls(path);
	test_late_answer(path);
	test_caps(path);
	check(api_server_new(path, handler, NULL, &second) == -EADDRINUSE,
	      "api_server_new: a socket in use is left alone");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	check(api_server_new(path, handler, NULL, &second) == 0,
	      "api_server_new: the socket of a killed daemon is replaced");
	api_server_free(second);
	check(rmdir(dir) == 0, "api_server_free: takes its socket away");
	free(path);
	return check_result();
}
