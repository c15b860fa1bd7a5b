/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a request to its handler, and the handlers that are about the daemon and
 * the devices.
 */
#include "daemon/daemon.h"

#include "base/log.h"

#include <errno.h>

typedef int (*method_fn)(struct daemon *d, const struct request *q, json_t **ret);

/* Those that answer with text or later are not here. */
static const method_fn handlers[API_N_METHODS] = {
	[API_DAEMON_VERSION] = method_daemon_version,
	[API_DAEMON_DOCTOR] = method_daemon_doctor,
	[API_DAEMON_RELOAD] = method_daemon_reload,
	[API_DEVICES_LIST] = method_devices_list,
	[API_DEVICES_SET] = method_devices_set,
	[API_TENANTS_LIST] = method_tenants_list,
	[API_TENANTS_SHOW] = method_tenants_show,
	[API_TENANTS_SET] = method_tenants_set,
	[API_TENANTS_ADOPT] = method_tenants_adopt,
	[API_TENANTS_RELEASE] = method_tenants_release,
	[API_JOB_BEGIN] = method_job_begin,
	[API_JOB_END] = method_job_end,
	[API_RUN_BEGIN] = method_run_begin,
	[API_RUN_GATE] = method_run_gate,
	[API_RUN_END] = method_run_end,
	[API_EVENTS_EXPLAIN] = method_events_explain,
	[API_INCIDENTS_LIST] = method_incidents_list,
	[API_INCIDENTS_SHOW] = method_incidents_show,
	[API_HISTORY_SHOW] = method_history_show,
	[API_PROCESSES_LIST] = method_processes_list,
};

void daemon_handle(struct api_call *call, void *userdata)
{
	struct daemon *d = userdata;
	enum api_method_id id = api_call_method(call);
	struct api_error error = { .status = 500, .code = "fault" };
	struct request q = { api_call_args(call), *api_call_peer(call), &error };
	json_t *reply = NULL;

	if (id == API_METRICS) {
		api_call_reply_text(call, method_metrics(d, q.peer.uid));
		return;
	}
	if (id == API_EVENTS_LIST) {
		method_events_list(d, call);
		return;
	}
	if (handlers[id](d, &q, &reply) < 0) {
		log_debug(0, "%s of user %u: %s", api_methods[id].name, q.peer.uid, error.message);
		api_call_refuse(call, &error);
		return;
	}
	api_call_reply(call, reply);
}

int request_tenant(struct daemon *d, const struct request *q, struct tenant **ret)
{
	const char *name = api_arg_string(q->args, "tenant");
	struct tenant *t = tenants_find(&d->tenants, name);

	/* Whether others' tenants exist is not the caller's business either. */
	if (!t || !tenant_is_visible(t, q->peer.uid)) {
		api_fail(q->error, API_E_NOT_FOUND, "there is no tenant '%s'%s", name,
			 q->peer.uid ? " of yours" : "");
		return api_hint(q->error, "`cotenant list` shows them");
	}
	*ret = t;
	return 0;
}

int request_device(struct daemon *d, const struct request *q, int *ret)
{
	const char *text = api_arg_string(q->args, "gpu");
	int device;

	*ret = -1;
	if (!text)
		return 0;
	device = gpu_find(d->gpu, text);
	if (device == -EEXIST)
		return api_fail(q->error, API_E_BAD_REQUEST,
				"'%.80s' begins more than one device's UUID", text);
	if (device < 0) {
		api_fail(q->error, API_E_NOT_FOUND, "there is no device '%.80s'", text);
		return api_hint(q->error, "`cotenant api devices.list` shows them%s%s",
				*d->gpu->reason ? ": " : "", d->gpu->reason);
	}
	*ret = device;
	return 0;
}

int method_daemon_version(struct daemon *d, _unused_ const struct request *q, json_t **ret)
{
	*ret = json_pack("{s:s, s:i, s:s, s:f, s:s, s:i}", "version", DAEMON_VERSION, "pid",
			 (int)getpid(), "rung",
			 d->engine ? engine_rung_name(engine_rung_now(d->engine)) : "none",
			 "started", d->started_us / 1e6, "driver", d->gpu->driver_version, "cuda",
			 d->gpu->cuda_version);
	return 0;
}

