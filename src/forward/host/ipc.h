/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory and events of other processes.
 *
 * The guest never has the driver's handle, only a token for it that the broker keeps. So what it can open is
 * what another process of the same broker gave out, and nothing it could make up.
 */
#ifndef FORWARD_HOST_IPC_H
#define FORWARD_HOST_IPC_H

#include "forward/host/command.h"

CUresult ipc_execute(struct command *command);

#endif
