/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions: the words choose a form, the form's shape tells what its operands are.
 */
#include <stdio.h>
#include <string.h>

#include "softgpu/ptx/parse.h"

/* The mnemonic with its words, for messages; valid until the next call. */
const char *insn_name(const struct parser *p)
{
	return p->words.text;
}

void insn_name_add(struct parser *p, const struct token *word)
{
	size_t at = strlen(p->words.text);

	snprintf(p->words.text + at, sizeof(p->words.text) - at, ".%.*s",
		 word->len < 32 ? (int)word->len : 32, word->text);
}

static void bad_operand(struct parser *p, const char *why)
{
	parse_fail(p, p->insn.line, "%s: operand %u: %s", insn_name(p),
		   p->n_operands - p->insn.first + 1, why);
}

void push(struct parser *p, struct ptx_operand op)
{
	if (p->error)
		return;
	if (!vec_room(p, operands, 1)) {
		parse_no_memory(p);
		return;
	}
	p->operands[p->n_operands++] = op;
}

void push_none(struct parser *p)
{
	push(p, (struct ptx_operand){ .kind = PTX_NONE });
}

/* One that only PTX before 2.0 may use outside of mov: it moves to a register of its own. */
static struct ptx_operand move_aside(struct parser *p, const struct raw *raw, enum ptx_type type)
{
	struct ptx_operand reg = { .kind = PTX_REG, .cls = class_of(type) };
	struct ptx_insn insn = p->insn;
	uint32_t n = p->n_operands - insn.first;
	struct ptx_operand before[MAX_OPERANDS + MAX_ELEMENTS];

	if (n > sizeof(before) / sizeof(before[0])) {
		bad_operand(p, "no place for a special register");
		return reg;
	}
	if (n)
		memcpy(before, p->operands + insn.first, n * sizeof(before[0]));
	p->n_operands = insn.first;
	reg.index = register_new(p, reg.cls);
	p->insn = (struct ptx_insn){
		.op = PTX_OP_MOV,
		.type = type,
		.stype = type,
		.utype = type,
		.vec = 1,
		.n_dst = 1,
		.guard = PTX_NO_GUARD,
		.line = insn.line,
		.first = insn.first,
	};
	push(p, reg);
	push(p, raw->op);
	insn_emit(p);

	p->insn = insn;
	p->insn.first = p->n_operands;
	for (uint32_t i = 0; i < n; i++)
		push(p, before[i]);
	return reg;
}

void push_source(struct parser *p, const struct raw *raw, enum ptx_type type, bool relaxed)
{
	struct ptx_operand op = raw->op;
	uint64_t bits;

	if (raw->neg && type != PTX_PRED) {
		bad_operand(p, "only a predicate can be negated");
	} else if (raw->kind == RAW_REG) {
		if (!types_agree(raw->type, type, relaxed))
			parse_fail(p, p->insn.line, "%s: operand %u is a .%s register, not .%s",
				   insn_name(p), p->n_operands - p->insn.first + 1,
				   ptx_type_name(raw->type), ptx_type_name(type));
		push(p, op);
	} else if (raw->kind == RAW_SREG && (p->module->version < 20 || relaxed)) {
		push(p, move_aside(p, raw, type));
	} else if (bits_of(raw, type, &bits)) {
		op.imm = bits;
		push(p, op);
	} else if (raw->kind == RAW_NAME) {
		parse_fail(p, p->insn.line, "%s: '%.40s' is not declared", insn_name(p),
			   raw->name->text);
	} else if (raw->kind == RAW_INT || raw->kind == RAW_F32 || raw->kind == RAW_F64) {
		parse_fail(p, p->insn.line, "%s: operand %u: not a literal of type .%s",
			   insn_name(p), p->n_operands - p->insn.first + 1, ptx_type_name(type));
	} else {
		bad_operand(p, "must be a register or a literal");
	}
}

