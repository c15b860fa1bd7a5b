// SPDX-License-Identifier: Apache-2.0
/*
 * Which devices there are, and what they are.
 */
#include "softgpu/nvml/nvml.h"

#include "softgpu/state/value.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* NVIDIA's vendor id, and no device of theirs. */
#define PCI_DEVICE_ID	0x000010deu
#define LANES_PER_SM	64
#define BRAND_NVIDIA	14
#define BUS_TYPE_PCIE	2
#define CLASS_DISPLAY	3
#define SUBCLASS_3D	2
#define UUID_TYPE_TEXT	1
#define UUID_TYPE_BYTES 2
#define SERIAL_BYTES	30

/* A handle is the address of an entry; what is in it does not matter. */
static struct nvml_device {
	char place;
} devices[SOFTGPU_DEVICES_MAX];

nvmlDevice_t device_handle(unsigned dev)
{
	return &devices[dev];
}

nvmlReturn_t device_check(nvmlDevice_t device, const void *value, unsigned *ret_dev)
{
	uintptr_t dev = (uintptr_t)device - (uintptr_t)devices;

	if (!nvml.state)
		return NVML_ERROR_UNINITIALIZED;
	if (!value || dev >= state_n_devices(nvml.state))
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret_dev = (unsigned)dev;
	return NVML_SUCCESS;
}

struct softgpu_device_config device_properties(unsigned dev)
{
	struct softgpu_device_config device;

	state_device(nvml.state, dev, &device);
	return device;
}

/* What a device is, for calls that tell a part of it at @value. */
static nvmlReturn_t properties_get(nvmlDevice_t device, const void *value,
				   struct softgpu_device_config *ret)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, value, &dev);

	if (r == NVML_SUCCESS)
		*ret = device_properties(dev);
	return r;
}

/* May a call go on that is about no device yet? It was given these two. */
static nvmlReturn_t call_check(const void *key, const void *ret)
{
	nvmlReturn_t r = nvml_check();

	if (r != NVML_SUCCESS)
		return r;
	return key && ret ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t count_get(unsigned *count)
{
	nvmlReturn_t r = call_check(count, count);

	if (r == NVML_SUCCESS)
		*count = state_n_devices(nvml.state);
	return r;
}

CALL(nvmlDeviceGetCount, unsigned *count)
{
	return count_get(count);
}

CALL(nvmlDeviceGetCount_v2, unsigned *count)
{
	return count_get(count);
}

/* Handles */

static nvmlReturn_t by_index(unsigned index, nvmlDevice_t *device)
{
	nvmlReturn_t r = call_check(device, device);

	if (r != NVML_SUCCESS)
		return r;
	if (index >= state_n_devices(nvml.state))
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = device_handle(index);
	return NVML_SUCCESS;
}

CALL(nvmlDeviceGetHandleByIndex, unsigned index, nvmlDevice_t *device)
{
	return by_index(index, device);
}

CALL(nvmlDeviceGetHandleByIndex_v2, unsigned index, nvmlDevice_t *device)
{
	return by_index(index, device);
}

static nvmlReturn_t by_test(bool (*is_it)(const struct softgpu_device_config *d, const void *key),
			    const void *key, nvmlDevice_t *device)
{
	struct softgpu_device_config properties;

	for (unsigned dev = 0; dev < state_n_devices(nvml.state); dev++) {
		properties = device_properties(dev);
		if (!is_it(&properties, key))
			continue;
		*device = device_handle(dev);
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

static bool has_uuid(const struct softgpu_device_config *d, const void *uuid)
{
	return memcmp(d->uuid, uuid, sizeof(d->uuid)) == 0;
}

static nvmlReturn_t by_uuid_text(const char *text, nvmlDevice_t *device)
{
	uint8_t bytes[16];

	return value_uuid(text, bytes) ? by_test(has_uuid, bytes, device) : NVML_ERROR_NOT_FOUND;
}

CALL(nvmlDeviceGetHandleByUUID, const char *uuid, nvmlDevice_t *device)
{
	nvmlReturn_t r = call_check(uuid, device);

	return r == NVML_SUCCESS ? by_uuid_text(uuid, device) : r;
}

CALL(nvmlDeviceGetHandleByUUIDV, const nvmlUUID_t *uuid, nvmlDevice_t *device)
{
	nvmlReturn_t r = call_check(uuid, device);
	char text[sizeof(uuid->value.str)];

	if (r != NVML_SUCCESS)
		return r;
	if (uuid->version != NVML_STRUCT_VERSION(nvmlUUID_t, 1))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (uuid->type == UUID_TYPE_BYTES)
		return by_test(has_uuid, uuid->value.bytes, device);
	if (uuid->type != UUID_TYPE_TEXT)
		return NVML_ERROR_INVALID_ARGUMENT;
	snprintf(text, sizeof(text), "%.*s", (int)sizeof(text) - 1, uuid->value.str);
	return by_uuid_text(text, device);
}

struct pci_key {
	uint32_t domain, bus, device;
};

static bool has_pci(const struct softgpu_device_config *d, const void *arg)
{
	const struct pci_key *key = arg;

	return d->pci_domain == key->domain && d->pci_bus == key->bus &&
	       d->pci_device == key->device;
}

static nvmlReturn_t by_pci(const char *text, nvmlDevice_t *device)
{
	nvmlReturn_t r = call_check(text, device);
	struct pci_key key;

	if (r != NVML_SUCCESS)
		return r;
	if (!value_pci(text, &key.domain, &key.bus, &key.device))
		return NVML_ERROR_NOT_FOUND;
	return by_test(has_pci, &key, device);
}

CALL(nvmlDeviceGetHandleByPciBusId, const char *id, nvmlDevice_t *device)
{
	return by_pci(id, device);
}

CALL(nvmlDeviceGetHandleByPciBusId_v2, const char *id, nvmlDevice_t *device)
{
	return by_pci(id, device);
}

/* Thirteen digits, made of the UUID's last bytes. */
static void serial_print(const struct softgpu_device_config *d, char buf[SERIAL_BYTES])
{
	uint64_t n = 0;

	for (unsigned i = 8; i < 16; i++)
		n = n << 8 | d->uuid[i];
	snprintf(buf, SERIAL_BYTES, "%013llu", (unsigned long long)(n % 10000000000000));
}

static bool has_serial(const struct softgpu_device_config *d, const void *serial)
{
	char text[SERIAL_BYTES];

	serial_print(d, text);
	return strcmp(text, serial) == 0;
}

CALL(nvmlDeviceGetHandleBySerial, const char *serial, nvmlDevice_t *device)
{
	nvmlReturn_t r = call_check(serial, device);

	return r == NVML_SUCCESS ? by_test(has_serial, serial, device) : r;
}

/* What a device is */

CALL(nvmlDeviceGetName, nvmlDevice_t device, char *name, unsigned length)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, name, &dev);

	return r == NVML_SUCCESS ? text_return(device_properties(dev).name, name, length) : r;
}

CALL(nvmlDeviceGetUUID, nvmlDevice_t device, char *uuid, unsigned length)
{
	struct softgpu_device_config properties;
	char text[CONFIG_UUID_TEXT];
	nvmlReturn_t r = properties_get(device, uuid, &properties);

	if (r != NVML_SUCCESS)
		return r;
	config_uuid_print(properties.uuid, text);
	return text_return(text, uuid, length);
}

CALL(nvmlDeviceGetSerial, nvmlDevice_t device, char *serial, unsigned length)
{
	struct softgpu_device_config properties;
	char text[SERIAL_BYTES];
	nvmlReturn_t r = properties_get(device, serial, &properties);

	if (r != NVML_SUCCESS)
		return r;
	serial_print(&properties, text);
	return text_return(text, serial, length);
}

static nvmlReturn_t fixed_text(nvmlDevice_t device, const char *text, char *buf, unsigned length)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, buf, &dev);

	return r == NVML_SUCCESS ? text_return(text, buf, length) : r;
}

