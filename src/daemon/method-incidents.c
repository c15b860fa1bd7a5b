/* SPDX-License-Identifier: Apache-2.0 */
/*
 * incidents.*, history.show and processes.list: who uses the devices, and who used more than he asked for.
 */
#include "daemon/overuse.h"

#include "daemon/process.h"

#include <errno.h>

#define DEFAULT_MANY 100
#define MOST	     10000

int method_incidents_list(struct daemon *d, const struct request *q, json_t **ret)
{
	struct incident_filter filter = {
		.tenant = api_arg_string(q->args, "tenant"),
		.only_open = json_is_true(json_object_get(q->args, "open")),
		.uid = q->peer.uid,
		.limit = MIN(api_arg_uint(q->args, "limit", DEFAULT_MANY), (uint64_t)MOST),
	};
	json_t *list;

	if (incident_log_list(d->overuse->history, &filter, &list) < 0)
		return api_fail(q->error, API_E_FAULT, "the incidents cannot be read");
	*ret = json_pack("{s:o}", "incidents", list);
	return 0;
}

int method_incidents_show(struct daemon *d, const struct request *q, json_t **ret)
{
	uint64_t id = api_arg_uint(q->args, "incident", 0);

	if (incident_log_get(d->overuse->history, id, q->peer.uid, ret) == 0)
		return 0;
	api_fail(q->error, API_E_NOT_FOUND, "there is no incident %llu%s", (unsigned long long)id,
		 q->peer.uid ? " of yours" : "");
	return api_hint(q->error, "`cotenant incidents` shows them with their numbers");
}

#define DEFAULT_MINUTES 60

int method_history_show(struct daemon *d, const struct request *q, json_t **ret)
{
	const char *name = api_arg_string(q->args, "tenant");
	const struct tenant *t = tenants_find(&d->tenants, name);
	uint64_t limit = MIN(api_arg_uint(q->args, "limit", DEFAULT_MINUTES), (uint64_t)MOST);
	json_t *minutes, *samples;

	if (use_log_minutes(d->overuse->history, name, q->peer.uid, limit, &minutes) < 0)
		return api_fail(q->error, API_E_FAULT, "the history cannot be read");
	samples = t && tenant_is_visible(t, q->peer.uid)
			  ? use_log_recent(&d->overuse->use, t->id, overuse_now_ms())
			  : json_array();
	*ret = json_pack("{s:s, s:o, s:o}", "tenant", name, "samples", samples, "minutes", minutes);
	return 0;
}

/* --- processes --- */

static json_t *tenants_json(struct daemon *d, const struct resident *p)
{
	json_t *list = json_array();
	const struct tenant *t;
	unsigned i;

	for (i = 0; i < p->n_tenants; i++) {
		for (t = d->tenants.first; t; t = t->next) {
			if (t->id == p->tenants[i])
				json_array_append_new(list, json_string(t->spec.name));
		}
	}
	return list;
}

/* A path is compared as it is, whatever its folders are called, and shown as it can be. */
static json_t *path_or_null(const char *path)
{
	_cleanup_free_ char *shown = path && *path ? strdup(path) : NULL;

	return shown ? json_string(str_make_printable(shown)) : json_null();
}

static json_t *text_or_null(const char *text)
{
	return text && *text ? json_string(text) : json_null();
}

static json_t *process_json(struct daemon *d, const struct resident *p, unsigned device)
{
	const struct assoc_place *place = &p->who.place;
	char user[PROCESS_NAME_SIZE];

	user_name(p->who.uid, user);
	return json_pack(
		"{s:i, s:s, s:i, s:I, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"gpu", (int)device, "UUID", d->gpu->devices[device].uuid, "pid", (int)p->who.pid,
		"start_time", (json_int_t)p->who.start_time, "command", p->who.name, "user", user,
		"memory", p->unknown & 1U << device ? json_null() : json_integer(p->bytes[device]),
		"tenants", tenants_json(d, p), "container", text_or_null(place->container),
		"runtime",
		*place->container ? json_string(assoc_runtime_name(place->runtime)) : json_null(),
		"pod", text_or_null(place->pod), "job",
		place->job ? json_integer(place->job) : json_null(), "step",
		text_or_null(place->step), "machine", text_or_null(place->vm), "cgroup",
		path_or_null(place->cgroup));
}

int method_processes_list(struct daemon *d, const struct request *q, json_t **ret)
{
	const struct residents *all = &d->overuse->residents;
	json_t *list, *o;
	unsigned i;
	size_t j;
	int only;

	if (request_device(d, q, &only) < 0)
		return -EINVAL;
	list = json_array();
	for (i = 0; i < daemon_n_devices(d); i++) {
		for (j = 0; j < all->n; j++) {
			if ((only >= 0 && only != (int)i) || !(all->items[j]->listed & 1U << i) ||
			    (q->peer.uid && q->peer.uid != all->items[j]->who.uid))
				continue;
			o = process_json(d, all->items[j], i);
			if (o)
				json_array_append_new(list, o);
		}
	}
	*ret = json_pack("{s:o}", "processes", list);
	return 0;
}
