/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of a compilation: lines in a buffer of the caller's, as much as fits.
 */
#ifndef SOFTGPU_PTX_LOG_H
#define SOFTGPU_PTX_LOG_H

#include <stddef.h>

/**
 * struct ptx_log - where messages go
 * @text:	buffer; NUL-terminated as soon as anything was added; may be NULL
 * @cap:	its size
 * @len:	bytes used, without the NUL
 */
struct ptx_log {
	char *text;
	size_t cap;
	size_t len;
};

/**
 * ptx_log_line() - add a line
 * @log:	may be NULL
 * @fmt:	the line without "\n", which is added
 *
 * What does not fit is cut off.
 */
__attribute__((format(printf, 2, 3))) void ptx_log_line(struct ptx_log *log, const char *fmt, ...);

#endif
