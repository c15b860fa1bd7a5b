/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parser's state, and what its files call of each other.
 *
 *	parse.c		text in, module out; tokens; directives of the module
 *	parse-func.c	heads and bodies of functions
 *	parse-var.c	variables, registers, initial values
 *	parse-value.c	constant expressions
 *	parse-insn.c	instructions: words, form, operands by shape
 *	parse-operand.c	operands as they are written, and their types
 *	parse-special.c	instructions whose operands no shape tells
 *	parse-flow.c	labels, branches, calls
 *	parse-matrix.c	instructions on matrices
 *	parse-texture.c	textures and surfaces
 *	parse-video.c	integers of 32 bits and their parts
 *
 * The first error is the only one: parse_fail() notes it and ends the text, so that every loop
 * that waits for a token stops. Nobody needs to test for errors but before using what he got.
 */
#ifndef SOFTGPU_PTX_PARSE_H
#define SOFTGPU_PTX_PARSE_H

#include "softgpu/ptx/arena.h"
#include "softgpu/ptx/forms.h"
#include "softgpu/ptx/lex.h"
#include "softgpu/ptx/names.h"
#include "softgpu/ptx/ptx.h"
#include "softgpu/ptx/vec.h"

/* Caps. Those of hardware where it has one. */
#define MAX_REGISTERS	 (1u << 20) /* per class and function */
#define MAX_FRAME_BYTES	 (512u << 10)
#define MAX_PARAM_BYTES	 32764u
#define MAX_PARAMS	 4096u
#define MAX_CONST_BYTES	 65536u /* per bank */
#define MAX_SHARED_BYTES (4u << 20)
#define MAX_GLOBAL_BYTES (1ull << 40)
#define MAX_INIT_BYTES	 (64ull << 20) /* of all variables of a module */
#define MAX_ALIGN	 128u
#define MAX_DIMS	 8u
#define MAX_EXPR_DEPTH	 64u
#define MAX_OPERANDS	 12u
#define MAX_ELEMENTS	 32u

enum raw_kind {
	RAW_NONE,
	RAW_REG,
	RAW_INT,
	RAW_F32,
	RAW_F64,
	RAW_SREG,
	RAW_ADDRESS, /* of a symbol, a frame variable or a parameter */
	RAW_VECTOR,
	RAW_SINK,
	RAW_MEM,
	RAW_NAME, /* bound to nothing yet, or to a label, a prototype, a table */
};

/*
 * An operand as it is written. What it is worth is known only when the form of its instruction is.
 */
struct raw {
	uint8_t kind;
	uint8_t type;	      /* RAW_REG: as declared; RAW_SREG: its own */
	bool neg;	      /* after a "!" */
	bool minus;	      /* after a "-", which only vmad has */
	bool pair;	      /* after a "|" */
	bool indexed;	      /* RAW_ADDRESS: of an element, as in "a[3]" */
	uint8_t unit;	      /* RAW_ADDRESS of a variable: bytes of one element */
	uint8_t space;	      /* RAW_ADDRESS, and RAW_MEM on one: where that is */
	uint8_t first, count; /* RAW_VECTOR: in parser.elements */
	uint8_t part_size; /* of a video instruction: 'b' or 'h', the first of n_parts the lowest */
	uint8_t n_parts, parts[4];
	uint64_t room; /* RAW_MEM on a frame variable or parameter: bytes left there */
	struct ptx_operand op;
	struct name *name; /* RAW_NAME */
};

/* A branch to a label that may come later: where to put its instruction's number. */
struct pending {
	struct name *name;
	uint32_t line;
	uint32_t operand; /* in parser.operands, where target is NULL */
	uint32_t *target;
};

struct parser {
	struct lexer lexer;
	struct token token; /* not yet consumed */
	struct ptx_log *log;
	int error;

	struct arena *arena;
	struct ptx_module *module;
	struct names names;
	VEC(struct ptx_symbol, symbols);
	VEC(struct ptx_proto, protos);
	uint64_t const_bytes[11];

	/* the function whose body is open, else NULL */
	struct ptx_function *func;
	const char *func_name;
	VEC(struct ptx_insn, insns);
	VEC(struct ptx_operand, operands);
	VEC(struct ptx_table, tables);
	VEC(struct ptx_matrix, matrices);
	VEC(struct pending, pending);
	uint32_t frame_top;
	struct {
		uint32_t pending, frame_top; /* as it was when the scope was opened */
	} scopes[NAMES_MAX_DEPTH];
	bool label_at_end;

	/* the instruction being read */
	struct ptx_insn insn;
	struct words words;
	struct raw raws[MAX_OPERANDS];
	unsigned int n_raws;
	struct raw elements[MAX_ELEMENTS];
	unsigned int n_elements;

	VEC(uint8_t, init);
	VEC(struct ptx_reloc, relocs);
	uint64_t init_bytes; /* of the variables before */
	uint32_t n_spelt;    /* registers of ranges that were spelt out */
};

/* parse.c */

