// SPDX-License-Identifier: Apache-2.0
/* CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER, as the driver reads them in cuInit(). */
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "softgpu/cuda/visible.h"

static uint64_t speed(const struct softgpu_device_config *device)
{
	return (uint64_t)device->n_sms * device->clock_mhz;
}

static uint64_t pci_place(const struct softgpu_device_config *device)
{
	return (uint64_t)device->pci_domain << 32 | (uint64_t)device->pci_bus << 16 |
	       device->pci_device;
}

static bool comes_before(const struct softgpu_device_config *a,
			 const struct softgpu_device_config *b, bool by_pci)
{
	return by_pci ? pci_place(a) < pci_place(b) : speed(a) > speed(b);
}

/* The fastest first unless the variable asks for the order on the bus; equals as configured. */
static void sort(const struct softgpu_device_config *devices, unsigned n, const char *order,
		 unsigned *ret)
{
	bool by_pci = order && !strcmp(order, "PCI_BUS_ID");
	unsigned i, j;

	for (i = 0; i < n; i++) {
		for (j = i; j > 0 && comes_before(&devices[i], &devices[ret[j - 1]], by_pci); j--)
			ret[j] = ret[j - 1];
		ret[j] = i;
	}
}

struct entry {
	const char *text;
	size_t length;
};

/* The next entry, without the blanks around it; false after the last. */
static bool entry_next(const char **list, struct entry *ret)
{
	const char *text = *list;
	size_t length;

	if (!text)
		return false;
	length = strcspn(text, ",");
	*list = text[length] ? text + length + 1 : NULL;
	while (length && isspace((unsigned char)*text)) {
		text++;
		length--;
	}
	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	ret->text = text;
	ret->length = length;
	return true;
}

/* The place in @sorted that an entry means, or -1. */
static int entry_ordinal(const struct entry *entry, unsigned n)
{
	size_t i = entry->length && entry->text[0] == '+' ? 1 : 0, first = i;
	unsigned value = 0;

	for (; i < entry->length && isdigit((unsigned char)entry->text[i]); i++) {
		value = value * 10 + (unsigned)(entry->text[i] - '0');
		if (value >= n)
			return -1;
	}
	return i == first ? -1 : (int)value;
}

static int entry_uuid(const struct entry *entry, const struct softgpu_device_config *devices,
		      const unsigned *sorted, unsigned n)
{
	char uuid[CONFIG_UUID_TEXT];
	int found = -1;
	unsigned i;

	if (entry->length < strlen("GPU-") || strncmp(entry->text, "GPU-", 4) != 0)
		return -1;
	for (i = 0; i < n; i++) {
		config_uuid_print(devices[sorted[i]].uuid, uuid);
		if (entry->length >= sizeof(uuid) ||
		    strncasecmp(uuid, entry->text, entry->length) != 0)
			continue;
		if (found >= 0)
			return -1;
		found = (int)i;
	}
	return found;
}

unsigned visible_devices(const struct softgpu_device_config *devices, unsigned n, const char *order,
			 const char *visible, unsigned ret[SOFTGPU_DEVICES_MAX])
{
	unsigned sorted[SOFTGPU_DEVICES_MAX], n_ret = 0;
	bool taken[SOFTGPU_DEVICES_MAX] = { false };
	struct entry entry;
	bool by_uuid;
	int place;

	sort(devices, n, order, sorted);
	if (!visible) {
		memcpy(ret, sorted, n * sizeof(*ret));
		return n;
	}
	by_uuid = !strncmp(visible, "GPU-", 4);
	while (entry_next(&visible, &entry)) {
		place = by_uuid ? entry_uuid(&entry, devices, sorted, n) : entry_ordinal(&entry, n);
		if (place < 0)
			break;
		if (taken[place])
			return 0;
		taken[place] = true;
		ret[n_ret++] = sorted[place];
	}
	return n_ret;
}