CALL(nvmlDeviceGetVbiosVersion, nvmlDevice_t device, char *version, unsigned length)
{
	return fixed_text(device, "00.00.00.00.01", version, length);
}

CALL(nvmlDeviceGetBoardPartNumber, nvmlDevice_t device, char *number, unsigned length)
{
	return fixed_text(device, "SOFTGPU", number, length);
}

static void bus_id_print(const struct softgpu_device_config *d, int domain_digits, char *buf,
			 size_t size)
{
	snprintf(buf, size, "%0*X:%02X:%02X.0", domain_digits, d->pci_domain, d->pci_bus & 0xff,
		 d->pci_device & 0x1f);
}

/* Without @busId, which the structures of the first two versions do not have. */
static void pci_fill(const struct softgpu_device_config *d, nvmlPciInfo_t *ret)
{
	bus_id_print(d, 4, ret->busIdLegacy, sizeof(ret->busIdLegacy));
	ret->domain = d->pci_domain;
	ret->bus = d->pci_bus;
	ret->device = d->pci_device;
	ret->pciDeviceId = PCI_DEVICE_ID;
	ret->pciSubSystemId = 0;
}

static nvmlReturn_t pci_get_short(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	struct softgpu_device_config properties;
	nvmlReturn_t r = properties_get(device, pci, &properties);

	if (r == NVML_SUCCESS)
		pci_fill(&properties, pci);
	return r;
}

CALL(nvmlDeviceGetPciInfo, nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	return pci_get_short(device, pci);
}

CALL(nvmlDeviceGetPciInfo_v2, nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	return pci_get_short(device, pci);
}

CALL(nvmlDeviceGetPciInfo_v3, nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	struct softgpu_device_config properties;
	nvmlReturn_t r = properties_get(device, pci, &properties);

	if (r != NVML_SUCCESS)
		return r;
	pci_fill(&properties, pci);
	bus_id_print(&properties, 8, pci->busId, sizeof(pci->busId));
	return NVML_SUCCESS;
}

