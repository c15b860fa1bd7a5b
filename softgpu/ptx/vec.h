/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays that grow while a module is read, of any type: `struct ptx_insn *insns; struct vec v;`
 * would lose the type, so the array is a pointer of its own type beside two counts.
 */
#ifndef SOFTGPU_PTX_VEC_H
#define SOFTGPU_PTX_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* VEC() - declares members of a struct: the array [name], how many it has, how many fit */
#define VEC(type, name)                                                                            \
	type *name;                                                                                \
	uint32_t n_##name, cap_##name

static inline bool vec_grow(void **array, uint32_t *cap, uint32_t need, size_t size)
{
	uint32_t want = *cap ? *cap : 16;
	void *grown;

	while (want < need) {
		if (want > UINT32_MAX / 2)
			return false;
		want *= 2;
	}
	grown = realloc(*array, want * size);
	if (!grown)
		return false;
	*array = grown;
	*cap = want;
	return true;
}

/* vec_room() - makes room for @more elements; false where there is no memory */
#define vec_room(s, name, more)                                                                    \
	((s)->cap_##name - (s)->n_##name >= (more) ||                                              \
	 vec_grow((void **)&(s)->name, &(s)->cap_##name, (s)->n_##name + (more),                   \
		  sizeof(*(s)->name)))

#endif
