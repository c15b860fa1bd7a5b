// SPDX-License-Identifier: Apache-2.0
#include "forward/nvml/nvml.h"

#include "base/base.h"
#include "forward/guest/callback.h"
#include "forward/guest/session.h"

#include <string.h>

/* Nothing of the program's is called by this library. */
bool callback_is_running(void)
{
	return false;
}

static nvmlReturn_t result_of(CUresult result)
{
	switch (result) {
	case DEVICE_LOST:
		return NVML_ERROR_GPU_IS_LOST;
	case CUDA_ERROR_NOT_INITIALIZED:
		return NVML_ERROR_UNINITIALIZED;
	case CUDA_ERROR_OUT_OF_MEMORY:
		return NVML_ERROR_MEMORY;
	default:
		return NVML_ERROR_UNKNOWN;
	}
}

static CUresult exchange(const struct wire_question *question, const uint8_t **ret_data,
			 size_t *ret_size)
{
	struct guest_lane *lane;
	void *body;
	CUresult r;

	r = lane_get(&lane);
	if (r == CUDA_SUCCESS)
		r = lane_begin(lane, WIRE_NVML, sizeof(*question), &body);
	if (r != CUDA_SUCCESS)
		return r;
	memcpy(body, question, sizeof(*question));
	return lane_ask(lane, ret_data, ret_size);
}

nvmlReturn_t ask(enum question question, unsigned device, uint64_t which, void *ret, size_t size)
{
	const struct wire_question asked = { question, device, which };
	const struct wire_answer *answer;
	const uint8_t *data = NULL;
	size_t data_size = 0;
	CUresult r;

	if (nvml_check() != NVML_SUCCESS)
		return NVML_ERROR_UNINITIALIZED;
	r = exchange(&asked, &data, &data_size);
	if (r != CUDA_SUCCESS)
		return result_of(r);
	if (data_size < sizeof(*answer))
		return NVML_ERROR_UNKNOWN;
	answer = (const struct wire_answer *)data;
	if (answer->result == NVML_SUCCESS)
		memcpy(ret, answer->data, size);
	return answer->result;
}

nvmlReturn_t ask_text(enum question question, unsigned device, char *ret, unsigned size)
{
	char text[ANSWER_SIZE];
	nvmlReturn_t r;

	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	r = ask(question, device, /* which= */ 0, text, sizeof(text));
	if (r != NVML_SUCCESS)
		return r;
	text[sizeof(text) - 1] = '\0';
	if (strlen(text) >= size)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	strcpy(ret, text);
	return NVML_SUCCESS;
}
