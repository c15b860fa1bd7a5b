// SPDX-License-Identifier: Apache-2.0
/*
 * A copy of libcuda or libnvidia-ml: where its calls are, found by their ELF symbols.
 *
 * An entry point is probed at its offset in the file. A call that is answered continues at a `ret`
 * in the code behind its entry: any byte 0xc3 of the same executable segment does, whatever the
 * instruction that it is a part of.
 */
#include <ctype.h>
#include <errno.h>
#include <gelf.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cuda/calls.h"
#include "library.h"
#include "rows.h"

#define RET_BYTE      0xc3
#define RET_SEARCH    65536
#define RET_FIRST     256 /* most calls are shorter */
#define RET_PIECE     4096
#define BUILD_ID_NOTE 3
#define TABLE_MAX     (64UL << 20)    /* libtorch_cuda's symbols take half of it */
#define CALLS_MAX     (4 * ROW_COUNT) /* several symbol versions of one name may be */
#define UNKNOWN_MAX   64

static const struct row rows[ROW_COUNT] = {
#include "rows.def"
};

#undef ROW
#define ROW(name, ...) [ROW_OF_##name] = #name,
static const char *const names[ROW_COUNT] = {
#include "rows.def"
};

/*
 * Words in the name of a call that say what it does. One that a newer driver brings may take memory unless
 * a word says that it looks, gives back or works with what is there, and none that it makes something.
 * cuCtxSetLimit() is why to set something is not among them.
 */
static const char *const words_that_take_nothing[] = {
	"Can",	      "Cancel",	  "Close",	 "Copy",  "Delete", "Destroy", "Detach",
	"Disable",    "Discard",  "Enumerate",	 "Free",  "Get",    "Has",     "Is",
	"Memcpy",     "Memset",	  "Print",	 "Query", "Record", "Release", "Remove",
	"Signal",     "Stop",	  "Synchronize", "Trim",  "Unbind", "Unload",  "Unmap",
	"Unregister", "Validate", "Wait",
};
static const char *const words_that_make[] = {
	"Add",	    "Alloc",   "Attach",      "Begin",	 "Bind",   "Clone", "Create",
	"Grow",	    "Import",  "Instantiate", "Load",	 "Map",	   "Open",  "Push",
	"Register", "Reserve", "Resize",      "Restore", "Retain",
};

const char *library_call_name(uint32_t row)
{
	return row < ROW_COUNT ? names[row] : "?";
}

/*
 * All names that are known: rows, and calls that need none. In order, as each of a library's thousand symbols
 * is looked up while whoever has just mapped it runs on.
 */
#define NO_ROW (-1)

struct known {
	const char *name;
	int row;
};

