/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_FAKE_ENGINE_H
#define DAEMON_FAKE_ENGINE_H

#include "audit/engine.h"

struct fake_binding {
	bool bound;
	enum engine_binding kind;
	uint64_t id;
};

/* What the fake engine was told: tests look here. */
struct fake_engine {
	struct audit_device devices[LEDGER_DEVICES];
	uint64_t reserve[LEDGER_DEVICES];
	struct audit_tenant tenants[LEDGER_TENANTS];
	struct engine_compute compute[LEDGER_TENANTS];
	struct fake_binding bindings[LEDGER_TENANTS];
	struct ledger books[LEDGER_TENANTS * LEDGER_DEVICES];
	struct audit_process processes[128];
	int n_processes;
	bool watching;
	bool asks_users;
};

extern struct fake_engine fake_engine;

#endif
