/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of settings, as people write them. All answer false for anything else.
 */
#ifndef SOFTGPU_STATE_VALUE_H
#define SOFTGPU_STATE_VALUE_H

#include <stdbool.h>
#include <stdint.h>

/** value_number() - a decimal number from @min to @max */
bool value_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret);

/** value_size() - "80G", "512MiB", "1.5g", "1048576": bytes, powers of 1024 */
bool value_size(const char *text, uint64_t *ret_bytes);

/** value_time() - "2ms", "166667us", "0.5s", "0": a number without unit is in ns */
bool value_time(const char *text, uint64_t *ret_ns);

/** value_version() - "13.0": two numbers, each at most 999 */
bool value_version(const char *text, uint32_t *ret_major, uint32_t *ret_minor);

/** value_uuid() - "GPU-" and 32 hex digits with dashes as usual; "GPU-" may be missing */
bool value_uuid(const char *text, uint8_t ret[16]);

/** value_pci() - "0000:3b:00.0" or "3b:00.0", hexadecimal */
bool value_pci(const char *text, uint32_t *ret_domain, uint32_t *ret_bus, uint32_t *ret_device);

#endif
