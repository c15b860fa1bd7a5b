/* SPDX-License-Identifier: Apache-2.0 */
/* What parses must print to something that parses to the same. */
#include "base/quantity.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[64], buf[QUANTITY_TEXT];
	uint64_t v, again;
	uint32_t permille, permille_again;

	if (size >= sizeof(text))
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';

	if (size_parse(text, &v) == 0)
		assert(size_parse(size_print(v, buf), &again) == 0 && again == v);
	if (duration_parse(text, &v) == 0)
		assert(duration_parse(duration_print(v, buf), &again) == 0 && again == v);
	if (percent_parse(text, &permille) == 0)
		assert(percent_parse(percent_print(permille, buf), &permille_again) == 0 &&
		       permille_again == permille);
	return 0;
}
