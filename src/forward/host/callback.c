// SPDX-License-Identifier: Apache-2.0
/*
 * A stream that calls a function stands still until the guest has run it, and nothing else does: the thread
 * that waits is the driver's own for such calls, and it holds no lock of ours.
 */
#include "forward/host/callback.h"

#include "base/base.h"
#include "base/log.h"
#include "forward/host/driver.h"
#include "forward/host/handle.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

/**
 * struct callback - a function of the guest
 * @once:	it is over after the first call
 */
struct callback {
	struct wire_callback what;
	bool once;
};

static struct session_block *session;
static int call_fd = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;
static uint64_t asked, done;

void callback_init(struct session_block *block, int call)
{
	session = block;
	call_fd = call;
}

/* The caller has the lock. */
static void ask(const struct wire_callback *what)
{
	struct wire_callback *ring =
		(struct wire_callback *)((char *)session + SESSION_CALLBACKS_OFFSET);
	uint64_t one = 1;

	ring[asked % SESSION_N_CALLBACKS] = *what;
	__atomic_store_n(&session->host.asked, ++asked, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&session->guest.waits, __ATOMIC_RELAXED) &&
	    write(call_fd, &one, sizeof(one)) < 0)
		log_debug(-errno, "cannot call the guest");
}

static void run_in_guest(const struct wire_callback *what)
{
	uint64_t number;

	pthread_mutex_lock(&lock);
	while (asked - done >= SESSION_N_CALLBACKS)
		pthread_cond_wait(&progress, &lock);
	ask(what);
	number = asked;
	while (done < number)
		pthread_cond_wait(&progress, &lock);
	pthread_mutex_unlock(&lock);
}

void callback_run(void *arg)
{
	struct callback *callback = arg;

	run_in_guest(&callback->what);
	if (callback->once)
		free(callback);
}

static void stream_callback_run(_unused_ CUstream stream, CUresult status, void *arg)
{
	struct callback *callback = arg;

	callback->what.status = status;
	callback_run(callback);
}

struct callback *callback_new(uint64_t function, uint64_t data)
{
	struct callback *callback = calloc(1, sizeof(*callback));

	if (callback)
		callback->what = (struct wire_callback){ .function = function, .data = data };
	return callback;
}

void callback_tell(const struct callback *callback, CUDA_HOST_NODE_PARAMS *ret)
{
	ret->fn = (CUhostFn)callback->what.function;
	ret->userData = (void *)callback->what.data;
}

/* A function that is recorded runs with every launch of the graph. */
static bool is_recording(uint64_t stream)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	return DRIVER(cuStreamIsCapturing, stream, POINTER(&status)) == CUDA_SUCCESS &&
	       status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static bool tells_status(unsigned call)
{
	return call == CALL_ID_cuStreamAddCallback || call == CALL_ID_cuStreamAddCallback_ptsz;
}

CUresult callback_launch(struct command *command)
{
	struct reader reader = command_reader(command);
	const uint64_t *words = reader_bytes(&reader, 3 * sizeof(*words));
	struct callback *callback;
	uint64_t stream, entry;
	CUresult r;

	if (!words || handle_get(HANDLE_STREAM, words[0], &stream) < 0)
		return CUDA_ERROR_INVALID_HANDLE;
	callback = callback_new(words[1], words[2]);
	if (!callback)
		return CUDA_ERROR_OUT_OF_MEMORY;
	callback->once = !is_recording(stream);
	entry = POINTER(callback_run);
	if (tells_status(command->call)) {
		callback->what.kind = WIRE_STREAM_CALLBACK;
		callback->what.stream = words[0];
		entry = POINTER(stream_callback_run);
	}
	r = driver_call(command->call,
			(const uint64_t[CALL_N_ARGUMENTS_MAX]){ stream, entry, POINTER(callback) });
	if (r != CUDA_SUCCESS)
		free(callback);
	return r;
}

CUresult callback_done(struct command *command)
{
	struct reader reader = command_reader(command);
	uint64_t n = reader_word(&reader);
	CUresult r = CUDA_SUCCESS;

	pthread_mutex_lock(&lock);
	if (reader.failed || n < done || n > asked)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		done = n;
	pthread_cond_broadcast(&progress);
	pthread_mutex_unlock(&lock);
	return r;
}
