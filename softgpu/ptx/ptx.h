/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PTX, parsed: what the text of a module becomes before anything runs it.
 *
 * The text is checked once, strictly, and nothing of it is left to look up at run time: names are
 * registers, offsets and instruction numbers, literals are bits of the instruction's type, nested
 * scopes are gone. The parser also takes away choices that would only cost an interpreter tests:
 *
 *   - Special registers and addresses of symbols are values of MOV alone. Where the text uses one
 *     as an operand of something else, a MOV to a fresh register precedes it.
 *   - `mov` with braces is PACK or UNPACK; vector operands are spread over the operand list.
 *   - Optional operands are always there: what the text leaves out has kind PTX_NONE.
 *   - The .param variables of calls and of device functions, and all .local variables, lie in one
 *     frame per thread and call, in the local state space. ld.param and st.param on them are loads
 *     and stores of PTX_SPACE_LOCAL; PTX_SPACE_PARAM is the kernel's parameter buffer alone.
 *   - Variables declared inside functions (.shared, .global, .const) are the module's.
 *   - The carry flag of add.cc and its kin is a predicate register of the function.
 *
 * What an interpreter here cannot run (clusters, bulk copies) does not parse: ptx_parse() names it in
 * the log.
 */
#ifndef SOFTGPU_PTX_H
#define SOFTGPU_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softgpu/ptx/log.h"

/* X(enumerator, name, bytes, kind); kinds: p predicate, b bits, u unsigned, s signed, f float */
#define PTX_TYPES(X)                                                                                 \
	X(PRED, "pred", 1, 'p')                                                                      \
	X(B8, "b8", 1, 'b')                                                                          \
	X(B16, "b16", 2, 'b')                                                                        \
	X(B32, "b32", 4, 'b')                                                                        \
	X(B64, "b64", 8, 'b')                                                                        \
	X(B128, "b128", 16, 'b')                                                                     \
	X(U8, "u8", 1, 'u')                                                                          \
	X(U16, "u16", 2, 'u')                                                                        \
	X(U32, "u32", 4, 'u')                                                                        \
	X(U64, "u64", 8, 'u')                                                                        \
	X(S8, "s8", 1, 's')                                                                          \
	X(S16, "s16", 2, 's')                                                                        \
	X(S32, "s32", 4, 's')                                                                        \
	X(S64, "s64", 8, 's')                                                                        \
	X(F16, "f16", 2, 'f')                                                                        \
	X(BF16, "bf16", 2, 'f')                                                                      \
	X(F32, "f32", 4, 'f')                                                                        \
	X(F64, "f64", 8, 'f')                                                                        \
	X(F16X2, "f16x2", 4, 'f')                                                                    \
	X(BF16X2, "bf16x2", 4, 'f')                                                                  \
	X(F32X2, "f32x2", 8, 'f')                                                                    \
	X(U16X2, "u16x2", 4, 'u')                                                                    \
	X(S16X2, "s16x2", 4, 's')                                                                    \
	X(TF32, "tf32", 4, 'f')                                                                      \
	/* From here on nothing is declared as such. Elements of matrices: less than a byte each. */ \
	X(S4, "s4", 1, 's')                                                                          \
	X(U4, "u4", 1, 'u')                                                                          \
	X(B1, "b1", 1, 'b')                                                                          \
	/* What cvt takes and makes: two floats in a register of 16 bits. */                         \
	X(E4M3X2, "e4m3x2", 2, 'f')                                                                  \
	X(E5M2X2, "e5m2x2", 2, 'f')

/* clang-format off */
enum ptx_type {
	PTX_TYPE_NONE,
#define X(e, name, bytes, kind) PTX_##e,
	PTX_TYPES(X)
#undef X
	PTX_N_TYPES
};
/* clang-format on */

enum ptx_op {
	PTX_OP_NONE,
#define PTX_OP(e, name, ...) PTX_OP_##e,
#include "softgpu/ptx/ptx-ops.def"
	PTX_N_OPS
};

enum ptx_sreg {
#define PTX_SREG(e, name, type) PTX_SREG_##e,
#include "softgpu/ptx/ptx-sregs.def"
	PTX_N_SREGS
};

