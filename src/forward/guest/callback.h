/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the program that streams and graphs call: a thread of the guest runs them. */
#ifndef FORWARD_GUEST_CALLBACK_H
#define FORWARD_GUEST_CALLBACK_H

#include "src/cuda/cuda_abi.h"

#include <stdbool.h>

/** callback_prepare() - start the thread, before the first function is sent */
CUresult callback_prepare(void);

/** callback_is_running() - is the calling thread in such a function? It may not call the driver. */
bool callback_is_running(void);

#endif
