/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Until when a node may let run what Slurm may start elsewhere.
 *
 * Slurm takes a node for lost when it has not heard it for SlurmdTimeout T, and starts its jobs on
 * another one, whether they still run or not. It asks each node every T/3. So when slurmctld says at L
 * that it hears the node, it has heard it after L - T/3, and starts nothing elsewhere before L + 2T/3:
 *
 *	L - T/3		L		L + T/3		 + grace	L + 2T/3
 *	heard last	says so		SIGTERM		SIGKILL		may be started elsewhere
 *
 * L is when it was asked, on the node's own clock, and not when it answered. The clock is one that nobody
 * sets and that goes on while the machine sleeps; no clock of another machine counts.
 *
 * Who is started anew at R goes on with the L of the one before, whose death may have been in a cut. But
 * if nobody was there for long, L is old though Slurm hears the node: so SIGTERM is sent after R + T/6 at
 * the earliest, and until then Slurm is asked. That is in time, too, if nobody was there for less than T/12 in all.
 */
#ifndef CLUSTER_NODE_LEASE_H
#define CLUSTER_NODE_LEASE_H

#include "base/base.h"

#include <stdbool.h>

enum node_lease_order {
	NODE_LEASE_GO_ON,
	NODE_LEASE_TERM,
	NODE_LEASE_KILL,
};

/**
 * struct node_lease - what is known of the contact with Slurm
 * @asked_ms:	when the latest question was asked whose answer was that the node is heard
 * @timeout_ms:	Slurm's, as it was then; 0 where it gives up no node
 * @resumed_ms:	when who was started anew began to ask, in vain; @asked_ms once SIGTERM was sent, after which
 *		nobody need ask first; 0 where one has asked all along
 * @is_known:	whether there was such an answer
 */
struct node_lease {
	uint64_t asked_ms;
	uint64_t timeout_ms;
	uint64_t resumed_ms;
	bool is_known;
};

/**
 * node_lease_renew() - such an answer has come; answers may overtake each other
 * @asked_ms:	one of the future is none
 */
void node_lease_renew(struct node_lease *lease, uint64_t asked_ms, uint64_t timeout_ms,
		      uint64_t now_ms);

/**
 * node_lease_resume() - one goes on with what was known before one was started anew
 * @before:	as it was then, which may be @lease itself; what cannot have been is not known
 */
void node_lease_resume(struct node_lease *lease, const struct node_lease *before, uint64_t now_ms);

/**
 * node_lease_look() - what is to be done now?
 * @ret_wait_ms:	until when that stays so, where nothing is heard; UINT64_MAX for ever
 */
enum node_lease_order node_lease_look(const struct node_lease *lease, uint64_t now_ms,
				      uint64_t *ret_wait_ms);

/**
 * node_lease_note_term() - SIGTERM was ordered
 *
 * Return: whether that is new, and who is started anew has to know it.
 */
bool node_lease_note_term(struct node_lease *lease);

#endif
