/* SPDX-License-Identifier: Apache-2.0 */
/* Host functions: streams and graphs call them here, the guest runs them. */
#ifndef FORWARD_HOST_CALLBACK_H
#define FORWARD_HOST_CALLBACK_H

#include "forward/host/command.h"

/** callback_init() - the session's block, and the event that calls the guest's service thread */
void callback_init(struct session_block *session, int call);

/**
 * callback_new() - a function that a graph's node calls, as often as the graph runs
 *
 * Return: what callback_run() gets, NULL where there is no memory.
 */
struct callback *callback_new(uint64_t function, uint64_t data);

/** callback_tell() - as the guest gave it: what runs, and with which data */
void callback_tell(const struct callback *callback, CUDA_HOST_NODE_PARAMS *ret);

/** callback_run() - the driver calls it; it returns when the guest has run the function */
void callback_run(void *callback);

/** callback_launch() - cuLaunchHostFunc, cuStreamAddCallback */
CUresult callback_launch(struct command *command);

/** callback_done() - WIRE_CALLBACK_DONE: the guest has run so many */
CUresult callback_done(struct command *command);

#endif
