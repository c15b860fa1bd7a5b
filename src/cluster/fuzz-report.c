/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a node's report: what is taken keeps its bounds, and reads the same when written again. */
#include "cluster/report.h"

#include "base/str.h"

#include <assert.h>
#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(report_done) struct report report = {}, again = {};
	char reason[REPORT_REASON] = "";
	_cleanup_free_ char *text = NULL;
	int r;

	r = report_parse((const char *)data, size, &report, reason);
	if (r < 0) {
		assert(*reason || r == -ENOMEM);
		return 0;
	}
	assert(str_is_name(report.node) && report.n_devices <= REPORT_DEVICES);
	for (size_t i = 0; i < report.n_tenants; i++)
		assert(report.tenants[i].gpu < report.n_devices);
	text = report_print(&report);
	assert(text && report_parse(text, strlen(text), &again, reason) == 0);
	assert(again.n_tenants == report.n_tenants);
	return 0;
}
