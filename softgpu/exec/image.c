/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linking: from parsed modules to an image.
 *
 * Names that modules show each other are joined in one table. Variables of
 * all modules are placed in two pieces of device memory, constants and the
 * rest. Shared memory is laid out per kernel, after a part that belongs to
 * all device functions, as these cannot know which kernel has called them.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "softgpu/exec/block.h"
#include "softgpu/exec/image.h"

/* Hardware has no more per thread; also what keeps a launch's memory within reason. */
#define LOCAL_MAX_BYTES (512u << 10)

int image_refuse(struct exec_image *image, const char *format, ...)
{
	va_list ap;

	if (image->log_size) {
		va_start(ap, format);
		vsnprintf(image->log, image->log_size, format, ap);
		va_end(ap);
	}
	return EXEC_E_LINK;
}

static u64 align_up(u64 v, u64 align)
{
	return align ? (v + align - 1) / align * align : v;
}

static const char *copy_name(struct exec_image *image, const char *name)
{
	return arena_copy(image->arena, name, strlen(name) + 1);
}

/* ---- names -------------------------------------------------------------------------------------- */

static u32 hash_name(const char *name)
{
	u32 h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (u8)*name) * 16777619u;
	return h;
}

static bool is_defined(const struct ptx_symbol *symbol)
{
	if (symbol->func)
		return symbol->func->defined;
	return symbol->linkage != PTX_LINK_EXTERN;
}

static bool is_private(const struct ptx_symbol *symbol)
{
	return symbol->nested || symbol->linkage == PTX_LINK_STATIC ||
	       (symbol->var && symbol->var->space == PTX_SPACE_SHARED);
}

static u8 builtin_of(const char *name)
{
	if (!strcmp(name, "vprintf"))
		return BUILTIN_VPRINTF;
	if (!strcmp(name, "__assertfail"))
		return BUILTIN_ASSERTFAIL;
	if (!strcmp(name, "malloc"))
		return BUILTIN_MALLOC;
	if (!strcmp(name, "__nv_aligned_device_malloc"))
		return BUILTIN_ALIGNED_MALLOC;
	if (!strcmp(name, "free"))
		return BUILTIN_FREE;
	/* Every program of relocatable code has them, as nvcc links its device runtime into it. */
	if (!strncmp(name, "cnp", 3) || !strncmp(name, "__cuda_syscall_", 15))
		return BUILTIN_NESTED;
	return BUILTIN_NONE;
}

static struct definition *definition_new(struct exec_image *image, const struct ptx_module *module,
					 const struct ptx_symbol *symbol)
{
	struct definition *d = arena_alloc(image->arena, sizeof(*d));

	if (!d)
		return NULL;
	d->name = copy_name(image, symbol->name);
	if (!d->name)
		return NULL;
	d->module = module;
	d->symbol = symbol;
	d->defined = is_defined(symbol);
	if (!d->defined && symbol->func)
		d->builtin = builtin_of(symbol->name);
	return d;
}

/* Both modules mean the same thing; whose is it? */
static int definition_join(struct exec_image *image, struct definition *d,
			   const struct ptx_module *module, const struct ptx_symbol *symbol)
{
	bool weak = symbol->linkage == PTX_LINK_WEAK || symbol->linkage == PTX_LINK_COMMON;
	bool was_weak =
		d->symbol->linkage == PTX_LINK_WEAK || d->symbol->linkage == PTX_LINK_COMMON;

	if (!symbol->func != !d->symbol->func)
		return image_refuse(image, "%s is a function here and a variable there", d->name);
	if (!is_defined(symbol) || (d->defined && weak))
		return 0;
	if (d->defined && !was_weak)
		return image_refuse(image, "%s is defined twice", d->name);
	d->module = module;
	d->symbol = symbol;
	d->defined = true;
	return 0;
}

static int link_symbol(struct exec_image *image, struct image_module *module, u32 index)
{
	const struct ptx_symbol *symbol = &module->ptx->symbols[index];
	struct definition **bucket, *d;

	bucket = &image->names[hash_name(symbol->name) & (image->n_names - 1)];
	if (!is_private(symbol)) {
		for (d = *bucket; d; d = d->next) {
			if (strcmp(d->name, symbol->name) != 0)
				continue;
			module->definitions[index] = d;
			return definition_join(image, d, module->ptx, symbol);
		}
	}
	d = definition_new(image, module->ptx, symbol);
	if (!d)
		return -ENOMEM;
	module->definitions[index] = d;
	if (!is_private(symbol)) {
		d->next = *bucket;
		*bucket = d;
	}
	return 0;
}

