// SPDX-License-Identifier: Apache-2.0
/*
 * The watcher is asked one question at a time, and the sessions that have one take turns. Whose answer it is
 * is known by the session's number, so a session may end meanwhile.
 */
#include "forward/host/monitor.h"

#include "base/base.h"
#include "base/log.h"
#include "forward/host/watcher.h"
#include "forward/question.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static struct source watcher = { .fd = -1 };
/* Whose question the watcher has, or had last. */
static uint64_t turn;
static bool asked;

static void reply(struct session *session, int32_t result, const void *data)
{
	struct wire_message message = { .type = WIRE_DEVICE,
					.id = session->question.id,
					.size = (uint32_t)result };

	if (data)
		memcpy(message.data, data, sizeof(message.data));
	session->question.type = 0;
	if (socket_send(session->worker.fd, &message, NULL, 0) < 0)
		session_end(session);
}

/* NULL where it is gone. */
static struct session *session_of(uint64_t number)
{
	struct session *session = session_after(number - 1);

	return session && session->number == number ? session : NULL;
}

static struct session *asker_between(uint64_t after, uint64_t last)
{
	struct session *session = session_after(after);

	while (session && session->number <= last && !session->question.type)
		session = session_after(session->number);
	return session && session->number <= last ? session : NULL;
}

static struct session *next_asker(void)
{
	struct session *session = asker_between(turn, UINT64_MAX);

	return session ? session : asker_between(0, turn);
}

/* The processes that come behind the one that the question says. */
static void add_processes(struct watcher_question *question, uint64_t number)
{
	struct session *session = session_after(number);

	while (session && question->n_pids < ARRAY_SIZE(question->pids)) {
		if (session->guest_pid)
			question->pids[question->n_pids++] = session->pid;
		session = session_after(session->number);
	}
}

static int ask(struct session *session)
{
	const struct wire_message *message = &session->question;
	struct watcher_question question = { .question = message->id, .which = message->address };

	memcpy(question.uuid, message->data, sizeof(question.uuid));
	if (question_form(message->id) == FORM_PROCESS)
		add_processes(&question, message->address);
	turn = session->number;
	return send(watcher.fd, &question, sizeof(question), MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static void lose(int error)
{
	log_warn(error, "nothing is told of devices any more");
	source_close(&watcher);
	asked = false;
}

static void ask_next(void)
{
	struct session *session;
	int r;

	while (!asked && (session = next_asker())) {
		if (watcher.fd < 0) {
			turn = session->number;
			reply(session, NVML_ERROR_DRIVER_NOT_LOADED, NULL);
			continue;
		}
		r = ask(session);
		if (r < 0)
			lose(r);
		else
			asked = true;
	}
}

/* A worker that has ended meanwhile is none of ours any more, whoever has its number now. */
static struct session *session_of_worker(pid_t pid)
{
	struct session *session = session_after(0);

	while (session && session->pid != pid)
		session = session_after(session->number);
	return session;
}

/* Return: is it an answer? Else it is asked again, about those that are left. */
static bool finish_process(struct watcher_answer *answer)
{
	struct wire_process *process = (struct wire_process *)answer->data;
	struct session *session = session_of_worker(answer->pid);

	if (!session)
		return false;
	process->next = session->number;
	process->pid = session->guest_pid;
	return true;
}

static void answered(struct source *source)
{
	struct session *session = session_of(turn);
	struct watcher_answer answer;
	ssize_t n = recv(source->fd, &answer, sizeof(answer), 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof(answer) || !asked) {
		lose(n < 0 ? -errno : -EPIPE);
	} else {
		asked = false;
		if (session && session->question.type &&
		    (question_form(session->question.id) != FORM_PROCESS ||
		     answer.result != NVML_SUCCESS || finish_process(&answer)))
			reply(session, answer.result, answer.data);
	}
	ask_next();
}

int monitor_ask(struct session *session, const struct wire_message *message)
{
	if (session->question.type)
		return -EPROTO;
	session->question = *message;
	if (message->id >= N_QUESTIONS || question_form(message->id) == FORM_COUNT)
		reply(session, NVML_ERROR_NOT_SUPPORTED, NULL);
	else
		ask_next();
	return 0;
}

int monitor_begin(int fd)
{
	int r = source_add(&watcher, fd, answered);

	if (r < 0)
		close(fd);
	return r;
}