CALL(nvmlDeviceGetPciInfoExt, nvmlDevice_t device, nvmlPciInfoExt_t *pci)
{
	struct softgpu_device_config properties;
	nvmlReturn_t r = properties_get(device, pci, &properties);

	if (r != NVML_SUCCESS)
		return r;
	if (pci->version != NVML_STRUCT_VERSION(nvmlPciInfoExt_t, 1))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	pci->domain = properties.pci_domain;
	pci->bus = properties.pci_bus;
	pci->device = properties.pci_device;
	pci->pciDeviceId = PCI_DEVICE_ID;
	pci->pciSubSystemId = 0;
	pci->baseClass = CLASS_DISPLAY;
	pci->subClass = SUBCLASS_3D;
	bus_id_print(&properties, 8, pci->busId, sizeof(pci->busId));
	return NVML_SUCCESS;
}

CALL(nvmlDeviceGetCudaComputeCapability, nvmlDevice_t device, int *major, int *minor)
{
	struct softgpu_device_config properties;
	nvmlReturn_t r = properties_get(device, major, &properties);

	if (r != NVML_SUCCESS)
		return r;
	if (!minor)
		return NVML_ERROR_INVALID_ARGUMENT;
	*major = (int)properties.compute_major;
	*minor = (int)properties.compute_minor;
	return NVML_SUCCESS;
}

/* NVML's numbers of the generations: Maxwell 3 ... Ampere 7, Ada 8, Hopper 9, Blackwell 10. */
static unsigned architecture(unsigned dev)
{
	struct softgpu_device_config d = device_properties(dev);

	switch (d.compute_major) {
	case 5:
	case 6:
		return d.compute_major - 2;
	case 7:
		return d.compute_minor < 5 ? 5 : 6;
	case 8:
		return d.compute_minor == 9 ? 8 : 7;
	case 9:
		return 9;
	default:
		return 10;
	}
}

GETTER(nvmlDeviceGetArchitecture, unsigned, architecture(dev))
GETTER(nvmlDeviceGetIndex, unsigned, dev)
GETTER(nvmlDeviceGetMinorNumber, unsigned, dev)
GETTER(nvmlDeviceGetBrand, unsigned, BRAND_NVIDIA)
GETTER(nvmlDeviceGetBusType, unsigned, BUS_TYPE_PCIE)
GETTER(nvmlDeviceGetBoardId, unsigned, device_properties(dev).pci_bus << 8)
GETTER(nvmlDeviceGetNumGpuCores, unsigned, device_properties(dev).n_sms *LANES_PER_SM)

static nvmlReturn_t attributes(nvmlDevice_t device, nvmlDeviceAttributes_t *ret)
{
	struct softgpu_device_config properties;
	nvmlReturn_t r = properties_get(device, ret, &properties);

	if (r == NVML_SUCCESS)
		*ret = (nvmlDeviceAttributes_t){
			.multiprocessorCount = properties.n_sms,
			.memorySizeMB = properties.memory_bytes >> 20,
		};
	return r;
}

CALL(nvmlDeviceGetAttributes, nvmlDevice_t device, nvmlDeviceAttributes_t *ret)
{
	return attributes(device, ret);
}

CALL(nvmlDeviceGetAttributes_v2, nvmlDevice_t device, nvmlDeviceAttributes_t *ret)
{
	return attributes(device, ret);
}

CALL(nvmlDeviceOnSameBoard, nvmlDevice_t a, nvmlDevice_t b, int *same)
{
	unsigned dev_a, dev_b;
	nvmlReturn_t r = device_check(a, same, &dev_a);

	if (r == NVML_SUCCESS)
		r = device_check(b, same, &dev_b);
	if (r == NVML_SUCCESS)
		*same = dev_a == dev_b;
	return r;
}

/* Sets the first @n bits of @words. */
static void bits_fill(unsigned long *words, unsigned n_words, long n)
{
	const long width = 8 * sizeof(*words);

	memset(words, 0, n_words * sizeof(*words));
	for (long i = 0; i < n && i < (long)n_words * width; i++)
		words[i / width] |= 1ul << i % width;
}

/* Every CPU is as near to it as every other. */
static nvmlReturn_t cpus_get(nvmlDevice_t device, unsigned n_words, unsigned long *words)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, words, &dev);

	if (r == NVML_SUCCESS)
		bits_fill(words, n_words, sysconf(_SC_NPROCESSORS_ONLN));
	return r;
}

CALL(nvmlDeviceGetCpuAffinity, nvmlDevice_t device, unsigned n_words, unsigned long *words)
{
	return cpus_get(device, n_words, words);
}

CALL(nvmlDeviceGetCpuAffinityWithinScope, nvmlDevice_t device, unsigned n_words,
     unsigned long *words, _unused_ unsigned scope)
{
	return cpus_get(device, n_words, words);
}

CALL(nvmlDeviceGetMemoryAffinity, nvmlDevice_t device, unsigned n_words, unsigned long *words,
     _unused_ unsigned scope)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, words, &dev);

	if (r == NVML_SUCCESS)
		bits_fill(words, n_words, 1);
	return r;
}
