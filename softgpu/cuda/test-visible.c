// SPDX-License-Identifier: Apache-2.0
/* CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER: four devices, the third the fastest. */
#include <stdio.h>
#include <string.h>

#include "softgpu/cuda/visible.h"

static int n_failed;

static const struct {
	const char *what;
	const char *order, *visible;
	const char *expected; /* indices in the configuration, in the order of ordinals */
} cases[] = {
	{ "all without variables, the fastest first", NULL, NULL, "2013" },
	{ "an unknown order is the usual one", "SLOWEST", NULL, "2013" },
	{ "in the order of the bus", "PCI_BUS_ID", NULL, "1023" },
	{ "empty: none", NULL, "", "" },
	{ "ordinals count in the chosen order", "PCI_BUS_ID", "0,2", "12" },
	{ "ordinals of the usual order", NULL, "0", "2" },
	{ "reordered", "PCI_BUS_ID", "3,1", "30" },
	{ "blanks do not matter", "PCI_BUS_ID", " 3 , 1 ", "30" },
	{ "-1 hides all", "PCI_BUS_ID", "-1", "" },
	{ "-1 ends the list", "PCI_BUS_ID", "0,-1,2", "1" },
	{ "an ordinal too high ends the list", "PCI_BUS_ID", "0,4,2", "1" },
	{ "a huge one too", "PCI_BUS_ID", "0,99999999999999999999,2", "1" },
	{ "a word ends the list", "PCI_BUS_ID", "0,none,2", "1" },
	{ "an empty entry ends the list", "PCI_BUS_ID", "0,,2", "1" },
	{ "an empty entry at the start hides all", "PCI_BUS_ID", ",0", "" },
	{ "a comma at the end is an empty entry", "PCI_BUS_ID", "0,", "1" },
	{ "digits count as far as they go", "PCI_BUS_ID", "2gpu,0x1", "21" },
	{ "one named twice hides all", "PCI_BUS_ID", "0,1,0", "" },
	{ "twice, but after the end of the list", "PCI_BUS_ID", "0,9,0", "1" },
	{ "a UUID", NULL, "GPU-b1000000-0000-0000-0000-000000000000", "1" },
	{ "a beginning that fits one", NULL, "GPU-b", "1" },
	{ "upper case", NULL, "GPU-B1", "1" },
	{ "beginnings in any order", NULL, "GPU-d,GPU-a2", "30" },
	{ "a beginning that fits two ends the list", NULL, "GPU-b,GPU-a,GPU-d", "1" },
	{ "one that fits none too", NULL, "GPU-b,GPU-f,GPU-d", "1" },
	{ "the prefix alone fits all", NULL, "GPU-", "" },
	{ "a UUID and more is none", NULL, "GPU-b1000000-0000-0000-0000-000000000000ff", "" },
	{ "the same device by two beginnings hides all", NULL, "GPU-b,GPU-b1", "" },
	{ "an ordinal after a UUID ends the list", NULL, "GPU-b,0", "1" },
	{ "a UUID after an ordinal ends the list", "PCI_BUS_ID", "0,GPU-d", "1" },
	{ "a MIG instance: there is none", NULL, "MIG-b1000000", "" },
};

static void run(const struct softgpu_device_config *devices, size_t i)
{
	unsigned order[SOFTGPU_DEVICES_MAX], n, k;
	char got[SOFTGPU_DEVICES_MAX + 1];

	n = visible_devices(devices, 4, cases[i].order, cases[i].visible, order);
	for (k = 0; k < n; k++)
		got[k] = (char)('0' + order[k]);
	got[n] = '\0';
	if (!strcmp(got, cases[i].expected)) {
		printf("ok '%s'\n", cases[i].what);
		return;
	}
	printf("FAILED '%s': got \"%s\", expected \"%s\"\n", cases[i].what, got, cases[i].expected);
	n_failed++;
}

int main(void)
{
	static const uint8_t first_bytes[4][2] = { { 0xa2 }, { 0xb1 }, { 0xa1 }, { 0xd0 } };
	static const uint32_t buses[4] = { 2, 1, 3, 4 };
	struct softgpu_device_config devices[4] = { 0 };
	size_t i;

	for (i = 0; i < 4; i++) {
		devices[i].n_sms = 100;
		devices[i].clock_mhz = i == 2 ? 1500 : 1000;
		devices[i].pci_bus = buses[i];
		memcpy(devices[i].uuid, first_bytes[i], sizeof(first_bytes[i]));
	}
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		run(devices, i);
	return n_failed != 0;
}