/*
 * Registers are numbered per class, from 0. Those of the text that never hold values at the same
 * time have one number, so that few of them fill a cache; that is right for each thread by itself,
 * so who runs many at once must not write a result for threads that do not take part. 8-bit
 * registers are of class H. An integer loaded or converted into a register wider than its type is
 * extended by its sign, or by zeros, to all of the register; of a wider source only the type's bits
 * count.
 */
enum ptx_class {
	PTX_CLASS_P, /* predicates */
	PTX_CLASS_H, /* 16 bits */
	PTX_CLASS_W, /* 32 bits */
	PTX_CLASS_D, /* 64 bits */
	PTX_CLASS_Q, /* 128 bits */
	PTX_N_CLASSES
};

enum ptx_space {
	PTX_SPACE_NONE, /* generic */
	PTX_SPACE_GLOBAL,
	PTX_SPACE_SHARED,
	PTX_SPACE_LOCAL,
	PTX_SPACE_CONST,
	PTX_SPACE_PARAM, /* the kernel's parameter buffer */
};

enum ptx_kind {
	PTX_NONE,  /* not given */
	PTX_SINK,  /* "_": the result is thrown away */
	PTX_REG,   /* register [index] of class [cls]; with [mem] the address register + imm */
	PTX_IMM,   /* the bits [imm], in the instruction's type; with [mem] an absolute address */
	PTX_SREG,  /* special register [index]: as source of MOV only */
	PTX_SYM,   /* address of the module's symbol [index], + imm */
	PTX_FRAME, /* address of byte [imm] of the function's frame, in the local space */
	PTX_PARAM, /* address of byte [imm] of the kernel's parameter buffer */
	PTX_LABEL, /* instruction [index] of the function */
};

struct ptx_operand {
	uint8_t kind; /* enum ptx_kind */
	uint8_t cls;  /* PTX_REG: enum ptx_class */
	bool mem;     /* a memory operand, [..] in the text */
	bool neg;     /* a predicate, used as !p */
	uint32_t index;
	uint64_t imm; /* as an offset it is signed */
};

/* clang-format off */
enum ptx_cmp {
	PTX_CMP_NONE,
	/* ordered for floats, of the type's sign for integers */
	PTX_CMP_EQ, PTX_CMP_NE, PTX_CMP_LT, PTX_CMP_LE, PTX_CMP_GT, PTX_CMP_GE,
	/* unsigned whatever the type */
	PTX_CMP_LO, PTX_CMP_LS, PTX_CMP_HI, PTX_CMP_HS,
	/* or unordered */
	PTX_CMP_EQU, PTX_CMP_NEU, PTX_CMP_LTU, PTX_CMP_LEU, PTX_CMP_GTU, PTX_CMP_GEU,
	PTX_CMP_NUM, PTX_CMP_NAN,
};

/* The Boolean operation of setp and set; what atom, red, redux and bar.red do. */
enum ptx_bop {
	PTX_BOP_NONE,
	PTX_BOP_AND, PTX_BOP_OR, PTX_BOP_XOR,
	PTX_BOP_ADD, PTX_BOP_MIN, PTX_BOP_MAX, PTX_BOP_INC, PTX_BOP_DEC, PTX_BOP_EXCH, PTX_BOP_CAS,
	PTX_BOP_POPC,
};

enum ptx_round {
	PTX_ROUND_NONE,
	PTX_RN, PTX_RZ, PTX_RM, PTX_RP, PTX_RNA,
	PTX_RNI, PTX_RZI, PTX_RMI, PTX_RPI, /* to an integer */
};

/* Without a word, loads and stores are weak, atom and red relaxed, fence acq_rel. */
enum ptx_sem {
	PTX_SEM_NONE,
	PTX_SEM_WEAK, PTX_SEM_VOLATILE, PTX_SEM_RELAXED, PTX_SEM_ACQUIRE, PTX_SEM_RELEASE,
	PTX_SEM_ACQ_REL, PTX_SEM_SC, PTX_SEM_MMIO,
};

