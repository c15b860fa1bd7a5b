/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/channel.h"

#include "base/check.h"
#include "base/str.h"

#include <errno.h>
#include <sys/socket.h>

#define SOON (channel_now_ms() + 60000)

static int pair[2];

static int read_line(size_t most, char **ret)
{
	return channel_read(pair[1], most, SOON, ret);
}

static void test_lines(void)
{
	_cleanup_free_ char *line = NULL, *none = NULL;
	char many[5000];

	check(channel_write(pair[0], "hello", SOON) == 0 && read_line(5, &line) == 0 &&
		      str_eq(line, "hello"),
	      "channel: a line arrives without its newline");
	memset(many, 'x', sizeof(many));
	check(send(pair[0], many, sizeof(many), 0) == sizeof(many) &&
		      read_line(sizeof(many) - 1, &none) == -EMSGSIZE,
	      "channel: one that is too long is not read to its end");
}

static void test_ends(void)
{
	char *none = NULL;

	check(send(pair[0], "half", 4, 0) == 4 &&
		      channel_read(pair[1], 100, 0, &none) == -ETIMEDOUT,
	      "channel: it comes in time or not at all");
	shutdown(pair[0], SHUT_WR);
	check(read_line(100, &none) == -ENODATA, "channel: half a line is none");
	close(pair[1]);
	check(channel_write(pair[0], "hello", SOON) == -EPIPE,
	      "channel: who has gone is told of by an error, and by no signal");
}

int main(void)
{
	if (!check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "channel: two sockets"))
		return check_result();
	test_lines();
	test_ends();
	check(channel_listen("nowhere") == -EINVAL && channel_listen("127.0.0.1:many") == -EINVAL,
	      "channel: an address has a port");
	return check_result();
}
