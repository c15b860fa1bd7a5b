// SPDX-License-Identifier: Apache-2.0
/*
 * The rest of the public names. Definitions in other files win over these weak ones.
 *
 * Tools try many calls that a device may not have, and draw on the terminal themselves, so what is not
 * forwarded is told only where COTENANT_ERRLOG names a file: once for each name.
 */
#include "forward/nvml/nvml.h"

#include "forward/guest/log.h"

#include <stdatomic.h>
#include <stdlib.h>

enum name {
#define NVML(name) NAME_##name,
#include "src/nvml/nvml.def"
#undef NVML
	N_NAMES,
};

static const char *const names[N_NAMES] = {
#define NVML(name) #name,
#include "src/nvml/nvml.def"
#undef NVML
};

static nvmlReturn_t refuse(enum name name)
{
	static _Atomic unsigned char said[N_NAMES];

	if (nvml_check() != NVML_SUCCESS)
		return NVML_ERROR_UNINITIALIZED;
	if (getenv("COTENANT_ERRLOG") && !atomic_exchange(&said[name], 1))
		guest_log("%s is not forwarded", names[name]);
	return NVML_ERROR_NOT_SUPPORTED;
}

/* Arguments do not matter: the caller's convention leaves them to the caller. */
#define NVML(name)                                                                                 \
	__attribute__((weak, visibility("default"))) nvmlReturn_t name(void);                      \
	__attribute__((weak, visibility("default"))) nvmlReturn_t name(void)                       \
	{                                                                                          \
		return refuse(NAME_##name);                                                        \
	}
#include "src/nvml/nvml.def"
