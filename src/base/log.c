/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/str.h"

#include <stdarg.h>

static const char *log_program = "cotenant";
static int log_max_level = LOG_INFO;
static bool log_to_journal;

void log_init(const char *program, int max_level)
{
	log_program = program;
	log_max_level = max_level;
	log_to_journal = getenv("JOURNAL_STREAM") != NULL && !isatty(STDERR_FILENO);
}

int log_line(int level, int error, const char *fmt, ...)
{
	char line[1024];
	va_list ap;

	if (level > log_max_level)
		return error;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);

	/* One call, so that lines of several threads do not mix. */
	if (log_to_journal)
		dprintf(STDERR_FILENO, "<%d>%s%s%s\n", level, line, error < 0 ? ": " : "",
			error < 0 ? strerrordesc_np(-error) : "");
	else
		dprintf(STDERR_FILENO, "%s: %s%s%s\n", log_program, line, error < 0 ? ": " : "",
			error < 0 ? strerrordesc_np(-error) : "");
	return error;
}
