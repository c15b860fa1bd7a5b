// SPDX-License-Identifier: Apache-2.0
#include "forward/guest/log.h"

#include "base/base.h"

#include <fcntl.h>
#include <stdarg.h>

void guest_log(const char *fmt, ...)
{
	const char *path = getenv("COTENANT_ERRLOG");
	_cleanup_close_ int fd = -1;
	char line[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	n = MIN(n, (int)sizeof(line) - 2);
	if (path)
		fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	dprintf(fd >= 0 ? fd : STDERR_FILENO, "cotenant: %.*s\n", n, line);
}
