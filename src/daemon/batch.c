/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/batch.h"

#include "base/log.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

static const char record_prefix[] = "job ";

/**
 * struct batch_call - a program that runs
 * @said:	the file that it writes into; it is read when the program has ended
 */
struct batch_call {
	struct batch_call *next;
	struct batch *batch;
	pid_t pid;
	int pidfd;
	int said;
	sd_event_source *source;
	batch_fn fn;
	void *userdata;
};

static void call_free(struct batch_call *call)
{
	sd_event_source_unref(call->source);
	if (call->pidfd >= 0)
		close(call->pidfd);
	if (call->said >= 0)
		close(call->said);
	free(call);
}

static void take_out(struct batch_call *call)
{
	struct batch_call **p;

	for (p = &call->batch->calls; *p != call; p = &(*p)->next)
		;
	*p = call->next;
}

static void read_words(int fd, char words[BATCH_WORDS])
{
	ssize_t n = pread(fd, words, BATCH_WORDS - 1, 0);

	words[n > 0 ? n : 0] = '\0';
	words[strcspn(words, "\n")] = '\0';
}

static int on_end(_unused_ sd_event_source *s, _unused_ int fd, _unused_ uint32_t revents,
		  void *userdata)
{
	struct batch_call *call = userdata;
	char words[BATCH_WORDS];
	siginfo_t info = {};
	bool good;

	if (waitid(P_PIDFD, call->pidfd, &info, WEXITED | WNOHANG) < 0 || info.si_pid == 0)
		return 0;
	good = info.si_code == CLD_EXITED && info.si_status == 0;
	read_words(call->said, words);
	if (!good)
		log_warn(0, "the batch engine: %s", *words ? words : "its program failed");
	take_out(call);
	if (call->fn)
		call->fn(good, words, call->userdata);
	call_free(call);
	return 0;
}

static int add_files(posix_spawn_file_actions_t *files, int said)
{
	int r = posix_spawn_file_actions_addopen(files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

	return r ? r : posix_spawn_file_actions_adddup2(files, said, STDOUT_FILENO);
}

/* It gets back the signals that the daemon keeps from itself. */
static int spawn(char *const arguments[], int said, pid_t *ret_pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none, defaults;
	int r;

	sigemptyset(&none);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	r = add_files(&files, said);
	if (r == 0)
		r = posix_spawnp(ret_pid, arguments[0], &files, &attributes, arguments, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return -r;
}

static int listen_for_end(struct batch *batch, struct batch_call *call)
{
	call->pidfd = syscall(SYS_pidfd_open, call->pid, 0);
	if (call->pidfd < 0)
		return -errno;
	return sd_event_add_io(batch->loop, &call->source, call->pidfd, EPOLLIN, on_end, call);
}

int batch_tell(struct batch *batch, const char *word, uint32_t job, const char *text, batch_fn fn,
	       void *userdata)
{
	char number[16],
		*arguments[] = { (char *)batch->program, (char *)word, number, (char *)text, NULL };
	struct batch_call *call;
	int r;

	if (!batch->program || !*batch->program)
		return -EOPNOTSUPP;
	call = calloc(1, sizeof(*call));
	if (!call)
		return -ENOMEM;
	*call = (struct batch_call){ .batch = batch, .pidfd = -1, .fn = fn, .userdata = userdata };
	snprintf(number, sizeof(number), "%" PRIu32, job);
	call->said = memfd_create("batch", MFD_CLOEXEC);
	r = call->said < 0 ? -errno : spawn(arguments, call->said, &call->pid);
	if (r == 0 && batch->loop)
		r = listen_for_end(batch, call);
	if (r < 0 || !batch->loop) {
		call_free(call);
		return r < 0 ? r : 0;
	}
	call->next = batch->calls;
	batch->calls = call;
	return 0;
}

void batch_forget(struct batch *batch, const void *userdata)
{
	struct batch_call *call;

	for (call = batch->calls; call; call = call->next) {
		if (call->userdata == userdata)
			call->fn = NULL;
	}
}

char *batch_record(uint32_t job)
{
	return str_format("%s%" PRIu32 "\n", record_prefix, job);
}

void batch_resume_recorded(struct batch *batch, const char *record)
{
	const char *line, *rest;
	int r;

	for (line = record; line && *line;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		rest = str_after(line, record_prefix);
		if (!rest)
			continue;
		r = batch_tell(batch, "resume", strtoul(rest, NULL, 10), NULL, NULL, NULL);
		if (r < 0)
			log_warn(r, "cannot tell the batch engine to resume job %lu",
				 strtoul(rest, NULL, 10));
	}
}

void batch_done(struct batch *batch)
{
	struct batch_call *call;

	while ((call = batch->calls)) {
		batch->calls = call->next;
		call_free(call);
	}
}
