/* SPDX-License-Identifier: Apache-2.0 */
/* What was read and edited must read again, with the edit in it. */
#include "base/ini.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(ini_done) struct ini ini = {}, again = {};
	_cleanup_free_ char *text = NULL;
	struct ini_error error;

	if (ini_parse((const char *)data, size, &ini, &error) < 0)
		return 0;
	assert(ini_set(&ini, "alice", "memory.max", "8G") == 0);
	text = ini_print(&ini);
	assert(text && ini_parse(text, strlen(text), &again, &error) == 0);
	assert(ini_find_section(&again, "alice") >= 0);
	ini_remove_section(&again, "alice");
	assert(ini_find_section(&again, "alice") < 0);
	return 0;
}
