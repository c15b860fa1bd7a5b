/* SPDX-License-Identifier: Apache-2.0 */
#include "base/trim.h"

#include "base/base.h"

#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * Only what nobody has ever written to: relocations change what is read-only afterwards, but that lies in
 * segments that are to be written.
 */
static void forget_segment(uintptr_t base, const ElfW(Phdr) * segment)
{
	uintptr_t page = (uintptr_t)getpagesize();
	uintptr_t begin = (base + segment->p_vaddr) & -page;
	uintptr_t end = (base + segment->p_vaddr + segment->p_memsz + page - 1) & -page;

	if (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W))
		madvise((void *)begin, end - begin, MADV_DONTNEED);
}

static bool has_relocated_text(const struct dl_phdr_info *object)
{
	const ElfW(Dyn) * entry;
	int i;

	for (i = 0; i < object->dlpi_phnum; i++) {
		if (object->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		entry = (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
		for (; entry->d_tag != DT_NULL; entry++) {
			if (entry->d_tag == DT_TEXTREL ||
			    (entry->d_tag == DT_FLAGS && entry->d_un.d_val & DF_TEXTREL))
				return true;
		}
	}
	return false;
}

static int forget_object(struct dl_phdr_info *object, _unused_ size_t size, _unused_ void *userdata)
{
	int i;

	/* The kernel's own, which has no file. */
	if (object->dlpi_addr == getauxval(AT_SYSINFO_EHDR) || has_relocated_text(object))
		return 0;
	for (i = 0; i < object->dlpi_phnum; i++)
		forget_segment(object->dlpi_addr, &object->dlpi_phdr[i]);
	return 0;
}

void trim_memory(void)
{
	malloc_trim(0);
	dl_iterate_phdr(forget_object, NULL);
}
