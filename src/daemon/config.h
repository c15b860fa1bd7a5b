/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder of *.ini files with tenants, read whole and edited in place.
 *
 * A file that cannot be taken is refused with its line and reason; the others
 * apply. If it was good before, what it said then goes on to hold: a slip of an
 * editor must not lift anybody's limit.
 */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

#include "tenant/spec.h"

/**
 * struct config_file - one file
 * @specs:	what holds: of this reading, or of the last good one
 * @refused:	this reading was refused, for @error
 * @news:	it is refused, and was not for the same reason at the last reading
 * @seen:	it was there at this reading
 */
struct config_file {
	char *path;
	struct specs specs;
	bool refused;
	struct ini_error error;
	bool news;
	bool seen;
};

/**
 * struct config - all files of a folder
 * @passing:	nobody else writes them, and they are of no use after a boot of the host: none is flushed, and
 *		a change is taken in without reading the others again
 */
struct config {
	char *dir;
	bool passing;
	struct config_file *files;
	size_t n_files;
};

/**
 * config_init() - a folder, which need not be there yet
 */
int config_init(struct config *config, const char *dir);

/**
 * config_load() - read all files again
 *
 * Return: 0, also when files are refused; a fault when the folder cannot be read.
 */
int config_load(struct config *config);

/**
 * config_find() - a tenant by name
 * @ret_file:	the file that holds it; may be NULL
 */
const struct tenant_spec *config_find(const struct config *config, const char *name,
				      const struct config_file **ret_file);

/**
 * config_find_match() - a tenant by whom it matches
 */
const struct tenant_spec *config_find_match(const struct config *config,
					    const struct selector *match);

/**
 * config_write_tenant() - change a tenant where it stands, or add it in a file of its own
 * @error:	on -EINVAL: the file that holds it is refused as it is
 *
 * The change is in @config, too, afterwards.
 */
int config_write_tenant(struct config *config, const struct tenant_spec *tenant,
			struct ini_error *error);

/**
 * config_remove_tenant() - take a tenant out; a file that is empty then goes as well
 */
int config_remove_tenant(struct config *config, const char *name, struct ini_error *error);

/**
 * config_write_device() - set a device's reserve
 */
int config_write_device(struct config *config, const struct device_spec *device,
			struct ini_error *error);

void config_done(struct config *config);

#endif
