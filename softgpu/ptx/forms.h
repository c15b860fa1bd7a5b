/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mnemonics, the words after them, and which go together (ptx-ops.def, ptx-words.def).
 *
 * Words are sets: PTX lets modifiers come in any order. Each belongs to a group, a bit of a 64-bit
 * set; the lower ones are the flags of ptx.h themselves. A word that means different
 * things ("and" of setp, of atom; "lo" of mul, of setp) is in several groups, and the mnemonic
 * tells which is meant, because none takes two of them.
 */
#ifndef SOFTGPU_PTX_FORMS_H
#define SOFTGPU_PTX_FORMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "softgpu/ptx/ptx.h"

enum word_group {
	/* below it: PTX_F_* */
	GROUP_SPACE = 22,
	GROUP_SPACE2,
	GROUP_CMP,
	GROUP_BOOL,
	GROUP_ADD,
	GROUP_MINMAX,
	GROUP_INCDEC,
	GROUP_EXCH,
	GROUP_CAS,
	GROUP_POPC,
	GROUP_RN,
	GROUP_RX, /* the other directions */
	GROUP_RNA,
	GROUP_RNDI, /* to an integer */
	GROUP_RELAXED,
	GROUP_ACQUIRE,
	GROUP_RELEASE,
	GROUP_ACQ_REL,
	GROUP_SC,
	GROUP_VOLATILE,
	GROUP_WEAK,
	GROUP_MMIO,
	GROUP_SCOPE,
	GROUP_VEC,
	GROUP_CACHE,	/* hints, of no effect: of loads and stores, */
	GROUP_CACHE_LD, /* of loads */
	GROUP_CACHE_ST, /* of stores */
	GROUP_LEVEL,	/* of a cache */
	GROUP_POLICY,	/* .L2::cache_hint: an operand more */
	GROUP_FRACTION,
	GROUP_LO,
	GROUP_HI,
	GROUP_WIDE,
	GROUP_MODE, /* what else is told by ptx_insn.mode; which words, the mnemonic says */
	GROUP_ANY,  /* of match */
	GROUP_BALLOT,
	GROUP_BARMODE, /* beside .sync */
	GROUP_ASYNC,
	GROUP_PROXY,
	GROUP_IGNORED, /* changes nothing; which words, the mnemonic says */
	GROUP_OTHER,   /* beside a mode; which words, the mnemonic says */
	GROUP_OLD,     /* not a word: PTX before 1.4, which had fewer */
	GROUP_TYPE,    /* not in sets: types are counted */
};

#define W(group) (1ull << GROUP_##group)

#define W_FTZ	    PTX_F_FTZ
#define W_SAT	    PTX_F_SAT
#define W_CC	    PTX_F_CC
#define W_APPROX    PTX_F_APPROX
#define W_FULL	    PTX_F_FULL
#define W_UNI	    PTX_F_UNI
#define W_SYNC	    PTX_F_SYNC
#define W_NC	    PTX_F_NC
#define W_NAN	    PTX_F_NAN
#define W_XORSIGN   PTX_F_XORSIGN
#define W_ABS	    PTX_F_ABS
#define W_RELU	    PTX_F_RELU
#define W_SATFINITE PTX_F_SATFINITE
#define W_NOFTZ	    PTX_F_NOFTZ
#define W_OOB	    PTX_F_OOB
#define W_SHIFTAMT  PTX_F_SHIFTAMT
#define W_TO	    PTX_F_TO
#define W_ALIGNED   PTX_F_ALIGNED
#define W_ACCUM	    PTX_F_ACCUM

/* Of these sets one word is enough where they are needed. */
#define W_WRAPCLAMP (PTX_F_WRAP | PTX_F_CLAMP)
#define W_RND	    (W(RN) | W(RX))
#define W_HILO	    (W(LO) | W(HI))
#define W_LD_ORDER  (W(RELAXED) | W(ACQUIRE))
#define W_ST_ORDER  (W(RELAXED) | W(RELEASE))