enum ptx_scope {
	PTX_SCOPE_NONE,
	PTX_SCOPE_CTA, PTX_SCOPE_CLUSTER, PTX_SCOPE_GPU, PTX_SCOPE_SYS,
};

/* What an opcode's words choose beyond types and operations. */
enum ptx_mode {
	PTX_MODE_NONE,
	/* mul, mad, mul24, mad24, dp2a */
	PTX_MODE_LO, PTX_MODE_HI, PTX_MODE_WIDE,
	/* shfl */
	PTX_MODE_UP, PTX_MODE_DOWN, PTX_MODE_BFLY, PTX_MODE_IDX,
	/* vote, match */
	PTX_MODE_ALL, PTX_MODE_ANY, PTX_MODE_UNI, PTX_MODE_BALLOT,
	/* prmt */
	PTX_MODE_F4E, PTX_MODE_B4E, PTX_MODE_RC8, PTX_MODE_ECL, PTX_MODE_ECR, PTX_MODE_RC16,
	/* shf */
	PTX_MODE_L, PTX_MODE_R,
	/* testp */
	PTX_MODE_FINITE, PTX_MODE_INFINITE, PTX_MODE_NUMBER, PTX_MODE_NOTANUMBER, PTX_MODE_NORMAL,
	PTX_MODE_SUBNORMAL,
	/* bar and barrier */
	PTX_MODE_SYNC, PTX_MODE_ARRIVE, PTX_MODE_RED, PTX_MODE_WARP,
	/* cp.async; the copy itself has none */
	PTX_MODE_COMMIT_GROUP, PTX_MODE_WAIT_GROUP, PTX_MODE_WAIT_ALL,
	/* wmma; the multiplication itself has none */
	PTX_MODE_LOAD, PTX_MODE_STORE,
	/* tex, txq: where the level comes from; without, it is the first */
	PTX_MODE_LEVEL, PTX_MODE_GRAD,
	/* sust: what is written becomes what the surface has; without, it is bytes */
	PTX_MODE_FORMATTED,
	/* mbarrier, which has ARRIVE, too; waiting by a parity is no word, but what the parser makes */
	PTX_MODE_INIT, PTX_MODE_INVAL, PTX_MODE_ARRIVE_DROP, PTX_MODE_TEST_WAIT, PTX_MODE_TRY_WAIT,
	PTX_MODE_PARITY_WAIT, PTX_MODE_PENDING_COUNT,
	/* vmad: bits that are dropped */
	PTX_MODE_SHR7, PTX_MODE_SHR15,
};
/* clang-format on */

/*
 * Which parts of its operands a video instruction works on. Of those that work on a word, each is an
 * enum ptx_part. Of those that work on two or four parts, d is the set of parts that are written, a and b
 * have three bits for each part: its number in the eight or four parts of a and, after them, b.
 */
#define PTX_VIDEO(d, a, b) ((uint32_t)(d) | (uint32_t)(a) << 4 | (uint32_t)(b) << 16)
#define PTX_VIDEO_D(aux)   ((uint32_t)(aux)&0xf)
#define PTX_VIDEO_A(aux)   ((uint32_t)(aux) >> 4 & 0xfff)
#define PTX_VIDEO_B(aux)   ((uint32_t)(aux) >> 16 & 0xfff)

/* Of vmad, beside these. */
#define PTX_VIDEO_NEG_PRODUCT (1u << 28)
#define PTX_VIDEO_NEG_C	      (1u << 29)
#define PTX_VIDEO_PLUS_ONE    (1u << 30)

enum ptx_part {
	PTX_PART_WORD,
	PTX_PART_B0, /* four bytes, the lowest first */
	PTX_PART_H0 = PTX_PART_B0 + 4,
	PTX_PART_H1,
};

