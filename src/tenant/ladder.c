/* SPDX-License-Identifier: Apache-2.0 */
#include "tenant/ladder.h"

#include "base/str.h"

#include <errno.h>

static const char *const step_names[N_LADDER_STEPS] = {
	[LADDER_WARN] = "warn",
	[LADDER_SUSPEND] = "suspend",
	[LADDER_EVICT] = "evict",
	[LADDER_KILL] = "kill",
};

const char *ladder_step_name(enum ladder_step step)
{
	return step_names[step];
}

static int parse_step(const char *text, size_t len, enum ladder_step *ret)
{
	int i;

	for (i = 0; i < N_LADDER_STEPS; i++) {
		if (strlen(step_names[i]) == len && strncmp(step_names[i], text, len) == 0) {
			*ret = i;
			return 0;
		}
	}
	return -EINVAL;
}

int ladder_parse(const char *text, struct ladder *ret)
{
	size_t n = strcspn(text, "-");
	struct ladder ladder;

	if (parse_step(text, n, &ladder.from) < 0)
		return -EINVAL;
	ladder.to = ladder.from;
	if (text[n] && parse_step(text + n + 1, strlen(text + n + 1), &ladder.to) < 0)
		return -EINVAL;
	if (ladder.to < ladder.from)
		return -EINVAL;
	*ret = ladder;
	return 0;
}

const char *ladder_print(struct ladder ladder, char buf[LADDER_TEXT])
{
	if (ladder.from == ladder.to)
		snprintf(buf, LADDER_TEXT, "%s", step_names[ladder.to]);
	else
		snprintf(buf, LADDER_TEXT, "%s-%s", step_names[ladder.from], step_names[ladder.to]);
	return buf;
}

enum ladder_step ladder_next(struct ladder ladder, enum ladder_step step)
{
	enum ladder_step next = step < ladder.from ? ladder.from : step + 1;

	return next > ladder.to ? N_LADDER_STEPS : next;
}
