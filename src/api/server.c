/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libmicrohttpd calls answer() several times per request: once with the headers,
 * once per piece of the body, once at its end, and again when a connection that
 * was set aside is resumed. struct api_call remembers how far it is.
 */
#include "api/server.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/*
 * A connection costs a descriptor and memory, and a user may keep his open. What one of
 * them has leaves room for the others, and there is always some for root.
 */
#define CONNECTIONS_MAX		512
#define CONNECTIONS_OF_USER_MAX 128
#define CONNECTIONS_FOR_ROOT	64

/* A user who is connected; unused where @n is 0. */
struct user {
	uid_t uid;
	unsigned n;
};

struct api_server {
	struct MHD_Daemon *mhd;
	api_handler_fn handler;
	void *userdata;
	char *path;
	struct user users[CONNECTIONS_MAX];
	unsigned n_of_users;
};

struct api_call {
	struct MHD_Connection *connection;
	struct api_peer peer;
	enum api_method_id method;
	json_t *args;
	struct text body;
	bool too_large;
	bool handled;	/* the handler has been called */
	bool suspended; /* the connection is set aside until the answer is there */
	int status;	/* 0 until there is an answer */
	const char *content_type;
	char *answer;
};

enum api_method_id api_call_method(const struct api_call *call)
{
	return call->method;
}

const json_t *api_call_args(const struct api_call *call)
{
	return call->args;
}

const struct api_peer *api_call_peer(const struct api_call *call)
{
	return &call->peer;
}

static void set_answer(struct api_call *call, int status, const char *type, char *answer)
{
	call->status = answer ? status : 500;
	call->content_type = type;
	call->answer = answer;
	if (call->suspended)
		MHD_resume_connection(call->connection);
}

static char *print_json(json_t *object)
{
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

	json_decref(object);
	return text;
}

void api_call_reply(struct api_call *call, json_t *object)
{
	set_answer(call, MHD_HTTP_OK, "application/json", print_json(object));
}

void api_call_reply_text(struct api_call *call, char *text)
{
	set_answer(call, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", text);
}

void api_call_refuse(struct api_call *call, const struct api_error *error)
{
	json_t *object = json_pack("{s:{s:s, s:s, s:s}}", "error", "code", error->code, "message",
				   error->message, "hint", error->hint);

	set_answer(call, error->status, "application/json", print_json(object));
}

static int peer_of(struct MHD_Connection *connection, struct ucred *ret)
{
	const union MHD_ConnectionInfo *info;
	socklen_t len = sizeof(*ret);

	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (!info || getsockopt(info->connect_fd, SOL_SOCKET, SO_PEERCRED, ret, &len) < 0)
		return -ENOTCONN;
	return 0;
}

static struct api_call *call_new(struct MHD_Connection *connection)
{
	struct api_call *call;
	struct ucred cred;

	if (peer_of(connection, &cred) < 0)
		return NULL;
	call = calloc(1, sizeof(*call));
	if (!call)
		return NULL;
	call->connection = connection;
	call->peer = (struct api_peer){ cred.uid, cred.gid, cred.pid };
	return call;
}

static void call_free(struct api_call *call)
{
	if (!call)
		return;
	json_decref(call->args);
	text_done(&call->body);
	free(call->answer);
	free(call);
}

static enum MHD_Result add_query_arg(void *userdata, _unused_ enum MHD_ValueKind kind,
				     const char *key, const char *value)
{
	json_object_set_new(userdata, key, json_string(value ? value : ""));
	return MHD_YES;
}

/* GET /v1/tenants.show?tenant=alice: every argument is a string. */
static void read_query(struct api_call *call)
{
	json_t *args = json_object();
	char *text;

	MHD_get_connection_values(call->connection, MHD_GET_ARGUMENT_KIND, add_query_arg, args);
	if (json_object_size(args) > 0) {
		text = print_json(args);
		if (text)
			text_add(&call->body, text);
		free(text);
		return;
	}
	json_decref(args);
}

static int check_request(struct api_call *call, const char *path, const char *http_method,
			 struct api_error *error)
{
	bool get = str_eq(http_method, MHD_HTTP_METHOD_GET);

	if (!get && !str_eq(http_method, MHD_HTTP_METHOD_POST))
		return api_fail(error, API_E_BAD_REQUEST, "only GET and POST are understood");
	if (call->too_large || call->body.failed)
		return api_fail(error, API_E_BAD_REQUEST, "a request has at most %d bytes",
				API_MAX_REQUEST);
	if (get)
		read_query(call);
	if (api_request_parse(path, call->body.data, call->body.len, &call->method, &call->args,
			      error) < 0)
		return -EINVAL;
	if (api_methods[call->method].access == API_ROOT && call->peer.uid != 0) {
		api_fail(error, API_E_FORBIDDEN, "%s: only root may do this",
			 api_methods[call->method].name);
		return api_hint(error, "use sudo, or ask an administrator");
	}
	return 0;
}

static void handle(struct api_server *server, struct api_call *call, const char *path,
		   const char *http_method)
{
	struct api_error error;

	call->handled = true;
	if (check_request(call, path, http_method, &error) < 0)
		api_call_refuse(call, &error);
	else
		server->handler(call, server->userdata);
}

static enum MHD_Result send_answer(struct api_call *call)
{
	static char out_of_memory[] =
		"{\"error\":{\"code\":\"fault\",\"message\":\"out of memory\","
		"\"hint\":\"\"}}";
	char *text = call->answer ? call->answer : out_of_memory;
	struct MHD_Response *response;
	enum MHD_Result sent;

	response = MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_COPY);
	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, call->content_type);
	sent = MHD_queue_response(call->connection, call->status, response);
	MHD_destroy_response(response);
	return sent;
}