/* Flags of an instruction, ptx_insn.flags. */
#define PTX_F_GUARD_NEG (1u << 0) /* @!p */
#define PTX_F_FTZ	(1u << 1)
#define PTX_F_SAT	(1u << 2)
#define PTX_F_CC	(1u << 3) /* writes the carry flag */
#define PTX_F_APPROX	(1u << 4)
#define PTX_F_FULL	(1u << 5)  /* div.full */
#define PTX_F_UNI	(1u << 6)  /* the text promises that the branch or call is not divergent */
#define PTX_F_SYNC	(1u << 7)  /* shfl.sync and its like: the last operand is the mask */
#define PTX_F_NC	(1u << 8)  /* ld.global.nc, ldu */
#define PTX_F_NAN	(1u << 9)  /* min.NaN */
#define PTX_F_XORSIGN	(1u << 10) /* min.xorsign.abs */
#define PTX_F_ABS	(1u << 11) /* min.abs, redux.abs */
#define PTX_F_RELU	(1u << 12)
#define PTX_F_SATFINITE (1u << 13)
#define PTX_F_NOFTZ	(1u << 14) /* atom.add.noftz */
#define PTX_F_OOB	(1u << 15) /* fma.oob */
#define PTX_F_WRAP	(1u << 16) /* shf.wrap, bmsk.wrap, szext.wrap */
#define PTX_F_CLAMP	(1u << 17) /* shf.clamp, bmsk.clamp, szext.clamp */
#define PTX_F_SHIFTAMT	(1u << 18) /* bfind.shiftamt */
#define PTX_F_TO	(1u << 19) /* cvta.to: from generic */
#define PTX_F_ALIGNED	(1u << 20)
#define PTX_F_ACCUM	(1u << 21) /* vabsdiff4.add: the result is the sum over the parts, plus c */

#define PTX_NO_GUARD UINT32_MAX

/**
 * struct ptx_insn - one instruction
 * @n_dst:	so many of its first operands are results
 * @type:	its type; of two, the first: that of the result
 * @stype:	the second of two types (cvt, set, slct, ...: that of the source), else the same
 * @utype:	the third of the three types of video instructions, else as @stype
 * @vec:	elements of ld, st, atom and red with vectors, else 1
 * @guard:	predicate register that decides whether it runs, or PTX_NO_GUARD
 * @first:	its operands are ptx_function.operands[first] and the n_ops - 1 after it
 * @aux:	CALL: index of the prototype in ptx_module.protos; BRX: index of the table in
 *		ptx_function.tables; of matrix instructions: index in ptx_function.matrices; of
 *		textures and surfaces: PTX_TEXTURE(); of video instructions: PTX_VIDEO()
 * @line:	line of the text, from 1
 *
 * Operand order is that of the text, results first: `setp` has p, q, a, b, c; `shfl` and `match`
 * d, p, then the sources; `atom` d, [address], b, c; `red` [address], b; `bar.sync` barrier,
 * threads; `bar.red` d, barrier, threads, predicate; `call` its results, the callee (PTX_SYM or
 * PTX_REG), its arguments (PTX_FRAME, PTX_REG or PTX_IMM each). The shapes are in ptx-ops.def.
 */
struct ptx_insn {
	uint16_t op; /* enum ptx_op */
	uint16_t n_ops;
	uint8_t n_dst;
	uint8_t type, stype, utype;
	uint8_t space;
	uint8_t vec;
	uint8_t mode;
	uint8_t cmp;
	uint8_t bop;
	uint8_t round;
	uint8_t sem;
	uint8_t scope;
	uint32_t flags;
	uint32_t guard;
	uint32_t first;
	uint32_t aux;
	uint32_t line;
};

/**
 * struct ptx_param - a parameter or result of a function
 * @offset:	in the kernel's parameter buffer, or in the frame of a device function
 * @in_reg:	a device function's parameter may be a register: then [cls] and [reg] tell which
 */
struct ptx_param {
	const char *name;
	uint8_t type;
	bool in_reg;
	uint8_t cls;
	uint32_t reg;
	uint32_t size, align;
	uint32_t offset;
};

/* What a caller knows of a function. In prototypes of indirect calls offsets have no meaning. */
struct ptx_proto {
	uint32_t n_params, n_rets;
	struct ptx_param *params, *rets;
	uint32_t param_bytes; /* of a kernel: size of the parameter buffer */
	bool noreturn;
};

/* A branch table of brx.idx: instruction numbers. */
struct ptx_table {
	uint32_t n;
	uint32_t *targets;
};

