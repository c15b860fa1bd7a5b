/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * That nobody listens where slurmctld should is contact as well: one that is dead starts nothing, and one
 * that is started again gives each node its time from then on. A connection that is refused comes from
 * the machine itself, so no cut is taken for that.
 */
#include "cluster/slurm/contact.h"

#include "cluster/contact-line.h"
#include "cluster/slurm/slurm-api.h"

#include "base/clock.h"
#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <poll.h>
#include <slurm/slurm_errno.h>
#include <sys/socket.h>

#define LOOKS_PER_TIMEOUT 12
#define LOOK_MOST_MS	  5000
#define LOOK_LEAST_MS	  200
#define JOBS_EVERY_MS	  30000 /* all of the cluster's are loaded for them; at least once in a lease */
#define REFUSED_WITHIN_MS 1000

/**
 * struct contact - what is kept from one look to the next
 * @conf:	NULL until it was loaded
 * @timeout_ms:	SlurmdTimeout, and
 * @controllers:	as in a line: of @conf, or of what was said before; NULL until then
 * @kept:	the jobs' numbers, each with a space before it
 * @kept_ms:	when they were loaded; 0 until then
 * @is_known:	all of a line was loaded, or said before
 * @has_looked:	Slurm was looked for, whatever came of it
 */
struct contact {
	const char *node;
	slurm_conf_t *conf;
	uint64_t timeout_ms;
	char *controllers;
	struct text kept;
	uint64_t kept_ms;
	bool is_known;
	bool has_looked;
};

/* --- what Slurm says --- */

static char *controllers_of(const slurm_conf_t *conf)
{
	struct text t = {};
	uint32_t i, k;

	for (i = 0; i < conf->control_cnt; i++) {
		for (k = 0; k < conf->slurmctld_port_count; k++)
			text_addf(&t, "%s%s:%" PRIu32, t.len ? "," : "", conf->control_addr[i],
				  conf->slurmctld_port + k);
	}
	if (!t.len)
		text_add(&t, CONTACT_NO_CONTROLLER);
	return text_take(&t);
}

static int take_conf(struct contact *c, slurm_conf_t *conf)
{
	char *controllers = controllers_of(conf);

	if (!controllers) {
		slurm_free_ctl_conf(conf);
		return -ENOMEM;
	}
	if (c->conf)
		slurm_free_ctl_conf(c->conf);
	free(c->controllers);
	c->conf = conf;
	c->controllers = controllers;
	c->timeout_ms = conf->slurmd_timeout * 1000ULL;
	return 0;
}

static int load_conf(struct contact *c)
{
	slurm_conf_t *conf = NULL;

	if (slurm_load_ctl_conf(c->conf ? c->conf->last_update : 0, &conf) == SLURM_SUCCESS)
		return take_conf(c, conf);
	return c->conf && slurm_get_errno() == SLURM_NO_CHANGE_IN_DATA ? 0 : -EIO;
}

/* Return: 1 where the node is heard, 0 where not, or -EIO. */
static int is_heard(const char *node)
{
	node_info_msg_t *nodes = NULL;
	uint32_t state;
	int r = 0;

	if (slurm_load_node_single(&nodes, (char *)node, SHOW_ALL) != SLURM_SUCCESS)
		return -EIO;
	if (nodes->record_count == 1) {
		state = nodes->node_array[0].node_state;
		r = !(state & NODE_STATE_NO_RESPOND) &&
		    (state & NODE_STATE_BASE) != NODE_STATE_DOWN;
	}
	slurm_free_node_info_msg(nodes);
	return r;
}

static bool is_of_node(const job_info_t *job, const char *node)
{
	_cleanup_(hostlist_freep) struct hostlist *nodes = hostlist_of(job->nodes);

	return nodes && slurm_hostlist_find(nodes, node) >= 0;
}

static int load_kept(struct contact *c, uint64_t now)
{
	job_info_msg_t *jobs = NULL;
	uint32_t i;

	if (c->kept_ms && now - c->kept_ms < MIN(c->timeout_ms / 3, (uint64_t)JOBS_EVERY_MS))
		return 0;
	if (slurm_load_jobs(0, &jobs, SHOW_ALL) != SLURM_SUCCESS)
		return -EIO;
	text_done(&c->kept);
	c->kept = (struct text){};
	for (i = 0; i < jobs->record_count; i++) {
		const job_info_t *job = &jobs->job_array[i];

		if (!(job->batch_flag && job->requeue) && is_of_node(job, c->node))
			text_addf(&c->kept, " %" PRIu32, job->job_id);
	}
	slurm_free_job_info_msg(jobs);
	c->is_known = !c->kept.failed;
	if (!c->is_known)
		return -ENOMEM;
	c->kept_ms = now;
	return 0;
}

