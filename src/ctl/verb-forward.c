/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cotenant forward: a command whose CUDA calls are executed by processes beside it.
 *
 * The command gets a libcuda.so.1 that sends its calls to a broker, which starts a worker for each process
 * of the command. Broker and workers are the tenant: limits hold for what they do on the device. The
 * command itself needs no device file.
 */
#include "ctl/broker.h"
#include "ctl/child.h"
#include "ctl/ctl.h"

#include "base/str.h"

static bool wants_tenant(const struct ctl *ctl)
{
	return ctl_option(ctl, "name") || json_object_size(ctl->limits) || ctl->gpus;
}

static _Noreturn void command_main(const struct ctl *ctl, const struct broker *broker,
				   const sigset_t *mask)
{
	const char *old = getenv("LD_LIBRARY_PATH");
	struct text path = { 0 };
	char *whole;

	text_add(&path, broker->library_dir);
	if (old && *old)
		text_addf(&path, ":%s", old);
	whole = text_take(&path);
	if (!whole || setenv("LD_LIBRARY_PATH", whole, 1) < 0 ||
	    setenv("COTENANT_FORWARD", broker->socket_path, 1) < 0)
		_exit(EXIT_NOT_RUN);
	child_exec(ctl, ctl->argv, mask);
}

static int command_run(const struct ctl *ctl, const struct broker *broker, const sigset_t *set,
		       const sigset_t *mask)
{
	pid_t child = fork();

	if (child < 0)
		return EXIT_NOT_RUN;
	if (child == 0)
		command_main(ctl, broker, mask);
	return child_wait(child, set, NULL, NULL);
}

int verb_forward(const struct ctl *ctl)
{
	struct broker broker;
	sigset_t set, mask;
	int r;

	if (ctl->argc == 0) {
		ctl_usage(ctl, "say which command, behind --");
		return EXIT_NO_TENANT;
	}
	r = broker_init(ctl, &broker, NULL);
	if (r == 0) {
		child_signals_block(&set, &mask);
		r = broker_start(ctl, &broker, "--socket", wants_tenant(ctl), &mask);
	}
	if (r == 0)
		r = command_run(ctl, &broker, &set, &mask);
	broker_end(ctl, &broker);
	return r;
}