enum ptx_geometry {
	PTX_GEOMETRY_NONE,
	PTX_GEOMETRY_1D,
	PTX_GEOMETRY_2D,
	PTX_GEOMETRY_3D,
	PTX_GEOMETRY_A1D, /* layers of lines */
	PTX_GEOMETRY_A2D,
	PTX_GEOMETRY_CUBE,
	PTX_GEOMETRY_ACUBE,
};

/* What a surface's places outside of it are. */
enum ptx_outside {
	PTX_OUTSIDE_TRAP,
	PTX_OUTSIDE_CLAMP,
	PTX_OUTSIDE_ZERO,
};

/* What txq and suq ask for. */
enum ptx_query {
	PTX_QUERY_NONE,
	PTX_QUERY_WIDTH,
	PTX_QUERY_HEIGHT,
	PTX_QUERY_DEPTH,
	PTX_QUERY_LAYERS,
	PTX_QUERY_LEVELS,
	PTX_QUERY_SAMPLES,
	PTX_QUERY_DATA_TYPE,
	PTX_QUERY_ORDER,
	PTX_QUERY_NORMALIZED,
};

/*
 * ptx_insn.aux of textures and surfaces: the geometry, and one of component (tld4), enum ptx_outside
 * (suld, sust) and enum ptx_query. Operands: results, the object, coordinates (as many as the
 * geometry has, of layers and faces the number first), then the level, or the derivatives by x and by
 * y; of sust the values.
 */
#define PTX_TEXTURE(geometry, what) ((uint32_t)(geometry) | (uint32_t)(what) << 8)
#define PTX_TEXTURE_GEOMETRY(aux)   ((aux)&0xff)
#define PTX_TEXTURE_WHAT(aux)	    ((aux) >> 8)

/*
 * Where the elements of a matrix are. Tiles are for all lanes of a warp. mma of halves in m8n8k4 is four
 * multiplications, each by eight lanes; their matrices lie below each other in one of four times the rows.
 */
enum ptx_layout {
	PTX_LAYOUT_TILES,
	PTX_LAYOUT_ROWS, /* of four: a lane has a row, */
	PTX_LAYOUT_COLS, /* four elements of a column, */
	PTX_LAYOUT_SUMS, /* or pairs of two rows: sums that are floats */
};

/* A matrix as the lanes of a warp hold it: [n_regs] registers of [reg_type] in each. */
struct ptx_fragment {
	uint8_t layout; /* enum ptx_layout */
	uint8_t type;	/* of the elements */
	uint8_t run;	/* so many elements of a row are side by side in a lane */
	uint8_t rows;
	uint16_t cols;
	uint8_t n_regs;
	uint8_t reg_type;
};

/**
 * struct ptx_matrix - what a matrix instruction works on
 * @d:		the result, or what is loaded or stored
 * @b:		by its columns: as many rows as it has columns, [cols] is k
 * @by_cols:	loads and stores: elements of a column of the fragment are side by side in memory;
 *		ldmatrix and its kin: transposed
 * @bop:	of single bits: PTX_BOP_AND or PTX_BOP_XOR
 *
 * Operands: of mma, the registers of d, a, b, c; of loads, registers, [address], stride; of stores,
 * [address], registers, stride. ldmatrix, stmatrix and movmatrix have no stride.
 */
struct ptx_matrix {
	struct ptx_fragment d, a, b, c;
	bool by_cols;
	bool satfinite;
	uint8_t bop;
};

enum ptx_linkage {
	PTX_LINK_STATIC, /* seen by this module alone */
	PTX_LINK_EXTERN,
	PTX_LINK_VISIBLE,
	PTX_LINK_WEAK,
	PTX_LINK_COMMON,
};

/* An address in a variable's initial value: the symbol's, plus addend. */
struct ptx_reloc {
	uint64_t offset;
	uint32_t symbol;
	uint8_t bytes; /* 1, 4 or 8 that are stored */
	uint8_t shift; /* bits that the address is shifted right by first (mask(): single bytes) */
	bool generic;  /* generic(sym): its generic address, else the one in its state space */
	int64_t addend;
};

