/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>

#include "softgpu/ptx/log.h"

void ptx_log_line(struct ptx_log *log, const char *fmt, ...)
{
	va_list ap;
	size_t room;
	int n;

	if (!log || !log->text || log->len + 2 > log->cap)
		return;

	room = log->cap - log->len;
	va_start(ap, fmt);
	n = vsnprintf(log->text + log->len, room, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;

	/* The "\n" takes the place of the last byte where the line does not fit. */
	log->len += (size_t)n < room - 1 ? (size_t)n : room - 2;
	log->text[log->len++] = '\n';
	log->text[log->len] = '\0';
}
