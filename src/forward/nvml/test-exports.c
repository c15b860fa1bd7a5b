// SPDX-License-Identifier: Apache-2.0
/* The library as programs load it, named by the argument: every public name is there, and waits for nvmlInit(). */
#include "base/base.h"
#include "base/check.h"

#include "src/nvml/nvml_abi.h"

#include <dlfcn.h>
#include <string.h>

static const char *const names[] = {
#define NVML(name) #name,
#include "src/nvml/nvml.def"
#undef NVML
};

/* What begins a session. */
static bool is_start(const char *name)
{
	return strncmp(name, "nvmlInit", strlen("nvmlInit")) == 0;
}

static void test_names(void *library)
{
	unsigned n_missing = 0, n_wrong = 0;
	void *address;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		address = dlsym(library, names[i]);
		n_missing += !address;
		if (address && !is_start(names[i]))
			n_wrong +=
				((int (*)(void *, void *, void *))address)(NULL, NULL, NULL) == 0;
	}
	check(ARRAY_SIZE(names) > 400, "there are more than 400 names");
	check(n_missing == 0, "every name of nvml.def is exported");
	check(n_wrong == 0, "none of them succeeds without a session");
	check(!dlsym(library, "cuInit"), "nothing of the driver's is");
}

static void test_without_host(void *library)
{
	int (*init)(void) = (int (*)(void))dlsym(library, "nvmlInit_v2");
	const char *(*text)(int) = (const char *(*)(int))dlsym(library, "nvmlErrorString");

	unsetenv("COTENANT_FORWARD");
	check(init() == NVML_ERROR_DRIVER_NOT_LOADED, "there is no driver where there is no host");
	check(strcmp(text(NVML_ERROR_DRIVER_NOT_LOADED), "Driver Not Loaded") == 0,
	      "an error has its text");
	check(strcmp(text(12345), "Unknown Error") == 0, "what is no error has one too");
}

int main(_unused_ int argc, char **argv)
{
	void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);

	if (!check(library != NULL, "the library can be loaded"))
		return check_result();
	test_names(library);
	test_without_host(library);
	return check_result();
}
