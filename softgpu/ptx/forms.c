/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/forms.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static const char *const type_names[PTX_N_TYPES] = {
#define X(e, name, bytes, kind) [PTX_##e] = name,
	PTX_TYPES(X)
#undef X
};

static const uint8_t type_bytes[PTX_N_TYPES] = {
#define X(e, name, bytes, kind) [PTX_##e] = bytes,
	PTX_TYPES(X)
#undef X
};

static const char type_kinds[PTX_N_TYPES] = {
#define X(e, name, bytes, kind) [PTX_##e] = kind,
	PTX_TYPES(X)
#undef X
};

#define F(shape, types, need, may)	   { shape, types, 0, need, may },
#define G(shape, types, stypes, need, may) { shape, types, stypes, need, may },

static struct op_info ops[] = {
#define PTX_OP(e, mnemonic, ...)                                                                   \
	{ .name = mnemonic,                                                                        \
	  .op = PTX_OP_##e,                                                                        \
	  .forms = (const struct form[]){ __VA_ARGS__ },                                           \
	  .n_forms = sizeof((const struct form[]){ __VA_ARGS__ }) / sizeof(struct form) },
#define PTX_REFUSED(mnemonic) { .name = mnemonic },
#include "softgpu/ptx/ptx-ops.def"
};

struct word {
	const char *text;
	uint8_t group;
	uint8_t op;    /* the only one that takes it, or PTX_OP_NONE */
	uint8_t field; /* offset in struct ptx_insn, where there is a value */
	uint8_t value;
};

#define GROUP_REFUSED 255

static struct word words_table[] = {
#define FLAG(flag, text) { text, __builtin_ctz(PTX_F_##flag), 0, 0, 0 },
#define WORD(group, text, field, value)                                                            \
	{ text, GROUP_##group, 0, offsetof(struct ptx_insn, field), value },
#define HINT(group, text) { text, GROUP_##group, 0, 0, 0 },
#define MODE(op, text, m)                                                                          \
	{ text, GROUP_MODE, PTX_OP_##op, offsetof(struct ptx_insn, mode), PTX_MODE_##m },
#define OPTIONAL(op, text)   { text, GROUP_IGNORED, PTX_OP_##op, 0, 0 },
#define OTHER(op, text)	     { text, GROUP_OTHER, PTX_OP_##op, 0, 0 },
#define REFUSED_WORD(text)   { text, GROUP_REFUSED, 0, 0, 0 },
#define REFUSED_OF(op, text) { text, GROUP_REFUSED, PTX_OP_##op, 0, 0 },
#include "softgpu/ptx/ptx-words.def"
#define X(e, name, bytes, kind) { name, GROUP_TYPE, 0, 0, PTX_##e },
	PTX_TYPES(X)
#undef X
};

static int op_compare(const void *a, const void *b)
{
	return strcmp(((const struct op_info *)a)->name, ((const struct op_info *)b)->name);
}

static int word_compare(const void *a, const void *b)
{
	return strcmp(((const struct word *)a)->text, ((const struct word *)b)->text);
}

/* Sorted once for bsearch(); after that nobody writes them. */
static void sort_tables(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		for (unsigned int f = 0; f < ops[i].n_forms; f++)
			ops[i].words |= ops[i].forms[f].need | ops[i].forms[f].may;
	}
	qsort(ops, ARRAY_SIZE(ops), sizeof(ops[0]), op_compare);
	qsort(words_table, ARRAY_SIZE(words_table), sizeof(words_table[0]), word_compare);
}

static void tables_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, sort_tables);
}

struct text {
	const char *at;
	size_t len;
};

static int compare_text(const struct text *text, const char *with)
{
	int c = strncmp(text->at, with, text->len);

	return c ? c : -(with[text->len] != '\0');
}

static int op_is(const void *key, const void *op)
{
	return compare_text(key, ((const struct op_info *)op)->name);
}

static int word_is(const void *key, const void *word)
{
	return compare_text(key, ((const struct word *)word)->text);
}

const struct op_info *op_find(const char *name, size_t len)
{
	struct text key = { name, len };

	tables_init();
	return bsearch(&key, ops, ARRAY_SIZE(ops), sizeof(ops[0]), op_is);
}

enum ptx_type type_find(const char *name, size_t len)
{
	for (int type = PTX_TYPE_NONE + 1; type < PTX_N_TYPES; type++) {
		if (strlen(type_names[type]) == len && memcmp(type_names[type], name, len) == 0)
			return type;
	}
	return PTX_TYPE_NONE;
}

