/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/contact-line.h"

#include "base/str.h"

#include <errno.h>

#define DIGITS "0123456789"
/* Slurm has 16 bits for the seconds. */
#define MOST_TIMEOUT_MS (UINT16_MAX * 1000ULL)

static bool is_visible(const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (s[i] <= ' ' || s[i] > '~')
			return false;
	}
	return true;
}

int contact_line_parse(const char *line, struct contact_line *ret)
{
	struct contact_line said = {};
	const char *rest;

	if (strlen(line) >= CONTACT_LINE_SIZE)
		return -EINVAL;
	rest = str_take_u64(line, " ", &said.asked_ms);
	rest = str_take_u64(rest, " ", &said.timeout_ms);
	if (!rest || said.timeout_ms > MOST_TIMEOUT_MS)
		return -EINVAL;
	said.controllers = rest;
	said.controllers_len = strcspn(rest, " ");
	rest += said.controllers_len;
	said.kept = *rest ? rest + 1 : rest;
	if (!said.controllers_len || !is_visible(said.controllers, said.controllers_len) ||
	    said.kept[strspn(said.kept, DIGITS " ")])
		return -EINVAL;
	*ret = said;
	return 0;
}
