/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of graphs' nodes, read and set when the nodes are there. */
#ifndef FORWARD_HOST_GRAPH_NODE_H
#define FORWARD_HOST_GRAPH_NODE_H

#include "forward/host/command.h"

/* Calls by hand. Those that set begin with an executable graph, 0 for a graph's own node, and the node. */
CUresult graph_get_kernel(struct command *command);
CUresult graph_set_kernel(struct command *command);
CUresult graph_set_copy(struct command *command);
CUresult graph_set_host(struct command *command);
CUresult graph_capture_info(struct command *command);

/* Calls that the table decodes. */
CUresult graph_get_copy(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX]);
CUresult graph_get_host(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX]);
CUresult graph_get_alloc(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX]);
CUresult graph_set_fill(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX]);
CUresult graph_kernel_attribute(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX]);

#endif
