// SPDX-License-Identifier: Apache-2.0
/*
 * The guest's devices are those of the worker's driver, which may be fewer than the host's and in another
 * order. So they are numbered here as by cuDeviceGet(), and named to the broker by their UUID.
 */
#include "forward/host/nvml.h"

#include "forward/host/ask.h"
#include "forward/host/driver.h"
#include "forward/question.h"

#include <string.h>

static void count_devices(struct wire_answer *answer)
{
	int n = 0;

	if (DRIVER(cuDeviceGetCount, POINTER(&n)) != CUDA_SUCCESS)
		answer->result = NVML_ERROR_UNKNOWN;
	memcpy(answer->data, &n, sizeof(n));
}

static bool uuid_of(uint32_t number, void *ret)
{
	CUdevice device = 0;
	CUuuid uuid = { 0 };

	if (number > INT32_MAX || DRIVER(cuDeviceGet, POINTER(&device), number) != CUDA_SUCCESS)
		return false;
	if (DRIVER(cuDeviceGetUuid_v2, POINTER(&uuid), (uint64_t)device) != CUDA_SUCCESS &&
	    DRIVER(cuDeviceGetUuid, POINTER(&uuid), (uint64_t)device) != CUDA_SUCCESS)
		return false;
	memcpy(ret, &uuid, sizeof(uuid));
	return true;
}

static void pass_on(const struct wire_question *question, struct wire_answer *answer)
{
	struct wire_message message = { .type = WIRE_DEVICE,
					.id = question->question,
					.address = question->which };

	if (question_is_of_device(question->question) && !uuid_of(question->device, message.data)) {
		answer->result = NVML_ERROR_INVALID_ARGUMENT;
		return;
	}
	if (broker_ask(&message) < 0) {
		answer->result = NVML_ERROR_UNKNOWN;
		return;
	}
	answer->result = (int32_t)message.size;
	memcpy(answer->data, message.data, sizeof(answer->data));
}

CUresult nvml_execute(struct command *command)
{
	struct reader reader = command_reader(command);
	const struct wire_question *question = reader_bytes(&reader, sizeof(*question));
	struct wire_answer *answer = reply_bytes(command, sizeof(*answer));

	if (!question || !answer)
		return CUDA_ERROR_INVALID_VALUE;
	if (question->question >= N_QUESTIONS)
		answer->result = NVML_ERROR_NOT_SUPPORTED;
	else if (question_form(question->question) == FORM_COUNT)
		count_devices(answer);
	else
		pass_on(question, answer);
	return CUDA_SUCCESS;
}
