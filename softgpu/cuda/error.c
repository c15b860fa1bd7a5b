// SPDX-License-Identifier: Apache-2.0
/* Names and texts of errors. */
#include "softgpu/cuda/core.h"

static const struct error_text {
	CUresult error;
	const char *name;
	const char *text;
} error_texts[] = {
#define ERROR(name, number, text) { name, #name, text },
#include "src/cuda/errors.def"
#undef ERROR
};

static const struct error_text *error_text(CUresult error)
{
	size_t i;

	for (i = 0; i < sizeof(error_texts) / sizeof(error_texts[0]); i++)
		if (error_texts[i].error == error)
			return &error_texts[i];
	return NULL;
}

CALL(cuGetErrorName, CUresult error, const char **pStr)
{
	const struct error_text *found = error_text(error);

	if (!pStr)
		return CUDA_ERROR_INVALID_VALUE;
	*pStr = found ? found->name : NULL;
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CALL(cuGetErrorString, CUresult error, const char **pStr)
{
	const struct error_text *found = error_text(error);

	if (!pStr)
		return CUDA_ERROR_INVALID_VALUE;
	*pStr = found ? found->text : NULL;
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