#define W_SPACE	   W(SPACE)
#define W_SPACE2   W(SPACE2)
#define W_CMP	   W(CMP)
#define W_BOOL	   W(BOOL)
#define W_ADD	   W(ADD)
#define W_MINMAX   W(MINMAX)
#define W_INCDEC   W(INCDEC)
#define W_EXCH	   W(EXCH)
#define W_CAS	   W(CAS)
#define W_POPC	   W(POPC)
#define W_RN	   W(RN)
#define W_RNA	   W(RNA)
#define W_RNDI	   W(RNDI)
#define W_VOLATILE W(VOLATILE)
#define W_WEAK	   W(WEAK)
#define W_MMIO	   W(MMIO)
#define W_SCOPE	   W(SCOPE)
#define W_VEC	   W(VEC)
#define W_CACHE	   W(CACHE)
#define W_LEVEL	   W(LEVEL)
#define W_POLICY   W(POLICY)
#define W_FRACTION W(FRACTION)
#define W_HI	   W(HI)
#define W_WIDE	   W(WIDE)
#define W_MODE	   W(MODE)
#define W_ANY	   W(ANY)
#define W_BALLOT   W(BALLOT)
#define W_BARMODE  W(BARMODE)
#define W_ASYNC	   W(ASYNC)
#define W_PROXY	   W(PROXY)
#define W_IGNORED  W(IGNORED)
#define W_OTHER	   W(OTHER)
#define W_OLD	   W(OLD)
#define W_RED	   (W_ST_ORDER | W_SCOPE | W_SPACE | W_POLICY)
#define W_ATOM	   (W_RED | W(ACQUIRE) | W(ACQ_REL))
#define W_FENCE	   (W(ACQUIRE) | W(RELEASE) | W(ACQ_REL) | W(SC))

/* What may be there twice: hints for two caches, proxies of two kinds. */
#define W_REPEATED (W_CACHE | W(CACHE_LD) | W_PROXY)

#define T(type)	 (1u << PTX_##type)
#define T_I16	 (T(U16) | T(S16))
#define T_I32	 (T(U32) | T(S32))
#define T_I64	 (T(U64) | T(S64))
#define T_INT	 (T_I16 | T_I32 | T_I64)
#define T_I16X2	 (T(U16X2) | T(S16X2))
#define T_SIGNED (T(S16) | T(S32) | T(S64))
#define T_HALF	 (T(F16) | T(F16X2))
#define T_BF	 (T(BF16) | T(BF16X2))
#define T_BITS	 (T(B16) | T(B32) | T(B64))
#define T_LOGIC	 (T_BITS | T(PRED))
#define T_SEL	 (T_BITS | T_INT | T(F32) | T(F64))
#define T_CVT	 (T_INT | T(U8) | T(S8) | T(F16) | T(BF16) | T(F32) | T(F64) | T(TF32))
#define T_OCTETS (T(E4M3X2) | T(E5M2X2))
#define T_MEM	 (T_SEL | T(B8) | T(U8) | T(S8) | T(B128))
#define T_ADD	 (T_I32 | T(U64) | T(F32) | T(F64))
#define T_NOFTZ	 (T_HALF | T_BF)

struct form {
	const char *shape;
	uint32_t types;
	uint32_t stypes; /* 0: instructions of this form have one type, or none */
	uint64_t need, may;
};

struct op_info {
	const char *name;
	enum ptx_op op; /* PTX_OP_NONE: it is refused */
	const struct form *forms;
	unsigned int n_forms;
	uint64_t words; /* all of its forms */
};

/* The words of an instruction as they are read. */
struct words {
	const struct op_info *info;
	uint64_t present;
	unsigned int n_types;
	uint8_t types[3];
	char text[128]; /* the mnemonic and they, for messages */
};

/* op_find() - look a mnemonic up; NULL: there is none of that name */
const struct op_info *op_find(const char *name, size_t len);

/* Answers of words_add(). */
#define WORDS_E_UNKNOWN 1 /* no word of this instruction */
#define WORDS_E_TWICE	2 /* the instruction has such a word already */
#define WORDS_E_REFUSED 3 /* known, and not run */

/**
 * words_add() - take a word after the mnemonic
 * @words:	what came before; words->info is set
 * @word:	without its dot
 * @insn:	gets what the word stands for
 */
int words_add(struct words *words, const char *word, size_t len, struct ptx_insn *insn);

/* words_form() - the form that the words fit, or NULL; completes the types of @insn */
const struct form *words_form(const struct words *words, struct ptx_insn *insn);

/* type_find() - the type of that name, PTX_TYPE_NONE if there is none */
enum ptx_type type_find(const char *name, size_t len);

#endif
