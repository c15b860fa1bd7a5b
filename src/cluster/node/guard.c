/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slurm is asked by a program of its own, as its library may keep whoever calls it waiting for as long as
 * it likes. It prints a line for each answer. Whichever of the two is killed is started anew with the
 * latest line.
 *
 * One thread waits for the next line, or for the end of the lease, and ends what is to end. Nothing that it
 * does depends on anybody else: no disk, no log, no start of a program, neither cotenantd nor the network, and
 * none of the node's memory that was taken from it. A second thread writes the lease down, tells the log, and
 * starts the program; it may stand still, and then the lease runs out as well.
 *
 *	cotenant-slurm -- lines --> deadline: lease -- SIGTERM, SIGKILL --> jobs
 *	      ^                        | a copy of it, what was done
 *	      +------- starts ------ helper -- file, log
 */
#include "cluster/node/guard.h"

#include "cluster/node/jobs.h"
#include "cluster/node/lease-memory.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern char **environ;

#define BOOT_ID	       "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_SIZE   37
#define LOOK_MOST_MS   500 /* poll() does not count while the machine sleeps */
#define LOOK_AGAIN_MS  100
#define START_AGAIN_MS 1000
#define BEFORE_OTHERS  -15 /* of the processors: who ends something goes before what is to end */

/**
 * struct news - what the deadline has done, for the log
 * @told:	who was told to end, since it was logged last
 * @error:	what came of the latest attempt, 0 where that was good
 */
struct news {
	struct jobs_told told;
	bool is_kill;
	int error;
};

/**
 * struct guard - all of it
 * @jobs, @fd, @line, @len, @is_told:	the deadline's own
 * @fd:		what the program prints, -1 where there is none
 * @line:	the beginning of its next line
 * @is_told:	the jobs have been told to end, since Slurm was heard last
 * @wake_fd:	a program was started
 * @memory:	the lease, and the latest line; changed by the deadline alone, and read by the other with the lock
 * @pid, @pipe:	of the program that runs; 0 and -1 where there is none
 * @has_ended:	the deadline has let go of it
 */
struct guard {
	const struct guard_options *options;
	struct jobs jobs;
	int fd;
	char line[CONTACT_LINE_SIZE];
	size_t len;
	bool is_told;
	int wake_fd;
	pthread_mutex_t lock; /* of all below; held by neither while anything waits */
	pthread_cond_t wanted;
	struct lease_memory memory;
	struct news news;
	pid_t pid;
	int pipe;
	bool has_ended;
	bool is_over;
};

/* --- the helper: all that may wait --- */

/**
 * struct helper - what it knows beside
 * @copy:	of the memory, which is written down without the lock
 * @kept:	the jobs that the log was told of, NULL for none yet
 * @start_ms:	not before that is the program started again
 * @save_error, @end_error:	what the log was told of
 * @has_complained:	that the program does not work is in the log
 */
struct helper {
	struct guard *guard;
	struct lease_memory copy;
	char *kept;
	uint64_t start_ms;
	int save_error;
	int end_error;
	bool has_complained;
};

/* What goes on fills no log. */
static void complain_of_program(struct helper *h, int r, const char *what)
{
	if (!h->has_complained)
		log_warn(r, "%s%s", what, h->guard->options->batch_program);
	h->has_complained = true;
}