/* --- that there is none --- */

static bool refuses_one(const struct addrinfo *to)
{
	_cleanup_close_ int fd =
		socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	int error = 0;
	socklen_t len = sizeof(error);

	if (fd < 0)
		return false;
	if (connect(fd, to->ai_addr, to->ai_addrlen) < 0 && errno == ECONNREFUSED)
		return true;
	return poll(&p, 1, REFUSED_WITHIN_MS) == 1 &&
	       getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == ECONNREFUSED;
}

/* @controller: HOST:PORT, of which the last colon is the one; it is cut there */
static bool refuses(char *controller)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found, *at;
	char *port = strrchr(controller, ':');
	bool all = true;

	if (!port)
		return false;
	*port++ = '\0';
	if (getaddrinfo(controller, port, &hints, &found) != 0)
		return false;
	for (at = found; at && all; at = at->ai_next)
		all = refuses_one(at);
	freeaddrinfo(found);
	return all;
}

/* Of several controllers each has to refuse, on each of its ports. */
static bool nobody_listens(const char *controllers)
{
	_cleanup_free_ char *list = strdup(controllers);
	char *state = NULL, *at = list ? strtok_r(list, ",", &state) : NULL;
	bool all = at != NULL;

	for (; at && all; at = strtok_r(NULL, ",", &state))
		all = refuses(at);
	return all;
}

/* --- again and again --- */

static bool is_gone(const struct contact *c)
{
	return c->is_known && nobody_listens(c->controllers);
}

/*
 * Slurm's library tries for MessageTimeout to reach one that is gone. Whoever has just been started cannot wait
 * for that: what was heard by the one before him is old already. Only once, as Slurm may be elsewhere by now.
 *
 * Return: when it was asked, or 0 where there was no contact.
 */
static uint64_t look(struct contact *c)
{
	uint64_t asked_ms = clock_now_ms(CLOCK_BOOTTIME);
	bool is_first = !c->has_looked;
	int r;

	c->has_looked = true;
	if (is_first && is_gone(c))
		return asked_ms;
	r = load_conf(c);
	if (r == 0)
		r = load_kept(c, asked_ms);
	if (r == 0)
		r = is_heard(c->node);
	if (r >= 0)
		return r ? asked_ms : 0;
	asked_ms = clock_now_ms(CLOCK_BOOTTIME);
	return is_gone(c) ? asked_ms : 0;
}

static uint64_t pause_of(const struct contact *c)
{
	uint64_t ms = c->controllers ? c->timeout_ms / LOOKS_PER_TIMEOUT : LOOK_MOST_MS;

	return MAX(MIN(ms, (uint64_t)LOOK_MOST_MS), (uint64_t)LOOK_LEAST_MS);
}

/* Return: whether somebody still reads what is printed: without contact that would not be tried. */
static bool wait_for_next(const struct contact *c)
{
	struct pollfd p = { .fd = STDOUT_FILENO };

	return poll(&p, 1, pause_of(c)) <= 0;
}

/* Whoever is started while nobody answers knows what the one before has said. */
static void go_on_from(struct contact *c, const char *line)
{
	struct contact_line said;

	if (!line || contact_line_parse(line, &said) < 0)
		return;
	c->controllers = strndup(said.controllers, said.controllers_len);
	c->timeout_ms = said.timeout_ms;
	if (*said.kept)
		text_addf(&c->kept, " %s", said.kept);
	c->is_known = c->controllers && !c->kept.failed;
}

void contact_tell(const char *node, const char *before)
{
	struct contact contact = { .node = node };
	uint64_t asked_ms;

	go_on_from(&contact, before);
	do {
		asked_ms = look(&contact);
		if (!asked_ms)
			continue;
		printf("%" PRIu64 " %" PRIu64 " %s%s\n", asked_ms, contact.timeout_ms,
		       contact.controllers, contact.kept.len ? contact.kept.data : "");
		if (fflush(stdout) != 0)
			break;
	} while (wait_for_next(&contact));
}
