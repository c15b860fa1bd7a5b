// SPDX-License-Identifier: Apache-2.0
/* The exported functions that the table of questions is enough for. */
#include "forward/nvml/nvml.h"

#define ENTRY_SYSTEM_TEXT(name)                                                                    \
	ENTRY(name, char *text, unsigned size)                                                     \
	{                                                                                          \
		return ask_text(QUESTION_##name, 0, text, size);                                   \
	}

#define ENTRY_SYSTEM_NUMBER(name)                                                                  \
	ENTRY(name, int *number)                                                                   \
	{                                                                                          \
		if (!number)                                                                       \
			return NVML_ERROR_INVALID_ARGUMENT;                                        \
		return ask(QUESTION_##name, 0, 0, number, sizeof(*number));                        \
	}

#define ENTRY_TEXT(name)                                                                           \
	ENTRY(name, nvmlDevice_t device, char *text, unsigned size)                                \
	{                                                                                          \
		unsigned number;                                                                   \
		nvmlReturn_t r = device_check(device, text, &number);                              \
                                                                                                   \
		return r == NVML_SUCCESS ? ask_text(QUESTION_##name, number, text, size) : r;      \
	}

#define ENTRY_NUMBER(name)                                                                         \
	ENTRY(name, nvmlDevice_t device, unsigned *number)                                         \
	{                                                                                          \
		return device_ask(device, QUESTION_##name, 0, number, sizeof(*number));            \
	}

#define ENTRY_NUMBER_OF(name)                                                                      \
	ENTRY(name, nvmlDevice_t device, unsigned which, unsigned *number)                         \
	{                                                                                          \
		return device_ask(device, QUESTION_##name, which, number, sizeof(*number));        \
	}

#define ENTRY_LONG(name)                                                                           \
	ENTRY(name, nvmlDevice_t device, unsigned long long *number)                               \
	{                                                                                          \
		return device_ask(device, QUESTION_##name, 0, number, sizeof(*number));            \
	}

static nvmlReturn_t pair_ask(nvmlDevice_t device, enum question question, unsigned *first,
			     unsigned *second)
{
	unsigned pair[2];
	nvmlReturn_t r;

	if (!first || !second)
		return NVML_ERROR_INVALID_ARGUMENT;
	r = device_ask(device, question, 0, pair, sizeof(pair));
	if (r != NVML_SUCCESS)
		return r;
	*first = pair[0];
	*second = pair[1];
	return NVML_SUCCESS;
}

#define ENTRY_PAIR(name)                                                                           \
	ENTRY(name, nvmlDevice_t device, unsigned *first, unsigned *second)                        \
	{                                                                                          \
		return pair_ask(device, QUESTION_##name, first, second);                           \
	}

static nvmlReturn_t record_ask(nvmlDevice_t device, enum question question, uint32_t version,
			       uint32_t *record, size_t size)
{
	if (record && version && *record != version)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	return device_ask(device, question, 0, record, size);
}

#define RECORD(name, type, number)                                                                 \
	ENTRY(name, nvmlDevice_t device, type *record)                                             \
	{                                                                                          \
		return record_ask(device, QUESTION_##name,                                         \
				  (number) ? NVML_STRUCT_VERSION(type, number) : 0,                \
				  (uint32_t *)record, sizeof(*record));                            \
	}

/* Written by hand. */
#define ENTRY_COUNT(name)
#define ENTRY_PCI(name)
#define ENTRY_PROCESS(name)
#define ENTRY_FIELD(name)
#define ENTRY_EVENT(name)

#define QUESTION(form, name) ENTRY_##form(name)
#include "forward/questions.def"
