/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/eviction.h"

#include "base/str.h"

void evictions_note(struct evictions *evictions, const char *tenant, uint64_t peak_bytes)
{
	struct eviction *e = &evictions->items[evictions->next];

	evictions->next = (evictions->next + 1) % EVICTIONS_KEPT;
	str_copy(e->tenant, sizeof(e->tenant), tenant);
	e->peak_bytes = peak_bytes;
}

bool evictions_take(struct evictions *evictions, const char *tenant, uint64_t *ret_peak_bytes)
{
	bool found = false;
	unsigned i;

	for (i = 0; i < EVICTIONS_KEPT; i++) {
		if (!*tenant || !str_eq(evictions->items[i].tenant, tenant))
			continue;
		*ret_peak_bytes = evictions->items[i].peak_bytes;
		evictions->items[i].tenant[0] = '\0';
		found = true;
	}
	return found;
}
