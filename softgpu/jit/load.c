/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a reply to code in memory: the object file's sections, put together and made executable.
 *
 * The object is position-independent and calls nobody, so the only relocations are distances between
 * its own sections. Everything is checked as foreign bytes: the reply may come from a cache file.
 */
#include <elf.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "softgpu/jit/code.h"

#define SECTIONS_MAX 64
#define TEXT_MAX     (64u << 20)

struct object {
	const u8 *data;
	size_t size;
	const Elf64_Shdr *sections;
	u32 n_sections;
	const char *names;
	size_t names_size;
	u64 at[SECTIONS_MAX]; /* where each goes; only if placed */
	bool placed[SECTIONS_MAX];
	u8 *text;
	size_t text_size;
};

/* ---- reading ------------------------------------------------------------------------------------- */

static bool inside(const struct object *o, u64 offset, u64 size)
{
	return offset <= o->size && size <= o->size - offset;
}

static const char *section_name(const struct object *o, u32 i)
{
	u32 at = o->sections[i].sh_name;

	if (at >= o->names_size || !memchr(o->names + at, 0, o->names_size - at))
		return "";
	return o->names + at;
}

static bool read_object(struct object *o)
{
	const Elf64_Ehdr *h = (const Elf64_Ehdr *)o->data;
	const Elf64_Shdr *names;

	if (o->size < sizeof(*h) || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 ||
	    h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_machine != EM_X86_64 ||
	    h->e_type != ET_REL || h->e_shentsize != sizeof(Elf64_Shdr) ||
	    h->e_shnum > SECTIONS_MAX || h->e_shoff % 8 ||
	    !inside(o, h->e_shoff, (u64)h->e_shnum * sizeof(Elf64_Shdr)) ||
	    h->e_shstrndx >= h->e_shnum)
		return false;
	o->sections = (const Elf64_Shdr *)(o->data + h->e_shoff);
	o->n_sections = h->e_shnum;
	for (u32 i = 0; i < o->n_sections; i++) {
		const Elf64_Shdr *s = &o->sections[i];

		if (s->sh_type != SHT_NOBITS && !inside(o, s->sh_offset, s->sh_size))
			return false;
	}
	names = &o->sections[h->e_shstrndx];
	o->names = (const char *)o->data + names->sh_offset;
	o->names_size = names->sh_size;
	return names->sh_type == SHT_STRTAB;
}

/* ---- placing ------------------------------------------------------------------------------------- */

/* Nothing unwinds through it, and it has no data of its own. */
static bool is_wanted(const struct object *o, u32 i)
{
	const Elf64_Shdr *s = &o->sections[i];

	return s->sh_flags & SHF_ALLOC && s->sh_type == SHT_PROGBITS && s->sh_size &&
	       strcmp(section_name(o, i), ".eh_frame") != 0;
}

