// SPDX-License-Identifier: Apache-2.0
/*
 * Values that are asked for by number. Those not in the table are not supported.
 */
#include "softgpu/nvml/nvml.h"
#include "softgpu/util/moment.h"

#include <string.h>

static uint64_t zero(_unused_ unsigned dev)
{
	return 0;
}

static uint64_t one(_unused_ unsigned dev)
{
	return 1;
}

static uint64_t power_now(unsigned dev)
{
	return load_power_mw(dev);
}

static uint64_t power_limit(unsigned dev)
{
	return (uint64_t)device_properties(dev).power_watts * 1000;
}

static uint64_t power_least(unsigned dev)
{
	return power_min_mw(dev);
}

static uint64_t memory_temperature(unsigned dev)
{
	return load_temperature(dev);
}

/* Ranges of field ids: from, to, how the value is passed, where it comes from. */
static const struct field {
	unsigned first;
	unsigned last;
	int type;
	uint64_t (*read)(unsigned dev);
} fields[] = {
	{ 1, 2, NVML_VALUE_TYPE_UNSIGNED_INT, one },	      /* ECC, now and pending */
	{ 3, 28, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, zero },  /* ECC errors */
	{ 29, 31, NVML_VALUE_TYPE_UNSIGNED_INT, zero },	      /* retired pages */
	{ 74, 81, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, zero }, /* performance policies */
	{ 82, 82, NVML_VALUE_TYPE_UNSIGNED_INT, memory_temperature },
	{ 83, 83, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, load_energy_mj },
	{ 91, 91, NVML_VALUE_TYPE_UNSIGNED_INT, zero },	       /* NVLinks */
	{ 92, 95, NVML_VALUE_TYPE_UNSIGNED_INT, zero },	       /* retired pages, PCIe replays */
	{ 142, 145, NVML_VALUE_TYPE_UNSIGNED_INT, zero },      /* remapped rows */
	{ 147, 147, NVML_VALUE_TYPE_UNSIGNED_INT, zero },      /* links to switches */
	{ 169, 170, NVML_VALUE_TYPE_UNSIGNED_INT, zero },      /* PCIe recoveries, C2C links */
	{ 173, 183, NVML_VALUE_TYPE_UNSIGNED_INT, zero },      /* PCIe errors */
	{ 185, 186, NVML_VALUE_TYPE_UNSIGNED_INT, power_now }, /* average, instant */
	{ 187, 187, NVML_VALUE_TYPE_UNSIGNED_INT, power_least },
	{ 188, 190, NVML_VALUE_TYPE_UNSIGNED_INT, power_limit }, /* most, default, current */
	{ 191, 191, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, load_energy_mj },
	{ 192, 192, NVML_VALUE_TYPE_UNSIGNED_INT, power_limit }, /* requested */
	{ 197, 198, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, zero },	 /* bytes over PCIe */
	{ 230, 230, NVML_VALUE_TYPE_UNSIGNED_INT, zero },	 /* what to do to recover */
	{ 269, 271, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG, zero },	 /* times of slow clocks */
};

static const struct field *field_find(unsigned id)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (id >= fields[i].first && id <= fields[i].last)
			return &fields[i];
	}
	return NULL;
}

static void field_read(unsigned dev, nvmlFieldValue_t *value)
{
	const struct field *field = field_find(value->fieldId);
	uint64_t n;

	value->timestamp = (int64_t)(moment_now_ns(CLOCK_REALTIME) / 1000);
	value->latencyUsec = 0;
	memset(&value->value, 0, sizeof(value->value));
	value->nvmlReturn = field ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
	if (!field)
		return;
	n = field->read(dev);
	value->valueType = field->type;
	if (field->type == NVML_VALUE_TYPE_UNSIGNED_INT)
		value->value.uiVal = (unsigned)n;
	else
		value->value.ullVal = n;
}

CALL(nvmlDeviceGetFieldValues, nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
	unsigned dev;
	nvmlReturn_t r = device_check(device, values, &dev);

	if (r != NVML_SUCCESS)
		return r;
	if (count < 1)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (int i = 0; i < count; i++)
		field_read(dev, &values[i]);
	return NVML_SUCCESS;
}
