/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles a CUDA file to PTX by NVRTC: nvrtc-compile FILE.cu OUT.ptx */
#include <stdio.h>
#include <stdlib.h>
#include <nvrtc.h>

static char *file_text(const char *path)
{
	FILE *f = fopen(path, "r");
	char *text = calloc(1, 1 << 20);

	if (!f || !text || fread(text, 1, (1 << 20) - 1, f) == 0) {
		perror(path);
		exit(1);
	}
	fclose(f);
	return text;
}

int main(int argc, char **argv)
{
	const char *options[] = { "--gpu-architecture=compute_80" };
	size_t size_bytes = 0;
	nvrtcProgram program;
	char *ptx;
	FILE *out;

	if (nvrtcCreateProgram(&program, file_text(argv[1]), argv[1], 0, NULL, NULL) ||
	    nvrtcCompileProgram(program, 1, options) || nvrtcGetPTXSize(program, &size_bytes)) {
		fprintf(stderr, "nvrtc: %s does not compile\n", argv[1]);
		return 1;
	}
	ptx = malloc(size_bytes);
	out = fopen(argv[2], "w");
	if (!ptx || !out || nvrtcGetPTX(program, ptx) ||
	    fwrite(ptx, 1, size_bytes - 1, out) != size_bytes - 1)
		return 1;
	return fclose(out) ? 1 : 0;
}
