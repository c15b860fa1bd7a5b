// SPDX-License-Identifier: Apache-2.0
/*
 * A copy of libcuda or libnvidia-ml: where its calls are, found by their ELF symbols.
 *
 * An entry point is probed at its offset in the file. A call that is answered continues at a `ret` in the
 * code behind its entry: any byte 0xc3 of the same executable segment does, whatever the instruction that
 * it is a part of.
 */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "priv.h"

#define RET_BYTE	0xc3
#define RET_SEARCH	65536
#define BUILD_ID_NOTE	3

static const struct row rows[ROW_COUNT] = {
#include "rows.def"
};

#undef ROW
#define ROW(name, ...) [ROW_OF_##name] = #name,
static const char *const names[ROW_COUNT] = {
#include "rows.def"
};

/* Beginnings of names of calls that take device memory, should a newer driver bring one. */
static const char *const looks_allocating[] = {
	"cuMemAlloc", "cuMemCreate", "cuArrayCreate", "cuArray3DCreate", "cuMipmappedArrayCreate",
	"cuGraphAddMemAlloc",
};

const char *engine_row_name(unsigned row)
{
	return row < ROW_COUNT ? names[row] : "?";
}

static int row_by_name(const char *name)
{
	for (int i = 0; i < ROW_COUNT; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

static bool name_looks_allocating(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(looks_allocating); i++)
		if (strncmp(name, looks_allocating[i], strlen(looks_allocating[i])) == 0)
			return true;
	return false;
}

/* The executable segment that holds an address. */
static bool segment_of(Elf *elf, uint64_t address, GElf_Phdr *ret)
{
	size_t n;

	if (elf_getphdrnum(elf, &n))
		return false;
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(elf, i, ret) && ret->p_type == PT_LOAD && ret->p_flags & PF_X &&
		    address >= ret->p_vaddr && address - ret->p_vaddr < ret->p_filesz)
			return true;
	return false;
}

static int32_t find_ret(const uint8_t *bytes, size_t size, uint64_t offset, uint64_t end)
{
	if (end > size)
		end = size;
	if (end > offset + RET_SEARCH)
		end = offset + RET_SEARCH;
	for (uint64_t i = offset + 1; i < end; i++)
		if (bytes[i] == RET_BYTE)
			return i - offset;
	return 0;
}

static int image_add_unknown(struct library_image *image, const char *name)
{
	char (*grown)[64] = reallocarray(image->unknown, image->n_unknown + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	image->unknown = grown;
	snprintf(grown[image->n_unknown++], sizeof(*grown), "%s", name);
	return 0;
}

static int image_add_call(struct library_image *image, uint32_t row, uint64_t offset, int32_t ret_delta)
{
	struct library_call *grown;

	grown = reallocarray(image->calls, image->n_calls + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	image->calls = grown;
	grown[image->n_calls++] = (struct library_call){ row, offset, ret_delta };
	return 0;
}

static int image_add_symbol(struct library_image *image, Elf *elf, const GElf_Sym *symbol, const char *name)
{
	size_t size;
	const uint8_t *bytes = (const uint8_t *)elf_rawfile(elf, &size);
	int row = row_by_name(name);
	GElf_Phdr segment;
	uint64_t offset;

	if (row < 0)
		return name_looks_allocating(name) ? image_add_unknown(image, name) : 0;
	if (rows[row].action == ROW_NOTHING || !segment_of(elf, symbol->st_value, &segment))
		return 0;
	offset = symbol->st_value - segment.p_vaddr + segment.p_offset;
	return image_add_call(image, row, offset,
			      find_ret(bytes, size, offset, segment.p_offset + segment.p_filesz));
}

static int image_add_symbols(struct library_image *image, Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym symbol;
	int r;

	for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
		const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);

		if (!name || symbol.st_shndx == SHN_UNDEF || GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
			continue;
		r = image_add_symbol(image, elf, &symbol, name);
		if (r < 0)
			return r;
	}
	return 0;
}

static void image_read_build_id(struct library_image *image, Elf_Scn *section)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t at = 0, next, name_at, desc_at;
	GElf_Nhdr note;

	while (data && (next = gelf_getnote(data, at, &note, &name_at, &desc_at)) > 0) {
		const uint8_t *bytes = (const uint8_t *)data->d_buf + desc_at;

		if (note.n_type == BUILD_ID_NOTE)
			for (size_t i = 0; i < note.n_descsz && i < (sizeof(image->build_id) - 1) / 2; i++)
				snprintf(image->build_id + 2 * i, 3, "%02x", bytes[i]);
		at = next;
	}
}

static int image_read(struct library_image *image, Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	int r = 0;

	while (r == 0 && (section = elf_nextscn(elf, section)))
		if (!gelf_getshdr(section, &header))
			return -ENOEXEC;
		else if (header.sh_type == SHT_DYNSYM)
			r = image_add_symbols(image, elf, section, &header);
		else if (header.sh_type == SHT_NOTE)
			image_read_build_id(image, section);
	return r == 0 && image->n_calls == 0 ? -ENOEXEC : r;
}

static void elf_endp(Elf **elf)
{
	elf_end(*elf);
}

int library_read(int fd, struct library_image *ret)
{
	_cleanup_(elf_endp) Elf *elf = NULL;
	struct library_image image = {};
	GElf_Ehdr header;
	int r;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &header))
		return -ENOEXEC;
	/* A 32-bit copy has its arguments on the stack; no driver for those programs exists any more. */
	if (header.e_machine != EM_X86_64 || gelf_getclass(elf) != ELFCLASS64)
		return -ENOEXEC;
	r = image_read(&image, elf);
	if (r < 0) {
		library_image_done(&image);
		return r;
	}
	*ret = image;
	return 0;
}

void library_image_done(struct library_image *image)
{
	free(image->calls);
	free(image->unknown);
	*image = (struct library_image){};
}
