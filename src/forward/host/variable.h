/* SPDX-License-Identifier: Apache-2.0 */
/* Managed variables, which the guest keeps alike with memory of its own. */
#ifndef FORWARD_HOST_VARIABLE_H
#define FORWARD_HOST_VARIABLE_H

#include "forward/host/command.h"

/** variable_look_up() - cuLibraryGetManaged: from now on the guest may read and write it */
CUresult variable_look_up(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX]);

/** variable_unload() - cuLibraryUnload: it may not any more */
CUresult variable_unload(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX]);

/** variable_read() - WIRE_READ_MANAGED */
CUresult variable_read(struct command *command);

/** variable_write() - WIRE_WRITE_MANAGED */
CUresult variable_write(struct command *command);

#endif
