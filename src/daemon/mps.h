/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process is the server of NVIDIA's MPS.
 *
 * It has the memory of its clients, who are charged for their own calls, and so it is charged
 * to nobody. Whoever could pass for it had memory for nothing; so neither its name counts nor
 * what its own view of the file system shows, which a user makes as he likes in a namespace.
 */
#ifndef DAEMON_MPS_H
#define DAEMON_MPS_H

#include <stdbool.h>
#include <sys/types.h>

/**
 * mps_is_server() - is this process the server?
 * @program:	its file, as this process sees it; that of the control daemon is beside it
 *
 * It must run that very file, which none but root may write, in the host's user namespace, and
 * be root's, or have been started by root's control daemon: a user who starts it himself could
 * have it load what he likes.
 */
bool mps_is_server(const char *program, pid_t pid);

#endif
