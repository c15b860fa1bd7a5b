// SPDX-License-Identifier: Apache-2.0
#include "forward/question.h"

enum question_form question_form(enum question question)
{
	static const uint8_t forms[N_QUESTIONS] = {
#define QUESTION(form, name) [QUESTION_##name] = FORM_##form,
#include "forward/questions.def"
#undef QUESTION
	};

	return forms[question];
}
