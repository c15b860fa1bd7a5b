/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/node/collect.h"

#include "cluster/channel.h"

#include "api/client.h"

#include "base/str.h"

#include <errno.h>

static uint64_t number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static const char *word(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static void *room_for(const json_t *list, size_t most, size_t size, size_t *ret_n)
{
	*ret_n = MIN(json_array_size(list), most);
	return calloc(*ret_n + 1, size);
}

/* A device that does not answer is reported as having nothing: it is none to place anything on. */
static int collect_devices(const json_t *list, struct report *report)
{
	size_t i, n;

	report->devices = room_for(list, REPORT_DEVICES, sizeof(*report->devices), &n);
	if (!report->devices)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		const json_t *from = json_array_get(list, i);

		if (json_is_integer(json_object_get(from, "memory.used")))
			report->devices[i] = (struct report_device){ number(from, "memory.total"),
								     number(from, "memory.used") };
	}
	report->n_devices = n;
	return 0;
}

static void collect_tenant(const json_t *tenant, struct report *report)
{
	const json_t *list = json_object_get(tenant, "devices");
	size_t i;

	for (i = 0; i < json_array_size(list) && report->n_tenants < REPORT_TENANTS; i++) {
		const json_t *from = json_array_get(list, i);
		struct report_tenant t = { .gpu = number(from, "gpu"),
					   .low_bytes = number(from, "memory.low"),
					   .held_bytes = number(from, "memory.current") };

		if (t.gpu >= report->n_devices || (!t.low_bytes && !t.held_bytes) ||
		    !str_copy(t.name, sizeof(t.name), word(tenant, "tenant")))
			continue;
		report->tenants[report->n_tenants++] = t;
	}
}

static int collect_tenants(const json_t *list, struct report *report)
{
	size_t i;

	report->tenants = calloc(REPORT_TENANTS, sizeof(*report->tenants));
	if (!report->tenants)
		return -ENOMEM;
	for (i = 0; i < json_array_size(list); i++)
		collect_tenant(json_array_get(list, i), report);
	return 0;
}

static int collect_incidents(const json_t *list, struct report *report)
{
	size_t i, n;

	report->incidents = room_for(list, REPORT_INCIDENTS, sizeof(*report->incidents), &n);
	if (!report->incidents)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		const json_t *from = json_array_get(list, i);
		struct report_incident *to = &report->incidents[i];

		*to = (struct report_incident){ .id = number(from, "id"),
						.begun_s = number(from, "time"),
						.ended_s = number(from, "ended"),
						.request_bytes = number(from, "request"),
						.peak_bytes = number(from, "peak") };
		str_copy(to->tenant, sizeof(to->tenant), word(from, "tenant"));
		str_copy(to->policy, sizeof(to->policy), word(from, "policy"));
		str_copy(to->state, sizeof(to->state), word(from, "state"));
	}
	report->n_incidents = n;
	return 0;
}

int collect_report(const json_t *devices, const json_t *tenants, const json_t *incidents,
		   struct report *report)
{
	int r;

	r = collect_devices(json_object_get(devices, "devices"), report);
	if (r == 0)
		r = collect_tenants(json_object_get(tenants, "tenants"), report);
	if (r == 0)
		r = collect_incidents(json_object_get(incidents, "incidents"), report);
	return r;
}

static int ask(const char *socket, uint64_t until_ms, enum api_method_id method, json_t *args,
	       json_t **ret, char reason[REPORT_REASON])
{
	uint64_t now_ms = channel_now_ms();
	struct api_error error = {};

	if (api_request_json(socket, until_ms - MIN(now_ms, until_ms), method, args, ret, &error) ==
	    0)
		return 0;
	str_copy(reason, REPORT_REASON, error.message);
	return -EIO;
}

int collect_ask(const char *socket, uint64_t until_ms, struct report *report,
		char reason[REPORT_REASON])
{
	json_t *devices = NULL, *tenants = NULL, *incidents = NULL;
	int r;

	r = ask(socket, until_ms, API_DEVICES_LIST, NULL, &devices, reason);
	if (r == 0)
		r = ask(socket, until_ms, API_TENANTS_LIST, NULL, &tenants, reason);
	if (r == 0)
		r = ask(socket, until_ms, API_INCIDENTS_LIST,
			json_pack("{s:i}", "limit", REPORT_INCIDENTS), &incidents, reason);
	if (r == 0)
		r = collect_report(devices, tenants, incidents, report);
	json_decref(devices);
	json_decref(tenants);
	json_decref(incidents);
	return r;
}
