/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed variables of modules and libraries.
 *
 * The host's driver says where one is, and only the worker's processor reaches it there. The guest has memory of
 * its own at the same address, and the two are kept alike where CUDA lets both sides look: what the program wrote
 * is sent before the device works, and what devices wrote is fetched when the program has waited for them.
 */
#ifndef FORWARD_GUEST_VARIABLE_H
#define FORWARD_GUEST_VARIABLE_H

#include "forward/wire.h"

#include "src/cuda/cuda_abi.h"

/** variable_push() - @call is about to be sent: bring what the program wrote if it makes the device work */
void variable_push(unsigned call);

/** variable_pull() - the program has waited for the device: fetch what that wrote */
void variable_pull(void);

/** variable_waits_for() - is it a call after which the program may look at what devices wrote? */
bool variable_waits_for(unsigned call);

#endif
