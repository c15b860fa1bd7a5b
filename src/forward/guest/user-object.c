// SPDX-License-Identifier: Apache-2.0
/* Objects of the program that graphs keep: the host counts, and has the destructor run here. */
#include "forward/guest/callback.h"
#include "forward/guest/writer.h"

CALL(cuUserObjectCreate, CUuserObject *ret, void *thing, CUhostFn destroy, unsigned n,
     unsigned flags)
{
	const uint8_t *data = NULL;
	struct writer w;
	size_t size = 0;
	CUresult r = session_check();

	if (r == CUDA_SUCCESS && (!ret || !destroy))
		r = CUDA_ERROR_INVALID_VALUE;
	if (r == CUDA_SUCCESS)
		r = callback_prepare();
	if (r == CUDA_SUCCESS)
		r = writer_begin(&w, CALL_ID_cuUserObjectCreate, 4 * sizeof(uint64_t));
	if (r != CUDA_SUCCESS)
		return r;
	write_word(&w, POINTER(destroy));
	write_word(&w, POINTER(thing));
	write_word(&w, n);
	write_word(&w, flags);
	r = lane_ask(w.lane, &data, &size);
	if (r == CUDA_SUCCESS && size >= sizeof(*ret))
		memcpy(ret, data, sizeof(*ret));
	return lane_error(w.lane, r);
}
