// SPDX-License-Identifier: Apache-2.0
/*
 * softgpu-run: starts a program on the software GPU.
 *
 *	softgpu-run PROGRAM [ARGUMENT...]
 *
 * It puts the software GPU's libraries first on the library path and becomes the program.
 * A program that carries NVIDIA's runtime inside cannot run there, and would say only that
 * the driver is too old: softgpu-run looks first and says how to link it anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXIT_NOT_FOUND	  127 /* as a shell says it */
#define EXIT_CANNOT_START 126

/* What of a program tells which runtime it uses. */
struct traits {
	bool has_kernels;   /* a section of registered fat binaries */
	bool needs_runtime; /* names a shared libcudart */
};

static void read_needed(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, struct traits *traits)
{
	Elf_Data *data = elf_getdata(section, NULL);
	const char *name;
	GElf_Dyn entry;

	for (int i = 0; data && gelf_getdyn(data, i, &entry); i++) {
		if (entry.d_tag != DT_NEEDED)
			continue;
		name = elf_strptr(elf, header->sh_link, entry.d_un.d_val);
		if (name && strncmp(name, "libcudart.so", strlen("libcudart.so")) == 0)
			traits->needs_runtime = true;
	}
}

/* A script, or a file that is no ELF, has no traits; starting it will tell what it is. */
static struct traits program_traits(const char *path)
{
	struct traits traits = { 0 };
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	const char *name;
	size_t names;
	Elf *elf;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return traits;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_getshdrstrndx(elf, &names) == 0) {
		while ((section = elf_nextscn(elf, section)) && gelf_getshdr(section, &header)) {
			name = elf_strptr(elf, names, header.sh_name);
			if (name && strcmp(name, ".nvFatBinSegment") == 0)
				traits.has_kernels = true;
			if (header.sh_type == SHT_DYNAMIC)
				read_needed(elf, section, &header, &traits);
		}
	}
	elf_end(elf);
	close(fd);
	return traits;
}

/* Finds what execvp() would start: a name without a slash is looked up in PATH. */
static bool find_program(const char *name, char path[PATH_MAX])
{
	const char *dir = getenv("PATH");
	size_t n;

	if (strchr(name, '/'))
		return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX && access(path, X_OK) == 0;
	for (; dir && *dir; dir += n + (dir[n] == ':')) {
		n = strcspn(dir, ":");
		if (snprintf(path, PATH_MAX, "%.*s/%s", (int)n, dir, name) < PATH_MAX &&
		    access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/* Beside a build's bin/ lies softgpu/; an installed one has lib/cotenant/softgpu. */
static bool find_libraries(char path[PATH_MAX])
{
	static const char *const places[] = { "../softgpu", "../lib/cotenant/softgpu" };
	char self[PATH_MAX], tried[2 * PATH_MAX], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0)
		return false;
	self[n] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return false;
	*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(tried, sizeof(tried), "%s/%s/libcuda.so.1", self, places[i]);
		if (access(tried, R_OK) != 0)
			continue;
		*strrchr(tried, '/') = '\0';
		return realpath(tried, path) != NULL;
	}
	return false;
}

static int prepend_library_path(const char *dir)
{
	const char *old = getenv("LD_LIBRARY_PATH");
	char *path;
	int r;

	if (asprintf(&path, "%s%s%s", dir, old && *old ? ":" : "", old ? old : "") < 0)
		return -ENOMEM;
	r = setenv("LD_LIBRARY_PATH", path, /* overwrite= */ 1);
	free(path);
	return r;
}

int main(int argc, char **argv)
{
	char program[PATH_MAX], libraries[PATH_MAX];
	struct traits traits;

	if (argc < 2 || strcmp(argv[1], "--help") == 0) {
		printf("usage: softgpu-run PROGRAM [ARGUMENT...]\n"
		       "Starts a CUDA program on the software GPU.\n");
		return argc < 2 ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	if (!find_program(argv[1], program)) {
		fprintf(stderr, "softgpu-run: there is no program %s\n", argv[1]);
		return EXIT_NOT_FOUND;
	}
	if (!find_libraries(libraries)) {
		fprintf(stderr,
			"softgpu-run: the software GPU's libraries are not beside this program; "
			"build them with make\n");
		return EXIT_CANNOT_START;
	}

	traits = program_traits(program);
	if (traits.has_kernels && !traits.needs_runtime)
		fprintf(stderr,
			"softgpu-run: %s carries NVIDIA's runtime inside, which does not start on "
			"the "
			"software GPU.\n"
			"softgpu-run: link it with the shared runtime: nvcc -cudart shared ... "
			"(CMake: CUDA_RUNTIME_LIBRARY Shared)\n",
			argv[1]);

	if (prepend_library_path(libraries) < 0) {
		fprintf(stderr, "softgpu-run: out of memory\n");
		return EXIT_CANNOT_START;
	}
	execvp(argv[1], argv + 1);
	fprintf(stderr, "softgpu-run: cannot start %s: %s\n", argv[1], strerror(errno));
	return EXIT_CANNOT_START;
}
