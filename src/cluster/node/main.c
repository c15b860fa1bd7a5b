/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cotenant-node: tells the controller of the cluster how its node is, again and again.
 *
 * cotenantd protects the node's tenants whether anybody hears of it or not. What is decided here is one
 * thing: when Slurm hears the node no more, what it may start elsewhere is ended, see guard.h.
 */
#include "cluster/node/guard.h"
#include "cluster/node/tell.h"

#include "api/methods.h"
#include "base/file.h"
#include "base/log.h"
#include "base/quantity.h"
#include "base/str.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <pwd.h>
#include <signal.h>
#include <time.h>

#define DEFAULT_INTERVAL "5s"
#define DEFAULT_BATCH	 "cotenant-slurm"
/* In memory, and gone with the boot, as the jobs are. */
#define DEFAULT_STATE "/run/cotenant/node-lease"

static volatile sig_atomic_t is_over;
static volatile sig_atomic_t is_failed;

static void on_signal(_unused_ int signal)
{
	is_over = 1;
}

static void pause_ms(uint64_t ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	if (!is_over)
		nanosleep(&time, NULL);
}

/* What changes is logged, and not each report. */
static void tell_again_and_again(const struct tell_options *options, uint64_t interval_ms)
{
	char reason[TELL_REASON], before[TELL_REASON] = "";
	bool is_taken = false;
	int r;

	for (; !is_over; pause_ms(interval_ms)) {
		r = tell_controller(options, reason);
		if (r == 0 && !is_taken)
			log_info("%s hears of %s", options->controller, options->node);
		else if (r < 0 && !str_eq(reason, before))
			log_warn(0, "%s%s", r == -EACCES ? "the controller refuses it: " : "",
				 reason);
		is_taken = r == 0;
		str_copy(before, sizeof(before), is_taken ? "" : reason);
	}
}

static int usage(void)
{
	printf("cotenant-node --controller=HOST:PORT [--controller-user=NAME] [--node=NAME] [--socket=PATH]\n"
	       "        [--interval=TIME] [--munge-socket=PATH] [--batch-program=PATH] [--state=FILE]: tell a cotenant-cluster\n"
	       "        that listens there of this node; end what Slurm may start elsewhere when it does not hear the node\n");
	return 2;
}

/* As Slurm takes it: without a domain. */
static const char *own_name(char name[256])
{
	if (gethostname(name, 255) < 0)
		return "";
	name[strcspn(name, ".")] = '\0';
	return name;
}

static int find_user(const char *name, uid_t *ret)
{
	const struct passwd *user = getpwnam(name);

	if (!user)
		return -ENOENT;
	*ret = user->pw_uid;
	return 0;
}

/* The default may be installed later; one that was named has to be there. */
static int check_program(const char *program)
{
	int r;

	if (str_eq(program, DEFAULT_BATCH) || !*program)
		return 0;
	r = file_find_program(program);
	return r < 0 ? log_err(r,
			       "--batch-program: '%s' cannot be started; " DEFAULT_BATCH
			       " is the one for Slurm, nothing stands for no batch engine",
			       program)
		     : 0;
}

static void *guard(void *userdata)
{
	int r = guard_run(userdata, &is_over);

	if (r < 0)
		is_failed = log_err(r, "nothing would end when Slurm does not hear this node");
	is_over |= is_failed != 0;
	return NULL;
}

/* Signals are for the thread that sleeps long. */
static int start_guard(const struct guard_options *options, pthread_t *ret)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(ret, NULL, guard, (void *)options);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

/* Where there is no batch program, nobody is to guard anything. */
static int run(const struct tell_options *options, uint64_t interval_ms,
	       const struct guard_options *guarded)
{
	pthread_t thread;
	int r = 0;

	if (*guarded->batch_program)
		r = start_guard(guarded, &thread);
	if (r < 0)
		return log_err(r, "cannot start a thread");
	tell_again_and_again(options, interval_ms);
	if (*guarded->batch_program)
		pthread_join(thread, NULL);
	return is_failed;
}

int main(int argc, char **argv)
{
	static const struct option table[] = {
		{ "controller", required_argument, NULL, 'c' },
		{ "controller-user", required_argument, NULL, 'u' },
		{ "node", required_argument, NULL, 'n' },
		{ "socket", required_argument, NULL, 's' },
		{ "interval", required_argument, NULL, 'i' },
		{ "munge-socket", required_argument, NULL, 'm' },
		{ "batch-program", required_argument, NULL, 'b' },
		{ "state", required_argument, NULL, 'f' },
		{},
	};
	const struct sigaction action = { .sa_handler = on_signal };
	char name[256] = "";
	struct tell_options options = { .node = own_name(name), .socket = API_DEFAULT_SOCKET };
	struct guard_options guarded = { .batch_program = DEFAULT_BATCH, .state = DEFAULT_STATE };
	const char *interval = DEFAULT_INTERVAL, *user = "root";
	uint64_t interval_ms;
	int c;

	log_init("cotenant-node", LOG_INFO);
	while ((c = getopt_long(argc, argv, "", table, NULL)) >= 0) {
		const char **const texts[] = {
			['c'] = &options.controller,
			['u'] = &user,
			['n'] = &options.node,
			['s'] = &options.socket,
			['i'] = &interval,
			['m'] = &options.munge_socket,
			['b'] = &guarded.batch_program,
			['f'] = &guarded.state,
		};

		if (c == '?')
			return usage();
		*texts[c] = optarg;
	}
	if (!options.controller || optind < argc)
		return usage();
	if (!str_is_name(options.node))
		return log_err(2, "--node: '%s' is not a name", options.node);
	if (find_user(user, &options.controller_uid) < 0)
		return log_err(2, "--controller-user: there is no user '%s'", user);
	if (duration_parse(interval, &interval_ms) < 0 || !interval_ms ||
	    interval_ms == QUANTITY_MAX)
		return log_err(2, "--interval: '%s' is not a time such as " DEFAULT_INTERVAL,
			       interval);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	if (check_program(guarded.batch_program) < 0)
		return 2;
	guarded.node = options.node;
	guarded.socket = options.socket;
	return run(&options, interval_ms, &guarded) < 0;
}
