// SPDX-License-Identifier: Apache-2.0
/* A session's requests in the order that no driver of ours sends them: its worker is the end of a socket. */
#include "forward/host/session.h"

#include "base/base.h"
#include "base/check.h"
#include "base/log.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

/* Nobody's: what is killed at the end of the session does not exist. */
#define WORKER_PID 0x7ffffff0

#define LANE 7

static struct session session;
static int worker = -1;
static unsigned n_brought, n_answered, n_gone;
static int answered;
/* What is asked for is not there at once, as in a virtual machine. */
static bool brings_later;

int worker_start(_unused_ const struct worker_program *program, _unused_ bool mapped,
		 struct worker *ret)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) < 0)
		return -errno;
	worker = pair[1];
	*ret = (struct worker){ WORKER_PID, pair[0], eventfd(0, 0), -1 };
	return 0;
}

static int bring(struct session *s)
{
	n_brought++;
	return brings_later ? 0 : session_tell(s, NULL, 0);
}

static void answer(_unused_ struct session *s, int error)
{
	n_answered++;
	answered = error;
}

static void lane_gone(_unused_ struct session *s, _unused_ uint32_t id)
{
	n_gone++;
}

static const struct session_side side = { .bring = bring,
					  .answer = answer,
					  .lane_gone = lane_gone };

static int ask(uint32_t type, uint32_t id)
{
	const struct wire_message message = { .type = type, .id = id };

	return session_request(&session, &message);
}

static int say(uint32_t type, uint32_t id)
{
	struct socket_message m = { .message = { .type = type, .id = id } };

	return session_answer(&session, &m);
}

static void test_opening(void)
{
	check(ask(WIRE_LANE_ADD, LANE) == -ENOTCONN, "opening: nothing before it");
	check(ask(WIRE_SESSION_OPEN, 0) == 0 && n_brought == 0,
	      "opening: waits for the worker's first word");
	check(ask(WIRE_SESSION_OPEN, 0) == -EBUSY, "opening: one request at a time");
	check(say(WIRE_HELLO, 0) == 0 && n_brought == 1 && n_answered == 0,
	      "opening: then memory is brought");
	check(say(WIRE_SESSION_OPEN, 0) == 0 && n_answered == 1 && answered == 0,
	      "opening: is answered");
}

static void test_lane(void)
{
	check(ask(WIRE_LANE_REMOVE, LANE) == -ENOENT, "lane: none that nobody asked for ends");
	check(ask(WIRE_LANE_ADD, LANE) == 0, "lane: is asked for");
	check(ask(WIRE_LANE_REMOVE, LANE) == -ENOENT, "lane: does not end before it is there");
	check(say(WIRE_LANE_REMOVE, LANE) == -EPROTO && n_gone == 0,
	      "lane: a worker cannot end it either");
	check(say(WIRE_LANE_ADD, LANE) == 0 && n_answered == 2 && answered == 0,
	      "lane: begins all the same");
	check(ask(WIRE_LANE_REMOVE, LANE) == 0 && ask(WIRE_LANE_REMOVE, LANE) == -ENOENT,
	      "lane: ends once");
	check(ask(WIRE_LANE_ADD, LANE) == -EEXIST, "lane: its number is taken until then");
	check(say(WIRE_LANE_REMOVE, LANE) == 0 && n_gone == 1 && ask(WIRE_LANE_ADD, LANE) == 0,
	      "lane: and then it is free");
}

static void test_early_answer(void)
{
	check(say(WIRE_LANE_ADD, LANE) == 0, "early: the lane of before is there");
	brings_later = true;
	check(ask(WIRE_LANE_ADD, LANE + 1) == 0, "early: a lane whose memory comes later");
	check(say(WIRE_LANE_ADD, LANE + 1) == -EPROTO && n_answered == 3,
	      "early: the worker has nothing that it was not told of");
	check(session_tell(&session, NULL, 0) == 0 && say(WIRE_LANE_ADD, LANE + 1) == 0 &&
		      n_answered == 4,
	      "early: and then it has");
}

int main(void)
{
	log_init("test-session", LOG_EMERG);
	session_init(&session, &side, NULL, /* mapped= */ false);
	test_opening();
	test_lane();
	test_early_answer();
	session_end_now(&session);
	session_done(&session);
	close(worker);
	return check_result();
}