void push_result(struct parser *p, const struct raw *raw, enum ptx_type type, bool relaxed)
{
	if (raw->kind == RAW_SINK) {
		push(p, raw->op);
	} else if (raw->kind == RAW_REG && !raw->neg) {
		if (!types_agree(raw->type, type, relaxed))
			parse_fail(p, p->insn.line, "%s: the result is a .%s register, not .%s",
				   insn_name(p), ptx_type_name(raw->type), ptx_type_name(type));
		push(p, raw->op);
	} else if (raw->kind == RAW_NAME) {
		parse_fail(p, p->insn.line, "%s: '%.40s' is not declared", insn_name(p),
			   raw->name->text);
	} else {
		bad_operand(p, "a result must be a register");
	}
	p->insn.n_dst++;
}

/* .param of a device function and of calls is in the frame, which is local memory. */
static uint8_t real_space(const struct parser *p, const struct raw *raw)
{
	uint8_t space =
		raw->op.kind == PTX_SYM || raw->op.kind == PTX_FRAME || raw->op.kind == PTX_PARAM
			? raw->space
			: PTX_SPACE_NONE;

	if (p->insn.space != PTX_SPACE_NONE)
		space = p->insn.space;
	if (space != PTX_SPACE_PARAM)
		return space;
	if (raw->op.kind == PTX_FRAME || (raw->op.kind != PTX_PARAM && !p->func->kernel))
		return PTX_SPACE_LOCAL;
	return space;
}

void push_mem(struct parser *p, struct raw *raw)
{
	uint64_t bytes = (uint64_t)ptx_type_bytes(p->insn.type) * p->insn.vec;

	if (raw->kind == RAW_ADDRESS && raw->indexed)
		raw->op.mem = true;
	else if (raw->kind != RAW_MEM) {
		bad_operand(p, "must be an address in brackets");
		return;
	}
	if (p->insn.space != PTX_SPACE_NONE && raw->space != PTX_SPACE_NONE &&
	    raw->space != p->insn.space &&
	    !(raw->op.kind == PTX_FRAME && p->insn.space == PTX_SPACE_LOCAL))
		bad_operand(p, "the variable is in another state space");
	if (raw->op.kind == PTX_SYM && raw->space == PTX_SPACE_NONE)
		bad_operand(p, "the address of a function is not one of data");
	if ((raw->op.kind == PTX_FRAME || raw->op.kind == PTX_PARAM) && raw->room < bytes)
		bad_operand(p, "reaches beyond the variable");
	p->insn.space = real_space(p, raw);
	push(p, raw->op);
}

void insn_emit(struct parser *p)
{
	if (p->error)
		return;
	if (!vec_room(p, insns, 1)) {
		parse_no_memory(p);
		return;
	}
	p->insn.n_ops = (uint16_t)(p->n_operands - p->insn.first);
	p->insns[p->n_insns++] = p->insn;
	p->label_at_end = false;
}

/* clang-format off */
static enum ptx_type double_width(enum ptx_type type)
{
	switch (type) {
	case PTX_U16: return PTX_U32;
	case PTX_S16: return PTX_S32;
	case PTX_U32: return PTX_U64;
	default: return PTX_S64;
	}
}
/* clang-format on */

void push_vector(struct parser *p, const struct raw *raw, bool result)
{
	const struct raw *elements = raw;
	unsigned int count = 1;

	if (raw->kind == RAW_VECTOR) {
		elements = &p->elements[raw->first];
		count = raw->count;
	}
	if (count != p->insn.vec) {
		parse_fail(p, p->insn.line, "%s: %u registers for %u values", insn_name(p), count,
			   p->insn.vec);
		return;
	}
	for (unsigned int i = 0; i < count; i++) {
		if (result)
			push_result(p, &elements[i], p->insn.type, /* relaxed= */ true);
		else
			push_source(p, &elements[i], p->insn.type, /* relaxed= */ true);
	}
}

/* A source that may be 32 or 64 bits wide. */
static void push_address_value(struct parser *p, const struct raw *raw)
{
	bool wide = raw->kind != RAW_REG || ptx_type_bytes(raw->type) == 8;

	push_source(p, raw, wide ? PTX_B64 : PTX_B32, /* relaxed= */ false);
}

static void push_literal(struct parser *p, const struct raw *raw)
{
	if (raw->kind != RAW_INT)
		bad_operand(p, "must be an integer literal");
	else
		push(p, raw->op);
}

