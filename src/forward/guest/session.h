/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This process's session with the host, and its threads' lanes.
 *
 * A session begins with cuInit(). A child of the process has none and cannot get one, as with the real
 * driver. When the host is gone every call answers DEVICE_LOST from then on.
 */
#ifndef FORWARD_GUEST_SESSION_H
#define FORWARD_GUEST_SESSION_H

#include "forward/guest/carrier.h"
#include "forward/wire.h"

#include "src/cuda/cuda_abi.h"

#define DEVICE_LOST CUDA_ERROR_DEVICE_UNAVAILABLE

/** session_open() - what cuInit() does, once */
CUresult session_open(void);

/** session_check() - CUDA_SUCCESS while there is a session, else what a call has to answer */
CUresult session_check(void);

/** session_lose() - the host is gone. Return: DEVICE_LOST */
CUresult session_lose(void);

/** session_heap() - where the heap, grant 0, is */
void *session_heap(void);

/** session_block_get() - its state, which the host writes */
struct session_block *session_block_get(void);

/** session_service_wait() - the service thread sleeps until the host calls it; as struct carrier's wait */
int session_service_wait(void);

/** session_is_synchronous() - COTENANT_SYNC=1: no call is only posted */
bool session_is_synchronous(void);

/** session_count_copied() - so much of the program's memory was copied on its way to or from the host */
void session_count_copied(size_t size);

/** session_grant(), session_revoke() - as struct carrier has them */
int session_grant(void *address, uint64_t size, bool keep, uint32_t *ret_id);
int session_revoke(uint32_t id);

/**
 * struct guest_lane - the calling thread's lane
 * @head:	bytes published
 * @n_sent:	records published, the number of the last
 * @n_errors:	failures of posted records that were reported
 * @rung:	the host's sleep that was rung for last
 * @woken:	its thread was rung for since the last wait
 */
struct guest_lane {
	struct carrier_lane carrier;
	struct lane *lane;
	uint8_t *ring;
	const struct wire_reply *reply;
	uint64_t head;
	uint64_t n_sent;
	uint64_t n_errors;
	uint64_t writing;
	uint32_t rung;
	bool woken;
};

/** lane_get() - the calling thread's, made at its first call. Return: CUDA_SUCCESS, or what to answer. */
CUresult lane_get(struct guest_lane **ret);

/**
 * lane_begin() - room for a record in the ring
 * @size:	bytes of its body, at most WIRE_RECORD_MAX with the head
 * @ret_body:	where to write it
 *
 * Return: CUDA_SUCCESS, or DEVICE_LOST.
 */
CUresult lane_begin(struct guest_lane *l, unsigned call, size_t size, void **ret_body);

/** lane_post() - publish the record that was begun; nobody waits for it */
void lane_post(struct guest_lane *l);

/**
 * lane_post_awaited() - publish it and go on for now; lane_wait_executed() has to follow
 *
 * Other threads' records are not held up by it, however long the host waits in it.
 */
void lane_post_awaited(struct guest_lane *l);

/**
 * lane_ask() - publish it and wait for the answer
 * @ret_data:	what the call wrote; valid until the thread's next record
 *
 * Return: the call's result, or DEVICE_LOST.
 */
CUresult lane_ask(struct guest_lane *l, const uint8_t **ret_data, size_t *ret_size);

/** lane_ask_at_once() - the same whatever was posted before; the answer brings nothing */
CUresult lane_ask_at_once(struct guest_lane *l);

/** lane_wait_executed() - wait until the record of that number is executed. Return: CUDA_SUCCESS, DEVICE_LOST. */
CUresult lane_wait_executed(struct guest_lane *l, uint64_t number);

/**
 * lane_error() - has a posted record failed since the last time?
 * @result:	of the call that is just answered
 *
 * Return: @result if it is an error, else the oldest news.
 */
CUresult lane_error(struct guest_lane *l, CUresult result);

#endif