static int spawn(const struct helper *h, pid_t *ret_pid, int *ret_pipe)
{
	const struct guard_options *options = h->guard->options;
	char *arguments[] = { (char *)options->batch_program, (char *)"contact",
			      (char *)options->node, *h->copy.said ? (char *)h->copy.said : NULL,
			      NULL };
	_cleanup_close_ int reads = -1, writes = -1;
	posix_spawn_file_actions_t files;
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	reads = ends[0];
	writes = ends[1];
	r = fd_set_nonblock(reads);
	if (r < 0)
		return r;
	posix_spawn_file_actions_init(&files);
	r = posix_spawn_file_actions_adddup2(&files, writes, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawnp(ret_pid, arguments[0], &files, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&files);
	if (r == 0)
		*ret_pipe = TAKE_FD(reads);
	return -r;
}

static void start_program(struct helper *h)
{
	struct guard *g = h->guard;
	int pipe = -1, r;
	pid_t pid = 0;

	h->start_ms = clock_now_ms(CLOCK_BOOTTIME) + START_AGAIN_MS;
	r = spawn(h, &pid, &pipe);
	if (r < 0) {
		complain_of_program(h, r, "cannot start ");
		return;
	}
	pthread_mutex_lock(&g->lock);
	g->pid = pid;
	g->pipe = pipe;
	pthread_mutex_unlock(&g->lock);
	eventfd_write(g->wake_fd, 1);
}

static void bury_program(struct helper *h, pid_t pid)
{
	struct guard *g = h->guard;

	complain_of_program(h, 0, "it has ended: ");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	h->start_ms = clock_now_ms(CLOCK_BOOTTIME) + START_AGAIN_MS;
	pthread_mutex_lock(&g->lock);
	g->pid = 0;
	g->has_ended = false;
	pthread_mutex_unlock(&g->lock);
}

static void log_news(struct helper *h, const struct news *news)
{
	size_t i;

	if (news->error && news->error != h->end_error)
		log_warn(news->error, "not all that is to end can be found");
	h->end_error = news->error;
	for (i = 0; i < news->told.n_jobs; i++)
		log_warn(0,
			 "Slurm does not hear this node: job-%" PRIu32
			 " is %s, as it may be started elsewhere",
			 news->told.jobs[i], news->is_kill ? "killed" : "ended");
}

/* Once of each error, whether it was saved because Slurm is heard, or because it is not. */
static void save(struct helper *h)
{
	const char *kept = lease_memory_kept(&h->copy);
	int r = lease_memory_save(&h->copy);

	if (r < 0 && r != h->save_error)
		log_warn(
			r,
			"cannot write %s: if this is ended, it is not known when Slurm was heard last",
			h->guard->options->state);
	h->save_error = r;
	h->has_complained = false;
	if (h->kept && !str_eq(h->kept, kept))
		log_info("Slurm starts nowhere else, of its jobs here: %s", *kept ? kept : "none");
	free(h->kept);
	h->kept = strdup(kept);
}

/* Called with the lock, and returns with it; it is let go wherever something may wait. */
static void wait_for_work(struct helper *h)
{
	uint64_t now_ms = clock_now_ms(CLOCK_BOOTTIME), wait_ms = START_AGAIN_MS, until_ns;
	struct guard *g = h->guard;
	struct timespec until;

	if (!g->pid && h->start_ms > now_ms)
		wait_ms = MIN(wait_ms, h->start_ms - now_ms);
	until_ns = clock_now_ns(CLOCK_MONOTONIC) + wait_ms * 1000000;
	until = (struct timespec){ until_ns / 1000000000, until_ns % 1000000000 };
	pthread_cond_clockwait(&g->wanted, &g->lock, CLOCK_MONOTONIC, &until);
}

/* Return: whether there was something to do. */
static bool do_work(struct helper *h)
{
	struct guard *g = h->guard;
	struct news news = g->news;
	pid_t buried = g->has_ended ? g->pid : 0;
	bool is_unsaved = g->memory.is_unsaved, is_absent = !g->pid;

	h->copy = g->memory;
	g->memory.is_unsaved = false;
	g->news.told.n_jobs = 0;
	pthread_mutex_unlock(&g->lock);
	if (is_unsaved)
		save(h);
	log_news(h, &news);
	if (buried)
		bury_program(h, buried);
	is_absent &= clock_now_ms(CLOCK_BOOTTIME) >= h->start_ms;
	if (is_absent)
		start_program(h);
	pthread_mutex_lock(&g->lock);
	return is_unsaved || buried || is_absent;
}

static void *help(void *userdata)
{
	static struct helper helper;
	struct guard *g = userdata;

	helper.guard = g;
	helper.kept = strdup("");
	pthread_mutex_lock(&g->lock);
	while (!g->is_over) {
		if (!do_work(&helper))
			wait_for_work(&helper);
	}
	pthread_mutex_unlock(&g->lock);
	return NULL;
}

/* --- the deadline: what Slurm says --- */

static void end_program(struct guard *g)
{
	close(g->fd);
	g->fd = -1;
	g->len = 0;
	pthread_mutex_lock(&g->lock);
	g->has_ended = true;
	pthread_cond_signal(&g->wanted);
	pthread_mutex_unlock(&g->lock);
}

static void take_line(struct guard *g, const char *line)
{
	pthread_mutex_lock(&g->lock);
	if (lease_memory_hear(&g->memory, line, clock_now_ms(CLOCK_BOOTTIME)) == 0)
		pthread_cond_signal(&g->wanted);
	pthread_mutex_unlock(&g->lock);
}

static void read_lines(struct guard *g)
{
	/* It is never more; a compiler that does not see it takes the room for without bounds. */
	size_t len = MIN(g->len, sizeof(g->line) - 1);
	ssize_t n = read(g->fd, g->line + len, sizeof(g->line) - 1 - len);
	char *begin = g->line, *end;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		end_program(g);
		return;
	}
	g->len += n;
	g->line[g->len] = '\0';
	while ((end = strchr(begin, '\n'))) {
		*end = '\0';
		take_line(g, begin);
		begin = end + 1;
	}
	g->len -= begin - g->line;
	memmove(g->line, begin, g->len);
	/* A line without an end is none of that program's. */
	if (g->len == sizeof(g->line) - 1)
		end_program(g);
}

