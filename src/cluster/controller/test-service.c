/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/controller/service.h"

#include "base/check.h"
#include "base/str.h"

static const char *const not_identities[] = {
	"",
	"my job",
	"cotenant:",
	"cotenant:1:2:3",
	"cotenant:1:2:3:",
	"cotenant:0:2:3:00000000-0000-0000-0000-000000000000",
	"cotenant:1:-2:3:00000000-0000-0000-0000-000000000000",
	"cotenant:1:4294967296:3:00000000-0000-0000-0000-000000000000",
	"cotenant:1:2:3:00000000-0000-0000-0000-0000000000000",
	"cotenant:1:2:3:00000000-0000-0000-0000-00000000000G",
};

int main(void)
{
	struct service service = { .memory_mib = 1024, .raise_mib = 3072 };
	struct identity made = {}, read = {};
	char text[IDENTITY_SIZE];
	enum placement_order order;
	size_t i;

	check(identity_make(7, 3, &made) == 0 && strlen(made.uuid) == IDENTITY_UUID - 1,
	      "identity: a new request has a UUID");
	made.n_placed = 2;
	identity_print(&made, text);
	check(identity_parse(text, &read) == 0 && read.service == 7 && read.instance == 3 &&
		      read.n_placed == 2 && str_eq(read.uuid, made.uuid),
	      "identity: is read as it was written: %s", text);
	for (i = 0; i < ARRAY_SIZE(not_identities); i++)
		check(identity_parse(not_identities[i], &read) < 0, "identity: '%s' is none",
		      not_identities[i]);
	check(service_raised(&service, 1024, "cotenant-peak:2048") == 2048 &&
		      service_raised(&service, 1024, "cotenant-peak:4096") == 3072 &&
		      service_raised(&service, 1024, "cotenant-peak:512") == 1024 &&
		      service_raised(&service, 1024, NULL) == 1024 &&
		      service_raised(&service, 1024, "somebody's own words") == 1024,
	      "raised: to what it held, no further than it may");
	service.raise_mib = 0;
	check(service_raised(&service, 1024, "cotenant-peak:2048") == 1024,
	      "raised: not where it was not asked for");
	check(service_order_parse("spread-nodes", &order) == 0 && order == PLACEMENT_SPREAD_NODES &&
		      service_order_parse("anyhow", &order) < 0,
	      "order: by its name");
	return check_result();
}
