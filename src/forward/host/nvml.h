/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest's NVML asks, in the worker. It has no NVML of its own: the broker's watcher has. */
#ifndef FORWARD_HOST_NVML_H
#define FORWARD_HOST_NVML_H

#include "forward/host/command.h"

/** nvml_execute() - WIRE_NVML */
CUresult nvml_execute(struct command *command);

#endif
