/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/node/collect.h"

#include "base/check.h"
#include "base/str.h"

static json_t *read_json(const char *text)
{
	return json_loads(text, 0, NULL);
}

int main(void)
{
	json_t *devices =
		read_json("{\"devices\": ["
			  "{\"gpu\": 0, \"memory.total\": 4096, \"memory.used\": 1024},"
			  "{\"gpu\": 1, \"memory.total\": 4096, \"memory.used\": null}]}");
	json_t *tenants = read_json(
		"{\"tenants\": [{\"tenant\": \"job-7\", \"devices\": ["
		"{\"gpu\": 0, \"memory.low\": 512, \"memory.current\": 600},"
		"{\"gpu\": 1, \"memory.low\": 0, \"memory.current\": 0},"
		"{\"gpu\": 9, \"memory.low\": 1, \"memory.current\": 1}]},"
		"{\"tenant\": \"web\", \"devices\": [{\"gpu\": 1, \"memory.low\": 5, \"memory.current\": null}]}]}");
	json_t *incidents = read_json(
		"{\"incidents\": [{\"id\": 3, \"tenant\": \"job-7\", \"time\": 10.9, \"ended\": null,"
		" \"request\": 512, \"peak\": 600, \"policy\": \"suspend-evict\", \"state\": \"warn\"}]}");
	struct report report = { .node = "n1", .nonce = "ab" };

	if (!check(collect_report(devices, tenants, incidents, &report) == 0, "collect: is made"))
		return check_result();
	check(report.n_devices == 2 && report.devices[0].used_bytes == 1024 &&
		      report.devices[1].total_bytes == 0,
	      "collect: a device that does not answer has nothing");
	check(report.n_tenants == 2 && str_eq(report.tenants[0].name, "job-7") &&
		      report.tenants[0].held_bytes == 600 &&
		      str_eq(report.tenants[1].name, "web") && report.tenants[1].gpu == 1 &&
		      report.tenants[1].held_bytes == 0,
	      "collect: tenants where they have something");
	check(report.n_incidents == 1 && report.incidents[0].begun_s == 10 &&
		      report.incidents[0].ended_s == 0 &&
		      str_eq(report.incidents[0].policy, "suspend-evict"),
	      "collect: incidents");
	report_done(&report);
	json_decref(devices);
	json_decref(tenants);
	json_decref(incidents);
	check(collect_report(NULL, NULL, NULL, &report) == 0 && report.n_devices == 0,
	      "collect: of nothing, nothing");
	report_done(&report);
	return check_result();
}
