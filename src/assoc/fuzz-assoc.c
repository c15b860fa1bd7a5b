/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as /proc/PID/cgroup: names come out clean, paths as they stood. */
#include "assoc/assoc.h"

#include "base/str.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_clean(const char *s)
{
	for (; *s; s++) {
		if (*s <= ' ' || *s == '/' || *s == '"' || *s == '\\' || *s >= 0x7f)
			return false;
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct assoc_place p;

	if (assoc_parse((const char *)data, size, &p) < 0)
		return 0;
	assert(is_clean(p.container) && is_clean(p.pod) && is_clean(p.step) && is_clean(p.vm));
	assert((*p.container != '\0') == (p.runtime != ASSOC_NO_CONTAINER));
	assert(!p.cgroup || (*p.cgroup == '/' && memmem(data, size, p.cgroup, strlen(p.cgroup))));
	assert(!p.freezer ||
	       (*p.freezer == '/' && memmem(data, size, p.freezer, strlen(p.freezer))));
	assoc_place_done(&p);
	return 0;
}