static enum MHD_Result answer(void *userdata, struct MHD_Connection *connection, const char *path,
			      const char *http_method, _unused_ const char *version,
			      const char *data, size_t *data_size, void **state)
{
	struct api_server *server = userdata;
	struct api_call *call = *state;

	if (!call) {
		*state = call_new(connection);
		return *state ? MHD_YES : MHD_NO;
	}
	if (*data_size > 0) {
		if (call->body.len + *data_size > API_MAX_REQUEST)
			call->too_large = true;
		else
			text_addn(&call->body, data, *data_size);
		*data_size = 0;
		return MHD_YES;
	}
	if (!call->handled)
		handle(server, call, path, http_method);
	if (call->status)
		return send_answer(call);
	MHD_suspend_connection(connection);
	call->suspended = true;
	return MHD_YES;
}

static void completed(_unused_ void *userdata, _unused_ struct MHD_Connection *connection,
		      void **state, _unused_ enum MHD_RequestTerminationCode how)
{
	call_free(*state);
	*state = NULL;
}

/* Root is not counted. */
static struct user *user_of(struct api_server *server, struct MHD_Connection *connection)
{
	struct user *unused = NULL;
	struct ucred cred;
	size_t i;

	if (peer_of(connection, &cred) < 0 || cred.uid == 0)
		return NULL;
	for (i = 0; i < ARRAY_SIZE(server->users); i++) {
		if (server->users[i].n > 0 && server->users[i].uid == cred.uid)
			return &server->users[i];
		if (server->users[i].n == 0 && !unused)
			unused = &server->users[i];
	}
	if (unused)
		unused->uid = cred.uid;
	return unused;
}

/* One too many is hung up on; the library takes it for the other side's doing. */
static void hang_up(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info;

	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	if (info)
		shutdown(info->connect_fd, SHUT_RDWR);
}

static void connection_changed(void *userdata, struct MHD_Connection *connection, void **context,
			       enum MHD_ConnectionNotificationCode what)
{
	struct api_server *server = userdata;
	struct user *user = *context;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		if (!user)
			return;
		user->n--;
		server->n_of_users--;
		return;
	}
	user = user_of(server, connection);
	*context = user;
	if (!user)
		return;
	user->n++;
	server->n_of_users++;
	if (user->n > CONNECTIONS_OF_USER_MAX ||
	    server->n_of_users > CONNECTIONS_MAX - CONNECTIONS_FOR_ROOT)
		hang_up(connection);
}

/* Whether somebody answers there: a socket of a daemon that was killed is in the way otherwise. */
static bool is_listened_on(const struct sockaddr_un *address)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0;
}

static int listen_on(const char *path, int *ret_fd)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = -1;

	if (!str_copy(address.sun_path, sizeof(address.sun_path), path))
		return -ENAMETOOLONG;
	if (is_listened_on(&address))
		return -EADDRINUSE;
	if (unlink(path) < 0 && errno != ENOENT)
		return -errno;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    chmod(path, 0666) < 0 || listen(fd, 64) < 0)
		return -errno;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

int api_server_new(const char *path, api_handler_fn handler, void *userdata,
		   struct api_server **ret)
{
	_cleanup_(api_server_freep) struct api_server *server = calloc(1, sizeof(*server));
	int fd = -1, r;

	if (!server)
		return -ENOMEM;
	server->handler = handler;
	server->userdata = userdata;
	r = listen_on(path, &fd);
	if (r < 0)
		return r;
	server->path = strdup(path);
	server->mhd = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, answer, server,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, completed, NULL,
		MHD_OPTION_NOTIFY_CONNECTION, connection_changed, server,
		MHD_OPTION_CONNECTION_TIMEOUT, 60U, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)CONNECTIONS_MAX, MHD_OPTION_END);
	if (!server->path || !server->mhd) {
		if (!server->mhd)
			close(fd);
		return -ENOMEM;
	}
	*ret = TAKE_PTR(server);
	return 0;
}

int api_server_fd(const struct api_server *server)
{
	return MHD_get_daemon_info(server->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

/* A connection that was answered late is closed in a round of its own, for which no descriptor calls. */
#define ROUNDS_MAX 8

void api_server_dispatch(struct api_server *server)
{
	MHD_UNSIGNED_LONG_LONG wait_ms;
	int i = 0;

	do
		MHD_run(server->mhd);
	while (++i < ROUNDS_MAX && MHD_get_timeout(server->mhd, &wait_ms) == MHD_YES &&
	       wait_ms == 0);
}

void api_server_free(struct api_server *server)
{
	if (!server)
		return;
	if (server->mhd)
		MHD_stop_daemon(server->mhd);
	if (server->path)
		unlink(server->path);
	free(server->path);
	free(server);
}
