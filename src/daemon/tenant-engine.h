/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One tenant in the engine: its number, its limits, and what its processes are known by.
 */
#ifndef DAEMON_TENANT_ENGINE_H
#define DAEMON_TENANT_ENGINE_H

#include "daemon/tenants.h"

/**
 * tenant_failure() - what the engine calls a value of on-failure
 */
enum audit_failure tenant_failure(uint64_t on_failure);

/**
 * tenant_enforce() - have the engine charge its processes by its limits
 *
 * Where that cannot be, @t->problem says why. Nothing where there is no engine.
 */
void tenant_enforce(struct tenants *tenants, struct tenant *t);

/**
 * tenant_bind() - find its cgroup, user or process again, which may have come or gone
 */
void tenant_bind(struct tenants *tenants, struct tenant *t);

/**
 * tenant_set_outer_wall() - tell the driver of its limits, or that there are none any more
 */
void tenant_set_outer_wall(struct tenants *tenants, const struct tenant *t, bool on);

/**
 * tenant_forget() - its processes are charged to whoever else matches them
 */
void tenant_forget(struct tenants *tenants, struct tenant *t);

/**
 * tenants_remove_strays() - tenants of an earlier life of the daemon that nobody wants any more
 */
void tenants_remove_strays(struct tenants *tenants);

#endif
