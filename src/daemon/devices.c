/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices as the engine is told of them.
 */
#include "daemon/daemon.h"

#include <ctype.h>

uint64_t daemon_reserve(const struct daemon *d, unsigned device)
{
	const struct gpu_device *g = &d->gpu->devices[device];
	const struct config *files = &d->tenants.files;
	const struct device_spec *spec;
	size_t i, j;

	for (i = 0; i < files->n_files; i++) {
		for (j = 0; j < files->files[i].specs.n_devices; j++) {
			spec = &files->files[i].specs.devices[j];
			if (!str_eq(spec->uuid, g->uuid))
				continue;
			if (spec->reserve.is_part)
				return (unsigned __int128)g->total_bytes * spec->reserve.number /
				       1000;
			return MIN(spec->reserve.number, g->total_bytes);
		}
	}
	return 0;
}

/* "GPU-5c1e4d3a-..." as the 16 bytes that the driver's calls give. */
static void uuid_bytes(const char *uuid, uint8_t ret[16])
{
	unsigned n = 0, digit;
	const char *p;

	memset(ret, 0, 16);
	for (p = strchr(uuid, '-'); p && *p && n < 32; p++) {
		if (!isxdigit((unsigned char)*p))
			continue;
		digit = isdigit((unsigned char)*p) ? *p - '0' : (*p | 0x20) - 'a' + 10;
		ret[n / 2] |= n % 2 ? digit : digit << 4;
		n++;
	}
}

/*
 * What NVML finds it by. A place on the bus has its domain in eight digits; NVML takes it in four, too, and
 * without one where that is zero.
 */
static void name_device(const struct gpu_device *g, uint64_t names[AUDIT_DEVICE_NAMES])
{
	unsigned n = 0;

	names[n++] = audit_name_hash(g->uuid);
	if (*g->serial)
		names[n++] = audit_name_hash(g->serial);
	if (strlen(g->bus_id) <= strlen("00000000:"))
		return;
	names[n++] = audit_name_hash(g->bus_id);
	names[n++] = audit_name_hash(g->bus_id + strlen("0000"));
	if (strncmp(g->bus_id, "00000000:", strlen("00000000:")) == 0)
		names[n++] = audit_name_hash(g->bus_id + strlen("00000000:"));
}

void daemon_devices_apply(struct daemon *d)
{
	struct audit_device device;
	unsigned i;

	for (i = 0; d->engine && i < daemon_n_devices(d); i++) {
		memset(&device, 0, sizeof(device));
		uuid_bytes(d->gpu->devices[i].uuid, device.uuid);
		name_device(&d->gpu->devices[i], (uint64_t *)device.names);
		device.nvml_index = d->gpu->devices[i].index;
		device.total = d->gpu->devices[i].total_bytes;
		device.context_bytes =
			d->context_bytes[i] ? d->context_bytes[i] : AUDIT_CONTEXT_UNKNOWN;
		engine_device_set(d->engine, i, &device, daemon_reserve(d, i));
	}
}
