/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strong loads and stores of vectors take a lane's elements at once: a thread of the host plays
 * the other worker, and nobody ever sees half of a vector. Not one is looked for by time: both
 * sides work until the kernel has made its rounds.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "softgpu/exec/test-kit.h"

#define N_ROUNDS   20000
#define SLOT_BYTES 16

typedef u64 word_128 __attribute__((vector_size(16)));

static const struct form {
	const char *vector, *reg; /* "v2.u64", the letter of its registers */
	u32 n, bytes;
} forms[] = {
	{ "v2.u64", "d", 2, 8 },
	{ "v4.u32", "r", 4, 4 },
	{ "v2.u32", "r", 2, 4 },
	{ "v4.u16", "h", 4, 2 },
};

/* Its own slot for each lane; how many torn vectors it has seen goes behind the slots. */
static const char head[] =
	".visible .entry k(.param .u64 p0)\n{\n.reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>;\n"
	".reg .b32 %n; .reg .b32 %torn; .reg .b32 %t; .reg .b64 %at; .reg .b64 %i; .reg .pred %p<3>;\n"
	"ld.param.u64 %at, [p0]; mov.u32 %t, %tid.x; mul.wide.u32 %i, %t, 16; add.u64 %at, %at, %i;\n"
	"mul.wide.u32 %i, %t, 12; mov.u32 %n, 0; mov.u32 %torn, 0;\nL0:\n";
static const char tail[] = "add.u32 %n, %n, 1; setp.lt.u32 %p1, %n, 20000; @%p1 bra L0;\n"
			   "sub.u64 %at, %at, %i; st.global.u32 [%at+512], %torn; ret;\n}\n";

static const char *elements_of(const struct form *form)
{
	static char text[64];

	snprintf(text, sizeof(text),
		 form->n == 2 ? "{%%%s1, %%%s2}" : "{%%%s1, %%%s2, %%%s3, %%%s4}", form->reg,
		 form->reg, form->reg, form->reg);
	return text;
}

static struct exec_image *image_that_loads(const struct form *form)
{
	char text[2048];
	int n;

	n = snprintf(text, sizeof(text), "%sld.relaxed.gpu.%s %s, [%%at];\n", head, form->vector,
		     elements_of(form));
	for (u32 i = 2; i <= form->n; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n,
			      "setp.ne.u%u %%p1, %%%s1, %%%s%u; @%%p1 add.u32 %%torn, %%torn, 1;\n",
			      8 * form->bytes, form->reg, form->reg, i);
	snprintf(text + n, sizeof(text) - (size_t)n, "%s", tail);
	return kit_image(text);
}

static struct exec_image *image_that_stores(const struct form *form)
{
	char text[2048];
	int n;

	n = snprintf(text, sizeof(text), "%s", head);
	for (u32 i = 1; i <= form->n; i++)
		n += snprintf(text + n, sizeof(text) - (size_t)n, "cvt.u%u.u32 %%%s%u, %%n;\n",
			      8 * form->bytes, form->reg, i);
	snprintf(text + n, sizeof(text) - (size_t)n, "st.relaxed.gpu.%s [%%at], %s;\n%s",
		 form->vector, elements_of(form), tail);
	return kit_image(text);
}

/* The other side: writes vectors of equal elements, or looks whether they are. */
struct other {
	const struct form *form;
	u8 *slots;
	bool writes;
	atomic_bool stop;
	u32 n_torn;
};

/* One slot, in one access. */
static void touch(struct other *o, u8 *slot, u32 round)
{
	const struct form *form = o->form;
	u32 size = form->n * form->bytes;
	union {
		u8 bytes[SLOT_BYTES];
		u64 half;
		word_128 whole;
	} mine = { .bytes = { 0 } };
	u64 v = round;

	for (u32 i = 0; i < form->n; i++)
		memcpy(mine.bytes + i * form->bytes, &v, form->bytes);
	if (size == 16) {
		volatile word_128 *at = (volatile word_128 *)slot;

		if (o->writes)
			*at = mine.whole;
		else
			mine.whole = *at;
	} else {
		volatile u64 *at = (volatile u64 *)slot;

		if (o->writes)
			*at = mine.half;
		else
			mine.half = *at;
	}
	for (u32 i = 1; i < form->n; i++)
		o->n_torn += memcmp(mine.bytes, mine.bytes + i * form->bytes, form->bytes) != 0;
}

static void *work(void *arg)
{
	struct other *o = arg;

	for (u32 round = 0; !atomic_load(&o->stop); round++)
		for (u32 lane = 0; lane < LANES; lane++)
			touch(o, o->slots + lane * SLOT_BYTES, round);
	return NULL;
}

static void check_form(const struct form *form, bool loads)
{
	struct other o = { .form = form, .writes = loads };
	struct kit_run run = { .block = LANES };
	struct exec_progress p;
	const u32 *torn;
	pthread_t thread;
	u32 n_torn;

	kit_reset();
	run.image = loads ? image_that_loads(form) : image_that_stores(form);
	o.slots = kit_alloc((SLOT_BYTES + sizeof(u32)) * LANES);
	run.params[0] = (u64)(uintptr_t)o.slots;
	if (pthread_create(&thread, NULL, work, &o))
		abort();
	p = kit_run(&run);
	atomic_store(&o.stop, true);
	pthread_join(thread, NULL);

	torn = (const u32 *)(o.slots + SLOT_BYTES * LANES);
	n_torn = o.n_torn;
	for (u32 lane = 0; lane < LANES; lane++)
		n_torn += torn[lane];
	kit_check(p.done && p.fault == 0 && n_torn == 0, "%s of %s is never half: %u",
		  loads ? "ld" : "st", form->vector, n_torn);
	exec_image_free(run.image);
}

int main(void)
{
	kit_init();
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		check_form(&forms[i], /* loads= */ true);
		check_form(&forms[i], /* loads= */ false);
	}
	return kit_result();
}
