/* SPDX-License-Identifier: Apache-2.0 */
/* Copies in up to three dimensions, and host memory that devices reach. */
#ifndef FORWARD_HOST_COPY_H
#define FORWARD_HOST_COPY_H

#include "forward/host/command.h"

/** copy_take() - a copy of the guest's as the driver takes it; false where it reaches beyond what is the guest's */
bool copy_take(const struct wire_copy *copy, CUDA_MEMCPY3D *ret);

/** copy_execute() - cuMemcpy3D and its asynchronous form */
CUresult copy_execute(struct command *command);

/** copy_peer_execute() - cuMemcpy3DPeer and its asynchronous form */
CUresult copy_peer_execute(struct command *command);

/** pin_execute() - WIRE_PIN and WIRE_UNPIN */
CUresult pin_execute(struct command *command);

#endif
