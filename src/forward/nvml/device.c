// SPDX-License-Identifier: Apache-2.0
/* Handles of devices, and what is told of a device in another form than the host tells it. */
#include "forward/nvml/nvml.h"

#include "base/base.h"

#include <string.h>
#include <strings.h>

#define SENSOR_GPU 0

/* A handle is the address of an entry; what is in it does not matter. */
static struct nvml_device {
	char place;
} devices[MAX_DEVICES];

nvmlDevice_t device_of(unsigned number)
{
	return &devices[number];
}

nvmlReturn_t device_check(nvmlDevice_t device, const void *ret, unsigned *ret_number)
{
	uintptr_t number = (uintptr_t)device - (uintptr_t)devices;

	if (nvml_check() != NVML_SUCCESS)
		return NVML_ERROR_UNINITIALIZED;
	if (!ret || number >= MAX_DEVICES)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret_number = (unsigned)number;
	return NVML_SUCCESS;
}

nvmlReturn_t device_ask(nvmlDevice_t device, enum question question, uint64_t which, void *ret,
			size_t size)
{
	unsigned number;
	nvmlReturn_t r = device_check(device, ret, &number);

	return r == NVML_SUCCESS ? ask(question, number, which, ret, size) : r;
}

static nvmlReturn_t count_get(unsigned *count)
{
	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	return ask(QUESTION_nvmlDeviceGetCount_v2, 0, 0, count, sizeof(*count));
}

ENTRY(nvmlDeviceGetCount, unsigned *count)
{
	return count_get(count);
}

ENTRY(nvmlDeviceGetCount_v2, unsigned *count)
{
	return count_get(count);
}

static nvmlReturn_t by_index(unsigned index, nvmlDevice_t *device)
{
	unsigned n;
	nvmlReturn_t r = count_get(&n);

	if (r != NVML_SUCCESS)
		return r;
	if (!device || index >= n || index >= MAX_DEVICES)
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = &devices[index];
	return NVML_SUCCESS;
}

ENTRY(nvmlDeviceGetHandleByIndex, unsigned index, nvmlDevice_t *device)
{
	return by_index(index, device);
}

ENTRY(nvmlDeviceGetHandleByIndex_v2, unsigned index, nvmlDevice_t *device)
{
	return by_index(index, device);
}

ENTRY(nvmlDeviceGetIndex, nvmlDevice_t device, unsigned *index)
{
	return device_check(device, index, index);
}

/* The device of which a text that it is asked for is @wanted. */
static nvmlReturn_t by_text(enum question question, const char *wanted, nvmlDevice_t *device)
{
	char text[ANSWER_SIZE];
	unsigned i, n;
	nvmlReturn_t r;

	if (!wanted || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	r = count_get(&n);
	for (i = 0; r == NVML_SUCCESS && i < n && i < MAX_DEVICES; i++) {
		r = ask_text(question, i, text, sizeof(text));
		if (r != NVML_SUCCESS || strcmp(text, wanted) != 0)
			continue;
		*device = &devices[i];
		return NVML_SUCCESS;
	}
	return r == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : r;
}

ENTRY(nvmlDeviceGetHandleByUUID, const char *uuid, nvmlDevice_t *device)
{
	return by_text(QUESTION_nvmlDeviceGetUUID, uuid, device);
}

ENTRY(nvmlDeviceGetHandleBySerial, const char *serial, nvmlDevice_t *device)
{
	return by_text(QUESTION_nvmlDeviceGetSerial, serial, device);
}

/* domain:bus:device.function, or without the first, in hexadecimal numbers. */
static bool pci_parse(const char *text, struct wire_pci *ret)
{
	unsigned function;

	*ret = (struct wire_pci){ 0 };
	return sscanf(text, "%x:%x:%x.%x", &ret->domain, &ret->bus, &ret->device, &function) == 4 ||
	       sscanf(text, "%x:%x.%x", &ret->bus, &ret->device, &function) == 3;
}

static nvmlReturn_t by_pci(const char *id, nvmlDevice_t *device)
{
	struct wire_pci wanted, pci;
	unsigned i, n;
	nvmlReturn_t r;

	if (!id || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	r = count_get(&n);
	if (r == NVML_SUCCESS && !pci_parse(id, &wanted))
		return NVML_ERROR_NOT_FOUND;
	for (i = 0; r == NVML_SUCCESS && i < n && i < MAX_DEVICES; i++) {
		r = ask(QUESTION_nvmlDeviceGetPciInfo_v3, i, 0, &pci, sizeof(pci));
		if (r != NVML_SUCCESS || pci.domain != wanted.domain || pci.bus != wanted.bus ||
		    pci.device != wanted.device)
			continue;
		*device = &devices[i];
		return NVML_SUCCESS;
	}
	return r == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : r;
}

ENTRY(nvmlDeviceGetHandleByPciBusId, const char *id, nvmlDevice_t *device)
{
	return by_pci(id, device);
}

ENTRY(nvmlDeviceGetHandleByPciBusId_v2, const char *id, nvmlDevice_t *device)
{
	return by_pci(id, device);
}

/* Without @busId, which the structures of the first two versions do not have. */
static nvmlReturn_t pci_get(nvmlDevice_t device, nvmlPciInfo_t *ret, char bus_id[32])
{
	struct wire_pci pci = { 0 };
	nvmlReturn_t r;

	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	r = device_ask(device, QUESTION_nvmlDeviceGetPciInfo_v3, 0, &pci, sizeof(pci));
	if (r != NVML_SUCCESS)
		return r;
	ret->domain = pci.domain;
	ret->bus = pci.bus;
	ret->device = pci.device;
	ret->pciDeviceId = pci.device_id;
	ret->pciSubSystemId = pci.subsystem_id;
	snprintf(ret->busIdLegacy, sizeof(ret->busIdLegacy), "%04X:%02X:%02X.0",
		 pci.domain & 0xffff, pci.bus & 0xff, pci.device & 0xff);
	memcpy(bus_id, pci.bus_id, sizeof(pci.bus_id));
	bus_id[sizeof(pci.bus_id) - 1] = '\0';
	return NVML_SUCCESS;
}

ENTRY(nvmlDeviceGetPciInfo, nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	char bus_id[32];

	return pci_get(device, pci, bus_id);
}

ENTRY(nvmlDeviceGetPciInfo_v2, nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	char bus_id[32];

	return pci_get(device, pci, bus_id);
}

ENTRY(nvmlDeviceGetPciInfo_v3, nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	return pci_get(device, pci, pci ? pci->busId : NULL);
}

ENTRY(nvmlDeviceGetTemperatureV, nvmlDevice_t device, nvmlTemperature_t *temperature)
{
	unsigned celsius;
	nvmlReturn_t r;

	if (!temperature)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (temperature->version != NVML_STRUCT_VERSION(nvmlTemperature_t, 1))
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (temperature->sensorType != SENSOR_GPU)
		return NVML_ERROR_INVALID_ARGUMENT;
	r = device_ask(device, QUESTION_nvmlDeviceGetTemperature, SENSOR_GPU, &celsius,
		       sizeof(celsius));
	if (r == NVML_SUCCESS)
		temperature->temperature = (int)celsius;
	return r;
}
