/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine of memory alone, with the real one's names: what tests of the daemon
 * link instead, so that they need neither root nor a kernel that runs the programs.
 */
#include "daemon/fake-engine.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

struct fake_engine fake_engine;

static struct ledger *book(uint32_t tenant, unsigned device)
{
	return &fake_engine.books[ledger_index(tenant, device)];
}

const char *engine_rung_name(enum engine_rung rung)
{
	static const char *const names[] = { "auto", "registers", "supervised" };

	return names[rung];
}

int engine_open(_unused_ const struct engine_options *options, struct engine **ret)
{
	*ret = (struct engine *)&fake_engine;
	return 0;
}

void engine_close(_unused_ struct engine *engine)
{
}

int engine_discard(_unused_ const char *state_dir)
{
	return 0;
}

void engine_remove(_unused_ struct engine *engine)
{
	memset(&fake_engine, 0, sizeof(fake_engine));
}

enum engine_rung engine_rung_now(_unused_ const struct engine *engine)
{
	return ENGINE_RUNG_SUPERVISED;
}

/* Never readable: nothing happens by itself here. */
int engine_fd(_unused_ const struct engine *engine)
{
	return eventfd(0, EFD_CLOEXEC);
}

int engine_dispatch(_unused_ struct engine *engine)
{
	return 0;
}

void engine_on_event(_unused_ struct engine *engine, _unused_ engine_event_fn fn,
		     _unused_ void *userdata)
{
}

int engine_device_set(_unused_ struct engine *engine, unsigned device, const struct audit_device *d,
		      uint64_t reserve)
{
	fake_engine.devices[device] = *d;
	fake_engine.reserve[device] = reserve;
	return 0;
}

bool engine_is_lingering(_unused_ const struct engine *engine)
{
	return false;
}

bool engine_lists(_unused_ struct engine *engine, _unused_ pid_t pid)
{
	return false;
}

uint64_t engine_device_ended(_unused_ const struct engine *engine, _unused_ unsigned device)
{
	return 0;
}

int engine_device_unowned(_unused_ struct engine *engine, _unused_ unsigned device,
			  _unused_ uint64_t bytes, _unused_ uint64_t ended)
{
	return 0;
}

int engine_tenant_new(_unused_ struct engine *engine, const char *name, uint32_t *ret_tenant)
{
	uint32_t i;

	for (i = 1; i < LEDGER_TENANTS; i++) {
		if (fake_engine.tenants[i].in_use)
			continue;
		fake_engine.tenants[i].in_use = 1;
		strncpy(fake_engine.tenants[i].name, name, AUDIT_NAME - 1);
		*ret_tenant = i;
		return 0;
	}
	return ENGINE_E_FULL;
}

int engine_tenant_find(_unused_ struct engine *engine, const char *name, uint32_t *ret_tenant)
{
	uint32_t i;

	for (i = 1; i < LEDGER_TENANTS; i++) {
		if (!fake_engine.tenants[i].in_use ||
		    strcmp(fake_engine.tenants[i].name, name) != 0)
			continue;
		*ret_tenant = i;
		return 0;
	}
	return ENGINE_E_GONE;
}

int engine_tenant_remove(_unused_ struct engine *engine, uint32_t tenant)
{
	memset(&fake_engine.tenants[tenant], 0, sizeof(fake_engine.tenants[tenant]));
	memset(book(tenant, 0), 0, LEDGER_DEVICES * sizeof(struct ledger));
	return 0;
}

int engine_tenant_limit(_unused_ struct engine *engine, uint32_t tenant, unsigned device,
			const struct engine_limits *limits)
{
	book(tenant, device)->max = limits->max_bytes;
	book(tenant, device)->low = limits->low_bytes;
	return 0;
}

int engine_tenant_compute(_unused_ struct engine *engine, uint32_t tenant, _unused_ unsigned device,
			  const struct engine_compute *compute)
{
	fake_engine.compute[tenant] = *compute;
	return 0;
}

int engine_compute_samples(_unused_ struct engine *engine, _unused_ unsigned device,
			   _unused_ const struct engine_sample *samples, _unused_ size_t n)
{
	return 0;
}

bool engine_compute_tick(_unused_ struct engine *engine)
{
	return 0;
}

int engine_compute_stat(_unused_ const struct engine *engine, _unused_ uint32_t tenant,
			_unused_ unsigned device, struct share *ret)
{
	*ret = (struct share){};
	return 0;
}

int engine_tenant_waits(_unused_ struct engine *engine, uint32_t tenant, uint64_t wait_max_ns,
			uint64_t wait_low_ns, enum audit_failure on_failure)
{
	fake_engine.tenants[tenant].wait_max_ns = wait_max_ns;
	fake_engine.tenants[tenant].wait_low_ns = wait_low_ns;
	fake_engine.tenants[tenant].on_failure = on_failure;
	return 0;
}