/**
 * struct ptx_var - a variable of the module
 * @space:	PTX_SPACE_GLOBAL, _CONST or _SHARED
 * @size:	bytes; 0 for the dynamic shared memory of `.extern .shared x[]`
 * @init:	its first @n_init bytes; the rest is zero
 * @bank:	constant bank, 0 to 10
 */
struct ptx_var {
	uint8_t space;
	uint8_t type;
	uint8_t bank;
	bool managed;
	uint32_t align;
	uint64_t size;
	uint8_t *init;
	uint32_t n_init;
	struct ptx_reloc *relocs;
	uint32_t n_relocs;
};

/**
 * struct ptx_function - a kernel or a device function
 * @kernel:	.entry
 * @defined:	it has a body (else it is only declared)
 * @n_regs:	registers per class
 * @carry:	the predicate register that is the carry flag, or UINT32_MAX where none is used
 * @frame_bytes: bytes of local memory per thread and call; @frame_align is at most 128
 * @max_ntid, @req_ntid: .maxntid and .reqntid, 0 where not given
 *
 * The last instruction is always one that does not fall through.
 */
struct ptx_function {
	uint32_t proto; /* in ptx_module.protos */
	bool kernel, defined;
	struct ptx_insn *insns;
	uint32_t n_insns;
	struct ptx_operand *operands;
	uint32_t n_operands;
	struct ptx_table *tables;
	uint32_t n_tables;
	struct ptx_matrix *matrices;
	uint32_t n_matrices;
	uint32_t n_regs[PTX_N_CLASSES];
	uint32_t carry;
	uint32_t frame_bytes, frame_align;
	uint32_t max_ntid[3], req_ntid[3];
	uint32_t min_cta_per_sm, max_regs;
};

/* A name of the module: a function or a variable, the other is NULL. */
struct ptx_symbol {
	const char *name;
	uint8_t linkage;
	bool nested; /* declared inside a function: other modules and the host cannot name it */
	uint32_t line;
	struct ptx_function *func;
	struct ptx_var *var;
};

struct ptx_module {
	unsigned int version;	/* of the PTX ISA, 10 * major + minor */
	unsigned int target;	/* sm_75: 75 */
	unsigned int addr_size; /* 32 or 64 */
	struct ptx_symbol *symbols;
	uint32_t n_symbols;
	struct ptx_proto *protos;
	uint32_t n_protos;
	struct arena *arena; /* owns all of it */
};

/* Answers of ptx_parse(). */
#define PTX_E_INVALID	  1 /* not PTX, or wrong PTX */
#define PTX_E_UNSUPPORTED 2 /* PTX that cannot be run here */

/**
 * ptx_parse() - read a module
 * @text:	PTX; a NUL ends it early
 * @len:	its length
 * @log:	gets one line per error; may be NULL
 * @ret:	the module; ptx_module_free() releases it
 *
 * Return: 0, PTX_E_INVALID, PTX_E_UNSUPPORTED or -ENOMEM.
 */
int ptx_parse(const char *text, size_t len, struct ptx_log *log, struct ptx_module **ret);

void ptx_module_free(struct ptx_module *module);

/**
 * ptx_symbol_find() - look a name up
 *
 * Return: the symbol, or NULL. Names of a module are few enough for a walk; who asks often keeps
 * a table.
 */
const struct ptx_symbol *ptx_symbol_find(const struct ptx_module *module, const char *name);

/* ptx_op_name(), ptx_type_name() - as PTX spells them, a type without its dot */
const char *ptx_op_name(enum ptx_op op);
const char *ptx_type_name(enum ptx_type type);
/* ptx_type_bytes() - of one value; 0 for PTX_TYPE_NONE */
unsigned int ptx_type_bytes(enum ptx_type type);

/* ptx_type_kind() - 'p', 'b', 'u', 's' or 'f' as in PTX_TYPES, 0 for PTX_TYPE_NONE */
char ptx_type_kind(enum ptx_type type);

static inline const struct ptx_operand *ptx_operands(const struct ptx_function *f,
						     const struct ptx_insn *insn)
{
	return f->operands + insn->first;
}

#endif
