/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/report.h"

#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>

/**
 * struct reading - what the readers below hand on
 * @reason:	of the first thing that was wrong
 */
struct reading {
	struct report report;
	char *reason;
};

static int refuse(struct reading *r, const char *fmt, ...) PRINTF(2, 3);

static int refuse(struct reading *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->reason, REPORT_REASON, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* --- values --- */

static int take_number(struct reading *r, const json_t *object, const char *key, uint64_t *ret)
{
	const json_t *value = json_object_get(object, key);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return refuse(r, "'%s' is not a number of 0 or more", key);
	*ret = json_integer_value(value);
	return 0;
}

/* A name, or a word such as a policy's: what may stand in a name. */
static int take_name(struct reading *r, const json_t *object, const char *key, char *ret,
		     size_t size)
{
	const char *text = json_string_value(json_object_get(object, key));

	if (!text || !str_is_name(text) || !str_copy(ret, size, text))
		return refuse(r, "'%s' is not a name", key);
	return 0;
}

/* --- entries of the lists --- */

static int take_device(struct reading *r, const json_t *from)
{
	struct report_device device;

	if (take_number(r, from, "total", &device.total_bytes) < 0 ||
	    take_number(r, from, "used", &device.used_bytes) < 0)
		return -EINVAL;
	if (device.used_bytes > device.total_bytes)
		return refuse(r,
			      "device %zu: %" PRIu64 " bytes are used of %" PRIu64 " that it has",
			      r->report.n_devices, device.used_bytes, device.total_bytes);
	r->report.devices[r->report.n_devices++] = device;
	return 0;
}

static uint32_t job_of(const char *tenant)
{
	const char *digits = str_after(tenant, "job-");
	uint64_t job;

	return digits && str_parse_u64(digits, &job) == 0 && job <= UINT32_MAX ? job : 0;
}

static int take_tenant(struct reading *r, const json_t *from)
{
	struct report_tenant tenant = {};
	uint64_t gpu;

	if (take_name(r, from, "tenant", tenant.name, sizeof(tenant.name)) < 0 ||
	    take_number(r, from, "gpu", &gpu) < 0 ||
	    take_number(r, from, "low", &tenant.low_bytes) < 0 ||
	    take_number(r, from, "held", &tenant.held_bytes) < 0)
		return -EINVAL;
	if (gpu >= r->report.n_devices)
		return refuse(r, "%s is on device %" PRIu64 ", and there are %zu", tenant.name, gpu,
			      r->report.n_devices);
	tenant.gpu = gpu;
	tenant.job = job_of(tenant.name);
	r->report.tenants[r->report.n_tenants++] = tenant;
	return 0;
}

static int take_incident(struct reading *r, const json_t *from)
{
	struct report_incident i;

	/* Bytes that nobody uses are compared, too. */
	memset(&i, 0, sizeof(i));
	if (take_number(r, from, "id", &i.id) < 0 ||
	    take_name(r, from, "tenant", i.tenant, sizeof(i.tenant)) < 0 ||
	    take_number(r, from, "begun", &i.begun_s) < 0 ||
	    take_number(r, from, "ended", &i.ended_s) < 0 ||
	    take_number(r, from, "request", &i.request_bytes) < 0 ||
	    take_number(r, from, "peak", &i.peak_bytes) < 0 ||
	    take_name(r, from, "policy", i.policy, sizeof(i.policy)) < 0 ||
	    take_name(r, from, "state", i.state, sizeof(i.state)) < 0)
		return -EINVAL;
	r->report.incidents[r->report.n_incidents++] = i;
	return 0;
}

/* --- lists --- */

/* @ret_items: room for all of them, which @take fills one by one */
static int take_list(struct reading *r, const json_t *from, const char *key, size_t most,
		     size_t item_size, void **ret_items,
		     int (*take)(struct reading *r, const json_t *from))
{
	const json_t *list = json_object_get(from, key);
	size_t i, n = json_array_size(list);

	if (!json_is_array(list))
		return refuse(r, "'%s' is not a list", key);
	if (n > most)
		return refuse(r, "'%s' has %zu entries, %zu is the most", key, n, most);
	*ret_items = calloc(n + 1, item_size);
	if (!*ret_items)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		int error = take(r, json_array_get(list, i));

		if (error < 0)
			return error;
	}
	return 0;
}

static int take_all(struct reading *r, const json_t *from)
{
	struct report *report = &r->report;
	int error;

	error = take_name(r, from, "node", report->node, sizeof(report->node));
	if (error == 0)
		error = take_name(r, from, "nonce", report->nonce, sizeof(report->nonce));
	if (error == 0)
		error = take_list(r, from, "devices", REPORT_DEVICES, sizeof(*report->devices),
				  (void **)&report->devices, take_device);
	if (error == 0)
		error = take_list(r, from, "tenants", REPORT_TENANTS, sizeof(*report->tenants),
				  (void **)&report->tenants, take_tenant);
	if (error == 0)
		error = take_list(r, from, "incidents", REPORT_INCIDENTS,
				  sizeof(*report->incidents), (void **)&report->incidents,
				  take_incident);
	return error;
}

int report_parse(const char *text, size_t len, struct report *ret, char reason[REPORT_REASON])
{
	struct reading r = { .reason = reason };
	json_error_t at;
	json_t *json;
	int error;

	if (len > REPORT_BYTES)
		return refuse(&r, "%zu bytes, %d is the most", len, REPORT_BYTES);
	json = json_loadb(text, len, JSON_REJECT_DUPLICATES, &at);
	error = json_is_object(json) ? take_all(&r, json) : refuse(&r, "is not a JSON object");
	json_decref(json);
	if (error < 0)
		report_done(&r.report);
	else
		*ret = r.report;
	return error;
}

/* --- writing --- */

static json_t *print_devices(const struct report *report)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < report->n_devices; i++)
		json_array_append_new(list,
				      json_pack("{s:I, s:I}", "total",
						(json_int_t)report->devices[i].total_bytes, "used",
						(json_int_t)report->devices[i].used_bytes));
	return list;
}

static json_t *print_tenants(const struct report *report)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < report->n_tenants; i++) {
		const struct report_tenant *t = &report->tenants[i];

		json_array_append_new(list,
				      json_pack("{s:s, s:I, s:I, s:I}", "tenant", t->name, "gpu",
						(json_int_t)t->gpu, "low", (json_int_t)t->low_bytes,
						"held", (json_int_t)t->held_bytes));
	}
	return list;
}

static json_t *print_incidents(const struct report *report)
{
	json_t *list = json_array();
	size_t n;

	for (n = 0; n < report->n_incidents; n++) {
		const struct report_incident *i = &report->incidents[n];

		json_array_append_new(list, json_pack("{s:I, s:s, s:I, s:I, s:I, s:I, s:s, s:s}",
						      "id", (json_int_t)i->id, "tenant", i->tenant,
						      "begun", (json_int_t)i->begun_s, "ended",
						      (json_int_t)i->ended_s, "request",
						      (json_int_t)i->request_bytes, "peak",
						      (json_int_t)i->peak_bytes, "policy",
						      i->policy, "state", i->state));
	}
	return list;
}

char *report_print(const struct report *report)
{
	json_t *json = json_pack("{s:s, s:s, s:o, s:o, s:o}", "node", report->node, "nonce",
				 report->nonce, "devices", print_devices(report), "tenants",
				 print_tenants(report), "incidents", print_incidents(report));
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

	json_decref(json);
	return text;
}

void report_done(struct report *report)
{
	free(report->devices);
	free(report->tenants);
	free(report->incidents);
	*report = (struct report){};
}