/* parse_fail() - note an error at a line; PTX_E_INVALID */
__attribute__((format(printf, 3, 4))) void parse_fail(struct parser *p, uint32_t line,
						      const char *fmt, ...);
/* parse_refuse() - note what is PTX but does not run here; PTX_E_UNSUPPORTED */
__attribute__((format(printf, 3, 4))) void parse_refuse(struct parser *p, uint32_t line,
							const char *fmt, ...);
void parse_no_memory(struct parser *p);
void parse_unexpected(struct parser *p, const char *wanted);

void next(struct parser *p);
static inline bool at(const struct parser *p, char c)
{
	return p->token.kind == TOKEN_CHAR + c;
}
/* at_dot() - at that directive or modifier */
bool at_dot(const struct parser *p, const char *word);
bool take(struct parser *p, char c);
bool take_dot(struct parser *p, const char *word);
void expect(struct parser *p, char c);
/* expect_name() - a name; NULL after an error */
struct name *expect_name(struct parser *p);
/* expect_u32() - a constant expression from 0 to @max */
uint32_t expect_u32(struct parser *p, uint32_t max, const char *what);
/* skip_debug() - .loc, .file, .section, .pragma; false: at something else */
bool skip_debug(struct parser *p);

/* symbol_declare() - bind a name to a new symbol of the module; NULL after an error */
struct ptx_symbol *symbol_declare(struct parser *p, struct name *name, uint32_t line);

/* parse-value.c */
struct value {
	uint64_t v;
	bool is_unsigned;
};
struct value parse_value(struct parser *p);

/* parse-var.c */
bool is_space_word(const struct parser *p);
/* parse_variable() - a declaration that begins with a state space */
void parse_variable(struct parser *p, enum ptx_linkage linkage);
/* parse_registers() - after ".reg" */
void parse_registers(struct parser *p);
enum ptx_type expect_type(struct parser *p);
uint32_t parse_align(struct parser *p);
uint32_t register_new(struct parser *p, enum ptx_class cls);
enum ptx_class class_of(enum ptx_type type);
/* frame_place() - room in the frame of the open function; an offset */
uint32_t frame_place(struct parser *p, uint64_t size, uint32_t align);

/* parse-func.c */
void parse_function(struct parser *p, enum ptx_linkage linkage);
/* parse_proto() - after ".callprototype" */
uint32_t parse_proto(struct parser *p);

/* parse-insn.c */
/* parse_instruction() - @mnemonic and @guard are consumed */
void parse_instruction(struct parser *p, const struct token *mnemonic);
void parse_guarded(struct parser *p);
void push(struct parser *p, struct ptx_operand op);
void push_none(struct parser *p);
void insn_emit(struct parser *p);
/* push_source(), push_result() - check against a type and add; @relaxed: may be wider */
void push_source(struct parser *p, const struct raw *raw, enum ptx_type type, bool relaxed);
void push_result(struct parser *p, const struct raw *raw, enum ptx_type type, bool relaxed);
/* push_vector() - the same of all its elements; one of one element may lack the braces */
void push_vector(struct parser *p, const struct raw *raw, bool result);
void push_mem(struct parser *p, struct raw *raw);
const char *insn_name(const struct parser *p);
/* insn_name_add() - a word more of the mnemonic, for messages */
void insn_name_add(struct parser *p, const struct token *word);

/* parse-operand.c */
/* parse_operands() - fills parser.raws up to the ";" */
void parse_operands(struct parser *p);
void parse_operand(struct parser *p, struct raw *raw);
/* bits_of() - the value of a literal as a type; false: it is no literal of that type */
bool bits_of(const struct raw *raw, enum ptx_type type, uint64_t *ret);
/* types_agree() - may a register declared with one type be used as another? */
bool types_agree(enum ptx_type declared, enum ptx_type used, bool relaxed);

/* parse-special.c */
void parse_special(struct parser *p, const struct form *form);
/* check_words() - what forms cannot tell of words and types */
void check_words(struct parser *p);

/* parse-matrix.c */
/* parse_matrix() - of mma, wmma, ldmatrix, stmatrix, movmatrix: words and operands */
void parse_matrix(struct parser *p);

/* parse-texture.c */
/* parse_texture() - of tex, tld4, txq, suld, sust, suq: words and operands */
void parse_texture(struct parser *p);

/* parse-video.c */
bool is_video(enum ptx_op op);
/* parse_parts() - ".b0" after an operand, if there is such a thing */
void parse_parts(struct parser *p, struct raw *raw);
void parse_video(struct parser *p);
void parse_vset(struct parser *p);

/* parse-flow.c */
void label_define(struct parser *p, struct name *name, uint32_t line);
/* labels_resolve() - at the end of a scope: give branches to its labels their targets */
void labels_resolve(struct parser *p);
void parse_branch(struct parser *p);
void parse_branch_table(struct parser *p);
void parse_call(struct parser *p);
/* parse_label_list() - .branchtargets and .calltargets after "name :" */
void parse_label_list(struct parser *p, struct name *name, bool branches, uint32_t line);

#endif
