/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API's server: HTTP on a unix socket, on the thread that calls it.
 *
 * The socket is open to everybody; the kernel says who the caller is, and that
 * decides. Requests reach the handler checked against the table of methods. A
 * handler answers at once or keeps the call and answers later.
 */
#ifndef API_SERVER_H
#define API_SERVER_H

#include "api/methods.h"

#include <sys/types.h>

struct api_server;
struct api_call;

struct api_peer {
	uid_t uid;
	gid_t gid;
	pid_t pid;
};

typedef void (*api_handler_fn)(struct api_call *call, void *userdata);

/**
 * api_server_new() - listen
 * @path:	of the socket; one that nobody listens on any more is replaced
 *
 * Return: 0; -EADDRINUSE if somebody listens there; what the kernel said.
 */
int api_server_new(const char *path, api_handler_fn handler, void *userdata,
		   struct api_server **ret);

/**
 * api_server_fd() - readable when api_server_dispatch() has something to do
 */
int api_server_fd(const struct api_server *server);

/**
 * api_server_dispatch() - take requests, send answers; never blocks
 *
 * Also to be called about once a second, which ends idle connections, and after
 * a call that was kept has been answered.
 */
void api_server_dispatch(struct api_server *server);

/**
 * api_server_free() - stop; calls that were kept must have been answered
 */
void api_server_free(struct api_server *server);
DEFINE_CLEANUP(struct api_server *, api_server_free)

/**
 * api_call_method(), api_call_args(), api_call_peer() - which method, with what, for whom
 *
 * Return: what is the call's, until it is answered.
 */
enum api_method_id api_call_method(const struct api_call *call);
const json_t *api_call_args(const struct api_call *call);
const struct api_peer *api_call_peer(const struct api_call *call);

/**
 * api_call_reply() - answer with an object, whose reference is taken over
 *
 * The call is gone when its answer has been sent: do not touch it afterwards.
 */
void api_call_reply(struct api_call *call, json_t *object);

/**
 * api_call_reply_text() - answer with plain text, which is taken over
 */
void api_call_reply_text(struct api_call *call, char *text);

/**
 * api_call_refuse() - answer with an error
 */
void api_call_refuse(struct api_call *call, const struct api_error *error);

#endif
