/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of `cotenant run` that were evicted: whoever started one is told so when it has
 * ended, and may start it again. Few are kept, as he asks at once or never.
 */
#ifndef DAEMON_EVICTION_H
#define DAEMON_EVICTION_H

#include "base/base.h"

#include <stdbool.h>

#define EVICTIONS_KEPT 64

/**
 * struct evictions - the latest
 * @next:	the place of the next one
 */
struct evictions {
	struct eviction {
		char tenant[64];
		uint64_t peak_bytes;
	} items[EVICTIONS_KEPT];
	unsigned next;
};

/**
 * evictions_note() - a tenant is evicted that held so much at the most
 */
void evictions_note(struct evictions *evictions, const char *tenant, uint64_t peak_bytes);

/**
 * evictions_take() - was it evicted? That is then forgotten.
 */
bool evictions_take(struct evictions *evictions, const char *tenant, uint64_t *ret_peak_bytes);

#endif
