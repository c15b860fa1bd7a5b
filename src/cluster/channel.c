/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/channel.h"

#include "base/clock.h"
#include "base/str.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#define BACKLOG 64

uint64_t channel_now_ms(void)
{
	return clock_now_ms(CLOCK_BOOTTIME);
}

/* Return: 0 once the socket is ready, or -ETIMEDOUT, or what the kernel said. */
static int wait_for(int fd, short events, uint64_t until_ms)
{
	struct pollfd p = { .fd = fd, .events = events };
	uint64_t now;
	int r;

	do {
		now = channel_now_ms();
		if (now >= until_ms)
			return -ETIMEDOUT;
		r = poll(&p, 1, (int)MIN(until_ms - now, (uint64_t)INT32_MAX));
	} while (r < 0 && errno == EINTR);
	if (r < 0)
		return -errno;
	return r == 0 ? -ETIMEDOUT : 0;
}

/* --- addresses --- */

/* HOST:PORT of IPv4, as MUNGE's credentials are. */
static int resolve(const char *address, int flags, struct sockaddr_in *ret)
{
	const struct addrinfo hints = { .ai_flags = flags | AI_NUMERICSERV,
					.ai_family = AF_INET,
					.ai_socktype = SOCK_STREAM };
	const char *colon = strrchr(address, ':');
	_cleanup_free_ char *host = colon ? strndup(address, colon - address) : NULL;
	struct addrinfo *found;

	if (!host || getaddrinfo(*host ? host : NULL, colon + 1, &hints, &found) != 0)
		return -EINVAL;
	memcpy(ret, found->ai_addr, sizeof(*ret));
	freeaddrinfo(found);
	return 0;
}

static int connect_within(int fd, const struct sockaddr_in *to, uint64_t until_ms)
{
	socklen_t len = sizeof(int);
	int error = 0, r;

	if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	r = wait_for(fd, POLLOUT, until_ms);
	if (r < 0)
		return r;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		return -errno;
	return -error;
}

int channel_connect(const char *address, uint64_t until_ms)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_in to;
	int r;

	if (fd < 0)
		return -errno;
	r = resolve(address, 0, &to);
	if (r < 0)
		return r;
	if (bindresvport(fd, NULL) < 0)
		return -errno;
	r = connect_within(fd, &to, until_ms);
	return r < 0 ? r : TAKE_FD(fd);
}

int channel_listen(const char *address)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_in at;
	const int on = 1;
	int r;

	if (fd < 0)
		return -errno;
	r = resolve(address, AI_PASSIVE, &at);
	if (r < 0)
		return r;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* --- lines --- */

int channel_write(int fd, const char *line, uint64_t until_ms)
{
	_cleanup_free_ char *text = str_format("%s\n", line);
	size_t len, sent = 0;
	ssize_t n;
	int r;

	if (!text)
		return -ENOMEM;
	for (len = strlen(text); sent < len;) {
		r = wait_for(fd, POLLOUT, until_ms);
		if (r < 0)
			return r;
		n = send(fd, text + sent, len - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		sent += n > 0 ? n : 0;
	}
	return 0;
}

int channel_read(int fd, size_t most, uint64_t until_ms, char **ret)
{
	_cleanup_(text_done) struct text text = {};
	char chunk[16384];
	char *end = NULL;
	ssize_t n;
	int r;

	while (!end) {
		r = wait_for(fd, POLLIN, until_ms);
		if (r < 0)
			return r;
		n = recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT);
		if (n == 0)
			return -ENODATA;
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n < 0)
			return -errno;
		end = memchr(chunk, '\n', n);
		text_addn(&text, chunk, end ? end - chunk : n);
		if (text.len > most)
			return -EMSGSIZE;
	}
	*ret = text_take(&text);
	return *ret ? 0 : -ENOMEM;
}

void channel_wait_end(int fd, uint64_t until_ms)
{
	char unread[256];
	ssize_t n = 1;

	while (n != 0 && wait_for(fd, POLLIN, until_ms) == 0) {
		n = recv(fd, unread, sizeof(unread), MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			break;
	}
}
