/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/oci.h"

#include "base/str.h"

#include <errno.h>
#include <limits.h>

/* An id is a folder's name to the runtime; more of it would not be shown anyway. */
#define MAX_ID	    1024
#define SHORT_ID    12
#define MAX_DEVICES 64

static int bad(char reason[OCI_REASON_SIZE], const char *fmt, ...) PRINTF(2, 3);

static int bad(char reason[OCI_REASON_SIZE], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, OCI_REASON_SIZE, fmt, ap);
	va_end(ap);
	return -EBADMSG;
}

/* As the runtimes have them; it becomes a part of names. */
static bool is_id(const char *id)
{
	size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-.");

	return n > 0 && n <= MAX_ID && !id[n];
}

int oci_state_parse(const char *bytes, size_t len, json_t **ret, char reason[OCI_REASON_SIZE])
{
	json_error_t where;
	json_t *state = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, &where);
	const char *id = json_string_value(json_object_get(state, "id"));
	json_int_t pid = json_integer_value(json_object_get(state, "pid"));
	int r = 0;

	if (!json_is_object(state))
		r = bad(reason, "the runtime's state is not a JSON object%s%.100s",
			state ? "" : ": ", state ? "" : where.text);
	else if (!id || !is_id(id))
		r = bad(reason, "the runtime's state has no usable id");
	else if (pid < 1 || pid > INT_MAX)
		r = bad(reason, "the runtime's state has no usable pid");
	if (r < 0) {
		json_decref(state);
		return r;
	}
	*ret = state;
	return 0;
}

/* "0, GPU-1234" */
static int add_devices(json_t *args, const char *text, char reason[OCI_REASON_SIZE])
{
	_cleanup_free_ char *copy = strdup(text);
	char *word, *state = NULL;
	json_t *list = json_array();

	if (!copy || json_object_set_new(args, "gpu", list) < 0)
		return -ENOMEM;
	for (word = strtok_r(copy, " ,", &state); word; word = strtok_r(NULL, " ,", &state)) {
		if (json_array_size(list) == MAX_DEVICES)
			return bad(reason, OCI_PREFIX "gpu names more than %d devices",
				   MAX_DEVICES);
		if (json_array_append_new(list, json_string(word)) < 0)
			return bad(reason, OCI_PREFIX "gpu is not text");
	}
	return 0;
}

static int add_annotation(json_t *args, const char *key, const json_t *value,
			  char reason[OCI_REASON_SIZE])
{
	const char *text = json_string_value(value);

	if (!text)
		return bad(reason, OCI_PREFIX "%.60s is not text", key);
	if (str_eq(key, "gpu"))
		return add_devices(args, text, reason);
	if (str_eq(key, "name"))
		return json_object_set_new(args, "tenant", json_string(text)) < 0 ? -ENOMEM : 0;
	/* Which limits there are, and their values, is the daemon's to know. */
	if (json_object_set_new(json_object_get(args, "limits"), key, json_string(text)) < 0)
		return -ENOMEM;
	return 0;
}

int oci_request(const json_t *state, const json_t *annotations, json_t **ret,
		char reason[OCI_REASON_SIZE])
{
	const char *id = json_string_value(json_object_get(state, "id")), *key, *rest;
	json_t *args, *value;
	unsigned n = 0;
	int r = 0;

	args = json_pack("{s:O, s:s, s:o, s:{}}", "pid", json_object_get(state, "pid"), "container",
			 id, "command", json_stringn(id, MIN(strlen(id), (size_t)SHORT_ID)),
			 "limits");
	if (!args)
		return -ENOMEM;
	json_object_foreach((json_t *)annotations, key, value) {
		rest = str_after(key, OCI_PREFIX);
		if (!rest)
			continue;
		r = add_annotation(args, rest, value, reason);
		if (r < 0)
			break;
		n++;
	}
	if (r < 0 || n == 0) {
		json_decref(args);
		args = NULL;
	}
	if (r == 0)
		*ret = args;
	return r;
}
