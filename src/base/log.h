/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines on standard error.
 *
 * Under systemd each line carries its level in the form the journal reads;
 * elsewhere it begins with the name of the program. Parts below the daemon log
 * at debug only: whoever handles a request, runs a verb or is main() says once
 * what went wrong.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/base.h"

#include <stdbool.h>
#include <syslog.h>

/**
 * log_init() - name of the program, and the most talkative level (LOG_ERR ... LOG_DEBUG)
 */
void log_init(const char *program, int max_level);

/**
 * log_line() - one line; does nothing above the level of log_init()
 * @error:	a negative errno whose text is added, or 0
 *
 * Return: @error, so that `return log_err(r, "...")` hands it on.
 */
int log_line(int level, int error, const char *fmt, ...) PRINTF(3, 4);

#define log_err(error, ...)   log_line(LOG_ERR, (error), __VA_ARGS__)
#define log_warn(error, ...)  log_line(LOG_WARNING, (error), __VA_ARGS__)
#define log_info(...)	      log_line(LOG_INFO, 0, __VA_ARGS__)
#define log_debug(error, ...) log_line(LOG_DEBUG, (error), __VA_ARGS__)

#endif
