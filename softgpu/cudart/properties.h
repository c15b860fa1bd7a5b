/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One version's cudaDeviceProp and the call that fills it: a template. The includer
 * defines PROPERTIES (the structure's name), PROPERTIES_CALL (the call's) and the words of
 * properties.def as macros that keep a field or drop it.
 */
struct PROPERTIES {
#define FIELD(versions, type, name)	       versions(type name;)
#define VALUE(versions, type, name, attribute) versions(type name;)
#define PAIR(versions, name, ...)	       versions(int name[2];)
#define TRIPLE(versions, name, ...)	       versions(int name[3];)
#include "softgpu/cudart/properties.def"
#undef FIELD
#undef VALUE
#undef PAIR
#undef TRIPLE
};

EXPANDED_CALL(PROPERTIES_CALL, struct PROPERTIES *p, int device)
{
	cudaError_t error = runtime_ready();

	if (!p)
		return failed(cudaErrorInvalidValue);
	if (error)
		return error;
	if (device < 0 || device >= runtime_n_devices())
		return failed(cudaErrorInvalidDevice);

	memset(p, 0, sizeof(*p));
	driver.cuDeviceGetName(p->name, sizeof(p->name), device);
	driver.cuDeviceGetUuid(&p->uuid, device);
	driver.cuDeviceGetLuid(p->luid, &p->luidDeviceNodeMask, device);
	driver.cuDeviceTotalMem(&p->totalGlobalMem, device);
#define FIELD(versions, type, name)
#define VALUE(versions, type, name, attribute)                                                     \
	versions(p->name = (type)attribute_of(CU_DEVICE_ATTRIBUTE_##attribute, device);)
#define PAIR(versions, name, a, b)                                                                 \
	versions(p->name[0] = attribute_of(CU_DEVICE_ATTRIBUTE_##a, device);                       \
		 p->name[1] = attribute_of(CU_DEVICE_ATTRIBUTE_##b, device);)
#define TRIPLE(versions, name, a, b, c)                                                            \
	PAIR(versions, name, a, b)                                                                 \
	versions(p->name[2] = attribute_of(CU_DEVICE_ATTRIBUTE_##c, device);)
#include "softgpu/cudart/properties.def"
#undef FIELD
#undef VALUE
#undef PAIR
#undef TRIPLE
	return cudaSuccess;
}

#undef PROPERTIES
#undef PROPERTIES_CALL
#undef ALL
#undef BEFORE_13
#undef ONLY_12
#undef SINCE_12
#undef SINCE_13
