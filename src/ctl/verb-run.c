/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cotenant run: a command as a tenant.
 *
 * The child waits at a door until the daemon has made it a tenant, so that not even
 * its first call is outside. If the daemon refuses, the door closes and the child
 * ends without having run anything.
 */
#include "ctl/ctl.h"

#include "gate/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define EXIT_NO_TENANT 125
#define EXIT_NOT_RUN   126
#define EXIT_NOT_FOUND 127

/* What is passed on to the command. */
static const int forwarded[] = { SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
				 SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH };

static void fill_set(sigset_t *set)
{
	size_t i;

	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	for (i = 0; i < ARRAY_SIZE(forwarded); i++)
		sigaddset(set, forwarded[i]);
}

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
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	fprintf(stderr, "cotenant run: %s: %s\n", argv[0], strerrordesc_np(errno));
	_exit(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN);
}

static int begin(const struct ctl *ctl, pid_t child, char **ret_tenant)
{
	const char *name = ctl_option(ctl, "name");
	json_t *reply, *args;

	args = json_pack("{s:i, s:s, s:s*, s:O}", "pid", (int)child, "command", ctl->argv[0],
			 "tenant", name, "limits", ctl->limits);
	if (ctl->gpus)
		json_object_set(args, "gpu", ctl->gpus);
	if (ctl_call(ctl, API_RUN_BEGIN, args, &reply))
		return EXIT_NO_TENANT;
	ctl_warn(reply);
	*ret_tenant = strdup(
		json_string_value(json_object_get(json_object_get(reply, "tenant"), "tenant")));
	json_decref(reply);
	return 0;
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

/*
 * The terminal's ^C goes to the whole foreground group, the command included: it must
 * not get it twice. What another process sent to us is passed on.
 */
static void forward(pid_t child, const siginfo_t *info)
{
	if (info->si_code == SI_KERNEL && (info->si_signo == SIGINT || info->si_signo == SIGQUIT))
		return;
	kill(child, info->si_signo);
}

/* Return: the exit code to pass on. */
static int wait_for(pid_t child, const sigset_t *set)
{
	siginfo_t info;
	int status;

	for (;;) {
		if (sigwaitinfo(set, &info) < 0)
			continue;
		if (info.si_signo != SIGCHLD) {
			forward(child, &info);
			continue;
		}
		if (waitpid(child, &status, WNOHANG) != child)
			continue;
		return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	}
}

/* The daemon forgets the tenant by itself, too: this only makes it prompt. */
static void end(const struct ctl *ctl, const char *tenant)
{
	struct api_error error;
	json_t *reply;

	if (tenant && api_request_json(ctl->socket, API_RUN_END,
				       json_pack("{s:s}", "tenant", tenant), &reply, &error) == 0)
		json_decref(reply);
}

int verb_run(const struct ctl *ctl)
{
	_cleanup_free_ char *tenant = NULL;
	sigset_t set, old;
	int door[2], r;
	pid_t child;

	if (ctl->argc == 0) {
		ctl_usage(ctl, "say which command, behind --");
		return EXIT_NO_TENANT;
	}
	fill_set(&set);
	sigprocmask(SIG_BLOCK, &set, &old);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, door) < 0)
		return EXIT_NO_TENANT;
	child = fork();
	if (child < 0)
		return EXIT_NO_TENANT;
	if (child == 0) {
		close(door[1]);
		child_main(ctl, door[0], &old);
	}
	close(door[0]);
	r = begin(ctl, child, &tenant);
	if (r == 0)
		r = go_on(door[1]);
	if (r == 0 && ctl_option(ctl, "gate"))
		r = keep_gate(ctl, child, door[1]);
	close(door[1]);
	if (r != 0) {
		waitpid(child, NULL, 0);
		return r;
	}
	r = wait_for(child, &set);
	end(ctl, tenant);
	return r;
}
