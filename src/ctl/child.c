// SPDX-License-Identifier: Apache-2.0
#include "ctl/child.h"

#include "base/str.h"

#include <errno.h>
#include <sys/wait.h>
#include <time.h>

/* Half a minute. */
#define FORGET_TRIES 1500

/* What is passed on to the command. */
static const int forwarded[] = { SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
				 SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH };

void child_signals_block(sigset_t *set, sigset_t *old)
{
	size_t i;

	sigemptyset(set);
	sigaddset(set, SIGCHLD);
	for (i = 0; i < ARRAY_SIZE(forwarded); i++)
		sigaddset(set, forwarded[i]);
	sigprocmask(SIG_BLOCK, set, old);
}

void child_exec(const struct ctl *ctl, char **argv, const sigset_t *mask)
{
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	fprintf(stderr, "cotenant %s: %s: %s\n", verbs[ctl->verb].name, argv[0],
		strerrordesc_np(errno));
	_exit(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN);
}

int child_tenant_begin(const struct ctl *ctl, pid_t child, const char *command, char **ret_tenant)
{
	_cleanup_free_ char *shown = strdup(command);
	const char *name = ctl_option(ctl, "name");
	json_t *reply, *args;

	if (!shown)
		return EXIT_NO_TENANT;
	args = json_pack("{s:i, s:s, s:s*, s:O}", "pid", (int)child, "command",
			 str_make_printable(shown), "tenant", name, "limits", ctl->limits);
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

int child_wait(pid_t child, const sigset_t *set, void (*each_second)(void *userdata),
	       void *userdata)
{
	static const struct timespec second = { .tv_sec = 1 };
	siginfo_t info;
	int status;

	for (;;) {
		if (sigtimedwait(set, &info, each_second ? &second : NULL) < 0) {
			if (errno == EAGAIN)
				each_second(userdata);
			continue;
		}
		if (info.si_signo != SIGCHLD) {
			forward(child, &info);
			continue;
		}
		if (waitpid(child, &status, WNOHANG) != child)
			continue;
		return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	}
}

/* Whoever has run a command waits for its end, and not for what becomes of the tenant. */
#define END_WITHIN_MS 10000

/* The daemon's answer; NULL where it knows of no such tenant, or gives none. */
static json_t *tenant_ended(const struct ctl *ctl, const char *tenant)
{
	struct api_error error;
	json_t *reply;

	if (!tenant || api_request_json(ctl->socket, END_WITHIN_MS, API_RUN_END,
					json_pack("{s:s}", "tenant", tenant), &reply, &error) < 0)
		return NULL;
	return reply;
}

bool child_tenant_end(const struct ctl *ctl, const char *tenant, json_int_t *ret_peak)
{
	json_t *reply = tenant_ended(ctl, tenant);
	bool evicted;

	if (!reply)
		return false;
	evicted = json_is_true(json_object_get(reply, "evicted"));
	if (evicted && ret_peak)
		*ret_peak = json_integer_value(json_object_get(reply, "peak"));
	json_decref(reply);
	return evicted;
}

/* Signals are still blocked. */
static bool is_told_to_end(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 &&
	       (sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM));
}

void child_tenant_forget(const struct ctl *ctl, const char *tenant)
{
	static const struct timespec pause = { .tv_nsec = 20000000 };
	bool gone = false;
	unsigned i;

	for (i = 0; !gone && i < FORGET_TRIES && !is_told_to_end(); i++) {
		json_t *reply = tenant_ended(ctl, tenant);

		gone = !reply || json_is_true(json_object_get(reply, "gone"));
		json_decref(reply);
		if (!gone)
			nanosleep(&pause, NULL);
	}
}
