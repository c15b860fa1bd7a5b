// SPDX-License-Identifier: Apache-2.0
/* The table that calls.h declares. */
#include <stddef.h>
#include <string.h>

#include "calls.h"

const struct call calls[CALL_N] = {
#define CALL(name_, base_, version_, stream_, drivers_, class_, group_, ...)                       \
	[CALL_ID_##name_] = {                                                                      \
		.name = #name_,                                                                    \
		.base = #base_,                                                                    \
		.version = version_,                                                               \
		.stream = STREAM_##stream_,                                                        \
		.drivers = DRIVERS_##drivers_,                                                     \
		.class = CLASS_##class_,                                                           \
		.group = GROUP_##group_,                                                           \
		.arguments = { __VA_ARGS__ },                                                      \
	},
#include "calls.def"
#undef CALL
};

const struct call *call_find(const char *name)
{
	int i;

	for (i = 0; i < CALL_N; i++)
		if (!strcmp(calls[i].name, name))
			return &calls[i];
	return NULL;
}

int call_argument(const struct call *call, enum call_argument role)
{
	int i;

	for (i = 0; i < CALL_N_ARGUMENTS_MAX && call->arguments[i]; i++)
		if (call->arguments[i] == role)
			return i;
	return -1;
}
