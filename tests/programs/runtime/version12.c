// SPDX-License-Identifier: Apache-2.0
/*
 * A program of the runtime 12, in C and without its headers: memory, and the properties of a
 * device as that version lays them out.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define N_INTS 1000

/* The first fields, at the places that programs of that version read. */
struct properties {
	char name[256];
	unsigned char uuid[16], luid[8];
	unsigned luid_device_node_mask;
	size_t total_global_mem, shared_mem_per_block;
	int regs_per_block, warp_size;
	size_t mem_pitch;
	int max_threads_per_block, max_threads_dim[3], max_grid_size[3], clock_rate;
	size_t total_const_mem;
	int major, minor;
	size_t texture_alignment, texture_pitch_alignment;
	int device_overlap, multi_processor_count;
	unsigned char rest[1032 - 392];
	unsigned char beyond[64]; /* not the library's */
};

int cudaMalloc(void **ptr, size_t size_bytes);
int cudaMemcpy(void *dst, const void *src, size_t size_bytes, int kind);
int cudaFree(void *ptr);
int cudaGetDeviceProperties_v2(void *properties, int device);
int cudaRuntimeGetVersion(int *version);

static int properties_are_right(void)
{
	struct properties p;

	memset(&p, 0xa5, sizeof(p));
	if (cudaGetDeviceProperties_v2(&p, 0))
		return 0;
	for (size_t i = 0; i < sizeof(p.beyond); i++)
		if (p.beyond[i] != 0xa5)
			return 0;
	return strcmp(p.name, "SoftGPU 80GB") == 0 && p.warp_size == 32 && p.major == 8 &&
	       p.minor == 0 && p.multi_processor_count == 108 && p.max_threads_dim[2] == 64 &&
	       p.max_grid_size[0] == 0x7fffffff && p.clock_rate == 1410000 &&
	       p.total_global_mem >> 30 == 80;
}

static int memory_is_right(void)
{
	int from[N_INTS], back[N_INTS] = { 0 };
	void *ptr;

	for (int i = 0; i < N_INTS; i++)
		from[i] = i * 7;
	return !cudaMalloc(&ptr, sizeof(from)) &&
	       !cudaMemcpy(ptr, from, sizeof(from), /* cudaMemcpyHostToDevice */ 1) &&
	       !cudaMemcpy(back, ptr, sizeof(back), /* cudaMemcpyDeviceToHost */ 2) &&
	       !cudaFree(ptr) && memcmp(from, back, sizeof(from)) == 0;
}

int main(void)
{
	int version = 0;

	if (cudaRuntimeGetVersion(&version) || version / 1000 != 12)
		fprintf(stderr, "the runtime says version %d\n", version);
	else if (!properties_are_right())
		fprintf(stderr, "properties are wrong\n");
	else if (!memory_is_right())
		fprintf(stderr, "memory is wrong\n");
	else
		return puts("version 12 right") < 0;
	return 1;
}