/* One operand by its letter of the shape (ptx-ops.def). */
/* clang-format off */
static void push_by_letter(struct parser *p, char letter, struct raw *raw)
{
	struct ptx_insn *insn = &p->insn;

	switch (letter) {
	case 'd': push_result(p, raw, insn->type, false); break;
	case 'e': push_result(p, raw, insn->stype, false); break;
	case 'U': push_result(p, raw, PTX_U32, false); break;
	case 'W': push_result(p, raw, double_width(insn->type), false); break;
	case 'P': push_result(p, raw, PTX_PRED, false); break;
	case 'Q': push_result(p, raw, PTX_PRED, false); break;
	case 'V': push_vector(p, raw, /* result= */ true); break;
	case 'a': push_source(p, raw, insn->type, false); break;
	case 's': push_source(p, raw, insn->stype, false); break;
	case 'u': push_source(p, raw, PTX_U32, false); break;
	case 'w': push_source(p, raw, double_width(insn->type), false); break;
	case 'p': push_source(p, raw, PTX_PRED, false); break;
	case 'v': push_vector(p, raw, /* result= */ false); break;
	case 'x': push_address_value(p, raw); break;
	case 'i': push_literal(p, raw); break;
	case 'm': push_mem(p, raw); break;
	}
}
/* clang-format on */

static void wrong_count(struct parser *p)
{
	parse_fail(p, p->insn.line, "%s: wrong number of operands (%u)", insn_name(p), p->n_raws);
}

/* A cache policy tells the hardware what to keep; it is checked and goes no further. */
static void drop_policy(struct parser *p, const struct raw *raw)
{
	if (raw->kind != RAW_REG || !types_agree(raw->type, PTX_B64, /* relaxed= */ false))
		bad_operand(p, "a cache policy is a 64-bit register");
}

static void push_by_shape(struct parser *p, const char *shape)
{
	bool policy = p->words.present & W_POLICY, optional = false;
	unsigned int i = 0;

	for (; *shape && !p->error; shape++) {
		struct raw *raw = i < p->n_raws ? &p->raws[i] : NULL;

		if (*shape == '?') {
			optional = true;
		} else if (*shape == 'q' || (*shape == 'Q' && (!raw || !raw->pair))) {
			push_none(p);
			p->insn.n_dst++;
		} else if (!raw) {
			if (!optional || (*shape == 'l' && policy))
				wrong_count(p);
			else if (*shape != 'l')
				push_none(p);
		} else if (raw->pair != (*shape == 'Q')) {
			parse_fail(p, p->insn.line, "%s: has no second result", insn_name(p));
		} else if (*shape == 'l') {
			/* Without the word for it, it is left, and too much. */
			if (policy) {
				drop_policy(p, raw);
				i++;
			}
		} else {
			push_by_letter(p, *shape, raw);
			i++;
		}
	}
	if (i < p->n_raws && !p->error)
		wrong_count(p);
}

static void parse_words(struct parser *p)
{
	while (!p->error && p->token.kind == TOKEN_DOT) {
		const struct token *t = &p->token;
		int r = words_add(&p->words, t->text, t->len, &p->insn);

		insn_name_add(p, t);
		if (r == WORDS_E_REFUSED)
			parse_refuse(p, t->line, "%s: this instruction is not run here",
				     insn_name(p));
		else if (r == WORDS_E_TWICE)
			parse_fail(p, t->line, "%s: one of the words is too much", insn_name(p));
		else if (r)
			parse_fail(p, t->line, "%s: there is no such modifier", insn_name(p));
		next(p);
	}
}

/* "ld.const[2].f32": the bank of the address is the variable's */
static void skip_bank(struct parser *p)
{
	if (p->insn.space != PTX_SPACE_CONST || p->words.n_types || !take(p, '['))
		return;
	expect_u32(p, 10, "constant bank");
	expect(p, ']');
	parse_words(p);
}

static bool uses_carry(const struct ptx_insn *insn)
{
	return insn->flags & PTX_F_CC || insn->op == PTX_OP_ADDC || insn->op == PTX_OP_SUBC ||
	       insn->op == PTX_OP_MADC;
}

