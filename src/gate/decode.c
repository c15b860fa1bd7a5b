// SPDX-License-Identifier: Apache-2.0
/*
 * The ioctls of NVIDIA's kernel driver, as its published source has them.
 *
 * On /dev/nvidia* they are of type 'F'. One of them, XFER, carries any other in a struct; UVM's are
 * plain numbers.
 */
#include "gate/gate.h"

#include "base/base.h"

#include <linux/ioctl.h>
#include <string.h>

#define RM_ALLOC_MEMORY	   0x27
#define RM_ALLOC	   0x2b
#define RM_VID_HEAP	   0x4a
#define RM_DUP_OBJECT	   0x34
#define RM_IMPORT_FROM_FD  0x5d
#define RM_XFER		   211
#define UVM_SEMAPHORE_POOL 68
#define XFER_DEPTH	   2 /* the driver refuses one in another */

#define CLASS_MEMORY	0x40
#define CLASS_PHYSICAL	0xc2
#define FLAG_VIRTUAL	0x80000
#define LOCATION(attr)	((attr) >> 25 & 3)
#define LOCATION_SYSTEM 1
#define HEAP_ALLOC_SIZE 2

/* What they have in common of NVOS21 and NVOS64. */
struct rm_alloc {
	uint32_t root, parent, object, class;
	uint64_t params;
};

/* NV_MEMORY_ALLOCATION_PARAMS up to its size. */
struct rm_memory {
	uint32_t owner, type, flags, width, height, pitch, attr, attr2, format, offset_low,
		range[4];
	uint64_t alignment, size;
};

/* NVOS32 up to the function. */
struct rm_heap {
	uint32_t root, parent, function;
};

struct rm_xfer {
	uint32_t command, size;
	uint64_t pointer;
};

static bool decode_alloc(uint64_t argument, gate_copy_fn copy, void *userdata, uint64_t *ret_bytes)
{
	struct rm_memory memory;
	struct rm_alloc alloc;

	if (!copy(userdata, argument, &alloc, sizeof(alloc)))
		return true;
	if (alloc.class != CLASS_MEMORY && alloc.class != CLASS_PHYSICAL)
		return false;
	if (!copy(userdata, alloc.params, &memory, sizeof(memory)))
		return true;
	if (memory.flags & FLAG_VIRTUAL || LOCATION(memory.attr) == LOCATION_SYSTEM)
		return false;
	*ret_bytes = memory.size;
	return true;
}

static bool decode_heap(uint64_t argument, gate_copy_fn copy, void *userdata)
{
	struct rm_heap heap;

	return !copy(userdata, argument, &heap, sizeof(heap)) || heap.function == HEAP_ALLOC_SIZE;
}

static bool decode_nr(unsigned nr, uint64_t argument, gate_copy_fn copy, void *userdata,
		      uint64_t *ret_bytes)
{
	switch (nr) {
	case RM_ALLOC:
		return decode_alloc(argument, copy, userdata, ret_bytes);
	case RM_VID_HEAP:
		return decode_heap(argument, copy, userdata);
	case RM_ALLOC_MEMORY:
	case RM_DUP_OBJECT:
	case RM_IMPORT_FROM_FD:
		return true;
	default:
		return false;
	}
}

bool gate_decode(uint32_t command, uint64_t argument, gate_copy_fn copy, void *userdata,
		 uint64_t *ret_bytes)
{
	struct rm_xfer xfer;
	unsigned nr = _IOC_NR(command);

	*ret_bytes = 0;
	if (_IOC_TYPE(command) != 'F')
		return command == UVM_SEMAPHORE_POOL;
	for (int i = 0; i < XFER_DEPTH && nr == RM_XFER; i++) {
		if (!copy(userdata, argument, &xfer, sizeof(xfer)))
			return true;
		nr = _IOC_NR(xfer.command);
		argument = xfer.pointer;
	}
	return nr == RM_XFER || decode_nr(nr, argument, copy, userdata, ret_bytes);
}