static int link_names(struct exec_image *image, struct ptx_module *const *modules)
{
	u32 n_symbols = 0;
	int r;

	for (u32 i = 0; i < image->n_modules; i++)
		n_symbols += modules[i]->n_symbols;
	for (image->n_names = 16; image->n_names < n_symbols; image->n_names *= 2)
		;
	image->names = arena_alloc(image->arena, image->n_names * sizeof(*image->names));
	image->modules = arena_alloc(image->arena, image->n_modules * sizeof(*image->modules));
	if (!image->names || !image->modules)
		return -ENOMEM;

	for (u32 i = 0; i < image->n_modules; i++) {
		struct image_module *m = &image->modules[i];

		m->ptx = modules[i];
		m->definitions = arena_alloc(image->arena,
					     (m->ptx->n_symbols + 1) * sizeof(*m->definitions));
		if (!m->definitions)
			return -ENOMEM;
		for (u32 s = 0; s < m->ptx->n_symbols; s++) {
			r = link_symbol(image, m, s);
			if (r)
				return r;
		}
	}
	return 0;
}

/* ---- variables ---------------------------------------------------------------------------------- */

/* Walks the definitions once each: those that the module's own symbol defines. */
static bool owns(const struct image_module *m, u32 s)
{
	const struct definition *d = m->definitions[s];

	return d->defined && d->symbol == &m->ptx->symbols[s];
}

#define FOR_DEFINITIONS(image, m, s)                                                               \
	for (u32 i_ = 0; i_ < (image)->n_modules; i_++)                                            \
		for (struct image_module *m = &(image)->modules[i_]; m; m = NULL)                  \
			for (u32 s = 0; s < m->ptx->n_symbols; s++)                                \
				if (owns(m, s))

/* Offsets of all variables of a space, one after the other. */
static u64 layout_space(struct exec_image *image, u8 space)
{
	u64 end = 0;

	FOR_DEFINITIONS(image, m, s)
	{
		const struct ptx_var *var = m->ptx->symbols[s].var;
		struct definition *d = m->definitions[s];

		if (!var || var->space != space)
			continue;
		end = align_up(end, var->align);
		d->addr = end;
		d->placed = true;
		end += var->size;
	}
	return end;
}

static void add_base(struct exec_image *image, u8 space, u64 base)
{
	FOR_DEFINITIONS(image, m, s)
	{
		const struct ptx_var *var = m->ptx->symbols[s].var;

		if (var && var->space == space)
			m->definitions[s]->addr += base;
	}
}

static int place_space(struct exec_image *image, u8 space, u64 *ret_addr, u64 *ret_size)
{
	u64 size = layout_space(image, space), addr;
	int r;

	*ret_size = size;
	if (!size)
		return 0;
	r = image->place.alloc(image->place.arg, size, 256, &addr);
	if (r)
		return r;
	*ret_addr = addr;
	add_base(image, space, addr);
	return 0;
}

/* The value of an address in a variable's initial bytes. */
static u64 reloc_value(const struct image_module *m, const struct ptx_reloc *reloc)
{
	const struct definition *d = m->definitions[reloc->symbol];
	u64 v = d->symbol->func ? d->function : d->addr;

	if (reloc->generic && d->symbol->var && d->symbol->var->space == PTX_SPACE_SHARED)
		v += SHARED_WINDOW;
	return (v + (u64)reloc->addend) >> reloc->shift;
}

static void write_initial(const struct image_module *m, const struct ptx_var *var, u64 addr)
{
	u8 *at = (u8 *)(uintptr_t)addr;

	if (var->init)
		memcpy(at, var->init, var->size);
	else
		memset(at, 0, var->size);
	for (u32 i = 0; i < var->n_relocs; i++) {
		u64 v = reloc_value(m, &var->relocs[i]);

		memcpy(at + var->relocs[i].offset, &v, var->relocs[i].bytes);
	}
}

static int place_variables(struct exec_image *image)
{
	u64 global_bytes;
	int r;

	r = place_space(image, PTX_SPACE_CONST, &image->const_addr, &image->const_bytes);
	if (r)
		return r;
	r = place_space(image, PTX_SPACE_GLOBAL, &image->global_addr, &global_bytes);
	if (r)
		return r;
	FOR_DEFINITIONS(image, m, s)
	{
		const struct ptx_var *var = m->ptx->symbols[s].var;

		if (var && var->space != PTX_SPACE_SHARED)
			write_initial(m, var, m->definitions[s]->addr);
	}
	return 0;
}

/* Those that the host can ask for by name. */
static int list_globals(struct exec_image *image)
{
	u32 n = 0;

	FOR_DEFINITIONS(image, m, s)
	n += m->ptx->symbols[s].var != NULL;
	image->globals = arena_alloc(image->arena, (n + 1) * sizeof(*image->globals));
	if (!image->globals)
		return -ENOMEM;
	FOR_DEFINITIONS(image, m, s)
	{
		const struct ptx_symbol *symbol = &m->ptx->symbols[s];

		if (!symbol->var || symbol->nested || symbol->var->space == PTX_SPACE_SHARED)
			continue;
		image->globals[image->n_globals++] = (struct image_global){
			.name = m->definitions[s]->name,
			.addr = m->definitions[s]->addr,
			.size = symbol->var->size,
		};
	}
	return 0;
}

