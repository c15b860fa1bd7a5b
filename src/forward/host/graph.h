/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of graphs whose parameters are structures. */
#ifndef FORWARD_HOST_GRAPH_H
#define FORWARD_HOST_GRAPH_H

#include "forward/host/command.h"

CUresult graph_add_kernel(struct command *command);
CUresult graph_set_kernel(struct command *command);
CUresult graph_add_copy(struct command *command);
CUresult graph_add_fill(struct command *command);
CUresult graph_add_alloc(struct command *command);
CUresult graph_add_host(struct command *command);
CUresult graph_update(struct command *command);

#endif
