/* SPDX-License-Identifier: Apache-2.0 */
/* Code: modules and libraries from images that the guest has put into a grant. */
#ifndef FORWARD_HOST_CODE_H
#define FORWARD_HOST_CODE_H

#include "forward/host/command.h"

CUresult code_load_module(struct command *command);
CUresult code_load_library(struct command *command);

#endif
