// SPDX-License-Identifier: Apache-2.0
/* Prints what this kernel offers; each feature has to say why it does not work, or to work. */
#include "harness.h"

int main(void)
{
	struct engine_feature features[16];
	int n = engine_features(features, 16);

	if (geteuid() != 0) {
		printf("SKIP: needs root to load BPF programs\n");
		return SKIP;
	}
	for (int i = 0; i < n; i++) {
		CHECK(features[i].works != (features[i].reason[0] != '\0'));
		printf("ok 'feature %s: %s'\n", features[i].name,
		       features[i].works ? "works" : features[i].reason);
	}
	return 0;
}