/* "ld.param.f32 %f1, [x];" up to the ";" */
static void parse_plain(struct parser *p)
{
	const struct form *form;

	if (p->module->version < 14)
		p->words.present |= W_OLD;
	form = words_form(&p->words, &p->insn);
	if (!form) {
		parse_fail(p, p->insn.line, "%s: these types and modifiers do not go together",
			   insn_name(p));
		return;
	}
	if (uses_carry(&p->insn) && p->func->carry == UINT32_MAX)
		p->func->carry = register_new(p, PTX_CLASS_P);
	parse_operands(p);
	check_words(p);
	if (p->error)
		return;
	if (form->shape[0] == '!') {
		parse_special(p, form);
	} else {
		push_by_shape(p, form->shape);
		insn_emit(p);
	}
}

/* Names an instruction as the text does, up to the blank: its words are not known here. */
static void refuse(struct parser *p, const struct token *mnemonic)
{
	size_t len = mnemonic->len, max = (size_t)(p->lexer.end - mnemonic->text);

	while (len < max && len < 100 && strchr(" \t\r\n;", mnemonic->text[len]) == NULL)
		len++;
	parse_refuse(p, mnemonic->line, "%.*s: this instruction is not run here", (int)len,
		     mnemonic->text);
}

static void parse_by_words(struct parser *p)
{
	p->insn.vec = 0;
	parse_words(p);
	skip_bank(p);
	if (p->insn.vec == 0)
		p->insn.vec = 1;

	switch (p->insn.op) {
	case PTX_OP_BRA:
		parse_branch(p);
		break;
	case PTX_OP_BRX:
		parse_branch_table(p);
		break;
	case PTX_OP_CALL:
		parse_call(p);
		break;
	default:
		parse_plain(p);
	}
}

static void parse_unguarded(struct parser *p, const struct token *mnemonic, uint32_t guard,
			    uint32_t flags)
{
	const struct op_info *info = op_find(mnemonic->text, mnemonic->len);
	int len = mnemonic->len < 40 ? (int)mnemonic->len : 40;

	if (p->error)
		return;
	if (!info) {
		parse_fail(p, mnemonic->line, "'%.*s' is no instruction", len, mnemonic->text);
		return;
	}
	p->insn = (struct ptx_insn){
		.op = info->op,
		.vec = 1,
		.guard = guard,
		.flags = flags,
		.line = mnemonic->line,
		.first = p->n_operands,
	};
	p->words = (struct words){ .info = info };
	snprintf(p->words.text, sizeof(p->words.text), "%s", info->name);
	if (info->op == PTX_OP_NONE) {
		refuse(p, mnemonic);
		return;
	}
	if (info->op >= PTX_OP_MMA && info->op <= PTX_OP_MOVMATRIX)
		parse_matrix(p);
	else if (info->op >= PTX_OP_TEX && info->op <= PTX_OP_SUQ)
		parse_texture(p);
	else
		parse_by_words(p);
}

void parse_instruction(struct parser *p, const struct token *mnemonic)
{
	parse_unguarded(p, mnemonic, PTX_NO_GUARD, /* flags= */ 0);
}

/* "@%p1 bra ..", "@!%p1 bra ..", after the "@" */
void parse_guarded(struct parser *p)
{
	uint32_t flags = take(p, '!') ? PTX_F_GUARD_NEG : 0;
	struct token mnemonic;
	struct raw raw = { 0 };

	p->n_elements = 0;
	if (p->token.kind != TOKEN_NAME)
		parse_unexpected(p, "a predicate");
	parse_operand(p, &raw);
	if (p->error)
		return;
	if (raw.kind != RAW_REG || raw.type != PTX_PRED) {
		parse_fail(p, p->token.line, "what follows '@' is not a predicate register");
		return;
	}
	mnemonic = p->token;
	if (mnemonic.kind != TOKEN_NAME)
		parse_unexpected(p, "an instruction");
	next(p);
	parse_unguarded(p, &mnemonic, raw.op.index, flags);
}
