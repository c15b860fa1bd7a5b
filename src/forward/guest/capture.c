// SPDX-License-Identifier: Apache-2.0
#include "forward/guest/capture.h"

#include "forward/guest/call.h"

#include <stdatomic.h>

static _Atomic int n_captures;

bool capture_is_active(void)
{
	return atomic_load_explicit(&n_captures, memory_order_relaxed) > 0;
}

static CUresult begin(enum call_id id, CUstream stream, uint64_t mode)
{
	CUresult r = CALL_WORDS(id, POINTER(stream), mode);

	if (r == CUDA_SUCCESS)
		atomic_fetch_add(&n_captures, 1);
	return r;
}

CALL_TWINS(cuStreamBeginCapture, _ptsz, (CUstream stream), (stream))
{
	return begin(id, stream, /* mode= */ 0);
}

CALL_TWINS(cuStreamBeginCapture_v2, _ptsz, (CUstream stream, CUstreamCaptureMode mode),
	   (stream, mode))
{
	return begin(id, stream, mode);
}

/* It ends a capture even where it says that something was wrong with it. */
CALL_TWINS(cuStreamEndCapture, _ptsz, (CUstream stream, CUgraph *ret), (stream, ret))
{
	CUresult r = CALL_WORDS(id, POINTER(stream), POINTER(ret));

	if (r != CUDA_ERROR_ILLEGAL_STATE && r != CUDA_ERROR_INVALID_VALUE &&
	    r != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD && atomic_load(&n_captures) > 0)
		atomic_fetch_sub(&n_captures, 1);
	return r;
}
