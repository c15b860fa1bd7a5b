/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface objects.
 *
 * A kernel finds an object's number among its parameters, where nothing tells it from any other word. So,
 * unlike of all else, the guest has the driver's own number. The driver might take it for an address: a
 * number that was not made for this guest does not reach it.
 */
#ifndef FORWARD_HOST_TEXTURE_H
#define FORWARD_HOST_TEXTURE_H

#include "src/cuda/calls.h"
#include "src/cuda/cuda_abi.h"

/* Calls whose words are decoded by the table; made, or answered as the driver answers wrong arguments. */
CUresult texture_create(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX]);
CUresult texture_destroy(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX]);
CUresult texture_describe(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX]);

#endif
