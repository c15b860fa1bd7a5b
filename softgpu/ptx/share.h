/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SOFTGPU_PTX_SHARE_H
#define SOFTGPU_PTX_SHARE_H

#include "softgpu/ptx/ptx.h"

/**
 * registers_share() - give registers that never hold values at the same time one number
 * @f:		a function; its instructions, its parameters in registers and n_regs change
 * @proto:	its prototype
 *
 * A function too large or too tangled to look at in linear time stays as it is.
 *
 * Return: 0 or -ENOMEM.
 */
int registers_share(struct ptx_function *f, struct ptx_proto *proto);

#endif
