/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What differs between the libraries that are linked from the same objects: each links a
 * variant.c of its own.
 */
#pragma once

/**
 * struct variant - which driver a library is
 * @drivers:	the calls it knows: bits of enum call_driver
 * @cuda_version:	what cuDriverGetVersion() tells; 0: what the configuration says
 */
struct variant {
	unsigned drivers;
	int cuda_version;
};

extern const struct variant variant __attribute__((visibility("hidden")));
