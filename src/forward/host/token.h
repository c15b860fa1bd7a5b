/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The broker's tokens for IPC handles: 16 random bytes each, for as long as the broker runs or until there
 * are too many; then the oldest goes.
 */
#ifndef FORWARD_HOST_TOKEN_H
#define FORWARD_HOST_TOKEN_H

#include "forward/transport.h"

/**
 * token_serve() - answer a worker's WIRE_IPC_PUT or WIRE_IPC_GET in its place
 *
 * message->data becomes the token, or the handle; message->error is 0, or -ENOENT where there is no such
 * token of that kind (message->id).
 */
void token_serve(struct wire_message *message);

#endif
