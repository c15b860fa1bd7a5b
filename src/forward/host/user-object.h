/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of the guest's that graphs keep. */
#ifndef FORWARD_HOST_USER_OBJECT_H
#define FORWARD_HOST_USER_OBJECT_H

#include "forward/host/command.h"

/** user_object_create() - cuUserObjectCreate: the destructor, what it gets, how many references, flags */
CUresult user_object_create(struct command *command);

#endif
