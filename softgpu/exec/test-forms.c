/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every form of instruction that public programs were seen to use: none of them may come to be refused.
 */
#include <stdio.h>

#include "softgpu/exec/test-kit.h"

static const char *const forms[] = {
#define FORM(text) text,
#include "softgpu/exec/forms.def"
#undef FORM
};

static const char head[] =
	".const .align 16 .b8 co[16];\n.func device()\n{\nret;\n}\n"
	".visible .entry k(.param .align 16 .b8 p0[32])\n{\n.reg .pred %p<4>; .reg .b16 %h<9>; "
	".reg .b32 %r<12>;\n.reg .b64 %d<9>; .reg .f32 %f<9>; .reg .f64 %e<9>;\n"
	".local .align 16 .b8 lo[32]; .param .align 16 .b8 q0[32];\nL0:\n";

int main(void)
{
	char text[2048];
	u32 n_refused = 0;

	kit_init();
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		const char *why;

		kit_reset();
		snprintf(text, sizeof(text), "%s%s;\nret;\n}\n", head, forms[i]);
		why = kit_refusal(text);
		if (*why)
			kit_check(false, "%s: %s", forms[i], why);
		n_refused += *why != '\0';
	}
	kit_check(!n_refused, "%zu forms are run", sizeof(forms) / sizeof(forms[0]));
	return kit_result();
}
