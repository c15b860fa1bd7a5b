// SPDX-License-Identifier: Apache-2.0
/*
 * Devices and tenants: their numbers, their limits, their ledgers.
 *
 * The programs work on the same memory at the same time. What both change is changed by the steps of
 * ledger.h; the rest is written here alone.
 */
#include <errno.h>
#include <string.h>

#include "priv.h"

/* --- devices ----------------------------------------------------------------------------------------- */

int engine_device_set(struct engine *engine, unsigned device, const struct audit_device *d,
		      uint64_t reserve)
{
	struct audit_device *to;

	if (device >= LEDGER_DEVICES)
		return -EINVAL;
	to = &engine->state->devices[device];
	*to = *d;
	to->in_use = 1;
	book(engine, 0, device)->max = reserve < d->total ? d->total - reserve : 0;
	if (engine->state->control.n_devices <= device)
		__atomic_store_n(&engine->state->control.n_devices, device + 1, __ATOMIC_RELEASE);
	return 0;
}

/* --- tenants ----------------------------------------------------------------------------------------- */

int engine_tenant_find(struct engine *engine, const char *name, uint32_t *ret_tenant)
{
	for (uint32_t i = 1; i < engine->n_tenants; i++) {
		const struct audit_tenant *t = &engine->state->tenants[i];

		if (t->in_use && strncmp(t->name, name, sizeof(t->name)) == 0) {
			*ret_tenant = i;
			return 0;
		}
	}
	return ENGINE_E_GONE;
}

/* Whether something that it took of a table is still there. */
static bool is_counted(const struct audit_tenant *t)
{
	for (size_t i = 0; i < AUDIT_TABLES; i++)
		if (t->taken[i])
			return true;
	return t->n_objects;
}

void tenants_count(struct engine *engine)
{
	/* Tenant 0 stands for the whole device. */
	engine->n_tenants = 1;
	for (uint32_t i = 1; i < LEDGER_TENANTS; i++)
		if (engine->state->tenants[i].in_use || is_counted(&engine->state->tenants[i]))
			engine->n_tenants = i + 1;
}

void tenant_clear(struct engine *engine, uint32_t tenant)
{
	for (unsigned i = 0; i < LEDGER_DEVICES; i++) {
		*book(engine, tenant, i) = (struct ledger){ .max = LEDGER_NO_LIMIT };
		*share_of(engine, tenant, i) = (struct share){};
	}
}

int engine_tenant_new(struct engine *engine, const char *name, uint32_t *ret_tenant)
{
	uint32_t known;

	if (strlen(name) >= AUDIT_NAME)
		return -ENAMETOOLONG;
	if (engine_tenant_find(engine, name, &known) == 0)
		return -EEXIST;
	for (uint32_t i = 1; i < LEDGER_TENANTS; i++) {
		struct audit_tenant *t = &engine->state->tenants[i];

		/* A tenant that was removed is free again when the last of its processes is charged elsewhere, and so on. */
		if (t->in_use || is_counted(t))
			continue;
		memset(t, 0, sizeof(*t));
		tenant_clear(engine, i);
		snprintf(t->name, sizeof(t->name), "%s", name);
		__atomic_store_n(&t->in_use, 1, __ATOMIC_RELEASE);
		engine->n_tenants = MAX(engine->n_tenants, i + 1);
		*ret_tenant = i;
		return 0;
	}
	return ENGINE_E_FULL;
}

struct audit_tenant *tenant_get(const struct engine *engine, uint32_t tenant)
{
	if (tenant == 0 || tenant >= LEDGER_TENANTS || !engine->state->tenants[tenant].in_use)
		return NULL;
	return &engine->state->tenants[tenant];
}

int engine_tenant(const struct engine *engine, uint32_t tenant, struct audit_tenant *ret)
{
	const struct audit_tenant *t = tenant_get(engine, tenant);

	if (!t)
		return ENGINE_E_GONE;
	*ret = *t;
	return 0;
}

int engine_tenant_limit(struct engine *engine, uint32_t tenant, unsigned device,
			const struct engine_limits *limits)
{
	if (!tenant_get(engine, tenant))
		return ENGINE_E_GONE;
	if (device >= LEDGER_DEVICES)
		return -EINVAL;
	__atomic_store_n(&book(engine, tenant, device)->max, limits->max_bytes, __ATOMIC_RELEASE);
	__atomic_store_n(&book(engine, tenant, device)->low, limits->low_bytes, __ATOMIC_RELEASE);
	return 0;
}

int engine_tenant_waits(struct engine *engine, uint32_t tenant, uint64_t wait_max_ns,
			uint64_t wait_low_ns, enum audit_failure on_failure)
{
	struct audit_tenant *t = tenant_get(engine, tenant);

	if (!t)
		return ENGINE_E_GONE;
	t->wait_max_ns = wait_max_ns;
	t->wait_low_ns = wait_low_ns;
	t->on_failure = on_failure;
	return 0;
}

int engine_book(const struct engine *engine, uint32_t tenant, unsigned device, struct ledger *ret)
{
	if (tenant >= LEDGER_TENANTS || device >= LEDGER_DEVICES)
		return -EINVAL;
	*ret = *book(engine, tenant, device);
	/* See bpf/order.h. */
	if (tenant == 0)
		ret->low = 0;
	return 0;
}
