/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probing copies of libcuda before they are first used.
 *
 * The engine finds a copy when a process maps it, a moment too late for the very first
 * calls through it. The copies that are likely are therefore probed ahead: those of the
 * system, and those on a starting command's library path.
 */
#ifndef DAEMON_LIBRARIES_H
#define DAEMON_LIBRARIES_H

#include "audit/engine.h"

/**
 * libraries_attach_system() - the copies in the folders that the loader always looks into
 * @nvml_dir:	and beside the library that tells about the devices; may be ""
 */
void libraries_attach_system(struct engine *engine, const char *nvml_dir);

/**
 * libraries_attach_for() - the copies that a process' LD_LIBRARY_PATH leads to
 */
void libraries_attach_for(struct engine *engine, pid_t pid);

#endif