int method_daemon_reload(struct daemon *d, const struct request *q, json_t **ret)
{
	const struct config *files = &d->tenants.files;
	json_t *refused = json_array();
	size_t i;
	int r;

	r = tenants_reload(&d->tenants);
	if (r < 0) {
		json_decref(refused);
		return api_fail(q->error, API_E_FAULT, "cannot read %s: %s", files->dir,
				strerrordesc_np(-r));
	}
	daemon_devices_apply(d);
	for (i = 0; i < files->n_files; i++) {
		if (files->files[i].refused)
			json_array_append_new(
				refused, json_pack("{s:s, s:i, s:s}", "file", files->files[i].path,
						   "line", (int)files->files[i].error.line,
						   "reason", files->files[i].error.reason));
	}
	*ret = json_pack("{s:i, s:o}", "files", (int)files->n_files, "refused", refused);
	return 0;
}

static json_t *known_or_null(bool known, uint64_t v)
{
	return known ? json_integer(v) : json_null();
}

static json_t *device_json(struct daemon *d, unsigned i)
{
	const struct gpu_device *g = &d->gpu->devices[i];
	struct gpu_memory m = {};
	struct ledger all = {};
	unsigned percent = 0;
	bool asked = d->gpu->ops->memory(d->gpu, i, &m) == 0;
	bool booked = d->engine && engine_book(d->engine, 0, i, &all) == 0;
	bool measured = d->gpu->ops->utilization(d->gpu, i, &percent) == 0;

	return json_pack("{s:i, s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:I, s:o, s:o}", "gpu", (int)i,
			 "UUID", g->uuid, "name", g->name, "memory.total",
			 (json_int_t)g->total_bytes, "memory.reserve",
			 (json_int_t)daemon_reserve(d, i), "memory.used",
			 known_or_null(asked, m.used_bytes), "memory.free",
			 known_or_null(asked, m.free_bytes), "memory.charged",
			 known_or_null(booked, all.current), "memory.unowned",
			 (json_int_t)d->unowned_bytes[i], "memory.context",
			 known_or_null(d->context_bytes[i] > 0, d->context_bytes[i]), "utilization",
			 known_or_null(measured, percent));
}

int method_devices_list(struct daemon *d, _unused_ const struct request *q, json_t **ret)
{
	json_t *list = json_array();
	unsigned i;

	for (i = 0; i < daemon_n_devices(d); i++)
		json_array_append_new(list, device_json(d, i));
	*ret = json_pack("{s:o, s:s?, s:s?}", "devices", list, "reason",
			 *d->gpu->reason ? d->gpu->reason : NULL, "library_dir",
			 *d->gpu->library_dir ? d->gpu->library_dir : NULL);
	return 0;
}

int method_devices_set(struct daemon *d, const struct request *q, json_t **ret)
{
	const char *text = api_arg_string(q->args, "memory.reserve");
	char reason[LIMIT_REASON_SIZE];
	struct device_spec spec = {};
	struct ini_error error;
	int device, r;

	r = request_device(d, q, &device);
	if (r < 0)
		return r;
	if (limit_value_parse(LIMIT_MEMORY_LOW, text, &spec.reserve, reason) < 0 ||
	    spec.reserve.number == QUANTITY_MAX)
		return api_fail(q->error, API_E_BAD_REQUEST,
				"memory.reserve: '%.60s' is not a size such as 512M or 2%%", text);
	str_copy(spec.uuid, sizeof(spec.uuid), d->gpu->devices[device].uuid);
	r = config_write_device(&d->tenants.files, &spec, &error);
	if (r == -EINVAL)
		return api_fail(q->error, API_E_CONFLICT, "line %u: %s", error.line, error.reason);
	if (r < 0)
		return api_fail(q->error, API_E_FAULT, "cannot write %s: %s", d->tenants.files.dir,
				strerrordesc_np(-r));
	daemon_devices_apply(d);
	*ret = device_json(d, device);
	return 0;
}
