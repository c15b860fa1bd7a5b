/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slurm is asked by a program of its own, as its library may keep whoever calls it waiting for as long as
 * it likes. It prints a line for each answer; all that is done here is to wait for the next one, or for
 * the end of the lease. Whichever of the two is killed is started anew with the latest line.
 */
#include "cluster/node/guard.h"

#include "cluster/node/lease-memory.h"

#include "api/client.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

#define BOOT_ID	       "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_SIZE   37
#define LOOK_MOST_MS   500 /* poll() does not count while the machine sleeps */
#define LOOK_AGAIN_MS  100
#define START_AGAIN_MS 1000

/**
 * struct guard - all of it
 * @memory:	the lease, and the latest line
 * @is_told:	the jobs have been told to end, since Slurm was heard last
 * @has_complained:	what does not work is in the log, since it worked last
 * @save_error:	the one of @memory that is in the log
 * @pid:	of the program that asks Slurm; 0 where it does not run
 * @fd:		what it prints, -1 likewise
 * @line:	the beginning of its next line
 * @start_ms:	not before that is it started again
 */
struct guard {
	const struct guard_options *options;
	struct lease_memory memory;
	bool is_told;
	bool has_complained;
	int save_error;
	pid_t pid;
	int fd;
	char line[CONTACT_LINE_SIZE];
	size_t len;
	uint64_t start_ms;
};

/* What goes on fills no log. */
static int complain(struct guard *g, int r, const char *what, const char *why)
{
	if (!g->has_complained)
		log_warn(r, "%s%s", what, why);
	g->has_complained = true;
	return r;
}

/* --- what Slurm says --- */

static int start_program(struct guard *g)
{
	char *arguments[] = { (char *)g->options->batch_program, (char *)"contact",
			      (char *)g->options->node, *g->memory.said ? g->memory.said : NULL,
			      NULL };
	posix_spawn_file_actions_t files;
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	posix_spawn_file_actions_init(&files);
	r = posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
	if (r == 0)
		r = posix_spawnp(&g->pid, arguments[0], &files, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&files);
	close(ends[1]);
	if (r != 0) {
		close(ends[0]);
		g->pid = 0;
		return -r;
	}
	g->fd = ends[0];
	g->len = 0;
	return 0;
}

static void end_program(struct guard *g)
{
	if (g->pid) {
		kill(g->pid, SIGKILL);
		waitpid(g->pid, NULL, 0);
		close(g->fd);
	}
	g->pid = 0;
	g->fd = -1;
	g->start_ms = clock_now_ms(CLOCK_BOOTTIME) + START_AGAIN_MS;
}

/* Return: whether it was started just now, or tried to: on a busy machine that may take seconds. */
static bool keep_running(struct guard *g)
{
	int r;

	if (g->pid || clock_now_ms(CLOCK_BOOTTIME) < g->start_ms)
		return false;
	r = start_program(g);
	if (r < 0) {
		complain(g, r, "cannot start ", g->options->batch_program);
		g->start_ms = clock_now_ms(CLOCK_BOOTTIME) + START_AGAIN_MS;
	}
	return true;
}

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

/* Once of each error, whether it was saved because Slurm is heard, or because it is not. */
static void complain_of_saving(struct guard *g)
{
	if (g->memory.save_error && g->memory.save_error != g->save_error)
		log_warn(
			g->memory.save_error,
			"cannot write %s: if this is ended, it is not known when Slurm was heard last",
			g->options->state);
	g->save_error = g->memory.save_error;
}

static void take_line(struct guard *g, const char *line)
{
	_cleanup_free_ char *before = strdup(lease_memory_kept(&g->memory));
	const char *kept;

	if (lease_memory_hear(&g->memory, line, clock_now_ms(CLOCK_BOOTTIME)) < 0)
		return;
	g->has_complained = false;
	kept = lease_memory_kept(&g->memory);
	if (before && !str_eq(before, kept))
		log_info("Slurm starts nowhere else, of its jobs here: %s", *kept ? kept : "none");
}

static void read_lines(struct guard *g)
{
	/* It is never more; a compiler that does not see it takes the room for without bounds. */
	size_t len = MIN(g->len, sizeof(g->line) - 1);
	ssize_t n = read(g->fd, g->line + len, sizeof(g->line) - 1 - len);
	char *begin = g->line, *end;

	if (n <= 0) {
		complain(g, 0, "it has ended: ", g->options->batch_program);
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

/* --- the end of what runs here --- */

static bool is_kept(const struct guard *g, const char *job)
{
	size_t len = strlen(job);
	const char *at;

	for (at = lease_memory_kept(&g->memory); *at;
	     at += strcspn(at, " "), at += strspn(at, " ")) {
		if (strcspn(at, " ") == len && strncmp(at, job, len) == 0)
			return true;
	}
	return false;
}

/* Return: how many processes it had, or -EIO. */
static int end_job(struct guard *g, uint64_t job, bool is_kill)
{
	struct api_error error = {};
	json_t *reply = NULL;
	int left;

	if (api_request_json(g->options->socket, API_JOB_END,
			     json_pack("{s:I, s:b}", "job", (json_int_t)job, "kill", is_kill),
			     &reply, &error) < 0)
		return complain(g, -EIO, "a job is not ended: ", error.message);
	left = json_integer_value(json_object_get(reply, "left"));
	json_decref(reply);
	if (left)
		log_warn(0,
			 "Slurm does not hear this node: job-%" PRIu64
			 " is %s, as it may be started elsewhere",
			 job, is_kill ? "killed" : "ended");
	return left;
}

/* Return: how many processes all had that may be started elsewhere, or -EIO. */
static int end_jobs(struct guard *g, bool is_kill)
{
	struct api_error error = {};
	json_t *reply = NULL, *tenant;
	const char *name, *number;
	int r = 0, left, n_left = 0;
	uint64_t job;
	size_t i;

	if (api_request_json(g->options->socket, API_TENANTS_LIST, NULL, &reply, &error) < 0)
		return complain(g, -EIO, "what runs here is not known: ", error.message);
	json_array_foreach(json_object_get(reply, "tenants"), i, tenant) {
		name = json_string_value(json_object_get(tenant, "tenant"));
		number = name ? str_after(name, "job-") : NULL;
		if (!number || str_parse_u64(number, &job) < 0 || is_kept(g, number))
			continue;
		left = end_job(g, job, is_kill);
		if (left < 0)
			r = left;
		else
			n_left += left;
	}
	json_decref(reply);
	return r < 0 ? r : n_left;
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
			g->is_told = end_jobs(g, /* is_kill= */ false) >= 0;
		return g->is_told ? LOOK_MOST_MS : LOOK_AGAIN_MS;
	case NODE_LEASE_KILL:
		return end_jobs(g, /* is_kill= */ true) == 0 ? LOOK_MOST_MS : LOOK_AGAIN_MS;
	}
	return LOOK_MOST_MS;
}

void guard_run(const struct guard_options *options, const volatile sig_atomic_t *is_over)
{
	static struct guard guard = { .fd = -1 };
	uint64_t wait_ms, most_ms;
	struct pollfd p;

	guard.options = options;
	remember(&guard);
	while (!*is_over) {
		most_ms = carry_out(
			&guard,
			lease_memory_look(&guard.memory, clock_now_ms(CLOCK_BOOTTIME), &wait_ms));
		complain_of_saving(&guard);
		if (keep_running(&guard))
			continue;
		p = (struct pollfd){ .fd = guard.fd, .events = POLLIN };
		if (poll(&p, 1, MIN(wait_ms, most_ms)) > 0)
			read_lines(&guard);
	}
	end_program(&guard);
}
