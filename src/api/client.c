/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request is HTTP/1.0, so that the answer comes in one piece and ends with
 * the connection.
 */
#include "api/client.h"

#include "base/clock.h"
#include "base/fd.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

/* Lists of a thousand tenants on sixteen devices are a few megabytes. */
#define MAX_RESPONSE (64U << 20)

static int explain_connect(int error_number, const char *path, struct api_error *error)
{
	switch (error_number) {
	case ENOENT:
	case ECONNREFUSED:
		api_fail(error, API_E_UNAVAILABLE, "no cotenantd answers at %s", path);
		return api_hint(error,
				"start it (systemctl start cotenantd), or say where it listens "
				"with --socket or COTENANT_SOCKET");
	case EACCES:
		return api_fail(error, API_E_UNAVAILABLE, "you may not connect to %s", path);
	default:
		return api_fail(error, API_E_UNAVAILABLE, "cannot connect to %s: %s", path,
				strerrordesc_np(error_number));
	}
}

/* What waits on the socket from now on fails with EAGAIN at that time: where many wait, connect() does, too. */
static int set_end(int fd, uint64_t until_ms)
{
	uint64_t now_ms = clock_now_ms(CLOCK_MONOTONIC), left_ms = until_ms - MIN(now_ms, until_ms);
	/* Nothing would be for ever. */
	const struct timeval left = { left_ms / 1000, MAX(left_ms % 1000 * 1000, (uint64_t)1) };

	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &left, sizeof(left)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &left, sizeof(left)) < 0)
		return -errno;
	return 0;
}

static int connect_to(const char *path, uint64_t until_ms, int *ret_fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int r;

	if (!str_copy(address.sun_path, sizeof(address.sun_path), path))
		return -ENAMETOOLONG;
	r = fd < 0 ? -errno : set_end(fd, until_ms);
	if (r < 0)
		return r;
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int read_all(int fd, uint64_t until_ms, struct text *t)
{
	char buf[16384];
	ssize_t n;
	int r;

	for (;;) {
		/* What comes byte by byte is no answer either. */
		r = set_end(fd, until_ms);
		if (r < 0)
			return r;
		n = read(fd, buf, sizeof(buf));
		if (n == 0)
			break;
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (t->len + n > MAX_RESPONSE)
			return -EFBIG;
		text_addn(t, buf, n);
	}
	return t->failed ? -ENOMEM : 0;
}

int api_response_parse(const char *response, size_t len, size_t *ret_body)
{
	const char *p, *end;
	int status;

	p = str_after(response, "HTTP/1.");
	if (len < sizeof("HTTP/1.1 200") - 1 || !p || p[1] != ' ')
		return -EPROTO;
	status = atoi(p + 2);
	end = memmem(response, len, "\r\n\r\n", 4);
	if (status < 100 || status > 599 || !end)
		return -EPROTO;
	*ret_body = end + 4 - response;
	return status;
}

static int take_error(int status, const char *body, struct api_error *error)
{
	const char *code, *message, *hint = "";
	json_t *object = json_loads(body, 0, NULL);

	/* The code's text lives on only as a constant: programs read it from --json. */
	if (json_unpack(object, "{s:{s:s, s:s, s?s}}", "error", "code", &code, "message", &message,
			"hint", &hint) < 0) {
		api_fail(error, status, "fault", "the daemon answered with status %d", status);
	} else {
		api_fail(error, status, status == 404 ? "not-found" : "refused", "%s", message);
		api_hint(error, "%s", hint);
	}
	json_decref(object);
	return -EINVAL;
}

static int exchange(int fd, uint64_t until_ms, enum api_method_id method, json_t *args,
		    struct text *response)
{
	_cleanup_free_ char *body = NULL, *request = NULL;
	int r;

	body = args ? json_dumps(args, JSON_COMPACT) : strdup("{}");
	if (body)
		request = str_format(
			"POST /v1/%s HTTP/1.0\r\nHost: localhost\r\n"
			"Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
			api_methods[method].name, strlen(body), body);
	if (!request)
		return -ENOMEM;
	r = fd_write_all(fd, request, strlen(request));
	return r < 0 ? r : read_all(fd, until_ms, response);
}

static int explain_late(const char *path, uint64_t within_ms, struct api_error *error)
{
	api_fail(error, API_E_UNAVAILABLE, "cotenantd at %s has not answered within %" PRIu64 " ms",
		 path, within_ms);
	return api_hint(error,
			"it is busy, or stands still: see its log; systemctl restart cotenantd "
			"harms no tenant");
}

int api_request(const char *socket_path, uint64_t within_ms, enum api_method_id method,
		json_t *args, char **ret_text, struct api_error *error)
{
	uint64_t until_ms = clock_now_ms(CLOCK_MONOTONIC) + within_ms;
	_cleanup_(text_done) struct text response = {};
	_cleanup_close_ int fd = -1;
	size_t body = 0;
	int r, r2 = 0;

	r = connect_to(socket_path, until_ms, &fd);
	if (r == 0)
		r2 = exchange(fd, until_ms, method, args, &response);
	json_decref(args);
	if (r == -EAGAIN || r2 == -EAGAIN)
		return explain_late(socket_path, within_ms, error);
	if (r < 0)
		return explain_connect(-r, socket_path, error);
	if (r2 < 0)
		return api_fail(error, API_E_UNAVAILABLE, "cotenantd at %s does not answer: %s",
				socket_path, strerrordesc_np(-r2));
	r = api_response_parse(response.data ? response.data : "", response.len, &body);
	if (r < 0)
		return api_fail(error, API_E_UNAVAILABLE, "what answers at %s is not cotenantd",
				socket_path);
	if (r != 200)
		return take_error(r, response.data + body, error);
	*ret_text = strdup(response.data + body);
	return *ret_text ? 0 : api_fail(error, API_E_FAULT, "out of memory");
}

int api_request_json(const char *socket_path, uint64_t within_ms, enum api_method_id method,
		     json_t *args, json_t **ret, struct api_error *error)
{
	_cleanup_free_ char *text = NULL;
	int r;

	r = api_request(socket_path, within_ms, method, args, &text, error);
	if (r < 0)
		return r;
	*ret = json_loads(text, 0, NULL);
	return *ret ? 0 : api_fail(error, API_E_UNAVAILABLE, "the daemon's answer is not JSON");
}
