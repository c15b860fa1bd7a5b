/* SPDX-License-Identifier: Apache-2.0 */
/* Files that tenants map: whatever they are, each call that is found lies in the file's code. */
#include <assert.h>
#include <sys/mman.h>

#include "base/base.h"
#include "base/fd.h"
#include "library.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_close_ int fd = memfd_create("fuzz-library", MFD_CLOEXEC);
	struct library_image image = {};

	assert(fd >= 0 && fd_write_all(fd, data, size) == 0);
	if (library_read(fd, LIBRARY_ALL, &image) < 0)
		return 0;
	library_add(fd, &image, "cuMemAlloc_v2", 0x1000);
	for (size_t i = 0; i < image.n_calls; i++) {
		const struct library_call *call = &image.calls[i];

		assert(*library_call_name(call->row) != '?' && call->offset <= INT64_MAX);
		assert(call->ret_delta == 0 || call->offset + call->ret_delta < size);
	}
	library_image_done(&image);
	return 0;
}
