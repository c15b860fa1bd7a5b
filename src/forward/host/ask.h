/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker asks its broker, which knows the other processes of the guest. */
#ifndef FORWARD_HOST_ASK_H
#define FORWARD_HOST_ASK_H

#include "forward/transport.h"

/**
 * broker_ask() - ask, and wait for the answer; one thread at a time does
 * @message:	the question; becomes the answer
 *
 * Return: what the answer has as its error, or what the kernel said.
 */
int broker_ask(struct wire_message *message);

/** broker_answered() - the answer came; the thread that waits for it goes on */
void broker_answered(const struct wire_message *message);

#endif
