/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that record a graph. */
#ifndef FORWARD_GUEST_CAPTURE_H
#define FORWARD_GUEST_CAPTURE_H

#include <stdbool.h>

/** capture_is_active() - is any stream of this process recording? Copies may then run much later. */
bool capture_is_active(void);

#endif
