/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cotenant run: a command as a tenant.
 *
 * The child waits at a door until the daemon has made it a tenant, so that not even
 * its first call is outside. If the daemon refuses, the door closes and the child
 * ends without having run anything.
 */
#include "ctl/child.h"
#include "ctl/ctl.h"
#include "ctl/table.h"

#include "base/str.h"
#include "gate/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* The daemon takes the listener out of this process, and says so before the command runs. */
static void child_gate(int door)
{
	int listener = gate_filter();
	char go;

	if (write(door, &listener, sizeof(listener)) != sizeof(listener) || listener < 0 ||
	    read(door, &go, 1) != 1)
		_exit(EXIT_NO_TENANT);
	close(listener);
}

static _Noreturn void child_main(const struct ctl *ctl, int door, const sigset_t *mask)
{
	char **argv = ctl->argv;
	char go;

	if (read(door, &go, 1) != 1)
		_exit(EXIT_NO_TENANT);
	if (ctl_option(ctl, "gate"))
		child_gate(door);
	child_exec(ctl, argv, mask);
}

static int go_on(int door)
{
	return send(door, "g", 1, MSG_NOSIGNAL) == 1 ? 0 : EXIT_NO_TENANT;
}

/* The daemon keeps the other end of the child's filter. */
static int keep_gate(const struct ctl *ctl, pid_t child, int door)
{
	int listener = -ESRCH;
	json_t *reply;

	if (read(door, &listener, sizeof(listener)) != sizeof(listener) || listener < 0) {
		fprintf(stderr, "cotenant run: --gate: %s\n", strerrordesc_np(-listener));
		return EXIT_NO_TENANT;
	}
	if (ctl_call(ctl, API_RUN_GATE,
		     json_pack("{s:i, s:i, s:s*}", "pid", (int)child, "fd", listener, "device",
			       ctl_option(ctl, "gate-device")),
		     &reply))
		return EXIT_NO_TENANT;
	json_decref(reply);
	return go_on(door);
}

#define SAID_AFTER_MS 500
/* Signals are handed on between two questions. */
#define WAITS_WITHIN_MS 1000

/* @ticket: of the latest call that the user was told of; @any: one of those still waits */
struct waits {
	const struct ctl *ctl;
	const char *tenant;
	json_int_t ticket;
	bool any;
};

static void say_waits(struct waits *waits, const json_t *call)
{
	char *size = cell_size(json_object_get(call, "size"));

	waits->ticket = json_integer_value(json_object_get(call, "ticket"));
	fprintf(stderr, "cotenant: %s of process %lld waits for %s: %s\n",
		json_string_value(json_object_get(call, "call")),
		(long long)json_integer_value(json_object_get(call, "pid")), size ? size : "-",
		json_string_value(json_object_get(call, "for")));
	free(size);
}

/* A program that seems to hang: whoever started it is told of each call that waits, and for what. */
static void show_waits(void *userdata)
{
	struct waits *waits = userdata;
	json_t *reply, *call;
	struct api_error error;
	bool any = false;
	size_t i;

	if (api_request_json(waits->ctl->socket, WAITS_WITHIN_MS, API_TENANTS_SHOW,
			     json_pack("{s:s}", "tenant", waits->tenant), &reply, &error) < 0)
		return;
	json_array_foreach(json_object_get(reply, "waiting"), i, call) {
		if (json_integer_value(json_object_get(call, "since_ms")) < SAID_AFTER_MS)
			continue;
		any = true;
		if (json_integer_value(json_object_get(call, "ticket")) > waits->ticket)
			say_waits(waits, call);
	}
	if (waits->any && !any)
		fprintf(stderr, "cotenant: nothing waits any more\n");
	waits->any = any;
	json_decref(reply);
}

/*
 * struct run - one life of the command
 * @old:	the signals that it is started with
 * @evicted:	how it ended; then @peak is what it held at the most
 */
struct run {
	sigset_t set;
	sigset_t old;
	bool evicted;
	json_int_t peak;
};

/* Starts it behind a door. Return: its number, or -1. */
static pid_t start(const struct ctl *ctl, const struct run *run, int *ret_door)
{
	int door[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, door) < 0)
		return -1;
	child = fork();
	if (child == 0) {
		close(door[1]);
		child_main(ctl, door[0], &run->old);
	}
	close(door[0]);
	if (child < 0)
		close(door[1]);
	else
		*ret_door = door[1];
	return child;
}

static int run_once(const struct ctl *ctl, struct run *run)
{
	_cleanup_free_ char *tenant = NULL;
	struct waits waits = { .ctl = ctl };
	int door, r;
	pid_t child;

	run->evicted = false;
	child = start(ctl, run, &door);
	if (child < 0)
		return EXIT_NO_TENANT;
	r = child_tenant_begin(ctl, child, ctl->argv[0], &tenant);
	if (r == 0)
		r = go_on(door);
	if (r == 0 && ctl_option(ctl, "gate"))
		r = keep_gate(ctl, child, door);
	close(door);
	if (r != 0) {
		waitpid(child, NULL, 0);
		return r;
	}
	waits.tenant = tenant;
	r = child_wait(child, &run->set, show_waits, &waits);
	run->evicted = child_tenant_end(ctl, tenant, &run->peak);
	return r;
}

/*
 * Again, with a request as large as what it held, so that it is within it this time. Where the
 * caller may not ask for so much, it is as it was.
 */
static int run_again(const struct ctl *ctl, struct run *run)
{
	json_t *request = json_incref(json_object_get(ctl->limits, "memory.low"));
	int r;

	fprintf(stderr, "cotenant: the command was evicted and is started again\n");
	json_object_set_new(ctl->limits, "memory.low", json_sprintf("%lld", (long long)run->peak));
	r = run_once(ctl, run);
	if (r != EXIT_NO_TENANT)
		goto out;
	fprintf(stderr, "cotenant: its request stays as it was\n");
	if (request)
		json_object_set(ctl->limits, "memory.low", request);
	else
		json_object_del(ctl->limits, "memory.low");
	r = run_once(ctl, run);
out:
	json_decref(request);
	return r;
}

int verb_run(const struct ctl *ctl)
{
	const char *restart = ctl_option(ctl, "restart");
	uint64_t n_left = 0;
	struct run run = {};
	int r;

	if (ctl->argc == 0) {
		ctl_usage(ctl, "say which command, behind --");
		return EXIT_NO_TENANT;
	}
	if (restart && str_parse_u64(restart, &n_left) < 0) {
		ctl_usage(ctl, "--restart: say how often, as in --restart 3");
		return EXIT_NO_TENANT;
	}
	child_signals_block(&run.set, &run.old);
	r = run_once(ctl, &run);
	while (run.evicted && n_left-- > 0)
		r = run_again(ctl, &run);
	return r;
}
