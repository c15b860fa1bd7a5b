/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/controller/service.h"

#include "base/file.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

static const char *const order_names[] = {
	[PLACEMENT_BINPACK] = "binpack",
	[PLACEMENT_SPREAD] = "spread",
	[PLACEMENT_SPREAD_NODES] = "spread-nodes",
};

const struct service *service_find(const struct services *services, const char *name)
{
	size_t i;

	for (i = 0; i < services->n; i++) {
		if (str_eq(services->items[i].name, name))
			return &services->items[i];
	}
	return NULL;
}

const struct service *service_by_id(const struct services *services, uint32_t id)
{
	size_t i;

	for (i = 0; i < services->n; i++) {
		if (services->items[i].id == id)
			return &services->items[i];
	}
	return NULL;
}

void services_done(struct services *services)
{
	size_t i;

	for (i = 0; i < services->n; i++) {
		free(services->items[i].command);
		free(services->items[i].raises.items);
	}
	free(services->items);
	memset(services, 0, sizeof(*services));
}

int service_order_parse(const char *text, enum placement_order *ret)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(order_names); i++) {
		if (str_eq(text, order_names[i])) {
			*ret = i;
			return 0;
		}
	}
	return -EINVAL;
}

const char *service_order_name(enum placement_order order)
{
	return order_names[order];
}

uint64_t service_request_mib(const struct service *service, uint32_t instance)
{
	return reconcile_request_mib(service->memory_mib, &service->raises, instance);
}

uint64_t service_raised(const struct service *service, uint64_t memory_mib, const char *note)
{
	const char *digits = note ? str_after(note, PEAK_NOTE) : NULL;
	uint64_t peak_mib;

	if (!digits || str_parse_u64(digits, &peak_mib) < 0)
		return memory_mib;
	return MAX(memory_mib, MIN(peak_mib, service->raise_mib));
}

/* --- identity --- */

int identity_make(uint32_t service, uint32_t instance, struct identity *ret)
{
	_cleanup_free_ char *uuid = NULL;
	int r;

	r = file_read_at(AT_FDCWD, "/proc/sys/kernel/random/uuid", 64, &uuid, NULL);
	if (r < 0)
		return r;
	*ret = (struct identity){ .service = service, .instance = instance };
	str_copy(ret->uuid, sizeof(ret->uuid), uuid);
	return 0;
}

void identity_print(const struct identity *identity, char ret[IDENTITY_SIZE])
{
	snprintf(ret, IDENTITY_SIZE, IDENTITY_PREFIX "%" PRIu32 ":%" PRIu32 ":%" PRIu32 ":%s",
		 identity->service, identity->instance, identity->n_placed, identity->uuid);
}

/* A number of 32 bits and the colon behind it. */
static const char *take_number(const char *s, uint32_t *ret)
{
	uint64_t n;

	s = str_take_u64(s, ":", &n);
	if (!s || n > UINT32_MAX)
		return NULL;
	*ret = n;
	return s;
}

int identity_parse(const char *comment, struct identity *ret)
{
	struct identity identity = {};
	const char *rest = str_after(comment, IDENTITY_PREFIX);

	rest = take_number(rest, &identity.service);
	rest = take_number(rest, &identity.instance);
	rest = take_number(rest, &identity.n_placed);
	if (!rest || !identity.service || strlen(rest) != IDENTITY_UUID - 1 ||
	    strspn(rest, "0123456789abcdef-") != IDENTITY_UUID - 1)
		return -EINVAL;
	str_copy(identity.uuid, sizeof(identity.uuid), rest);
	*ret = identity;
	return 0;
}
