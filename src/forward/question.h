/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the guest's NVML asks, and how that travels.
 *
 *	guest -- command WIRE_NVML -- worker -- WIRE_DEVICE -- broker -- watcher -- the host's NVML
 *
 * The guest names devices by the numbers that its CUDA driver has for them, the worker by their UUID.
 */
#ifndef FORWARD_QUESTION_H
#define FORWARD_QUESTION_H

#include "forward/transport.h"

#include "src/nvml/nvml_abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More than any host has. */
#define MAX_DEVICES 64

/* Behind COUNT are those that are about one device. */
enum question_form {
	FORM_SYSTEM_TEXT,
	FORM_SYSTEM_NUMBER,
	FORM_COUNT,
	FORM_TEXT,
	FORM_NUMBER,
	FORM_NUMBER_OF,
	FORM_LONG,
	FORM_PAIR,
	FORM_RECORD,
	FORM_PCI,
	FORM_PROCESS,
	FORM_FIELD,
	FORM_EVENT,
};

enum question {
#define QUESTION(form, name) QUESTION_##name,
#include "forward/questions.def"
#undef QUESTION
	N_QUESTIONS,
};

#define ANSWER_SIZE sizeof(((struct wire_message *)NULL)->data)

/**
 * struct wire_question - the body of WIRE_NVML
 * @question:	enum question
 * @device:	which device, where it is about one
 * @which:	of a NUMBER_OF what its call is asked for; of a PROCESS where to go on: 0, and then `next` of
 *		the one before; of a FIELD its number, and above 32 bits its scope; of an EVENT the number of
 *		the one before, or 0: no event, but which number is the newest's
 */
struct wire_question {
	uint32_t question;
	uint32_t device;
	uint64_t which;
};

/**
 * struct wire_answer - what comes back
 * @result:	nvmlReturn_t
 * @data:	where that is NVML_SUCCESS what the call has written; a text up to its zero
 */
struct wire_answer {
	int32_t result;
	uint32_t reserved;
	uint8_t data[ANSWER_SIZE];
};

/** struct wire_pci - nvmlPciInfo_t without its first member, which is too much for an answer */
struct wire_pci {
	uint32_t domain;
	uint32_t bus;
	uint32_t device;
	uint32_t device_id;
	uint32_t subsystem_id;
	char bus_id[32];
};

/**
 * struct wire_process - a process of the guest that uses the device. NVML_ERROR_NOT_FOUND: there are no more
 * @next:	what to ask with for the one behind it
 * @used_bytes:	its memory; all ones: not known
 * @sampled_us:	when its shares of time were measured; 0: never
 * @pid:	as the guest numbers it
 */
struct wire_process {
	uint64_t next;
	uint64_t used_bytes;
	uint64_t sampled_us;
	uint32_t pid;
	uint32_t sm_percent;
	uint32_t memory_percent;
	uint32_t encoder_percent;
	uint32_t decoder_percent;
	uint32_t reserved;
};

/**
 * struct wire_event - something that has happened to a device. NVML_ERROR_TIMEOUT: nothing more yet
 * @number:	of each device's events one higher than of the one before, above 0
 * @type:	one of the bits of nvmlDeviceGetSupportedEventTypes
 * @data:	of a failure (Xid) its number
 */
struct wire_event {
	uint64_t number;
	uint64_t type;
	uint64_t data;
};

_Static_assert(sizeof(struct wire_pci) <= ANSWER_SIZE &&
		       sizeof(struct wire_process) <= ANSWER_SIZE &&
		       sizeof(nvmlFieldValue_t) <= ANSWER_SIZE &&
		       sizeof(struct wire_event) <= ANSWER_SIZE,
	       "an answer has room for each");

/** question_form() - what a question is about; it is below N_QUESTIONS */
enum question_form question_form(enum question question);

/** question_is_of_device() - is it about one device? */
static inline bool question_is_of_device(enum question question)
{
	return question_form(question) > FORM_COUNT;
}

#endif
