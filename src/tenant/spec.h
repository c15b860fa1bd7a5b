/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants and devices as a file of tenants.d describes them.
 *
 *	[alice]
 *	match = user:alice
 *	memory.max = 8G
 *	memory.max@GPU-5c1e... = 4G
 *	gpu = GPU-5c1e... GPU-77a0...
 *
 *	[device GPU-5c1e...]
 *	memory.reserve = 512M
 *
 * A file is taken whole or refused whole, with the line and what is wrong there.
 */
#ifndef TENANT_SPEC_H
#define TENANT_SPEC_H

#include "base/ini.h"
#include "tenant/limit.h"
#include "tenant/selector.h"

#include <sys/types.h>

#define TENANT_NAME_SIZE 64

/* Nobody in particular: only root sees and changes the tenant. */
#define TENANT_NO_OWNER ((uid_t)-1)

/**
 * struct tenant_spec - one tenant
 * @name:	the section's name
 * @match:	who is charged
 * @owner:	the user who started it by `cotenant run`, who may see and lower it
 * @freezer:	a container's cgroup in the v1 freezer hierarchy: what is started in it later is
 *		the tenant's as well; NULL where it has none
 * @job:	the batch job that it is, by its engine's number; 0 for none
 * @limits:	what is set; nothing set means watched, not limited
 */
struct tenant_spec {
	char name[TENANT_NAME_SIZE];
	struct selector match;
	uid_t owner;
	char *freezer;
	uint32_t job;
	struct limits limits;
};

/**
 * struct device_spec - what is kept back on a device
 * @reserve:	a size, or a part of its memory
 */
struct device_spec {
	char uuid[DEVICE_UUID_SIZE];
	struct limit_value reserve;
};

struct specs {
	struct tenant_spec *tenants;
	size_t n_tenants;
	struct device_spec *devices;
	size_t n_devices;
};

/**
 * specs_parse() - read one file's bytes
 * @ret:	released with specs_done(); untouched on failure
 *
 * Return: 0; -EINVAL with @error filled in; -ENOMEM.
 */
int specs_parse(const char *bytes, size_t len, struct specs *ret, struct ini_error *error);

/**
 * specs_add_tenant() - append a copy
 *
 * Return: 0, or -ENOMEM.
 */
int specs_add_tenant(struct specs *specs, const struct tenant_spec *tenant);

/**
 * spec_write() - bring a tenant into a file that may hold it already
 *
 * Entries that say the same are left as they stand, comments are kept.
 */
int spec_write(struct ini *ini, const struct tenant_spec *tenant);

/**
 * device_spec_write() - the same for a device
 */
int device_spec_write(struct ini *ini, const struct device_spec *device);

/**
 * tenant_spec_copy() - a copy of its own
 *
 * Return: 0, or -ENOMEM with @ret as it was.
 */
int tenant_spec_copy(const struct tenant_spec *from, struct tenant_spec *ret);
void tenant_spec_done(struct tenant_spec *tenant);
void specs_done(struct specs *specs);

#endif
