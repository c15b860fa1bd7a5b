/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The methods of the API and the check of a request against them.
 *
 * A request is POST /v1/METHOD with a JSON object of arguments, or GET with the
 * arguments in the query. The answer is a JSON object; on failure it is
 * {"error": {"code", "message", "hint"}} with a fitting HTTP status.
 */
#ifndef API_METHODS_H
#define API_METHODS_H

#include "base/str.h"

#include <jansson.h>

#define API_DEFAULT_SOCKET "/run/cotenant/cotenant.sock"

/* A request that is larger is refused: the largest honest one is a few hundred bytes. */
#define API_MAX_REQUEST 65536

enum api_method_id {
#define METHOD(id, name, access, help) API_##id,
#define ARG(id, name, type, needed, help)
#include "api/methods.def"
#undef METHOD
#undef ARG
	API_N_METHODS,
};

enum api_access { API_ANY, API_ROOT };

enum api_type {
	API_STRING,
	API_NAME,
	API_MATCH,
	API_GPU,
	API_GPUS,
	API_SIZE,
	API_LIMITS,
	API_UINT,
	API_BOOL,
	API_DURATION,
};

struct api_arg {
	const char *name;
	enum api_type type;
	bool required;
	const char *help;
};

struct api_method {
	const char *name;
	enum api_access access;
	const char *help;
};

extern const struct api_method api_methods[API_N_METHODS];

/**
 * struct api_error - why a request failed
 * @status:	of HTTP
 * @code:	a word that programs can rely on
 * @message:	a sentence without a full stop
 * @hint:	what to do about it; may be empty
 */
struct api_error {
	int status;
	const char *code;
	char message[400];
	char hint[300];
};

/* The codes, each with its HTTP status. */
#define API_E_BAD_REQUEST 400, "bad-request"
#define API_E_FORBIDDEN	  403, "forbidden"
#define API_E_NOT_FOUND	  404, "not-found"
#define API_E_CONFLICT	  409, "conflict"
#define API_E_FAULT	  500, "fault"
#define API_E_UNAVAILABLE 503, "unavailable"

/**
 * api_fail() - fill in an error: api_fail(&error, API_E_NOT_FOUND, "no tenant %s", name)
 *
 * Return: -EINVAL, so that `return api_fail(...)` hands it on.
 */
int api_fail(struct api_error *error, int status, const char *code, const char *fmt, ...)
	PRINTF(4, 5);

/**
 * api_hint() - add what to do about it
 *
 * Return: -EINVAL.
 */
int api_hint(struct api_error *error, const char *fmt, ...) PRINTF(2, 3);

/**
 * api_method_find() - a method by its name
 *
 * Return: its number, or -ENOENT.
 */
int api_method_find(const char *name);

/**
 * api_next_arg() - the arguments of a method, one after another
 * @previous:	NULL for the first
 *
 * Return: NULL behind the last.
 */
const struct api_arg *api_next_arg(enum api_method_id method, const struct api_arg *previous);

/**
 * api_type_name() - as the documentation calls it
 */
const char *api_type_name(enum api_type type);

/**
 * api_request_parse() - check a request against the table
 * @path:	of the URL
 * @body:	a JSON object, or nothing
 * @ret_args:	the caller's
 *
 * Return: 0, or -EINVAL with @error filled in.
 */
int api_request_parse(const char *path, const char *body, size_t len,
		      enum api_method_id *ret_method, json_t **ret_args, struct api_error *error);

/**
 * api_args_check() - the same for arguments that have been read already
 */
int api_args_check(enum api_method_id method, const json_t *args, struct api_error *error);

/**
 * api_arg_uint() - a number, which may be written as a string
 */
uint64_t api_arg_uint(const json_t *args, const char *name, uint64_t without);

/**
 * api_arg_string() - a string, or NULL
 */
const char *api_arg_string(const json_t *args, const char *name);

/**
 * api_markdown() - docs/api.md; the caller frees it
 */
char *api_markdown(void);

#endif
