/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which devices a process sees, and in which order: CUDA_DEVICE_ORDER and
 * CUDA_VISIBLE_DEVICES.
 */
#pragma once

#include "softgpu/state/config.h"

/**
 * visible_devices() - choose and order devices
 * @devices:	all of them
 * @n:		their number, at most SOFTGPU_DEVICES_MAX
 * @order:	value of CUDA_DEVICE_ORDER, or NULL
 * @visible:	value of CUDA_VISIBLE_DEVICES, or NULL: all
 * @ret:	room for @n indices into @devices, in the order of their ordinals
 *
 * The first entry that means no device ends the list; those before it count. A
 * device named twice hides all. Entries are ordinals in the chosen order (digits
 * that may be followed by anything: "1gpu" is 1) or, if the first begins with
 * "GPU-", UUIDs or beginnings of them that fit one device.
 *
 * Return: how many are visible.
 */
unsigned visible_devices(const struct softgpu_device_config *devices, unsigned n, const char *order,
			 const char *visible, unsigned ret[SOFTGPU_DEVICES_MAX]);
