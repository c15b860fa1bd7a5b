// SPDX-License-Identifier: Apache-2.0
/* Streams and events. */
#include <stdlib.h>

#include "softgpu/cudart/runtime.h"

RUNTIME_CALL(cudaStreamCreateWithFlags, CUstream *stream, unsigned flags)
{
	return in_context() ?: told(driver.cuStreamCreate(stream, flags));
}

RUNTIME_CALL(cudaStreamCreate, CUstream *stream)
{
	return impl_cudaStreamCreateWithFlags(stream, /* flags= */ 0);
}

RUNTIME_CALL(cudaStreamCreateWithPriority, CUstream *stream, unsigned flags, int priority)
{
	return in_context() ?: told(driver.cuStreamCreateWithPriority(stream, flags, priority));
}

RUNTIME_CALL(cudaStreamDestroy, CUstream stream)
{
	return in_context() ?: told(driver.cuStreamDestroy(stream));
}

STREAM_CALL(cudaStreamSynchronize, (CUstream stream), (stream))
{
	return in_context() ?: told(driver.cuStreamSynchronize(stream));
}

STREAM_CALL(cudaStreamQuery, (CUstream stream), (stream))
{
	return in_context() ?: told(driver.cuStreamQuery(stream));
}

STREAM_CALL(cudaStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags),
	    (stream, event, flags))
{
	return in_context() ?: told(driver.cuStreamWaitEvent(stream, event, flags));
}

/* The driver hands its callback a CUresult; most codes mean the same to the runtime. */
STREAM_CALL(cudaStreamAddCallback,
	    (CUstream stream, CUstreamCallback callback, void *data, unsigned flags),
	    (stream, callback, data, flags))
{
	return in_context() ?: told(driver.cuStreamAddCallback(stream, callback, data, flags));
}

STREAM_CALL(cudaStreamGetFlags, (CUstream stream, unsigned *flags), (stream, flags))
{
	return in_context() ?: told(driver.cuStreamGetFlags(stream, flags));
}

STREAM_CALL(cudaStreamGetPriority, (CUstream stream, int *priority), (stream, priority))
{
	return in_context() ?: told(driver.cuStreamGetPriority(stream, priority));
}

STREAM_CALL(cudaStreamGetId, (CUstream stream, unsigned long long *id), (stream, id))
{
	return in_context() ?: told(driver.cuStreamGetId(stream, id));
}

STREAM_CALL(cudaStreamGetDevice, (CUstream stream, int *device), (stream, device))
{
	/* A stream belongs to the current context's device, else the driver refuses it. */
	unsigned flags;

	return in_context() ?: told(driver.cuStreamGetFlags(stream, &flags)) ?:
		       told(driver.cuCtxGetDevice(device));
}

STREAM_CALL(cudaStreamAttachMemAsync,
	    (CUstream stream, void *ptr, size_t size_bytes, unsigned flags),
	    (stream, ptr, size_bytes, flags))
{
	return in_context()
		       ?: told(driver.cuStreamAttachMemAsync(stream, (CUdeviceptr)ptr, size_bytes,
							     flags));
}

PASSED_ON(cudaStreamCopyAttributes, cuStreamCopyAttributes, (CUstream to, CUstream from),
	  (to, from))
PASSED_ON(cudaStreamCopyAttributes_ptsz, cuStreamCopyAttributes, (CUstream to, CUstream from),
	  (stream_of_thread(to), stream_of_thread(from)))

STREAM_CALL(cudaStreamGetAttribute, (CUstream stream, CUstreamAttrID id, CUstreamAttrValue *value),
	    (stream, id, value))
{
	return in_context() ?: told(driver.cuStreamGetAttribute(stream, id, value));
}

STREAM_CALL(cudaStreamSetAttribute,
	    (CUstream stream, CUstreamAttrID id, const CUstreamAttrValue *value),
	    (stream, id, value))
{
	return in_context() ?: told(driver.cuStreamSetAttribute(stream, id, value));
}

RUNTIME_CALL(cudaDeviceGetStreamPriorityRange, int *least, int *greatest)
{
	return in_context() ?: told(driver.cuCtxGetStreamPriorityRange(least, greatest));
}

RUNTIME_CALL(cudaEventCreateWithFlags, CUevent *event, unsigned flags)
{
	return in_context() ?: told(driver.cuEventCreate(event, flags));
}

RUNTIME_CALL(cudaEventCreate, CUevent *event)
{
	return impl_cudaEventCreateWithFlags(event, /* flags= */ 0);
}

RUNTIME_CALL(cudaEventDestroy, CUevent event)
{
	return in_context() ?: told(driver.cuEventDestroy(event));
}

STREAM_CALL(cudaEventRecord, (CUevent event, CUstream stream), (event, stream))
{
	return in_context() ?: told(driver.cuEventRecord(event, stream));
}

STREAM_CALL(cudaEventRecordWithFlags, (CUevent event, CUstream stream, unsigned flags),
	    (event, stream, flags))
{
	return in_context() ?: told(driver.cuEventRecordWithFlags(event, stream, flags));
}

RUNTIME_CALL(cudaEventQuery, CUevent event)
{
	return in_context() ?: told(driver.cuEventQuery(event));
}

RUNTIME_CALL(cudaEventSynchronize, CUevent event)
{
	return in_context() ?: told(driver.cuEventSynchronize(event));
}

RUNTIME_CALL(cudaEventElapsedTime, float *ms, CUevent start, CUevent end)
{
	return in_context() ?: told(driver.cuEventElapsedTime(ms, start, end));
}

RUNTIME_CALL(cudaEventElapsedTime_v2, float *ms, CUevent start, CUevent end)
{
	return impl_cudaEventElapsedTime(ms, start, end);
}

RUNTIME_CALL(cudaIpcGetEventHandle, CUipcEventHandle *handle, CUevent event)
{
	return in_context() ?: told(driver.cuIpcGetEventHandle(handle, event));
}

RUNTIME_CALL(cudaIpcOpenEventHandle, CUevent *event, CUipcEventHandle handle)
{
	return in_context() ?: told(driver.cuIpcOpenEventHandle(event, handle));
}
