/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an interpreter relies on without looking: every index is within its array, every result is
 * a register, no variable of the frame reaches beyond it, and code does not run off its end.
 */
#include "softgpu/ptx/dump.h"

static const char *verify_operand(const struct ptx_module *m, const struct ptx_function *f,
				  const struct ptx_operand *op)
{
	const struct ptx_proto *proto = &m->protos[f->proto];

	switch (op->kind) {
	case PTX_REG:
		if (op->cls >= PTX_N_CLASSES || op->index >= f->n_regs[op->cls])
			return "a register that is not counted";
		break;
	case PTX_SREG:
		if (op->index >= PTX_N_SREGS)
			return "a special register that does not exist";
		break;
	case PTX_SYM:
		if (op->index >= m->n_symbols)
			return "a symbol that does not exist";
		break;
	case PTX_FRAME:
		if (op->imm > f->frame_bytes)
			return "an address outside of the frame";
		break;
	case PTX_PARAM:
		if (!f->kernel || op->imm > proto->param_bytes)
			return "an address outside of the parameters";
		break;
	case PTX_LABEL:
		if (op->index >= f->n_insns)
			return "a label outside of the code";
		break;
	case PTX_NONE:
	case PTX_SINK:
	case PTX_IMM:
		break;
	default:
		return "an operand of no kind";
	}
	return NULL;
}

static const char *verify_access(const struct ptx_module *m, const struct ptx_function *f,
				 const struct ptx_insn *insn, const struct ptx_operand *op)
{
	uint64_t bytes = (uint64_t)ptx_type_bytes(insn->type) * insn->vec;

	if (op->kind == PTX_FRAME && op->imm + bytes > f->frame_bytes)
		return "an access outside of the frame";
	if (op->kind == PTX_PARAM && op->imm + bytes > m->protos[f->proto].param_bytes)
		return "an access outside of the parameters";
	return NULL;
}

static const char *verify_call(const struct ptx_module *m, const struct ptx_function *f,
			       const struct ptx_insn *insn)
{
	const struct ptx_operand *ops = ptx_operands(f, insn);
	const struct ptx_proto *proto;

	if (insn->aux >= m->n_protos)
		return "a call of no prototype";
	proto = &m->protos[insn->aux];
	if (insn->n_ops != proto->n_rets + 1 + proto->n_params || insn->n_dst != proto->n_rets)
		return "a call with other arguments than its prototype's";
	for (uint32_t i = 0; i < insn->n_ops; i++) {
		const struct ptx_param *param;

		if (i == proto->n_rets)
			continue;
		param = i < proto->n_rets ? &proto->rets[i] : &proto->params[i - proto->n_rets - 1];
		if (ops[i].kind == PTX_FRAME && ops[i].imm + param->size > f->frame_bytes)
			return "an argument outside of the frame";
	}
	return NULL;
}

static const char *verify_insn(const struct ptx_module *m, const struct ptx_function *f,
			       const struct ptx_insn *insn)
{
	const struct ptx_operand *ops = ptx_operands(f, insn);
	const char *wrong;

	if (insn->op == PTX_OP_NONE || insn->op >= PTX_N_OPS)
		return "no instruction";
	if (insn->first > f->n_operands || insn->n_ops > f->n_operands - insn->first ||
	    insn->n_dst > insn->n_ops)
		return "operands that do not exist";
	if (insn->guard != PTX_NO_GUARD && insn->guard >= f->n_regs[PTX_CLASS_P])
		return "a guard that is not counted";
	if (insn->flags & PTX_F_CC && f->carry >= f->n_regs[PTX_CLASS_P])
		return "no carry flag";
	for (uint32_t i = 0; i < insn->n_ops; i++) {
		wrong = verify_operand(m, f, &ops[i]);
		if (!wrong && ops[i].mem)
			wrong = verify_access(m, f, insn, &ops[i]);
		if (wrong)
			return wrong;
		if (i < insn->n_dst && insn->op != PTX_OP_CALL && ops[i].kind != PTX_REG &&
		    ops[i].kind != PTX_SINK && ops[i].kind != PTX_NONE)
			return "a result that is no register";
	}
	if (insn->op == PTX_OP_CALL)
		return verify_call(m, f, insn);
	if (insn->op == PTX_OP_BRX && insn->aux >= f->n_tables)
		return "a branch table that does not exist";
	if (insn->op >= PTX_OP_MMA && insn->op <= PTX_OP_MOVMATRIX && insn->aux >= f->n_matrices)
		return "a matrix that does not exist";
	return NULL;
}

static bool falls_off(const struct ptx_insn *last)
{
	if (last->guard != PTX_NO_GUARD)
		return true;
	return last->op != PTX_OP_RET && last->op != PTX_OP_EXIT && last->op != PTX_OP_BRA &&
	       last->op != PTX_OP_BRX && last->op != PTX_OP_TRAP;
}

static const char *verify_function(const struct ptx_module *m, const struct ptx_function *f)
{
	const char *wrong;

	if (f->proto >= m->n_protos)
		return "a function without a prototype";
	if (!f->defined)
		return NULL;
	for (uint32_t t = 0; t < f->n_tables; t++) {
		for (uint32_t i = 0; i < f->tables[t].n; i++) {
			if (f->tables[t].targets[i] >= f->n_insns)
				return "a branch table that leads outside of the code";
		}
	}
	for (uint32_t i = 0; i < f->n_insns; i++) {
		wrong = verify_insn(m, f, &f->insns[i]);
		if (wrong)
			return wrong;
	}
	return f->n_insns == 0 || falls_off(&f->insns[f->n_insns - 1]) ? "code without an end"
								       : NULL;
}

static const char *verify_var(const struct ptx_module *m, const struct ptx_var *v)
{
	if (v->align == 0 || (v->align & (v->align - 1)))
		return "an alignment that is none";
	if (v->n_init > v->size)
		return "an initial value longer than its variable";
	for (uint32_t i = 0; i < v->n_relocs; i++) {
		if (v->relocs[i].symbol >= m->n_symbols ||
		    v->relocs[i].offset + v->relocs[i].bytes > v->n_init)
			return "an address outside of the initial value";
	}
	return NULL;
}

const char *ptx_verify(const struct ptx_module *module)
{
	const char *wrong = NULL;

	for (uint32_t i = 0; i < module->n_symbols && !wrong; i++) {
		const struct ptx_symbol *s = &module->symbols[i];

		if (!s->name || !s->func == !s->var)
			return "a symbol that is nothing";
		wrong = s->func ? verify_function(module, s->func) : verify_var(module, s->var);
	}
	return wrong;
}