static void take_program(struct guard *g)
{
	eventfd_t unused;

	eventfd_read(g->wake_fd, &unused);
	pthread_mutex_lock(&g->lock);
	g->fd = g->pipe;
	g->pipe = -1;
	pthread_mutex_unlock(&g->lock);
}

/* --- the deadline: the end of what runs here --- */

/* Return: whether none was left that may be started elsewhere. */
static bool end_jobs(struct guard *g, bool is_kill)
{
	const struct jobs_order order = { g->options->node, lease_memory_kept(&g->memory),
					  is_kill };
	struct jobs_told told = {};
	int r = jobs_end(&g->jobs, &order, &told);

	pthread_mutex_lock(&g->lock);
	g->news.error = r;
	if (told.n_jobs) {
		g->news.told = told;
		g->news.is_kill = is_kill;
	}
	pthread_cond_signal(&g->wanted);
	pthread_mutex_unlock(&g->lock);
	return r == 0 && told.n_processes == 0;
}

/* Return: when to look again at the latest. */
static uint64_t carry_out(struct guard *g, enum node_lease_order order)
{
	switch (order) {
	case NODE_LEASE_GO_ON:
		g->is_told = false;
		break;
	case NODE_LEASE_TERM:
		if (!g->is_told)
			end_jobs(g, /* is_kill= */ false);
		g->is_told = true;
		break;
	case NODE_LEASE_KILL:
		return end_jobs(g, /* is_kill= */ true) ? LOOK_MOST_MS : LOOK_AGAIN_MS;
	}
	return LOOK_MOST_MS;
}

static void look(struct guard *g)
{
	enum node_lease_order order;
	uint64_t wait_ms, most_ms;
	struct pollfd p[2];

	pthread_mutex_lock(&g->lock);
	order = lease_memory_look(&g->memory, clock_now_ms(CLOCK_BOOTTIME), &wait_ms);
	pthread_mutex_unlock(&g->lock);
	most_ms = carry_out(g, order);
	p[0] = (struct pollfd){ .fd = g->fd, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = g->wake_fd, .events = POLLIN };
	if (poll(p, ARRAY_SIZE(p), MIN(wait_ms, most_ms)) <= 0)
		return;
	if (p[0].revents)
		read_lines(g);
	if (p[1].revents)
		take_program(g);
}

/* --- both --- */

/* What was said before, also to an earlier cotenant-node of this boot. */
static void remember(struct guard *g)
{
	const char *path = g->options->state;
	_cleanup_free_ char *boot_id = NULL, *where = NULL;
	int r;

	r = file_read_at(AT_FDCWD, BOOT_ID, BOOT_ID_SIZE, &boot_id, NULL);
	if (r == 0)
		boot_id[strcspn(boot_id, "\n")] = '\0';
	else
		log_warn(r, "cannot read " BOOT_ID);
	where = boot_id ? str_format("%s/%s", boot_id, g->options->node) : strdup("");
	r = where ? lease_memory_open(&g->memory, path, where, clock_now_ms(CLOCK_BOOTTIME))
		  : -ENOMEM;
	if (r < 0)
		log_warn(r, "%s does not say when Slurm was heard last", path);
	else if (g->memory.lease.is_known)
		log_info("Slurm was last heard %" PRIu64 " s ago",
			 (clock_now_ms(CLOCK_BOOTTIME) - g->memory.lease.asked_ms) / 1000);
}

/* Its own pages are not read from a disk again, and it need not wait until what keeps a processor busy has its turn. */
static void come_first(void)
{
	if (mlockall(MCL_CURRENT) < 0)
		log_debug(-errno, "its memory may be taken away");
	if (setpriority(PRIO_PROCESS, gettid(), BEFORE_OTHERS) < 0)
		log_debug(-errno, "others may come first");
}

int guard_run(const struct guard_options *options, const volatile sig_atomic_t *is_over)
{
	static struct guard guard = { .fd = -1,
				      .pipe = -1,
				      .lock = PTHREAD_MUTEX_INITIALIZER,
				      .wanted = PTHREAD_COND_INITIALIZER };
	pthread_t helper;
	int r;

	guard.options = options;
	r = jobs_open(&guard.jobs);
	if (r < 0)
		return r;
	guard.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (guard.wake_fd < 0)
		return -errno;
	remember(&guard);
	r = -pthread_create(&helper, NULL, help, &guard);
	if (r < 0)
		return r;
	come_first();
	while (!*is_over)
		look(&guard);
	/* The other may wait for something; the program it has started ends when nobody reads what it prints. */
	pthread_mutex_lock(&guard.lock);
	guard.is_over = true;
	pthread_cond_signal(&guard.wanted);
	if (guard.pid && !guard.has_ended)
		kill(guard.pid, SIGKILL);
	pthread_mutex_unlock(&guard.lock);
	pthread_detach(helper);
	return 0;
}
