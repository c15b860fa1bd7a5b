// SPDX-License-Identifier: Apache-2.0
#include "forward/host/jit-options.h"

#include "base/base.h"

static const struct {
	CUjit_option buffer, size;
} texts[JIT_TEXTS] = {
	{ CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES },
	{ CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES },
};

static bool is_pointer_option(CUjit_option name)
{
	switch (name) {
	case CU_JIT_GLOBAL_SYMBOL_NAMES:
	case CU_JIT_GLOBAL_SYMBOL_ADDRESSES:
	case CU_JIT_REFERENCED_KERNEL_NAMES:
	case CU_JIT_REFERENCED_VARIABLE_NAMES:
		return true;
	default:
		return false;
	}
}

bool jit_options_take(struct reader *reader, struct jit_options *ret)
{
	uint32_t i;

	ret->n = (uint32_t)reader_word(reader);
	if (reader->failed || ret->n > JIT_MAX_OPTIONS)
		return false;
	for (i = 0; i < ret->n; i++) {
		ret->names[i] = (CUjit_option)reader_word(reader);
		ret->values[i] = (void *)reader_word(reader);
		if (is_pointer_option(ret->names[i]))
			return false;
	}
	return !reader->failed;
}

/* Of an option that is there more than once the first one counts. */
static bool option_find(const struct jit_options *options, CUjit_option name, void **ret)
{
	uint32_t i;

	for (i = 0; i < options->n && options->names[i] != name; i++)
		;
	if (i < options->n)
		*ret = options->values[i];
	return i < options->n;
}

int jit_options_room(const struct jit_options *options, unsigned text)
{
	void *buffer, *size = NULL;

	if (!option_find(options, texts[text].buffer, &buffer))
		return -1;
	option_find(options, texts[text].size, &size);
	return (int)MIN((uintptr_t)size, (uintptr_t)JIT_MAX_TEXT);
}

void jit_options_place(struct jit_options *options, unsigned text, void *at, int room)
{
	uint32_t i;

	for (i = 0; i < options->n; i++) {
		if (options->names[i] == texts[text].buffer)
			options->values[i] = at;
		if (options->names[i] == texts[text].size)
			options->values[i] = (void *)(intptr_t)MAX(room, 0);
	}
}
