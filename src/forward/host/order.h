/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order between the threads of a guest's process.
 *
 * Posted commands have tickets: each is executed when all before it have been. A command that its caller
 * waits for has to come after those posted before it was made, and holds up nobody: what its thread does
 * next does not exist yet, and everybody else acts independently of it.
 */
#ifndef FORWARD_HOST_ORDER_H
#define FORWARD_HOST_ORDER_H

#include <stdint.h>

/**
 * order_wait() - wait until that many posted commands are executed
 *
 * Return: how many are; more than asked for, where the guest gave a ticket out twice.
 */
uint64_t order_wait(uint64_t ticket);

/** order_done() - the posted command @ticket is executed */
void order_done(uint64_t ticket);

#endif
