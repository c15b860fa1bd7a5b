/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the device, asked for as NVIDIA's driver asks its kernel module.
 *
 * With SOFTGPU_IOCTL=FILE, whatever is taken is announced by the ioctl that would allocate it
 * there (NV_ESC_RM_ALLOC of class NV01_MEMORY_LOCAL_USER), issued on FILE, a device such as
 * /dev/null that refuses it. Whoever watches ioctls can so be tried without a GPU. Frees are not
 * announced.
 */
#pragma once

#include <stdint.h>

/** rm_charge() - state_charge(), and the ioctl that goes with it */
int rm_charge(unsigned device, uint64_t bytes);