int engine_bind(_unused_ struct engine *engine, uint32_t tenant, enum engine_binding kind,
		uint64_t id)
{
	fake_engine.bindings[tenant] = (struct fake_binding){ true, kind, id };
	return 0;
}

int engine_unbind(_unused_ struct engine *engine, enum engine_binding kind, uint64_t id)
{
	uint32_t i;

	for (i = 1; i < LEDGER_TENANTS; i++) {
		if (fake_engine.bindings[i].kind == kind && fake_engine.bindings[i].id == id)
			fake_engine.bindings[i].bound = false;
	}
	return 0;
}

/* Of those that were started later nothing is known here. */
void engine_ask_users(_unused_ struct engine *engine, bool on, enum audit_failure on_failure)
{
	fake_engine.asks_users = on;
	fake_engine.tenants[0].on_failure = on_failure;
}

int engine_user_met(_unused_ struct engine *engine, _unused_ uid_t uid)
{
	return 0;
}

int engine_tree_of(_unused_ struct engine *engine, pid_t pid, uint32_t *ret_tenant)
{
	uint32_t i;

	for (i = 1; i < LEDGER_TENANTS; i++) {
		const struct fake_binding *b = &fake_engine.bindings[i];

		if (!b->bound || b->kind != ENGINE_BIND_TREE || b->id != (uint64_t)pid)
			continue;
		*ret_tenant = i;
		return 0;
	}
	return ENGINE_E_GONE;
}

int engine_book(_unused_ const struct engine *engine, uint32_t tenant, unsigned device,
		struct ledger *ret)
{
	*ret = *book(tenant, device);
	return 0;
}

int engine_tenant(_unused_ const struct engine *engine, uint32_t tenant, struct audit_tenant *ret)
{
	if (!fake_engine.tenants[tenant].in_use)
		return ENGINE_E_GONE;
	*ret = fake_engine.tenants[tenant];
	return 0;
}

int engine_each_process(_unused_ const struct engine *engine, engine_process_fn fn, void *userdata)
{
	int i, r = 0;

	for (i = 0; i < fake_engine.n_processes && r == 0; i++)
		r = fn(&fake_engine.processes[i], userdata);
	return r;
}

int engine_adopt(_unused_ struct engine *engine, _unused_ pid_t pid)
{
	return ENGINE_E_GONE;
}

int engine_settle(_unused_ struct engine *engine, _unused_ pid_t pid, _unused_ unsigned device,
		  _unused_ uint64_t device_bytes, _unused_ uint64_t moved)
{
	return 0;
}

void engine_asks_devices(_unused_ struct engine *engine)
{
}

uint64_t engine_settling(_unused_ const struct engine *engine)
{
	return 0;
}

void engine_settled(_unused_ struct engine *engine, _unused_ uint64_t since)
{
}

int engine_hint(_unused_ struct engine *engine, _unused_ pid_t pid,
		_unused_ const uint8_t *device_of)
{
	return ENGINE_E_GONE;
}

int engine_place(_unused_ struct engine *engine, _unused_ pid_t pid, _unused_ unsigned device)
{
	return ENGINE_E_GONE;
}

int engine_reap(_unused_ struct engine *engine)
{
	return 0;
}

int engine_each_held(_unused_ const struct engine *engine, _unused_ engine_slot_fn fn,
		     _unused_ void *userdata)
{
	return 0;
}

int engine_release(_unused_ struct engine *engine, _unused_ uint64_t ticket)
{
	return ENGINE_E_GONE;
}

int engine_refuse(_unused_ struct engine *engine, _unused_ uint64_t ticket)
{
	return ENGINE_E_GONE;
}

int engine_attach(_unused_ struct engine *engine, _unused_ const char *path)
{
	return 0;
}

int engine_attach_for(_unused_ struct engine *engine, _unused_ const char *path, _unused_ pid_t pid)
{
	return 0;
}

int engine_detach(_unused_ struct engine *engine, _unused_ dev_t dev, _unused_ ino_t ino)
{
	return 0;
}

int engine_each_library(_unused_ const struct engine *engine, _unused_ engine_library_fn fn,
			_unused_ void *userdata)
{
	return 0;
}

int engine_each_unprobed(_unused_ const struct engine *engine, _unused_ engine_unprobed_fn fn,
			 _unused_ void *userdata)
{
	return 0;
}

int engine_each_offsets(_unused_ const struct engine *engine, _unused_ engine_offsets_fn fn,
			_unused_ void *userdata)
{
	return 0;
}

int engine_offsets_reload(_unused_ struct engine *engine)
{
	return 0;
}

int engine_watch(_unused_ struct engine *engine, bool on)
{
	fake_engine.watching = on;
	return 0;
}

const char *engine_row_name(_unused_ unsigned row)
{
	return "cuMemAlloc_v2";
}

int engine_features(_unused_ struct engine_feature *ret, _unused_ size_t n)
{
	return 0;
}
