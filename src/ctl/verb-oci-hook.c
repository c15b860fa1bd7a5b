/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cotenant oci-hook: what a container runtime starts when a container is made.
 *
 * The container becomes a tenant before its first process runs anything. One that asks for
 * what cannot be had does not start: the runtime ends it when its hook fails.
 */
#include "ctl/ctl.h"
#include "ctl/oci.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>

#define MAX_STATE (4 << 20)

static int refuse(const char *what)
{
	fprintf(stderr, "cotenant oci-hook: %s\n", what);
	return 1;
}

/* Older runtimes leave the annotations out of the state: the bundle has them as well. */
static json_t *annotations_of(const json_t *state)
{
	const char *bundle = json_string_value(json_object_get(state, "bundle"));
	json_t *found = json_object_get(state, "annotations"), *config;
	_cleanup_free_ char *path = NULL, *text = NULL;
	size_t len;

	if (found || !bundle)
		return json_incref(found);
	path = str_format("%s/config.json", bundle);
	if (!path || file_read_at(AT_FDCWD, path, MAX_STATE, &text, &len) < 0)
		return NULL;
	config = json_loadb(text, len, 0, NULL);
	found = json_incref(json_object_get(config, "annotations"));
	json_decref(config);
	return found;
}

static int begin(const struct ctl *ctl, json_t *args)
{
	json_t *reply;

	if (ctl_call(ctl, API_RUN_BEGIN, args, &reply))
		return 1;
	ctl_warn(reply);
	json_decref(reply);
	return 0;
}

int verb_oci_hook(const struct ctl *ctl)
{
	json_t *state, *annotations, *args = NULL;
	_cleanup_free_ char *text = NULL;
	char reason[OCI_REASON_SIZE];
	size_t len;
	int r;

	r = file_read_at(AT_FDCWD, "/dev/stdin", MAX_STATE, &text, &len);
	if (r < 0)
		return refuse(strerrordesc_np(-r));
	r = oci_state_parse(text, len, &state, reason);
	if (r < 0)
		return refuse(r == -EBADMSG ? reason : strerrordesc_np(-r));
	annotations = annotations_of(state);
	r = oci_request(state, annotations, &args, reason);
	json_decref(annotations);
	json_decref(state);
	if (r < 0)
		return refuse(r == -EBADMSG ? reason : strerrordesc_np(-r));
	return args ? begin(ctl, args) : 0;
}
