/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon lacks where it cannot load its programs: a capability, an option of
 * the kernel, or the host itself, in a container.
 */
#ifndef DAEMON_LACKING_H
#define DAEMON_LACKING_H

#include "base/base.h"

/**
 * lacking_text() - what is missing, in words; the caller frees it
 * @proc_dir:	"/proc", or a fixture in tests
 * @sys_dir:	"/sys"
 *
 * Return: NULL if everything that can be looked at is there.
 */
char *lacking_text(const char *proc_dir, const char *sys_dir);

/**
 * lacking_reason() - why the engine could not be opened, in words; the caller frees it
 * @fault:	of engine_open()
 * @refusal:	what the kernel said of a program, "" if it said nothing
 * @proc_dir:	as for lacking_text()
 *
 * Return: NULL without memory.
 */
char *lacking_reason(int fault, const char *refusal, const char *proc_dir, const char *sys_dir);

#endif
