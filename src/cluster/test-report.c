/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/report.h"

#include "base/check.h"
#include "base/str.h"

#include <errno.h>

#define HEAD	"{\"node\":\"n1\",\"nonce\":\"ab\","
#define DEVICES "\"devices\":[{\"total\":100,\"used\":10}],"
#define TENANT	"{\"tenant\":\"job-7\",\"gpu\":0,\"low\":5,\"held\":6}"
#define NONE	"\"tenants\":[],\"incidents\":[]}"

static const struct {
	const char *text;
	const char *reason; /* NULL: is taken */
} cases[] = {
	{ HEAD DEVICES NONE, NULL },
	{ HEAD DEVICES "\"tenants\":[" TENANT "],\"incidents\":[]}", NULL },
	{ "", "is not a JSON object" },
	{ "[]", "is not a JSON object" },
	{ HEAD DEVICES NONE "x", "is not a JSON object" },
	{ HEAD "\"node\":\"n2\"," DEVICES NONE, "is not a JSON object" },
	{ "{\"nonce\":\"ab\"," DEVICES NONE, "'node' is not a name" },
	{ "{\"node\":\"../n1\",\"nonce\":\"ab\"," DEVICES NONE, "'node' is not a name" },
	{ "{\"node\":\"n\\n1\",\"nonce\":\"ab\"," DEVICES NONE, "'node' is not a name" },
	{ HEAD NONE, "'devices' is not a list" },
	{ HEAD "\"devices\":{}," NONE, "'devices' is not a list" },
	{ HEAD "\"devices\":[7]," NONE, "'total' is not a number of 0 or more" },
	{ HEAD "\"devices\":[{\"total\":-1,\"used\":0}]," NONE,
	  "'total' is not a number of 0 or more" },
	{ HEAD "\"devices\":[{\"total\":1e3,\"used\":0}]," NONE,
	  "'total' is not a number of 0 or more" },
	{ HEAD "\"devices\":[{\"total\":100,\"used\":101}]," NONE,
	  "device 0: 101 bytes are used of 100 that it has" },
	{ HEAD DEVICES
	  "\"tenants\":[{\"tenant\":\"job-7\",\"gpu\":1,\"low\":0,\"held\":0}],\"incidents\":[]}",
	  "job-7 is on device 1, and there are 1" },
	{ HEAD DEVICES
	  "\"tenants\":[{\"tenant\":\"a b\",\"gpu\":0,\"low\":0,\"held\":0}],\"incidents\":[]}",
	  "'tenant' is not a name" },
	{ HEAD DEVICES "\"tenants\":[],\"incidents\":[{\"id\":1}]}", "'tenant' is not a name" },
};

static void test_cases(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		char reason[REPORT_REASON] = "";
		struct report report = {};
		int r = report_parse(cases[i].text, strlen(cases[i].text), &report, reason);

		check(cases[i].reason ? r == -EINVAL && str_eq(reason, cases[i].reason) : r == 0,
		      "report: %s: %s", cases[i].text, *reason ? reason : "taken");
		report_done(&report);
	}
}

static void test_bounds(void)
{
	_cleanup_(text_done) struct text many = {}, much = {};
	char reason[REPORT_REASON] = "";
	struct report report = {};
	size_t i;

	text_add(&many, HEAD "\"devices\":[");
	for (i = 0; i <= REPORT_DEVICES; i++)
		text_addf(&many, "%s{\"total\":1,\"used\":1}", i ? "," : "");
	text_add(&many, "]," NONE);
	check(report_parse(many.data, many.len, &report, reason) == -EINVAL &&
		      str_eq(reason, "'devices' has 65 entries, 64 is the most"),
	      "report: lists have an end: %s", reason);
	while (much.len <= REPORT_BYTES)
		text_add(&much, "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[");
	check(report_parse(much.data, much.len, &report, reason) == -EINVAL &&
		      strstr(reason, "524288 is the most"),
	      "report: and so has all of it: %s", reason);
	check(report_parse(much.data, REPORT_BYTES, &report, reason) == -EINVAL,
	      "report: what is nested without end is refused");
}

static void test_written(void)
{
	struct report_device devices[] = { { 4096, 1024 }, { 8192, 0 } };
	struct report_tenant tenants[] = { { "job-7", 7, 1, 100, 200 }, { "web", 0, 0, 1, 2 } };
	struct report_incident incidents[] = { { 3, "job-7", 10, 20, 100, 200, "warn", "clear" } };
	struct report made = { "n1", "ab", devices, 2, tenants, 2, incidents, 1 }, read = {};
	_cleanup_free_ char *text = report_print(&made);
	char reason[REPORT_REASON] = "";

	if (!check(text && report_parse(text, strlen(text), &read, reason) == 0,
		   "report: what is written can be read: %s", reason))
		return;
	check(read.n_devices == 2 && read.devices[1].total_bytes == 8192 && read.n_tenants == 2 &&
		      read.tenants[0].job == 7 && read.tenants[0].gpu == 1 &&
		      read.tenants[0].held_bytes == 200 && read.tenants[1].job == 0 &&
		      read.n_incidents == 1 && read.incidents[0].id == 3 &&
		      read.incidents[0].ended_s == 20 && str_eq(read.incidents[0].state, "clear"),
	      "report: and is what was written");
	report_done(&read);
}

#define LONGEST "job-00123456789012345678901234567890123456789012345678901234567"

/* All that a report has room for, with the longest names and numbers. */
static void test_largest(void)
{
	static struct report_device devices[REPORT_DEVICES];
	static struct report_tenant tenants[REPORT_TENANTS];
	static struct report_incident incidents[REPORT_INCIDENTS];
	struct report made = { LONGEST,	  "0123456789abcdef0123456789abcdef",
			       devices,	  REPORT_DEVICES,
			       tenants,	  REPORT_TENANTS,
			       incidents, REPORT_INCIDENTS },
		      read = {};
	_cleanup_free_ char *text = NULL;
	char reason[REPORT_REASON] = "";
	size_t i;

	for (i = 0; i < REPORT_DEVICES; i++)
		devices[i] = (struct report_device){ INT64_MAX, INT64_MAX };
	for (i = 0; i < REPORT_TENANTS; i++)
		tenants[i] = (struct report_tenant){ LONGEST, 0, REPORT_DEVICES - 1, INT64_MAX,
						     INT64_MAX };
	for (i = 0; i < REPORT_INCIDENTS; i++)
		incidents[i] = (struct report_incident){ INT64_MAX,
							 LONGEST,
							 INT64_MAX,
							 INT64_MAX,
							 INT64_MAX,
							 INT64_MAX,
							 "01234567890123456789012",
							 "01234567890123456789012" };
	text = report_print(&made);
	check(text && strlen(LONGEST) == REPORT_NAME - 1 &&
		      report_parse(text, strlen(text), &read, reason) == 0 &&
		      read.n_tenants == REPORT_TENANTS && read.n_incidents == REPORT_INCIDENTS,
	      "report: the largest of all is taken: %s", reason);
	report_done(&read);
}

int main(void)
{
	test_cases();
	test_bounds();
	test_written();
	test_largest();
	return check_result();
}
