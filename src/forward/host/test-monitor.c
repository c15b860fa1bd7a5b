// SPDX-License-Identifier: Apache-2.0
/*
 * What a broker asks its watcher, and whose answer it is: sessions whose workers are ends of sockets, and a
 * watcher that is one too.
 */
#include "forward/host/monitor.h"

#include "base/base.h"
#include "base/check.h"
#include "base/log.h"
#include "forward/host/watcher.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#define N_SESSIONS 3
/* Nobody's: what is killed at the end of a session does not exist. */
#define FIRST_PID 0x7ffffff0

static struct session sessions[N_SESSIONS];
static int workers[N_SESSIONS];
static int n_started;
static int watcher = -1;

int worker_start(_unused_ const struct worker_program *program, _unused_ bool mapped,
		 struct worker *ret)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	workers[n_started] = pair[1];
	*ret = (struct worker){ FIRST_PID + n_started, pair[0], eventfd(0, 0), -1 };
	n_started++;
	return 0;
}

static void answer(_unused_ struct session *session, _unused_ int error)
{
}

static const struct session_side side = { .answer = answer };

/* The guest's processes are 100, 101, 102. */
static void begin(void)
{
	struct wire_message message = { .type = WIRE_SESSION_OPEN };
	int i, pair[2];

	for (i = 0; i < N_SESSIONS; i++) {
		session_init(&sessions[i], &side, NULL, /* mapped= */ false);
		message.id = 100 + (uint32_t)i;
		check(session_request(&sessions[i], &message) == 0, "session %d begins", i);
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) < 0 ||
	    monitor_begin(pair[0]) < 0)
		abort();
	watcher = pair[1];
}

static int ask(int i, uint32_t question, uint64_t which)
{
	struct wire_message message = { .type = WIRE_DEVICE, .id = question, .address = which };

	message.data[15] = (uint8_t)i;
	return monitor_ask(&sessions[i], &message);
}

/* Return: how many processes the watcher is asked about; -1: it is not asked. */
static int asked(struct watcher_question *ret)
{
	return recv(watcher, ret, sizeof(*ret), 0) == sizeof(*ret) ? (int)ret->n_pids : -1;
}

static void say(int32_t result, int32_t pid, uint8_t first)
{
	struct watcher_answer said = { .result = result, .pid = pid };

	said.data[0] = first;
	if (send(watcher, &said, sizeof(said), 0) < 0)
		abort();
	loop_once();
}

/* Return: did a worker get an answer? */
static bool told(int i, struct wire_message *ret)
{
	return recv(workers[i], ret, sizeof(*ret), 0) == sizeof(*ret) && ret->type == WIRE_DEVICE;
}

static void test_turns(void)
{
	struct watcher_question question;
	struct wire_message message;
	int i;

	for (i = 0; i < N_SESSIONS; i++)
		check(ask(i, QUESTION_nvmlDeviceGetName, 0) == 0, "turns: session %d asks", i);
	check(ask(0, QUESTION_nvmlDeviceGetName, 0) == -EPROTO,
	      "turns: a second question waits for the first one's answer");
	for (i = 0; i < N_SESSIONS; i++) {
		check(asked(&question) == 0 && question.uuid[15] == i,
		      "turns: the watcher has the question of session %d", i);
		check(asked(&question) < 0, "turns: and no other");
		say(NVML_SUCCESS, 0, (uint8_t)(10 + i));
		check(told(i, &message) && message.size == NVML_SUCCESS &&
			      message.data[0] == 10 + i,
		      "turns: session %d has its own answer", i);
	}
	check(ask(0, N_QUESTIONS, 0) == 0 && told(0, &message) &&
		      message.size == NVML_ERROR_NOT_SUPPORTED && asked(&question) < 0,
	      "turns: what is no question is not asked");
}

static void test_processes(void)
{
	const uint32_t what = QUESTION_nvmlDeviceGetComputeRunningProcesses_v3;
	struct watcher_question question;
	struct wire_process process;
	struct wire_message message;

	ask(1, what, 0);
	check(asked(&question) == N_SESSIONS && question.pids[0] == FIRST_PID &&
		      question.pids[2] == FIRST_PID + 2,
	      "processes: it is asked about workers of this broker");
	say(NVML_SUCCESS, 1, 0);
	check(!told(1, &message) && asked(&question) == N_SESSIONS,
	      "processes: another's is told to nobody, and it is asked again");
	say(NVML_SUCCESS, FIRST_PID + 1, 0);
	check(told(1, &message), "processes: one of them is told");
	memcpy(&process, message.data, sizeof(process));
	check(process.pid == 101, "processes: by the guest's number");
	ask(1, what, process.next);
	check(asked(&question) == 1 && question.pids[0] == FIRST_PID + 2,
	      "processes: then about those behind it");
	say(NVML_ERROR_NOT_FOUND, 0, 0);
	check(told(1, &message) && message.size == NVML_ERROR_NOT_FOUND,
	      "processes: until there is none");
}

/* Sessions end while the watcher has their question. */
static void test_ends(void)
{
	struct watcher_question question;
	struct wire_message message;

	ask(0, QUESTION_nvmlDeviceGetName, 0);
	ask(2, QUESTION_nvmlDeviceGetComputeRunningProcesses_v3, 0);
	session_end_now(&sessions[0]);
	session_done(&sessions[0]);
	asked(&question);
	say(NVML_SUCCESS, 0, 0);
	check(asked(&question) == 2, "ends: its process is none of the guest's any more");
	close(watcher);
	loop_once();
	check(told(2, &message) && message.size == NVML_ERROR_DRIVER_NOT_LOADED,
	      "ends: who waits hears of the watcher's end");
	ask(1, QUESTION_nvmlDeviceGetName, 0);
	check(told(1, &message) && message.size == NVML_ERROR_DRIVER_NOT_LOADED,
	      "ends: and who asks then");
}

int main(void)
{
	log_init("test-monitor", LOG_EMERG);
	begin();
	test_turns();
	test_processes();
	test_ends();
	return check_result();
}
