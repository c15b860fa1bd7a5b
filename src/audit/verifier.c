// SPDX-License-Identifier: Apache-2.0
/*
 * What the kernel's verifier says of a program, read from its log: at the level of statistics that is, of a
 * program it takes,
 *
 *	verification time 5 usec
 *	stack depth 0+48+16+8			a number per function
 *	processed 7 insns (limit 1000000) ...
 *
 * and of one that it refuses the reason before these, in lines of which the last says the most.
 */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "priv.h"

/*
 * Since Linux 6.13 a frame of 64 bytes or more means a private stack per CPU, which a sleepable program
 * shares with whoever runs while it sleeps, and the kernel crashes. See bpf/kernel.h.
 */
#define FRAME_MAX_BYTES 48

int frames_check(const char *log)
{
	const char *at = strstr(log, "stack depth ");
	char *end;

	if (!at)
		return -ENOTSUP;
	at += strlen("stack depth ");
	for (;;) {
		if (strtoul(at, &end, 10) > FRAME_MAX_BYTES)
			return -ENOTSUP;
		if (*end != '+')
			return 0;
		at = end + 1;
	}
}

static bool is_statistics(const char *line)
{
	static const char *const begins[] = { "verification time ", "stack depth ", "processed " };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(begins); i++) {
		if (str_after(line, begins[i]))
			return true;
	}
	return false;
}

void verifier_reason(const char *log, char *ret, size_t cap)
{
	size_t len;

	*ret = '\0';
	for (; *log; log += len + (log[len] == '\n')) {
		len = strcspn(log, "\n");
		if (len > 0 && !is_statistics(log))
			snprintf(ret, cap, "%.*s", (int)len, log);
	}
}