static int known_compare(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static const struct known *known_find(const char *name)
{
	static struct known all[ROW_COUNT + CALL_N];
	static size_t n;

	if (n == 0) {
		for (int i = 0; i < ROW_COUNT; i++)
			all[n++] = (struct known){ names[i], i };
		qsort(all, n, sizeof(*all), known_compare);
		for (int i = 0; i < CALL_N; i++) {
			struct known call = { calls[i].name, NO_ROW };

			if (!bsearch(&call, all, ROW_COUNT, sizeof(call), known_compare))
				all[n++] = call;
		}
		qsort(all, n, sizeof(*all), known_compare);
	}
	return bsearch(&(struct known){ .name = name }, all, n, sizeof(*all), known_compare);
}

/* Words begin with a capital: MemAlloc has two, Allocation one. */
static bool name_has_word(const char *name, const char *const *words, size_t n_words)
{
	for (const char *at = name; *at; at++) {
		size_t n = strcspn(at + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") + 1;

		for (size_t i = 0; i < n_words; i++)
			if (strlen(words[i]) == n && strncmp(at, words[i], n) == 0)
				return true;
	}
	return false;
}

static bool name_looks_allocating(const char *name)
{
	if (strncmp(name, "cu", 2) != 0 || !isupper((unsigned char)name[2]))
		return false;
	return name_has_word(name, words_that_make, ARRAY_SIZE(words_that_make)) ||
	       !name_has_word(name, words_that_take_nothing, ARRAY_SIZE(words_that_take_nothing));
}

/* --- calls
 * ------------------------------------------------------------------------------------------- */

static const struct library_code *code_of(const struct library_image *image, uint64_t address)
{
	for (size_t i = 0; i < image->n_code; i++)
		if (address >= image->code[i].address &&
		    address - image->code[i].address < image->code[i].size)
			return &image->code[i];
	return NULL;
}

static int32_t find_ret(int fd, uint64_t offset, uint64_t from, uint64_t end)
{
	uint8_t bytes[RET_PIECE];

	for (uint64_t at = from; at < end;) {
		ssize_t n = pread(fd, bytes, MIN(sizeof(bytes), end - at), at);
		const uint8_t *found = n > 0 ? memchr(bytes, RET_BYTE, n) : NULL;

		if (n <= 0)
			return 0;
		if (found)
			return at - offset + (found - bytes);
		at += n;
	}
	return 0;
}

/*
 * An entry is probed behind its endbr64: the kernel steps over that one out of line, which costs several
 * times the rest of a probe, and emulates what mostly follows, a push or a jump.
 */
static void call_read_code(int fd, struct library_call *call, uint64_t offset, uint64_t end)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	uint8_t bytes[RET_FIRST];
	ssize_t n = pread(fd, bytes, MIN(sizeof(bytes), end - offset), offset);
	size_t skip = n >= (ssize_t)sizeof(endbr64) && memcmp(bytes, endbr64, sizeof(endbr64)) == 0
			      ? sizeof(endbr64)
			      : 0;
	const uint8_t *entry = bytes + skip, *found = NULL;

	call->offset = offset + skip;
	if (n > (ssize_t)skip + 1)
		found = memchr(entry + 1, RET_BYTE, n - skip - 1);
	call->ret_delta = found ? found - entry
				: find_ret(fd, call->offset, offset + MAX(n, (ssize_t)skip + 1),
					   MIN(end, call->offset + RET_SEARCH));
}

static int image_add_unknown(struct library_image *image, const char *name)
{
	char(*grown)[LIBRARY_NAME];

	if (image->n_unknown == UNKNOWN_MAX)
		return 0;
	grown = reallocarray(image->unknown, image->n_unknown + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	image->unknown = grown;
	snprintf(grown[image->n_unknown++], sizeof(*grown), "%s", name);
	return 0;
}

static bool image_has_call(const struct library_image *image, uint32_t row, uint64_t address)
{
	for (size_t i = 0; i < image->n_calls; i++)
		if (image->calls[i].row == row && image->calls[i].address == address)
			return true;
	return false;
}

static int image_add_call(int fd, struct library_image *image, uint32_t row, uint64_t address)
{
	const struct library_code *code = code_of(image, address);
	struct library_call *grown;

	if (image_has_call(image, row, address))
		return 0;
	if (!code || image->n_calls == CALLS_MAX)
		return -ENOEXEC;
	grown = reallocarray(image->calls, image->n_calls + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	image->calls = grown;
	grown[image->n_calls] = (struct library_call){ .row = row, .address = address };
	call_read_code(fd, &grown[image->n_calls++], code->offset + (address - code->address),
		       code->offset + code->size);
	return 0;
}

int library_add(int fd, struct library_image *image, const char *name, uint64_t address)
{
	const struct known *known;

	/* Most programs' symbols end here. */
	if (strncmp(name, "cu", 2) != 0 && strncmp(name, "nvml", 4) != 0)
		return 0;
	known = known_find(name);
	if (!known)
		return name_looks_allocating(name) ? image_add_unknown(image, name) : 0;
	if (known->row == NO_ROW || rows[known->row].action == ROW_NOTHING)
		return 0;
	return image_add_call(fd, image, known->row, address);
}

bool library_has(const struct library_image *image, const char *name)
{
	const struct known *known = known_find(name);

	for (size_t i = 0; known && i < image->n_calls; i++)
		if ((int)image->calls[i].row == known->row)
			return true;
	return false;
}

/* --- the file
 * ---------------------------------------------------------------------------------------- */

/* A file of debug symbols has the segments' sizes in memory, and none of their bytes. */
static void image_read_code(struct library_image *image, Elf *elf, enum library_symbols which)
{
	GElf_Phdr segment;
	size_t n;

	if (elf_getphdrnum(elf, &n))
		return;
	for (size_t i = 0; i < n && image->n_code < LIBRARY_CODE; i++) {
		uint64_t size;

		if (!gelf_getphdr(elf, i, &segment) || segment.p_type != PT_LOAD ||
		    !(segment.p_flags & PF_X))
			continue;
		size = which == LIBRARY_ALL ? segment.p_memsz : segment.p_filesz;
		if (segment.p_offset <= INT64_MAX && size <= INT64_MAX - segment.p_offset)
			image->code[image->n_code++] =
				(struct library_code){ segment.p_vaddr, segment.p_offset, size };
	}
}

/* A section's bytes, unless there are more of them than a driver has. */
static Elf_Data *section_data(Elf_Scn *section)
{
	GElf_Shdr header;

	if (!section || !gelf_getshdr(section, &header) || header.sh_size > TABLE_MAX)
		return NULL;
	return elf_getdata(section, NULL);
}

static int image_add_symbols(int fd, struct library_image *image, Elf *elf, Elf_Scn *section,
			     size_t strings)
{
	Elf_Data *data = section_data(section);
	GElf_Sym symbol;
	int r;

	if (!data || !section_data(elf_getscn(elf, strings)))
		return 0;
	for (int i = 0; gelf_getsym(data, i, &symbol); i++) {
		const char *name = elf_strptr(elf, strings, symbol.st_name);

		if (!name || symbol.st_shndx == SHN_UNDEF ||
		    GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
			continue;
		image->looks_up |=
			strncmp(name, "cuGetProcAddress", strlen("cuGetProcAddress")) == 0;
		r = library_add(fd, image, name, symbol.st_value);
		/* A symbol that leads outside the code is nobody's entry. */
		if (r < 0 && (r != -ENOEXEC || image->n_calls == CALLS_MAX))
			return r;
	}
	return 0;
}

static void image_read_build_id(struct library_image *image, Elf_Scn *section)
{
	Elf_Data *data = section_data(section);
	size_t at = 0, next, name_at, desc_at;
	GElf_Nhdr note;

	while (data && (next = gelf_getnote(data, at, &note, &name_at, &desc_at)) > 0) {
		const uint8_t *bytes = (const uint8_t *)data->d_buf + desc_at;

		if (note.n_type == BUILD_ID_NOTE && note.n_namesz == 4 &&
		    memcmp((const char *)data->d_buf + name_at, "GNU", 4) == 0)
			for (size_t i = 0; i < note.n_descsz && i < (LIBRARY_BUILD_ID - 1) / 2; i++)
				snprintf(image->build_id + 2 * i, 3, "%02x", bytes[i]);
		at = next;
	}
}

static int image_read(int fd, struct library_image *image, Elf *elf, enum library_symbols which)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	int r = 0;

	image_read_code(image, elf, which);
	while (r == 0 && (section = elf_nextscn(elf, section)))
		if (!gelf_getshdr(section, &header))
			return -ENOEXEC;
		else if (header.sh_type == SHT_DYNSYM ||
			 (header.sh_type == SHT_SYMTAB && which == LIBRARY_ALL))
			r = image_add_symbols(fd, image, elf, section, header.sh_link);
		else if (header.sh_type == SHT_NOTE)
			image_read_build_id(image, section);
	return r;
}

/*
 * A 32-bit copy has its arguments on the stack; no driver for those programs exists any more.
 * libelf makes room for as many sections as the file says, up to the file's size when the header
 * has no count.
 */
static bool header_is_ours(int fd)
{
	Elf64_Ehdr h;

	return pread(fd, &h, sizeof(h), 0) == sizeof(h) &&
	       memcmp(h.e_ident, ELFMAG, SELFMAG) == 0 && h.e_ident[EI_CLASS] == ELFCLASS64 &&
	       h.e_ident[EI_DATA] == ELFDATA2LSB && h.e_machine == EM_X86_64 && h.e_shnum != 0 &&
	       h.e_phnum != PN_XNUM;
}

static void elf_endp(Elf **elf)
{
	elf_end(*elf);
}

int library_read(int fd, enum library_symbols which, struct library_image *ret)
{
	_cleanup_(elf_endp) Elf *elf = NULL;
	struct library_image image = {};
	int r;

	if (!header_is_ours(fd))
		return -ENOEXEC;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF)
		return -ENOEXEC;
	r = image_read(fd, &image, elf, which);
	if (r < 0) {
		library_image_done(&image);
		return r;
	}
	*ret = image;
	return 0;
}

int library_take_launches(struct library_image *image, struct library_call **ret, size_t *ret_n)
{
	struct library_call *launches = calloc(image->n_calls + 1, sizeof(*launches));
	size_t kept = 0, n = 0;

	if (!launches)
		return -ENOMEM;
	for (size_t i = 0; i < image->n_calls; i++) {
		if (ROW_IS_LAUNCH(rows[image->calls[i].row].action))
			launches[n++] = image->calls[i];
		else
			image->calls[kept++] = image->calls[i];
	}
	image->n_calls = kept;
	*ret = launches;
	*ret_n = n;
	return 0;
}

void library_image_done(struct library_image *image)
{
	free(image->calls);
	free(image->unknown);
	*image = (struct library_image){};
}