/* ---- functions ---------------------------------------------------------------------------------- */

/* Every function has its code and its address before any is decoded, so that they can call. */
static int number_functions(struct exec_image *image)
{
	u32 n = 0, n_kernels = 0;

	FOR_DEFINITIONS(image, m, s)
	n += m->ptx->symbols[s].func != NULL;
	image->functions = arena_alloc(image->arena, (n + 1) * sizeof(*image->functions));
	image->kernels = arena_alloc(image->arena, (n + 1) * sizeof(*image->kernels));
	if (!image->functions || !image->kernels)
		return -ENOMEM;
	FOR_DEFINITIONS(image, m, s)
	{
		struct definition *d = m->definitions[s];

		if (!d->symbol->func)
			continue;
		d->code = arena_alloc(image->arena, sizeof(*d->code));
		if (!d->code)
			return -ENOMEM;
		d->code->name = d->name;
		d->function = FUNCTION_WINDOW + 16 * (u64)(image->n_functions + 1);
		image->functions[image->n_functions++] = d->code;
		n_kernels += d->symbol->func->kernel;
	}
	image->n_kernels = n_kernels;
	return 0;
}

const struct code *image_function(const struct exec_image *image, u64 addr)
{
	u64 number = (addr - FUNCTION_WINDOW) / 16;

	if (addr % 16 || number == 0 || number > image->n_functions)
		return NULL;
	return image->functions[number - 1];
}

static int describe_params(struct exec_image *image, const struct ptx_proto *proto,
			   struct exec_kernel *k)
{
	struct exec_param *params;

	params = arena_alloc(image->arena, (proto->n_params + 1) * sizeof(*params));
	if (!params)
		return -ENOMEM;
	for (u32 i = 0; i < proto->n_params; i++) {
		params[i].offset = proto->params[i].offset;
		params[i].size = proto->params[i].size;
	}
	k->params = params;
	k->n_params = proto->n_params;
	k->param_bytes = proto->param_bytes;
	return 0;
}

/*
 * Hardware's registers cannot be known without compiling for it. What is
 * alive at once here is more, as nothing is reordered to make it less, so the
 * number is held to what lets a block of any size run.
 */
static u32 estimate_regs(const struct code *code)
{
	u32 n = 10 + code->n_words;

	return n < 16 ? 16 : n > 64 ? 64 : n;
}

static u32 block_threads(const u32 dim[3])
{
	u64 n = 1;

	for (int i = 0; i < 3; i++)
		n *= dim[i] ? dim[i] : 1;
	return n > 1024 ? 1024 : (u32)n;
}

static u32 max_threads(const struct ptx_function *f)
{
	if (f->req_ntid[0])
		return block_threads(f->req_ntid);
	return f->max_ntid[0] ? block_threads(f->max_ntid) : 1024;
}

/* Does a kernel reach what device functions have in shared memory? */
static bool uses_common(const struct image_module *m, const struct ptx_function *f)
{
	for (u32 i = 0; i < f->n_insns; i++) {
		if (f->insns[i].op == PTX_OP_CALL)
			return true;
	}
	for (u32 i = 0; i < f->n_operands; i++) {
		const struct definition *d;

		if (f->operands[i].kind != PTX_SYM)
			continue;
		d = m->definitions[f->operands[i].index];
		if (d->symbol->var && d->symbol->var->space == PTX_SPACE_SHARED && d->placed &&
		    !d->placed_by)
			return true;
	}
	return false;
}

static int decode_kernel(struct exec_image *image, struct image_module *m, struct definition *d,
			 u32 index)
{
	const struct ptx_function *f = d->symbol->func;
	struct image_kernel *ik = &image->kernels[index];
	struct exec_kernel *k = &ik->kernel;
	u32 shared = uses_common(m, f) ? image->common_shared : 0;
	int r;

	r = describe_params(image, &m->ptx->protos[f->proto], k);
	if (r)
		return r;
	r = decode_function(image, m, f, d->code, index + 1, &shared);
	if (r)
		return r;
	ik->code = d->code;
	k->image = image;
	k->name = d->name;
	k->shared_bytes = shared;
	k->const_bytes = (u32)image->const_bytes;
	k->n_regs = estimate_regs(d->code);
	k->max_threads = max_threads(f);
	memcpy(k->required, f->req_ntid, sizeof(k->required));
	k->ptx_version = m->ptx->target;
	return 0;
}

