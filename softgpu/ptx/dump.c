/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/ptx/dump.h"

static const char *const space_names[] = { "", ".global", ".shared", ".local", ".const", ".param" };
static const char *const linkage_names[] = { "", ".extern ", ".visible ", ".weak ", ".common " };
static const char *const cmp_names[] = {
	"",    ".eq",  ".ne",  ".lt",  ".le",  ".gt",  ".ge",  ".lo",  ".ls",  ".hi",
	".hs", ".equ", ".neu", ".ltu", ".leu", ".gtu", ".geu", ".num", ".nan",
};
static const char *const bop_names[] = {
	"", ".and", ".or", ".xor", ".add", ".min", ".max", ".inc", ".dec", ".exch", ".cas", ".popc",
};
static const char *const round_names[] = { "",	   ".rn",  ".rz",  ".rm",  ".rp",
					   ".rna", ".rni", ".rzi", ".rmi", ".rpi" };
static const char *const sem_names[] = { "",	     ".weak",	 ".volatile",
					 ".relaxed", ".acquire", ".release",
					 ".acq_rel", ".sc",	 ".mmio" };
static const char *const scope_names[] = { "", ".cta", ".cluster", ".gpu", ".sys" };
static const char *const sreg_names[] = {
#define PTX_SREG(e, name, type) [PTX_SREG_##e] = name,
#include "softgpu/ptx/ptx-sregs.def"
};

/* clang-format off */
static void dump_address(const struct ptx_module *m, const struct ptx_operand *op, FILE *to)
{
	long long offset = (long long)op->imm;

	switch (op->kind) {
	case PTX_REG: fprintf(to, "%%%c%u", "phwdq"[op->cls], op->index); break;
	case PTX_SYM: fputs(m->symbols[op->index].name, to); break;
	case PTX_FRAME: fputs("frame", to); break;
	case PTX_PARAM: fputs("param", to); break;
	default: fprintf(to, "0x%llx", offset); return;
	}
	if (offset)
		fprintf(to, "%+lld", offset);
}

static void dump_operand(const struct ptx_module *m, const struct ptx_operand *op, FILE *to)
{
	if (op->mem)
		fputc('[', to);
	if (op->neg)
		fputc('!', to);
	switch (op->kind) {
	case PTX_NONE: fputc('-', to); break;
	case PTX_SINK: fputc('_', to); break;
	case PTX_SREG: fputs(sreg_names[op->index], to); break;
	case PTX_LABEL: fprintf(to, "@%u", op->index); break;
	default: dump_address(m, op, to);
	}
	if (op->mem)
		fputc(']', to);
}
/* clang-format on */

static void dump_words(const struct ptx_insn *insn, FILE *to)
{
	fputs(ptx_op_name(insn->op), to);
	fputs(sem_names[insn->sem], to);
	fputs(scope_names[insn->scope], to);
	fputs(space_names[insn->space], to);
	fputs(cmp_names[insn->cmp], to);
	fputs(bop_names[insn->bop], to);
	fputs(round_names[insn->round], to);
	if (insn->mode)
		fprintf(to, ".mode%u", insn->mode);
	if (insn->flags & ~PTX_F_GUARD_NEG)
		fprintf(to, ".flags%x", insn->flags & ~PTX_F_GUARD_NEG);
	if (insn->vec > 1)
		fprintf(to, ".v%u", insn->vec);
	if (insn->type)
		fprintf(to, ".%s", ptx_type_name(insn->type));
	if (insn->stype != insn->type)
		fprintf(to, ".%s", ptx_type_name(insn->stype));
	if (insn->utype != insn->stype)
		fprintf(to, ".%s", ptx_type_name(insn->utype));
}

static void dump_insn(const struct ptx_module *m, const struct ptx_function *f, uint32_t i,
		      FILE *to)
{
	const struct ptx_insn *insn = &f->insns[i];

	fprintf(to, "%u: ", i);
	if (insn->guard != PTX_NO_GUARD)
		fprintf(to, "@%s%%p%u ", insn->flags & PTX_F_GUARD_NEG ? "!" : "", insn->guard);
	dump_words(insn, to);
	for (uint32_t o = 0; o < insn->n_ops; o++) {
		fputs(o ? (o == insn->n_dst ? " <- " : ", ") : " ", to);
		dump_operand(m, &ptx_operands(f, insn)[o], to);
	}
	if (insn->op == PTX_OP_BRX) {
		for (uint32_t t = 0; t < f->tables[insn->aux].n; t++)
			fprintf(to, " @%u", f->tables[insn->aux].targets[t]);
	}
	fputc('\n', to);
}

static void dump_params(const struct ptx_param *params, uint32_t n, FILE *to)
{
	fputc('(', to);
	for (uint32_t i = 0; i < n; i++) {
		fprintf(to, "%s.%s ", i ? ", " : "", ptx_type_name(params[i].type));
		if (params[i].in_reg)
			fprintf(to, "%%%c%u", "phwdq"[params[i].cls], params[i].reg);
		else
			fprintf(to, "%u+%u", params[i].offset, params[i].size);
	}
	fputs(") ", to);
}

static void dump_function(const struct ptx_module *m, const struct ptx_symbol *s, FILE *to)
{
	const struct ptx_function *f = s->func;
	const struct ptx_proto *proto = &m->protos[f->proto];

	fprintf(to, "%s%s ", linkage_names[s->linkage], f->kernel ? ".entry" : ".func");
	dump_params(proto->rets, proto->n_rets, to);
	fprintf(to, "%s ", s->name);
	dump_params(proto->params, proto->n_params, to);
	if (!f->defined) {
		fputs("declared\n", to);
		return;
	}
	fprintf(to, "p%u h%u w%u d%u q%u frame %u\n", f->n_regs[PTX_CLASS_P],
		f->n_regs[PTX_CLASS_H], f->n_regs[PTX_CLASS_W], f->n_regs[PTX_CLASS_D],
		f->n_regs[PTX_CLASS_Q], f->frame_bytes);
	for (uint32_t i = 0; i < f->n_insns; i++)
		dump_insn(m, f, i, to);
}

static void dump_var(const struct ptx_module *m, const struct ptx_symbol *s, FILE *to)
{
	const struct ptx_var *v = s->var;

	fprintf(to, "%s%s .align %u .%s %s[%llu]", linkage_names[s->linkage], space_names[v->space],
		v->align, ptx_type_name(v->type), s->name, (unsigned long long)v->size);
	for (uint32_t i = 0; i < v->n_init; i++)
		fprintf(to, "%s%02x", i ? "" : " = ", v->init[i]);
	for (uint32_t i = 0; i < v->n_relocs; i++) {
		const struct ptx_reloc *r = &v->relocs[i];

		fprintf(to, " %llu:%s%s%+lld>>%u", (unsigned long long)r->offset,
			r->generic ? "generic " : "", m->symbols[r->symbol].name,
			(long long)r->addend, r->shift);
	}
	fputc('\n', to);
}

void ptx_dump(const struct ptx_module *module, FILE *to)
{
	for (uint32_t i = 0; i < module->n_symbols; i++) {
		if (module->symbols[i].func)
			dump_function(module, &module->symbols[i], to);
		else
			dump_var(module, &module->symbols[i], to);
	}
}
