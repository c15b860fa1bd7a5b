// SPDX-License-Identifier: Apache-2.0
/*
 * The host asks for a function in the session's block and waits, with all that its stream has behind it,
 * until it is told that the function is over. That goes through a lane of this thread's own, and without
 * regard to the order of other commands: one of them may be waiting for just this function.
 */
#include "forward/guest/callback.h"

#include "forward/guest/call.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CUresult started;
static __thread bool running;

bool callback_is_running(void)
{
	return running;
}

static void run(const struct wire_callback *callback)
{
	running = true;
	if (callback->kind == WIRE_STREAM_CALLBACK)
		((CUstreamCallback)callback->function)((CUstream)callback->stream, callback->status,
						       (void *)callback->data);
	else
		((CUhostFn)callback->function)((void *)callback->data);
	running = false;
}

static CUresult say_done(uint64_t done)
{
	struct guest_lane *l;
	void *body;
	CUresult r;

	r = call_begin(WIRE_CALLBACK_DONE, sizeof(done), &l, &body);
	if (r != CUDA_SUCCESS)
		return r;
	memcpy(body, &done, sizeof(done));
	return lane_ask_at_once(l);
}

/* Return: the host asks for more; false where it is gone. */
static bool wait_for_more(struct session_block *block, uint64_t done)
{
	int r = 0;

	while (__atomic_load_n(&block->host.asked, __ATOMIC_ACQUIRE) == done && r == 0) {
		__atomic_store_n(&block->guest.waits, 1, __ATOMIC_SEQ_CST);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (__atomic_load_n(&block->host.asked, __ATOMIC_ACQUIRE) == done)
			r = session_service_wait();
		__atomic_store_n(&block->guest.waits, 0, __ATOMIC_RELAXED);
	}
	return r == 0;
}

static void *service_main(_unused_ void *arg)
{
	struct session_block *block = session_block_get();
	const struct wire_callback *ring =
		(const void *)((const char *)block + SESSION_CALLBACKS_OFFSET);
	struct wire_callback callback;
	uint64_t done = 0;

	while (wait_for_more(block, done)) {
		memcpy(&callback, &ring[done % SESSION_N_CALLBACKS], sizeof(callback));
		run(&callback);
		__atomic_store_n(&block->guest.done, ++done, __ATOMIC_RELEASE);
		if (say_done(done) != CUDA_SUCCESS)
			break;
	}
	session_lose();
	return NULL;
}

static void start(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, old;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&thread, &attributes, service_main, NULL);
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	started = r ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult callback_prepare(void)
{
	pthread_once(&once, start);
	return started;
}

static CUresult send_function(enum call_id id, uint64_t stream, uint64_t function, uint64_t data)
{
	const uint64_t words[] = { stream, function, data };
	struct guest_lane *l;
	void *body;
	CUresult r = session_check();

	if (r != CUDA_SUCCESS)
		return r;
	if (!function)
		return CUDA_ERROR_INVALID_VALUE;
	r = callback_prepare();
	if (r == CUDA_SUCCESS)
		r = call_begin(id, sizeof(words), &l, &body);
	if (r != CUDA_SUCCESS)
		return r;
	memcpy(body, words, sizeof(words));
	return call_post(l);
}

CALL_TWINS(cuLaunchHostFunc, _ptsz, (CUstream stream, CUhostFn function, void *data),
	   (stream, function, data))
{
	return send_function(id, POINTER(stream), POINTER(function), POINTER(data));
}

CALL_TWINS(cuStreamAddCallback, _ptsz,
	   (CUstream stream, CUstreamCallback function, void *data, unsigned flags),
	   (stream, function, data, flags))
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	return send_function(id, POINTER(stream), POINTER(function), POINTER(data));
}
