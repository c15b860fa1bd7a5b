/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API's client: one call, one connection, answered before it returns, or within a time not at all.
 *
 * A daemon that stands still takes connections for as long as the kernel has room for them, and answers none.
 */
#ifndef API_CLIENT_H
#define API_CLIENT_H

#include "api/methods.h"

/* Whoever has typed a command waits so long; a busy daemon may attach to a program's libraries meanwhile. */
#define API_WITHIN_MS 30000

/**
 * api_request() - call a method and wait for its answer
 * @socket_path:	of the daemon
 * @within_ms:	from now until the whole answer is there
 * @args:		an object, or NULL for none; the reference is taken over
 * @ret_text:		the answer's body; the caller frees it
 *
 * Return: 0; -EINVAL with @error filled in, also when no daemon answers, or not in time.
 */
int api_request(const char *socket_path, uint64_t within_ms, enum api_method_id method,
		json_t *args, char **ret_text, struct api_error *error);

/**
 * api_request_json() - the same, where the answer is an object, which becomes the caller's
 */
int api_request_json(const char *socket_path, uint64_t within_ms, enum api_method_id method,
		     json_t *args, json_t **ret, struct api_error *error);

/**
 * api_response_parse() - take an HTTP answer apart
 * @ret_body:	where the body begins in @response
 *
 * Return: the status, or -EPROTO.
 */
int api_response_parse(const char *response, size_t len, size_t *ret_body);

#endif