static bool place_sections(struct object *o)
{
	u64 end = 0;

	for (u32 i = 0; i < o->n_sections; i++) {
		const Elf64_Shdr *s = &o->sections[i];
		u64 align = s->sh_addralign ? s->sh_addralign : 1;

		if (!is_wanted(o, i))
			continue;
		if (align > 4096 || align & (align - 1) || s->sh_size > TEXT_MAX)
			return false;
		end = (end + align - 1) & ~(align - 1);
		o->at[i] = end;
		o->placed[i] = true;
		end += s->sh_size;
		if (end > TEXT_MAX)
			return false;
	}
	if (!end)
		return false;
	o->text_size = (end + 4095) & ~UINT64_C(4095);
	o->text = mmap(NULL, o->text_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	if (o->text == MAP_FAILED) {
		o->text = NULL;
		return false;
	}
	for (u32 i = 0; i < o->n_sections; i++) {
		if (o->placed[i])
			memcpy(o->text + o->at[i], o->data + o->sections[i].sh_offset,
			       o->sections[i].sh_size);
	}
	return true;
}

/* ---- relocations --------------------------------------------------------------------------------- */

static const Elf64_Sym *symbols_of(const struct object *o, u32 section, u64 *ret_n)
{
	const Elf64_Shdr *s;

	if (section >= o->n_sections)
		return NULL;
	s = &o->sections[section];
	if (s->sh_type != SHT_SYMTAB || s->sh_entsize != sizeof(Elf64_Sym) || s->sh_offset % 8)
		return NULL;
	*ret_n = s->sh_size / sizeof(Elf64_Sym);
	return (const Elf64_Sym *)(o->data + s->sh_offset);
}

static bool symbol_place(const struct object *o, const Elf64_Sym *symbol, u64 *ret)
{
	if (symbol->st_shndx >= o->n_sections || !o->placed[symbol->st_shndx] ||
	    symbol->st_value > o->sections[symbol->st_shndx].sh_size)
		return false;
	*ret = o->at[symbol->st_shndx] + symbol->st_value;
	return true;
}

static bool relocate(struct object *o, u32 target, const Elf64_Rela *r, const Elf64_Sym *symbol)
{
	u64 to, from = r->r_offset, type = ELF64_R_TYPE(r->r_info),
		size = type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
	u8 *at;
	u64 v;

	if (from > o->sections[target].sh_size || size > o->sections[target].sh_size - from ||
	    !symbol_place(o, symbol, &to))
		return false;
	from += o->at[target];
	at = o->text + from;
	switch (type) {
	case R_X86_64_PC32:
	case R_X86_64_PLT32:
	case R_X86_64_PC64:
		v = to + (u64)r->r_addend - from;
		break;
	case R_X86_64_64:
		v = (u64)(uintptr_t)o->text + to + (u64)r->r_addend;
		break;
	default:
		return false;
	}
	memcpy(at, &v, size);
	return true;
}

static bool relocate_section(struct object *o, const Elf64_Shdr *s)
{
	const Elf64_Sym *symbols;
	const Elf64_Rela *r;
	u64 n;

	if (s->sh_info >= o->n_sections || !o->placed[s->sh_info])
		return true;
	symbols = symbols_of(o, s->sh_link, &n);
	if (!symbols || s->sh_offset % 8 || s->sh_entsize != sizeof(*r))
		return false;
	r = (const Elf64_Rela *)(o->data + s->sh_offset);
	for (u64 i = 0; i < s->sh_size / sizeof(*r); i++) {
		if (ELF64_R_SYM(r[i].r_info) >= n ||
		    !relocate(o, s->sh_info, &r[i], &symbols[ELF64_R_SYM(r[i].r_info)]))
			return false;
	}
	return true;
}

static bool relocate_all(struct object *o)
{
	for (u32 i = 0; i < o->n_sections; i++) {
		if (o->sections[i].sh_type == SHT_RELA && !relocate_section(o, &o->sections[i]))
			return false;
	}
	return true;
}

static void *find_function(const struct object *o)
{
	for (u32 i = 0; i < o->n_sections; i++) {
		const Elf64_Shdr *s = &o->sections[i], *strings;
		const Elf64_Sym *symbols;
		u64 n = 0, place;

		if (s->sh_type != SHT_SYMTAB || s->sh_link >= o->n_sections)
			continue;
		symbols = symbols_of(o, i, &n);
		strings = &o->sections[s->sh_link];
		/* Of other kinds it need not lie in the file. */
		if (strings->sh_type != SHT_STRTAB)
			continue;
		for (u64 k = 0; symbols && k < n; k++) {
			u64 at = symbols[k].st_name;

			if (at + sizeof(JIT_SYMBOL) <= strings->sh_size &&
			    !memcmp(o->data + strings->sh_offset + at, JIT_SYMBOL,
				    sizeof(JIT_SYMBOL)) &&
			    symbol_place(o, &symbols[k], &place))
				return o->text + place;
		}
	}
	return NULL;
}

/* ---- tables -------------------------------------------------------------------------------------- */

/* Does it lie in the registers of @code? */
static bool is_value(const struct code *code, const struct jit_value *v)
{
	static const u32 bytes[] = { 4, 64, 128, 256, 512 };
	u32 n = 0;

	for (u32 c = 0; c < PTX_N_CLASSES; c++)
		n += code->class_count[c];
	return v->cls < PTX_CLASS_Q && v->scalar < n && v->place % 4 == 0 &&
	       (u64)v->place + bytes[v->cls] <= code->scalars;
}

static bool check_tables(const struct jit_code *jit, const struct code *code)
{
	for (u32 i = 0; i < jit->n_values; i++) {
		if (!is_value(code, &jit->values[i]))
			return false;
	}
	for (u32 i = 0; i < jit->n_entries; i++) {
		if ((u64)jit->entries[i].first + jit->entries[i].n > jit->n_values)
			return false;
	}
	for (u32 i = 0; i < jit->n_exits; i++) {
		if ((u64)jit->exits[i].first + jit->exits[i].n > jit->n_values ||
		    jit->exits[i].pc >= code->n_insns)
			return false;
	}
	return jit->n_entries == code->n_enters;
}

static bool load_tables(struct jit_code *jit, const struct jit_reply *reply,
			const struct code *code)
{
	const u8 *at = (const u8 *)(reply + 1);
	size_t entries = reply->n_entries * sizeof(*jit->entries),
	       exits = reply->n_exits * sizeof(*jit->exits);
	size_t values = reply->n_values * sizeof(*jit->values);

	jit->n_entries = reply->n_entries;
	jit->n_exits = reply->n_exits;
	jit->n_values = reply->n_values;
	jit->entries = malloc(entries + 1);
	jit->exits = malloc(exits + 1);
	jit->values = malloc(values + 1);
	if (!jit->entries || !jit->exits || !jit->values)
		return false;
	memcpy(jit->entries, at, entries);
	memcpy(jit->exits, at + entries, exits);
	memcpy(jit->values, at + entries + exits, values);
	return check_tables(jit, code);
}

/* ---- ends of the kernel -------------------------------------------------------------------------- */

/* What counts for lanes that end here, all of them; 0 if they do not. */
static u8 end_weight(const struct code *code, u32 at)
{
	const struct insn *in = code->insns + at, *end = code->insns + code->n_insns;
	u32 guard;

	while (in < end && (in->fn == flow_join || in->fn == flow_enter))
		in++;
	if (in == end || (in->fn != flow_ret && in->fn != flow_exit) ||
	    !(in->guard & OPERAND_CONST))
		return 0;
	memcpy(&guard, code->constants + (in->guard & ~OPERAND_CONST), sizeof(guard));
	return (guard ^ in->guard_xor) == ALL_LANES ? in->weight : 0;
}

static bool find_ends(struct jit_code *jit, const struct code *code)
{
	const struct insn *in = code->insns;

	jit->ends = malloc(jit->n_exits + 1);
	for (u32 i = 0; jit->ends && i < jit->n_exits; i++)
		jit->ends[i] = end_weight(code, jit->exits[i].pc);
	jit->from_start = in->fn == flow_enter && in->imm == 0 && !jit->entries[0].n;
	return jit->ends != NULL;
}

static bool is_reply(const struct jit_reply *r, size_t size)
{
	u64 tables;

	if (size < sizeof(*r) || r->magic != JIT_MAGIC || r->version != JIT_VERSION ||
	    r->size != size)
		return false;
	tables = (u64)r->n_entries * sizeof(struct jit_entry) +
		 (u64)r->n_exits * sizeof(struct jit_exit) +
		 (u64)r->n_values * sizeof(struct jit_value);
	return sizeof(*r) + tables == r->object_offset &&
	       (u64)r->object_offset + r->object_size == size &&
	       jit_hash(JIT_HASH_START, r + 1, size - sizeof(*r)) == r->checksum;
}

/* ---- all ----------------------------------------------------------------------------------------- */

static bool load_object(struct jit_code *jit, const struct jit_reply *reply)
{
	/* Structures of the file are read in place, so it has to be aligned. */
	u8 *copy = malloc(reply->object_size + 1);
	struct object o = { .data = copy, .size = reply->object_size };
	bool ok;

	if (!copy)
		return false;
	memcpy(copy, (const u8 *)reply + reply->object_offset, reply->object_size);
	ok = read_object(&o) && place_sections(&o) && relocate_all(&o);
	jit->text = o.text;
	jit->text_size = o.text_size;
	if (ok) {
		void *fn = find_function(&o);

		memcpy(&jit->fn, &fn, sizeof(fn));
		ok = fn && mprotect(o.text, o.text_size, PROT_READ | PROT_EXEC) == 0;
	}
	free(copy);
	return ok;
}

void jit_free(struct jit_code *jit)
{
	if (!jit)
		return;
	if (jit->text)
		munmap(jit->text, jit->text_size);
	free(jit->entries);
	free(jit->exits);
	free(jit->ends);
	free(jit->values);
	free(jit);
}

struct jit_code *jit_load(const struct jit_reply *reply, size_t size, const struct code *code,
			  const char **ret_why)
{
	struct jit_code *jit;

	*ret_why = "the reply is damaged";
	if (!is_reply(reply, size))
		return NULL;
	if (!reply->object_size) {
		*ret_why = "the compiler refuses it";
		return NULL;
	}
	jit = calloc(1, sizeof(*jit));
	if (!jit || !load_tables(jit, reply, code) || !find_ends(jit, code) ||
	    !load_object(jit, reply)) {
		jit_free(jit);
		*ret_why = "the code cannot be loaded";
		return NULL;
	}
	return jit;
}
