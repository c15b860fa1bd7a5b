/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest's library has to say: failures of posted calls, calls that are not forwarded. */
#ifndef FORWARD_GUEST_LOG_H
#define FORWARD_GUEST_LOG_H

/** guest_log() - a line on standard error, or in the file that COTENANT_ERRLOG names */
void guest_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
