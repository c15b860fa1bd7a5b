/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cotenant-slurm: what cotenantd starts to have Slurm do something with a job, and cotenant-node to
 * hear whether Slurm hears the node.
 *
 *	cotenant-slurm notify JOB TEXT		tell whoever waits for it
 *	cotenant-slurm suspend JOB
 *	cotenant-slurm resume JOB
 *	cotenant-slurm evict JOB PEAK		end it here and start it on another node
 *	cotenant-slurm kill JOB PEAK
 *	cotenant-slurm contact NODE [LINE]	see contact.h
 *
 * One line says what was done, or why not; the exit status is then 1.
 *
 * An eviction is three calls. A requeue alone would let the job wait two minutes, and its
 * node can be excluded only while it waits; so it is requeued held, and when it waits one
 * update excludes the node and lets it go at once. A job that asks for this very node stays
 * held: where else it may run is for whoever bound it to say. If that is cotenant-cluster, it
 * finds in the job what it held here at the most, in MiB, as it may ask for so much elsewhere.
 */
#include "cluster/controller/service.h"
#include "cluster/slurm/contact.h"
#include "cluster/slurm/slurm-api.h"

#include "base/clock.h"
#include "base/str.h"

#include <errno.h>
#include <signal.h>
#include <slurm/slurm_errno.h>
#include <time.h>

/* A job that does not end is ended by Slurm after its KillWait, 30 s as it comes. */
#define REQUEUED_WITHIN_MS 120000
#define LOOK_EVERY_US	   50000

static int failed(const char *what)
{
	printf("%s: %s\n", what, slurm_strerror(slurm_get_errno()));
	return 1;
}

/* --- eviction --- */

/* Is one of these nodes among those? */
static bool is_in(const char *these, const char *those)
{
	_cleanup_(hostlist_freep) struct hostlist *a = hostlist_of(these);
	_cleanup_(hostlist_freep) struct hostlist *b = hostlist_of(those);
	bool found = false;
	char *node;

	while (a && b && (node = slurm_hostlist_shift(a))) {
		found |= slurm_hostlist_find(b, node) >= 0;
		free(node);
	}
	return found;
}

static bool is_here(const char *node_name, const char *hostname)
{
	node_info_msg_t *nodes = NULL;
	bool found = false;

	if (slurm_load_node_single(&nodes, (char *)node_name, SHOW_ALL) != SLURM_SUCCESS)
		return false;
	if (nodes->record_count > 0 && nodes->node_array[0].node_hostname)
		found = str_eq(nodes->node_array[0].node_hostname, hostname);
	slurm_free_node_info_msg(nodes);
	return found;
}

/* The nodes of a job that are this machine, and those that were excluded before. */
static char *nodes_to_avoid(const job_info_t *job)
{
	_cleanup_(hostlist_freep) struct hostlist *nodes = hostlist_of(job->nodes);
	char hostname[256] = "", *node;
	struct text t = {};

	gethostname(hostname, sizeof(hostname) - 1);
	hostname[strcspn(hostname, ".")] = '\0';
	if (job->exc_nodes)
		text_add(&t, job->exc_nodes);
	while (nodes && (node = slurm_hostlist_shift(nodes))) {
		if (is_here(node, hostname))
			text_addf(&t, "%s%s", t.len ? "," : "", node);
		free(node);
	}
	return text_take(&t);
}

static int load_job(uint32_t number, job_info_msg_t **ret)
{
	if (slurm_load_job(ret, number, SHOW_ALL) != SLURM_SUCCESS)
		return -EIO;
	if ((*ret)->record_count == 1)
		return 0;
	slurm_free_job_info_msg(*ret);
	slurm_seterrno(ESLURM_INVALID_JOB_ID);
	return -EIO;
}

/* Return: 1 once it waits and nothing of it is left, 0 before, or a fault. */
static int is_waiting(uint32_t number)
{
	job_info_msg_t *jobs;
	int r;

	if (load_job(number, &jobs) < 0)
		return -EIO;
	/* Flags such as "completing" stand above the state. */
	r = (jobs->job_array[0].job_state & ~(uint32_t)(JOB_REQUEUE_HOLD | JOB_SPECIAL_EXIT)) ==
	    JOB_PENDING;
	slurm_free_job_info_msg(jobs);
	return r;
}

