/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address space as kernels of one context see it.
 *
 * All devices' memory is in one process, but a kernel may only touch that of its own device, that
 * of devices whose memory its context reaches (cuCtxEnablePeerAccess), what names its device, and
 * the host's. Each context has a table like space_blocks of its own, so that asking costs the same;
 * tables are kept up to date with every block that changes hands.
 */
#pragma once

#include <stdint.h>

#include "softgpu/mem/space.h"

struct space_view;

/** space_view_new() - what kernels on a device see that reach no other. Return: 0 or -ENOMEM. */
int space_view_new(unsigned device, struct space_view **ret);

void space_view_free(struct space_view *view);

/** space_view_reach() - see the memory of so many devices besides, a bit for each */
void space_view_reach(struct space_view *view, uint64_t devices);

/** space_view_blocks() - the table, for space_ok_in(); of all devices for NULL */
const uint8_t *space_view_blocks(const struct space_view *view);

/* For space.c: sets @n blocks, in all views. */
void space_blocks_set(uint64_t block, uint64_t n, uint8_t access, uint8_t whose);