/* The first entry of the table that is that word; further meanings follow it. */
static const struct word *word_find(const char *text, size_t len)
{
	struct text key = { text, len };
	const struct word *word;

	word = bsearch(&key, words_table, ARRAY_SIZE(words_table), sizeof(*word), word_is);
	while (word && word > words_table && word_is(&key, word - 1) == 0)
		word--;
	return word;
}

static bool word_belongs(const struct word *word, const struct words *words)
{
	if (word->op && word->op != words->info->op)
		return false;
	if (word->group == GROUP_TYPE || word->group == GROUP_REFUSED)
		return true;
	return words->info->words >> word->group & 1;
}

static int type_add(struct words *words, enum ptx_type type)
{
	if (words->n_types == ARRAY_SIZE(words->types))
		return WORDS_E_TWICE;
	words->types[words->n_types++] = type;
	return 0;
}

int words_add(struct words *words, const char *text, size_t len, struct ptx_insn *insn)
{
	const struct word *word, *end = words_table + ARRAY_SIZE(words_table);
	const char *name;
	uint64_t bit;
	uint8_t *field;

	word = word_find(text, len);
	if (!word)
		return WORDS_E_UNKNOWN;
	for (name = word->text; !word_belongs(word, words); word++) {
		if (word + 1 == end || strcmp(word[1].text, name) != 0)
			return WORDS_E_UNKNOWN;
	}

	if (word->group == GROUP_REFUSED)
		return WORDS_E_REFUSED;
	if (word->group == GROUP_TYPE)
		return type_add(words, word->value);

	bit = 1ull << word->group;
	/* The copy of cp.async names two spaces: where to, where from. */
	if (bit == W_SPACE && words->present & W_SPACE && words->info->words & W_SPACE2)
		bit = W_SPACE2;
	if (words->present & bit && !(bit & W_REPEATED))
		return WORDS_E_TWICE;
	words->present |= bit;
	if (word->group < GROUP_SPACE)
		insn->flags |= 1u << word->group;
	if (!word->field || bit == W_SPACE2)
		return 0;

	/* ld.mmio.relaxed and its like set a field once; .lo.hi and .rn.rz set one twice. */
	field = (uint8_t *)insn + word->field;
	if (word->group != GROUP_VEC && *field)
		return WORDS_E_TWICE;
	*field = word->value;
	return 0;
}

/* Groups of which one is enough. */
static uint64_t need_left(uint64_t need, uint64_t present)
{
	static const uint64_t choices[] = { W_WRAPCLAMP, W_RND, W_HILO, W_LD_ORDER, W_ST_ORDER };

	for (size_t i = 0; i < ARRAY_SIZE(choices); i++) {
		if ((need & choices[i]) == choices[i] && present & choices[i])
			need &= ~choices[i];
	}
	return need & ~present;
}

static bool types_fit(const struct form *form, const struct words *words)
{
	if (!form->types)
		return words->n_types == 0;
	if (words->n_types == 0 || !(form->types >> words->types[0] & 1))
		return false;
	for (unsigned int i = 1; i < words->n_types; i++) {
		if (!(form->stypes >> words->types[i] & 1))
			return false;
	}
	if (strcmp(form->shape, "!video") == 0)
		return words->n_types == 3;
	return words->n_types == (form->stypes ? 2 : 1);
}

const struct form *words_form(const struct words *words, struct ptx_insn *insn)
{
	const struct op_info *info = words->info;

	insn->type = words->types[0];
	insn->stype = words->n_types > 1 ? words->types[1] : insn->type;
	insn->utype = words->n_types > 2 ? words->types[2] : insn->stype;
	for (unsigned int i = 0; i < info->n_forms; i++) {
		const struct form *form = &info->forms[i];

		if (types_fit(form, words) && !need_left(form->need, words->present) &&
		    !(words->present & ~(form->need | form->may | W_OLD)))
			return form;
	}
	return NULL;
}

const char *ptx_op_name(enum ptx_op op)
{
	static const char *const names[PTX_N_OPS] = {
#define PTX_OP(e, mnemonic, ...) [PTX_OP_##e] = mnemonic,
#include "softgpu/ptx/ptx-ops.def"
	};

	return (unsigned int)op < PTX_N_OPS && names[op] ? names[op] : "?";
}

const char *ptx_type_name(enum ptx_type type)
{
	return (unsigned int)type < PTX_N_TYPES && type_names[type] ? type_names[type] : "?";
}

unsigned int ptx_type_bytes(enum ptx_type type)
{
	return (unsigned int)type < PTX_N_TYPES ? type_bytes[type] : 0;
}

char ptx_type_kind(enum ptx_type type)
{
	return (unsigned int)type < PTX_N_TYPES ? type_kinds[type] : 0;
}