static int wait_until_waiting(uint32_t number)
{
	uint64_t until_ms = clock_now_ms(CLOCK_MONOTONIC) + REQUEUED_WITHIN_MS;
	int r;

	while ((r = is_waiting(number)) == 0 && clock_now_ms(CLOCK_MONOTONIC) < until_ms)
		usleep(LOOK_EVERY_US);
	if (r == 0)
		slurm_seterrno(ETIMEDOUT);
	return r > 0 ? 0 : -EIO;
}

static int release_elsewhere(uint32_t number, char *avoid)
{
	job_desc_msg_t change;

	slurm_init_job_desc_msg(&change);
	change.job_id = number;
	change.exc_nodes = avoid;
	change.begin_time = SLURM_API_NOW;
	change.priority = INFINITE;
	return slurm_update_job(&change);
}

/* Before it is requeued: whoever waits for that finds it there. */
static int note_peak(const job_info_t *job, const char *peak)
{
	char note[PEAK_NOTE_SIZE];
	job_desc_msg_t change;

	if (!peak || !job->comment || !str_after(job->comment, IDENTITY_PREFIX))
		return SLURM_SUCCESS;
	snprintf(note, sizeof(note), PEAK_NOTE "%s", peak);
	slurm_init_job_desc_msg(&change);
	change.job_id = job->job_id;
	change.admin_comment = note;
	return slurm_update_job(&change);
}

static int evict(uint32_t number, const char *peak)
{
	_cleanup_free_ char *avoid = NULL;
	job_info_msg_t *jobs;
	bool is_bound;
	int r;

	if (load_job(number, &jobs) < 0)
		return failed("not requeued");
	avoid = nodes_to_avoid(&jobs->job_array[0]);
	is_bound = avoid && is_in(avoid, jobs->job_array[0].req_nodes);
	r = note_peak(&jobs->job_array[0], peak);
	slurm_free_job_info_msg(jobs);
	if (!avoid || r != SLURM_SUCCESS ||
	    slurm_requeue(number, JOB_REQUEUE_HOLD) != SLURM_SUCCESS)
		return failed("not requeued");
	if (is_bound) {
		printf("requeued and held: it asks for %s itself\n", avoid);
		return 0;
	}
	if (wait_until_waiting(number) < 0)
		return failed("requeued and held");
	if (release_elsewhere(number, avoid) != SLURM_SUCCESS)
		return failed("requeued and held");
	printf("requeued without %s\n", avoid);
	return 0;
}

/* --- the others --- */

static int done(int r, const char *what, const char *what_failed)
{
	if (r != SLURM_SUCCESS)
		return failed(what_failed);
	printf("%s\n", what);
	return 0;
}

static int do_word(const char *word, uint32_t job, char *text)
{
	if (str_eq(word, "notify") && text)
		return done(slurm_notify_job(job, text), "told", "not told");
	if (str_eq(word, "suspend"))
		return done(slurm_suspend(job), "suspended", "not suspended");
	if (str_eq(word, "resume"))
		return done(slurm_resume(job), "resumed", "not resumed");
	if (str_eq(word, "evict"))
		return evict(job, text);
	if (str_eq(word, "kill"))
		return done(slurm_kill_job(job, SIGKILL, 0), "cancelled", "not cancelled");
	fprintf(stderr, "cotenant-slurm: '%s' is not notify, suspend, resume, evict or kill\n",
		word);
	return 2;
}

static int usage(void)
{
	fprintf(stderr, "usage: cotenant-slurm notify|suspend|resume|evict|kill JOB [TEXT|PEAK]\n"
			"       cotenant-slurm contact NODE [LINE]\n");
	return 2;
}

int main(int argc, char **argv)
{
	uint64_t job;

	if ((argc == 3 || argc == 4) && str_eq(argv[1], "contact")) {
		slurm_init(NULL);
		contact_tell(argv[2], argv[3]);
		return 1;
	}
	if (argc < 3 || argc > 4 || str_parse_u64(argv[2], &job) < 0 || job == 0 ||
	    job > UINT32_MAX)
		return usage();
	slurm_init(NULL);
	return do_word(argv[1], job, argv[3]);
}
