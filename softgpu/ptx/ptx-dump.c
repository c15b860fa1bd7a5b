/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ptx-dump FILE...: parses each and prints what it was understood as; with --check only whether.
 */
#include <stdlib.h>
#include <string.h>

#include "softgpu/ptx/dump.h"

static char *read_file(const char *path, size_t *ret_len)
{
	FILE *f = fopen(path, "rb");
	char *text = NULL;
	size_t len = 0, cap = 0, n;

	if (!f)
		return NULL;
	do {
		if (cap - len < 65536) {
			cap = cap * 2 + 65536;
			text = realloc(text, cap);
			if (!text)
				abort();
		}
		n = fread(text + len, 1, cap - len, f);
		len += n;
	} while (n);
	fclose(f);
	*ret_len = len;
	return text;
}

static int handle(const char *path, bool check)
{
	char log_text[1024] = "";
	struct ptx_log log = { log_text, sizeof(log_text), 0 };
	struct ptx_module *module;
	const char *wrong;
	size_t len;
	char *text = read_file(path, &len);
	int r;

	if (!text) {
		perror(path);
		return 1;
	}
	r = ptx_parse(text, len, &log, &module);
	free(text);
	if (r) {
		fprintf(stderr, "%s: %d %s", path, r, log_text[0] ? log_text : "\n");
		return 1;
	}
	wrong = ptx_verify(module);
	if (wrong)
		fprintf(stderr, "%s: %s\n", path, wrong);
	if (!check)
		ptx_dump(module, stdout);
	ptx_module_free(module);
	return wrong != NULL;
}

int main(int argc, char **argv)
{
	bool check = argc > 1 && strcmp(argv[1], "--check") == 0;
	int failed = 0;

	for (int i = 1 + check; i < argc; i++)
		failed |= handle(argv[i], check);
	return failed;
}