static int decode_all(struct exec_image *image)
{
	u32 n_kernels = 0;
	int r;

	FOR_DEFINITIONS(image, m, s)
	{
		struct definition *d = m->definitions[s];

		if (!d->symbol->func || d->symbol->func->kernel)
			continue;
		r = decode_function(image, m, d->symbol->func, d->code, 0, &image->common_shared);
		if (r)
			return r;
	}
	FOR_DEFINITIONS(image, m, s)
	{
		struct definition *d = m->definitions[s];

		if (!d->symbol->func || !d->symbol->func->kernel)
			continue;
		r = decode_kernel(image, m, d, n_kernels++);
		if (r)
			return r;
	}
	return 0;
}

/* ---- how much local memory a kernel needs ------------------------------------------------------- */

/* Of the deepest chain of calls; sets *@deep where its length is not known. */
static u32 local_need(struct code *code, u32 depth, bool *deep)
{
	u32 most = 0;

	if (code->measured) {
		*deep |= code->deep;
		return code->local_need;
	}
	if (code->visiting || depth > 64) {
		code->deep = true;
		*deep = true;
		return 0;
	}
	code->visiting = true;
	for (u32 i = 0; i < code->n_callees; i++) {
		u32 need = local_need(code->callees[i], depth + 1, &code->deep);

		most = need > most ? need : most;
	}
	code->visiting = false;
	code->measured = true;
	*deep |= code->deep;
	/* The callee's frame starts at a multiple of its alignment, 128 at most. */
	code->local_need = (u32)align_up(code->local_bytes, 16) + (most ? most + 128 : 0);
	return code->local_need;
}

static int measure_kernels(struct exec_image *image)
{
	for (u32 i = 0; i < image->n_kernels; i++) {
		struct image_kernel *k = &image->kernels[i];

		k->kernel.local_bytes = local_need(k->code, 0, &k->needs_stack);
		if (k->kernel.local_bytes > LOCAL_MAX_BYTES)
			return image_refuse(image,
					    "%s needs %u bytes of local memory, %u are there",
					    k->kernel.name, k->kernel.local_bytes, LOCAL_MAX_BYTES);
	}
	return 0;
}

/* ---- the public part ---------------------------------------------------------------------------- */

static int image_link(struct exec_image *image, struct ptx_module *const *modules)
{
	int r;

	r = link_names(image, modules);
	if (r)
		return r;
	r = number_functions(image);
	if (r)
		return r;
	r = place_variables(image);
	if (r)
		return r;
	r = list_globals(image);
	if (r)
		return r;
	r = decode_all(image);
	if (r)
		return r;
	return measure_kernels(image);
}

int exec_image_new(struct ptx_module *const *modules, size_t n_modules,
		   const struct exec_place *place, char *log, size_t log_size,
		   struct exec_image **ret)
{
	struct exec_image *image;
	int r;

	if (log_size)
		log[0] = '\0';
	image = calloc(1, sizeof(*image));
	if (!image)
		return -ENOMEM;
	image->arena = arena_new();
	image->place = *place;
	image->log = log;
	image->log_size = log_size;
	image->n_modules = (u32)n_modules;
	r = image->arena ? image_link(image, modules) : -ENOMEM;
	if (r) {
		exec_image_free(image);
		return r;
	}
	/* The modules may go now. */
	image->modules = NULL;
	image->names = NULL;
	image->log_size = 0;
	*ret = image;
	return 0;
}

void exec_image_free(struct exec_image *image)
{
	if (!image)
		return;
	for (u32 i = 0; exec_compiler && i < image->n_functions; i++) {
		if (image->functions[i])
			exec_compiler->forget(image->functions[i]);
	}
	if (image->const_addr)
		image->place.free(image->place.arg, image->const_addr);
	if (image->global_addr)
		image->place.free(image->place.arg, image->global_addr);
	if (image->arena)
		arena_free(image->arena);
	free(image);
}

const struct exec_kernel *exec_kernel_at(const struct exec_image *image, size_t index)
{
	return index < image->n_kernels ? &image->kernels[index].kernel : NULL;
}

const struct exec_kernel *exec_kernel_find(const struct exec_image *image, const char *name)
{
	for (u32 i = 0; i < image->n_kernels; i++) {
		if (!strcmp(image->kernels[i].kernel.name, name))
			return &image->kernels[i].kernel;
	}
	return NULL;
}

bool exec_image_uses_heap(const struct exec_image *image)
{
	return image->uses_heap;
}

bool exec_global_find(const struct exec_image *image, const char *name, uint64_t *ret_addr,
		      uint64_t *ret_size)
{
	for (u32 i = 0; i < image->n_globals; i++) {
		if (strcmp(image->globals[i].name, name) != 0)
			continue;
		*ret_addr = image->globals[i].addr;
		*ret_size = image->globals[i].size;
		return true;
	}
	return false;
}
